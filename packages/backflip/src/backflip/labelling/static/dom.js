// Access to the elements of the page.

/** Returns the element with an id. */
export function at(id) {
  return document.getElementById(id);
}

/** Sets plain text, only if it differs, so that screen readers do not read it twice. */
export function put(id, text) {
  const element = at(id);
  if (element.textContent !== text) element.textContent = text;
}

/** Fills a share of a progress bar. */
export function fill(bar, share) {
  bar.firstElementChild.style.transform = `scaleX(${Math.min(1, Math.max(0, share))})`;
}
