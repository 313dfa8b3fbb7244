// Films: strips of frames, fetched and decoded ahead of time.

const PATIENCE = 15000; // milliseconds

/** The film is missing or damaged: it is to be drawn anew, and cannot be shown now. */
export class NoFilm extends Error {}

/** Returns a film with its strip decoded; throws NoFilm, or another error worth a retry. */
export async function load(film) {
  const answer = await fetch(film.url, { signal: AbortSignal.timeout(PATIENCE) });
  if (answer.status === 404 || answer.status === 410) throw new NoFilm((await answer.json()).error);
  if (!answer.ok) throw new Error(`the film came with status ${answer.status}`);
  const data = await answer.blob();
  try {
    return { ...film, bitmap: await createImageBitmap(data) };
  } catch {
    throw new NoFilm("a film cannot be decoded");
  }
}

/** Returns both sides' films of a pair in one view, decoded. */
export async function loadSides(pair, view) {
  const loading = [load(filmOf(pair.left, view)), load(filmOf(pair.right, view))];
  const loaded = await Promise.allSettled(loading);
  const failed = loaded.find((result) => result.status === "rejected");
  const films = loaded.filter((result) => result.value).map((result) => result.value);
  if (!failed) return films;
  films.forEach(release);
  throw failed.reason;
}

/** Whether a pair can be shown as the agent sees it, too. */
export function hasAgentView(pair) {
  return Boolean(pair.left.agent && pair.left.person && pair.right.agent && pair.right.person);
}

/** Gives the memory of a decoded film back. */
export function release(film) {
  film.bitmap.close();
}

function filmOf(side, view) {
  return side[view] ?? side.person ?? side.agent;
}
