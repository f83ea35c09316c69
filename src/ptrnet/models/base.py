"""The interface of all models.

`encode` reads the instances once, `step` gives the distribution of the next token, and `log_probs`
gives the distributions at all steps of a known answer.
"""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from ptrnet.errors import ModelError
from ptrnet.kernels import is_eager
from ptrnet.masks import Lengths, length_mask
from ptrnet.models.settings import ModelSettings

if TYPE_CHECKING:
    from ptrnet.tasks.base import Task


@dataclass(frozen=True)
class Encoded:
    """A batch of encoded instances, which the decoder reads. Models add fields in subclasses.

    Args:
        num_tokens: number of tokens in a distribution, S + N: special slots and elements.
        state: the state before the first step, tensors `(B, 1, ...)`.
    """

    num_tokens: int
    state: tuple[Tensor, ...]


class PointerModel(nn.Module, ABC):
    """A network that points at its inputs: `p(C | P) = prod_i p(C_i | C_<i, P)`.

    The formula is equation 1 of Vinyals et al. (2015). A subclass defines `encode` and `step`; the
    other methods have defaults.

    Args:
        features: number of features of an element, d.
        num_specials: number S of special slots, which are tokens that are not elements. The first
            special slot is END.
        settings: an instance of the model's class `Settings`.
    """

    Settings: ClassVar[type[ModelSettings]] = ModelSettings
    exact_inputs: bool = False  # whether inputs stay float64 if the weights are float32
    one_size: bool = False  # whether the instances of a batch must have equal sizes
    obeys_task: bool = False  # whether tokens that the task forbids have probability 0 in the model
    adds_scores: bool = False  # whether an ensemble averages log-probabilities, not probabilities
    n: int | None = None  # the only size that the model accepts; None: any size

    def __init__(self, features: int, num_specials: int, settings: ModelSettings) -> None:
        super().__init__()
        self.features, self.num_specials, self._settings = features, num_specials, settings

    @classmethod
    def for_task(cls, task: "Task", settings: ModelSettings) -> "PointerModel":
        """Build one network with random weights for the instances of a task."""
        return cls(task.facts.num_features, task.facts.num_specials, settings)

    def networks(self) -> list["PointerModel"]:
        """The networks that are trained separately: this model, or the members of an ensemble."""
        return [self]

    def weights_error(self) -> str:
        """What is wrong with loaded weights of the right shapes; empty if nothing is."""
        return ""

    def settings(self) -> dict[str, Any]:
        """The settings by name, as `ptrnet.models.build` takes them."""
        return asdict(self._settings)

    def num_tokens(self, n: int) -> int:
        """The number of tokens, if the largest instance of a batch has n elements."""
        return self.num_specials + n

    def example_inputs(self, batch: int, n: int) -> Tensor:
        """Random instances `(batch, n, d)`, to record graphs."""
        random = torch.Generator().manual_seed(0)
        return torch.rand(batch, n, self.features, generator=random, dtype=torch.float32)

    def check_lengths(self, lengths: Tensor) -> None:
        """Check that the model accepts instances of `lengths` `(B,)`.

        Raises:
            ModelError: the model accepts a single size, and an instance has another size.
        """
        if self.n is None:
            return
        is_captured = lengths.is_cuda and torch.cuda.is_current_stream_capturing()
        if is_captured or not is_eager(lengths):
            return  # a trace, an export or `vmap` has no values that we could check
        other = lengths[lengths != self.n]
        if len(other):
            raise ModelError(
                f"a model of n = {self.n} answers instances of {self.n} "
                f"elements only, got one of {int(other[0])}"
            )

    @abstractmethod
    def encode(self, inputs: Tensor, lengths: Lengths = None) -> Encoded:
        """Encode instances.

        Args:
            inputs: `(B, N, d)`.
            lengths: `(B,)` number of elements of each instance; None: no padding.
        """

    @abstractmethod
    def step(
        self, encoded: Any, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Take one decoder step for K prefixes of each instance.

        Args:
            encoded: the result of `encode`.
            state: tensors `(B, K, ...)`: `encoded.state` at the first step, then the state that
                the previous step returned.
            tokens: `(B, K)` the last token of each prefix. At the first step all tokens are 0, the
                start symbol. At later steps 0 is END. The results for a prefix that ends with END
                are arbitrary and may be NaN.

        Returns:
            Log-probabilities `(B, K, S + N)` of the next token, -inf on padding, and the state
            for the next step.
        """

    def log_probs(
        self, inputs: Tensor, lengths: Lengths, targets: Tensor, target_lengths: Lengths = None
    ) -> Tensor:
        """Log-probabilities `(B, M, S + N)` of all tokens at each step of known answers.

        Each step is given the true tokens of all earlier steps (teacher forcing). This default
        implementation calls `step` in a loop. A model that can take all steps at once should
        override this method.

        Args:
            inputs: `(B, N, d)` instances.
            lengths: `(B,)` number of elements of each instance; None: no padding.
            targets: `(B, M)` the true tokens.
            target_lengths: `(B,)` number of tokens of each target, including END; None: no
                padding. Log-probabilities after END are arbitrary.
        """
        encoded = self.encode(inputs, lengths)
        state, last_tokens, rows = encoded.state, shift_right(targets), []
        for i in range(targets.shape[1]):
            row, state = self.step(encoded, state, last_tokens[:, i : i + 1])
            rows.append(row)
        return torch.cat(rows, 1)

    def greedy(
        self, inputs: Tensor, lengths: Tensor, max_lengths: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        """Find greedy answers in a faster way than step by step.

        This default implementation has none, and returns None. An override may return None, too.

        Args:
            inputs: `(B, N, d)` instances.
            lengths: `(B,)` number of elements of each instance.
            max_lengths: `(B,)` maximum number of tokens of each answer, without END.

        Returns:
            The tokens `(B, M)` that `ptrnet.Beam(1)` finds, padded with END, and the
            log-probability of each answer `(B,)`, including END.
        """
        return None

    def rest_log_probs(
        self,
        inputs: Tensor,
        lengths: Lengths,
        targets: Tensor,
        target_lengths: Lengths,
        num_known: int,
    ) -> Tensor:
        """Log-probabilities `(B, R, S + N)` of the tokens that follow a known prefix.

        Training with `--cuts` calls this method. Row 0 is for the token right after the prefix. A
        model must return row 0. If the model can also learn from later tokens, it may return more
        rows. R is the number of rows.

        Args:
            inputs: as in `log_probs`.
            lengths: as in `log_probs`.
            targets: as in `log_probs`.
            target_lengths: as in `log_probs`.
            num_known: number of tokens of each target that are known.
        """
        return self.log_probs(inputs, lengths, targets, target_lengths)[:, num_known:]


def as_parameters(model: nn.Module, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Move tensors to a model's device. Convert floating-point tensors to the model's dtype.

    If the model has `exact_inputs`, all tensors keep their dtype.
    """
    parameter = next(model.parameters())
    keeps_type = getattr(model, "exact_inputs", False)
    return tuple(
        tensor.to(parameter.device if keeps_type or not tensor.is_floating_point() else parameter)
        for tensor in tensors
    )


def full_lengths(batch: Tensor) -> Tensor:
    """The lengths `(B,)` of a batch `(B, N, ...)` that has no padding."""
    return torch.full((batch.shape[0],), batch.shape[1], device=batch.device)


def masked_log_softmax(scores: Tensor, lengths: Tensor) -> Tensor:
    """Log-softmax of scores `(B, K, S + N)` over the first `lengths` `(B,)` tokens.

    All other tokens get -inf.
    """
    padding = ~length_mask(lengths, scores.shape[-1])
    return scores.masked_fill(padding[:, None], -torch.inf).log_softmax(-1)


def decoder_inputs(inputs: Tensor, special_inputs: Tensor) -> Tensor:
    """The decoder's input after each token, `(B, S + N, d)`.

    After a special slot, the input is a learned vector, one of `special_inputs` `(S, d)`. After an
    element, the input is the element itself, one of `inputs` `(B, N, d)`.
    """
    return torch.cat([special_inputs.expand(inputs.shape[0], -1, -1), inputs], 1)


def shift_right(targets: Tensor) -> Tensor:
    """The token before each token of targets `(B, M)`: the start symbol, then `targets[:, :-1]`."""
    return nn.functional.pad(targets[:, :-1], (1, 0))


def init_uniform(module: nn.Module) -> None:
    """Draw every parameter uniformly from [-0.08, 0.08], as in Vinyals et al. (2015)."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.08, 0.08)


def num_weights(model: nn.Module) -> int:
    """The number of learned parameters."""
    return sum(parameter.numel() for parameter in model.parameters())
