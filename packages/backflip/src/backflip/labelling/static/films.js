// Fetches and decodes films (strips of frames).

const TIMEOUT = 15000; // milliseconds

/** The film is missing or damaged and must be rendered again. */
export class NoFilm extends Error {}

/** Returns a film with its strip decoded; throws NoFilm, or another error to retry. */
export async function load(film) {
  const response = await fetch(film.url, { signal: AbortSignal.timeout(TIMEOUT) });
  if (response.status === 404 || response.status === 410) throw new NoFilm((await response.json()).error);
  if (!response.ok) throw new Error(`loading the film failed with status ${response.status}`);
  const data = await response.blob();
  try {
    return { ...film, bitmap: await createImageBitmap(data) };
  } catch {
    throw new NoFilm("a film cannot be decoded");
  }
}

/** Returns the decoded films of all clips of a pair or set in one view. */
export async function loadClips(pair, view) {
  const loading = pair.clips.map((clip) => load(filmOf(clip, view)));
  const loaded = await Promise.allSettled(loading);
  const failed = loaded.find((result) => result.status === "rejected");
  const films = loaded.filter((result) => result.value).map((result) => result.value);
  if (!failed) return films;
  films.forEach(release);
  throw failed.reason;
}

/** Returns whether a pair or set has films of both views. */
export function hasAgentView(pair) {
  return pair.clips.every((clip) => clip.agent && clip.person);
}

/** Frees the memory of a decoded film. */
export function release(film) {
  film.bitmap.close();
}

function filmOf(clip, view) {
  return clip[view] ?? clip.person ?? clip.agent;
}
