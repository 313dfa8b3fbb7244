// One crosshair for all charts of a page: what is pointed at in one is read in all.

import { duration } from "./times.js";

const read = new WeakMap();

function curves(chart) {
  if (!read.has(chart)) {
    const said = chart.dataset.curves;
    read.set(chart, said ? JSON.parse(said) : null);
  }
  return read.get(chart);
}

function digits(value) {
  return value === null || value === undefined ? "–" : String(Number(value.toPrecision(3))).replaceAll("-", "−");
}

function place(x, axis) {
  if (axis === "seconds" || axis === "time") return duration(x);
  const [factor, letter] = [[1e9, " G"], [1e6, " M"], [1e3, " k"]].find(([size]) => Math.abs(x) >= size) ?? [1, ""];
  return digits(x / factor) + letter;
}

function nearest(places, x) {
  let low = 0, high = places.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (places[middle] < x) low = middle; else high = middle;
  }
  return Math.abs(places[low] - x) <= Math.abs(places[high] - x) ? low : high;
}

function show(chart, x) {
  const told = curves(chart);
  const cross = chart.querySelector(".cross");
  if (!told || !cross) return;
  const share = (x - told.low) / (told.high - told.low);
  const inside = x !== null && share >= -1e-9 && share <= 1 + 1e-9;
  cross.setAttribute("visibility", inside ? "visible" : "hidden");
  const reading = chart.closest(".figure")?.querySelector(".reading");
  if (!inside) { if (reading) reading.textContent = ""; return; }
  for (const end of ["x1", "x2"]) cross.setAttribute(end, `${100 * share}%`);
  if (!reading) return;
  reading.textContent = told.lines.slice(0, 4).map((line) => {
    if (!line.x.length) return "–";
    const at = nearest(line.x, x);
    const band = line.low && line.low[at] !== null && told.lines.length === 1 ? ` (${digits(line.low[at])} to ${digits(line.high[at])})` : "";
    return digits(line.y[at]) + band;
  }).join(" · ") + ` at ${place(x, told.axis)}`;
}

/** Listens to the pointer over charts. */
export function shareCrosshair() {
  let wanted = null, asked = false;
  const draw = () => {
    asked = false;
    for (const chart of document.querySelectorAll(".chart")) {
      const told = curves(chart);
      if (told) show(chart, wanted && told.axis === wanted.axis ? wanted.x : null);
    }
  };
  const ask = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };
  document.addEventListener("pointermove", (event) => {
    const chart = event.target.closest?.(".chart");
    const told = chart && curves(chart);
    if (!told) {
      if (wanted) { wanted = null; ask(); }
      return;
    }
    const box = chart.querySelector(".curves").getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    wanted = { axis: told.axis, x: told.low + share * (told.high - told.low) };
    ask();
  });
}
