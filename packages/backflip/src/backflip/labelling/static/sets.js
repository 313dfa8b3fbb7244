// Sets of clips that are ranked at once or rated one after the other: what each key says.

export const BEST_RATING = 9;

const NTH = ["best", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th"];

/**
 * Returns what follows from a key: `marks` to go on with, or the complete `answer`; null if the key
 * means nothing here.
 *
 * @param key a number from 1, "tie" (all clips without a place are equal) or "skip"
 */
export function afterKey({ kind, clips, marks }, key) {
  if (kind === "rate") return afterRating(clips, marks, key);
  if (key === "skip") return { answer: "skip" };
  const rest = [...clips.keys()].filter((place) => !marks.includes(place));
  if (key === "tie") return { answer: [...marks, rest] };
  if (!rest.includes(key - 1)) return null;
  const places = [...marks, key - 1];
  // The last clip has only one place left.
  return rest.length > 2 ? { marks: places } : { answer: [...places, ...rest.filter((place) => place !== key - 1)] };
}

function afterRating(clips, marks, key) {
  if (key === "tie" || key > BEST_RATING) return null;
  const ratings = [...marks, key === "skip" ? null : key];
  return ratings.length < clips.length ? { marks: ratings } : { answer: ratings };
}

/** Returns the films on the screen: of clips that are rated, one. */
export function visible({ pair, films }) {
  if (!films || pair.kind !== "rate") return films;
  return [films[pair.marks.length]];
}

/** Returns how many columns and rows of clips fit well. */
export function gridOf(clips) {
  const rows = clips <= 3 ? 1 : clips <= 6 ? 2 : 3;
  return { rows, columns: Math.ceil(clips / rows) };
}

/** Returns the largest number key that says something. */
export function keysOf({ kind, clips }) {
  return kind === "rate" ? BEST_RATING : clips.length;
}

/** Returns what the person is asked for. */
export function asking({ kind, clips, marks }) {
  if (kind === "rate") {
    return `How good is this clip, from 1, worst, to ${BEST_RATING}, best? Clip ${marks.length + 1} of ${clips.length}`;
  }
  const next = marks.length ? `Which is the ${NTH[marks.length]}?` : "Which clip is the best?";
  return `${next} Press its number, or click it`;
}

/** Returns the place of a clip in the ranking so far; "" if it has none. */
export function rankOf({ kind, marks }, clip) {
  const place = kind === "rank" ? marks.indexOf(clip) : -1;
  return place < 0 ? "" : NTH[place];
}
