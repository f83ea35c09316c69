"""The two constraints of triangulations: sequences of triangles, and sequences of apexes.

`Triangles`: triangles of increasing indices, with or without separators. A small automaton reads
the sequence. The automaton's table gives the next state for each state and each kind of token. A
vertex must be larger than the previous vertex of the same triangle. The vertex must also leave
enough larger elements for the vertices that follow in the triangle.

`Apexes`: a triangulation grows along a queue of open edges (`OpenEdges`). A sequence is
`a, b, t3, t4, ...`: a directed edge, then one token for each edge in the order of the queue. The
queue starts with the edge from a to b. A token is either the apex of the triangle on the left of
the queue's first edge, or NONE if there is no triangle. The triangle of the edge (a, b) and the
apex c has two more sides, (b, c) and (c, a). If such a side is in the queue, we now know its
triangle, and the side leaves the queue. If not, the reversed side joins the queue: first (c, b),
then (a, c).
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.masks import gather_prefixes
from ptrnet.types import NONE


class Phase(IntEnum):
    """The state of the automaton: what a prefix needs next."""

    FIRST = 0  # the first vertex of a triangle must come
    SECOND = 1  # the second vertex of the triangle must come
    THIRD = 2  # the third vertex of the triangle must come
    COMPLETE = 3  # the last triangle is complete: END, a separator or another triangle may come
    ENDED = 4
    FORBIDDEN = 5  # a forbidden token came


# Short names, so that the tables below can be read at a glance.
FIRST, SECOND, THIRD, COMPLETE, ENDED, _ = Phase

TRIANGLES = (
    # END    vertex
    (_, SECOND),  # FIRST
    (_, THIRD),  # SECOND
    (_, COMPLETE),  # THIRD
    (ENDED, SECOND),  # COMPLETE
    (ENDED, _),  # ENDED
    (_, _),  # FORBIDDEN
)
SEPARATED_TRIANGLES = (
    # END  separator  vertex
    (_, _, SECOND),  # FIRST
    (_, _, THIRD),  # SECOND
    (_, _, COMPLETE),  # THIRD
    (ENDED, FIRST, _),  # COMPLETE
    (ENDED, _, _),  # ENDED
    (_, _, _),  # FORBIDDEN
)
# For each phase: how many more vertices the triangle needs after the next vertex.
VERTICES_TO_FOLLOW = (2, 1, 0, 2, 0, 0)


@cache
def _tables(num_specials: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the table of next phases `(6, S + 1)`, and `VERTICES_TO_FOLLOW`, as tensors."""
    transitions = TRIANGLES if num_specials == 1 else SEPARATED_TRIANGLES
    return (
        torch.tensor(transitions, device=device),
        torch.tensor(VERTICES_TO_FOLLOW, device=device),
    )


class OpenTriangle(NamedTuple):
    """The state of `Triangles`."""

    phase: Tensor  # (B, K) a `Phase`
    previous: Tensor  # (B, K) the last vertex of an unfinished triangle; 0 if there is none
    tokens: Tensor  # (S + N,) all tokens: 0, 1, 2, ...
    padding: Tensor  # (B, 1) the first token that is padding: S + n


@dataclass(frozen=True)
class Triangles:
    """Constraint on sequences of triangles: one or more, each as three increasing indices.

    There is one special slot (END), or two (END and a separator of triangles).
    """

    num_specials: int

    def begin(self, inputs: Tensor, lengths: Tensor) -> OpenTriangle:
        padding = (lengths + self.num_specials)[:, None]
        phase = torch.full_like(padding, FIRST)
        tokens = torch.arange(self.num_specials + inputs.shape[1], device=lengths.device)
        return OpenTriangle(phase, torch.zeros_like(phase), tokens, padding)

    def mask(self, state: OpenTriangle) -> Tensor:
        transitions, to_follow = _tables(self.num_specials, state.phase.device)
        by_kind = transitions[state.phase] != Phase.FORBIDDEN  # (B, K, S + 1)
        end = (state.padding - to_follow[state.phase])[..., None]
        vertices = (state.tokens > state.previous[..., None]) & (state.tokens < end)
        vertices = vertices & by_kind[..., -1:]
        return torch.cat([by_kind[..., :-1], vertices[..., self.num_specials :]], -1)

    def advance(self, state: OpenTriangle, parents: Tensor, tokens: Tensor) -> OpenTriangle:
        transitions = _tables(self.num_specials, tokens.device)[0]
        kind = tokens.clamp(max=self.num_specials)  # all vertices are of the last kind
        phase = transitions[gather_prefixes(state.phase, parents), kind]
        unfinished = (phase == Phase.SECOND) | (phase == Phase.THIRD)
        return state._replace(phase=phase, previous=torch.where(unfinished, tokens, 0))


class FrontEdge(NamedTuple):
    """The first open edge of each queue, as tokens `(B, K)`.

    The next token decides the triangle of this edge.
    """

    first: Tensor  # the first element of the prefix; 0 if the prefix is empty
    tail: Tensor  # 0 if the prefix or the queue is empty
    head: Tensor  # 0 in the same cases, and if the prefix has only one element


class OpenEdges(NamedTuple):
    """Every edge that has ever joined the queue of a prefix, in order.

    Every token adds two columns to the E columns, so that all prefixes have the same shape. A
    column without an edge is 0 and not open. The first column is an exception: this column is open
    from the start, and the first two tokens of the prefix become the tail and the head of its edge.
    """

    tails: Tensor  # (B, K, E) tokens
    heads: Tensor  # (B, K, E) tokens
    apexes: Tensor  # (B, K, E) apex of the triangle on the edge's right; 0 for the first edge
    is_open: Tensor  # (B, K, E) boolean: whether the edge is still in the queue

    @classmethod
    def empty(cls, tokens: Tensor) -> "OpenEdges":
        """Return the queues of empty prefixes. `tokens` `(B, K)` only gives their shape."""
        nothing = torch.zeros_like(tokens)[..., None]
        return cls(nothing, nothing, nothing, torch.ones_like(nothing, dtype=torch.bool))

    def front(self) -> FrontEdge:
        """Return the first open edge of each queue."""
        index, waits = self._front()
        tail, head = ((ends.gather(-1, index) * waits)[..., 0] for ends in self[:2])
        return FrontEdge(self.tails[..., 0], tail, head)

    def append(self, tokens: Tensor) -> "OpenEdges":
        """Return the queues after one more token `(B, K)` of each prefix. END changes nothing."""
        index, waits = self._front()
        tokens, tail, head = tokens[..., None], *(x.gather(-1, index) for x in self[:2])
        is_element = (tokens > NONE) & waits
        is_apex = is_element & (head > 0)
        names_tail, names_head = is_element & (tail == 0), is_element & (tail > 0) & (head == 0)
        leaves = is_apex | (tokens == NONE)  # the edge in front leaves the queue
        tails = self.tails.scatter(-1, index, torch.where(names_tail, tokens, tail))
        heads = self.heads.scatter(-1, index, torch.where(names_head, tokens, head))
        is_open = self.is_open.scatter(-1, index, waits & ~leaves)

        # The other two sides of the new triangle: head to apex, and apex to tail. `has_triangle`
        # `(B, K, 2, E)` marks the columns of the queue that hold these sides.
        starts, ends = torch.cat([head, tokens], -1), torch.cat([tokens, tail], -1)
        has_triangle = (tails[..., None, :] == starts[..., None]) & is_apex[..., None]
        has_triangle = has_triangle & (heads[..., None, :] == ends[..., None])
        has_triangle = has_triangle & is_open[..., None, :]
        joins = is_apex & ~has_triangle.any(-1)
        return OpenEdges(
            torch.cat([tails, ends * joins], -1),
            torch.cat([heads, starts * joins], -1),
            torch.cat([self.apexes, torch.cat([tail, head], -1) * joins], -1),
            torch.cat([is_open & ~has_triangle.any(-2), joins], -1),
        )

    def _front(self) -> tuple[Tensor, Tensor]:
        """Return the column `(B, K, 1)` of the first open edge, and whether an edge is open."""
        # argmax returns the first of equal values, but does not take booleans.
        index = self.is_open.to(torch.uint8).argmax(-1, keepdim=True)
        return index, self.is_open.gather(-1, index)


class Triangulation(NamedTuple):
    """The state of `Apexes`."""

    edges: OpenEdges
    num_triangles: Tensor  # (B, K) triangles so far
    max_triangles: Tensor  # (B, 1) maximum number of triangles of a triangulation
    tokens: Tensor  # (S + N,) all tokens: 0, 1, 2, ...
    padding: Tensor  # (B, 1) the first token that is padding: S + n


@dataclass(frozen=True)
class Apexes:
    """Constraint on sequences of apexes: two elements, then apexes or NONE, then END.

    The first two elements must differ. END comes when the queue is empty. The first edge must have
    an apex. No triangle comes twice. A directed edge is a side of at most one triangle. If the
    token for an edge was NONE, the edge is a side of no triangle. A triangulation of n points has
    at most 2 n - 5 triangles. After 2 n - 5 triangles only NONE is allowed until the queue is
    empty, so every sequence ends.
    """

    def begin(self, inputs: Tensor, lengths: Tensor) -> Triangulation:
        none = torch.zeros_like(lengths)[:, None]
        return Triangulation(
            edges=OpenEdges.empty(none),
            num_triangles=none,
            max_triangles=(2 * lengths - 5).clamp(min=1)[:, None],
            tokens=torch.arange(NONE + 1 + inputs.shape[1], device=lengths.device),
            padding=(lengths + NONE + 1)[:, None],
        )

    def mask(self, state: Triangulation) -> Tensor:
        waits = state.edges.is_open.any(-1)
        _, tail, head = (ends[..., None] for ends in state.edges.front())
        tokens = state.tokens
        elements = (tokens > NONE) & (tokens < state.padding[..., None])
        elements = elements & (tokens != tail) & (tokens != head) & ~_without_triangle(state)
        elements = elements & (waits & (state.num_triangles < state.max_triangles))[..., None]
        may_be_none = waits & (state.num_triangles > 0)
        return torch.cat([~waits[..., None], may_be_none[..., None], elements[..., NONE + 1 :]], -1)

    def advance(self, state: Triangulation, parents: Tensor, tokens: Tensor) -> Triangulation:
        edges = OpenEdges(*(gather_prefixes(part, parents) for part in state.edges))
        is_apex = (tokens > NONE) & (edges.front().head > 0)
        num_triangles = gather_prefixes(state.num_triangles, parents) + is_apex
        return state._replace(edges=edges.append(tokens), num_triangles=num_triangles)


def _without_triangle(state: Triangulation) -> Tensor:
    """Return `(B, K, S + N)` boolean: elements that must not be the apex of the edge in front.

    There are two reasons against an apex:

    - Another side of the new triangle would be a directed edge that was already decided: the edge
      is a side of a triangle, or its token was NONE.
    - The new triangle would be the triangle on the right of the edge in front.
    """
    tails, heads, apexes, is_open = state.edges
    _, tail, head = (ends[..., None] for ends in state.edges.front())
    is_front = (tails == tail) & (heads == head)
    # The new triangle has the sides (head, apex) and (apex, tail). Exclude an apex if such a side
    # is an edge that has left the queue, or the reverse of an edge that has ever joined the queue.
    # Such a reverse is a side of an earlier triangle, or is the first edge's reverse, which never
    # has a triangle.
    beyond_heads = ((tails == head) & ~is_open) | (tails == tail)
    beyond_tails = ((heads == tail) & ~is_open) | (heads == head)
    excluded = torch.cat([heads * beyond_heads, tails * beyond_tails, apexes * is_front], -1)
    mask = torch.zeros(*excluded.shape[:2], len(state.tokens), device=tails.device)
    return mask.to(torch.bool).scatter(-1, excluded, True)
