// The browser's local storage. Without permission or space nothing is stored.

/** Returns the text stored under a key, or null. */
export function read(key) {
  return attempt(() => localStorage.getItem(key)) ?? null;
}

/** Stores text under a key; null removes the key. */
export function write(key, text) {
  attempt(() => (text === null ? localStorage.removeItem(key) : localStorage.setItem(key, text)));
}

/** Returns the keys with a prefix. */
export function keysOf(prefix) {
  return attempt(() => Object.keys(localStorage).filter((key) => key.startsWith(prefix))) ?? [];
}

function attempt(work) {
  try {
    return work();
  } catch {
    return undefined;
  }
}
