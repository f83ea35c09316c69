"""What a decoder is, and the decoders that extend prefixes token by token."""

from abc import ABC, abstractmethod
from functools import partial

import torch
from torch import Tensor

from ptrnet.constraints import Constraint, Free
from ptrnet.decoding import graphs
from ptrnet.decoding.steps import Hypotheses, Selector, Steps
from ptrnet.errors import InputError, NotFiniteError
from ptrnet.kernels.cuda_graph import can_record
from ptrnet.kernels.threads import use_one_thread_in_fork
from ptrnet.models.base import PointerModel

MAX_EXTENSIONS = 2**26  # of one instance at a step: K (S + N)


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
            InputError: K prefixes of so many tokens would take too much memory.
            NotFiniteError: the log-probability of an answer is not finite.
        """


class Search(Decoder):
    """A decoder that extends prefixes token by token."""

    @property
    def is_repeatable(self) -> bool:
        """Whether selectors of equal searches select alike and tell nobody: to be recorded."""
        return False

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
        constraint = constraint or Free()
        begin = partial(self._begin, model, constraint)
        if self.is_repeatable and can_record(inputs, lengths, max_lengths):
            batch = graphs.SearchBatch(inputs, lengths, max_lengths)
            hypotheses = graphs.run(model, (self, constraint), self.size, begin, batch)
        else:
            if not inputs.is_cuda:
                graphs.forget(model)  # the model may have been on a GPU
            hypotheses = begin(inputs, lengths, max_lengths).run()
        # A NaN stays in a prefix's score, and counts as the largest: that prefix is among those
        # that are given. A score of -inf: no allowed token had a probability above 0.
        if not hypotheses.log_probs.isfinite().all():
            raise NotFiniteError(
                f"{self.name}: the model's log-probabilities are not finite, so they say nothing "
                "of an answer: its weights are too large"
            )
        return hypotheses

    def _begin(
        self,
        model: PointerModel,
        constraint: Constraint,
        inputs: Tensor,
        lengths: Tensor,
        max_lengths: Tensor,
    ) -> Steps:
        selector = self.selector(inputs, lengths)
        return Steps(model, selector, constraint, inputs, lengths, max_lengths)

    def _check_size(self, num_tokens: int) -> None:
        if self.size * num_tokens > MAX_EXTENSIONS:
            raise InputError(
                f"{self.name}: {self.size} prefixes over {num_tokens} tokens are more than "
                f"{MAX_EXTENSIONS} at a step"
            )
