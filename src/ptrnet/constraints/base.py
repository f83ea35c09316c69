"""The interface of a constraint, and the tensor operations that constraints share.

A constraint is an automaton. For each of B instances and each of K prefixes, the automaton has a
state, which says which tokens may come next. After the search has extended the prefixes, the
constraint advances the states.

A token is a number. The numbers below S are the special tokens, also called special slots, and END
is 0. The numbers S to S + N - 1 are the N elements of the instance.
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from ptrnet.masks import gather_rows
from ptrnet.types import END


class Constraint(Protocol):
    """A rule that says which tokens may come next after each prefix.

    Each constraint chooses the type of its state. The methods must not change a state in place,
    because several prefixes may share the state. The methods must not read values of a tensor, as
    `.item()` and `bool(tensor)` do, because the search may be recorded as a CUDA graph. `allowed`
    must allow at least one token after each prefix that has not ended.

    Examples:
        >>> constraint = Permutation()
        >>> state = constraint.initial_state(torch.tensor([3]), num_specials=1, num_tokens=4)
        >>> parents, tokens = torch.tensor([[0]]), torch.tensor([[2]])
        >>> state = constraint.advance(state, parents, tokens)
        >>> constraint.allowed(state)  # not END: elements are left; not 2: it has been used
        tensor([[[False,  True, False,  True]]])
    """

    def initial_state(self, lengths: Tensor, num_specials: int, num_tokens: int) -> Any:
        """Return the state before the first token: an empty prefix for each instance (K = 1).

        Args:
            lengths: `(B,)` number of elements of each instance.
            num_specials: number of special slots, S.
            num_tokens: number of special slots and elements, S + N, padding included.
        """

    def allowed(self, state: Any) -> Tensor:
        """Return `(B, K, S + N)` boolean: the tokens that may come next."""

    def advance(self, state: Any, parents: Tensor, tokens: Tensor) -> Any:
        """Return the state after a step of the search.

        Prefix k of instance b is now the former prefix `parents[b, k]` followed by `tokens[b, k]`.

        Args:
            state: the state before the step. The number of prefixes, K, may have been different.
            parents: `(B, K)` indices of former prefixes.
            tokens: `(B, K)` tokens that extend these prefixes.
        """


def allowed_tokens(
    constraint: Constraint, tokens: Tensor, lengths: Tensor, num_specials: int, num_tokens: int
) -> Tensor:
    """Return `(B, M, S + N)` boolean: the tokens allowed at each step of known sequences.

    Args:
        constraint: which tokens may come next.
        tokens: `(B, M)` the sequences.
        lengths: `(B,)` number of elements of each instance.
        num_specials: number of special slots, S.
        num_tokens: number of special slots and elements, S + N, padding included.
    """
    state = constraint.initial_state(lengths, num_specials, num_tokens)
    parents = torch.zeros_like(tokens[:, :1])
    allowed = []
    for i in range(tokens.shape[1]):
        allowed.append(constraint.allowed(state))
        state = constraint.advance(state, parents, tokens[:, i : i + 1])
    return torch.cat(allowed, 1)


def gather_prefixes(rows: Tensor, parents: Tensor) -> Tensor:
    """Return, for each new prefix, the row of its parent: `rows[b, parents[b, k]]`."""
    # Greedy decoding has one prefix, whose only parent is itself: there is nothing to copy.
    return rows if rows.shape[1] == parents.shape[1] == 1 else gather_rows(rows, parents)


def one_hot_mask(tokens: Tensor, num_tokens: int) -> Tensor:
    """Return `(B, K, num_tokens)` boolean: True only at each of the tokens `(B, K)`."""
    return torch.arange(num_tokens, device=tokens.device) == tokens[..., None]


def without(mask: Tensor, tokens: Tensor) -> Tensor:
    """Return the mask `(B, K, S + N)` with False at each of the tokens `(B, K)`."""
    return mask.scatter(2, tokens[..., None], False)


def with_end(mask: Tensor, may_end: Tensor) -> Tensor:
    """Return the mask `(B, K, S + N)` with `may_end` `(B, K)` as its entry for END."""
    return torch.cat([may_end[..., None], mask[..., END + 1 :]], -1)
