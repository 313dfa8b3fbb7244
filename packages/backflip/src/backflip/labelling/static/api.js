// Requests to the server and their errors.

const token = document.querySelector('meta[name="token"]').content;
const TIMEOUT = 15000; // milliseconds

/** Identifies this page among those of the same person. */
export const place = newAttempt();

/** The server refuses the request; repeating it would not help. */
export class Refused extends Error {
  constructor(problem, message) {
    super(message);
    this.problem = problem; // "door" if the guard refused it (wrong token)
  }
}

/**
 * Posts `body` and returns the JSON of the response; throws Refused, or another error to retry.
 *
 * @param options for `fetch`, such as `keepalive` for a request that outlives the page
 */
export async function post(path, body, options = {}) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Token": token },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT),
    ...options,
  });
  const fields = await response.json();
  if (response.ok) return fields;
  if (response.status >= 500 || response.status === 408) throw new Error(fields.error);
  throw new Refused(fields.problem ?? "", fields.error);
}

/** Returns a unique id for a keystroke, so that a repeated request counts once. */
export function newAttempt() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Resolves after a number of milliseconds. */
export function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
