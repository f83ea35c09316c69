"""Check on fresh instances whether the ONNX graphs compute what the model computes."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet import tasks
from ptrnet.decoding import Greedy
from ptrnet.errors import InputError
from ptrnet.masks import gather_rows, length_mask
from ptrnet.models.base import PointerModel
from ptrnet.progress import track
from ptrnet.solver import Solver
from ptrnet.tasks.base import Task
from ptrnet.types import END, EXPORTED, Floats, Sizes
from ptrnet.views import views_of

TOLERANCE = 1e-4  # largest tolerated error of a log-probability; relative for values below -1
FLOAT32_ERRORS = 4  # differences up to this many times PyTorch's float32 error are tolerated, too
# `EdgeFrames` adds to the scores in several rounds. In each round, it reads positions relative to
# an edge. From the second round on, this edge ends at the token with the highest score so far. If
# two tokens have nearly equal scores, rounding decides which token that is. Then log-probabilities
# may differ a lot. To detect such an instance, we multiply its coordinates by 1 plus random numbers
# of the size NUDGE, and compute its log-probabilities in float64. We do this NUDGES times. If a
# log-probability changes by more than JUMP, we say that the instance is at a jump.
JUMP = 0.01
NUDGE, NUDGES = 2.0**-20, 16
LARGEST = 60  # most elements of a compared instance, unless all trained sizes are larger
LONGEST = 100  # most choices of an answer to a compared instance of a problem
BATCH = 128


class Agreement(NamedTuple):
    """How well onnxruntime reproduces PyTorch's greedy answers under the task's constraint."""

    instances: int
    same_answers: int
    # The number of instances that are at a jump (see JUMP), or for which the first different tokens
    # of the two answers are about equally likely. The errors below exclude instances at a jump.
    ties: int
    # The largest error of a token's log-probability, at the steps of PyTorch's answers.
    log_prob_error: float
    # The largest error of PyTorch in float32, compared with float64. It is computed only for
    # batches in which an error or a gap (see `_first_difference`) exceeds TOLERANCE, else it is 0.
    float32_error: float

    def error(self) -> str | None:
        """Return what is wrong, or None if the graphs agree.

        The graphs agree if all answers are equal, except ties, and if no log-probability differs by
        more than a limit. The limit is the larger of TOLERANCE and FLOAT32_ERRORS times PyTorch's
        float32 error.
        """
        other = self.instances - self.same_answers - self.ties
        if other:
            return f"{other} of {self.instances} greedy answers differ from PyTorch's"
        if not self.log_prob_error <= _limit(self.float32_error):
            return f"log-probabilities differ from PyTorch's by {self.log_prob_error:.2g}"
        return None


def compare(
    model: PointerModel, exported: PointerModel, task: Task, instances: Sequence[Floats]
) -> Agreement:
    """Compare the greedy answers that both models give for instances `(n, d)`.

    Also compare the log-probabilities of all tokens at each step of the answers of `model`.
    """
    by_size = sorted(instances, key=len)  # batches of similar sizes have less padding
    groups = [list(group) for _, group in groupby(by_size, len)] if model.one_size else [by_size]
    parts = [group[k : k + BATCH] for group in groups for k in range(0, len(group), BATCH)]
    batches = [_compare_batch(model, exported, task, part) for part in track(parts, "checking")]
    return Agreement(
        len(instances),
        sum(batch.same_answers for batch in batches),
        sum(batch.ties for batch in batches),
        # Not `max`, which drops a NaN that comes after another number.
        float(np.max([batch.log_prob_error for batch in batches])),
        float(np.max([batch.float32_error for batch in batches])),
    )


@torch.no_grad()
def _compare_batch(
    model: PointerModel, exported: PointerModel, task: Task, instances: Sequence[Floats]
) -> Agreement:
    inputs, lengths, max_lengths, _ = views_of(0, instances, task, model)
    tokens, actual = (
        Greedy().decode(m, inputs, lengths, max_lengths, task).tokens[:, 0]
        for m in (model, exported)
    )
    # Call `step` for each step, as the graphs do. A model's own `log_probs` may compute all steps
    # at once, with other rounding errors.
    rows = [PointerModel.log_probs(m, inputs, lengths, tokens) for m in (model, exported)]
    is_step = length_mask((tokens != END).sum(1) + 1, tokens.shape[1])
    errors = _largest_errors(rows[1], rows[0], is_step)
    is_other, gaps = _first_difference(rows[0], tokens, actual)
    float32_errors, is_jump = torch.zeros_like(errors), torch.zeros_like(is_other)
    is_kept = torch.maximum(errors, gaps) <= TOLERANCE
    if not is_kept.all():
        model = deepcopy(model).double()
        exact = PointerModel.log_probs(model, inputs.double(), lengths, tokens)
        float32_errors = _largest_errors(rows[0], exact, is_step)
        if not model.exact_inputs:
            parts = (x[~is_kept] for x in (inputs, lengths, tokens, exact, is_step))
            is_jump[~is_kept] = _is_at_a_jump(model, *parts)
        errors, float32_errors = (x.masked_fill(is_jump, 0) for x in (errors, float32_errors))
    float32_error = float(float32_errors.max())
    is_tie = is_jump | (is_other & (gaps <= _limit(float32_error)))
    same = int((~is_other & ~is_jump).sum())
    return Agreement(len(instances), same, int(is_tie.sum()), float(errors.max()), float32_error)


def _is_at_a_jump(
    model: PointerModel,
    inputs: Tensor,
    lengths: Tensor,
    tokens: Tensor,
    exact: Tensor,
    is_step: Tensor,
) -> Tensor:
    """Return `(B,)`: whether each instance, with log-probabilities `exact`, is at a jump.

    See JUMP for the meaning of a jump.
    """
    generator, change = torch.Generator().manual_seed(0), torch.zeros(len(inputs)).double()
    for _ in range(NUDGES):
        nudge = 1 + NUDGE * torch.randn(inputs.shape, generator=generator)
        log_probs = PointerModel.log_probs(model, inputs.double() * nudge, lengths, tokens)
        change = torch.maximum(change, _largest_errors(log_probs, exact, is_step))
    return change > JUMP


def _limit(float32_error: float) -> float:
    return max(TOLERANCE, FLOAT32_ERRORS * float32_error)


def _largest_errors(log_probs: Tensor, expected: Tensor, is_step: Tensor) -> Tensor:
    """Return each answer's largest error `(B,)`: absolute, or relative for values below -1."""
    errors = (log_probs - expected).abs() / expected.abs().clamp(min=1)
    is_same = (log_probs == expected) | ~is_step[..., None]  # -inf minus -inf is NaN
    return torch.where(is_same, 0, errors).flatten(1).amax(1)


def _first_difference(log_probs: Tensor, expected: Tensor, actual: Tensor) -> tuple[Tensor, Tensor]:
    """Return which pairs of answers `(B, M)` differ, and the gap `(B,)` at their first difference.

    The gap is the absolute difference between the log-probabilities of the two tokens there. If the
    expected token's log-probability is below -1, the gap is divided by the absolute value of that
    log-probability. The gap of equal answers is 0.
    """
    # In the tensor with fewer columns, each answer ends with END. So two answers that differ at
    # all differ within these columns.
    steps = min(expected.shape[1], actual.shape[1])
    differs = expected[:, :steps] != actual[:, :steps]
    first = differs.to(torch.uint8).argmax(1, keepdim=True)
    row = gather_rows(log_probs, first)[:, 0]
    likelier, other = (
        row.gather(1, tokens.gather(1, first))[:, 0] for tokens in (expected, actual)
    )
    return differs.any(1), (likelier - other).abs() / likelier.abs().clamp(min=1)


def sizes_of(solver: Solver) -> list[int]:
    """Return the numbers of elements that the model was trained on, or 1 to 20 if unknown.

    Sizes above LARGEST are left out. If all sizes are above LARGEST, only the first is returned.
    Also left out are sizes of problems whose answers may be longer than LONGEST, because each step
    of a graph may repeat all later steps by a rule.
    """
    if solver.model.n is not None:
        return [solver.model.n]
    try:  # `trained` comes from the user who trained the model, and may have any content
        sizes = list(Sizes(solver.trained["n"]))
    except (KeyError, InputError):
        sizes = list(range(1, 21))
    sizes = [n for n in sizes if n >= solver.task.facts.min_elements] or [
        solver.task.facts.min_elements
    ]
    if solver.model.one_size:
        sizes = [n for n in sizes if solver.task.max_length(n) <= LONGEST] or sizes[:1]
    return [n for n in sizes if n <= LARGEST] or sizes[:1]


def fresh_instances(solver: Solver, count: int, seed: int) -> list[Floats]:
    """Return random instances `(n, d)` without equal elements.

    Elements are uniformly distributed. For own examples, elements are normally distributed with
    the center and spread of the task. If two elements were equal, rounding would decide at which
    element the model points.
    """
    rng = np.random.default_rng([seed, EXPORTED])
    sizes, task = rng.choice(sizes_of(solver), count), solver.task
    scaling, d = task.facts.scaling, task.facts.num_features
    if scaling["kind"] == "standardize":
        return [rng.normal(scaling["center"], scaling["spread"], (n, d)) for n in sizes]
    uniform = tasks.with_points(task, "uniform")
    return [uniform.sample(rng, 1, n)[0] for n in sizes]
