// The page's texts about labelling and training.

/** The text of each answer. */
export const ANSWERS = {
  left: "left is better",
  right: "right is better",
  tie: "equally good",
  skip: "can’t tell",
};

/** Shown while the person is away; the same fields as `waitingFor` returns. */
export const away = { title: "Paused while you are away", why: "Press any key or touch the page to continue." };

const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];

/** Returns a duration in its two largest units, as `runshelf.durations` does: "4.5 s", "1 min 30 s". */
export function duration(seconds) {
  if (seconds < 9.95) return `${Math.max(seconds, 0).toFixed(1)} s`.replace(".0 ", " ");
  const whole = Math.round(seconds);
  for (const [large, name, small, smaller] of UNITS) {
    const rest = Math.floor((whole % large) / small);
    if (whole >= large) return `${Math.floor(whole / large)} ${name}${rest ? ` ${rest} ${smaller}` : ""}`;
  }
  return `${whole} s`;
}

/** Returns a number with a thousands separator. */
export function count(number) {
  return number.toLocaleString("en");
}

/** Returns "1 label", "2 labels". */
export function many(number, what) {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

/**
 * Returns what to show while there is no pair: `title`, `why`, `result` of the run, and, if the
 * waiting time is shown, `timed` and the function `elapsed`.
 */
export function waitingFor(state, loading) {
  const { status, tally, enough } = state;
  if (status.doing === "finished" || status.doing === "stopped") return { ...doing(status), result: status.result };
  if (enough) return noMore(state, "You stopped teaching");
  if (loading) return { title: "Loading the next pair" };
  if (complete(state)) return noMore(state, "All answers are given");
  return { ...(status.doing === "waiting" ? held(tally) : doing(status)), timed: true, elapsed };
}

/** Returns whether the number of answers that the run was started with is reached. */
function complete({ status, tally }) {
  return status.budget > 0 && tally.labels >= status.budget;
}

/** Returns whether more answers are of use. */
export function teaching(state) {
  const over = ["evaluating", "finished", "stopped"].includes(state.status.doing);
  return !over && !state.enough && !complete(state);
}

/** Returns a message of the program as a sentence. */
export function sentence(message) {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}

/** Returns what follows if teaching stops after so many answers. */
export function stopMeans(labels) {
  if (!labels) return "There is no answer yet: the agent learns nothing, and is rated as it is.";
  return `The agent learns from ${many(labels, "answer")}, then it is rated. Until its last phase you can change your mind.`;
}

/** Returns whether the agent will learn from answers again: the last phase has not begun. */
export function learnsAgain({ doing, phase, phases }) {
  return !["evaluating", "finished"].includes(doing) && phase + (doing === "learning") < phases;
}

/** Returns the same after a lost connection, without the waiting time, which is unknown then. */
export function lost({ title }) {
  return { title, why: "Connection lost, retrying." };
}

/** Returns the warning above the clips: "" if all is well. `lostFor` is in milliseconds. */
export function banner(doing, lostFor, run) {
  const resume = `run: backflip resume ${run}`;
  if (doing === "stopped") return `The training program is not running. To continue, ${resume}`;
  if (doing === "finished" || lostFor <= 1000) return "";
  return `Connection lost, retrying.${lostFor > 4000 ? ` If the program was stopped, ${resume}` : ""}`;
}

/** Returns what the training program is doing, in one line. */
export function training(status) {
  const now = {
    "setting up": "Now: setting up", drawing: "Now: drawing the next clips",
    learning: `Now: the agent is learning from your answers, training phase ${current(status)}`,
    waiting: "Now: training waits for your answers", evaluating: "Now: rating the agent",
    finished: "Training has finished", stopped: "Training is not running",
  };
  const done = status.phases ? `${status.phase} of ${status.phases} training phases done` : "";
  return [now[status.doing], ["finished", "learning"].includes(status.doing) ? "" : done].filter(Boolean).join(" · ");
}

/** Returns what is counted: a ranked or rated set of clips gives several labels. */
export function counted({ kind }) {
  return kind === "compare" ? "answer" : "label";
}

/** Returns how many answers the next learning needs: "27 of 30 answers, then the agent learns …". */
export function untilLearning(state) {
  const { status, tally } = state;
  const { needed_labels: needed, learned_labels: learned } = status;
  if (needed === null || !teaching(state)) return "";
  const given = Math.max(0, tally.labels - learned);
  const left = needed - tally.labels;
  const seconds = status.phase_seconds;
  const long = seconds ? ` for about ${duration(seconds < 10 ? seconds : Math.round(seconds))}` : "";
  const learns = status.doing === "learning" ? "learns again" : "learns";
  if (left <= 0) return `Enough answers: next, the agent ${learns}${long}`;
  return `${count(given)} of ${many(given + left, counted(state))}, then the agent ${learns}${long}`;
}

const DOING = {
  "setting up": ["Setting up", () => "The training program compiles, and the agent acts at random for the first clips."],
  drawing: ["Drawing the next clips", () => "The next pair appears here as soon as it is ready."],
  learning: ["The agent is learning from your answers", (status) => `Training phase ${current(status)}${steps(status)}. New clips follow.`],
  evaluating: ["Rating the agent", () => "The agent plays new episodes with what it has learned. You have nothing more to do."],
  finished: ["Teaching has finished", () => ""],
  stopped: ["The training program is not running", () => "Your answers are stored."],
};

/** Returns the phase that is under way: "3 of 20". */
function current({ phase, phases }) {
  return phases ? `${Math.min(phase + 1, phases)} of ${phases}` : `${phase + 1}`;
}

function steps(status) {
  return status.env_steps ? `, after ${count(status.env_steps)} env steps` : "";
}

function doing(status) {
  const [title, why] = DOING[status.doing] ?? ["Waiting for the training program", () => ""];
  return { title, why: why(status) };
}

function noMore(state, title) {
  const { tally, status } = state;
  const starting = ["waiting", "drawing"].includes(status.doing);
  const now = starting ? "The agent learns next" : doing(status).title;
  return { title, why: `${many(tally.labels, counted(state))}, thank you. ${now}.`, timed: !starting, elapsed };
}

function held(tally) {
  const open = tally.open === 1 ? "1 open pair is" : `${count(tally.open)} open pairs are`;
  const why = tally.open
    ? `${open} held by other people, or the clips are being drawn.`
    : "The training program will add pairs soon.";
  return { title: "Waiting for the next pair", why };
}

function elapsed(seconds, expected) {
  return `${duration(Math.round(seconds))}${expected ? ` of about ${duration(expected)}` : " so far"}`;
}
