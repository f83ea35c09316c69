// Convex hulls by the monotone chain (Andrew 1979), in exact integer arithmetic.

import { firstEqual, lexicographicOrder } from "./points.js";
import { roundedOf, toIntegers, turnBeyondRounding } from "./determinants.js";

/** Returns the vertices, counter-clockwise, starting at the leftmost (then lowest) one. */
export function hull(points) {
  const pairs = toIntegers(points);
  const rounded = roundedOf(points);
  const first = firstEqual(points);
  const path = lexicographicOrder(points).filter((i) => first[i] === i);
  if (path.length < 2) return path;
  const isLeft = (i, j, k) =>
    turnBeyondRounding([pairs[i], pairs[j], pairs[k]], [rounded[i], rounded[j], rounded[k]]) > 0;
  const vertices = [];
  for (const chain of [path, [...path].reverse()]) {
    const base = vertices.length;
    for (const i of chain) {
      while (vertices.length >= base + 2 && !isLeft(vertices.at(-2), vertices.at(-1), i)) {
        vertices.pop();
      }
      vertices.push(i);
    }
    vertices.pop(); // because the other chain begins with it
  }
  return vertices;
}
