"""The steps that every search over prefixes shares: batched, on tensors, on the model's device.

A prefix is the beginning of an answer: the tokens so far. A search holds K prefixes of each of B
instances. At every step the model gives the log-probabilities of their next tokens, and a selector
decides which K extended prefixes replace them. The tokens are S special slots, END first, and then
N elements.
"""

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from ptrnet.constraints import Constraint
from ptrnet.constraints.base import gather_prefixes
from ptrnet.models.base import PointerModel
from ptrnet.types import END


class Hypotheses(NamedTuple):
    """The answers of each instance at the end of a search, the likeliest first.

    K counts those that are given: one of a beam, however many prefixes it held.

    Attributes:
        tokens: `(B, K, M)`, padded with END.
        lengths: `(B, K)` tokens of each answer, END left out.
        log_probs: `(B, K)` of each answer, END included.
    """

    tokens: Tensor
    lengths: Tensor
    log_probs: Tensor

    @classmethod
    def of(cls, tokens: Tensor, log_probs: Tensor) -> "Hypotheses":
        """Those of tokens `(B, K, M)` and log-probabilities `(B, K)`."""
        return cls(tokens, (tokens != END).sum(2), log_probs)


class Selection(NamedTuple):
    """The prefixes after a step, each a prefix before it and one more token."""

    scores: Tensor  # (B, K) log-probabilities of the new prefixes
    parents: Tensor  # (B, K) which of its instance's prefixes each of them extends
    tokens: Tensor  # (B, K) by which token


class Selector(Protocol):
    """Selects the next prefixes of one batch at each step, and says when the search ends."""

    def select(self, step: int, scores: Tensor, log_probs: Tensor) -> Selection:
        """The next prefixes.

        Args:
            step: tokens of the prefixes before it, 0 at first.
            scores: `(B, K)` log-probabilities of the prefixes; K is 1 at the first step.
            log_probs: `(B, K, S + N)` of their next tokens, -inf for those that are not allowed.
        """

    def is_finished(self, ended: Tensor) -> Tensor:
        """One boolean, whether the search may stop; `(B, K)` ones say which prefixes have END."""

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        """The answers to give, from all prefixes that the search holds at its end."""


class Prefixes(NamedTuple):
    """The K prefixes of each of B instances, and what goes with them."""

    tokens: Tensor  # (B, K, M) after M steps
    last: Tensor  # (B, K) their last token; the start symbol at first
    scores: Tensor  # (B, K) log-probabilities
    ended: Tensor  # (B, K) boolean: whether there is an END
    model_state: tuple[Tensor, ...]
    constraint_state: Any


class Steps:
    """The steps of a search of one batch.

    Args:
        model: gives the log-probabilities.
        selector: of this batch.
        constraint: which tokens may come next.
        inputs: `(B, N, d)` instances.
        lengths: `(B,)` elements of each instance.
        max_lengths: `(B,)` the most tokens of each answer, END left out.
    """

    def __init__(
        self,
        model: PointerModel,
        selector: Selector,
        constraint: Constraint,
        inputs: Tensor,
        lengths: Tensor,
        max_lengths: Tensor,
    ) -> None:
        self._model, self.selector, self._constraint = model, selector, constraint
        self._inputs, self._lengths, self._max_lengths = inputs, lengths, max_lengths
        self._encoded = model.encode(inputs, lengths)
        self._only_end = torch.arange(self._encoded.num_tokens, device=inputs.device) == END
        # END after END costs nothing: prefixes that have ended stay as they are.
        self._after_end = torch.where(self._only_end, inputs.new_zeros(()), -torch.inf)

    def start(self) -> Prefixes:
        """The empty prefixes: one of each instance."""
        batch, device = len(self._inputs), self._inputs.device
        num_specials, num_tokens = self._model.num_specials, self._encoded.num_tokens
        return Prefixes(
            tokens=torch.zeros(batch, 1, 0, dtype=torch.int64, device=device),
            last=torch.full((batch, 1), END, device=device),
            scores=self._inputs.new_zeros(batch, 1),
            ended=torch.zeros(batch, 1, dtype=torch.bool, device=device),
            model_state=self._encoded.state,
            constraint_state=self._constraint.initial_state(
                self._lengths, num_specials, num_tokens
            ),
        )

    def extend(self, prefixes: Prefixes, is_any_full: bool = True) -> Prefixes:
        """The prefixes after one more step.

        Args:
            prefixes: before it.
            is_any_full: whether one may have its most tokens, and can only end.
        """
        step = prefixes.tokens.shape[2]
        log_probs, model_state = self._model.step(
            self._encoded, prefixes.model_state, prefixes.last
        )
        allowed = self._constraint.allowed(prefixes.constraint_state)
        if is_any_full:
            is_full = (step >= self._max_lengths)[:, None, None]
            allowed = torch.where(is_full, self._only_end, allowed)
        log_probs = torch.where(allowed, log_probs, -torch.inf)
        log_probs = torch.where(prefixes.ended[..., None], self._after_end, log_probs)

        scores, parents, tokens = self.selector.select(step, prefixes.scores, log_probs)
        return Prefixes(
            tokens=torch.cat([gather_prefixes(prefixes.tokens, parents), tokens[..., None]], 2),
            last=tokens,
            scores=scores,
            ended=gather_prefixes(prefixes.ended, parents) | (tokens == END),
            model_state=tuple(gather_prefixes(part, parents) for part in model_state),
            constraint_state=self._constraint.advance(prefixes.constraint_state, parents, tokens),
        )

    def run(self) -> Hypotheses:
        """The answers of the search, from its start to its end."""
        shortest, longest = int(self._max_lengths.min()), int(self._max_lengths.max())
        prefixes = self.start()
        for step in range(longest + 1):
            prefixes = self.extend(prefixes, step >= shortest)
            if self.selector.is_finished(prefixes.ended):
                break
        return self.selector.finalize(Hypotheses.of(prefixes.tokens, prefixes.scores))
