"""What an answer may be, token by token, for whole batches of prefixes at once.

A search asks `start` for the state of the empty prefixes, `allowed` for the mask of next tokens
(True = allowed), and `advance` for the state after each prefix was replaced by a longer one.
States are tensors of leading shape `(B, K)`, K prefixes for each instance, and are never
written in place.
"""

from typing import Protocol

import torch
from torch import Tensor

from ptrnet.types import END


class Constraint(Protocol):
    """The rule of a task; see the module's text. `parents` and `chosen` are `(B, K)`."""

    def start(self, lengths: Tensor, specials: int, tokens: int) -> Tensor: ...

    def allowed(self, state: Tensor) -> Tensor: ...

    def advance(self, state: Tensor, parents: Tensor, chosen: Tensor) -> Tensor: ...


def real_tokens(lengths: Tensor, specials: int, tokens: int) -> Tensor:
    """`(B, tokens)` boolean: the special slots and the elements that are not padding."""
    return torch.arange(tokens, device=lengths.device) < (lengths + specials)[:, None]


class Free:
    """Any token that is not padding, at any time; but an answer has at least one.

    The state holds the tokens that are open.
    """

    def start(self, lengths: Tensor, specials: int, tokens: int) -> Tensor:
        state = real_tokens(lengths, specials, tokens)[:, None].clone()
        state[..., END] = False  # opened by `advance`
        return state

    def allowed(self, state: Tensor) -> Tensor:
        return state

    def advance(self, state: Tensor, parents: Tensor, chosen: Tensor) -> Tensor:
        state = state.gather(1, parents[..., None].expand(-1, -1, state.shape[2]))
        state[..., END] = True
        return state


class Subset(Free):
    """Each element at most once, and at least one of them: the answer is a subset in some order."""

    def advance(self, state: Tensor, parents: Tensor, chosen: Tensor) -> Tensor:
        still = super().advance(state, parents, chosen)
        taken = torch.arange(state.shape[2], device=state.device) == chosen[..., None]
        return still & ~(taken & (chosen != END)[..., None])


class Permutation(Subset):
    """Each element exactly once."""

    def allowed(self, state: Tensor) -> Tensor:
        left = state[..., END + 1 :].any(-1)
        return torch.cat([(state[..., :1] & ~left[..., None]), state[..., 1:]], -1)


class ClosedSubset(Free):
    """A subset whose first element is repeated to close it; the end comes then, and only then.

    The state says of each token: 0 forbidden, 1 open, 2 the first of this prefix.
    """

    def start(self, lengths: Tensor, specials: int, tokens: int) -> Tensor:
        state = super().start(lengths, specials, tokens).to(torch.int8)
        state[..., END] = 0
        return state

    def allowed(self, state: Tensor) -> Tensor:
        return state > 0

    def advance(self, state: Tensor, parents: Tensor, chosen: Tensor) -> Tensor:
        before = state.gather(1, parents[..., None].expand(-1, -1, state.shape[2]))
        started = (before == 2).any(-1, keepdim=True)
        place = torch.arange(state.shape[2], device=state.device) == chosen[..., None]
        after = torch.where(place, torch.where(started, 0, 2).to(torch.int8), before)
        closes = (before == 2) & place
        ended = closes.any(-1, keepdim=True) | (chosen == END)[..., None]
        over = torch.zeros_like(before)
        over[..., END] = 1
        return torch.where(ended, over, after)
