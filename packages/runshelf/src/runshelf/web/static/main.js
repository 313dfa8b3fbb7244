// The pages work without JavaScript, which adds keyboard shortcuts, a crosshair, zoom and live updates.

import { follow } from "./live.js";
import { listenToKeys } from "./keyboard.js";
import { listenToDrags, shareCrosshair } from "./charts.js";
import { sendNotes } from "./notes.js";
import { keepTargetInView } from "./targets.js";
import { tickTimes } from "./times.js";

listenToKeys();
shareCrosshair();
listenToDrags();
tickTimes();
sendNotes();
keepTargetInView();
follow(document.documentElement.dataset.live);

// Live updates replace parts of the page, so listeners are on the document.

// A change of a chart option takes effect without the button.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form.drawing");
  if (form && event.target.type !== "search") form.requestSubmit();
});

// Leave empty fields out of the address.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "get") return;
  const empty = [...event.target.elements].filter((field) => field.name && !field.value && field.type !== "submit");
  for (const field of empty) field.disabled = true;
  setTimeout(() => { for (const field of empty) field.disabled = false; });
});
