// Running times, counted in the browser so that the server need not send them.

/** Formats a duration in its two largest units, like the server. */
export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  for (const [large, largeUnit, small, smallUnit] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
    const rest = Math.floor((s % large) / small);
    if (s >= large) return `${Math.floor(s / large)} ${largeUnit}${rest ? ` ${rest} ${smallUnit}` : ""}`;
  }
  return `${s} s`;
}

/** Updates each `time[data-since]` every second while the page is visible. */
export function tickTimes() {
  const tick = () => {
    if (document.hidden) return;
    for (const time of document.querySelectorAll("time[data-since]")) {
      const text = duration(Date.now() / 1000 - Number(time.dataset.since));
      if (time.textContent !== text) time.textContent = text;
    }
  };
  tick();
  setInterval(tick, 1000);
}
