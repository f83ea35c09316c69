"""Adadelta for half of the steps, then RMSprop (Wang and Wang 2016, section 5)."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.nn import Parameter
from torch.optim import Adadelta, Optimizer, RMSprop

from ptrnet.training.recipe import Recipe

RMSPROP_RATE = 1e-3  # rate of RMSprop / rate of Adadelta; usual rates are 0.001 and 1


class AdadeltaThenRMSprop(Optimizer):
    """Adadelta for the first steps, RMSprop for the rest (Wang and Wang 2016, section 5).

    Args:
        rate: the learning rate of Adadelta. The learning rate of RMSprop is `RMSPROP_RATE * rate`.
        switch: number of steps before RMSprop takes over.
    """

    def __init__(self, parameters: Iterable[Parameter], rate: float, switch: int) -> None:
        super().__init__(parameters, {"lr": rate})
        self._both = [
            kind([{"params": group["params"]} for group in self.param_groups])
            for kind in (Adadelta, RMSprop)
        ]
        self._switch, self._taken = switch, 0

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        is_second = self._taken >= self._switch
        current = self._both[is_second]
        for group, inner in zip(self.param_groups, current.param_groups, strict=True):
            inner["lr"] = group["lr"] * (RMSPROP_RATE if is_second else 1.0)
        self._taken += 1
        return current.step(closure)

    def state_dict(self) -> dict[str, Any]:
        both = [optimizer.state_dict() for optimizer in self._both]
        return {**super().state_dict(), "both": both, "taken": self._taken}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for optimizer, state in zip(self._both, state_dict["both"], strict=True):
            optimizer.load_state_dict(state)
        self._taken = state_dict["taken"]
        super().load_state_dict({key: state_dict[key] for key in ("state", "param_groups")})


def build(recipe: Recipe, network: nn.Module) -> Optimizer:
    """Return the optimizer of a recipe. Its learning rate is Adadelta's, usually 1."""
    rate, steps = recipe.optimiser.learning_rate, recipe.run.steps
    return AdadeltaThenRMSprop(network.parameters(), rate, steps // 2)
