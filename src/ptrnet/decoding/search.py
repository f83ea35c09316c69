"""What a decoder is, and the loop that every search over prefixes shares.

A prefix is the beginning of an answer: the tokens so far. A search holds K prefixes of each of B
instances. At every step the model gives the log-probabilities of their next tokens, and a selector
decides which K extended prefixes replace them. The tokens are S special slots, END first, and then
N elements. Everything is batched, on tensors, on the model's device.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ptrnet.constraints import Constraint, Free
from ptrnet.constraints.base import gather_prefixes
from ptrnet.decoding.log_probs import check_finite
from ptrnet.errors import InputError
from ptrnet.kernels.threads import use_one_thread_in_fork
from ptrnet.models.base import PointerModel
from ptrnet.types import END

MAX_EXTENSIONS = 2**26  # of one instance at a step: K (S + N)


class Hypotheses(NamedTuple):
    """The answers of each instance at the end of a search, the likeliest first.

    K counts the answers that are returned: a beam returns one, however many prefixes it held.

    Attributes:
        tokens: `(B, K, M)`, padded with END.
        lengths: `(B, K)` tokens of each answer, END left out.
        log_probs: `(B, K)` of each answer, END included.
    """

    tokens: Tensor
    lengths: Tensor
    log_probs: Tensor


class Decoder(ABC):
    """Turns a model's distributions over the next token into answers.

    Attributes:
        name: of the decoder.
        size: the prefixes of an instance that are in memory at a time, K.
        needs_decomposable: whether it serves only tasks that are `decomposable`.
        needs_circular: whether it serves only tasks that are `circular`.
    """

    name: str
    size: int = 1
    needs_decomposable: bool = False
    needs_circular: bool = False

    @abstractmethod
    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        max_lengths: Tensor,
        constraint: Constraint | None = None,
    ) -> Hypotheses:
        """Answers a batch.

        Args:
            model: gives the log-probabilities.
            inputs: `(B, N, d)` instances.
            lengths: `(B,)` elements of each instance.
            max_lengths: `(B,)` the most tokens of each answer, END left out: a prefix of that
                length can only end.
            constraint: which tokens may come next; None: all but padding, and but END as the
                first token.

        Raises:
            InputError: K prefixes of that many tokens would take too much memory.
            NotFiniteError: the log-probability of an answer is not finite.
        """


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

    def is_finished(self, ended: Tensor) -> bool:
        """Whether the search may stop; `ended` `(B, K)`, boolean, says which prefixes have END."""

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        """The answers to return, from all prefixes that the search holds at its end."""


class Search(Decoder):
    """A decoder that extends prefixes token by token."""

    @abstractmethod
    def selector(self, inputs: Tensor, lengths: Tensor) -> Selector:
        """A selector for one batch of `(B, N, d)` inputs and `(B,)` lengths."""

    @torch.no_grad()
    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        max_lengths: Tensor,
        constraint: Constraint | None = None,
    ) -> Hypotheses:
        self._check_size(inputs.shape[1] + model.num_specials)
        use_one_thread_in_fork()
        encoded = model.encode(inputs, lengths)
        model_state = encoded.state
        constraint = constraint or Free()
        constraint_state = constraint.initial_state(lengths, model.num_specials, encoded.num_tokens)
        selector = self.selector(inputs, lengths)
        only_end = torch.arange(encoded.num_tokens, device=inputs.device) == END
        # END after END costs nothing: prefixes that have ended stay as they are.
        after_end = torch.where(only_end, inputs.new_zeros(()), -torch.inf)
        shortest, longest = int(max_lengths.min()), int(max_lengths.max())

        batch = len(inputs)
        prefixes = torch.zeros(batch, 1, 0, dtype=torch.int64, device=inputs.device)
        scores = inputs.new_zeros(batch, 1)
        ended = torch.zeros(batch, 1, dtype=torch.bool, device=inputs.device)
        tokens = torch.full((batch, 1), END, device=inputs.device)  # also the start symbol
        for step in range(longest + 1):
            log_probs, model_state = model.step(encoded, model_state, tokens)
            allowed = constraint.allowed(constraint_state)
            if step >= shortest:
                is_full = (step >= max_lengths)[:, None, None]
                allowed = torch.where(is_full, only_end, allowed)
            log_probs = torch.where(allowed, log_probs, -torch.inf)
            log_probs = torch.where(ended[..., None], after_end, log_probs)

            scores, parents, tokens = selector.select(step, scores, log_probs)
            prefixes = torch.cat([gather_prefixes(prefixes, parents), tokens[..., None]], 2)
            ended = gather_prefixes(ended, parents) | (tokens == END)
            if selector.is_finished(ended):
                break
            model_state = tuple(gather_prefixes(part, parents) for part in model_state)
            constraint_state = constraint.advance(constraint_state, parents, tokens)

        hypotheses = selector.finalize(Hypotheses(prefixes, (prefixes != END).sum(2), scores))
        # A NaN stays in a prefix's score and counts as the largest, so that prefix is among those
        # that are returned. A score of -inf means that no allowed token had a probability above 0.
        check_finite(self.name, hypotheses.log_probs)
        return hypotheses

    def _check_size(self, num_tokens: int) -> None:
        if self.size * num_tokens > MAX_EXTENSIONS:
            raise InputError(
                f"{self.name}: {self.size} prefixes over {num_tokens} tokens are more than "
                f"{MAX_EXTENSIONS} at a step"
            )
