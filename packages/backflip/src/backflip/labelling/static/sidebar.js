// The sidebar: progress, the agent's latest episode, the opinion on the last pair.

import { at, fill, put } from "./dom.js";
import { load, release } from "./films.js";
import { charts, preferred } from "./opinion.js";
import { Player } from "./player.js";
import { ANSWERS, count, counted, duration, many, teaching, untilLearning } from "./words.js";

const episode = new Player([at("episode").querySelector("canvas")]);

/** Shows the number of answers or labels, how many are wanted, the rate and the agreement. */
export function showTally(state) {
  const { tally, status: { budget } } = state;
  put("labels", count(tally.labels));
  put("budget", budget ? `of ${many(budget, counted(state))}` : `${counted(state)}s`);
  const bar = at("progress");
  bar.hidden = !budget;
  fill(bar, budget && tally.labels / budget);
  bar.setAttribute("aria-valuemax", budget);
  bar.setAttribute("aria-valuenow", tally.labels);
  put("rate", teaching(state) ? rate(tally, budget) : "");
  put("until", untilLearning(state));
  put("agreement", agreement(tally));
  put("careless", careless(tally));
}

/** Plays the agent's latest episode if it is new. */
export async function showEpisode(before, status) {
  const film = status.episode;
  put("episode-when", `after ${count(status.episode_env_steps)} env steps`);
  if (film?.url === before?.url) return;
  const old = episode.films;
  try {
    episode.show(film && [await load(film)]);
  } catch {
    return; // the next episode replaces it
  }
  at("episode").hidden = !film;
  old?.forEach(release);
}

/** Shows the predicted rewards of a pair after its answer. */
export function showOpinion(opinion, answer) {
  at("opinion-strip").replaceChildren(...(opinion ? charts(opinion, answer) : []));
  put("opinion-said", opinion ? verdict(preferred(opinion), answer) : "The reward model is not trained yet.");
}

/** Removes the predicted rewards. */
export function clearOpinion() {
  at("opinion-strip").replaceChildren();
  put("opinion-said", "Shown only after your answer.");
}

function rate(tally, budget) {
  const pace = tally.per_minute;
  if (!pace) return "";
  const left = budget - tally.labels;
  const rest = left > 0 ? ` · ${duration((60 * left) / pace)} to go` : "";
  return `${pace.toFixed(pace < 10 ? 1 : 0)} a minute${rest}`;
}

function agreement(tally) {
  const alike = (share, of) => `${Math.round(share * of)} of ${of}`;
  const own = tally.repeated && `Same answer when a pair came again: ${alike(tally.self_agreement, tally.repeated)}`;
  const others = tally.shared && `Same answer as another person: ${alike(tally.agreement, tally.shared)}`;
  return [own, others].filter(Boolean).join(" · ");
}

function careless(tally) {
  if (!tally.careless) return "";
  return `Please take care: ${tally.careless.replaceAll("`", "")}. Press ↓ if you cannot tell.`;
}

function verdict(model, answer) {
  if (model === "tie") return "The reward model predicts equal rewards.";
  const agreement = model === answer ? "so did you ✓" : `you chose ${answer} ✗`;
  const sided = ["left", "right"].includes(answer);
  return `The reward model prefers ${model}: ${sided ? agreement : `you answered “${ANSWERS[answer]}”`}`;
}
