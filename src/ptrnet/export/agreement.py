"""Whether the graphs compute what the model computes, on fresh instances."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.constraints import Constraint
from ptrnet.data.padding import pad_instances
from ptrnet.data.sizes import parse_sizes
from ptrnet.data.symmetries import augmented_view
from ptrnet.decoding import Greedy, Hypotheses
from ptrnet.errors import InputError, ModelError
from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel
from ptrnet.progress import track
from ptrnet.solver import Solver
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import Custom
from ptrnet.types import Floats

TOLERANCE = 1e-4  # of a log-probability; of one below -1 relative to its size
LARGEST = 60  # elements of an instance that is compared, unless the model takes larger ones only
BATCH = 32
_STREAM = 3  # of random numbers: no training has seen these instances


class Agreement(NamedTuple):
    """Of PyTorch's answers and onnxruntime's."""

    instances: int
    same_answers: int  # greedy decoding, under the task's constraint
    log_prob_error: float  # as TOLERANCE has it; the largest, at the steps of PyTorch's answers

    def error(self) -> str | None:
        """What is wrong; None where the graphs may be given away."""
        if self.same_answers < self.instances:
            other = self.instances - self.same_answers
            return f"{other} of {self.instances} greedy answers differ from PyTorch's"
        if not self.log_prob_error <= TOLERANCE:
            return f"log-probabilities differ from PyTorch's by {self.log_prob_error:.2g}"
        return None


def compare(
    model: PointerModel, exported: PointerModel, task: Task, instances: Sequence[Floats]
) -> Agreement:
    """Greedy answers of both models to instances `(n, d)`, and every token's log-probability."""
    constraint = task.build_constraint()
    by_size = sorted(instances, key=len)  # batches of near sizes, which has less padding
    pairs = [
        _compare_batch(model, exported, task, constraint, by_size[k : k + BATCH])
        for k in track(range(0, len(by_size), BATCH), "checking")
    ]
    same, errors = zip(*pairs, strict=True)
    return Agreement(len(instances), sum(same), max(errors))


@torch.no_grad()
def _compare_batch(
    model: PointerModel,
    exported: PointerModel,
    task: Task,
    constraint: Constraint,
    instances: Sequence[Floats],
) -> tuple[int, float]:
    views = [augmented_view(0, task, task.normalize(instance))[0] for instance in instances]
    inputs, lengths = pad_instances(views)
    max_lengths = torch.tensor([task.max_length(len(view)) for view in views])
    expected, actual = (
        Greedy().decode(m, inputs, lengths, max_lengths, constraint) for m in (model, exported)
    )
    targets, counts = expected.tokens[:, 0], expected.lengths[:, 0] + 1  # END, too
    rows = [m.log_probs(inputs, lengths, targets, counts) for m in (model, exported)]
    of_model, of_graphs = (row[length_mask(counts, targets.shape[1])] for row in rows)
    errors = (of_graphs - of_model).abs() / of_model.abs().clamp(min=1)
    errors = torch.where(of_graphs == of_model, 0, errors)  # -inf on padding
    return sum(_is_same(expected, actual)), float(errors.max())


def _is_same(expected: Hypotheses, actual: Hypotheses) -> list[bool]:
    """Of each instance, whether both have the same first answer."""
    rows = zip(_answers(expected), _answers(actual), strict=True)
    return [torch.equal(*pair) for pair in rows]


def _answers(hypotheses: Hypotheses) -> list[Tensor]:
    counts = hypotheses.lengths[:, 0].tolist()
    return [row[:k] for row, k in zip(hypotheses.tokens[:, 0], counts, strict=True)]


def sizes_of(solver: Solver) -> list[int]:
    """The numbers of elements that the model answers, as far as it says: those it was trained on.

    Few of many, and none of more than LARGEST elements where there are smaller ones.
    """
    if solver.model.n is not None:
        return [solver.model.n]
    try:  # facts are the trainer's: anything may stand there
        sizes = parse_sizes(str(solver.trained["n"]))
    except (KeyError, InputError):
        sizes = list(range(1, 21))
    sizes = [n for n in sizes if n >= solver.task.min_elements] or [solver.task.min_elements]
    return [n for n in sizes if n <= LARGEST] or sizes[:1]


def fresh_instances(solver: Solver, count: int, seed: int) -> list[Floats]:
    """Instances `(n, d)` as the task draws them; of a user's own task, features as in training."""
    rng = np.random.default_rng([seed, _STREAM])
    sizes, task = rng.choice(sizes_of(solver), count), solver.task
    if isinstance(task, Custom):
        return [rng.normal(task.center, task.spread, (n, task.num_features)) for n in sizes]
    return [task.sample(rng, 1, n)[0] for n in sizes]
