// Live updates: when the server reports a new version of the page, the page fetches itself again
// and replaces the parts (elements with data-part) whose HTML has changed.

const RETRY = 5000; // milliseconds, after the browser has given up

const html = new Map(); // of each part, as the server last wrote it
let source = null;
let version = "";
let timer = 0;
let total = null;

const parts = (root) => root.querySelectorAll("[data-part]");

function say(text) {
  const element = document.getElementById("connection");
  if (element.textContent !== text) element.textContent = text;
}

/** Offers a reload if there are new runs: rows never move by themselves. */
function offerNew(page) {
  const now = page.getElementById("rows")?.dataset.total;
  if (now === undefined) return;
  if (total === undefined) location.reload(); // the first run of this home
  const more = Number(now) - Number(total);
  const banner = document.getElementById("banner");
  banner.hidden = more <= 0;
  const link = Object.assign(document.createElement("a"), { href: location.href, textContent: "show" });
  banner.replaceChildren(`${more} new ${more === 1 ? "run" : "runs"}: `, link);
}

function replace(page) {
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  const shown = new Map([...parts(document)].map((part) => [part.dataset.part, part]));
  for (const part of parts(page)) {
    const name = part.dataset.part, old = shown.get(name);
    if (!old) {
      // A new metric; its chart goes to the end.
      if (part.matches(".charts > .figure")) document.querySelector(".charts")?.append(part.cloneNode(true));
      continue;
    }
    // The output does not move under a reader who has scrolled up.
    if (html.get(name) === part.outerHTML || (name === "output" && !atEnd)) continue;
    html.set(name, part.outerHTML);
    old.replaceWith(document.importNode(part, true));
  }
  document.querySelector(".charts:has(.figure) > .empty")?.remove();
  if (atEnd && shown.has("output")) scrollTo(0, document.documentElement.scrollHeight);
}

async function update() {
  const text = await fetch(location.href).then((answer) => (answer.ok ? answer.text() : ""), () => "");
  if (!text) return;
  // Nothing in a parsed document runs or loads.
  const page = new DOMParser().parseFromString(text, "text/html");
  offerNew(page);
  replace(page);
}

function close() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

function open(address) {
  close();
  const url = new URL(address, location.origin);
  if (version) url.searchParams.set("since", version);
  source = new EventSource(url);
  source.onopen = () => say("");
  source.onerror = () => {
    say("not connected: this page may be out of date");
    if (source?.readyState === EventSource.CLOSED) timer = setTimeout(() => open(address), RETRY);
  };
  source.addEventListener("change", (event) => {
    version = event.lastEventId;
    update();
  });
}

/** Follows the stream at an address while the page is visible: a browser holds few connections. */
export function follow(address) {
  if (!address) return;
  total = document.getElementById("rows")?.dataset.total;
  for (const part of parts(document)) html.set(part.dataset.part, part.outerHTML);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open(address)));
  if (!document.hidden) open(address);
}
