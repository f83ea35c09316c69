"""Build the optimiser and the learning-rate schedule of a recipe."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import SGD, Adadelta, AdamW, Optimizer, RMSprop
from torch.optim.lr_scheduler import LambdaLR

from ptrnet.training.recipe import Recipe

DECAY = 0.2  # schedule "trapezoid": share of a cycle's steps in which the rate falls
RMSPROP_RATE = 1e-3  # rate of RMSprop / rate of Adadelta; usual rates are 0.001 and 1


class AdadeltaThenRMSprop(Optimizer):
    """Adadelta for the first steps, RMSprop for the rest (Wang and Wang 2016, section 5).

    Args:
        parameters: the parameters to train.
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


class Muon(Optimizer):
    """Gives each matrix an update whose singular values are about equal (Jordan et al. 2024).

    Up to a factor, the update approximates the orthogonal matrix that is nearest to the mean
    gradient. The factor makes updates about as large as those of AdamW (Liu et al. 2025, "Muon is
    scalable for LLM training"), so learning rates that suit AdamW also suit Muon. We do not use
    `torch.optim.Muon`, because it computes in bfloat16. On a processor that has to emulate
    bfloat16, a training step would take twice as long.

    Args:
        matrices: the parameters to train, each with two axes.
        rate: the learning rate.
        weight_decay: decoupled weight decay.
        momentum: decay of the mean gradient.
    """

    def __init__(
        self,
        matrices: Iterable[Tensor],
        rate: float,
        weight_decay: float,
        momentum: float = 0.95,
    ) -> None:
        defaults = {"lr": rate, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(matrices, defaults)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state, momentum = self.state[matrix], group["momentum"]
                if not state:
                    state["mean"] = torch.zeros_like(matrix)
                mean = state["mean"].lerp_(matrix.grad, 1 - momentum)
                direction = orthogonal(matrix.grad.lerp(mean, momentum))
                # The numbers in an orthogonal matrix have the root mean square 1 / sqrt(larger
                # side). With the factor `size`, the root mean square is 0.2, about as in AdamW.
                size = 0.2 * max(matrix.shape) ** 0.5
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
                matrix.add_(direction, alpha=-group["lr"] * size)


def orthogonal(matrix: Tensor) -> Tensor:
    """Return an approximation of the orthogonal matrix that is nearest to `matrix`.

    Most singular values of the result are between 0.68 and 1.2. We use five Newton-Schulz
    iterations with the coefficients of Jordan et al. (2024), which trade precision for speed.
    """
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.T if is_tall else x


class MuonAndAdamW(Optimizer):
    """Muon for the weights of linear layers, and AdamW for all other parameters.

    Args:
        network: the network to train.
        rate: the learning rate of both optimisers.
        weight_decay: the decoupled weight decay of both optimisers.
        betas: decays of the mean gradient and of the mean squared gradient in AdamW.
    """

    def __init__(
        self, network: nn.Module, rate: float, weight_decay: float, betas: tuple[float, float]
    ) -> None:
        matrices = [m.weight for m in network.modules() if isinstance(m, nn.Linear)]
        of_layers = {id(matrix) for matrix in matrices}
        others = [p for p in network.parameters() if id(p) not in of_layers]
        super().__init__([*matrices, *others], {"lr": rate})
        self._both: list[Optimizer] = []  # an optimiser refuses an empty list of parameters
        if others:
            self._both.append(
                AdamW(others, rate, betas=betas, weight_decay=weight_decay, fused=True)
            )
        if matrices:  # a recurrent network may have no linear layer
            self._both.append(Muon(matrices, rate, weight_decay))
        self._share_groups()

    def _share_groups(self) -> None:
        """Adopt the parameter groups of both optimisers, so that a scheduler sets both rates."""
        self.param_groups = [group for inner in self._both for group in inner.param_groups]

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = closure() if closure else None
        for inner in self._both:
            inner.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        return {"both": [inner.state_dict() for inner in self._both]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for inner, state in zip(self._both, state_dict["both"], strict=True):
            inner.load_state_dict(state)
        self._share_groups()


def optimizer(recipe: Recipe, network: nn.Module) -> Optimizer:
    """Return the optimizer of the recipe.

    The optimizer is SGD without momentum (Vinyals et al. 2015, section 3), Adadelta followed by
    RMSprop (Wang and Wang 2016, section 5), AdamW, or Muon with AdamW.
    """
    parameters, betas = network.parameters(), (recipe.beta1, recipe.beta2)
    if recipe.optimizer == "sgd":
        return SGD(parameters, recipe.learning_rate)
    if recipe.optimizer == "adadelta-rmsprop":
        return AdadeltaThenRMSprop(parameters, recipe.learning_rate, recipe.steps // 2)
    if recipe.optimizer == "muon":
        return MuonAndAdamW(network, recipe.learning_rate, recipe.weight_decay, betas)
    return AdamW(
        parameters,
        recipe.learning_rate,
        betas=betas,
        weight_decay=recipe.weight_decay,
        fused=True,
    )


def scheduler(recipe: Recipe, optimizer: Optimizer) -> LambdaLR:
    """Return the learning-rate schedule: a linear warm-up, then `recipe.schedule`.

    Haegele et al. (2024) find the trapezoid as good as "one-cycle". The trapezoid's rate is
    constant between the warm-up and the decay, so a longer training can go on from a checkpoint
    of this phase. Wen et al. (2024) repeat the trapezoid (`cycles`), and find the result about as
    good as that of one long trapezoid.
    """
    steps = recipe.steps // recipe.cycles  # of one cycle
    warmup_steps = max(1, round(recipe.warmup * steps))
    decay_steps = max(1, round(DECAY * steps))

    def factor(step: int) -> float:
        step %= steps
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        if recipe.schedule == "constant":
            return 1.0
        if recipe.schedule == "trapezoid":
            return min(1.0, (steps - step) / decay_steps)
        progress = (step - warmup_steps) / max(1, steps - warmup_steps)
        return (1 + math.cos(math.pi * progress)) / 2

    return LambdaLR(optimizer, factor)
