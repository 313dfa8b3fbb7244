// The list of the person's own answers, in which each can be corrected.

import { newAttempt } from "./api.js";
import { at, put } from "./dom.js";
import { load, release } from "./films.js";
import { ANSWERS, duration } from "./words.js";

const STRIP = 4; // frames of a clip in the list
const HEIGHT = 96; // pixels of a frame
const CHOICES = { left: "left", tie: "equal", skip: "can’t tell", right: "right" };
const ORDER = Object.keys(CHOICES);

export class OwnAnswers {
  /** @param correct(body) sends a correction; `corrected` or `refused` must follow */
  constructor(correct) {
    this.correct = correct;
    this.dialog = at("history");
    this.list = at("history-list");
    this.list.addEventListener("keydown", (event) => this.move(event));
    at("history-more").addEventListener("click", () => this.add());
  }

  open(who) {
    this.who = who;
    this.oldest = null;
    this.list.replaceChildren();
    this.dialog.showModal();
    this.add();
  }

  /** Appends the next part of the list. */
  async add() {
    const { who, oldest } = this;
    at("history-more").hidden = true;
    put("history-said", "Loading …");
    let answers;
    try {
      answers = await fetchAnswers(who, oldest);
    } catch {
      return put("history-said", "The list cannot be loaded: there is no connection to the program.");
    }
    if (who !== this.who || oldest !== this.oldest) return; // the list was opened again
    put("history-said", this.list.children.length + answers.length ? "" : "You have not answered a pair yet. Sets of clips are not in this list.");
    const rows = answers.map((given) => this.row(given));
    this.list.append(...rows);
    this.oldest = answers.at(-1)?.label ?? null;
    at("history-more").hidden = answers.length < 20;
    if (oldest === null) focusable(rows[0])?.focus();
    for (const [index, row] of rows.entries()) await drawStrips(row, answers[index].pair);
  }

  row(given) {
    const row = document.createElement("li");
    row.dataset.query = given.query;
    const strips = ["left", "right"].map((side) => strip(side));
    const choice = document.createElement("div");
    choice.className = "choice";
    choice.setAttribute("role", "group");
    choice.setAttribute("aria-label", `Answer to pair ${given.query}`);
    choice.append(...ORDER.map((answer) => this.button(row, answer)));
    const about = document.createElement("p");
    about.className = "fine";
    row.append(...strips, choice, about);
    show(row, given);
    return row;
  }

  button(row, answer) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.choice = answer;
    button.textContent = CHOICES[answer];
    button.setAttribute("aria-label", ANSWERS[answer]);
    button.addEventListener("click", () => this.choose(row, answer));
    return button;
  }

  choose(row, answer) {
    if (row.answer === answer || row.pending) return;
    row.pending = { label: row.label, answer, who: this.who, attempt: newAttempt() };
    row.classList.add("pending");
    this.correct(row.pending);
  }

  /**
   * Shows a correction that the server has stored.
   *
   * @param learns whether the agent will learn from it in this run
   */
  corrected(body, response, learns) {
    const row = this.rowOf(body);
    if (!row) return;
    const now = new Date().toISOString();
    show(row, { label: response.label, query: row.dataset.query, answer: body.answer, at: now, corrected: true });
    const then = learns ? "The agent learns from it the next time." : "It is stored; the agent learns no more in this run.";
    put("history-said", `Pair ${row.dataset.query}: ${ANSWERS[body.answer]}. ${then}`);
  }

  refused(body, error) {
    const row = this.rowOf(body);
    if (!row) return;
    row.pending = null;
    row.classList.remove("pending");
    put("history-said", `Not changed: ${error.message}.`);
  }

  rowOf(body) {
    return [...this.list.children].find((row) => row.pending?.attempt === body.attempt);
  }

  /** Up and down move between answers, left and right between the choices. */
  move(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const button = event.target.closest("[data-choice]");
    if (!step || !button) return;
    event.preventDefault();
    const rows = [...this.list.children];
    const row = rows[rows.indexOf(button.closest("li")) + step[0]];
    const place = ORDER.indexOf(button.dataset.choice) + step[1];
    const next = row?.querySelector(`[data-choice="${ORDER[place]}"]`);
    next?.focus();
    next?.closest("li").scrollIntoView({ block: "nearest" });
  }
}

async function fetchAnswers(who, before) {
  const query = new URLSearchParams({ who, ...(before && { before }) });
  const response = await fetch(`/api/answers?${query}`, { signal: AbortSignal.timeout(15000) });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return (await response.json()).answers;
}

function show(row, { label, query, answer, at, corrected }) {
  Object.assign(row, { label, answer, pending: null });
  row.classList.remove("pending");
  row.dataset.given = answer;
  for (const button of row.querySelectorAll("[data-choice]")) {
    const chosen = button.dataset.choice === answer;
    button.setAttribute("aria-pressed", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
  const ago = Math.max(0, (Date.now() - Date.parse(at)) / 1000);
  const when = ago < 60 ? "just now" : `${duration(60 * Math.floor(ago / 60))} ago`;
  row.querySelector("p").textContent = `${ANSWERS[answer]} · pair ${query} · ${when}${corrected ? " · corrected" : ""}`;
}

function focusable(row) {
  return row?.querySelector("[aria-pressed=true]");
}

function strip(side) {
  const canvas = document.createElement("canvas");
  canvas.className = `strip ${side}`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${side} clip, ${STRIP} pictures`);
  return canvas;
}

async function drawStrips(row, pair) {
  for (const [place, side] of ["left", "right"].entries()) {
    const film = pair.clips[place].person ?? pair.clips[place].agent;
    try {
      const loaded = await load(film);
      drawStrip(row.querySelector(`.${side}`), loaded);
      release(loaded);
    } catch {
      row.querySelector(`.${side}`).setAttribute("aria-label", `${side} clip: its picture is missing`);
    }
  }
}

/** Draws a few frames of a film, from the first to the last, side by side. */
function drawStrip(canvas, { bitmap, frames, columns, width, height, pixelated }) {
  const shown = Math.min(STRIP, frames);
  const wide = Math.round((HEIGHT * width) / height);
  canvas.width = shown * wide;
  canvas.height = HEIGHT;
  const context = canvas.getContext("2d", { alpha: false });
  context.imageSmoothingEnabled = !pixelated;
  for (let index = 0; index < shown; index++) {
    const frame = shown > 1 ? Math.round((index * (frames - 1)) / (shown - 1)) : 0;
    const x = (frame % columns) * width;
    const y = Math.floor(frame / columns) * height;
    context.drawImage(bitmap, x, y, width, height, index * wide, 0, wide, HEIGHT);
  }
}
