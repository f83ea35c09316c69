"""How much of a recipe is run: all of it, or enough to see that it works."""

from dataclasses import dataclass, replace

from ptrnet.errors import unknown
from ptrnet.training.recipe import Recipe


@dataclass(frozen=True)
class Budget:
    """A limit of what is trained and tested.

    Args:
        name: of the option's value.
        steps: at most so many updates of the weights; None: as the recipe has it.
        share: of the instances of a test.
    """

    name: str
    steps: int | None
    share: float

    def limit(self, recipe: Recipe) -> Recipe:
        """The recipe with as many steps as there may be; its schedule is over them."""
        if self.steps is None or recipe.steps <= self.steps:
            return recipe
        return replace(recipe, steps=self.steps, valid_every=min(recipe.valid_every, self.steps))


BUDGETS = {"full": Budget("full", None, 1.0), "quick": Budget("quick", 1000, 0.1)}


def budget_of(name: str) -> Budget:
    """The budget of a name. Raises InputError if unknown."""
    if name not in BUDGETS:
        raise unknown("budget", name, BUDGETS)
    return BUDGETS[name]
