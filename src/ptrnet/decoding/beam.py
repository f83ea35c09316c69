"""Beam search (V, B), and greedy decoding, which is a beam of one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ptrnet.decoding.search import Hypotheses, Search, Selection
from ptrnet.errors import InputError


@dataclass(frozen=True)
class Beam(Search):
    """At each step extends each prefix with every allowed token, and goes on with the likeliest.

    Args:
        size: prefixes that it goes on with, K.
    """

    size: int = 8

    name = "beam"

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size < 1:
            raise InputError(f"beam size: expected a whole number of 1 or more, got {self.size!r}")

    def selector(self, inputs: Tensor, lengths: Tensor) -> "Beam":
        return self

    def select(self, scores: Tensor, log_probs: Tensor) -> Selection:
        """The `size` likeliest extensions of all."""
        batch, _, num_tokens = log_probs.shape
        extended = (scores[..., None] + log_probs).view(batch, -1)  # (B, K (S + N))
        if self.size == 1:
            best, tokens = extended.max(1, keepdim=True)
            return Selection(best, torch.zeros_like(tokens), tokens)
        best, indices = extended.topk(min(self.size, extended.shape[1]), dim=1)
        return Selection(best, indices // num_tokens, indices % num_tokens)

    def is_finished(self, ended: Tensor) -> bool:
        return bool(ended[:, 0].all())  # no prefix can overtake a likelier one that has ended

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        return Hypotheses(*(tensor[:, :1] for tensor in hypotheses))


class Greedy(Beam):
    """The likeliest token at each step: a beam of one."""

    name = "greedy"

    def __init__(self) -> None:
        super().__init__(1)
