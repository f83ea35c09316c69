"""The optimizers, one file for each. Plug-ins register further optimizers.

An optimizer is a function `build(recipe, network)`, which returns a `torch.optim.Optimizer`. Like
`ptrnet.models`, this module lists names without importing torch.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptrnet.errors import InputError, unknown
from ptrnet.plugins import Registry

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from ptrnet.training.recipe import Recipe


def _check(name: str, build: Any) -> None:
    if not callable(build):
        raise InputError(f"register an optimizer: expected a function, got {build!r}")


_registry = Registry("optimizer", __name__, member="build", check=_check)


def names() -> list[str]:
    """The names of the optimizers, as the command line spells them."""
    return _registry.names()


def register(name: str, build: "Callable[[Recipe, nn.Module], Optimizer] | str") -> None:
    """Register an optimizer under a name.

    Args:
        name: for the command line and recipes, such as "lion".
        build: a function that takes a recipe and a network, and returns an optimizer. Or a text
            that says where the function is, such as "mine.lion:build". Then the module is imported
            when a training uses the optimizer.

    Raises:
        InputError: `build` is not a function, or the name is taken.

    Examples:
        >>> optimizers.register("lion", lambda recipe, net: Lion(net.parameters()))
    """
    _registry.register(name, build)


def check(name: str) -> None:
    """Raise InputError if no optimizer has the name. The message suggests the nearest name."""
    if name not in _registry:
        raise unknown("optimizer", name, names())


def optimizer(recipe: "Recipe", network: "nn.Module") -> "Optimizer":
    """Return the optimizer of a recipe, for the parameters of a network."""
    optimizer: Optimizer = _registry.get(recipe.optimiser.optimizer)(recipe, network)
    return optimizer
