"""Constraints on sequences, subsets and tours of elements. `Begun` also fixes the first tokens."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints.base import Constraint, gather_prefixes, one_hot_mask, with_end, without
from ptrnet.masks import length_mask
from ptrnet.types import END


class Remaining(NamedTuple):
    """The state of `Free` and the constraints that derive from it."""

    tokens: Tensor  # (B, K, S + N) boolean: tokens that may still come, including END
    started: bool  # whether the prefixes have a token


@dataclass(frozen=True)
class Free:
    """Constraint that allows all tokens except padding, and END only after `min_length` tokens.

    Args:
        min_length: minimum number of tokens of an answer, 0 or 1.
    """

    min_length: int = 1

    def initial_state(self, lengths: Tensor, num_specials: int, num_tokens: int) -> Remaining:
        tokens = length_mask(lengths + num_specials, num_tokens)[:, None]
        return Remaining(tokens, started=False)

    def allowed(self, state: Remaining) -> Tensor:
        if state.started or self.min_length == 0:
            return state.tokens
        return with_end(state.tokens, torch.zeros_like(state.tokens[..., END]))

    def advance(self, state: Remaining, parents: Tensor, tokens: Tensor) -> Remaining:
        return Remaining(gather_prefixes(state.tokens, parents), started=True)


class Anything:
    """Constraint that allows every token, even padding.

    This class is for models that give forbidden tokens probability 0 themselves.
    """

    def initial_state(self, lengths: Tensor, num_specials: int, num_tokens: int) -> Tensor:
        return torch.ones(1, 1, num_tokens, dtype=torch.bool, device=lengths.device)

    def allowed(self, state: Tensor) -> Tensor:
        return state

    def advance(self, state: Tensor, parents: Tensor, tokens: Tensor) -> Tensor:
        return state


class Subset(Free):
    """Constraint that allows each element at most once: the answer is a subset in some order."""

    def advance(self, state: Remaining, parents: Tensor, tokens: Tensor) -> Remaining:
        remaining, started = super().advance(state, parents, tokens)
        return Remaining(without(remaining, tokens), started)


class Permutation(Subset):
    """Constraint that requires each element exactly once."""

    def allowed(self, state: Remaining) -> Tensor:
        return with_end(state.tokens, ~state.tokens[..., END + 1 :].any(-1))


class Tour(Permutation):
    """Constraint that requires each element exactly once, beginning with element 0.

    A tour is a circle that can begin at any city. If the first city is fixed, each circle can be
    written in only two ways, one for each direction.
    """

    def allowed(self, state: Remaining) -> Tensor:
        if state.started:
            return super().allowed(state)
        first_element = torch.full_like(state.tokens[..., END], END + 1, dtype=torch.int64)
        return one_hot_mask(first_element, state.tokens.shape[2])


class Beginning(NamedTuple):
    """The state of `Begun`."""

    state: Any  # the state of `Begun.constraint`
    step: int  # number of tokens in each prefix


@dataclass(frozen=True, eq=False)
class Begun:
    """A constraint on sequences whose first tokens are given.

    Args:
        constraint: the constraint on the tokens that follow.
        tokens: `(B, k)` the first k tokens of each instance.
    """

    constraint: Constraint
    tokens: Tensor

    def initial_state(self, lengths: Tensor, num_specials: int, num_tokens: int) -> Beginning:
        return Beginning(self.constraint.initial_state(lengths, num_specials, num_tokens), 0)

    def allowed(self, state: Beginning) -> Tensor:
        allowed = self.constraint.allowed(state.state)
        if state.step >= self.tokens.shape[1]:
            return allowed
        given = self.tokens[:, state.step : state.step + 1]
        return one_hot_mask(given, allowed.shape[2]).expand_as(allowed)

    def advance(self, state: Beginning, parents: Tensor, tokens: Tensor) -> Beginning:
        return Beginning(self.constraint.advance(state.state, parents, tokens), state.step + 1)


class Polygon(NamedTuple):
    """The state of `ClosedSubset`."""

    tokens: Tensor  # (B, K, S + N) boolean: elements not used yet; the entry of END has no meaning
    first: Tensor  # (B, K) the first token of the prefix; END for an empty prefix
    closed: Tensor  # (B, K) boolean: whether the first token has been repeated


@dataclass(frozen=True)
class ClosedSubset:
    """Constraint on closed polygons: distinct elements, then the first element again, then END.

    Vinyals et al. (2015) write hulls as closed polygons.
    """

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
