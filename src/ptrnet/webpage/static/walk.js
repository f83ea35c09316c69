// Reads a trace step by step.

import { TASKS } from "./tasks.js";
import { NO_EDGES, append, frontOf } from "./search/open_edges.js";
import { tokensOf } from "./search/answer.js";

/** Returns, for each step of the answer, the index of the answer's prefix after this step. */
export function pathOf(trace) {
  const path = [];
  let k = 0;
  for (let step = trace.steps.length - 1; step >= 0; step -= 1) {
    path[step] = k;
    k = trace.steps[step].prefixes[k].parent;
  }
  return path;
}

/** Returns the probabilities of the token at a position of the answer: [token, probability or null]. */
export function distributionAt(trace, position) {
  const path = pathOf(trace);
  const row = position ? path[position - 1] : 0;
  return trace.steps[position].probabilities[row].map((value, token) => [token, value]);
}

/** Returns the prefixes of the search after a step, with tokens and log-likelihoods. */
export function prefixesAt(trace, step) {
  return trace.steps[step].prefixes.map((prefix, k) => ({
    tokens: tokensOf(trace.steps, step, k),
    ended: prefix.token === 0,
    logLikelihood: prefix.log_likelihood,
  }));
}

/**
 * Returns the shape of a partial answer.
 * @param {string} task
 * @param {number[]} tokens without END
 * @param {number} numSpecials
 * @param {boolean} ended whether the answer is complete
 * @returns {{rings: number[][], paths: number[][], front: number[] | null}} of elements: closed
 *   rings, open paths, and the edge that the next token is for
 */
export function shapeOf(task, tokens, numSpecials, ended) {
  if (numSpecials === 2 && task === "delaunay") {
    const queue = tokens.reduce(append, NO_EDGES);
    const front = frontOf(queue);
    const ends = front ? [front.tail, front.head].filter(Boolean) : [];
    return {
      rings: queue.triangles.map((triangle) => triangle.map((token) => token - numSpecials)),
      paths: queue.triangles.length ? [] : [ends.map((token) => token - numSpecials)],
      front: ends.length === 2 ? ends.map((token) => token - numSpecials) : null,
    };
  }
  const elements = tokens.filter((token) => token >= numSpecials).map((token) => token - numSpecials);
  if (task === "delaunay") {
    const rings = [];
    for (let k = 0; k + 2 < elements.length; k += 3) rings.push(elements.slice(k, k + 3));
    const rest = elements.slice(rings.length * 3);
    return { rings, paths: rest.length ? [rest] : [], front: null };
  }
  const isRing = ended && !TASKS[task].isRanked;
  return { rings: isRing ? [elements] : [], paths: isRing ? [] : [elements], front: null };
}

/** Returns the shape of a complete answer: indices, or triples of them. */
export function answerShape(task, outputs) {
  if (task === "delaunay") return { rings: outputs, paths: [], front: null };
  if (TASKS[task].isRanked) return { rings: [], paths: [outputs], front: null };
  return { rings: [outputs], paths: [], front: null };
}
