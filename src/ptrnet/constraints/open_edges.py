"""The queue of edges along which a triangulation is continued, token by token, for many prefixes.

A sequence is `a, b, t3, t4, ...`: a directed edge, then an answer for each edge that is in front of
the queue, in its turn. The queue starts with the edge from a to b. An element answers with the apex
of the triangle at the edge's left, NONE says that there is no triangle. A triangle of the edge
(a, b) and the apex c has two further sides, b to c and c to a. One that waits in the queue has its
triangle now, and leaves; of one that does not the reverse joins: (c, b), and then (a, c).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.types import NONE


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
