"""The states of a problem as a constraint in torch: the one place that knows NumPy.

A state is a dictionary of tensors `(B, K, ...)`, one row for each of the K prefixes of an instance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.errors import ModelError
from ptrnet.kernels import is_eager, is_recorded
from ptrnet.masks import gather_prefixes
from ptrnet.types import END

if TYPE_CHECKING:
    from ptrnet.problems.base import Problem, State


class Features(NamedTuple):
    """What a network reads of each prefix."""

    of_elements: Tensor  # (B, K, N, f) see `Problem.features`
    of_whole: Tensor  # (B, K, g)
    remaining: Tensor  # (B, K, N) boolean: see `Problem.remaining`


@dataclass(frozen=True)
class States:
    """Constraint of a problem, computed by its methods in float64."""

    problem: "Problem"  # the problem. If it has no `array_api`, its methods get arrays of NumPy.

    def begin(self, inputs: Tensor, lengths: Tensor | None = None) -> "State":
        """Return the state before the first choice, K = 1.

        Raises:
            ModelError: the instances have different sizes.
        """
        if lengths is not None and is_eager(lengths):
            if (lengths != lengths[0]).any():
                raise ModelError("expected instances of one size in a batch")
            inputs = inputs[:, : int(lengths[0])]
        state = self._call(self.problem.start, inputs.double())
        return {name: rows[:, None] for name, rows in state.items()}

    def mask(self, state: "State") -> Tensor:
        return self._of_prefixes(self.problem.decisions, state)

    def advance(self, state: "State", parents: Tensor | None, tokens: Tensor) -> "State":
        """See `Constraint.advance`. If `parents` is None, each prefix is its own parent."""
        rows = {
            name: (
                part.expand(*tokens.shape, *part.shape[2:])
                if parents is None
                else gather_prefixes(part, parents)
            ).flatten(0, 1)
            for name, part in state.items()
        }
        choices = tokens.flatten() - (END + 1)  # END, or the start symbol, becomes STAY
        rows = self._call(self.problem.advance, rows, choices)
        return {name: part.view(*tokens.shape, *part.shape[1:]) for name, part in rows.items()}

    def features(self, state: "State") -> Features:
        """Return the features that a network reads."""
        of_elements, of_whole = self._of_prefixes(self.problem.features, state)
        return Features(of_elements, of_whole, self._of_prefixes(self.problem.remaining, state))

    def _of_prefixes(self, method: Callable[..., Any], state: "State") -> Any:
        """Call a method of states with a row for each prefix, and return tensors `(B, K, ...)`."""
        shape = next(iter(state.values())).shape[:2]
        found = self._call(method, {name: part.flatten(0, 1) for name, part in state.items()})
        return _each(found, lambda part: part.view(*shape, *part.shape[1:]))

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method of the problem with tensors, or with arrays that hold the same numbers."""
        if self.problem.array_api:
            return method(*arguments)
        if is_recorded():
            raise ModelError(
                "the states of this problem are computed in NumPy, and PyTorch cannot record them; "
                "see `Problem.array_api`"
            )
        first = arguments[0]
        device = (next(iter(first.values())) if isinstance(first, dict) else first).device
        arrays = (_each(argument, lambda rows: rows.cpu().numpy()) for argument in arguments)
        return _each(method(*arrays), lambda rows: _to_tensor(rows, device))


def _each(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert an array or a tensor, or each one in a dictionary or tuple."""
    if isinstance(value, dict):
        return {name: convert(rows) for name, rows in value.items()}
    return tuple(map(convert, value)) if isinstance(value, tuple) else convert(value)


def _to_tensor(rows: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.require(rows, requirements=["C", "W"])).to(device)
