// The queue of edges along which a triangulation is continued. A sequence is two elements, the
// first edge, then for the edge in front, each in its turn, the apex of the triangle at its left, or
// NONE. Of a triangle's two further sides one that waits leaves the queue; of another the reverse
// joins. Ends are tokens; 0 where they are not known yet.

export const NONE = 1;

/** Before the first token: one edge whose ends are to be named. */
export const NO_EDGES = Object.freeze({
  edges: Object.freeze([Object.freeze({ tail: 0, head: 0, apex: 0, open: true })]),
  triangles: Object.freeze([]),
});

/** The edge that must be answered next; null where none waits. */
export function frontOf(queue) {
  return queue.edges.find((edge) => edge.open) ?? null;
}

/** The queue after one more token. */
export function append(queue, token) {
  const front = frontOf(queue);
  if (!front || token === 0) return queue;
  const edges = queue.edges.map((edge) => (edge === front ? answered(edge, token) : edge));
  if (token <= NONE || front.head === 0) return { ...queue, edges };
  const { tail, head } = front;
  for (const [start, end, opposite] of [[head, token, tail], [token, tail, head]]) {
    const k = edges.findIndex((edge) => edge.open && edge.tail === start && edge.head === end);
    if (k >= 0) edges[k] = { ...edges[k], open: false };
    else edges.push({ tail: end, head: start, apex: opposite, open: true });
  }
  return { edges, triangles: [...queue.triangles, [tail, head, token]] };
}

function answered(edge, token) {
  if (token === NONE) return { ...edge, open: false };
  if (edge.tail === 0) return { ...edge, tail: token };
  if (edge.head === 0) return { ...edge, head: token };
  return { ...edge, open: false };
}
