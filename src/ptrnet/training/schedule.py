"""The learning rate of each step."""

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ptrnet.training.recipe import Recipe

DECAY = 0.2  # schedule "trapezoid": share of a cycle's steps in which the rate falls


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
