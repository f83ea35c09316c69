"""`manifest.json`: what a program in another language needs to know to use the graphs."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ptrnet import __version__, tasks
from ptrnet.constraints import machine_of
from ptrnet.export.graphs import DIMENSIONS, ENCODER, OPSET, STEP, Graph
from ptrnet.files import checksum
from ptrnet.geometry import SMALLEST_RANGE
from ptrnet.geometry.predicates import RESOLUTION
from ptrnet.model_folder import registered_name
from ptrnet.solver import Solver
from ptrnet.solver.scoring import ONE_FIRST
from ptrnet.tasks.base import Task
from ptrnet.tasks.delaunay import Delaunay
from ptrnet.tasks.schema import Schema
from ptrnet.types import END, LARGEST

FORMAT = 1
MANIFEST, EXAMPLE = "manifest.json", "example.py"

# For each class of `ptrnet.constraints`, the kind and the meaning in the manifest. Plug-ins may add
# other classes.
CONSTRAINTS = {
    "States": ("any", "any token: log_probs are -inf for tokens that are not allowed"),
    "Free": ("free", "any token; END not before min_length tokens"),
    "Subset": ("subset", "each element at most once; END not before min_length tokens"),
    "Permutation": ("permutation", "each element exactly once, then END"),
    "Tour": ("tour", "each element exactly once, element 0 first, then END"),
    "ClosedSubset": (
        "closed-subset",
        "each element at most once, then the first one again, then END; never END before",
    ),
    "Triangles": (
        "triangles",
        "one triangle or more, each three increasing tokens; if the task has a special slot 1, it "
        "must come between any two successive triangles; END only after a whole triangle",
    ),
    "Apexes": (
        "apexes",
        "two different elements, then for each edge of a queue the apex of the triangle to its "
        "left, or slot 1 if there is none; END when the queue is empty",
    ),
}
OBEYED_BY_EXAMPLE = ("any", "free", "subset", "permutation", "tour", "closed-subset", "apexes")

ANSWERS = {
    "indices": "the elements of the tokens, in their order",
    "routes": "token first_element + 2 i means element i; token first_element + 2 i + 1 means "
    "element 0 and then element i",
    "closed": "the elements of all tokens except the last one, in their order; the last token "
    "repeats the first one",
    "triangles": "leave out the special slots; then each three successive elements are a triangle",
    "apexes": "a queue of directed edges starts with the edge from the first element of the "
    "sequence to the second one; each further token removes the first edge (a, b) of the queue: "
    "slot 1 means that the edge has no triangle; an element c means the triangle (a, b, c), and "
    "then each of the sides (b, c) and (c, a) is removed if it is in the queue; otherwise its "
    "reverse is added to the end of the queue",
}
SCORES = {
    "first": "the log-probability that the element comes first: log_probs of the first step, minus "
    "the logarithm of the sum of their exponentials over the elements, without special tokens; the "
    "probability is exp(score)",
    "member": "the log-odds that the element is in the answer: log_probs of the element minus that "
    "of END, at the step of the greedy answer that chose the element, or, if no step chose it, at "
    "the step after the last element of the answer; the probability is 1 / (1 + exp(-score))",
}
ORDERS = (
    "given: the order of the file; lexicographic: by the first feature, then the second, and so on;"
    " hilbert: along Hilbert's curve. The indices of the answer refer to the given order. If the "
    "model does not read the given order, ptrnet rotates a polygon or a tour so that it begins at "
    "its canonical start."
)
LOOP = [
    "scale the elements, put them into the order, and pass them to the encoder once",
    "the step's inputs encoded_* are the encoder's outputs of the same names, at every step",
    "state_K is first the encoder's output, then the step's output next_state_K",
    "tokens, if the step has that input, is first 0, then the token chosen last",
    "log_probs are those of the next token, -inf on padding: choose the likeliest allowed token",
    "the answer ends with END (token 0), or after max_tokens tokens",
]


def describe(solver: Solver, graphs: dict[str, Graph]) -> dict[str, Any]:
    """Return the manifest of a model and its graphs, without `checked`, `weights` and `files`."""
    task, model = solver.task, solver.model
    constraint = type(machine_of(task.facts))
    kind, meaning = CONSTRAINTS.get(constraint.__name__, ("other", constraint.__doc__ or ""))
    answer = _answer_kind(task)
    return {
        "format": FORMAT,
        "ptrnet": __version__,
        "opset": OPSET,
        "task": {"name": task.name, "settings": tasks.settings_of(task)},
        "model": {"name": registered_name(model), "settings": model.settings()},
        "inputs": {
            "features": task.facts.num_features,
            **_fields(task),
            "elements": {
                "only": model.n,
                "min": task.facts.min_elements,
                "trained": solver.trained.get("n"),
                "equal_in_a_batch": model.one_size,
            },
            "scaling": _scaling(task),
            "resolution": RESOLUTION if task.facts.settle else 0,
            "resolution_meaning": "after scaling, the model cannot tell elements apart that are "
            "nearer to each other than this: the answer may be wrong for them",
            "order": task.order,
            "order_meaning": ORDERS,
        },
        "dimensions": DIMENSIONS,
        "encoder": {"file": ENCODER, **asdict(graphs[ENCODER])},
        "step": {"file": STEP, **asdict(graphs[STEP])},
        "loop": LOOP,
        "tokens": {
            "specials": list(task.facts.special_names),
            "end": END,
            "start": END,
            "first_element": task.facts.num_specials,
            "meaning": "token first_element + i is element i in the order that the model reads",
        },
        "constraint": {
            "kind": kind,
            "meaning": meaning,
            "min_length": task.facts.min_length,
            "obeyed_by_example": kind in OBEYED_BY_EXAMPLE,
        },
        "answer": {"kind": answer, "meaning": ANSWERS[answer], "max_tokens": max_tokens(task)},
        **_scores(task),
    }


def with_files(manifest: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the manifest with the size and the SHA-256 of each file in the folder."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": checksum(path)}
        for path in sorted(folder.iterdir())
    }
    return {**manifest, "files": files}


def _fields(task: Task) -> dict[str, Any]:
    """Describe the features if elements have fields, or if instances are those of a problem."""
    if task.facts.instance_format is not None:
        return {
            "instance": dict(task.facts.instance_format),
            "instance_meaning": "A line of JSON is an instance. An element has the numbers of each "
            "of `elements` and then of each of `shared`, which all elements repeat. A number that "
            "is missing in the line has its value in `optional`. For `jobs`, an element is a job: "
            "`most` machines, then `most` durations; machine -1 means that there is no operation.",
        }
    if task.facts.schema is None:
        return {}
    schema = task.facts.schema
    fields = enumerate(zip(schema.fields, schema.categories, schema.common, strict=True))
    fills = dict(schema.fills)
    return {
        "fields": [
            {
                "name": name,
                "categories": list(texts),
                "unknown": schema.unknown,
                "missing": _replacement(schema, k),
                "marks_missing": name in fills,
                "common": list(common),
            }
            for k, (name, texts, common) in fields
        ],
        "fields_meaning": "A field without categories is one feature. A field with categories has "
        "a feature for each category: 1 for the element's own category, 0 for the others. A whole "
        "number written as 1.0 is the category 1, unless 1.0 is a category itself. An unknown "
        "category is an error if `unknown` is refuse. Otherwise it becomes `missing`. A "
        "missing value is an error if `missing` is null. Otherwise `missing` replaces it: a number "
        "or, in a field with categories, the empty text, which may be a category. If "
        "`marks_missing` is true, the field has a second feature: 1 if the number is missing, else "
        "0. Each number in `common` adds a feature: 1 if the element has this number, compared as "
        "float32, else 0.",
        **_rules_of_sets(task),
    }


def _rules_of_sets(task: Task) -> dict[str, Any]:
    """Describe the columns that say which elements a set has, if the model knows such columns."""
    layout, rules = task.facts.layout, dict[str, Any]()
    if layout.available and not layout.alternatives:
        rules["available"] = layout.available[0]
        rules["available_meaning"] = "leave out elements in which this field is 0"
    if layout.outside:
        field, mark = layout.outside_mark
        rules["outside"] = {"field": field, "value": str(mark)}
        rules["outside_meaning"] = (
            "one element of each set is the option to choose none: it has this value, and all its "
            "other fields are missing, except those of the whole set"
        )
    return rules


def _replacement(schema: Schema, field: int) -> float | str | None:
    """Return what replaces a missing value of a field; None if a missing value is an error."""
    texts = schema.categories[field]
    if not texts:
        return schema.fill(field)
    return "" if "" in texts or schema.accepts("") else None


def _scores(task: Task) -> dict[str, Any]:
    """Describe the scores of single elements, if the task has any."""
    if not task.facts.kind:
        return {}
    kind = "first" if task.facts.kind in ONE_FIRST else "member"
    return {"scores": {"kind": kind, "meaning": SCORES[kind]}}


def _scaling(task: Task) -> dict[str, Any]:
    scaling = dict(task.facts.scaling)
    if scaling["kind"] == "none":
        return {**scaling, "meaning": "the graphs take the numbers of the file"}
    if scaling["kind"] == "standardize":
        meaning = "(x - center) / spread of each feature, then clipped to -clip and clip"
        return {**scaling, "meaning": meaning}
    if scaling["kind"] == "boxes":
        meaning = (
            "turn boxes so that lines run from left to right (rtl: left, right = -right, -left; "
            "vertical: left, top, right, bottom = top, -right, bottom, -left), then subtract the "
            "least left and top, divide by the extent in x and in y, and divide the label's number "
            "by labels"
        )
        return {**scaling, "meaning": meaning}
    return {
        **scaling,
        "smallest_range": SMALLEST_RANGE,
        "meaning": "if an instance has a number outside of 0 to 1, or if the largest range of its "
        "features is below smallest_range and not 0: subtract the minimum of each feature, then "
        "divide all features by that largest range; leave other instances unchanged",
    }


def _answer_kind(task: Task) -> str:
    if isinstance(task, Delaunay):
        return "apexes" if task.sequence == "apexes" else "triangles"
    if task.facts.ways > 1:
        return "routes"
    return "closed" if getattr(task, "closed", False) else "indices"


def max_tokens(task: Task) -> dict[str, Any]:
    """Return the parameters of a formula for `Task.max_length(n)`.

    The formula is `ceil(per_element * n) + plus`, clipped to `least` and `most`.
    """
    if task.facts.token_limit is not None:
        return dict(task.facts.token_limit)
    n = 1000  # so large that `max_length` is linear there
    slope = task.max_length(n + 1) - task.max_length(n)
    plus, minimum = task.max_length(n) - slope * n, task.max_length(task.facts.min_elements)
    return {"per_element": slope, "plus": plus, "least": minimum, "most": task.max_length(LARGEST)}
