// Keyboard shortcuts, as listed in the help dialog of _base.html.

let current = -1; // index of the current row

const rows = () => [...document.querySelectorAll("#rows tbody tr")];

function move(by) {
  const all = rows();
  if (!all.length) return;
  all[current]?.classList.remove("current");
  current = Math.min(all.length - 1, Math.max(0, current + by));
  all[current].classList.add("current");
  all[current].scrollIntoView({ block: "nearest" });
  all[current].querySelector(".title a")?.focus({ preventScroll: true });
}

function compare() {
  const form = document.getElementById("select");
  if (form?.querySelector("input:checked")) form.requestSubmit();
}

/** Opens the form for a note, about the run of this page if it has one. */
function writeNote() {
  const field = document.querySelector("#note textarea");
  if (field) return field.focus();
  const run = location.pathname.match(/^\/runs\/([0-9A-Z]{26})/);
  location.href = run ? `/notes?run=${run[1]}` : "/notes";
}

const ACTIONS = {
  j: () => move(1),
  k: () => move(-1),
  x: () => rows()[current]?.querySelector("input[type=checkbox]")?.click(),
  Enter: () => rows()[current]?.querySelector(".title a")?.click(),
  d: compare,
  c: compare,
  "/": () => document.getElementById("filter")?.select(),
  g: () => document.querySelector("[data-key=g]:not([aria-current])")?.click(),
  h: () => { location.href = "/"; },
  n: writeNote,
  "?": () => document.getElementById("help").showModal(),
};

function isTyping(target) {
  return target.closest?.("input:not([type=checkbox]), textarea, select, dialog, summary");
}

/** Updates the compare button: number of selected rows, and whether they can be compared. */
function updateCompareButton() {
  const button = document.getElementById("compare");
  if (!button) return;
  const selected = document.querySelectorAll("#select input:checked").length;
  button.textContent = selected ? `Compare ${selected} selected` : "Compare selected";
  button.disabled = selected < 2 || selected > 10;
  button.title = selected > 10 ? "at most ten rows" : selected < 2 ? "select two or more rows (key x)" : "";
}

/** Handles shortcuts unless a field has the focus. */
export function listenToKeys() {
  const help = document.getElementById("help-button");
  help.hidden = false;
  help.addEventListener("click", ACTIONS["?"]);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target.id === "filter") event.target.blur();
    if (isTyping(event.target) || !Object.hasOwn(ACTIONS, event.key)) return;
    if (event.key === "Enter" && current < 0) return;
    if (event.key === "Enter" && event.target.closest("a, button")) return;
    event.preventDefault();
    ACTIONS[event.key]();
  });
  document.addEventListener("change", (event) => event.target.closest("#rows") && updateCompareButton());
  updateCompareButton();
}
