"""SGD without momentum (Vinyals et al. 2015, section 3)."""

from torch import nn
from torch.optim import SGD, Optimizer

from ptrnet.training.recipe import Recipe


def build(recipe: Recipe, network: nn.Module) -> Optimizer:
    """Return the optimizer of a recipe."""
    return SGD(network.parameters(), recipe.optimiser.learning_rate)
