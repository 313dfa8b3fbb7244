// The game loop: sends an action when one is due and draws the answer.

import { post, Refused } from "./api.js";
import { Controls, folded } from "./controls.js";
import { at, put } from "./dom.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
const NAMES = { both: "Both views", agent: "Agent's observation", person: "Person's view" };
const ENDS = { terminated: "Episode terminated", truncated: "Time limit reached" };

const player = crypto.randomUUID();
const state = { playing: false, paused: false, waits: false, view: "agent", speed: 3, busy: false, owed: false };
let game;
let controls;
let due = 0;

async function load() {
  game = await (await fetch("/api/game")).json();
  controls = new Controls(game, at("legend"), () => state.waits && step());
  state.view = game.views[0];
  state.waits = game.waits;
  put("idle", controls.idleText());
  if (game.note) say(`The person's view cannot be drawn here: ${game.note}`);
  show();
  over(game.env, "Use the keys to act. The game runs in real time, or waits for each key.", "Begin");
  document.documentElement.dataset.shows = "ready";
  requestAnimationFrame(tick);
}

/** Sends a request; draws the answer or shows the error. */
async function ask(path, fields) {
  state.busy = true;
  try {
    await draw(await post(path, { player, view: state.view, ...fields }));
    at("banner").hidden = true;
    return true;
  } catch (error) {
    say(error instanceof Refused ? error.message : "No answer: is backflip play still running?");
    stop();
    if (error.problem === "another page") over("Played elsewhere", error.message, "Begin here");
    return false;
  } finally {
    state.busy = false;
  }
}

async function begin() {
  if (state.busy) return;
  controls.forget();
  at("over").hidden = true;
  state.playing = await ask("/api/begin", {});
  state.paused = false;
  due = performance.now() + stepTime();
  show();
}

async function step() {
  if (!state.playing || state.paused) return;
  if (state.busy) return (state.owed = state.waits); // a key pressed meanwhile is another turn
  state.owed = false;
  await ask("/api/act", controls.action());
  if (state.owed) step();
}

function tick(now) {
  if (state.playing && !state.paused && !state.waits && !state.busy && now >= due) {
    // A late step delays the following ones; it is not made up for.
    due = Math.max(due + stepTime(), now);
    step();
  }
  requestAnimationFrame(tick);
}

function stepTime() {
  return (1000 * game.step_seconds) / SPEEDS[state.speed];
}

async function draw(told) {
  for (const which of ["person", "agent"]) {
    if (which in told) await drawPicture(at(which).querySelector("canvas"), told[which]);
  }
  if (!("episode" in told)) return;
  put("return", number(told.return));
  put("reward", number(told.reward));
  put("length", game.limit ? `${told.length} / ${game.limit}` : String(told.length));
  put("episode", String(told.episode));
  put("best", told.best === null ? "–" : number(told.best));
  at("numbers").replaceChildren(...(told.numbers ?? []).map(numberField));
  document.documentElement.dataset.length = told.length;
  if (told.ended) {
    stop();
    over(ENDS[told.ended], `${number(told.return)} in ${told.length} steps; best ${number(told.best)}`, "Again");
  }
}

async function drawPicture(canvas, png) {
  const bytes = Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  if (canvas.width !== bitmap.width) canvas.width = bitmap.width;
  if (canvas.height !== bitmap.height) canvas.height = bitmap.height;
  canvas.parentElement.style.setProperty("--ratio", bitmap.width / bitmap.height);
  canvas.getContext("2d", { alpha: false }).drawImage(bitmap, 0, 0);
}

function numberField(value, index) {
  const field = document.createElement("span");
  field.textContent = `${index}: ${value}`;
  return field;
}

function stop() {
  state.playing = false;
  show();
}

function over(title, why, what) {
  put("over-title", title);
  put("over-why", why);
  put("again-what", what);
  at("over").hidden = false;
}

function say(text) {
  put("banner", text);
  at("banner").hidden = false;
}

function show() {
  at("person").hidden = state.view === "agent";
  at("agent").hidden = state.view === "person";
  at("agent").classList.toggle("pixelated", game.pixels);
  at("person").classList.toggle("pixelated", game.pixelated);
  if (game.frames > 1) put("agent-caption", `agent's observation: ${game.frames} frames, newest on the right`);
  put("view-name", NAMES[state.view]);
  at("view").hidden = game.views.length < 2;
  at("pause").setAttribute("aria-pressed", state.paused);
  at("waits").setAttribute("aria-pressed", state.waits);
  put("speed", `${SPEEDS[state.speed]} ×`);
}

const COMMANDS = {
  Enter: () => !state.playing && begin(),
  p: () => (state.paused = !state.paused),
  v: async () => {
    state.view = game.views[(game.views.indexOf(state.view) + 1) % game.views.length];
    if (Number(at("episode").textContent) && !state.busy) await ask("/api/look", {});
  },
  t: () => (state.waits = !state.waits),
  "-": () => (state.speed = Math.max(0, state.speed - 1)),
  "+": () => (state.speed = Math.min(SPEEDS.length - 1, state.speed + 1)),
};
COMMANDS["="] = COMMANDS["+"];

async function command(name) {
  await COMMANDS[name]();
  due = Math.max(due, performance.now());
  show();
}

function listen() {
  for (const [id, name] of [["again", "Enter"], ["pause", "p"], ["view", "v"], ["waits", "t"], ["slower", "-"], ["faster", "+"]]) {
    at(id).addEventListener("click", (event) => {
      event.currentTarget.blur(); // so that space, which may be an action, does not press it again
      command(name);
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest?.("input")) return;
    if (folded(event.key) in COMMANDS && !event.repeat) {
      event.preventDefault();
      command(folded(event.key));
    } else if (controls?.press(event.key, event.repeat)) event.preventDefault();
  });
  document.addEventListener("keyup", (event) => controls?.release(event.key));
  addEventListener("blur", () => controls?.forget());
}

function number(value) {
  return Math.abs(value) >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
}

listen();
await load();
