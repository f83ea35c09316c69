"""What every model offers: `encode` once, `step` for each token, `log_probs` for a known answer."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from ptrnet.errors import ModelError
from ptrnet.kernels.eager import is_eager
from ptrnet.masks import length_mask
from ptrnet.models.settings import ModelSettings

if TYPE_CHECKING:
    from ptrnet.tasks.base import Task


@dataclass(frozen=True)
class Encoded:
    """What a decoder needs of a batch of instances. A variant adds fields.

    Args:
        num_tokens: the width of a distribution over tokens, S + N.
        state: the decoder's state before the first step, each tensor `(B, 1, ...)`.
    """

    num_tokens: int
    state: tuple[Tensor, ...]


class PointerModel(nn.Module, ABC):
    """A network that points at its inputs: `p(C | P) = prod_i p(C_i | C_<i, P)` (V eq. 1).

    Args of every model:
        features: numbers in an element, d.
        num_specials: special slots S of the pointer, END first.
        settings: an instance of the class `Settings` of the model.
    """

    Settings: ClassVar[type[ModelSettings]] = ModelSettings
    exact_inputs: ClassVar[bool] = False  # whether it reads float64, whatever its parameters are
    one_size: ClassVar[bool] = False  # whether all instances of a batch must have one size
    n: int | None = None  # the one number of elements that instances must have; None: any

    def __init__(self, features: int, num_specials: int, settings: ModelSettings) -> None:
        super().__init__()
        self.features, self.num_specials, self._settings = features, num_specials, settings

    @classmethod
    def for_task(cls, task: "Task", settings: ModelSettings) -> "PointerModel":
        """A fresh model of a task's instances; several of them if the settings say `ensemble`."""
        return cls.fresh(task.num_features, task.num_specials, settings)

    @classmethod
    def fresh(cls, features: int, num_specials: int, settings: ModelSettings) -> "PointerModel":
        """As `for_task`, for elements of d `features` and S special slots."""
        if settings.ensemble == 1:
            return cls(features, num_specials, settings)
        from ptrnet.models.ensemble import Ensemble

        return Ensemble([cls(features, num_specials, settings) for _ in range(settings.ensemble)])

    def networks(self) -> list["PointerModel"]:
        """The networks that are trained each for itself: this one, or those of an ensemble."""
        return [self]

    def settings(self) -> dict[str, Any]:
        """The keyword arguments that, after features and num_specials, build this model again."""
        return asdict(self._settings)

    def check_lengths(self, lengths: Tensor) -> None:
        """Refuses instances of `lengths` `(B,)` that the model cannot answer.

        Raises:
            ModelError: one has another number of elements than the model's one n.
        """
        if self.n is None:
            return
        is_captured = lengths.is_cuda and torch.cuda.is_current_stream_capturing()
        if is_captured or not is_eager(lengths):
            return  # operations are recorded, to run later, or transformed: there are no values
        other = lengths[lengths != self.n]
        if len(other):
            raise ModelError(
                f"a model of n = {self.n} answers instances of {self.n} "
                f"elements only, got one of {int(other[0])}"
            )

    @abstractmethod
    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Reads `(B, N, d)` instances of `lengths` `(B,)`; None: without padding."""

    @abstractmethod
    def step(
        self, encoded: Any, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One decoder step for K prefixes of each instance.

        Args:
            encoded: what `encode` returned.
            state: tensors `(B, K, ...)`: at first `encoded.state`, then what `step` returned.
            tokens: `(B, K)` the last token of each prefix; 0, the start symbol, of all of them at
                first. Then 0 is END, and what is returned of that prefix is arbitrary, or NaN.

        Returns:
            Log-probabilities `(B, K, S + N)` of the next token, -inf on padding, and the state
            for the next step.
        """

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        """Log-probabilities `(B, M, S + N)` of every token, where the tokens before it are true.

        Here it is one `step` after the other. A model whose decoder inputs are known beforehand
        overrides it, and takes all steps at once.

        Args:
            inputs: `(B, N, d)` instances.
            lengths: `(B,)` elements of each; None: without padding.
            targets: `(B, M)` the true tokens.
            target_lengths: `(B,)` tokens of each target, END included; None: without padding.
                The log-probabilities of what follows END are arbitrary.
        """
        encoded = self.encode(inputs, lengths)
        state, last_tokens, rows = encoded.state, shift_right(targets), []
        for i in range(targets.shape[1]):
            row, state = self.step(encoded, state, last_tokens[:, i : i + 1])
            rows.append(row)
        return torch.cat(rows, 1)

    def rest_log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None,
        num_known: int,
    ) -> Tensor:
        """Log-probabilities `(B, R, S + N)` of the rest of each target, after its first tokens.

        Row 0 is of the next token, as `log_probs` has it. A model may give it alone (R = 1), or
        rows for the tokens after it as well, where it learns from these too.

        The arguments are those of `log_probs`, and of every target `num_known` tokens are known.
        """
        return self.log_probs(inputs, lengths, targets, target_lengths)[:, num_known:]


def as_parameters(model: nn.Module, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors on the model's device, floating-point ones in the type that it reads."""
    parameter = next(model.parameters())
    keeps_type = getattr(model, "exact_inputs", False)
    return tuple(
        tensor.to(parameter.device if keeps_type or not tensor.is_floating_point() else parameter)
        for tensor in tensors
    )


def full_lengths(batch: Tensor) -> Tensor:
    """The lengths `(B,)` of a batch `(B, N, ...)` without padding."""
    return torch.full((batch.shape[0],), batch.shape[1], device=batch.device)


def masked_log_softmax(scores: Tensor, lengths: Tensor) -> Tensor:
    """Over the first `lengths` `(B,)` entries of each row of `(B, K, S + N)`; -inf after them."""
    padding = ~length_mask(lengths, scores.shape[-1])
    return scores.masked_fill(padding[:, None], -torch.inf).log_softmax(-1)


def decoder_inputs(inputs: Tensor, special_inputs: Tensor) -> Tensor:
    """`(B, S + N, d)`: what the decoder is fed after each token.

    That is a learned input `(S, d)` after a special slot, and the element itself after an element
    of the instances `(B, N, d)`.
    """
    return torch.cat([special_inputs.expand(inputs.shape[0], -1, -1), inputs], 1)


def safe_sqrt(x: Tensor) -> Tensor:
    """The root of what is 0 or more; its derivative at 0 is 0, and not infinite."""
    is_zero = x == 0
    return torch.where(is_zero, 0, torch.where(is_zero, 1, x).sqrt())


def shift_right(targets: Tensor) -> Tensor:
    """The last token before each step of `(B, M)` targets: the start symbol, then the targets."""
    return nn.functional.pad(targets[:, :-1], (1, 0))


def init_uniform(module: nn.Module) -> None:
    """Draws every parameter uniformly from [-0.08, 0.08] (V 3)."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.08, 0.08)


def num_weights(model: nn.Module) -> int:
    """How many numbers a model has learned."""
    return sum(parameter.numel() for parameter in model.parameters())
