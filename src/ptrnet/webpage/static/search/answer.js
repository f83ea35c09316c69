// Converts elements to the model's input, and tokens to the answer, as `manifest.json` specifies.

import { NO_EDGES, append } from "./open_edges.js";

/**
 * Returns the elements as the model reads them. Elements outside the unit cube are scaled to fill it, and
 * so are elements that are too close to each other to be distinguished.
 */
export function scale(instance, { kind, smallest_range: minRange = 0, ...scaling }) {
  if (kind === "boxes") return scaleBoxes(instance, scaling);
  const columns = instance[0].map((_, axis) => instance.map((element) => element[axis]));
  const low = columns.map((column) => Math.min(...column));
  const high = columns.map((column) => Math.max(...column));
  const isInside = low.every((value) => value >= 0) && high.every((value) => value <= 1);
  const part = isInside ? 1 : 0.5; // half of the values, because 1e308 - -1e308 overflows
  const width = Math.max(...low.map((value, axis) => high[axis] * part - value * part));
  if (isInside && (width >= minRange || width === 0)) return instance;
  const clip = (value) => Math.min(1, Math.max(0, value));
  return instance.map((element) =>
    element.map((value, axis) => clip((value * part - low[axis] * part) / (width > 0 ? width : 1))),
  );
}

/** Returns boxes in the unit square, turned so that lines run from left to right. */
function scaleBoxes(boxes, { direction, labels }) {
  const turned = boxes.map(([left, top, right, bottom, label]) => {
    if (direction === "rtl") return [-right, top, -left, bottom, label];
    return direction === "vertical" ? [top, -right, bottom, -left, label] : [left, top, right, bottom, label];
  });
  const low = [0, 1].map((axis) => Math.min(...turned.map((box) => box[axis])));
  const extent = [0, 1].map((axis) => Math.max(...turned.map((box) => box[axis + 2])) - low[axis] || 1);
  return turned.map((box) =>
    box.map((value, k) => (k < 4 ? (value - low[k % 2]) / extent[k % 2] : value / labels)),
  );
}

/** Returns the largest number of tokens of an answer, without END. */
export function maxTokens({ per_element: slope, plus, least: fewest, most }, elements) {
  return Math.min(most, Math.max(fewest, Math.ceil(slope * elements) + plus));
}

/** Returns the tokens of prefix k after step `step`, without END. */
export function tokensOf(steps, step, k) {
  const tokens = [];
  for (let i = step; i >= 0; i -= 1) {
    const { token, parent } = steps[i].prefixes[k];
    if (token !== 0) tokens.push(token);
    k = parent;
  }
  return tokens.reverse();
}

/** Returns the answer of tokens (without END): indices, or triples of them. */
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
