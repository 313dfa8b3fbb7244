// Crosshair and zoom. Pointing at a chart shows the values at that x in all charts of the page.

import { duration } from "./times.js";

const SHORTEST_DRAG = 8; // pixels
const parsed = new WeakMap(); // chart element -> its curves

function curves(chart) {
  if (!parsed.has(chart)) {
    const text = chart.dataset.curves;
    parsed.set(chart, text ? JSON.parse(text) : null);
  }
  return parsed.get(chart);
}

function digits(value) {
  return value === null || value === undefined ? "–" : String(Number(value.toPrecision(3))).replaceAll("-", "−");
}

function position(x, axis) {
  if (axis === "seconds" || axis === "time") return duration(x);
  const [factor, letter] = [[1e9, " G"], [1e6, " M"], [1e3, " k"]].find(([size]) => Math.abs(x) >= size) ?? [1, ""];
  return digits(x / factor) + letter;
}

/** Returns the index of the value nearest to x in an ascending array. */
function nearest(values, x) {
  let low = 0, high = values.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle] < x) low = middle; else high = middle;
  }
  return Math.abs(values[low] - x) <= Math.abs(values[high] - x) ? low : high;
}

function show(chart, x) {
  const data = curves(chart);
  const cross = chart.querySelector(".cross");
  if (!data || !cross) return;
  const share = (x - data.low) / (data.high - data.low);
  const inside = x !== null && share >= -1e-9 && share <= 1 + 1e-9;
  cross.setAttribute("visibility", inside ? "visible" : "hidden");
  const reading = chart.closest(".figure")?.querySelector(".reading");
  if (!inside) { if (reading) reading.textContent = ""; return; }
  for (const end of ["x1", "x2"]) cross.setAttribute(end, `${100 * share}%`);
  if (!reading) return;
  reading.textContent = data.lines.slice(0, 4).map((line) => {
    if (!line.x.length) return "–";
    const at = nearest(line.x, x);
    const band = line.low && line.low[at] !== null && data.lines.length === 1 ? ` (${digits(line.low[at])} to ${digits(line.high[at])})` : "";
    return digits(line.y[at]) + band;
  }).join(" · ") + ` at ${position(x, data.axis)}`;
}

/** Returns the x value that a pointer event points at. */
function pointedX(chart, event) {
  const data = curves(chart), box = chart.querySelector(".curves").getBoundingClientRect();
  const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  return data.low + share * (data.high - data.low);
}

function zoom(low, high, axis) {
  const url = new URL(location.href);
  for (const [name, value] of [["from", low], ["to", high]]) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, String(Number(value.toPrecision(6))));
  }
  if (axis) url.searchParams.set("x", axis);
  location.href = url;
}

/** Dragging over a chart zooms in, a double click zooms out. */
export function listenToDrags() {
  let chart = null, from = 0, shade = null;
  const end = () => { shade?.remove(); chart = shade = null; };
  document.addEventListener("pointerdown", (event) => {
    end();
    const found = event.target.closest?.(".chart");
    if (!found || event.button || event.target.closest("a") || event.pointerType === "touch" || !curves(found)) return;
    event.preventDefault();
    [chart, from] = [found, event.clientX];
  });
  document.addEventListener("pointermove", (event) => {
    if (!chart) return;
    const box = chart.getBoundingClientRect();
    if (!shade) chart.append(shade = Object.assign(document.createElement("div"), { className: "shade" }));
    shade.style.left = `${Math.min(from, event.clientX) - box.left}px`;
    shade.style.width = `${Math.abs(event.clientX - from)}px`;
  });
  document.addEventListener("pointerup", (event) => {
    if (chart && Math.abs(event.clientX - from) > SHORTEST_DRAG) {
      const ends = [pointedX(chart, { clientX: from }), pointedX(chart, event)].sort((a, b) => a - b);
      zoom(...ends, curves(chart).axis);
    }
    end();
  });
  document.addEventListener("dblclick", (event) => {
    const zoomed = new URL(location.href).searchParams;
    if (event.target.closest?.(".chart") && (zoomed.has("from") || zoomed.has("to"))) zoom(null, null);
  });
}

/** Shows the values at the pointer's x in all charts. */
export function shareCrosshair() {
  let pointer = null, scheduled = false;
  const draw = () => {
    scheduled = false;
    for (const chart of document.querySelectorAll(".chart")) {
      const data = curves(chart);
      if (data) show(chart, pointer && data.axis === pointer.axis ? pointer.x : null);
    }
  };
  const schedule = () => { if (!scheduled) { scheduled = true; requestAnimationFrame(draw); } };
  document.addEventListener("pointermove", (event) => {
    const chart = event.target.closest?.(".chart");
    const data = chart && curves(chart);
    if (!data) {
      if (pointer) { pointer = null; schedule(); }
      return;
    }
    pointer = { axis: data.axis, x: pointedX(chart, event) };
    schedule();
  });
}
