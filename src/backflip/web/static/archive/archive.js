// The archive's pages work without any of this: it adds keys, a crosshair, and news as they come.

import { follow } from "./live.js";
import { listenToKeys } from "./keyboard.js";
import { shareCrosshair } from "./crosshair.js";
import { tickTimes } from "./times.js";

listenToKeys();
shareCrosshair();
tickTimes();
follow(document.documentElement.dataset.live);

// Listened to from above: what is in the page may be replaced.

// A choice of how curves are drawn is a choice, not a form to be sent.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form.drawing");
  if (form && event.target.type !== "search") form.requestSubmit();
});

// Empty fields would only make addresses longer.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "get") return;
  const empty = [...event.target.elements].filter((field) => field.name && !field.value && field.type !== "submit");
  for (const field of empty) field.disabled = true;
  setTimeout(() => { for (const field of empty) field.disabled = false; });
});
