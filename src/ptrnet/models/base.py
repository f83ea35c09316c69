"""What every model offers: `encode` once, `step` for each token, `log_probs` for a known answer."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ptrnet.errors import ModelError
from ptrnet.models import settings as known


@dataclass(frozen=True)
class Encoded:
    """What a decoder needs of a batch of instances. A variant adds fields."""

    tokens: int  # the width of a distribution over tokens, padding included
    state: tuple[Tensor, ...]  # each (B, 1, ...): where decoding starts


class PointerModel(nn.Module, ABC):
    """A network that points at its inputs: `p(C | P) = prod_i p(C_i | C_<i, P)` (V eq. 1).

    Args of every model:
        features: numbers an element has, d.
        specials: special slots S of the pointer, END first.
        settings: its own, an instance of its class `Settings`.
    """

    Settings: ClassVar[type[known.Settings]] = known.Settings
    n: int | None = None  # the one number of elements that instances must have; None: any

    def __init__(self, features: int, specials: int, settings: known.Settings) -> None:
        super().__init__()
        self.features, self.specials, self._settings = features, specials, settings

    def settings(self) -> dict[str, Any]:
        """The keyword arguments, beside features and specials, that build this model again."""
        return asdict(self._settings)

    def check(self, lengths: Tensor) -> None:
        """Refuses instances of `lengths` `(B,)` that the model cannot answer.

        Raises:
            ModelError: one has another number of elements than the model's one n.
        """
        if self.n is None:
            return
        if lengths.is_cuda and torch.cuda.is_current_stream_capturing():
            return  # there is nothing to look at: what is recorded runs later
        other = lengths[lengths != self.n]
        if len(other):
            raise ModelError(
                f"a model of n = {self.n} answers instances of {self.n} "
                f"elements only, got one of {int(other[0])}"
            )

    @abstractmethod
    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Reads `(B, N, d)` instances of `lengths` `(B,)`; all full when None."""

    @abstractmethod
    def step(
        self, encoded: Any, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Feeds the last tokens `(B, K)` of K prefixes for each instance (0 at the start).

        `encoded` is what `encode` returned; `state` holds tensors `(B, K, ...)`. Returns
        log-probabilities `(B, K, S + N)` of the next token, -inf on padding, and the state that
        belongs to the next step.
        """

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        """Log-probabilities `(B, M, S + N)` of every token, given the true tokens before it.

        `targets` are `(B, M)` tokens of `target_lengths` `(B,)`, END included; rows behind a
        sequence's END are arbitrary. Here it is one `step` after the other; a model whose inputs
        are known beforehand takes all at once.
        """
        encoded = self.encode(inputs, lengths)
        state, fed, rows = encoded.state, shifted(targets), []
        for i in range(targets.shape[1]):
            row, state = self.step(encoded, state, fed[:, i : i + 1])
            rows.append(row)
        return torch.cat(rows, 1)

    def rest_log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None,
        known: int,
    ) -> Tensor:
        """Log-probabilities `(B, K, S + N)` of what stands behind the first `known` tokens.

        The first of the K rows is the next token's, as `log_probs` has it. It is all that has to
        be there; the others belong to the tokens behind it, for a model that learns from these
        as well.
        """
        return self.log_probs(inputs, lengths, targets, target_lengths)[:, known:]


def all_of(padded: Tensor) -> Tensor:
    """The lengths of a batch `(B, N, ...)` without padding."""
    return torch.full((len(padded),), padded.shape[1], device=padded.device)


def log_softmax(scores: Tensor, lengths: Tensor) -> Tensor:
    """Over the first `lengths` `(B,)` of the last axis of `(B, K, T)`; -inf behind them."""
    padding = torch.arange(scores.shape[-1], device=scores.device) >= lengths[:, None, None]
    return scores.masked_fill(padding, -torch.inf).log_softmax(-1)


def feedable(inputs: Tensor, special_inputs: Tensor) -> Tensor:
    """`(B, S + N, d)`: the learned inputs of the special slots, then the instance's elements."""
    return torch.cat([special_inputs.expand(len(inputs), -1, -1), inputs], 1)


def pick(rows: Tensor, tokens: Tensor) -> Tensor:
    """`rows[b, tokens[b, k]]` for `(B, T, d)` rows and `(B, K)` tokens."""
    return rows.gather(1, tokens[..., None].expand(-1, -1, rows.shape[-1]))


def shifted(targets: Tensor) -> Tensor:
    """What is fed at each step when the truth is fed: the start symbol, then all but the last."""
    return nn.functional.pad(targets[:, :-1], (1, 0))


def start_weights(module: nn.Module) -> None:
    """Draws every parameter uniformly from [-0.08, 0.08] (V 3)."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.08, 0.08)
