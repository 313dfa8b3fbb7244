// The page's texts about labelling and training.

/** The text of each answer. */
export const ANSWERS = {
  left: "left is better",
  right: "right is better",
  tie: "equally good",
  skip: "can’t tell",
};

/** Shown while the person is away; the same fields as `waitingFor` returns. */
export const away = { title: "Paused while you are away", why: "Press any key to continue." };

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
  if (!state) return { title: "Connecting" };
  const { status, tally, enough } = state;
  if (status.doing === "finished" || status.doing === "stopped") return { ...doing(status), result: status.result };
  if (loading) return { title: "Loading the next pair" };
  const all = status.budget > 0 && tally.labels >= status.budget;
  if (enough || all) return noMore(state, enough ? "Labelling is finished" : "All labels are complete");
  return { ...(status.doing === "waiting" ? held(tally) : doing(status)), timed: true, elapsed };
}

/** Returns the same after a lost connection, without the waiting time, which is unknown then. */
export function lost({ title }) {
  return { title, why: "Connection lost, retrying." };
}

/** Returns the trainer's activity in one line. */
export function training(status) {
  const doing = {
    drawing: "rendering the next clips", learning: "training the agent", evaluating: "evaluating the agent",
    waiting: "waiting for your answers", stopped: "training is not running",
  };
  return [doing[status.doing] ?? status.doing, phase(status).toLowerCase()].filter(Boolean).join(" · ");
}

const DOING = {
  "setting up": ["Setting up", () => "The training program is compiling, and the agent acts at random."],
  drawing: ["Rendering the next clips", phases],
  learning: ["Training the agent on your answers", phases],
  evaluating: ["Evaluating the agent", () => "The agent plays new episodes. You have nothing more to do."],
  finished: ["Training has finished", () => ""],
  stopped: ["The training program is not running", () => "Your answers are stored."],
};

function phase(status) {
  return status.phases ? `Phase ${status.phase} of ${status.phases}` : "";
}

function phases(status) {
  const steps = status.env_steps ? `${count(status.env_steps)} env steps so far` : "";
  return [phase(status), steps].filter(Boolean).join(" · ");
}

function doing(status) {
  const [title, why] = DOING[status.doing] ?? ["Waiting for the training program", () => ""];
  return { title, why: why(status) };
}

function noMore({ tally, status }, title) {
  const now = status.doing === "waiting" ? "Training continues" : doing(status).title;
  return { title, why: `${many(tally.labels, "label")}. Thank you. ${now}.`, timed: true, elapsed };
}

function held(tally) {
  const open = tally.open === 1 ? "1 open pair is" : `${count(tally.open)} open pairs are`;
  const why = tally.open
    ? `${open} held by other people, or the clips are being rendered.`
    : "The training program will add pairs soon.";
  return { title: "Waiting for the next pair", why };
}

function elapsed(seconds, expected) {
  return `${duration(Math.round(seconds))}${expected ? ` of about ${duration(expected)}` : " so far"}`;
}
