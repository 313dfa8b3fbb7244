// Rows by keyboard: j k move, x selects, Enter opens, d or c compares, / filters, g, h, ?.

let here = -1;

const rows = () => [...document.querySelectorAll("#rows tbody tr")];

function move(by) {
  const all = rows();
  if (!all.length) return;
  all[here]?.classList.remove("here");
  here = Math.min(all.length - 1, Math.max(0, here + by));
  all[here].classList.add("here");
  all[here].scrollIntoView({ block: "nearest" });
  all[here].querySelector(".title a")?.focus({ preventScroll: true });
}

function compare() {
  const form = document.getElementById("select");
  if (form?.querySelector("input:checked")) form.requestSubmit();
}

const DOES = {
  j: () => move(1),
  k: () => move(-1),
  x: () => rows()[here]?.querySelector("input[type=checkbox]")?.click(),
  Enter: () => rows()[here]?.querySelector(".title a")?.click(),
  d: compare,
  c: compare,
  "/": () => document.getElementById("filter")?.select(),
  g: () => document.querySelector("[data-key=g]:not([aria-current])")?.click(),
  h: () => { location.href = "/"; },
  "?": () => document.getElementById("help").showModal(),
};

function isTyping(target) {
  return target.closest?.("input:not([type=checkbox]), textarea, select, dialog, summary");
}

/** Shows how many rows are selected and whether they can be compared. */
function count() {
  const button = document.getElementById("compare");
  if (!button) return;
  const many = document.querySelectorAll("#select input:checked").length;
  button.textContent = many ? `Compare ${many} selected` : "Compare selected";
  button.disabled = many < 2 || many > 10;
  button.title = many > 10 ? "at most ten rows" : many < 2 ? "select two or more rows (key x)" : "";
}

/** Handles keys unless a field has the focus. */
export function listenToKeys() {
  const help = document.getElementById("help-button");
  help.hidden = false;
  help.addEventListener("click", DOES["?"]);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target.id === "filter") event.target.blur();
    if (isTyping(event.target) || !Object.hasOwn(DOES, event.key)) return;
    if (event.key === "Enter" && here < 0) return;
    if (event.key === "Enter" && event.target.closest("a, button")) return;
    event.preventDefault();
    DOES[event.key]();
  });
  document.addEventListener("change", (event) => event.target.closest("#rows") && count());
  count();
}
