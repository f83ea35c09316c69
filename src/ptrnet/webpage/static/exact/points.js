// Sorts points, and finds equal ones.

/** Returns the indices, sorted by x, then by y, then by index. */
export function lexicographicOrder(points) {
  const order = points.map((_, i) => i);
  return order.sort((i, j) => points[i][0] - points[j][0] || points[i][1] - points[j][1] || i - j);
}

/** Returns, for each point, the index of the first point that is equal to it. */
export function firstEqual(points) {
  const seen = new Map();
  return points.map((point, i) => {
    const key = point.map((value) => value + 0).join(); // so that -0 equals 0
    if (!seen.has(key)) seen.set(key, i);
    return seen.get(key);
  });
}

/** Returns two points that are not equal but differ by less than the resolution, or null. */
export function nearPair(points, resolution) {
  for (let k = 1; k < points.length; k += 1) {
    for (let i = 0; i < k; i += 1) {
      const gap = Math.max(...points[k].map((value, axis) => Math.abs(value - points[i][axis])));
      if (gap > 0 && gap < resolution) return [i, k];
    }
  }
  return null;
}
