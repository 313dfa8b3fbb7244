// News of the page: one stream, only while the page is seen; what is shown is changed in its place.

const MOST_LINES = 1000;
const MOST_CHARTS = 24;
const AGAIN = 5000; // milliseconds, where the browser has given up

let source = null;
let position = "";
let retry = 0;

/** Elements of markup that the server wrote; in a template nothing of it can run or load. */
function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

function say(text) {
  const element = document.getElementById("connection");
  if (element.textContent !== text) element.textContent = text;
}

function state(name, count, alone) {
  const element = document.createElement("span");
  element.className = `state s-${/^[a-z]+$/.test(name) ? name : "unknown"}`;
  element.append(document.createElement("i"), `${alone ? "" : `${count} `}${name}`);
  return element;
}

function states(cell, counts) {
  const alone = counts.length === 1 && counts[0][1] === 1;
  cell.replaceChildren(...counts.flatMap(([name, count]) => [state(name, count, alone), " "]));
}

function hearRuns({ runs, groups, total }) {
  const known = new Map();
  for (const row of document.querySelectorAll("#rows tr[data-key]")) known.set(`${row.dataset.kind} ${row.dataset.key}`, row);
  for (const [ulid, fields] of Object.entries(runs)) {
    const cell = known.get(`run ${ulid}`)?.querySelector("[data-states]");
    if (cell) {
      states(cell, [[fields.state, 1]]);
      if (fields.note) cell.append(Object.assign(document.createElement("small"), { textContent: fields.note }));
    }
    const head = document.querySelector("section.head[data-run]");
    if (head?.dataset.run === ulid) states(head.querySelector("[data-run-state]"), [[fields.state, 1]]);
  }
  for (const [name, counts] of Object.entries(groups)) {
    const cell = known.get(`group ${name}`)?.querySelector("[data-states]");
    if (cell) states(cell, counts);
    const head = document.querySelector("[data-group-states]");
    if (head && Object.keys(groups).length === 1) states(head, counts);
  }
  offerNew(total);
}

function offerNew(total) {
  const table = document.getElementById("rows");
  if (!table || !document.getElementById("filter")) {
    if (total && document.querySelector(".start")) location.reload();
    return;
  }
  const before = Number(table.dataset.total ?? total);
  table.dataset.total = before;
  const banner = document.getElementById("banner");
  const more = total - before;
  banner.hidden = more <= 0;
  if (more <= 0) return;
  const link = Object.assign(document.createElement("a"), { href: location.href, textContent: "show" });
  banner.replaceChildren(`${more} new ${more === 1 ? "run" : "runs"}: `, link);
}

function hearOutput({ html, skipped }) {
  const output = document.getElementById("output");
  if (!output?.dataset.follows) return;
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  if (skipped) output.replaceChildren();
  output.append(parsed(html));
  while (output.childElementCount > MOST_LINES) output.firstElementChild.remove();
  // Blanks between elements are nodes as well, and would pile up.
  for (const node of [...output.childNodes]) if (node.nodeType === Node.TEXT_NODE) node.remove();
  if (atEnd) scrollTo(0, document.documentElement.scrollHeight);
}

function hearCharts({ charts, pictures }) {
  const gallery = document.getElementById("pictures");
  if (pictures && gallery) gallery.replaceWith(parsed(pictures).querySelector("#pictures"));
  const place = document.querySelector(".charts");
  if (!place) return;
  const shown = new Map([...place.querySelectorAll(".figure")].map((figure) => [figure.dataset.metric, figure]));
  for (const [, html] of charts) {
    const figure = parsed(html).querySelector(".figure");
    const old = shown.get(figure.dataset.metric);
    if (old) old.replaceWith(figure);
    else if (place.querySelectorAll(".figure").length < MOST_CHARTS) {
      place.querySelector(".empty")?.remove();
      place.append(figure);
    }
  }
}

async function fetchAnew() {
  shut();
  const text = await fetch(location.href).then((answer) => (answer.ok ? answer.text() : ""), () => "");
  if (!text) { // the server is about to go, or to come
    retry = setTimeout(fetchAnew, AGAIN);
    return;
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  document.querySelector("main").replaceWith(page.querySelector("main"));
  document.documentElement.dataset.live = page.documentElement.dataset.live;
  position = "";
  open(document.documentElement.dataset.live);
}

const HEARS = {
  runs: hearRuns,
  now: ({ html }) => document.getElementById("now")?.replaceChildren(parsed(html)),
  output: hearOutput,
  charts: hearCharts,
  reset: () => fetchAnew(),
};

function shut() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

function open(address) {
  shut();
  const url = new URL(address, location.origin);
  if (position) url.searchParams.set("since", position);
  source = new EventSource(url);
  source.onopen = () => say("");
  source.onerror = () => {
    say("not connected: what is shown may be old");
    if (source?.readyState === EventSource.CLOSED) retry = setTimeout(() => open(address), AGAIN);
  };
  for (const [name, hear] of Object.entries(HEARS)) {
    source.addEventListener(name, (event) => {
      if (event.lastEventId) position = event.lastEventId;
      hear(JSON.parse(event.data));
    });
  }
}

/** Follows the stream at an address, while the page is seen: a browser holds few connections. */
export function follow(address) {
  if (!address) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? shut() : open(document.documentElement.dataset.live)));
  if (!document.hidden) open(address);
}
