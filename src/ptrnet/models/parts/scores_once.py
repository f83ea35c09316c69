"""Models that score each element once, whatever the answer so far."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

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

    Attributes:
        answer: the number of elements in an answer, as in `SetSettings`.
        repeats: whether an answer may repeat elements.
    """

    answer: str
    repeats: bool

    @abstractmethod
    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> ScoredSet:
        """Score all tokens; see `PointerModel.encode`."""

    def step(
        self, encoded: ScoredSet, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        (seen,) = state
        seen = seen | self._one_hot(tokens, seen.shape[-1])
        return self._log_probs(encoded.scores, seen), (seen,)

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
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
