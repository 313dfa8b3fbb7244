// What the page shows when teaching has finished: the film of the agent, the result, what to do next.

import { at, put } from "./dom.js";
import { load, release } from "./films.js";
import { Player } from "./player.js";

const figure = at("end-film");

export const endPlayer = new Player([figure.querySelector("canvas")]);

let loaded = null; // the URL of the film that is loaded or loading

/** Loads the film of the final policy as soon as it exists: the server ends right after the run. */
export async function loadFilm(film) {
  if (!film || film.url === loaded) return;
  loaded = film.url;
  const old = endPlayer.films;
  try {
    endPlayer.show([await load(film)]);
  } catch {
    loaded = null; // the next state tries again
    return;
  }
  figure.hidden = false;
  old?.forEach(release);
}

/** Shows the result and the commands. */
export function showEnding(status, run, runPage) {
  put("end-result", status.result);
  put("end-watch", `backflip watch ${run}`);
  put("end-more", status.more);
  at("end-more-row").hidden = !status.more;
  at("end-page").hidden = !runPage;
  if (runPage) at("end-page").querySelector("a").href = runPage;
}
