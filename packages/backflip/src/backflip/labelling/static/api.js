// What is said to the server, and how failures of it are told apart.

const token = document.querySelector('meta[name="token"]').content;
const PATIENCE = 15000; // milliseconds

/** The server has understood and says no: the same request would be refused again. */
export class Refused extends Error {
  constructor(problem, message) {
    super(message);
    this.problem = problem; // "door" where the guard said it
  }
}

/** Posts `body` and returns what is answered; throws Refused, or another error worth a retry. */
export async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Token": token },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(PATIENCE),
  });
  const told = await answer.json();
  if (answer.ok) return told;
  if (answer.status >= 500 || answer.status === 408) throw new Error(told.error);
  throw new Refused(told.problem ?? "", told.error);
}

/** Returns a name for one keystroke, so that sending it again counts once. */
export function newAttempt() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Resolves after so many milliseconds. */
export function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
