"""Build the optimiser and the learning-rate schedule of a recipe."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from torch.nn import Parameter
from torch.optim import SGD, Adadelta, AdamW, Optimizer, RMSprop
from torch.optim.lr_scheduler import LambdaLR

from ptrnet.training.recipe import Recipe

DECAY = 0.2  # share of the steps in which a trapezoid's rate falls
RMSPROP_RATE = 1e-3  # RMSprop's rate / Adadelta's; their usual rates are 0.001 and 1


class AdadeltaThenRMSprop(Optimizer):
    """Adadelta for the first steps, RMSprop for the rest (Wang and Wang 2016, section 5).

    Args:
        parameters: the parameters to train.
        rate: the learning rate of Adadelta. RMSprop's is `RMSPROP_RATE * rate`.
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


def optimizer(recipe: Recipe, parameters: Iterable[Parameter]) -> Optimizer:
    """Return the optimizer of the recipe.

    It is SGD without momentum (Vinyals et al. 2015, section 3), Adadelta followed by RMSprop (Wang
    and Wang 2016, section 5), or AdamW.
    """
    if recipe.optimizer == "sgd":
        return SGD(parameters, recipe.learning_rate)
    if recipe.optimizer == "adadelta-rmsprop":
        return AdadeltaThenRMSprop(parameters, recipe.learning_rate, recipe.steps // 2)
    return AdamW(
        parameters,
        recipe.learning_rate,
        betas=(recipe.beta1, recipe.beta2),
        weight_decay=recipe.weight_decay,
        fused=True,
    )


def scheduler(recipe: Recipe, optimizer: Optimizer) -> LambdaLR:
    """Return a linear warm-up, followed by what `recipe.schedule` says.

    Haegele et al. (2024) find the trapezoid as good as one cycle. Its rate is constant between the
    warm-up and the decay, so a checkpoint of that phase fits longer runs, too.
    """
    warmup_steps = max(1, round(recipe.warmup * recipe.steps))
    decay_steps = max(1, round(DECAY * recipe.steps))

    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        if recipe.schedule == "constant":
            return 1.0
        if recipe.schedule == "trapezoid":
            return min(1.0, max(0, recipe.steps - step) / decay_steps)
        progress = (step - warmup_steps) / max(1, recipe.steps - warmup_steps)
        return (1 + math.cos(math.pi * min(1.0, progress))) / 2

    return LambdaLR(optimizer, factor)
