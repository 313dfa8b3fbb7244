// The page's elements, and how text gets into them.

/** Returns the element of an id. */
export function at(id) {
  return document.getElementById(id);
}

/** Writes text, never markup; and only where it differs, so that it is not read out twice. */
export function put(id, text) {
  const element = at(id);
  if (element.textContent !== text) element.textContent = text;
}

/** Fills a bar to a share of its length. */
export function fill(bar, share) {
  bar.firstElementChild.style.transform = `scaleX(${Math.min(1, Math.max(0, share))})`;
}
