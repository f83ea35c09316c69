"""Beam search (V, B)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ptrnet.decoding.search import Choice, Hypotheses, Search
from ptrnet.errors import InputError


@dataclass(frozen=True)
class Beam(Search):
    """Keeps the `size` likeliest prefixes; at each step extends each with every allowed token."""

    size: int = 8

    name = "beam"

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size < 1:
            raise InputError(f"beam size: expected a whole number of 1 or more, got {self.size!r}")

    def choice(self, inputs: Tensor, lengths: Tensor) -> Choice:
        return self._best

    def is_finished(self, done: Tensor) -> bool:
        return bool(done[:, 0].all())  # nothing behind the first can overtake it

    def finalize(self, found: Hypotheses) -> Hypotheses:
        return Hypotheses(*(tensor[:, :1] for tensor in found))

    def _best(self, scores: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, _, tokens = log_probs.shape
        flat = (scores[..., None] + log_probs).view(batch, -1)
        if self.size == 1:
            best, last = flat.max(1, keepdim=True)
            return best, torch.zeros_like(last), last
        best, places = flat.topk(min(self.size, flat.shape[1]), dim=1)
        return best, places // tokens, places % tokens


class Greedy(Beam):
    """The likeliest token at each step: a beam of one."""

    name = "greedy"

    def __init__(self) -> None:
        super().__init__(1)
