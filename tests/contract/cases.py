"""The cases of the contracts: every registered task, model and decoder, and their instances.

A task's settings other than the defaults are covered when they stand in `SETTINGS`.
"""

from inspect import isabstract

import numpy as np
import pytest

from ptrnet import decoding, models, tasks
from ptrnet.decoding import Beam, Decoder
from ptrnet.tasks.custom import KINDS
from tests.contract.pairwise import pairwise

APEXES = [("delaunay", {"sequence": "apexes"})]
SETTINGS = [
    *((name, {}) for name in tasks.names()),
    ("hull", {"start": "lowest-index"}),
    ("hull", {"start": "lower-left", "closed": True}),
    ("delaunay", {"separator": True}),
    ("delaunay", {"order": "hilbert"}),
    *APEXES,
    ("tsp", {"order": "lexicographic"}),
    ("reading-order", {"direction": "vertical"}),
]
INFERRED = {"center": (0.4, 0.6, 0.5), "spread": (0.2, 0.3, 1.0), "longest_share": 1.5}
CUSTOM = [("custom", {**INFERRED, "kind": kind}) for kind in KINDS if kind != "permutation"]
EVERY_SETTING = [*SETTINGS, *CUSTOM]
TASKS = pytest.mark.parametrize(("name", "settings"), SETTINGS)
EVERY_TASK = pytest.mark.parametrize(("name", "settings"), EVERY_SETTING)
# A network reads a task's features, its special tokens, and whether elements repeat. So we combine
# every model with the settings that differ in these, and the other settings with two models.
VARIED = [
    ("hull", {}),
    *APEXES,
    ("delaunay", {"separator": True}),
    *(case for case in CUSTOM if case[1]["kind"] in ("choice", "sequence", "set")),
]
FOR_ALL = ("ptr-net", "transformer-ptr-net")
MODELS = [*models.names(), models.BOXES]


def combined(task, model):
    """Whether a setting of a task is tested with a model."""
    if model == models.BOXES:
        return task[0] == "reading-order"
    return task in VARIED or model in FOR_ALL


EVERY_PAIR = pytest.mark.parametrize(
    ("name", "settings", "model"),
    [(*task, model) for task in EVERY_SETTING for model in MODELS if combined(task, model)],
)

SMALL = {
    "beam": {"size": 3},
    "sample": {"size": 3, "seed": 0},
    "incremental": {"window": 2},
    "reconstruct": {"rounds": 3},
}
DECODERS = [
    cls(**SMALL.get(cls.name, {}))
    for cls in (getattr(decoding, name) for name in decoding.__all__)
    if isinstance(cls, type) and issubclass(cls, Decoder) and not isabstract(cls)
]
CONSTRAINTS = ["constrained", "free"]


def instances_of(task, sizes=(1, 2, 3, 5, 8, 13, 13, 4)):
    rng = np.random.default_rng(7)
    return [task.sample(rng, 1, n)[0] for n in sizes if n >= task.facts.min_elements]


def served(solver):
    """Return instances for the model: of mixed sizes if it takes any size."""
    n = solver.model.n
    return instances_of(solver.task) if n is None else instances_of(solver.task, [n] * 4)


def serves(task, model, *rest):
    """Whether the decoder suits the task and the model. Some need special tasks, or any size.

    Nor a beam, where its answer is one of several that are equally likely: the distributions of a
    model that is fed its own mixture do not depend on the tokens, which apexes repeat in any order;
    nor do those of a model that scores elements once.
    """
    if not combined(task, model):
        return False
    facts = tasks.get(task[0], **task[1]).facts
    any_order = model == "set-ptr-net" and facts.repeats
    is_tied = any_order or (task in APEXES and "teacher_forcing" in models.setting_names(model))
    if is_tied and any(isinstance(value, Beam) for value in rest):
        return False
    for decoder in (value for value in rest if isinstance(value, Decoder)):
        if decoder.needs_decomposable or decoder.needs_circular:
            fits = facts.decomposable if decoder.needs_decomposable else facts.circular
            return fits and "n" not in models.setting_names(model)
    return True


def covering(**factors):
    """Return a test's parameters, which cover every pair of values of two factors."""

    def label(value):
        return f"{value.name}-{value.size}" if isinstance(value, Decoder) else str(value)

    rows = pairwise(EVERY_SETTING, MODELS, *factors.values(), valid=serves)
    return pytest.mark.parametrize(
        ("name", "settings", "model", *factors),
        [
            pytest.param(*task, *rest, id="-".join(map(label, (task[0], *rest, k))))
            for k, (task, *rest) in enumerate(rows)
        ],
    )
