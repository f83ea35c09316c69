// Tours: for few cities the shortest one, by dynamic programming (Held and Karp 1962); for more cities
// one of a local search, without a proof.

export const MAX_PROVED = 12;

/** Returns the length of a closed tour. */
export function tourLength(points, tour) {
  return tour.reduce((sum, i, k) => sum + distance(points[i], points[tour[(k + 1) % tour.length]]), 0);
}

/** Returns the shortest tour of at most `MAX_PROVED` cities, starting at city 0. */
export function shortestTour(points) {
  const n = points.length;
  if (n < 4) return points.map((_, i) => i);
  const last = n - 1; // bit k of a set stands for city k + 1
  const size = 1 << last;
  const best = new Float64Array(size * last).fill(Infinity);
  const before = new Int8Array(size * last).fill(-1);
  for (let i = 0; i < last; i += 1) best[(1 << i) * last + i] = distance(points[0], points[i + 1]);
  for (let set = 1; set < size; set += 1) {
    for (let i = 0; i < last; i += 1) {
      const length = best[set * last + i];
      if (length === Infinity) continue;
      for (let j = 0; j < last; j += 1) {
        if (set & (1 << j)) continue;
        const cell = (set | (1 << j)) * last + j;
        const longer = length + distance(points[i + 1], points[j + 1]);
        if (longer < best[cell]) {
          best[cell] = longer;
          before[cell] = i;
        }
      }
    }
  }
  let set = size - 1;
  let city = 0;
  let shortest = Infinity;
  for (let i = 0; i < last; i += 1) {
    const length = best[set * last + i] + distance(points[i + 1], points[0]);
    if (length < shortest) [shortest, city] = [length, i];
  }
  const tour = [];
  while (city >= 0) {
    tour.push(city + 1);
    const earlier = before[set * last + city];
    set &= ~(1 << city);
    city = earlier;
  }
  return [0, ...tour.reverse()];
}

/** Returns a tour that neither 2-opt nor or-opt makes shorter. Starts with nearest neighbours. */
export function localSearchTour(points) {
  let tour = nearestNeighbours(points);
  for (let improved = true; improved; ) improved = twoOpt(points, tour) || orOpt(points, tour);
  const start = tour.indexOf(0);
  tour = [...tour.slice(start), ...tour.slice(0, start)];
  return tour;
}

function nearestNeighbours(points) {
  const rest = new Set(points.keys());
  const tour = [0];
  rest.delete(0);
  while (rest.size) {
    const from = points[tour.at(-1)];
    let next = -1;
    for (const i of rest) {
      if (next < 0 || distance(from, points[i]) < distance(from, points[next])) next = i;
    }
    tour.push(next);
    rest.delete(next);
  }
  return tour;
}

function twoOpt(points, tour) {
  const n = tour.length;
  const d = (i, j) => distance(points[tour[i % n]], points[tour[j % n]]);
  for (let i = 0; i < n - 1; i += 1) {
    for (let j = i + 2; j < n; j += 1) {
      if (d(i, i + 1) + d(j, j + 1) - d(i, j) - d(i + 1, j + 1) <= 1e-12) continue;
      tour.splice(i + 1, j - i, ...tour.slice(i + 1, j + 1).reverse());
      return true;
    }
  }
  return false;
}

/** Moves up to three neighbouring cities to another place, in either direction. */
function orOpt(points, tour) {
  const n = tour.length;
  const before = tourLength(points, tour);
  for (let count = 1; count <= Math.min(3, n - 3); count += 1) {
    for (let i = 0; i < n; i += 1) {
      const turned = [...tour.slice(i), ...tour.slice(0, i)];
      const [part, rest] = [turned.slice(0, count), turned.slice(count)];
      for (let k = 0; k < rest.length - 1; k += 1) {
        for (const piece of [part, [...part].reverse()]) {
          const gain = gainOf(points, part, piece, rest, k);
          if (gain <= 1e-12) continue;
          tour.splice(0, n, ...rest.slice(0, k + 1), ...piece, ...rest.slice(k + 1));
          return tourLength(points, tour) < before;
        }
      }
    }
  }
  return false;
}

function gainOf(points, part, piece, rest, k) {
  const d = (i, j) => distance(points[i], points[j]);
  const removed = d(rest.at(-1), part[0]) + d(part.at(-1), rest[0]) - d(rest.at(-1), rest[0]);
  const added = d(rest[k], piece[0]) + d(piece.at(-1), rest[k + 1]) - d(rest[k], rest[k + 1]);
  return removed - added;
}

const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
