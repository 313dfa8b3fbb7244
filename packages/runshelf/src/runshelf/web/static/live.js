// Live updates: when the server sends a new version, the page fetches itself again and replaces the
// parts (elements with data-part) whose HTML has changed.

const RETRY = 5000; // milliseconds to wait after the browser has stopped to reconnect

const html = new Map(); // part name -> its HTML as last sent by the server
let source = null;
let version = "";
let timer = 0;
let total = null; // number of runs when the page was loaded

const parts = (root) => root.querySelectorAll("[data-part]");

function showStatus(text) {
  const element = document.getElementById("connection");
  if (element.textContent !== text) element.textContent = text;
}

/** Shows a banner with a reload link if there are new runs. The table never moves by itself. */
function offerNewRuns(page) {
  const now = page.getElementById("rows")?.dataset.total;
  if (now === undefined) return;
  if (total === undefined) location.reload(); // the first run of this home
  const more = Number(now) - Number(total);
  const banner = document.getElementById("banner");
  banner.hidden = more <= 0;
  const link = Object.assign(document.createElement("a"), { href: location.href, textContent: "show" });
  banner.replaceChildren(`${more} new ${more === 1 ? "run" : "runs"}: `, link);
}

function replaceParts(page) {
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  const shown = new Map([...parts(document)].map((part) => [part.dataset.part, part]));
  for (const part of parts(page)) {
    const name = part.dataset.part, old = shown.get(name);
    if (!old) {
      // A new metric: append its chart.
      if (part.matches(".charts > .figure")) document.querySelector(".charts")?.append(part.cloneNode(true));
      continue;
    }
    // Do not move the output if the reader has scrolled up.
    if (html.get(name) === part.outerHTML || (name === "output" && !atEnd)) continue;
    html.set(name, part.outerHTML);
    old.replaceWith(document.importNode(part, true));
  }
  document.querySelector(".charts:has(.figure) > .empty")?.remove();
  if (atEnd && shown.has("output")) scrollTo(0, document.documentElement.scrollHeight);
}

async function update() {
  // The response may also be cut off after its head, as when the reader leaves the page.
  const text = await fetch(location.href).then((response) => (response.ok ? response.text() : "")).catch(() => "");
  if (!text) return;
  // A parsed document neither runs scripts nor loads resources.
  const page = new DOMParser().parseFromString(text, "text/html");
  offerNewRuns(page);
  replaceParts(page);
}

function disconnect() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

function connect(address) {
  disconnect();
  const url = new URL(address, location.origin);
  if (version) url.searchParams.set("since", version);
  source = new EventSource(url);
  source.onopen = () => showStatus("");
  source.onerror = () => {
    showStatus("not connected: this page may be out of date");
    if (source?.readyState === EventSource.CLOSED) timer = setTimeout(() => connect(address), RETRY);
  };
  source.addEventListener("change", (event) => {
    version = event.lastEventId;
    update();
  });
}

/** Follows an event stream while the page is visible: browsers limit the number of connections. */
export function follow(address) {
  if (!address) return;
  total = document.getElementById("rows")?.dataset.total;
  for (const part of parts(document)) html.set(part.dataset.part, part.outerHTML);
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect(address)));
  if (!document.hidden) connect(address);
}
