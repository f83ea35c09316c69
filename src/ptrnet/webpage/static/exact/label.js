// Computes the exact answer of each task and compares the model's answer with it. The results have the
// form of a service's trace.

import { delaunay, isDelaunay } from "./delaunay.js";
import { hull } from "./hull.js";
import { MAX_PROVED, localSearchTour, shortestTour, tourLength } from "./tour.js";

/** Returns the exact answer; for many cities one of a local search, which is not proved; else null. */
export function label(task, instance) {
  switch (task) {
    case "hull":
      return proved(hull(instance), "monotone-chain");
    case "delaunay": {
      const triangles = delaunay(instance);
      return triangles.length ? proved(triangles, "flips of edges") : null;
    }
    case "sort":
      return proved(sortedIndices(instance), "argsort");
    case "tsp": {
      const isProved = instance.length <= MAX_PROVED;
      const outputs = isProved ? shortestTour(instance) : localSearchTour(instance);
      const labeller = isProved ? "held-karp" : "2-opt and or-opt";
      return { outputs, cost: tourLength(instance, outputs), labeller, proved: isProved };
    }
    default:
      return null;
  }
}

/** Returns whether an answer is as good as the exact one, and its metrics. */
export function compare(task, instance, outputs, exact) {
  if (!exact) return { correct: null, metrics: {} };
  if (task === "tsp") {
    const gap = exact.cost ? tourLength(instance, outputs) / exact.cost - 1 : 0;
    return { correct: exact.proved ? gap < 1e-9 : null, metrics: { gap } };
  }
  if (task === "delaunay") {
    const known = new Set(exact.outputs.map(nameOf));
    const same = outputs.filter((triangle) => known.has(nameOf(triangle))).length;
    const isSame = same === known.size && outputs.length === known.size;
    const correct = isSame || isDelaunay(instance, outputs);
    const coverage = correct ? 1 : same / known.size;
    return { correct, metrics: { accuracy: Number(correct), triangle_coverage: coverage } };
  }
  const correct = task === "sort" ? isSorted(instance, outputs) : isSameRing(instance, outputs, exact);
  return { correct, metrics: { accuracy: Number(correct) } };
}

const proved = (outputs, labeller) => ({ outputs, cost: null, labeller, proved: true });
const nameOf = (triangle) => [...triangle].sort((a, b) => a - b).join();

function sortedIndices(instance) {
  return instance.map((_, i) => i).sort((i, j) => instance[i][0] - instance[j][0] || i - j);
}

function isSorted(instance, outputs) {
  const isWhole = new Set(outputs).size === instance.length && outputs.length === instance.length;
  return isWhole && outputs.every((i, k) => !k || instance[outputs[k - 1]][0] <= instance[i][0]);
}

/** Whether two rings of vertices are the same polygon, for any start and direction. */
function isSameRing(instance, outputs, exact) {
  const [a, b] = [outputs, exact.outputs].map((ring) => ring.map((i) => instance[i].join()));
  if (a.length !== b.length) return false;
  const start = b.indexOf(a[0]);
  const n = a.length;
  const forward = a.every((vertex, k) => vertex === b[(start + k) % n]);
  return start >= 0 && (forward || a.every((vertex, k) => vertex === b[(start - k + n) % n]));
}
