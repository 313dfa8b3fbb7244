// Plots of the predicted reward of two clips over time.

const WIDTH = 120;
const HEIGHT = 56;
const EDGE = 4;
const SVG = "http://www.w3.org/2000/svg";

/** Returns the plots of both sides on one scale; the chosen side is marked. */
export function charts(opinion, chosen) {
  const scale = scaleOf(opinion);
  return ["left", "right"].map((side) => {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = side === chosen ? `${side}, chosen` : side;
    figure.classList.toggle("chosen", side === chosen);
    figure.append(chart(side, opinion[side], scale), caption);
    return figure;
  });
}

/** Returns the side with the larger sum of predicted mean rewards, or "tie". */
export function preferred(opinion) {
  const [left, right] = ["left", "right"].map((side) => sum(opinion[side][0]));
  return left === right ? "tie" : left > right ? "left" : "right";
}

function chart(side, [means, deviations], { low, high }) {
  const x = (step) => EDGE + (step / Math.max(1, means.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (value) => HEIGHT - EDGE - ((value - low) / (high - low)) * (HEIGHT - 2 * EDGE);
  const line = (values) => values.map((value, step) => `${x(step)},${y(value).toFixed(2)}`);
  const above = line(means.map((mean, step) => mean + deviations[step]));
  const below = line(means.map((mean, step) => mean - deviations[step]));
  const picture = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  picture.setAttribute("aria-label", `${side} clip: predicted reward, ${sum(means).toFixed(1)} in all`);
  picture.append(
    element("polygon", { points: above.concat(below.reverse()).join(" "), class: "band" }),
    element("polyline", { points: line(means).join(" "), class: "mean" }),
  );
  return picture;
}

function scaleOf(opinion) {
  const ends = Object.values(opinion).flatMap(([means, deviations]) =>
    means.flatMap((mean, step) => [mean - deviations[step], mean + deviations[step]]),
  );
  const low = Math.min(...ends);
  const high = Math.max(...ends);
  return high > low ? { low, high } : { low: low - 1, high: high + 1 };
}

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
