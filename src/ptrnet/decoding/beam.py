"""Beam search (V, B), on tensors, for a batch of instances at once."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints import Constraint, Free
from ptrnet.errors import InputError
from ptrnet.models.base import PointerModel
from ptrnet.types import END

LARGEST_SEARCH = 2**26  # prefixes times tokens: the width of one sort


class Found(NamedTuple):
    """The most likely answer of each instance that the search saw."""

    tokens: Tensor  # (B, M), END from the end on
    lengths: Tensor  # (B,) END left out
    log_probs: Tensor  # (B,) of the sequence, END included


@dataclass(frozen=True)
class Beam:
    """Keeps the `size` likeliest prefixes; at each step extends each with every allowed token."""

    size: int = 8

    name = "beam"

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size < 1:
            raise InputError(f"beam size: expected a whole number of 1 or more, got {self.size!r}")

    @torch.no_grad()
    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        longest: Tensor,
        constraint: Constraint | None = None,
    ) -> Found:
        """Answers for `(B, N, d)` inputs of `lengths` `(B,)`.

        `longest` `(B,)` is the most tokens, END left out, that each answer may have: a prefix of
        that length can only end. `constraint` None leaves every real token open at every step.
        """
        tokens = inputs.shape[1] + model.specials
        if self.size * tokens > LARGEST_SEARCH:
            raise InputError(
                f"beam size: a beam of {self.size} over {tokens} tokens is more than "
                f"{LARGEST_SEARCH} prefixes at a step"
            )
        encoded = model.encode(inputs, lengths)
        rule = constraint or Free()
        allowing = rule.start(lengths, model.specials, encoded.tokens)
        state = encoded.state
        batch = len(inputs)
        scores = inputs.new_zeros(batch, 1)
        prefixes = torch.zeros(batch, 1, 0, dtype=torch.int64, device=inputs.device)
        last = torch.full((batch, 1), END, device=inputs.device)
        done = torch.zeros(batch, 1, dtype=torch.bool, device=inputs.device)
        only_end = torch.arange(encoded.tokens, device=inputs.device) == END

        for step in range(int(longest.max()) + 1):
            log_probs, state = model.step(encoded, state, last)
            open_tokens = torch.where(
                (done | (step >= longest)[:, None])[..., None], only_end, rule.allowed(allowing)
            )
            # END behind an end is free: finished prefixes stay in the beam as they are.
            log_probs = log_probs.masked_fill(done[..., None], 0.0)
            extended = (scores[..., None] + log_probs).masked_fill(~open_tokens, -torch.inf)
            scores, parents, last = _best(extended, self.size)
            prefixes = torch.cat([_of(prefixes, parents), last[..., None]], 2)
            state = tuple(_of(s, parents) for s in state)
            allowing = rule.advance(allowing, parents, last)
            done = _of(done, parents) | (last == END)
            if done[:, 0].all():  # nothing behind the first can overtake it
                break

        best = prefixes[:, 0]
        return Found(best, (best != END).sum(1), scores[:, 0])


class Greedy(Beam):
    """The likeliest token at each step: a beam of one."""

    name = "greedy"

    def __init__(self) -> None:
        super().__init__(1)


def _best(extended: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The likeliest `size` of `(B, K, T)`: scores, parents and tokens, each `(B, size)`."""
    batch, _, tokens = extended.shape
    flat = extended.view(batch, -1)
    scores, places = flat.topk(min(size, flat.shape[1]), dim=1)
    return scores, places // tokens, places % tokens


def _of(rows: Tensor, parents: Tensor) -> Tensor:
    """`rows[b, parents[b, k]]` for `(B, K, ...)` rows."""
    index = parents.view(*parents.shape, *(1,) * (rows.ndim - 2))
    return rows.gather(1, index.expand(*parents.shape, *rows.shape[2:]))
