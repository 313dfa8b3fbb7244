// What the page says about how things stand, in words.

/** What each answer says. */
export const ANSWERS = {
  left: "left is better",
  right: "right is better",
  tie: "equally good",
  skip: "can’t tell",
};

/** While nobody is there: as what `waitingFor` returns. */
export const away = { title: "Paused while you are away", why: "Press any key to go on." };

/** Returns seconds in words: "8 s", "2 min 5 s", "1 h 10 min". */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return whole % 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${whole / 60} min`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

/** Returns a number with its thousands apart. */
export function count(number) {
  return number.toLocaleString("en");
}

/** Returns "1 label", "2 labels". */
export function many(number, what) {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

/**
 * Returns what is waited for while there is no pair: a title, why, what came of it all, and how
 * to say how long it has taken, where that is worth saying.
 */
export function waitingFor(state, loading) {
  if (!state) return { title: "Connecting" };
  const { status, tally, enough } = state;
  if (status.doing === "finished" || status.doing === "stopped") return over(status);
  if (loading) return { title: "Loading the next pair" };
  const all = status.budget > 0 && tally.labels >= status.budget;
  if (enough || all) return noMore(state, enough ? "You said that is enough" : "All labels are given");
  return { ...(status.doing === "waiting" ? held(tally) : doing(status)), timed: true, elapsed };
}

/** Returns the same where the connection is lost: how long it takes is not known then. */
export function lost({ title }) {
  return { title, why: "Connection lost; trying again." };
}

/** Returns what training is at, in a line. */
export function training(status) {
  const phase = status.phases ? `phase ${status.phase} of ${status.phases}` : "";
  const doing = {
    drawing: "preparing the next clips", learning: "training the agent", evaluating: "evaluating the agent",
    waiting: "waiting for your answers", stopped: "training is not running",
  };
  return [doing[status.doing] ?? status.doing, phase].filter(Boolean).join(" · ");
}

const DOING = {
  "setting up": ["Setting up", () => "The training program is being compiled, and the agent makes its first tries."],
  drawing: ["Preparing the next clips", phases],
  learning: ["The agent is practising what you taught it", phases],
  evaluating: ["Measuring what the agent has learnt", () => "It plays fresh episodes; nothing more is to be done here."],
  finished: ["The agent has been taught", () => ""],
  stopped: ["The training program is not running", () => "What you have answered is kept."],
};

function phases(status) {
  const phase = status.phases ? `Phase ${status.phase} of ${status.phases}` : "";
  const steps = status.env_steps ? `${count(status.env_steps)} env steps so far` : "";
  return [phase, steps].filter(Boolean).join(" · ");
}

function over(status) {
  return { ...doing(status), result: status.result };
}

function doing(status) {
  const [title, why] = DOING[status.doing] ?? ["Waiting for the training program", () => ""];
  return { title, why: why(status) };
}

function noMore({ tally, status }, title) {
  const now = status.doing === "waiting" ? "Training goes on" : doing(status).title;
  return { title, why: `${many(tally.labels, "label")}, thank you. ${now}.`, timed: true, elapsed };
}

function held(tally) {
  const is = tally.open === 1 ? "is" : "are";
  const others = `The ${many(tally.open, "pair")} left to answer ${is} with others, or being drawn anew.`;
  const why = tally.open ? others : "The training program is about to ask.";
  return { title: "Waiting for the next pair", why };
}

function elapsed(seconds, expected) {
  return `${duration(seconds)}${expected ? ` of about ${duration(expected)}` : " so far"}`;
}
