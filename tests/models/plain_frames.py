"""Compute the features of edge frames from angles, for one prefix of one instance."""

import cmath
import math

NUM_SPECIALS = 2  # so token 2 is the first element


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


def dist(v):
    return max(math.hypot(*v), 1e-6)


def cosine_sine(edge, v):
    """Cosine and sine of the angle from an edge to a vector; zeros if one of them is zero."""
    if math.hypot(*edge) == 0 or math.hypot(*v) == 0:
        return [0.0, 0.0]
    angle = math.atan2(v[1], v[0]) - math.atan2(edge[1], edge[0])
    return [math.cos(angle), math.sin(angle)]


def signed_logs(x):
    return [math.copysign(math.log(1 + abs(x) / scale), x) for scale in (1e-3, 1e-5, 1e-7)]


class LastEdge:
    """The features along the last edge of an answer that begins with these tokens."""

    def __init__(self, points, tokens):
        elements = [t for t in tokens if t >= NUM_SPECIALS]
        positions = [None] * NUM_SPECIALS + list(points)
        self.begun = bool(elements)
        first, last = (positions[elements[k]] if elements else (0, 0) for k in (0, -1))
        self.vectors = [minus(first if p is None else p, last) for p in positions]
        self.edge = minus(last, positions[elements[-2]]) if len(elements) > 1 else (0, -1)
        self.flags = [[float(self.begun and p == end) for end in (first, last)] for p in positions]

    def first_features(self, sine):
        return []

    def further_features(self, t):
        return []


class OpenEdge(LastEdge):
    """The features along the edge whose triangle comes next in a sequence of apexes."""

    def __init__(self, points, tokens):
        tokens = [t for t in tokens if t != 0]
        edge = front_edge(tokens)
        super().__init__(points, edge)
        self.known = [float(k) for k in (len(edge) == 2, len(edge) > 0, len(tokens) > 0)]
        if len(edge) < 2:
            return
        u, v = (complex(*points[t - NUM_SPECIALS]) for t in edge)
        self.vectors, self.edge = [(1, 0)] * NUM_SPECIALS, (1, 0)
        for p in (complex(*point) for point in points):
            size = math.sqrt(abs(u - p) * abs(v - p)) / max(abs(v - u), 1e-6)
            angle = cmath.phase((v - p) / (u - p)) if size else 0.0
            self.vectors.append((size * math.cos(angle / 2), -size * math.sin(angle / 2)))

    def first_features(self, sine):
        return [*signed_logs(sine), *self.known]

    def further_features(self, t):
        return [self.known[0], float(t < NUM_SPECIALS)]


def front_edge(tokens):
    """The edge whose triangle comes next, by a plain queue; at first, one end or nothing."""
    if len(tokens) < 2:
        return tokens
    queue = [tuple(tokens[:2])]
    for token in tokens[2:]:
        u, v = queue.pop(0)
        if token >= NUM_SPECIALS:
            sides = [(v, token), (token, u)]
            joining = [(end, start) for start, end in sides if (start, end) not in queue]
            queue = [side for side in queue if side not in sides] + joining
    return list(queue[0]) if queue else []
