"""Muon for the weights of linear layers, and AdamW for all other parameters."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from ptrnet.training.recipe import Recipe


class Muon(Optimizer):
    """Gives each matrix an update whose singular values are about equal (Jordan et al. 2024).

    Up to a factor, the update approximates the orthogonal matrix that is nearest to the mean
    gradient. The factor makes updates about as large as those of AdamW (Liu et al. 2025, "Muon is
    scalable for LLM training"), so learning rates that suit AdamW also suit Muon. We do not use
    `torch.optim.Muon`, because it computes in bfloat16. On a processor that has to emulate
    bfloat16, a training step would take twice as long.

    Args:
        matrices: the parameters to train, each with two axes.
        weight_decay: decoupled weight decay.
        momentum: decay of the mean gradient.
    """

    def __init__(
        self, matrices: Iterable[Tensor], rate: float, weight_decay: float, momentum: float = 0.95
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


def build(recipe: Recipe, network: nn.Module) -> Optimizer:
    """Return the optimizer of a recipe."""
    given = recipe.optimiser
    betas = (given.beta1, given.beta2)
    return MuonAndAdamW(network, given.learning_rate, given.weight_decay, betas)
