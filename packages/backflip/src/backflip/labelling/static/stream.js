// Receives the state of labelling and training from the server at every change.

const SILENCE_LIMIT = 40000; // milliseconds: more than two heartbeats
const CHECK_INTERVAL = 1000;

export class Stream {
  /** @param handlers {state(state), changed()}; `changed` is called when the connection opens or breaks */
  constructor(handlers) {
    this.handlers = handlers;
    this.connected = false;
    this.lostAt = performance.now();
    setInterval(() => this.check(), CHECK_INTERVAL);
  }

  /** How long the connection has been lost, in milliseconds; 0 if it is open or closed on purpose. */
  get lostFor() {
    return this.connected || !this.source ? 0 : performance.now() - this.lostAt;
  }

  open(who) {
    this.close();
    this.who = who;
    this.source = new EventSource(`/api/events?who=${encodeURIComponent(who)}`);
    this.source.onmessage = (event) => {
      this.received();
      this.handlers.state(JSON.parse(event.data));
    };
    this.source.addEventListener("beat", () => this.received());
    this.source.onopen = () => this.received();
    this.source.onerror = () => this.lost();
  }

  /** Connects again, if connected: the server did not answer another request. */
  suspect() {
    if (this.connected) this.open(this.who);
  }

  close() {
    this.source?.close();
    this.source = null;
    this.lost();
  }

  received() {
    this.receivedAt = performance.now();
    if (this.connected) return;
    this.connected = true;
    this.handlers.changed();
  }

  lost() {
    if (!this.connected) return;
    this.connected = false;
    this.lostAt = performance.now();
    this.handlers.changed();
  }

  /** Reconnects if the browser gave up or nothing has come for too long. */
  check() {
    const silent = this.connected && performance.now() - this.receivedAt > SILENCE_LIMIT;
    const closed = this.source?.readyState === EventSource.CLOSED;
    if (silent || closed) this.open(this.who);
  }
}
