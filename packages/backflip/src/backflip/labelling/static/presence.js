// Tells the server every two seconds that this page is open, so that the person keeps their pairs.
//
// When the messages end, because the tab is closed, the browser is killed or the network is lost, the
// server frees the pairs within seconds.

import { place, post } from "./api.js";

const INTERVAL = 2000; // milliseconds; `leases.py` has the same number
const TIMEOUT = 4000;

export class Presence {
  /** @param lost called when the server did not answer */
  constructor(lost) {
    this.lost = lost;
    this.who = null;
    this.sending = false;
    setInterval(() => this.send(), INTERVAL);
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", (event) => event.persisted && this.send());
  }

  /** From now on `who` is at this page; null for nobody. */
  set(who) {
    if (who === this.who) return;
    this.leave();
    this.who = who;
    this.send();
  }

  async send() {
    if (!this.who || this.sending) return;
    this.sending = true;
    const { who } = this;
    try {
      await post("/api/stay", { who, place }, { signal: AbortSignal.timeout(TIMEOUT) });
    } catch (error) {
      if (!error.problem) this.lost();
    }
    this.sending = false;
  }

  leave() {
    if (!this.who) return;
    post("/api/leave", { who: this.who, place }, { keepalive: true, signal: null }).catch(() => {});
  }
}
