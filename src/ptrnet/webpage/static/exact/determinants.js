// Exact determinants of points, whose coordinates are integers of any size (BigInt). The functions
// `...BeyondRounding` allow for rounded input: integers are exact, and any other coordinate may be off
// by 2^-52 of the coordinates on its axis.

const ROUNDING = 1n << 52n; // its inverse

/** Returns the points as pairs of integers, all multiplied by the same power of two. */
export function toIntegers(points) {
  const split = points.map((point) => point.map(mantissaAndExponent));
  const exponents = split.flat().filter(([digits]) => digits).map(([, exponent]) => exponent);
  const minExponent = exponents.length ? Math.min(...exponents) : 0;
  return split.map((point) =>
    point.map(([digits, exponent]) => (digits ? digits << BigInt(exponent - minExponent) : 0n)),
  );
}

/** Returns 1 for each coordinate that may have been rounded, else 0. */
export function roundedOf(points) {
  return points.map((point) => point.map((value) => (Number.isSafeInteger(value) ? 0n : 1n)));
}

function mantissaAndExponent(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 2047n);
  const fraction = bits & ((1n << 52n) - 1n);
  const digits = exponent ? fraction | (1n << 52n) : fraction;
  return [bits >> 63n ? -digits : digits, Math.max(exponent, 1)];
}

/** Positive if the path from a through b to c turns left. */
export function turn(a, b, c) {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/** Positive if p lies inside the circle through a, b and c, which must turn left. */
export function inCircle(a, b, c, p) {
  const [u, v, w] = [a, b, c].map((q) => [q[0] - p[0], q[1] - p[1]]);
  return (
    lift(u) * (v[0] * w[1] - v[1] * w[0]) +
    lift(v) * (w[0] * u[1] - w[1] * u[0]) +
    lift(w) * (u[0] * v[1] - u[1] * v[0])
  );
}

/** Returns the sign of `turn`, or 0 if rounding could have caused it. */
export function turnBeyondRounding(points, rounded) {
  let slack = 0n;
  for (const axis of [0, 1]) {
    const size = sizeOf(points, axis);
    for (let k = 0; k < 3; k += 1) {
      const change = points[(k + 1) % 3][1 - axis] - points[(k + 2) % 3][1 - axis];
      slack += rounded[k][axis] * size * abs(change);
    }
  }
  return signBeyond(turn(...points), slack);
}

/** Returns the sign of `inCircle`, or 0 if rounding could have caused it. */
export function inCircleBeyondRounding(points, rounded) {
  const p = points[3];
  const corners = points.slice(0, 3).map((q) => [q[0] - p[0], q[1] - p[1]]);
  const gradients = [0, 1, 2].map((k) =>
    gradient(corners[k], corners[(k + 1) % 3], corners[(k + 2) % 3]),
  );
  gradients.push([0, 1].map((axis) => -gradients.reduce((sum, g) => sum + g[axis], 0n)));
  let slack = 0n;
  for (const axis of [0, 1]) {
    const size = sizeOf(points, axis);
    gradients.forEach((g, k) => {
      slack += rounded[k][axis] * size * abs(g[axis]);
    });
  }
  return signBeyond(inCircle(...points), slack);
}

/** Returns the derivatives of `inCircle` with respect to a. All points are relative to p. */
function gradient(a, b, c) {
  const cross = 2n * (b[0] * c[1] - b[1] * c[0]);
  return [
    a[0] * cross - lift(b) * c[1] + lift(c) * b[1],
    a[1] * cross + lift(b) * c[0] - lift(c) * b[0],
  ];
}

const lift = (q) => q[0] * q[0] + q[1] * q[1];
const abs = (value) => (value < 0n ? -value : value);
const sizeOf = (points, axis) => points.reduce((sum, point) => sum + abs(point[axis]), 0n);

function signBeyond(determinant, slack) {
  const scaled = determinant * ROUNDING;
  return scaled > slack ? 1 : scaled < -slack ? -1 : 0;
}
