"""What a training from costs is given: instances, and what answers to them cost."""

from collections.abc import Sequence
from typing import NamedTuple

from ptrnet.data.random_streams import VALID
from ptrnet.data.streams import FreshInstances, KnownInstances, instance_batch
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.training.costs.sampler import Costs
from ptrnet.training.examples import TrainingExamples
from ptrnet.training.recipe import Recipe
from ptrnet.types import Example, Floats, Indices


class CostProblem(NamedTuple):
    """Instances of a user, and what answers to them cost."""

    instances: Sequence[Floats]  # (n, d) each
    costs: Costs


def task_costs(task: Task) -> Costs:
    """What the task says of costs.

    Raises:
        InputError: the task has none.
    """
    if not task.has_costs:
        raise InputError(
            f"task {task.name} has no cost of its own: ptrnet.fit(instances, cost=...) takes one"
        )

    def costs(instance: Floats, answers: Sequence[Indices]) -> Floats:
        known = task.costs(Example(instance), answers)
        assert known is not None
        return known

    return costs


def open_instances(
    recipe: Recipe, task: Task, problem: CostProblem | None, first: int
) -> TrainingExamples:
    """The instances of a training from costs that begins with batch number `first`.

    Args:
        recipe: of the training.
        task: of the instances; draws them where there is no problem.
        problem: a user's instances.
        first: the number of the first batch.

    Raises:
        InputError: no instance can be trained on.
    """
    sizes, batch_size = recipe.n, recipe.batch_size
    if problem is None:
        fresh = FreshInstances(task, sizes, batch_size, recipe.seed, first=first)
        valid = FreshInstances(task, sizes, batch_size, recipe.seed, VALID)
        batches = [valid.batch(k) for k in range(recipe.valid_batches)]
        return TrainingExamples(fresh, [], batches)
    known = KnownInstances(
        problem.instances,
        task,
        sizes,
        batch_size,
        recipe.seed,
        first,
        valid_share=recipe.valid_share,
        max_valid=recipe.valid_batches * batch_size,
    )
    held_out = sorted((example.inputs for example in known.held_out), key=len)
    starts = range(0, len(held_out), batch_size)
    batches = [instance_batch(held_out[k : k + batch_size], task) for k in starts]
    return TrainingExamples(known, [], batches)
