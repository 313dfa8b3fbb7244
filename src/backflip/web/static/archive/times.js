// Clocks that count in the browser, so that the server does not have to.

/** Returns a duration in its two largest units, like the server. */
export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  const two = (n) => String(n).padStart(2, "0");
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
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
