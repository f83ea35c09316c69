"""Optimisers and their schedules, from a recipe."""

import math
from collections.abc import Iterable

from torch.nn import Parameter
from torch.optim import SGD, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ptrnet.training.recipe import Recipe


def optimizer(recipe: Recipe, parameters: Iterable[Parameter]) -> Optimizer:
    """SGD without momentum as in V 3, or AdamW."""
    if recipe.optimizer == "sgd":
        return SGD(parameters, recipe.learning_rate)
    return AdamW(
        parameters,
        recipe.learning_rate,
        betas=(recipe.beta1, recipe.beta2),
        weight_decay=recipe.weight_decay,
        fused=True,
    )


def scheduler(recipe: Recipe, optimizer: Optimizer) -> LambdaLR:
    """Warm-up in a line, then decay along half a cosine to zero; or the warm-up alone."""
    rise = max(1, round(recipe.warmup * recipe.steps))

    def share(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        if recipe.schedule == "constant":
            return 1.0
        done = (step - rise) / max(1, recipe.steps - rise)
        return (1 + math.cos(math.pi * min(1.0, done))) / 2

    return LambdaLR(optimizer, share)
