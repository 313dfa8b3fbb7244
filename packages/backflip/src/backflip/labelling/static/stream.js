// The state of labelling and training, as the server tells it whenever it has changed.

const SILENCE = 40000; // milliseconds: more than two heartbeats
const AGAIN = 1000;

export class Stream {
  /** @param heard {told(state), changed()} */
  constructor(heard) {
    this.heard = heard;
    this.connected = false;
    this.lostAt = performance.now();
    setInterval(() => this.look(), AGAIN);
  }

  /** How long there has been no connection, in milliseconds; 0 if there is one, or none is wanted. */
  get lostFor() {
    return this.connected || !this.source ? 0 : performance.now() - this.lostAt;
  }

  open(who) {
    this.close();
    this.who = who;
    this.source = new EventSource(`/api/events?who=${encodeURIComponent(who)}`);
    this.source.onmessage = (event) => {
      this.hear();
      this.heard.told(JSON.parse(event.data));
    };
    this.source.addEventListener("beat", () => this.hear());
    this.source.onopen = () => this.hear();
    this.source.onerror = () => this.lose();
  }

  close() {
    this.source?.close();
    this.source = null;
    this.lose();
  }

  hear() {
    this.heardAt = performance.now();
    if (this.connected) return;
    this.connected = true;
    this.heard.changed();
  }

  lose() {
    if (!this.connected) return;
    this.connected = false;
    this.lostAt = performance.now();
    this.heard.changed();
  }

  /** Opens a connection that the browser has given up, or on which nothing comes any more. */
  look() {
    const silent = this.connected && performance.now() - this.heardAt > SILENCE;
    const shut = this.source?.readyState === EventSource.CLOSED;
    if (silent || shut) this.open(this.who);
  }
}
