// Delaunay triangulations in exact integer arithmetic: insert the points from left to right, then flip
// edges (Lawson 1977).

import { firstEqual, lexicographicOrder } from "./points.js";
import {
  inCircle,
  inCircleBeyondRounding,
  roundedOf,
  toIntegers,
  turn,
  turnBeyondRounding,
} from "./determinants.js";

/** Returns the triangles, counter-clockwise; an empty list if all points are on one line. */
export function delaunay(points) {
  if (areOnLine(points)) return [];
  const pairs = toIntegers(points);
  const first = firstEqual(points);
  const order = lexicographicOrder(points).filter((i) => first[i] === i);
  const apexes = new Apexes();
  if (!sweep(apexes, pairs, order)) return [];
  flip(apexes, pairs);
  return apexes.triangles();
}

/** Whether all points are on one line, up to the rounding of their coordinates. */
export function areOnLine(points) {
  const pairs = toIntegers(points);
  const rounded = roundedOf(points);
  const distance = ([x, y]) => Math.abs(x - points[0][0]) + Math.abs(y - points[0][1]);
  const farthest = points.reduce((best, p, i) => (distance(p) > distance(points[best]) ? i : best), 0);
  return points.every((_, i) => {
    const [triple, slack] = [pairs, rounded].map((all) => [all[0], all[farthest], all[i]]);
    return turnBeyondRounding(triple, slack) === 0;
  });
}

/** Whether triangles are a Delaunay triangulation, up to the rounding of the coordinates. */
export function isDelaunay(points, triangles) {
  if (!triangles.length) return false;
  const pairs = toIntegers(points);
  const rounded = roundedOf(points);
  const first = firstEqual(points);
  const distinct = [...new Set(first)];
  const at = (indices) => [indices.map((i) => pairs[i]), indices.map((i) => rounded[i])];
  const edges = new Set();
  for (const triangle of triangles) {
    let [i, j, k] = triangle.map((vertex) => first[vertex]);
    const side = turn(pairs[i], pairs[j], pairs[k]);
    if (side === 0n) return false;
    if (side < 0n) [j, k] = [k, j];
    if (distinct.some((p) => inCircleBeyondRounding(...at([i, j, k, p])) > 0)) return false;
    for (const edge of [`${i} ${j}`, `${j} ${k}`, `${k} ${i}`]) {
      if (edges.has(edge)) return false; // two triangles on the same side of an edge
      edges.add(edge);
    }
  }
  for (const edge of edges) {
    const [i, j] = edge.split(" ").map(Number);
    if (edges.has(`${j} ${i}`)) continue;
    if (distinct.some((p) => turnBeyondRounding(...at([i, j, p])) < 0)) return false;
  }
  return true;
}

/** Returns the third vertex of the triangle to the left of each directed edge. */
class Apexes {
  #third = new Map();

  get(i, j) {
    return this.#third.get(`${i} ${j}`);
  }

  add(i, j, k) {
    for (const [a, b, c] of [[i, j, k], [j, k, i], [k, i, j]]) this.#third.set(`${a} ${b}`, c);
  }

  remove(i, j) {
    const k = this.get(i, j);
    for (const edge of [`${i} ${j}`, `${j} ${k}`, `${k} ${i}`]) this.#third.delete(edge);
  }

  edges() {
    return [...this.#third.keys()].map((edge) => edge.split(" ").map(Number));
  }

  triangles() {
    return this.edges()
      .filter(([i, j]) => i < j && i < this.get(i, j))
      .map(([i, j]) => [i, j, this.get(i, j)]);
  }
}

/** Inserts points in lexicographic order. Connects each to the sides of the hull that it sees. */
function sweep(apexes, pairs, order) {
  const third = order.findIndex((i, k) => k > 1 && turn(pairs[order[0]], pairs[order[1]], pairs[i]));
  if (third < 0) return false;
  const line = order.slice(0, third);
  const top = order[third];
  if (turn(pairs[line[0]], pairs[line[1]], pairs[top]) < 0n) line.reverse();
  for (let k = 0; k + 1 < line.length; k += 1) apexes.add(line[k], line[k + 1], top);
  let rim = [...line, top]; // counter-clockwise
  for (const p of order.slice(third + 1)) {
    const sees = rim.map((i, k) => turn(pairs[i], pairs[rim[(k + 1) % rim.length]], pairs[p]) < 0n);
    const start = sees.findIndex((seen, k) => seen && !sees.at(k - 1));
    rim = [...rim.slice(start), ...rim.slice(0, start)];
    const count = sees.filter(Boolean).length;
    for (let k = 0; k < count; k += 1) apexes.add(rim[(k + 1) % rim.length], rim[k], p);
    rim.splice(1, count - 1, p);
  }
  return true;
}

function flip(apexes, pairs) {
  const stack = apexes.edges();
  while (stack.length) {
    const [i, j] = stack.pop();
    const [k, p] = [apexes.get(i, j), apexes.get(j, i)];
    if (k === undefined || p === undefined) continue;
    if (inCircle(pairs[i], pairs[j], pairs[k], pairs[p]) <= 0n) continue;
    apexes.remove(i, j);
    apexes.remove(j, i);
    apexes.add(i, p, k);
    apexes.add(p, j, k);
    stack.push([i, p], [p, j], [j, k], [k, i]);
  }
}
