// What was pressed and is not acknowledged yet: sent in order, again and again until it is.
//
// It is kept in the browser, so that a reload, a crash or a server that is away loses nothing; an
// attempt's id in each letter makes sending twice count once.

import { Refused, pause, post } from "./api.js";
import { keysOf, read, write } from "./storage.js";

const FIRST_WAIT = 200;
const LONGEST_WAIT = 2000;

export class Outbox {
  /**
   * @param run whose letters
   * @param heard {done(letter, answer), refused(letter, error), shut(error), changed()}
   */
  constructor(run, heard) {
    this.heard = heard;
    this.trouble = false;
    this.prefix = `backflip:outbox:${run}:`;
    this.key = this.prefix + Math.random().toString(36).slice(2);
    this.letters = this.adopt();
    this.working = false;
    this.wake = () => {};
    this.save();
    this.work();
  }

  get length() {
    return this.letters.length;
  }

  has(kind) {
    return this.letters.some((letter) => letter.kind === kind);
  }

  add(kind, body) {
    this.letters.push({ kind, body });
    this.save();
    this.work();
    this.heard.changed();
  }

  /** Tries again at once, if it is waiting to. */
  kick() {
    this.wake();
  }

  /** Returns the letters that earlier pages of this run did not get rid of. */
  adopt() {
    const letters = [];
    for (const key of keysOf(this.prefix)) {
      letters.push(...JSON.parse(read(key)));
      write(key, null);
    }
    return letters;
  }

  save() {
    write(this.key, this.letters.length ? JSON.stringify(this.letters) : null);
  }

  async work() {
    if (this.working) return;
    this.working = true;
    let wait = FIRST_WAIT;
    while (this.letters.length) {
      try {
        await this.sendFirst();
        wait = FIRST_WAIT;
      } catch (error) {
        if (error instanceof Refused) return this.heard.shut(error); // the letters are kept
        this.trouble = true;
        this.heard.changed();
        await Promise.race([pause(wait), new Promise((resolve) => (this.wake = resolve))]);
        wait = Math.min(2 * wait, LONGEST_WAIT);
      }
    }
    this.working = false;
  }

  async sendFirst() {
    const letter = this.letters[0];
    let answer;
    let refusal;
    try {
      answer = await post(`/api/${letter.kind}`, letter.body);
    } catch (error) {
      if (!(error instanceof Refused) || error.problem === "door") throw error;
      refusal = error;
    }
    this.letters.shift();
    this.save();
    this.trouble = false;
    if (refusal) this.heard.refused(letter, refusal);
    else this.heard.done(letter, answer);
    this.heard.changed();
  }
}
