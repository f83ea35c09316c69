"""How an answer came about, step by step, beside the exact one: the parts of a trace."""

from math import isfinite
from typing import Any

import numpy as np

from ptrnet.data.symmetries import augmented_view
from ptrnet.decoding.trace import Step, Traced
from ptrnet.tasks.base import Task
from ptrnet.types import END, Example, Indices

DIGITS = 6  # of a probability, behind the point


def steps_of(task: Task, example: Example, traced: Traced) -> dict[str, Any]:
    """The `tokens` and `steps` of a `TraceResponse`; elements as they stand in the instance.

    Args:
        task: of the model.
        example: the one instance that `traced` has answered.
        traced: the search, its answer the first of its prefixes.
    """
    _, order = augmented_view(0, task, task.normalize(example.inputs))
    special_tokens = np.arange(task.num_specials)
    from_read, to_read = (
        np.append(special_tokens, i + len(special_tokens)) for i in (order, order.argsort())
    )
    steps: list[dict[str, Any]] = []
    for step in traced.steps:
        count = len(steps[-1]["prefixes"]) if steps else 1
        steps.append(_step(step, count, from_read, to_read))
    return {"tokens": _tokens(steps), "steps": steps}


def _step(step: Step, count: int, from_read: Indices, to_read: Indices) -> dict[str, Any]:
    """A `TraceStep`. Prefixes with a token that was not allowed stand last, and are left out."""
    log_probs = step.log_probs[0, :count].double().cpu().numpy()[:, to_read]
    rounded = np.round(np.exp(log_probs), DIGITS).astype(object)
    rounded[np.isneginf(log_probs)] = None
    scores, parents, tokens = (part[0].tolist() for part in step.selection)
    prefixes = [
        {"parent": parent, "token": int(from_read[token]), "log_likelihood": score}
        for score, parent, token in zip(scores, parents, tokens, strict=True)
        if isfinite(score)
    ]
    return {"probabilities": rounded.tolist(), "prefixes": prefixes}


def _tokens(steps: list[dict[str, Any]]) -> list[int]:
    """The tokens of the first prefix of the last step, END included."""
    tokens, k = [], 0
    for step in reversed(steps):
        prefix = step["prefixes"][k]
        tokens.append(prefix["token"])
        k = prefix["parent"]
    tokens.reverse()
    return tokens[: tokens.index(END) + 1] if END in tokens else tokens


def compare(task: Task, solved: Example, exact: dict[str, Any] | None) -> dict[str, Any]:
    """The `correct` and `metrics` of a `TraceResponse`: an answer beside the exact one."""
    if exact is None or solved.outputs is None:
        return {"correct": None, "metrics": {}}
    known = solved.replace(outputs=np.array(exact["outputs"], np.int64))
    measures = task.measure([known], [solved.outputs])
    return {
        "correct": task.is_correct(known, solved.outputs) if exact["proved"] else None,
        "metrics": {name: measure.to_dict()["value"] for name, measure in measures.items()},
    }
