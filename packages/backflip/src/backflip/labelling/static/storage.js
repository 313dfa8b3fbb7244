// What the browser keeps for the page; nothing, where that is forbidden or there is no room.

/** Returns what is kept under a key, or null. */
export function read(key) {
  return attempt(() => localStorage.getItem(key)) ?? null;
}

/** Keeps text under a key; null takes it away. */
export function write(key, text) {
  attempt(() => (text === null ? localStorage.removeItem(key) : localStorage.setItem(key, text)));
}

/** Returns the keys that begin so. */
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
