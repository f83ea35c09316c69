// The queue of open edges of a triangulation. The first two tokens are the ends of the first edge. Each
// further token belongs to the edge at the front: the apex of the triangle on its left, or NONE. A
// triangle has two further sides. If such a side is in the queue, it leaves the queue; otherwise its
// reverse joins. The ends of edges are tokens, or 0 if they are not known yet.

export const NONE = 1;

/** The queue before the first token: one edge without known ends. */
export const NO_EDGES = Object.freeze({
  edges: Object.freeze([Object.freeze({ tail: 0, head: 0, apex: 0, open: true })]),
  triangles: Object.freeze([]),
});

/** Returns the edge whose apex comes next, or null if the queue is empty. */
export function frontOf(queue) {
  return queue.edges.find((edge) => edge.open) ?? null;
}

/** Returns the queue after one more token. */
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
