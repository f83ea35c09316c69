// Orders of points, and points that are equal.

/** The indices by x, then by y, then as they come. */
export function lexicographicOrder(points) {
  const order = points.map((_, i) => i);
  return order.sort((i, j) => points[i][0] - points[j][0] || points[i][1] - points[j][1] || i - j);
}

/** Of each point the first index at which an equal one stands. */
export function firstEqual(points) {
  const seen = new Map();
  return points.map((point, i) => {
    const key = point.map((value) => value + 0).join(); // -0 is 0
    if (!seen.has(key)) seen.set(key, i);
    return seen.get(key);
  });
}

/** Two points that differ by less than the resolution, but are not equal; or null. */
export function nearPair(points, resolution) {
  for (let k = 1; k < points.length; k += 1) {
    for (let i = 0; i < k; i += 1) {
      const gap = Math.max(...points[k].map((value, axis) => Math.abs(value - points[i][axis])));
      if (gap > 0 && gap < resolution) return [i, k];
    }
  }
  return null;
}
