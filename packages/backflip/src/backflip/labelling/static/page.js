// The labelling page: connects keys, clicks, the server and the elements of the page.

import { newAttempt } from "./api.js";
import { at, put } from "./dom.js";
import { editable } from "./editable.js";
import { endPlayer, loadFilm, showEnding } from "./ending.js";
import { hasAgentView } from "./films.js";
import { listen } from "./keys.js";
import { Outbox } from "./outbox.js";
import { OwnAnswers } from "./own_answers.js";
import { Player, ratioOf } from "./player.js";
import { Presence } from "./presence.js";
import { Queue } from "./queue.js";
import { afterKey, asking, gridOf, keysOf, rankOf, visible } from "./sets.js";
import { clearOpinion, showEpisode, showOpinion, showTally } from "./sidebar.js";
import { read, write } from "./storage.js";
import { Stream } from "./stream.js";
import { showWaiting } from "./waiting.js";
import { ANSWERS, away as awayWords, banner, learnsAgain, lost, many, sentence, stopMeans, teaching, training, waitingFor } from "./words.js";

// In milliseconds.
const AWAY = 30 * 60000; // without activity: the person is not thinking, but away
const REST = 60000; // without activity, while others are there: unseen pairs go to them
const POLL = 5000;
const DOUBLE_TAP = 300;
const FLASH = 180;
const SPEEDS = { 1: 0.5, 2: 1, 3: 2 };

const root = document.documentElement;
const run = root.dataset.run;
const sides = ["left", "right"];
const buttons = [...document.querySelectorAll("[data-answer]")];
const markButtons = [...document.querySelectorAll("[data-mark]")]; // of sets
const figures = sides.map(at); // of all clips; a set may need more
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

let state = JSON.parse(at("state").textContent); // the latest one from the server
let heard = false; // whether the stream has sent a state
let clockAhead = 0; // server time minus browser time, in seconds
let shownAt = 0; // when the current pair was shown
let changedAt = 0; // when the clips on the screen were shown
let activeAt = performance.now();
let away = false;
let resting = false; // the unseen pairs were returned
let undoing = false; // an undo or a redo is on its way
let pressed = []; // the undos and redos that were asked for meanwhile

const player = new Player([...document.querySelectorAll(".clip canvas")], (position) => {
  at("position").style.transform = `scaleX(${position})`;
});

const queue = new Queue({
  ready: (entry) => {
    if (entry === queue.current) player.show(visible(entry), player.time);
    else if (!queue.current && !undoing) next();
  },
  gone: () => {
    notify("This pair is now held or answered in another tab, or by another person.");
    next();
  },
  damaged: () => notify("A clip could not be shown. It will be drawn again."),
  refused: (error) => (error.problem === "door" ? reload() : notify(error.message)),
});

const outbox = new Outbox(run, {
  done: acknowledged,
  refused: (request, error) => {
    if (["undo", "redo"].includes(request.kind)) {
      undoing = false;
      pressed = [];
    }
    if (request.kind === "correct") ownAnswers.refused(request.body, error);
    notify(request.kind === "answer" ? `That answer did not count: ${error.message}.` : sentence(error.message));
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
    showState(before);
    // Another tab of the same person may have answered, and there may be new pairs.
    const elsewhere = heard && state.tally.mine !== before.tally.mine && !outbox.length;
    const more = !queue.full && state.tally.open > queue.held;
    heard = true;
    if (wantsPairs() && (elsewhere || more)) queue.refill();
  },
  changed: () => {
    if (stream.connected) {
      outbox.retryNow();
      if (wantsPairs()) queue.refill();
    }
    showBanner();
  },
});

const presence = new Presence(() => stream.suspect());

const ownAnswers = new OwnAnswers((body) => outbox.add("correct", body));

/** While the person is away or rests, the pairs are left to others; at the end there are none. */
function wantsPairs() {
  return !away && !resting && !state.enough && !finished();
}

function finished() {
  return state.status.doing === "finished";
}

// --- answering ---------------------------------------------------------------------------------

function answer(choice) {
  if (!mayAnswer()) return;
  if (kind() !== "compare") return sides.includes(choice) ? undefined : mark(choice);
  give(choice);
  const button = buttons.find((button) => button.dataset.answer === choice);
  flash(sides.includes(choice) ? [at(choice)] : sides.map(at), button);
  announce(`Recorded: ${ANSWERS[choice]}.`);
}

/** Returns whether a key answers what is on the screen; during an undo that is about to change. */
function mayAnswer() {
  if (undoing && canAnswer()) notify("Not done yet: that answer did not count.");
  return canAnswer() && !undoing;
}

/** Records a complete answer and shows the next pair. */
function give(said) {
  const seconds = (performance.now() - shownAt) / 1000;
  const { query } = queue.current.pair;
  queue.answer();
  next();
  outbox.add("answer", { query, answer: said, who: queue.who, seconds, attempt: newAttempt() });
  at("redo").disabled = true;
}

/** Ranks the clip with a number, or rates the clip on the screen; also "tie" and "skip". */
function mark(key) {
  if (!mayAnswer()) return;
  const { pair } = queue.current;
  const said = afterKey(pair, key);
  if (!said) return;
  const button = markButtons.find((button) => button.dataset.mark === String(key));
  const clip = pair.kind === "rank" && figures[key - 1];
  if (said.marks) setMarks(said.marks);
  else give(said.answer);
  flash(clip ? [clip] : [], button);
  announce("Recorded.");
}

/** Keeps what has been said of the set on the screen so far. */
function setMarks(marks) {
  const { pair } = queue.current;
  pair.marks = marks;
  outbox.add("mark", { query: pair.query, marks, who: queue.who });
  if (pair.kind === "rate") showClips();
  show();
}

function digit(key) {
  if (kind() !== "compare") mark(Number(key));
  else if (SPEEDS[key]) setSpeed(key);
}

/** How the pair on the screen, or the one before, is answered. */
function kind() {
  return root.dataset.kind;
}

function acknowledged(request, response) {
  if (request.kind === "answer") {
    showOpinion(response.opinion, request.body.answer);
    updateTally(response.tally);
    queue.refill();
  } else if (request.kind === "undo") {
    updateTally(response.tally);
    undone(request.body.who, response);
  } else if (request.kind === "redo") {
    updateTally(response.tally);
    redone(request.body.who, response);
  } else if (request.kind === "correct") {
    updateTally(response.tally);
    ownAnswers.corrected(request.body, response, learnsAgain(state.status));
  }
}

function canAnswer() {
  return Boolean(queue.current) && !away && !state.enough && !finished();
}

function undo() {
  if (undoing) return pressed.push(undo);
  const marks = canAnswer() && !undoing ? queue.current.pair.marks : [];
  if (marks.length) return setMarks(marks.slice(0, -1));
  change("undo", "Undoing …");
}

function redo() {
  if (undoing) return pressed.push(redo);
  if (!at("redo").disabled) change("redo", "Redoing …");
}

function change(kind, text) {
  if (away || finished()) return;
  undoing = true;
  notify(text);
  outbox.add(kind, { who: queue.who, attempt: newAttempt() });
}

async function undone(who, { query, pair, answer: before }) {
  const entry = pair && who === queue.who ? await queue.putBack(pair) : null;
  undoing = false;
  if (pair) shownAgain(pair, entry);
  else notify(`Correction undone. Pair ${query} again: ${ANSWERS[before]}.`);
  goOn();
}

function shownAgain(pair, entry) {
  const again = pair.kind === "compare" ? "answer this pair again" : "go on with this set";
  notify(entry ? `Undone: ${again}.` : "Undone. This pair will come back later.");
  clearOpinion();
  if (entry) begin();
  else next();
}

function redone(who, { query, answer: restored }) {
  undoing = false;
  notify(restored ? `Restored: ${ANSWERS[restored]}.` : "Restored.");
  clearOpinion();
  if (who === queue.who && queue.remove(query)) next();
  else if (!queue.current) next();
  goOn();
}

/** Does what was asked for during an undo or a redo. */
function goOn() {
  while (!undoing && pressed.length) pressed.shift()();
}

// --- the screen --------------------------------------------------------------------------------

/** Shows the next pair, or what the person waits for. */
function next() {
  queue.advance();
  begin();
}

function begin() {
  showClips();
  shownAt = performance.now();
  show();
}

function showClips() {
  const films = queue.current ? visible(queue.current) : null;
  if (films) layOut(films);
  player.show(films);
  player.playing = true;
  changedAt = performance.now();
}

/** Makes room for so many clips, sets their aspect ratio, and notes if they play slowly. */
function layOut(films) {
  root.dataset.kind = queue.current.pair.kind;
  while (figures.length < films.length) addFigure();
  figures.forEach((figure, place) => (figure.parentElement.hidden = place >= films.length));
  const { columns, rows } = gridOf(films.length);
  const ratio = Math.max(...films.map(ratioOf));
  Object.entries({ ratio, columns, rows }).forEach(([name, value]) => at("stage").style.setProperty(`--${name}`, value));
  const { slowdown } = films[0];
  put("slowed", slowdown > 1 ? `shown ${Number(slowdown.toFixed(1))} times slower than real time` : "");
}

function addFigure() {
  const cell = at("left").parentElement.cloneNode(true);
  const figure = cell.firstElementChild;
  figure.removeAttribute("id");
  at("stage").querySelector(".clips").append(cell);
  listenToClip(figure, figures.push(figure) - 1);
  player.add(figure.querySelector("canvas"));
}

/** Shows the question about a set, the keys that answer it, and the ranking so far. */
function showMarks(pair) {
  const sets = kind() !== "compare";
  at("answers").hidden = sets;
  at("marks").hidden = !sets;
  const known = pair?.kind === kind() ? pair : { kind: kind(), clips: [], marks: [] };
  put("asking", sets ? (pair ? asking(pair) : "") : "");
  markButtons.forEach((button) => {
    const key = button.dataset.mark;
    const used = key === "tie" ? kind() === "rank" : key === "skip" || Number(key) <= keysOf(known);
    button.hidden = !used;
    button.disabled = !canAnswer() || (key !== "skip" && !afterKey(known, key === "tie" ? key : Number(key)));
  });
  figures.forEach((figure, place) => {
    const rank = rankOf(known, place);
    const numbered = kind() === "rank" ? `clip ${place + 1}${rank && `, ${rank}`}` : "the clip";
    const name = sets ? numbered : `${sides[place]} clip`;
    figure.dataset.key = kind() === "rank" ? place + 1 : "";
    figure.dataset.rank = rank;
    figure.querySelector("canvas").setAttribute("aria-label", name);
  });
}

function show() {
  const pair = queue.current?.pair;
  root.dataset.pair = (canAnswer() || away) && pair ? pair.query : "";
  root.dataset.shows = finished() ? "ending" : away ? "away" : canAnswer() ? "pair" : "waiting";
  buttons.forEach((button) => (button.disabled = !canAnswer()));
  showMarks(pair);
  at("undo").disabled = at("list").disabled = finished();
  at("view").disabled = !pair || !hasAgentView(pair);
  showPause();
  if (canAnswer()) announce(`Pair ${state.tally.mine + unsentAnswers() + 1}.`);
  wait();
}

function wait() {
  if (["pair", "ending"].includes(root.dataset.shows)) return;
  const loading = queue.waiting.length > 0 || (!queue.asked && state.tally.open > 0);
  let words = waitingFor(state, loading);
  if (outbox.trouble) words = lost(words);
  if (away) words = awayWords;
  showWaiting(words, state.status, Date.now() / 1000 + clockAhead);
}

function updateTally(tally) {
  state.tally = tally;
  showTally(state);
  at("redo").disabled = !tally.can_redo || outbox.has("answer") || finished();
}

function showState(before) {
  clockAhead = state.now - Date.now() / 1000;
  updateTally(state.tally);
  loadFilm(state.status.film);
  showEpisode(before?.status.episode, state.status);
  put("env", state.status.env);
  put("training", training(state.status));
  if (document.activeElement !== at("goal") && !outbox.has("goal")) at("goal").value = state.goal;
  showStop();
  if (finished()) showEnding(state.status, run, state.run_page);
  if (finished()) presence.set(null);
  root.dataset.doing = state.status.doing;
  showBanner();
  if (!canAnswer() || root.dataset.shows !== "pair") show();
}

/** Shows the button that ends teaching, or the one that takes this back. */
function showStop() {
  at("stop").hidden = !teaching(state);
  const useful = teaching({ ...state, enough: false }) && learnsAgain(state.status);
  at("resume-teaching").hidden = !state.enough || !useful;
}

function showSaving() {
  const unsent = unsentAnswers();
  const offline = `offline, retrying${unsent ? `: ${many(unsent, "answer")} stored here` : ""}`;
  put("saving", outbox.trouble ? offline : unsent > 2 ? "saving …" : "");
  showBanner();
  if (!queue.current) wait();
}

function showBanner() {
  const name = run.length === 26 ? run.slice(-8) : run; // the short form of an id
  const text = banner(state.status.doing, stream.lostFor, name);
  at("banner").hidden = !text;
  put("banner", text);
}

function unsentAnswers() {
  return outbox.requests.filter((request) => request.kind === "answer").length;
}

/** Flashes the chosen clips and the button, without fading if the person prefers reduced motion. */
function flash(chosen, button) {
  const frames = stillness.matches ? [{ opacity: 1 }, { opacity: 1 }] : [{ opacity: 1 }, { opacity: 0 }];
  for (const figure of chosen) {
    figure.querySelector(".flash").animate(frames, { duration: FLASH, easing: "ease-out" });
  }
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

/** Returns the player of what is on the screen: the pair, or the film at the end. */
function playing() {
  return finished() ? endPlayer : player;
}

function pauseOrGoOn() {
  const shown = playing();
  if (!shown.films) return;
  if (!shown.playing && shown.atEnd) shown.replay();
  else shown.playing = !shown.playing;
  showPause();
}

function showPause() {
  at("pause").lastElementChild.textContent = playing().playing ? "Pause" : "Play";
}

function setSpeed(key) {
  player.speed = endPlayer.speed = SPEEDS[key];
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
  if (away) return comeBack();
  if (!resting) return;
  resting = false;
  queue.refill();
}

/** Called after some time without activity: others get the pairs that this person has not seen. */
function rest() {
  resting = true;
  queue.rest();
}

/** Called after a very long time without activity: all pairs become free. */
function leave() {
  away = true;
  player.playing = false;
  presence.set(null);
  show();
}

async function comeBack() {
  presence.set(queue.who);
  resting = false;
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
  presence.set(finished() ? null : trimmed);
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
  redo,
  list: () => ownAnswers.open(queue.who),
  view: switchView,
  digit,
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

/** Acts after a click, unless the clips have just appeared: then a double tap meant the last ones. */
function tap(act) {
  if (performance.now() - changedAt > DOUBLE_TAP) act();
}

function onAnswer(button, act) {
  button.addEventListener("click", (event) => {
    const wasAway = away;
    active();
    if (!wasAway) (event.detail > 0 ? tap(act) : act());
    if (event.detail > 0) button.blur();
  });
}

function listenToClip(figure, place) {
  const choose = () => (kind() === "compare" ? answer(sides[place]) : mark(place + 1));
  figure.addEventListener("click", () => kind() !== "rate" && tap(choose));
}

buttons.forEach((button) => onAnswer(button, () => answer(button.dataset.answer)));
markButtons.forEach((button) => {
  const key = button.dataset.mark;
  onAnswer(button, () => mark(Number(key) || key));
});
figures.forEach(listenToClip);
onPress(at("pause"), pauseOrGoOn);
onPress(at("undo"), undo);
onPress(at("redo"), redo);
onPress(at("list"), ACTIONS.list);
onPress(at("view"), switchView);
onPress(at("help"), ACTIONS.help);
onPress(at("enough"), () => {
  put("sure-means", stopMeans(state.tally.labels));
  at("sure").showModal();
});
onPress(at("resume-teaching"), () => outbox.add("enough", { who: queue.who, enough: false }));
document.querySelectorAll("[data-speed]").forEach((button) => onPress(button, () => setSpeed(button.dataset.speed)));
["pointermove", "pointerdown"].forEach((kind) => addEventListener(kind, active, { passive: true }));

at("sure").addEventListener("close", () => {
  if (at("sure").returnValue === "yes") outbox.add("enough", { who: queue.who, enough: true });
  at("sure").returnValue = "";
});

editable(at("goal"), () => state.goal, (text) => {
  const goal = text.trim().replace(/\s+/g, " ");
  state.goal = goal;
  at("goal").value = goal;
  outbox.add("goal", { text: goal, who: queue.who });
});
editable(at("who"), () => queue.who, setName);

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return stream.close(); // browsers limit the connections to one server
  stream.open(queue.who);
  if (wantsPairs()) queue.refill();
});

setInterval(() => {
  const now = performance.now();
  if (notifyUntil && now > notifyUntil) put("said", (notifyUntil = 0) || "");
  const idle = queue.current && !away ? now - activeAt : 0;
  if (idle > AWAY) leave();
  else if (idle > REST && !resting && state.people > 1) rest();
  wait();
  showBanner();
}, 500);
setInterval(() => {
  // The server sends no event when another person returns a pair.
  if (!document.hidden && wantsPairs() && !queue.full && state.tally.open > queue.held) queue.refill();
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
showState(null);
start();
