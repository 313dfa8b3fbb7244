// Keyboard shortcuts. Repeats of a held key, combinations and typing in a field do nothing.

const KEYS = {
  ArrowLeft: ["answer", "left"],
  ArrowRight: ["answer", "right"],
  ArrowUp: ["answer", "tie"],
  ArrowDown: ["answer", "skip"],
  " ": ["pause"],
  u: ["undo"],
  U: ["undo"],
  r: ["redo"],
  R: ["redo"],
  l: ["list"],
  L: ["list"],
  ...Object.fromEntries([..."123456789"].map((digit) => [digit, ["digit", digit]])),
  v: ["view"],
  V: ["view"],
  "?": ["help"],
};

// Keys by position, for layouts without Latin letters and digits.
const POSITIONS = {
  ...{ KeyU: "u", KeyR: "r", KeyL: "l", KeyV: "v" },
  ...Object.fromEntries([..."123456789"].map((digit) => [`Digit${digit}`, digit])),
};

/** Calls `act(action, detail)` for each shortcut. */
export function listen(act) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    const button = event.target.closest?.("button");
    // A held Enter or space would press a button repeatedly.
    if (button && event.repeat) return event.preventDefault();
    if (event.target.closest?.("input, textarea, select")) return;
    if (document.querySelector("dialog[open]")) return;
    if (button && event.key === " ") return; // space presses the button that has the focus
    const foreign = event.key.length === 1 && !/[a-z0-9]/i.test(event.key);
    const meaning = KEYS[event.key] ?? (foreign ? KEYS[POSITIONS[event.code]] : undefined);
    if (!meaning) return;
    event.preventDefault(); // arrows and space would scroll
    if (!event.repeat) act(...meaning);
  });
}
