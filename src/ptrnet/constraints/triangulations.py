"""The two constraints of triangulations: by triangles, or by apexes of open edges.

`Triangles`: triangles of increasing indices, with or without separators. A small automaton reads
such a sequence; its table says for each state and each kind of token which state follows. A
vertex is larger than the one before it in its triangle, and leaves enough larger elements for the
vertices that must follow.

`Apexes`: a triangulation grows along a queue of open edges (`OpenEdges`). A sequence is
`a, b, t3, t4, ...`: a directed edge, then one token for each edge, in the order of the queue. The
queue starts with the edge from a to b. An element is the apex of the triangle on the edge's left;
NONE says that there is no triangle. A triangle of the edge (a, b) and the apex c has two further
sides, b to c and c to a. A side that waits in the queue has its triangle now, and leaves; otherwise
its reverse joins the queue: (c, b), and then (a, c).
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints.base import gather_prefixes
from ptrnet.types import NONE


class Phase(IntEnum):
    """Where in a sequence a prefix stands."""

    FIRST = 0  # the first vertex of a triangle must come
    SECOND = 1  # its second vertex must come
    THIRD = 2  # its third vertex must come
    COMPLETE = 3  # the last triangle is complete: the end may come, or what leads to another
    ENDED = 4
    FORBIDDEN = 5  # a token came that may not


FIRST, SECOND, THIRD, COMPLETE, ENDED = list(Phase)[:-1]
_ = Phase.FORBIDDEN

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
# How many vertices must follow one that comes in this phase.
VERTICES_TO_FOLLOW = (2, 1, 0, 2, 0, 0)


@cache
def _tables(num_specials: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The next phase by phase and kind of token `(6, S + 1)`, and `VERTICES_TO_FOLLOW` `(6,)`."""
    transitions = TRIANGLES if num_specials == 1 else SEPARATED_TRIANGLES
    return (
        torch.tensor(transitions, device=device),
        torch.tensor(VERTICES_TO_FOLLOW, device=device),
    )


class OpenTriangle(NamedTuple):
    """The state of the constraint."""

    phase: Tensor  # (B, K) a `Phase`
    previous: Tensor  # (B, K) the last vertex of a triangle that is not complete; 0 without one
    tokens: Tensor  # (S + N,) all tokens: 0, 1, 2, ...
    padding: Tensor  # (B, 1) the first token that is padding: S + n


@dataclass(frozen=True)
class Triangles:
    """One triangle or more, each three increasing indices.

    Args:
        num_specials: special slots S: END alone, or 2, END and a separator between triangles.
    """

    num_specials: int

    def initial_state(self, lengths: Tensor, num_specials: int, num_tokens: int) -> OpenTriangle:
        padding = (lengths + num_specials)[:, None]
        phase = torch.full_like(padding, FIRST)
        tokens = torch.arange(num_tokens, device=lengths.device)
        return OpenTriangle(phase, torch.zeros_like(phase), tokens, padding)

    def allowed(self, state: OpenTriangle) -> Tensor:
        transitions, to_follow = _tables(self.num_specials, state.phase.device)
        by_kind = transitions[state.phase] != Phase.FORBIDDEN  # (B, K, S + 1)
        end = (state.padding - to_follow[state.phase])[..., None]
        vertices = (state.tokens > state.previous[..., None]) & (state.tokens < end)
        vertices = vertices & by_kind[..., -1:]
        return torch.cat([by_kind[..., :-1], vertices[..., self.num_specials :]], -1)

    def advance(self, state: OpenTriangle, parents: Tensor, tokens: Tensor) -> OpenTriangle:
        transitions = _tables(self.num_specials, tokens.device)[0]
        kind = tokens.clamp(max=self.num_specials)  # the special slots, then any vertex
        phase = transitions[gather_prefixes(state.phase, parents), kind]
        unfinished = (phase == Phase.SECOND) | (phase == Phase.THIRD)
        return state._replace(phase=phase, previous=torch.where(unfinished, tokens, 0))


class FrontEdge(NamedTuple):
    """The edges whose triangle the next token decides, as tokens `(B, K)`; 0 where none is."""

    first: Tensor  # the first element of the prefix
    tail: Tensor
    head: Tensor  # 0, too, where only the first element is known


class OpenEdges(NamedTuple):
    """Every edge that has joined the queue of a prefix, in its order.

    Every token adds two of the E columns; those without an edge are 0, and not open.
    """

    tails: Tensor  # (B, K, E) tokens
    heads: Tensor  # (B, K, E) tokens
    apexes: Tensor  # (B, K, E) of the triangle at the edge's right; 0 at the first edge
    is_open: Tensor  # (B, K, E) boolean: whether the edge waits

    @classmethod
    def empty(cls, tokens: Tensor) -> "OpenEdges":
        """The queues of empty prefixes, of as many as there are `(B, K)` tokens."""
        nothing = torch.zeros_like(tokens)[..., None]
        return cls(nothing, nothing, nothing, torch.ones_like(nothing, dtype=torch.bool))

    def front(self) -> FrontEdge:
        """The edges in front of the queues."""
        index, waits = self._front()
        tail, head = ((ends.gather(-1, index) * waits)[..., 0] for ends in self[:2])
        return FrontEdge(self.tails[..., 0], tail, head)

    def append(self, tokens: Tensor) -> "OpenEdges":
        """The queues after one more token `(B, K)` of each prefix; END changes nothing."""
        index, waits = self._front()
        tokens, tail, head = tokens[..., None], *(x.gather(-1, index) for x in self[:2])
        is_element = (tokens > NONE) & waits
        is_apex = is_element & (head > 0)
        names_tail, names_head = is_element & (tail == 0), is_element & (tail > 0) & (head == 0)
        leaves = is_apex | (tokens == NONE)
        tails = self.tails.scatter(-1, index, torch.where(names_tail, tokens, tail))
        heads = self.heads.scatter(-1, index, torch.where(names_head, tokens, head))
        is_open = self.is_open.scatter(-1, index, waits & ~leaves)

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
        """The column `(B, K, 1)` of the first open edge, and whether there is one."""
        index = self.is_open.to(torch.uint8).argmax(-1, keepdim=True)
        return index, self.is_open.gather(-1, index)


class Triangulation(NamedTuple):
    """The state of the constraint."""

    edges: OpenEdges
    num_triangles: Tensor  # (B, K)
    max_triangles: Tensor  # (B, 1) triangles that a triangulation can have
    tokens: Tensor  # (S + N,) all tokens: 0, 1, 2, ...
    padding: Tensor  # (B, 1) the first token that is padding: S + n


@dataclass(frozen=True)
class Apexes:
    """Two different elements, then apexes or NONE until no edge waits; END comes then.

    The first edge has an apex. No triangle comes twice, a directed edge is a side of one triangle
    at most, and of none where NONE has been said. Triangles are as many as n points can have, at
    most 2 n - 5: afterwards only NONE is left, so that the end is always reached.
    """

    def initial_state(self, lengths: Tensor, num_specials: int, num_tokens: int) -> Triangulation:
        none = torch.zeros_like(lengths)[:, None]
        return Triangulation(
            edges=OpenEdges.empty(none),
            num_triangles=none,
            max_triangles=(2 * lengths - 5).clamp(min=1)[:, None],
            tokens=torch.arange(num_tokens, device=lengths.device),
            padding=(lengths + num_specials)[:, None],
        )

    def allowed(self, state: Triangulation) -> Tensor:
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
    """`(B, K, S + N)` boolean: the elements that may be no apex of the edge in front.

    With them one of the other two sides would have its triangle already, or would be an edge at
    which NONE has been said; or the triangle is the one at the edge's other side.
    """
    tails, heads, apexes, is_open = state.edges
    _, tail, head = (ends[..., None] for ends in state.edges.front())
    is_front = (tails == tail) & (heads == head)
    # Known edges that make such a side: their other end is excluded.
    beyond_heads = ((tails == head) & ~is_open) | (tails == tail)
    beyond_tails = ((heads == tail) & ~is_open) | (heads == head)
    excluded = torch.cat([heads * beyond_heads, tails * beyond_tails, apexes * is_front], -1)
    mask = torch.zeros(*excluded.shape[:2], len(state.tokens), device=tails.device)
    return mask.to(torch.bool).scatter(-1, excluded, True)
