// The clip that an address names stays in view while the pictures beside it load and move it.

export function keepTargetInView() {
  let scrolls = false; // the reader has scrolled since the jump
  addEventListener("hashchange", () => { scrolls = false; });
  for (const event of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    addEventListener(event, () => { scrolls = true; }, { passive: true });
  }
  // Live updates replace pictures, so the listener is on the document. `load` does not bubble.
  document.addEventListener("load", (event) => {
    const target = document.querySelector(".strip :target");
    if (!target || scrolls || event.target.closest?.(".strip") !== target.closest(".strip")) return;
    target.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, true);
}
