"""The interface of a decoder, the loop that every search over prefixes shares, and beam search.

A prefix is the sequence of tokens of an unfinished answer. A search holds K prefixes of each of B
instances. At every step, the model gives the log-probabilities of each prefix's next token. Then a
selector decides which K extended prefixes replace the former prefixes. The tokens are S special
slots, with END first, and then N elements. All tensors are batches on the model's device.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ptrnet.constraints import Anything, Constraint, Free
from ptrnet.decoding.options import BeamSettings
from ptrnet.errors import InputError, NotFiniteError
from ptrnet.kernels.threads import use_one_thread_in_fork
from ptrnet.masks import gather_prefixes
from ptrnet.models.base import PointerModel
from ptrnet.types import END

# Maximum number of extended prefixes of one instance at a step, K (S + N): 256 MB in float32.
MAX_EXTENSIONS = 2**26


class Hypotheses(NamedTuple):
    """The answers of each instance at the end of a search, the decoder's first choice first.

    K is the number of returned answers, not of prefixes: a beam of any size returns one answer.

    Attributes:
        tokens: `(B, K, M)`, padded with END.
        lengths: `(B, K)` number of tokens of each answer, without END.
        log_probs: `(B, K)` log-probability of each answer, including END.
    """

    tokens: Tensor
    lengths: Tensor
    log_probs: Tensor


class Decoder(ABC):
    """Turns a model's distributions over the next token into answers.

    A subclass has a name and implements `decode`. `Solver.solve` takes any decoder.

    Attributes:
        name: the decoder's name, for error messages.
        size: K, the number of prefixes of an instance in memory. The larger K is, the fewer
            instances the solver puts into a batch.
        needs_decomposable: whether the decoder can only be used if `Facts.decomposable` is True.
        needs_circular: whether the decoder can only be used if `Facts.circular` is True.
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
        """Return the answers to a batch of instances.

        `Solver` calls this in `torch.inference_mode()`, without gradients.

        Args:
            model: the model that gives the log-probabilities.
            inputs: `(B, N, d)` instances.
            lengths: `(B,)` number of elements of each instance.
            max_lengths: `(B,)` maximum number of tokens of each answer, without END. After a prefix
                of this length, only END is allowed.
            constraint: the rules for which tokens may come next, such as the task. None: any
                element or special slot, except END as the first token.

        Raises:
            InputError: `size` prefixes of these instances would take too much memory.
            NotFiniteError: the log-probability of an answer is not finite.
        """


class Selection(NamedTuple):
    """The prefixes after a step. Each new prefix is a former prefix with one more token."""

    scores: Tensor  # (B, K) log-probabilities of the new prefixes
    parents: Tensor  # (B, K) the former prefix of the same instance that each new prefix extends
    tokens: Tensor  # (B, K) the last token of each new prefix


class Selector(Protocol):
    """Selects the next prefixes of one batch at each step, and says when the search ends."""

    def select(self, step: int, scores: Tensor, log_probs: Tensor) -> Selection:
        """Select the next prefixes.

        Args:
            step: number of tokens of each former prefix; 0 at the first step.
            scores: `(B, K)` log-probabilities of the former prefixes. K is 1 at the first step.
            log_probs: `(B, K, S + N)` log-probabilities of each prefix's next token, -inf for
                forbidden tokens.
        """

    def is_finished(self, tokens: Tensor) -> bool:
        """Whether the search may stop. `tokens` `(B, K)` is END for prefixes that have ended."""

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        """Return the answers, given all prefixes that the search holds at its end."""


class Search(Decoder):
    """A decoder that extends prefixes token by token, as its selector decides."""

    @abstractmethod
    def selector(self, inputs: Tensor, lengths: Tensor) -> Selector:
        """Return a selector for one batch of inputs `(B, N, d)` and lengths `(B,)`."""

    @torch.no_grad()
    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        max_lengths: Tensor,
        constraint: Constraint | None = None,
    ) -> Hypotheses:
        num_tokens = inputs.shape[1] + model.num_specials
        if self.size * num_tokens > MAX_EXTENSIONS:
            raise InputError(
                f"{self.name}: expected at most {MAX_EXTENSIONS} extended prefixes of an instance "
                f"at a step, got {self.size} prefixes times {num_tokens} tokens"
            )
        use_one_thread_in_fork()
        encoded = model.encode(inputs, lengths)
        model_state = encoded.state
        constraint = rules_for(model, constraint)
        constraint_state = constraint.begin(inputs, lengths)
        selector = self.selector(inputs, lengths)
        only_end = torch.arange(encoded.num_tokens, device=inputs.device) == END
        # A prefix that has ended is extended by END with log-probability 0, so its score is kept.
        after_end = torch.where(only_end, inputs.new_zeros(()), -torch.inf)
        # Read these two numbers only once, because reading a value from a GPU waits for the GPU.
        shortest, longest = int(max_lengths.min()), int(max_lengths.max())

        batch = len(inputs)
        selections: list[Selection] = []
        scores = inputs.new_zeros(batch, 1)
        ended = torch.zeros(batch, 1, dtype=torch.bool, device=inputs.device)
        tokens = torch.full((batch, 1), END, device=inputs.device)  # END is also the start symbol
        parents = torch.zeros_like(tokens)
        for step in range(longest + 1):
            log_probs, model_state = model.step(encoded, model_state, tokens)
            allowed = constraint.mask(constraint_state)
            if step >= shortest:
                is_full = (step >= max_lengths)[:, None, None]
                allowed = torch.where(is_full, only_end, allowed)
            log_probs = torch.where(allowed, log_probs, -torch.inf)
            if step and tokens.numel() > 1:  # a single prefix that has ended finishes the search
                ended = gather_prefixes(ended, parents) | (tokens == END)
                log_probs = torch.where(ended[..., None], after_end, log_probs)

            selections.append(selector.select(step, scores, log_probs))
            scores, parents, tokens = selections[-1]
            if selector.is_finished(tokens):
                break
            model_state = tuple(gather_prefixes(part, parents) for part in model_state)
            constraint_state = constraint.advance(constraint_state, parents, tokens)

        prefixes = prefixes_of(selections)
        hypotheses = selector.finalize(Hypotheses(prefixes, (prefixes != END).sum(2), scores))
        # One check at the end is enough: torch counts NaN as the largest number, so a prefix with
        # a NaN score is always selected. A score of -inf means that every allowed token had
        # probability 0.
        check_finite(self.name, hypotheses.log_probs)
        return hypotheses


def prefixes_of(selections: Sequence[Selection]) -> Tensor:
    """Return the tokens `(B, K, M)` of the prefixes after M selections."""
    batch, size = selections[-1].tokens.shape
    ancestors = torch.arange(size, device=selections[-1].tokens.device).expand(batch, -1)
    tokens = []
    for selection in reversed(selections):
        tokens.append(gather_prefixes(selection.tokens, ancestors))
        ancestors = gather_prefixes(selection.parents, ancestors)
    return torch.stack(tokens[::-1], 2)


def rules_for(model: PointerModel, constraint: Constraint | None) -> Constraint:
    """Return the constraint that a search applies to the model's distributions.

    A model that obeys the task gives forbidden tokens probability 0 itself, so the search does not
    compute the task's states.
    """
    if model.obeys_task:
        return Anything()
    return constraint or Free(num_specials=model.num_specials)


def check_finite(asked: str, log_probs: Tensor) -> None:
    """Check that log-probabilities of answers are finite.

    Args:
        asked: the computation, for the error message: a decoder's name, or "log-likelihoods".
        log_probs: log-probabilities of answers, of any shape.

    Raises:
        NotFiniteError: some log-probability is NaN or infinite.
    """
    if not log_probs.isfinite().all():
        dtype = str(log_probs.dtype).removeprefix("torch.")
        raise NotFiniteError(
            f"{asked}: the model's log-probabilities of answers are not finite, computed in {dtype}"
        )


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

    def is_finished(self, tokens: Tensor) -> bool:
        # Stop if the likeliest prefix of each instance has ended. No other prefix can become
        # likelier, because log-probabilities are at most 0.
        return not tokens[:, 0].any()  # END is 0

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

    @torch.no_grad()
    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        max_lengths: Tensor,
        constraint: Constraint | None = None,
    ) -> Hypotheses:
        use_one_thread_in_fork()
        found = model.greedy(inputs, lengths, max_lengths) if model.obeys_task else None
        if found is None:
            return super().decode(model, inputs, lengths, max_lengths, constraint)
        tokens, log_probs = (part[:, None] for part in found)
        check_finite(self.name, log_probs)
        return Hypotheses(tokens, (tokens != END).sum(2), log_probs)
