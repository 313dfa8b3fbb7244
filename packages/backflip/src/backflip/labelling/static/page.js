// The labelling page: connects keys, clicks, the server and the elements of the page.

import { newAttempt } from "./api.js";
import { at, put } from "./dom.js";
import { hasAgentView } from "./films.js";
import { listen } from "./keys.js";
import { Outbox } from "./outbox.js";
import { Player, ratioOf } from "./player.js";
import { Queue } from "./queue.js";
import { clearOpinion, showEpisode, showOpinion, showTally } from "./sidebar.js";
import { read, write } from "./storage.js";
import { Stream } from "./stream.js";
import { showWaiting } from "./waiting.js";
import { ANSWERS, away as awayWords, lost, many, training, waitingFor } from "./words.js";

// In milliseconds.
const AWAY = 115000; // without activity; a little less than the time for which pairs are held
const RENEW = 60000;
const POLL = 5000;
const DOUBLE_TAP = 300;
const FLASH = 180;
const SPEEDS = { 1: 0.5, 2: 1, 3: 2 };

const root = document.documentElement;
const run = root.dataset.run;
const sides = ["left", "right"];
const buttons = [...document.querySelectorAll("[data-answer]")];
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

let state = null; // the latest one from the server
let clockAhead = 0; // server time minus browser time, in seconds
let shownAt = 0; // when the current pair was shown
let activeAt = performance.now();
let away = false;
let undoing = false;

const player = new Player([...document.querySelectorAll(".clip canvas")], (position) => {
  at("position").style.transform = `scaleX(${position})`;
});

const queue = new Queue({
  ready: (entry) => {
    if (entry === queue.current) player.show(entry.films, player.time);
    else if (!queue.current && !undoing) next();
  },
  gone: () => {
    notify("This pair is now held or answered by another person.");
    next();
  },
  damaged: () => notify("A clip could not be shown. It will be rendered again."),
  refused: (error) => (error.problem === "door" ? reload() : notify(error.message)),
});

const outbox = new Outbox(run, {
  done: acknowledged,
  refused: (request, error) => {
    if (request.kind === "undo") undoing = false;
    notify(request.kind === "answer" ? `That answer did not count: ${error.message}.` : `${error.message}.`);
    queue.refill();
    show();
  },
  locked: reload,
  changed: showSaving,
});

const stream = new Stream({
  state: (newest) => {
    const before = state;
    state = newest;
    clockAhead = state.now - Date.now() / 1000;
    showState(before);
    // Another tab of the same person may have answered, and there may be new pairs.
    const elsewhere = before && state.tally.mine !== before.tally.mine && !outbox.length;
    const more = !queue.full && state.tally.open > queue.held;
    if (!away && (elsewhere || more)) queue.refill(); // while away, the pairs must become free
  },
  changed: () => {
    if (stream.connected) {
      outbox.retryNow();
      if (!away) queue.refill();
    }
    showBanner();
  },
});

// --- answering ---------------------------------------------------------------------------------

function answer(choice) {
  if (!queue.current || undoing || away) return;
  const seconds = (performance.now() - shownAt) / 1000;
  const { query } = queue.current.pair;
  queue.answer();
  next();
  flash(choice);
  outbox.add("answer", { query, answer: choice, who: queue.who, seconds, attempt: newAttempt() });
  announce(`Recorded: ${ANSWERS[choice]}.`);
}

function acknowledged(request, response) {
  if (request.kind === "answer") {
    showOpinion(response.opinion, request.body.answer);
    updateTally(response.tally);
    queue.refill();
  } else if (request.kind === "undo") {
    updateTally(response.tally);
    undone(request.body.who, response.pair);
  }
}

function undo() {
  if (undoing || away) return;
  undoing = true;
  notify("Undoing …");
  outbox.add("undo", { who: queue.who, attempt: newAttempt() });
}

async function undone(who, pair) {
  const entry = who === queue.who ? await queue.putBack(pair) : null;
  undoing = false;
  notify(entry ? "Undone: answer this pair again." : "Undone. This pair will come back later.");
  clearOpinion();
  if (entry) begin();
  else next();
}

// --- the screen --------------------------------------------------------------------------------

/** Shows the next pair, or what the person waits for. */
function next() {
  queue.advance();
  begin();
}

function begin() {
  const films = queue.current?.films ?? null;
  player.show(films);
  player.playing = true;
  if (films) fitClips(films);
  shownAt = performance.now();
  show();
}

/** Sets the aspect ratio of the clips, and notes if they play slower than real time. */
function fitClips(films) {
  const ratio = Math.max(...films.map(ratioOf));
  at("stage").style.setProperty("--ratio", ratio);
  const { slowdown } = films[0];
  put("slowed", slowdown > 1 ? `shown ${Number(slowdown.toFixed(1))} times slower than real time` : "");
}

function show() {
  const pair = queue.current?.pair;
  root.dataset.pair = pair?.query ?? "";
  root.dataset.shows = away ? "away" : pair ? "pair" : "waiting";
  buttons.forEach((button) => (button.disabled = !pair || away));
  at("view").disabled = !pair || !hasAgentView(pair);
  showPause();
  if (pair && !away) announce(`Pair ${(state?.tally.mine ?? 0) + unsentAnswers() + 1}.`);
  wait();
}

function wait() {
  if (root.dataset.shows === "pair") return;
  let words = waitingFor(state, queue.waiting.length > 0);
  if (outbox.trouble) words = lost(words);
  if (away) words = awayWords;
  showWaiting(words, state?.status, Date.now() / 1000 + clockAhead);
}

function updateTally(tally) {
  if (state) state.tally = tally;
  showTally(tally, state?.status.budget ?? 0);
}

function showState(before) {
  updateTally(state.tally);
  showEpisode(before?.status.episode, state.status);
  put("env", state.status.env);
  put("training", training(state.status));
  if (document.activeElement !== at("goal") && !outbox.has("goal")) at("goal").value = state.goal;
  const over = state.enough || ["evaluating", "finished"].includes(state.status.doing);
  at("enough").hidden = over;
  root.dataset.doing = state.status.doing;
  showBanner();
  if (!queue.current) show();
}

function showSaving() {
  const unsent = unsentAnswers();
  const offline = `offline, retrying${unsent ? `: ${many(unsent, "answer")} stored here` : ""}`;
  put("saving", outbox.trouble ? offline : unsent > 2 ? "saving …" : "");
  showBanner();
  if (!queue.current) wait();
}

function showBanner() {
  const doing = state?.status.doing;
  const name = run.length === 26 ? run.slice(-8) : run; // the short form of an id
  const resume = `run: backflip resume ${name}`;
  let text = "";
  if (doing === "stopped") text = `The training program is not running. To continue, ${resume}`;
  else if (stream.lostFor > 4000 && doing !== "finished") text = `Connection lost, retrying. If the program was stopped, ${resume}`;
  else if (stream.lostFor > 1000 && doing !== "finished") text = "Connection lost, retrying.";
  at("banner").hidden = !text;
  put("banner", text);
}

function unsentAnswers() {
  return outbox.requests.filter((request) => request.kind === "answer").length;
}

/** Flashes the chosen side and its button, without fading if the person prefers reduced motion. */
function flash(choice) {
  const frames = stillness.matches ? [{ opacity: 1 }, { opacity: 1 }] : [{ opacity: 1 }, { opacity: 0 }];
  for (const side of sides.includes(choice) ? [choice] : sides) {
    at(side).querySelector(".flash").animate(frames, { duration: FLASH, easing: "ease-out" });
  }
  const button = buttons.find((button) => button.dataset.answer === choice);
  button.animate([{ backgroundColor: "var(--accent)" }, {}], { duration: stillness.matches ? 0 : FLASH });
}

let notifyUntil = 0;
function notify(text) {
  put("said", text);
  notifyUntil = performance.now() + 5000;
}

function announce(text) {
  put("live", text);
}

// --- playing -----------------------------------------------------------------------------------

function pauseOrGoOn() {
  if (!queue.current) return;
  if (!player.playing && player.atEnd) player.replay();
  else player.playing = !player.playing;
  showPause();
}

function showPause() {
  at("pause").lastElementChild.textContent = player.playing ? "Pause" : "Play";
}

function setSpeed(key) {
  player.speed = SPEEDS[key];
  document.querySelectorAll("[data-speed]").forEach((button) => {
    button.setAttribute("aria-pressed", button.dataset.speed === key);
  });
}

function switchView() {
  if (at("view").disabled) return;
  const view = queue.view === "agent" ? "person" : "agent";
  at("view").setAttribute("aria-pressed", view === "agent");
  root.dataset.view = view;
  queue.setView(view);
}

// --- presence and name -------------------------------------------------------------------------

function active() {
  const now = performance.now();
  activeAt = now;
  if (away) comeBack();
  else if (now - queue.takenAt > RENEW && queue.who) queue.refill();
}

/** Called after a long time without activity: the held pairs become free. */
function leave() {
  away = true;
  player.playing = false;
  show();
}

async function comeBack() {
  await queue.refill(); // drops pairs that other people took in the meantime
  if (!away) return; // another event was faster
  away = false;
  begin();
}

function setName(name) {
  const trimmed = name.trim().replace(/\s+/g, " ") || root.dataset.who;
  at("who").value = trimmed;
  write("backflip:who", trimmed);
  if (trimmed === queue.who) return;
  queue.reset(trimmed);
  clearOpinion();
  begin();
  stream.open(trimmed);
  queue.refill();
}

function reload() {
  const last = Number(read("backflip:reloaded"));
  if (Date.now() - last < 30000) return setTimeout(reload, 10000); // avoids a reload loop
  write("backflip:reloaded", String(Date.now()));
  location.reload();
}

// --- input -------------------------------------------------------------------------------------

const ACTIONS = {
  answer,
  undo,
  view: switchView,
  speed: setSpeed,
  pause: pauseOrGoOn,
  help: () => at("keys").showModal(),
};

listen((action, detail) => {
  const wasAway = away;
  active();
  if (!wasAway) ACTIONS[action](detail); // the key that ends the pause does nothing else
});

function onPress(element, act) {
  element.addEventListener("click", (event) => {
    active();
    act();
    // After a click the button must lose the focus, or the space bar would press it.
    if (event.detail > 0) element.blur();
  });
}

/** Answers after a click, unless the pair has just appeared: then a double tap meant the last one. */
function tap(choice) {
  if (performance.now() - shownAt > DOUBLE_TAP) answer(choice);
}

buttons.forEach((button) => {
  button.addEventListener("click", (event) => {
    const wasAway = away;
    active();
    if (!wasAway) (event.detail > 0 ? tap : answer)(button.dataset.answer);
    if (event.detail > 0) button.blur();
  });
});
sides.forEach((side) => at(side).addEventListener("click", () => tap(side)));
onPress(at("pause"), pauseOrGoOn);
onPress(at("undo"), undo);
onPress(at("view"), switchView);
onPress(at("help"), ACTIONS.help);
onPress(at("enough"), () => at("sure").showModal());
document.querySelectorAll("[data-speed]").forEach((button) => onPress(button, () => setSpeed(button.dataset.speed)));
["pointermove", "pointerdown"].forEach((kind) => addEventListener(kind, active, { passive: true }));

at("sure").addEventListener("close", () => {
  if (at("sure").returnValue === "yes") outbox.add("enough", { who: queue.who, enough: true });
  at("sure").returnValue = "";
});

/** Makes a field editable in place: Enter or leaving it saves the text, Escape restores it. */
function editable(field, saved, save) {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") field.value = saved();
    if (event.key === "Escape" || (event.key === "Enter" && !event.isComposing)) {
      event.preventDefault();
      field.blur();
    }
  });
  field.addEventListener("blur", () => {
    if (field.value !== saved()) save(field.value);
  });
}

editable(at("goal"), () => state?.goal ?? at("goal").defaultValue, (text) => {
  const goal = text.trim().replace(/\s+/g, " ");
  if (state) state.goal = goal;
  at("goal").value = goal;
  outbox.add("goal", { text: goal, who: queue.who });
});
editable(at("who"), () => queue.who, setName);

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return stream.close(); // browsers limit the connections to one server
  stream.open(queue.who);
  queue.refill();
});

setInterval(() => {
  const now = performance.now();
  if (notifyUntil && now > notifyUntil) put("said", (notifyUntil = 0) || "");
  if (queue.current && !away && now - activeAt > AWAY) leave();
  wait();
  showBanner();
}, 500);
setInterval(() => {
  // The server sends no event when another person returns a pair.
  if (!document.hidden && !away && !queue.full && (state?.tally.open ?? 0) > queue.held) queue.refill();
}, POLL);

function start() {
  const given = new URLSearchParams(location.search).get("who");
  if (given) history.replaceState(null, "", location.pathname); // the name may change on the page
  const known = given ?? read("backflip:who");
  if (known || root.dataset.askName === "no") return setName(known ?? root.dataset.who);
  at("name").addEventListener("close", () => setName(at("first-name").value));
  at("name").showModal();
}

clearOpinion();
start();
