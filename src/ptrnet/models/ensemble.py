"""An ensemble: several networks of one kind whose probabilities are averaged at each step."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import torch
from torch import Tensor, nn

from ptrnet.masks import Lengths
from ptrnet.models.base import Encoded, PointerModel


@dataclass(frozen=True)
class EncodedByEach(Encoded):
    """The encodings of all members. `state` has the states of member 0, then of member 1, ..."""

    members: list[Encoded]
    state_sizes: tuple[int, ...]  # the number of tensors in each member's state


class Ensemble(PointerModel):
    """`p = mean_k p_k` at each step, where `p_k` is the distribution of member k.

    The members have separate states and read the same tokens.

    If members have `adds_scores`, `log p` is the mean of all `log p_k`, normalised. Members that
    score each element once are then one model of this kind, whose scores are the mean scores.

    Args:
        members: two or more networks of one kind with equal settings.
    """

    def __init__(self, members: Sequence[PointerModel]) -> None:
        first = members[0]
        super().__init__(first.features, first.num_specials, first._settings)
        self.members = nn.ModuleList(members)
        self.n = first.n
        self.exact_inputs, self.one_size = first.exact_inputs, first.one_size
        self.obeys_task, self.adds_scores = first.obeys_task, first.adds_scores

    def networks(self) -> list[PointerModel]:
        """The members."""
        return list(self.members)  # type: ignore[arg-type]

    def settings(self) -> dict[str, Any]:
        return self.networks()[0].settings()

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> EncodedByEach:
        encoded = [member.encode(inputs, lengths) for member in self.networks()]
        return EncodedByEach(
            encoded[0].num_tokens,
            tuple(chain.from_iterable(part.state for part in encoded)),
            [_without_state(part) for part in encoded],
            tuple(len(part.state) for part in encoded),
        )

    def step(
        self, encoded: EncodedByEach, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        log_probs: list[Tensor] = []
        after: list[Tensor] = []
        rest = iter(state)
        for member, part, size in zip(
            self.networks(), encoded.members, encoded.state_sizes, strict=True
        ):
            of_member, next_state = member.step(part, tuple(islice(rest, size)), tokens)
            log_probs.append(of_member)
            after += next_state
        return self._mean(log_probs), tuple(after)

    def log_probs(
        self, inputs: Tensor, lengths: Lengths, targets: Tensor, target_lengths: Lengths = None
    ) -> Tensor:
        arguments = (inputs, lengths, targets, target_lengths)
        return self._mean(member.log_probs(*arguments) for member in self.networks())

    def rest_log_probs(
        self,
        inputs: Tensor,
        lengths: Lengths,
        targets: Tensor,
        target_lengths: Lengths,
        num_known: int,
    ) -> Tensor:
        arguments = (inputs, lengths, targets, target_lengths, num_known)
        return self._mean(member.rest_log_probs(*arguments) for member in self.networks())

    def _mean(self, log_probs: Iterable[Tensor]) -> Tensor:
        """The log-probabilities of the ensemble, given those of the members."""
        every = torch.stack(list(log_probs))
        return every.mean(0).log_softmax(-1) if self.adds_scores else _log_mean(every)


def _without_state(encoded: Encoded) -> Encoded:
    """Return the encoding without its state. If `num_tokens` is a tensor, replace it by 0.

    `EncodedByEach` already holds these tensors, and an export cannot hold a tensor twice.
    """
    is_number = isinstance(encoded.num_tokens, int)
    return replace(encoded, state=(), num_tokens=encoded.num_tokens if is_number else 0)


def _log_mean(every: Tensor) -> Tensor:
    """The logarithm of the mean probability, given log-probabilities `(members, ...)`."""
    is_impossible = (every == -torch.inf).all(0)
    # The gradient of log(0) is not finite. So fill entries that are impossible for all members
    # before the sum, and set them to -inf afterwards.
    mean = every.masked_fill(is_impossible, 0).logsumexp(0) - math.log(len(every))
    return mean.masked_fill(is_impossible, -torch.inf)
