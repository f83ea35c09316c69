"""The interface of a constraint, and the tensor operations that constraints share.

A constraint is an automaton that runs beside the search: for each of K prefixes of each of B
instances it has a state, says which tokens may come next, and moves on when the search has extended
its prefixes. Tokens are numbered as the model's: the S special slots, END first, then the N
elements.
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from ptrnet.masks import gather_rows
from ptrnet.types import END


class Constraint(Protocol):
    """A constraint. A state is of any type of its own, and never written in place.

    On a GPU searches under equal constraints of ptrnet are recorded once (`decoding/graphs.py`):
    these do not change, and ask for no value.
    """

    def initial_state(self, lengths: Tensor, num_specials: int, num_tokens: int) -> Any:
        """The state of the empty prefixes, one for each instance (K = 1).

        Args:
            lengths: `(B,)` elements of each instance.
            num_specials: special slots S.
            num_tokens: S + N, padding included.
        """

    def allowed(self, state: Any) -> Tensor:
        """`(B, K, S + N)` boolean: the tokens that may come next."""

    def advance(self, state: Any, parents: Tensor, tokens: Tensor) -> Any:
        """The state after a step of the search.

        Prefix k of instance b is now the former prefix `parents[b, k]` followed by
        `tokens[b, k]`; both are `(B, K)`, and the former K may have been another.
        """


def allowed_tokens(
    constraint: Constraint, tokens: Tensor, lengths: Tensor, num_specials: int, num_tokens: int
) -> Tensor:
    """`(B, M, S + N)` boolean: what the constraint allows at each step of known sequences.

    Args:
        constraint: which tokens may come next.
        tokens: `(B, M)` the sequences.
        lengths: `(B,)` elements of each instance.
        num_specials: special slots S.
        num_tokens: S + N, padding included.
    """
    state = constraint.initial_state(lengths, num_specials, num_tokens)
    parents = torch.zeros_like(tokens[:, :1])
    allowed = []
    for i in range(tokens.shape[1]):
        allowed.append(constraint.allowed(state))
        state = constraint.advance(state, parents, tokens[:, i : i + 1])
    return torch.cat(allowed, 1)


def gather_prefixes(rows: Tensor, parents: Tensor) -> Tensor:
    """`gather_rows` of rows `(B, K, ...)` by `(B, K)` parents; of one prefix without a copy."""
    return rows if rows.shape[1] == parents.shape[1] == 1 else gather_rows(rows, parents)


def one_hot_mask(tokens: Tensor, num_tokens: int) -> Tensor:
    """`(B, K, num_tokens)` boolean: True at each of the `(B, K)` tokens alone."""
    return torch.arange(num_tokens, device=tokens.device) == tokens[..., None]


def without(mask: Tensor, tokens: Tensor) -> Tensor:
    """The mask `(B, K, S + N)`, False at each of the `(B, K)` tokens."""
    return mask.scatter(2, tokens[..., None], False)


def with_end(mask: Tensor, may_end: Tensor) -> Tensor:
    """The mask `(B, K, S + N)` with `may_end` `(B, K)` as END's entry."""
    return torch.cat([may_end[..., None], mask[..., END + 1 :]], -1)
