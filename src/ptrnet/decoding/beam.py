"""Beam search, and greedy decoding, which is a beam of one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ptrnet.decoding.search import Search
from ptrnet.decoding.settings import BeamSettings
from ptrnet.decoding.steps import Hypotheses, Selection


@dataclass(frozen=True)
class Beam(BeamSettings, Search):
    """At each step extends each prefix by every allowed token, and keeps the likeliest of all.

    Args:
        size: the prefixes of an instance that are kept after each step, K.
    """

    name = "beam"

    @property
    def is_repeatable(self) -> bool:
        return True

    def selector(self, inputs: Tensor, lengths: Tensor) -> "Beam":
        return self

    def select(self, step: int, scores: Tensor, log_probs: Tensor) -> Selection:
        """The `size` likeliest extensions of an instance's prefixes, the likeliest first.

        There are fewer where there are not as many extensions; a beam of one has one prefix. See
        `Selector.select`.
        """
        if self.size == 1:
            best, tokens = log_probs.max(2)
            return Selection(scores + best, torch.zeros_like(tokens), tokens)
        batch, _, num_tokens = log_probs.shape
        extended = (scores[..., None] + log_probs).view(batch, -1)  # (B, K (S + N))
        best, indices = extended.topk(min(self.size, extended.shape[1]), dim=1)
        return Selection(best, indices // num_tokens, indices % num_tokens)

    def is_finished(self, ended: Tensor) -> Tensor:
        return ended[:, 0].all()  # no prefix can overtake a likelier one that has ended

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        """The likeliest answer of each instance alone."""
        return Hypotheses(*(tensor[:, :1] for tensor in hypotheses))


class Greedy(Beam):
    """The likeliest token at each step: a beam of one."""

    name = "greedy"

    def __init__(self) -> None:
        super().__init__(1)
