// Plays films side by side on canvases, with one clock.

const BREAK = 0.4; // seconds between the end and the next loop
const LONGEST_TICK = 0.1; // seconds; limits the jump after a stall

export class Player {
  /**
   * @param canvases one for each film
   * @param moved called with the position, 0 to 1, after each draw
   */
  constructor(canvases, moved = () => {}) {
    this.canvases = canvases;
    this.contexts = canvases.map((canvas) => canvas.getContext("2d", { alpha: false }));
    this.moved = moved;
    this.films = null;
    this.playing = true;
    this.speed = 1;
    this.time = 0;
    this.last = 0;
    this.tick = this.tick.bind(this);
    requestAnimationFrame(this.tick);
  }

  /** Adds a canvas for one more film. */
  add(canvas) {
    this.canvases.push(canvas);
    this.contexts.push(canvas.getContext("2d", { alpha: false }));
  }

  /** Shows films from `time` on; null shows none. */
  show(films, time = 0) {
    this.films = films;
    this.time = time;
    if (!films) return;
    this.seconds = Math.max(...films.map((film) => film.frames / film.fps));
    films.forEach((film, side) => fit(this.canvases[side], film));
    this.drawn = -1;
    this.draw();
  }

  get atEnd() {
    return this.films !== null && this.time >= this.seconds;
  }

  replay() {
    this.time = 0;
    this.playing = true;
  }

  tick(now) {
    const passed = Math.min((now - this.last) / 1000, LONGEST_TICK);
    this.last = now;
    if (this.films && this.playing) {
      // The break has the same length at every speed.
      this.time += this.atEnd ? passed : passed * this.speed;
      if (this.time >= this.seconds + BREAK) this.time = 0;
      this.draw();
    }
    requestAnimationFrame(this.tick);
  }

  draw() {
    const index = Math.floor(Math.min(this.time, this.seconds) * this.films[0].fps + 1e-6);
    if (index !== this.drawn) {
      this.films.forEach((film, side) => this.drawFrame(side, film, index));
      this.drawn = index;
    }
    this.moved(Math.min(1, this.time / this.seconds));
  }

  drawFrame(side, film, index) {
    const frame = Math.min(index, film.frames - 1); // the shorter film holds its last frame
    const x = (frame % film.columns) * film.width;
    const y = Math.floor(frame / film.columns) * film.height;
    const { width, height, bitmap } = film;
    this.contexts[side].drawImage(bitmap, x, y, width, height, 0, 0, width, height);
    this.canvases[side].dataset.frame = frame;
  }
}

/** Returns the aspect ratio of a film, width / height. */
export function ratioOf(film) {
  return film.width / film.height;
}

function fit(canvas, film) {
  if (canvas.width !== film.width) canvas.width = film.width;
  if (canvas.height !== film.height) canvas.height = film.height;
  canvas.classList.toggle("pixelated", film.pixelated);
  canvas.parentElement.style.setProperty("--ratio", ratioOf(film));
}
