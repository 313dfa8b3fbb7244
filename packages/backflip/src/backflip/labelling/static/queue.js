// The pairs that this person holds: taken from the label queue, loaded and decoded ahead of time.

import { place, post } from "./api.js";
import { NoFilm, hasAgentView, loadClips, release } from "./films.js";

const AHEAD = 4; // one on the screen, three loaded
const UNSHOWABLE = 20000; // milliseconds until a pair with a damaged film is requested again
const RETRY = 1000;

export class Queue {
  /**
   * @param handlers {ready(entry), gone(query), damaged(query, message), refused(error)}
   */
  constructor(handlers) {
    this.handlers = handlers;
    this.view = "person";
    this.loading = Promise.resolve();
    this.unshowable = new Map(); // query -> when to request it again
    this.reset("");
  }

  /** Starts again for another person; unanswered pairs return to the label queue. */
  reset(who) {
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
    // If this fails, the server frees the pairs when the person leaves.
    if (queries.length) await post("/api/give_back", { who: this.who, queries }).catch(() => {});
  }

  /** Whether the server has been asked for this person's pairs. */
  get asked() {
    return this.takenAt > -Infinity;
  }

  get held() {
    return this.waiting.length + (this.current ? 1 : 0);
  }

  get full() {
    return this.held >= AHEAD;
  }

  /** Replaces the current pair by the next loaded one and returns it; null if none is loaded. */
  advance() {
    if (this.current) this.drop(this.current);
    const index = this.waiting.findIndex((entry) => entry.films);
    this.current = index < 0 ? null : this.waiting.splice(index, 1)[0];
    return this.current;
  }

  /** Marks the current pair as answered: later responses of the server may still contain it. */
  answer() {
    this.answered.add(this.current.pair.query);
  }

  /** Makes a pair whose answer was undone the current one; the previous current one follows. */
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

  /** Returns the pairs that the person has not seen to the label queue; the current one stays. */
  rest() {
    const unseen = this.waiting;
    this.waiting = [];
    unseen.forEach((entry) => this.drop(entry));
    this.givingBack = this.giveBack(unseen.map(({ pair }) => pair.query));
  }

  /** Removes a pair whose answer was restored; returns whether it was the current one. */
  remove(query) {
    this.answered.add(query);
    this.forget(query);
    return this.current?.pair.query === query;
  }

  /** Requests our pairs from the server and loads the new ones. */
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
      const { pairs } = await post("/api/take", { who, place, without: [...this.unshowable.keys()] });
      if (who !== this.who) return;
      this.takenAt = asked;
      this.reconcile(pairs, asked);
    } catch (error) {
      if (error.problem) this.handlers.refused(error);
    }
  }

  /** Drops pairs that are no longer ours and loads new ones. */
  reconcile(pairs, asked) {
    const ours = new Set(pairs.map((pair) => pair.query));
    const lost = ({ pair, since }) => !ours.has(pair.query) && since < asked;
    this.waiting.filter(lost).forEach(({ pair }) => this.forget(pair.query));
    for (const pair of pairs) {
      const over = this.answered.has(pair.query) || this.unshowable.has(pair.query);
      if (!over && !this.holds(pair.query)) this.enter(entryOf(pair));
    }
    if (this.current && lost(this.current)) this.handlers.gone(this.current.pair.query);
  }

  holds(query) {
    return this.waiting.concat(this.current ?? []).some((entry) => entry.pair.query === query);
  }

  /** Loads a pair after those before it, so that the first one is ready as early as possible. */
  enter(entry) {
    this.waiting.push(entry);
    this.loading = this.loading.then(() => entry.dropped || this.load(entry));
  }

  async load(entry) {
    const loading = (entry.newest = {}); // the view may change during loading
    try {
      const films = await loadClips(entry.pair, this.view);
      if (entry.dropped || entry.newest !== loading) return films.forEach(release);
      entry.films?.forEach(release);
      entry.films = films;
      this.handlers.ready(entry);
    } catch (error) {
      if (!entry.dropped && entry.newest === loading) this.couldNotLoad(entry, error);
    }
  }

  couldNotLoad({ pair, films }, error) {
    const damaged = error instanceof NoFilm;
    if (damaged) this.unshowable.set(pair.query, performance.now() + UNSHOWABLE);
    if (damaged) this.handlers.damaged(pair.query, error.message);
    if (films) return; // it is still shown in the previous view
    this.forget(pair.query);
    setTimeout(() => this.refill(), damaged ? 0 : RETRY);
  }

  /** Switches to another view; the current films stay until the new ones are loaded. */
  setView(view) {
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
