"""Models that score each element once, whatever the answer so far, and mixtures of scores."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from ptrnet.masks import Lengths
from ptrnet.models.base import Encoded, PointerModel, shift_right


@dataclass(frozen=True)
class ScoredSet(Encoded):
    """The scores of all tokens. Decoder steps read nothing else of the instances."""

    scores: Tensor  # (B, S + N), -inf on padding


def scored(scores: Tensor) -> ScoredSet:
    """Return the encoded instances of scores `(B, S + N)`, which are -inf on padding."""
    state = torch.zeros_like(scores, dtype=torch.bool)[:, None]
    return ScoredSet(scores.shape[1], (state,), scores)


class ScoresOnce(PointerModel):
    """A model whose `encode` scores all tokens. The next token has the softmax of the scores.

    The state of a step is a boolean `(B, K, S + N)`: True for elements that came before.
    """

    answer: str  # the number of elements in an answer, as in `SetSettings`
    repeats: bool  # whether an answer may repeat elements

    @abstractmethod
    def encode(self, inputs: Tensor, lengths: Lengths = None) -> ScoredSet:
        """Score all tokens; see `PointerModel.encode`."""

    def step(
        self, encoded: ScoredSet, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        (seen,) = state
        seen = seen | self._one_hot(tokens, seen.shape[-1])
        return self._log_probs(encoded.scores, seen), (seen,)

    def log_probs(
        self, inputs: Tensor, lengths: Lengths, targets: Tensor, target_lengths: Lengths = None
    ) -> Tensor:
        scores = self.encode(inputs, lengths).scores
        counts = self._one_hot(shift_right(targets), scores.shape[1]).cumsum(1)
        return self._log_probs(scores, counts > 0)

    def _one_hot(self, tokens: Tensor, num_tokens: int) -> Tensor:
        """`(B, M, S + N)` boolean: True at tokens `(B, M)` that are elements, not special slots."""
        slots = torch.arange(num_tokens, device=tokens.device)
        return (slots == tokens[..., None]) & (slots >= self.num_specials)

    def _log_probs(self, scores: Tensor, seen: Tensor) -> Tensor:
        """Log-probabilities `(B, M, S + N)` of the next token.

        `seen` `(B, M, S + N)` is True for the elements that came before. If `answer` is "any", END
        and the other special slots are possible at any step. If `answer` is "one", special slots
        are possible only after an element. If `answer` is "all", special slots are possible only
        after all elements.
        """
        is_impossible = (scores == -torch.inf)[:, None].expand_as(seen)
        if not self.repeats:
            is_impossible = is_impossible | seen
        if self.answer != "any":
            is_over = seen if self.answer == "one" else is_impossible
            of_elements = is_over[..., self.num_specials :]
            is_end = of_elements.any(-1) if self.answer == "one" else of_elements.all(-1)
            is_element = torch.arange(seen.shape[-1], device=seen.device) >= self.num_specials
            # onnxruntime has no `torch.where` for booleans.
            is_end = is_end[..., None]
            is_impossible = (is_element == is_end) | (is_impossible & ~is_end)
        return scores[:, None].masked_fill(is_impossible, -torch.inf).log_softmax(-1)


def mixed_log_probs(scores: Sequence[Tensor], shares: Sequence[Tensor]) -> Tensor:
    """Return `log sum_m share_m softmax(scores_m)`, `(B, N)`.

    Args:
        scores: the scores `(B, N)` of each model, of which the first ones are -inf on padding.
        shares: the share `()` of each model. The sum of all shares is 1.
    """
    is_padding = scores[0] == -torch.inf
    parts = [
        (part.masked_fill(is_padding, -torch.inf).log_softmax(-1) + share.log()).masked_fill(
            is_padding, 0
        )
        for part, share in zip(scores, shares, strict=True)
    ]
    return reduce(_log_add, parts).masked_fill(is_padding, -torch.inf)


def _log_add(a: Tensor, b: Tensor) -> Tensor:
    """Return `log(exp(a) + exp(b))`. One of the two exponentials may be 0."""
    largest = torch.maximum(a, b)
    # If both are 0, their logarithms have no difference.
    difference = (a - b).abs().masked_fill(largest == -torch.inf, 0)
    return largest + torch.log1p(torch.exp(-difference))


def added_scores(scores: Sequence[Tensor], shares: Sequence[Tensor]) -> Tensor:
    """Return `sum_m share_m u_m`, a mean of the scores `(B, N)` of several models.

    The first scores are -inf on padding. If one score of a model rises, only this one rises in the
    mean. `mixed_scores` lacks this property: if the score of an element is far above all others,
    and rises, standardising moves it closer to the lowest ones.
    """
    is_element = scores[0] != -torch.inf
    parts = (share * part.masked_fill(~is_element, 0) for part, share in _pairs(scores, shares))
    return sum(parts).masked_fill(~is_element, -torch.inf)  # type: ignore[union-attr]


def mixed_scores(scores: Sequence[Tensor], shares: Sequence[Tensor]) -> Tensor:
    """Return scores `(B, N)`: a mean of the scores of models, standardised within each set.

    The mean is `sum_m share_m z_m`, where each z has the mean 0 and the standard deviation 1. It is
    multiplied by the same mean of the former standard deviations. So a share of 1 gives the
    probabilities of one model.

    Args:
        scores: the scores `(B, N)` of each model, of which the first ones are -inf on padding.
        shares: the share `()` of each model. The sum of all shares is 1.
    """
    is_element = scores[0] != -torch.inf
    count = is_element.sum(-1, keepdim=True)
    mixed = spreads = torch.zeros((), device=count.device)
    for part, share in _pairs(scores, shares):
        part = torch.where(is_element, part, 0)
        part = torch.where(is_element, part - part.sum(-1, keepdim=True) / count, 0)
        spread = (part.square().sum(-1, keepdim=True) / count).sqrt()
        mixed = mixed + share * part / torch.where(spread > 0, spread, 1)
        spreads = spreads + share * spread
    return (spreads * mixed).masked_fill(~is_element, -torch.inf)


def _pairs(scores: Sequence[Tensor], shares: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(scores, shares, strict=True)
