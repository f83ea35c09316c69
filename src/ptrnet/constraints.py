"""What an answer may be, token by token, for whole batches of prefixes at once.

A search asks `start` for the state of the empty prefixes, `allowed` for the mask of next tokens
(True = allowed), and `advance` for the state after each prefix was replaced by a longer one.
States are tensors of leading shape `(B, K)`, K prefixes for each instance, and are never
written in place.
"""

from typing import Protocol

import torch
from torch import Tensor, nn

from ptrnet.types import END


class Constraint(Protocol):
    """The rule of a task; see the module's text. `parents` and `chosen` are `(B, K)`."""

    def start(self, lengths: Tensor, num_specials: int, tokens: int) -> Tensor: ...

    def allowed(self, state: Tensor) -> Tensor: ...

    def advance(self, state: Tensor, parents: Tensor, chosen: Tensor) -> Tensor: ...


def real_tokens(lengths: Tensor, num_specials: int, tokens: int) -> Tensor:
    """`(B, tokens)` boolean: the special slots and the elements that are not padding."""
    return torch.arange(tokens, device=lengths.device) < (lengths + num_specials)[:, None]


class Free:
    """Any token that is not padding, at any time; but an answer has `min_length` of them, 0 or 1.

    The state holds the tokens that are open.
    """

    def __init__(self, min_length: int = 1) -> None:
        self.min_length = min_length

    def start(self, lengths: Tensor, num_specials: int, tokens: int) -> Tensor:
        state = real_tokens(lengths, num_specials, tokens)[:, None].clone()
        state[..., END] = self.min_length == 0  # opened by `advance`
        return state

    def allowed(self, state: Tensor) -> Tensor:
        return state

    def advance(self, state: Tensor, parents: Tensor, chosen: Tensor) -> Tensor:
        state = state.gather(1, parents[..., None].expand(-1, -1, state.shape[2]))
        state[..., END] = True
        return state


class Subset(Free):
    """Each element at most once: the answer is a subset in some order."""

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

    def start(self, lengths: Tensor, num_specials: int, tokens: int) -> Tensor:
        state = super().start(lengths, num_specials, tokens).to(torch.int8)
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


class Tour(Permutation):
    """Each element exactly once, the first one first."""

    def allowed(self, state: Tensor) -> Tensor:
        first = torch.arange(state.shape[2], device=state.device) == END + 1
        begun = state[..., END, None]  # opened by the first `advance`
        return torch.where(begun, super().allowed(state), first)


class Triangles:
    """Whole triples of increasing indices; with a separator slot (`num_specials` 2) between them.

    The state says of each element: 0 padding, 1 real, 2 the last of an open triple; and at END
    what comes next: 0 the first triple, 1 another triple or the end, 2 and 3 the second and third
    of a triple, 4 the separator or the end, 5 another triple.
    """

    def __init__(self, num_specials: int) -> None:
        self.num_specials = num_specials

    def start(self, lengths: Tensor, num_specials: int, tokens: int) -> Tensor:
        state = real_tokens(lengths, num_specials, tokens)[:, None].to(torch.int8)
        state[..., :num_specials] = 0
        return state

    def allowed(self, state: Tensor) -> Tensor:
        phase, elements = state[..., :1], state[..., self.num_specials :]
        real = elements > 0
        padded = nn.functional.pad(real, (0, 2))
        with_one, with_two = real & padded[..., 1:-1], real & padded[..., 2:]  # real ones behind
        last = elements == 2
        behind = last.cumsum(-1).bool() & ~last
        opening = (phase < 2) | (phase == 5)
        choice = torch.where(opening, with_two, real & behind & (phase == 3))
        choice = torch.where(phase == 2, with_one & behind, choice)
        special = [(phase == 1) | (phase == 4), phase == 4][: self.num_specials]
        return torch.cat([*special, choice], -1)

    def advance(self, state: Tensor, parents: Tensor, chosen: Tensor) -> Tensor:
        before = state.gather(1, parents[..., None].expand(-1, -1, state.shape[2]))
        phase = before[..., END]
        third = torch.full_like(phase, 4 if self.num_specials > 1 else 1)
        after = torch.where(phase == 3, third, torch.where(phase == 2, 3, 2).to(torch.int8))
        after = torch.where(phase == 4, torch.full_like(phase, 5), after)
        ended = chosen == END
        after = torch.where(ended, phase, after)
        place = torch.arange(state.shape[2], device=state.device) == chosen[..., None]
        closed = ((after < 2) | (after > 3))[..., None]
        elements = torch.where(place & ~closed, 2, (before > 0).to(torch.int8)).to(torch.int8)
        return torch.cat([after[..., None], elements[..., 1:]], -1)
