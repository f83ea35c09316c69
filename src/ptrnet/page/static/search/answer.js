// From elements to what the model reads, and from tokens to the answer, as `manifest.json` says.

import { NO_EDGES, append } from "./open_edges.js";

/** The elements as the model reads them: where they leave the unit cube, or are lost in it, made to fill it. */
export function scale(instance, { smallest_range: minRange = 0 }) {
  const columns = instance[0].map((_, axis) => instance.map((element) => element[axis]));
  const low = columns.map((column) => Math.min(...column));
  const high = columns.map((column) => Math.max(...column));
  const isInside = low.every((value) => value >= 0) && high.every((value) => value <= 1);
  const part = isInside ? 1 : 0.5; // the range of 1e308 and -1e308 is no number
  const width = Math.max(...low.map((value, axis) => high[axis] * part - value * part));
  if (isInside && (width >= minRange || width === 0)) return instance;
  const clip = (value) => Math.min(1, Math.max(0, value));
  return instance.map((element) =>
    element.map((value, axis) => clip((value * part - low[axis] * part) / (width > 0 ? width : 1))),
  );
}

/** The most tokens of an answer, END left out. */
export function maxTokens({ per_element: slope, plus, least: fewest, most }, elements) {
  return Math.min(most, Math.max(fewest, Math.ceil(slope * elements) + plus));
}

/** The tokens of prefix k after step `step`, END left out. */
export function tokensOf(steps, step, k) {
  const tokens = [];
  for (let i = step; i >= 0; i -= 1) {
    const { token, parent } = steps[i].prefixes[k];
    if (token !== 0) tokens.push(token);
    k = parent;
  }
  return tokens.reverse();
}

/** The answer that tokens, END left out, stand for: indices, or triples of them. */
export function readAnswer(tokens, kind, numSpecials) {
  if (kind === "apexes") {
    const { triangles } = tokens.reduce(append, NO_EDGES);
    return triangles.map((triangle) => triangle.map((token) => token - numSpecials));
  }
  const indices = tokens.filter((token) => token >= numSpecials).map((token) => token - numSpecials);
  if (kind === "closed" && indices.length > 1 && indices[0] === indices.at(-1)) {
    return indices.slice(0, -1);
  }
  if (kind !== "triangles") return indices;
  const named = new Map();
  for (let k = 0; k < indices.length; k += 3) {
    const triangle = indices.slice(k, k + 3);
    named.set(triangle.join(), triangle);
  }
  return [...named.values()];
}
