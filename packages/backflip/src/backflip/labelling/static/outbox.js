// Requests that the server has not acknowledged: sent in order, repeated until acknowledged.
//
// They are kept in local storage, so that a reload, a crash or a missing server loses nothing. Each
// has an attempt id, so that a request sent twice counts once.

import { Refused, pause, post } from "./api.js";
import { keysOf, read, write } from "./storage.js";

const FIRST_WAIT = 200;
const LONGEST_WAIT = 2000;

export class Outbox {
  /**
   * @param run the run's name
   * @param handlers {done(request, response), refused(request, error), locked(error), changed()}
   */
  constructor(run, handlers) {
    this.handlers = handlers;
    this.trouble = false;
    this.prefix = `backflip:outbox:${run}:`;
    this.key = this.prefix + Math.random().toString(36).slice(2);
    this.requests = this.adopt();
    this.working = false;
    this.wake = () => {};
    this.save();
    this.work();
  }

  get length() {
    return this.requests.length;
  }

  has(kind) {
    return this.requests.some((request) => request.kind === kind);
  }

  add(kind, body) {
    this.requests.push({ kind, body });
    this.save();
    this.work();
    this.handlers.changed();
  }

  /** Retries at once if it is waiting. */
  retryNow() {
    this.wake();
  }

  /** Takes over the requests that earlier pages of this run did not deliver. */
  adopt() {
    const requests = [];
    for (const key of keysOf(this.prefix)) {
      requests.push(...JSON.parse(read(key)));
      write(key, null);
    }
    return requests;
  }

  save() {
    write(this.key, this.requests.length ? JSON.stringify(this.requests) : null);
  }

  async work() {
    if (this.working) return;
    this.working = true;
    let wait = FIRST_WAIT;
    while (this.requests.length) {
      try {
        await this.sendFirst();
        wait = FIRST_WAIT;
      } catch (error) {
        if (error instanceof Refused) return this.handlers.locked(error); // the requests are kept
        this.trouble = true;
        this.handlers.changed();
        await Promise.race([pause(wait), new Promise((resolve) => (this.wake = resolve))]);
        wait = Math.min(2 * wait, LONGEST_WAIT);
      }
    }
    this.working = false;
  }

  async sendFirst() {
    const request = this.requests[0];
    let response;
    let refusal;
    try {
      response = await post(`/api/${request.kind}`, request.body);
    } catch (error) {
      if (!(error instanceof Refused) || error.problem === "door") throw error;
      refusal = error;
    }
    this.requests.shift();
    this.save();
    this.trouble = false;
    if (refusal) this.handlers.refused(request, refusal);
    else this.handlers.done(request, response);
    this.handlers.changed();
  }
}
