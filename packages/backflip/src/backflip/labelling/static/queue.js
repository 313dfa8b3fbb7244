// The pairs that are ours to answer: taken from the desk, loaded and decoded ahead of time.

import { post } from "./api.js";
import { NoFilm, hasAgentView, loadSides, release } from "./films.js";

const AHEAD = 4; // one on the screen, three loaded
const UNSHOWABLE = 20000; // milliseconds until a pair whose film was damaged is asked for again
const RETRY = 1000;

export class Queue {
  /**
   * @param heard {ready(), gone(query), damaged(message), refused(error), lost()}
   */
  constructor(heard) {
    this.heard = heard;
    this.view = "person";
    this.loading = Promise.resolve();
    this.unshowable = new Map(); // query: when to ask for it again
    this.renew("");
  }

  /** Starts anew, for another person; what was not answered goes back at once. */
  renew(who) {
    const entries = (this.waiting ?? []).concat(this.current ?? []);
    entries.forEach((entry) => this.drop(entry));
    this.givingBack = this.giveBack(entries.map(({ pair }) => pair.query));
    this.who = who;
    this.waiting = []; // in the order of answering
    this.current = null;
    this.answered = new Set();
    this.takenAt = -Infinity;
  }

  async giveBack(held) {
    const queries = held.filter((query) => !this.answered.has(query));
    // If it fails, they go back by themselves in a while.
    if (queries.length) await post("/api/give_back", { who: this.who, queries }).catch(() => {});
  }

  get held() {
    return this.waiting.length + (this.current ? 1 : 0);
  }

  get full() {
    return this.held >= AHEAD;
  }

  /** Puts the next loaded pair in place of the current one and returns it; null if there is none. */
  advance() {
    if (this.current) this.drop(this.current);
    const index = this.waiting.findIndex((entry) => entry.films);
    this.current = index < 0 ? null : this.waiting.splice(index, 1)[0];
    return this.current;
  }

  /** Notes that the current pair was answered; what the desk says of it from now on is old. */
  answer() {
    this.answered.add(this.current.pair.query);
  }

  /** Puts a pair whose answer was taken back before all others; the current one comes after it. */
  async putBack(pair) {
    this.answered.delete(pair.query);
    this.forget(pair.query);
    const entry = entryOf(pair);
    this.waiting.unshift(entry);
    await this.load(entry);
    if (!this.waiting.includes(entry)) return null;
    this.waiting = this.waiting.filter((other) => other !== entry);
    if (this.current) this.waiting.unshift(this.current);
    return (this.current = entry);
  }

  /** Asks the desk which pairs are ours, and loads those that are new. */
  refill() {
    this.askAgain = Boolean(this.who);
    this.asking ??= this.ask();
    return this.asking;
  }

  async ask() {
    while (this.askAgain) {
      this.askAgain = false;
      await this.take();
    }
    this.asking = null;
  }

  async take() {
    await this.givingBack;
    const { who } = this;
    const asked = performance.now();
    this.unshowable.forEach((until, query) => until < asked && this.unshowable.delete(query));
    try {
      const { pairs } = await post("/api/take", { who, without: [...this.unshowable.keys()] });
      if (who !== this.who) return;
      this.takenAt = asked;
      this.reconcile(pairs, asked);
    } catch (error) {
      if (error.problem) this.heard.refused(error);
      else this.heard.lost();
    }
  }

  /** Drops what is no longer ours, and loads what is new. */
  reconcile(pairs, asked) {
    const ours = new Set(pairs.map((pair) => pair.query));
    const lost = ({ pair, since }) => !ours.has(pair.query) && since < asked;
    this.waiting.filter(lost).forEach(({ pair }) => this.forget(pair.query));
    for (const pair of pairs) {
      const over = this.answered.has(pair.query) || this.unshowable.has(pair.query);
      if (!over && !this.holds(pair.query)) this.enter(entryOf(pair));
    }
    if (this.current && lost(this.current)) this.heard.gone(this.current.pair.query);
  }

  holds(query) {
    return this.waiting.concat(this.current ?? []).some((entry) => entry.pair.query === query);
  }

  /** Loads a pair once those before it are loaded, so that the first is there soonest. */
  enter(entry) {
    this.waiting.push(entry);
    this.loading = this.loading.then(() => entry.dropped || this.load(entry));
  }

  async load(entry) {
    const loading = (entry.newest = {}); // the view may be switched meanwhile
    try {
      const films = await loadSides(entry.pair, this.view);
      if (entry.dropped || entry.newest !== loading) return films.forEach(release);
      entry.films?.forEach(release);
      entry.films = films;
      this.heard.ready(entry);
    } catch (error) {
      if (!entry.dropped && entry.newest === loading) this.couldNotLoad(entry, error);
    }
  }

  couldNotLoad({ pair, films }, error) {
    const damaged = error instanceof NoFilm;
    if (damaged) this.unshowable.set(pair.query, performance.now() + UNSHOWABLE);
    if (damaged) this.heard.damaged(pair.query, error.message);
    else this.heard.lost();
    if (films) return; // in the view before, it can be shown
    this.forget(pair.query);
    setTimeout(() => this.refill(), damaged ? 0 : RETRY);
  }

  /** Shows everything in another view from now on; what is shown already stays until it is there. */
  look(view) {
    this.view = view;
    for (const entry of this.waiting.concat(this.current ?? [])) {
      if (hasAgentView(entry.pair)) this.load(entry);
    }
  }

  forget(query) {
    this.waiting.filter((entry) => entry.pair.query === query).forEach((entry) => this.drop(entry));
    this.waiting = this.waiting.filter((entry) => entry.pair.query !== query);
  }

  drop(entry) {
    entry.films?.forEach(release);
    entry.dropped = true;
  }
}

function entryOf(pair) {
  return { pair, films: null, since: performance.now(), dropped: false };
}
