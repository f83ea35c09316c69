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
    """Linear warm-up, then decay along half a cosine to zero; or the warm-up alone."""
    warmup_steps = max(1, round(recipe.warmup * recipe.steps))

    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        if recipe.schedule == "constant":
            return 1.0
        progress = (step - warmup_steps) / max(1, recipe.steps - warmup_steps)
        return (1 + math.cos(math.pi * min(1.0, progress))) / 2

    return LambdaLR(optimizer, factor)
