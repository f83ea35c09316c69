"""AdamW (Loshchilov and Hutter 2019)."""

from torch import nn
from torch.optim import AdamW, Optimizer

from ptrnet.training.recipe import Recipe


def build(recipe: Recipe, network: nn.Module) -> Optimizer:
    """Return the optimizer of a recipe."""
    return AdamW(
        network.parameters(),
        recipe.optimiser.learning_rate,
        betas=(recipe.optimiser.beta1, recipe.optimiser.beta2),
        weight_decay=recipe.optimiser.weight_decay,
        fused=True,
    )
