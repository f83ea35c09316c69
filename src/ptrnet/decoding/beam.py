"""Beam search, and greedy decoding, which is a beam search of size 1."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ptrnet.decoding.options import BeamSettings
from ptrnet.decoding.search import Hypotheses, Search, Selection


@dataclass(frozen=True)
class Beam(BeamSettings, Search):
    """Beam search: extend prefixes by every allowed token, and keep the likeliest extensions.

    A prefix is the sequence of tokens of an unfinished answer.

    Args:
        size: K, the number of prefixes of an instance to keep after each step. Time and memory grow
            with K.

    Examples:
        >>> tour = ptrnet.load("tsp").solve(points, ptrnet.Beam(8))
    """

    name = "beam"

    def selector(self, inputs: Tensor, lengths: Tensor) -> "Beam":
        return self

    def select(self, step: int, scores: Tensor, log_probs: Tensor) -> Selection:
        """Select the `size` likeliest extensions of an instance's prefixes, the likeliest first.

        If there are fewer extensions than `size`, all extensions are kept. See `Selector.select`.
        """
        if self.size == 1:  # greedy decoding: a maximum is faster than `topk` over one prefix
            best, tokens = log_probs.max(2)
            return Selection(scores + best, torch.zeros_like(tokens), tokens)
        batch, _, num_tokens = log_probs.shape
        extended = (scores[..., None] + log_probs).view(batch, -1)  # (B, K (S + N))
        best, indices = extended.topk(min(self.size, extended.shape[1]), dim=1)
        return Selection(best, indices // num_tokens, indices % num_tokens)

    def is_finished(self, ended: Tensor) -> bool:
        # Stop if the likeliest prefix of each instance has ended. No other prefix can become
        # likelier, because log-probabilities are at most 0.
        return bool(ended[:, 0].all())

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        """Return only the likeliest answer of each instance."""
        return Hypotheses(*(tensor[:, :1] for tensor in hypotheses))


class Greedy(Beam):
    """Greedy decoding: take the likeliest token at each step, like a beam search of size 1.

    Examples:
        >>> hull = ptrnet.load("hull").solve(points, ptrnet.Greedy())  # the default
    """

    name = "greedy"

    def __init__(self) -> None:
        super().__init__(1)
