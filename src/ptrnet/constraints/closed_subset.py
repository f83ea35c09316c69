"""The constraint of closed polygons: a subset whose first element is repeated at the end."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints.base import gather_prefixes, one_hot_mask, with_end, without
from ptrnet.masks import length_mask
from ptrnet.types import END


class Polygon(NamedTuple):
    """The state of the constraint."""

    tokens: Tensor  # (B, K, S + N) boolean: what is not used yet; END's entry is not used
    first: Tensor  # (B, K) the first token of the prefix; END as long as there is none
    closed: Tensor  # (B, K) boolean: whether the first token has been repeated


@dataclass(frozen=True)
class ClosedSubset:
    """Each element at most once, then the first one again; END comes then, and only then."""

    def initial_state(self, lengths: Tensor, num_specials: int, num_tokens: int) -> Polygon:
        tokens = length_mask(lengths + num_specials, num_tokens)[:, None]
        closed = torch.zeros_like(tokens[..., END])
        return Polygon(tokens, torch.full_like(closed, END, dtype=torch.int64), closed)

    def allowed(self, state: Polygon) -> Tensor:
        closing = one_hot_mask(state.first, state.tokens.shape[2])
        return with_end((state.tokens | closing) & ~state.closed[..., None], state.closed)

    def advance(self, state: Polygon, parents: Tensor, tokens: Tensor) -> Polygon:
        unused, first, closed = (gather_prefixes(part, parents) for part in state)
        return Polygon(
            tokens=without(unused, tokens),
            first=torch.where(first == END, tokens, first),
            closed=closed | (tokens == first) | (tokens == END),
        )
