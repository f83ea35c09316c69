"""Decoding that stops when nobody waits for its answers any more."""

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor

from ptrnet.constraints import Constraint
from ptrnet.decoding import Decoder, Hypotheses
from ptrnet.models.base import PointerModel


class AbandonedError(Exception):
    """Nobody waits."""


class Abandonable(Decoder):
    """A decoder that stops between two steps of the model.

    Args:
        decoder: that is abandoned.
        is_abandoned: whether nobody waits any more; asked at every step.
    """

    def __init__(self, decoder: Decoder, is_abandoned: Callable[[], bool]) -> None:
        self._decoder, self._is_abandoned = decoder, is_abandoned
        self.name, self.size = decoder.name, decoder.size
        self.needs_decomposable = decoder.needs_decomposable
        self.needs_circular = decoder.needs_circular

    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        max_lengths: Tensor,
        constraint: Constraint | None = None,
    ) -> Hypotheses:
        """See `Decoder.decode`. Raises AbandonedError."""
        watched = cast(PointerModel, _Watched(model, self._is_abandoned))
        return self._decoder.decode(watched, inputs, lengths, max_lengths, constraint)


class _Watched:
    """A model whose steps end with the last who waits."""

    def __init__(self, model: PointerModel, is_abandoned: Callable[[], bool]) -> None:
        self._model, self._is_abandoned = model, is_abandoned

    def step(self, *arguments: Any) -> Any:
        """See `PointerModel.step`."""
        if self._is_abandoned():
            raise AbandonedError
        return self._model.step(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
