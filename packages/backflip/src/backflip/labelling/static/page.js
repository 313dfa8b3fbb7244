// The labelling page: what happens when, and what is shown of it.

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

const AWAY = 115000; // milliseconds without a key: a little less than pairs are held
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

let state = null; // the newest the server told
let clockAhead = 0; // of the server's clock before ours, in seconds
let shownAt = 0; // when the current pair came to the screen
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
    say("That pair is with others now, or answered.");
    next();
  },
  damaged: () => say("A clip could not be shown; it is drawn anew, and asked about later."),
  refused: (error) => (error.problem === "door" ? reload() : say(error.message)),
  lost: () => {},
});

const outbox = new Outbox(run, {
  done: acknowledged,
  refused: (letter, error) => {
    if (letter.kind === "undo") undoing = false;
    say(letter.kind === "answer" ? `That answer did not count: ${error.message}.` : `${error.message}.`);
    queue.refill();
    show();
  },
  shut: reload,
  changed: showSaving,
});

const stream = new Stream({
  told: (told) => {
    const before = state;
    state = told;
    clockAhead = told.now - Date.now() / 1000;
    showState(before);
    // Another tab of the same person may have answered, and pairs may have come.
    const elsewhere = before && told.tally.mine !== before.tally.mine && !outbox.length;
    const more = !queue.full && told.tally.open > queue.held;
    if (!away && (elsewhere || more)) queue.refill(); // away, they are to go back
  },
  changed: () => {
    if (stream.connected) {
      outbox.kick();
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

function acknowledged(letter, told) {
  if (letter.kind === "answer") {
    showOpinion(told.opinion, letter.body.answer);
    tell(told.tally);
    queue.refill();
  } else if (letter.kind === "undo") {
    tell(told.tally);
    undone(letter.body.who, told.pair);
  }
}

function undo() {
  if (undoing || away) return;
  undoing = true;
  say("Taking back …");
  outbox.add("undo", { who: queue.who, attempt: newAttempt() });
}

async function undone(who, pair) {
  const entry = who === queue.who ? await queue.putBack(pair) : null;
  undoing = false;
  say(entry ? "Taken back: answer it again." : "Taken back; its clips are drawn anew.");
  clearOpinion();
  if (entry) begin();
  else next();
}

// --- what is on the screen ---------------------------------------------------------------------

/** Goes on to the next pair, or to saying what is waited for. */
function next() {
  queue.advance();
  begin();
}

function begin() {
  const films = queue.current?.films ?? null;
  player.show(films);
  player.playing = true;
  if (films) showShape(films);
  shownAt = performance.now();
  show();
}

/** Makes room for two clips of these, and says so if they are slower than life. */
function showShape(films) {
  const ratio = Math.max(...films.map(ratioOf));
  at("stage").style.setProperty("--ratio", ratio);
  const { slowdown } = films[0];
  put("slowed", slowdown > 1 ? `shown ${Number(slowdown.toFixed(1))} times slower than real` : "");
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

/** Takes a newer count of labels over, and shows it. */
function tell(tally) {
  if (state) state.tally = tally;
  showTally(tally, state?.status.budget ?? 0);
}

function showState(before) {
  tell(state.tally);
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
  const offline = `offline: ${many(unsent, "answer")} kept, trying again`;
  put("saving", outbox.trouble ? (unsent ? offline : "offline, trying again") : unsent > 2 ? "saving …" : "");
  showBanner();
  if (!queue.current) wait();
}

function showBanner() {
  const doing = state?.status.doing;
  let text = "";
  if (doing === "stopped") text = `The training program is not running. To go on, type: backflip resume ${run}`;
  else if (stream.lostFor > 4000 && doing !== "finished") text = `Connection lost, trying again. If the program was stopped, type: backflip resume ${run}`;
  else if (stream.lostFor > 1000 && doing !== "finished") text = "Connection lost, trying again.";
  at("banner").hidden = !text;
  put("banner", text);
}

function unsentAnswers() {
  return outbox.letters.filter((letter) => letter.kind === "answer").length;
}

/** Lets the chosen side, and its button, light up; where motion is unwelcome, without fading. */
function flash(choice) {
  const frames = stillness.matches ? [{ opacity: 1 }, { opacity: 1 }] : [{ opacity: 1 }, { opacity: 0 }];
  for (const side of sides.includes(choice) ? [choice] : sides) {
    at(side).querySelector(".flash").animate(frames, { duration: FLASH, easing: "ease-out" });
  }
  const button = buttons.find((button) => button.dataset.answer === choice);
  button.animate([{ backgroundColor: "var(--accent)" }, {}], { duration: stillness.matches ? 0 : FLASH });
}

let sayingUntil = 0;
function say(text) {
  put("said", text);
  sayingUntil = performance.now() + 5000;
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
  queue.look(view);
}

// --- who is there ------------------------------------------------------------------------------

function active() {
  const now = performance.now();
  activeAt = now;
  if (away) comeBack();
  else if (now - queue.takenAt > RENEW && queue.who) queue.refill();
}

/** Nobody has touched anything for so long that the pairs held go back. */
function leave() {
  away = true;
  player.playing = false;
  show();
}

async function comeBack() {
  await queue.refill(); // pairs that others took meanwhile go
  if (!away) return; // a second movement of the same hand
  away = false;
  begin();
}

function callMyself(name) {
  const trimmed = name.trim().replace(/\s+/g, " ") || root.dataset.who;
  at("who").value = trimmed;
  write("backflip:who", trimmed);
  if (trimmed === queue.who) return;
  queue.renew(trimmed);
  clearOpinion();
  begin();
  stream.open(trimmed);
  queue.refill();
}

function reload() {
  const last = Number(read("backflip:reloaded"));
  if (Date.now() - last < 30000) return setTimeout(reload, 10000); // not in a tight circle
  write("backflip:reloaded", String(Date.now()));
  location.reload();
}

// --- hands -------------------------------------------------------------------------------------

const ACTIONS = {
  answer,
  undo,
  view: switchView,
  speed: setSpeed,
  pause: pauseOrGoOn,
  help: () => at("keys").showModal(),
};

listen((what, detail) => {
  const wasAway = away;
  active();
  if (!wasAway) ACTIONS[what](detail); // the key that wakes the page does nothing else
});

function onPress(element, act) {
  element.addEventListener("click", (event) => {
    active();
    act();
    // Pressed by hand, it must not take the space bar for itself.
    if (event.detail > 0) element.blur();
  });
}

/** Answers by hand, unless the pair has come to the screen between two taps meant for the last. */
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

/** Lets a field be edited in place: Enter and leaving it keep what is written, Escape does not. */
function editable(field, kept, keep) {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") field.value = kept();
    if (event.key === "Escape" || (event.key === "Enter" && !event.isComposing)) {
      event.preventDefault();
      field.blur();
    }
  });
  field.addEventListener("blur", () => {
    if (field.value !== kept()) keep(field.value);
  });
}

editable(at("goal"), () => state?.goal ?? at("goal").defaultValue, (text) => {
  const goal = text.trim().replace(/\s+/g, " ");
  if (state) state.goal = goal;
  at("goal").value = goal;
  outbox.add("goal", { text: goal, who: queue.who });
});
editable(at("who"), () => queue.who, callMyself);

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return stream.close(); // a browser keeps few connections to one server
  stream.open(queue.who);
  queue.refill();
});

setInterval(() => {
  const now = performance.now();
  if (sayingUntil && now > sayingUntil) put("said", (sayingUntil = 0) || "");
  if (queue.current && !away && now - activeAt > AWAY) leave();
  wait();
  showBanner();
}, 500);
setInterval(() => {
  // Pairs that others let go make no news.
  if (!document.hidden && !away && !queue.full && (state?.tally.open ?? 0) > queue.held) queue.refill();
}, POLL);

function start() {
  const asked = new URLSearchParams(location.search).get("who");
  if (asked) history.replaceState(null, "", location.pathname); // it may be changed on the page
  const known = asked ?? read("backflip:who");
  if (known || root.dataset.askName === "no") return callMyself(known ?? root.dataset.who);
  at("name").addEventListener("close", () => callMyself(at("first-name").value));
  at("name").showModal();
}

clearOpinion();
start();
