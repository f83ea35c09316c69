// Which tokens may come next. A constraint has `start()`, the state of the empty prefix,
// `allowed(state)`, a boolean for each token, and `advance(state, token)`, which returns a new state.

import { NONE, NO_EDGES, append, frontOf } from "./open_edges.js";

/**
 * Returns the constraint that a manifest names.
 * @param {{kind: string, min_length: number}} constraint from the manifest
 * @param {number} elements number of elements of the instance
 * @param {number} numSpecials number of special slots, which come before the elements
 */
export function buildConstraint(constraint, elements, numSpecials) {
  const numTokens = numSpecials + elements;
  switch (constraint.kind) {
    case "free":
      return subset(numTokens, constraint.min_length, { repeats: true });
    case "subset":
      return subset(numTokens, constraint.min_length, {});
    case "permutation":
      return subset(numTokens, 1, { whole: true });
    case "tour":
      return subset(numTokens, 1, { whole: true, first: numSpecials });
    case "closed-subset":
      return closedSubset(numTokens);
    case "triangles":
      return triangles(numTokens, numSpecials);
    case "apexes":
      return apexes(numTokens, elements);
    default:
      throw new Error(`the page knows no constraint "${constraint.kind}"`);
  }
}

/** Allows each element at most once. `whole`: exactly once. `first`: the answer starts with this token. */
function subset(numTokens, minLength, { repeats = false, whole = false, first = 0 }) {
  return {
    start: () => ({ used: new Set(), length: 0 }),
    allowed({ used, length }) {
      const mask = new Array(numTokens).fill(true);
      for (const token of used) mask[token] = false;
      mask[0] = whole ? !mask.slice(1).includes(true) : length >= minLength;
      return first && !length ? mask.map((_, token) => token === first) : mask;
    },
    advance: ({ used, length }, token) => ({
      used: repeats ? used : new Set(used).add(token),
      length: length + 1,
    }),
  };
}

/** Allows each element at most once, then the first one again, and only then END. */
function closedSubset(numTokens) {
  return {
    start: () => ({ used: new Set(), first: 0, closed: false }),
    allowed({ used, first, closed }) {
      return Array.from({ length: numTokens }, (_, token) =>
        token === 0 ? closed : !closed && (!used.has(token) || token === first),
      );
    },
    advance: ({ used, first, closed }, token) => ({
      used: new Set(used).add(token),
      first: first || token,
      closed: closed || token === first || token === 0,
    }),
  };
}

const [FIRST, SECOND, THIRD, COMPLETE] = [0, 1, 2, 3]; // the vertex of a triangle that comes next

/** Allows triangles of three increasing tokens. A second special slot separates triangles, if there is one. */
function triangles(numTokens, numSpecials) {
  const isSeparated = numSpecials === 2;
  return {
    start: () => ({ phase: FIRST, previous: 0 }),
    allowed({ phase, previous }) {
      const end = numTokens - [2, 1, 0, 2][phase];
      const takesVertex = phase !== COMPLETE || !isSeparated;
      return Array.from({ length: numTokens }, (_, token) => {
        if (token === 0) return phase === COMPLETE;
        if (token < numSpecials) return phase === COMPLETE;
        return takesVertex && token > previous && token < end;
      });
    },
    advance({ phase }, token) {
      if (token < numSpecials) return { phase: FIRST, previous: 0 };
      const next = phase === COMPLETE ? SECOND : phase + 1;
      return { phase: next, previous: next === COMPLETE ? 0 : token };
    },
  };
}

/** Allows a triangulation, edge by edge: no triangle twice, and no two triangles on one side of an edge. */
function apexes(numTokens, elements) {
  const most = Math.max(1, 2 * elements - 5);
  return {
    start: () => NO_EDGES,
    allowed(queue) {
      const front = frontOf(queue);
      const mask = new Array(numTokens).fill(false);
      mask[0] = front === null;
      if (!front) return mask;
      const count = queue.triangles.length;
      if (count < most) mask.fill(true, NONE + 1);
      for (const token of withoutTriangle(queue, front)) mask[token] = false;
      mask[0] = false;
      mask[NONE] = count > 0;
      return mask;
    },
    advance: append,
  };
}

/** Returns the tokens that must not be the apex of the front edge, because a side already has its triangle. */
function withoutTriangle({ edges }, { tail, head }) {
  const excluded = [tail, head];
  for (const edge of edges) {
    if ((edge.tail === head && !edge.open) || edge.tail === tail) excluded.push(edge.head);
    if ((edge.head === tail && !edge.open) || edge.head === head) excluded.push(edge.tail);
    if (edge.tail === tail && edge.head === head) excluded.push(edge.apex);
  }
  return excluded;
}
