"""Constraints: classes that decide which tokens may come next, one class per kind of answer.

A constraint is an automaton. For each of B instances and each of K prefixes, the automaton has a
state, which says which tokens may come next. After the search has extended the prefixes, the
constraint advances the states.

A token is a number. The numbers below S are the special tokens, also called special slots, and END
is 0. The numbers S to S + N - 1 are the N elements of the instance.

This module has the constraints on sequences, subsets and tours of elements. `Begun` also fixes the
first tokens. `triangulations.py` has those of triangulations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

from ptrnet.constraints.triangulations import Apexes, Triangles
from ptrnet.masks import gather_prefixes, length_mask
from ptrnet.types import END

if TYPE_CHECKING:
    from ptrnet.tasks.base import Facts

__all__ = [
    "Anything",
    "Apexes",
    "Begun",
    "ClosedSubset",
    "Constraint",
    "Free",
    "Permutation",
    "Subset",
    "Tour",
    "Triangles",
    "machine_of",
    "unconstrained",
]


class Constraint(Protocol):
    """A rule that says which tokens may come next after each prefix.

    Each constraint chooses the type of its state. The methods must not change a state in place,
    because several prefixes may share the state. The methods must not read values of a tensor, as
    `.item()` and `bool(tensor)` do, because the search may be recorded as a CUDA graph. `mask` must
    allow at least one token after each prefix that has not ended.

    Examples:
        >>> constraint = Permutation()
        >>> state = constraint.begin(torch.rand(1, 3, 2), torch.tensor([3]))
        >>> parents, tokens = torch.tensor([[0]]), torch.tensor([[2]])
        >>> state = constraint.advance(state, parents, tokens)
        >>> constraint.mask(state)  # not END: elements are left; not 2: it has been used
        tensor([[[False,  True, False,  True]]])
    """

    def begin(self, inputs: Tensor, lengths: Tensor) -> Any:
        """Return the state before the first token: an empty prefix for each instance (K = 1).

        Args:
            inputs: `(B, N, d)` instances, padding included.
            lengths: `(B,)` number of elements of each instance.
        """

    def mask(self, state: Any) -> Tensor:
        """Return `(B, K, S + N)` boolean: the tokens that may come next."""

    def advance(self, state: Any, parents: Tensor, tokens: Tensor) -> Any:
        """Return the state after a step of the search.

        Prefix k of instance b is now the former prefix `parents[b, k]` followed by `tokens[b, k]`.

        Args:
            state: the state before the step. The number of prefixes, K, may have been different.
            parents: `(B, K)` indices of former prefixes.
            tokens: `(B, K)` tokens that extend these prefixes.
        """


class Remaining(NamedTuple):
    """The state of `Free` and the constraints that derive from it."""

    tokens: Tensor  # (B, K, S + N) boolean: tokens that may still come, including END
    started: bool  # whether the prefixes have a token


@dataclass(frozen=True)
class Free:
    """Constraint that allows all tokens except padding, and END only after `min_length` tokens."""

    min_length: int = 1  # minimum number of tokens of an answer, 0 or 1
    num_specials: int = 1  # number of special slots, S

    def begin(self, inputs: Tensor, lengths: Tensor) -> Remaining:
        num_tokens = self.num_specials + inputs.shape[1]
        tokens = length_mask(lengths + self.num_specials, num_tokens)[:, None]
        return Remaining(tokens, started=False)

    def mask(self, state: Remaining) -> Tensor:
        if state.started or self.min_length == 0:
            return state.tokens
        return with_end(state.tokens, torch.zeros_like(state.tokens[..., END]))

    def advance(self, state: Remaining, parents: Tensor, tokens: Tensor) -> Remaining:
        return Remaining(gather_prefixes(state.tokens, parents), started=True)


class Anything:
    """Constraint that allows every token, even padding: the mask is `(1, 1, 1)`."""

    def begin(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        return torch.ones(1, 1, 1, dtype=torch.bool, device=lengths.device)

    def mask(self, state: Tensor) -> Tensor:
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

    def mask(self, state: Remaining) -> Tensor:
        return with_end(state.tokens, ~state.tokens[..., END + 1 :].any(-1))


class Tour(Permutation):
    """Constraint that requires each element exactly once, beginning with element 0.

    A tour is a circle that can begin at any city. If the first city is fixed, each circle can be
    written in only two ways, one for each direction.
    """

    def mask(self, state: Remaining) -> Tensor:
        if state.started:
            return super().mask(state)
        first_element = torch.full_like(state.tokens[..., END], END + 1, dtype=torch.int64)
        return one_hot_mask(first_element, state.tokens.shape[2])


class Beginning(NamedTuple):
    """The state of `Begun`."""

    state: Any  # the state of `Begun.constraint`
    step: int  # number of tokens in each prefix


@dataclass(frozen=True, eq=False)
class Begun:
    """A constraint on sequences whose first tokens are given."""

    constraint: Constraint  # the constraint on the tokens that follow
    tokens: Tensor  # `(B, k)` the first k tokens of each instance

    def begin(self, inputs: Tensor, lengths: Tensor) -> Beginning:
        return Beginning(self.constraint.begin(inputs, lengths), 0)

    def mask(self, state: Beginning) -> Tensor:
        allowed = self.constraint.mask(state.state)
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

    num_specials: int = 1

    def begin(self, inputs: Tensor, lengths: Tensor) -> Polygon:
        num_tokens = self.num_specials + inputs.shape[1]
        tokens = length_mask(lengths + self.num_specials, num_tokens)[:, None]
        closed = torch.zeros_like(tokens[..., END])
        return Polygon(tokens, torch.full_like(closed, END, dtype=torch.int64), closed)

    def mask(self, state: Polygon) -> Tensor:
        closing = one_hot_mask(state.first, state.tokens.shape[2])
        return with_end((state.tokens | closing) & ~state.closed[..., None], state.closed)

    def advance(self, state: Polygon, parents: Tensor, tokens: Tensor) -> Polygon:
        unused, first, closed = (gather_prefixes(part, parents) for part in state)
        return Polygon(
            tokens=without(unused, tokens),
            first=torch.where(first == END, tokens, first),
            closed=closed | (tokens == first) | (tokens == END),
        )


# Names of constraints, which `ptrnet.tasks.base.Facts` has, and how they are made.
MACHINES: dict[str, Callable[["Facts"], Constraint]] = {
    "apexes": lambda facts: Apexes(),
    "closed-subset": lambda facts: ClosedSubset(facts.num_specials),
    "free": lambda facts: Free(facts.min_length, facts.num_specials),
    "permutation": lambda facts: Permutation(num_specials=facts.num_specials),
    "subset": lambda facts: Subset(facts.min_length, facts.num_specials),
    "tour": lambda facts: Tour(num_specials=facts.num_specials),
    "triangles": lambda facts: Triangles(facts.num_specials),
}


def machine_of(facts: "Facts") -> Constraint:
    """Return the machine that `Task.begin`, `mask` and `advance` delegate to."""
    machine = facts.machine
    return MACHINES[machine](facts) if isinstance(machine, str) else machine()


def unconstrained(facts: "Facts") -> Constraint:
    """Return the constraint of unconstrained decoding: no padding, and no END before `min_length`.

    Networks that read states give forbidden tokens probability 0 in any case.
    """
    return Free(facts.min_length, facts.num_specials)


def one_hot_mask(tokens: Tensor, num_tokens: int) -> Tensor:
    """Return `(B, K, num_tokens)` boolean: True only at each of the tokens `(B, K)`."""
    return torch.arange(num_tokens, device=tokens.device) == tokens[..., None]


def without(mask: Tensor, tokens: Tensor) -> Tensor:
    """Return the mask `(B, K, S + N)` with False at each of the tokens `(B, K)`."""
    return mask.scatter(2, tokens[..., None], False)


def with_end(mask: Tensor, may_end: Tensor) -> Tensor:
    """Return the mask `(B, K, S + N)` with `may_end` `(B, K)` as its entry for END."""
    return torch.cat([may_end[..., None], mask[..., END + 1 :]], -1)
