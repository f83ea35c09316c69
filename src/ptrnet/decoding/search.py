"""The loop that every search over prefixes shares: batched, on tensors, on the model's device."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints import Constraint, Free
from ptrnet.errors import InputError
from ptrnet.models.base import PointerModel
from ptrnet.types import END

LARGEST_SEARCH = 2**26  # prefixes times tokens: the width of one sort


class Found(NamedTuple):
    """The answers of each instance that a decoder ended with, the likeliest first."""

    tokens: Tensor  # (B, K, M), END from the end on
    lengths: Tensor  # (B, K) END left out
    log_probs: Tensor  # (B, K) of the sequences, END included


class Decoder(ABC):
    """Finds answers by asking a model for the next token, again and again."""

    name: str
    size: int  # the prefixes of an instance that are held at a time
    for_subsets: bool = False  # whether it serves only answers that are subsets of the elements
    for_tours: bool = False  # whether it serves only closed tours of points

    @abstractmethod
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


# Scores (B, J) and log-probabilities of what may come next (B, J, T), -inf where nothing may, to
# the next prefixes: scores, parents and last tokens (B, K) each. J is 1 at first, then K.
Choice = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


class Search(Decoder):
    """Extends prefixes by a token at a time."""

    @abstractmethod
    def choice(self, inputs: Tensor, lengths: Tensor) -> Choice:
        """How prefixes are extended, for one batch."""

    @abstractmethod
    def over(self, done: Tensor) -> bool:
        """Whether the search may stop; `done` `(B, K)` says which prefixes have ended."""

    @abstractmethod
    def chosen(self, found: Found) -> Found:
        """The prefixes that are answers."""

    @torch.no_grad()
    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        longest: Tensor,
        constraint: Constraint | None = None,
    ) -> Found:
        tokens = inputs.shape[1] + model.specials
        if self.size * tokens > LARGEST_SEARCH:
            raise InputError(
                f"{self.name}: {self.size} prefixes over {tokens} tokens are more than "
                f"{LARGEST_SEARCH} at a step"
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
        choose = self.choice(inputs, lengths)

        for step in range(int(longest.max()) + 1):
            log_probs, state = model.step(encoded, state, last)
            open_tokens = torch.where(
                (done | (step >= longest)[:, None])[..., None], only_end, rule.allowed(allowing)
            )
            # END behind an end is free: finished prefixes stay as they are.
            log_probs = log_probs.masked_fill(done[..., None], 0.0)
            log_probs = log_probs.masked_fill(~open_tokens, -torch.inf)
            scores, parents, last = choose(scores, log_probs)
            prefixes = torch.cat([_of(prefixes, parents), last[..., None]], 2)
            state = tuple(_of(s, parents) for s in state)
            allowing = rule.advance(allowing, parents, last)
            done = _of(done, parents) | (last == END)
            if self.over(done):
                break

        return self.chosen(Found(prefixes, (prefixes != END).sum(2), scores))


def _of(rows: Tensor, parents: Tensor) -> Tensor:
    """`rows[b, parents[b, k]]` for `(B, K, ...)` rows."""
    if rows.shape[1] == parents.shape[1] == 1:
        return rows
    index = parents.view(*parents.shape, *(1,) * (rows.ndim - 2))
    return rows.gather(1, index.expand(*parents.shape, *rows.shape[2:]))
