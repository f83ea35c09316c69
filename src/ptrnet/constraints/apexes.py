"""The constraint of triangulations that are continued edge by edge (`open_edges.py`)."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints.base import gather_prefixes
from ptrnet.constraints.open_edges import OpenEdges
from ptrnet.types import NONE


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
