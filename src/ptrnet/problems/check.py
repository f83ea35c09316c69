"""Check that the methods of a problem do what a training relies on.

A rollout makes random allowed choices until the answer ends. We roll out a few batches. For one
tiny instance, we also search for all answers.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from ptrnet.errors import InputError, check_int
from ptrnet.problems.base import NUM_SPECIALS, STAY, Problem, State, elements_of
from ptrnet.types import Floats, Indices

BATCH, TINY_ROLLOUTS = 8, 64  # rollouts in a batch, and on the tiny instance
MAX_ANSWERS = 20_000  # exhaustive search stops after this many answers
LARGEST_FEATURE = 1000.0  # networks learn badly from larger numbers


def check_problem(problem: Problem, sizes: tuple[int, ...] = (), seed: int = 0) -> str:
    """Check the methods of a problem, and return one line about what was checked.

    - The same seed draws the same instances, and each instance can be solved.
    - No method changes its arguments. Shapes and types are as expected.
    - No rollout is longer than `max_length`, so every rollout ends.
    - An instance has the same features, choices and costs alone and in a batch.
    - Features and costs are finite, and features are not too large for a network.
    - Features, choices and costs do not depend on the order of the elements.
    - If instances can be read backwards (`Problem.backwards`), the answers that
      `answers_backwards` returns are valid, and cost no more than the original ones.
    - Answers can be converted to tokens and back, and the problem accepts the rollouts' answers.
    - On a tiny instance, exhaustive search finds every answer that the rollouts find.

    Args:
        problem: the problem.
        sizes: the numbers of elements to check. If empty, check five small sizes, beginning with
            the smallest size that the problem allows.
        seed: the seed of the instances and the rollouts.

    Raises:
        InputError: the seed is invalid, or a check failed. The message of a failed check begins
            with the name of the wrong method, or of the wrong array in the state.
    """
    check_int("seed", seed, 0)
    least = max(problem.min_elements, problem.fixed + 1)
    sizes = sizes or tuple(range(least, least + 9, 2))
    rollouts = 0
    for n in sizes:
        instance = _call("sample", problem.sample, np.random.default_rng([seed, n]), BATCH, n)
        again = problem.sample(np.random.default_rng([seed, n]), BATCH, n)
        _check(
            instance.shape == (BATCH, n, problem.num_features),
            f"sample: expected shape {(BATCH, n, problem.num_features)}, got {instance.shape}",
        )
        _check(np.isfinite(instance).all(), "sample: expected finite numbers")
        _check(np.array_equal(instance, again), "sample: the same seed drew other instances")
        for one in instance:
            _check(problem.instance_error(one) is None, f"sample: {problem.instance_error(one)}")
        answers = _rollout(problem, instance, np.random.default_rng(seed))
        _check_costs(problem, instance, answers)
        _check_order(problem, instance, answers, np.random.default_rng(seed))
        _check_backwards(problem, instance, answers)
        rollouts += len(answers)
    rng = np.random.default_rng(seed)
    count = _check_all_answers(problem, problem.sample(rng, 1, least + 3)[0], rng)
    return (
        f"{problem.name}: all checks passed in {rollouts} rollouts of {sizes[0]} to {sizes[-1]} "
        f"elements, and in all {count} answers to one instance of {least + 3}"
    )


def _rollout(problem: Problem, instance: Floats, rng: np.random.Generator) -> list[Indices]:
    """Return a random answer to each instance of a batch. Check the states at every step."""
    batch, n = instance.shape[:2]
    width = () if problem.ways == 1 else (problem.ways,)
    state = _call("start", problem.start, instance)
    alone = [problem.start(instance[k : k + 1]) for k in range(batch)]
    tokens: list[list[int]] = [[] for _ in range(batch)]
    for t in range(problem.max_length(n) + 1):
        for name, rows in state.items():
            _check(
                isinstance(rows, np.ndarray) and rows.shape[:1] == (batch,),
                f'state["{name}"]: expected an array of {batch} rows, one for each instance',
            )
        allowed = _call("allowed", problem.allowed, state)
        _check(
            allowed.dtype == bool and allowed.shape == (batch, n, *width),
            f"allowed: expected booleans {(batch, n, *width)}, got {allowed.dtype} {allowed.shape}",
        )
        _check(
            not allowed[:, : problem.fixed].any(), "allowed: expected False for the fixed elements"
        )
        decisions = problem.decisions(state)
        features = _check_features(problem, state, batch, n)
        remaining = _call("remaining", problem.remaining, state)
        _check(
            not (allowed.reshape(batch, n, -1).any(2) & ~remaining).any(),
            "remaining: expected True for all elements that are allowed next",
        )
        choices = np.full(batch, STAY)
        for k in range(batch):
            _check(
                np.array_equal(problem.decisions(alone[k])[0], decisions[k]),
                f"allowed: after {t} choices, the result for instance {k} alone differs from that "
                "for its batch",
            )
            for of_batch, of_one in zip(features, problem.features(alone[k]), strict=True):
                _check(
                    np.allclose(of_batch[k], of_one[0], rtol=1e-9, atol=1e-9),
                    f"features: after {t} choices, the result for instance {k} alone differs from "
                    "that for its batch",
                )
            choices[k] = rng.choice(np.flatnonzero(decisions[k])) - 1
            if choices[k] == STAY:
                continue
            tokens[k].append(choices[k] + NUM_SPECIALS)
            alone[k] = problem.step(alone[k], choices[k : k + 1])
        if (choices == STAY).all():
            return [elements_of(np.array(row, np.int64), problem.ways) for row in tokens]
        moves = choices != STAY
        some = {name: rows[moves] for name, rows in state.items()}
        _call("step", problem.step, some, choices[moves])
        state = problem.advance(state, choices)
    raise InputError(
        f"max_length: expected at most {problem.max_length(n)} choices for {n} elements, but more "
        "are allowed"
    )


def _check_features(problem: Problem, state: State, batch: int, n: int) -> tuple[Floats, Floats]:
    features: tuple[Floats, Floats] = _call("features", problem.features, state)
    of_elements, of_whole = problem.feature_sizes()
    for rows, shape in zip(features, ((batch, n, of_elements), (batch, of_whole)), strict=True):
        _check(rows.shape == shape, f"features: expected shape {shape}, got {rows.shape}")
        _check(np.isfinite(rows).all(), "features: expected finite numbers")
        largest = np.abs(rows).max(initial=0)
        _check(
            largest <= LARGEST_FEATURE,
            f"features: expected magnitudes of about 1, got {largest:.4g}; divide by a usual value",
        )
    return features


def _check_costs(problem: Problem, instance: Floats, answers: list[Indices]) -> None:
    for k, (inputs, answer) in enumerate(zip(instance, answers, strict=True)):
        (error,) = problem.answer_errors(inputs, [answer])
        _check(
            error is None,
            f"step: allowed choices led to the invalid answer {answer.tolist()}: {error}",
        )
        alone = _call("cost", problem.cost, inputs[None], answer[None])
        _check(alone.shape == (1,), f"cost: expected shape (1,), got {alone.shape}")
        _check(np.isfinite(alone[0]), f"cost: expected a finite number, got {alone[0]}")
        same = [j for j, other in enumerate(answers) if len(other) == len(answer)]
        together = problem.cost(instance[same], np.stack([answers[j] for j in same]))
        _check(
            np.allclose(together[same.index(k)], alone[0], rtol=1e-9, atol=1e-9),
            f"cost: instance {k} costs {alone[0]} alone and {together[same.index(k)]} in a batch",
        )


def _check_order(
    problem: Problem, instance: Floats, answers: list[Indices], rng: np.random.Generator
) -> None:
    """Check that shuffled elements have the same features, choices and costs."""
    n = instance.shape[1]
    order = np.concatenate(
        [np.arange(problem.fixed), problem.fixed + rng.permutation(n - problem.fixed)]
    )
    state, shuffled = problem.start(instance), problem.start(instance[:, order])
    same = np.array_equal(problem.allowed(state)[:, order], problem.allowed(shuffled))
    _check(same, "allowed: depends on the order of the elements")
    of_elements, of_whole = problem.features(state)
    others, whole = problem.features(shuffled)
    same = np.allclose(of_elements[:, order], others) and np.allclose(of_whole, whole)
    _check(same, "features: depend on the order of the elements")
    position = np.argsort(order)
    for inputs, answer in zip(instance, answers, strict=True):
        costs = [
            problem.cost(rows[None], indices[None])[0]
            for rows, indices in ((inputs, answer), (inputs[order], position[answer]))
        ]
        _check(
            np.isclose(*costs),
            f"cost: depends on the order of the elements: {costs[0]} and {costs[1]}",
        )


def _check_backwards(problem: Problem, instance: Floats, answers: list[Indices]) -> None:
    """Check `backwards`, and that `answers_backwards` returns valid answers of no higher cost."""
    is_reversible = problem.overridden("backwards") is not None
    has_answers = problem.overridden("answers_backwards") is not None
    _check(
        is_reversible == has_answers,
        "backwards: expected backwards and answers_backwards, or neither",
    )
    if not is_reversible:
        return
    backwards = _call("backwards", problem.backwards, instance)
    _check(
        np.array_equal(problem.backwards(backwards), instance),
        "backwards: expected the same instances again after two calls",
    )
    others = problem.answers_backwards(instance, answers)
    for inputs, other_inputs, answer, other in zip(
        instance, backwards, answers, others, strict=True
    ):
        before = problem.costs(inputs, [answer])[0]
        after = problem.costs(other_inputs, [other])[0]  # infinite if `other` is invalid
        _check(
            after <= before or np.isclose(after, before),
            f"answers_backwards: expected a cost of at most {before}, got {after}",
        )


def _check_all_answers(problem: Problem, inputs: Floats, rng: np.random.Generator) -> int:
    """Check that exhaustive search finds every answer of the rollouts of one instance.

    Returns:
        The number of answers that the search found.
    """
    found = all_answers(problem, inputs)
    costs = problem.costs(inputs, list(found.values()))
    _check(np.isfinite(costs).all(), "cost: an answer made of allowed choices has no finite cost")
    for answer in _rollout(problem, np.repeat(inputs[None], TINY_ROLLOUTS, 0), rng):
        is_known = tuple(answer.tolist()) in found or len(found) == MAX_ANSWERS
        _check(is_known, f"step: answer {answer.tolist()} can be reached in a batch, but not alone")
    return len(found)


def all_answers(problem: Problem, inputs: Floats) -> dict[tuple[int, ...], Indices]:
    """Return all answers to an instance, at most MAX_ANSWERS, by exhaustive search."""
    found: dict[tuple[int, ...], Indices] = {}
    waiting: list[tuple[State, list[int]]] = [(problem.start(inputs[None]), [])]
    while waiting and len(found) < MAX_ANSWERS:
        state, tokens = waiting.pop()
        for choice in np.flatnonzero(problem.decisions(state)[0]) - 1:
            if choice == STAY:
                answer = elements_of(np.array(tokens, np.int64), problem.ways)
                found[tuple(answer.tolist())] = answer
            else:
                stepped = problem.step(state, np.array([choice]))
                waiting.append((stepped, [*tokens, int(choice) + NUM_SPECIALS]))
    return found


def _call(name: str, method: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a method. Raise InputError if the method fails or changes arguments."""
    before = deepcopy(arguments)
    try:
        result = method(*arguments)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name}: raised {type(error).__name__}: {error}") from error
    for old, new in zip(before, arguments, strict=True):
        pairs = [(old[k], new[k]) for k in old] if isinstance(old, dict) else [(old, new)]
        for a, b in pairs:
            same = not isinstance(a, np.ndarray) or np.array_equal(a, b)
            _check(same, f"{name}: changed its argument in place; copy it first")
    return result


def _check(holds: object, complaint: str) -> None:
    if not holds:
        raise InputError(complaint)
