// Pointing at a chart shows its values, in all charts of the page; dragging over one zooms in.

import { duration } from "./times.js";

const SHORTEST_DRAG = 8; // pixels
const read = new WeakMap();

function curves(chart) {
  if (!read.has(chart)) {
    const text = chart.dataset.curves;
    read.set(chart, text ? JSON.parse(text) : null);
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
  }).join(" · ") + ` at ${place(x, data.axis)}`;
}

/** Returns the position along the x-axis that an event points at. */
function pointed(chart, event) {
  const data = curves(chart), box = chart.querySelector(".curves").getBoundingClientRect();
  const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  return data.low + share * (data.high - data.low);
}

function zoom(low, high) {
  const url = new URL(location.href);
  for (const [name, value] of [["from", low], ["to", high]]) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, String(Number(value.toPrecision(6))));
  }
  location.href = url;
}

/** Zooms in where the pointer drags over a chart, and out on a double click. */
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
      const ends = [pointed(chart, { clientX: from }), pointed(chart, event)].sort((a, b) => a - b);
      zoom(...ends);
    }
    end();
  });
  document.addEventListener("dblclick", (event) => {
    const zoomed = new URL(location.href).searchParams;
    if (event.target.closest?.(".chart") && (zoomed.has("from") || zoomed.has("to"))) zoom(null, null);
  });
}

/** Shows the values under the pointer in all charts. */
export function shareCrosshair() {
  let wanted = null, scheduled = false;
  const draw = () => {
    scheduled = false;
    for (const chart of document.querySelectorAll(".chart")) {
      const data = curves(chart);
      if (data) show(chart, wanted && data.axis === wanted.axis ? wanted.x : null);
    }
  };
  const schedule = () => { if (!scheduled) { scheduled = true; requestAnimationFrame(draw); } };
  document.addEventListener("pointermove", (event) => {
    const chart = event.target.closest?.(".chart");
    const data = chart && curves(chart);
    if (!data) {
      if (wanted) { wanted = null; schedule(); }
      return;
    }
    wanted = { axis: data.axis, x: pointed(chart, event) };
    schedule();
  });
}
