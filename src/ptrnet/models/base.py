"""What every model offers: `encode` once, `step` for each token, `log_probs` for a known answer."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Encoded:
    """What a decoder needs of a batch of instances. A variant may add fields."""

    inputs: Tensor  # (B, S + N, d): what is fed on after each token; special slots first
    lengths: Tensor  # (B,) the tokens that are real: S + n
    keys: Tensor  # (B, S + N, H): what the pointer scores
    state: tuple[Tensor, ...]  # each (B, 1, H): where decoding starts

    @property
    def tokens(self) -> int:
        """The width of a distribution over tokens, padding included."""
        return self.keys.shape[1]


class PointerModel(nn.Module, ABC):
    """A network that points at its inputs: `p(C | P) = prod_i p(C_i | C_<i, P)` (V eq. 1).

    Args of every model:
        features: numbers an element has, d.
        specials: special slots S of the pointer, END first.
    """

    features: int
    specials: int

    @abstractmethod
    def settings(self) -> dict[str, int | str | float | bool]:
        """The keyword arguments, beside features and specials, that build this model again."""

    @abstractmethod
    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Reads `(B, N, d)` instances of `lengths` `(B,)`; all full when None."""

    @abstractmethod
    def step(
        self, encoded: Encoded, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Feeds the last tokens `(B, K)` of K prefixes for each instance (0 at the start).

        `state` holds tensors `(B, K, ...)`. Returns log-probabilities `(B, K, S + N)` of the
        next token, -inf on padding, and the state that belongs to the next step.
        """

    @abstractmethod
    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        """Log-probabilities `(B, M, S + N)` of every token, given the true tokens before it.

        `targets` are `(B, M)` tokens of `target_lengths` `(B,)`, END included; rows behind a
        sequence's END are arbitrary.
        """


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
