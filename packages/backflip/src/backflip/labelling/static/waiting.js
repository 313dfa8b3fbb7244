// The panel shown instead of the clips while the person waits.

import { at, fill, put } from "./dom.js";

/**
 * @param words {title, why, timed, elapsed, result}, from `waitingFor`
 * @param status the trainer's status
 * @param now the server's time
 */
export function showWaiting(words, status, now) {
  put("wait-title", words.title);
  put("wait-why", words.why ?? "");
  const elapsed = words.timed ? Math.max(0, now - status.since) : 0;
  const expected = words.timed ? status.expected_seconds : null;
  put("wait-time", words.timed ? words.elapsed(elapsed, expected) : "");
  at("wait-bar").hidden = !expected;
  fill(at("wait-bar"), expected ? elapsed / expected : 0);
  at("wait-result").hidden = !words.result;
  put("wait-result", words.result ?? "");
}
