"""`manifest.json`: what a program in another language needs to know to use the graphs."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ptrnet.data.sizes import LARGEST
from ptrnet.export.graphs import DIMENSIONS, ENCODER, OPSET, STEP, Graph
from ptrnet.files import checksum
from ptrnet.geometry.points import SMALLEST_RANGE
from ptrnet.pretrained.model_folder import registered_name
from ptrnet.settings import to_mapping
from ptrnet.solver import Solver
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import MAX_LENGTH, MAX_NORMALIZED, Custom
from ptrnet.tasks.delaunay import Delaunay
from ptrnet.types import END
from ptrnet.version import VERSION

FORMAT = 1
MANIFEST, EXAMPLE = "manifest.json", "example.py"

# The kinds and meanings of the classes in `ptrnet.constraints`. Plug-ins may have others.
CONSTRAINTS = {
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
        "one triangle or more, each three increasing tokens; with a special slot 1, that slot "
        "between two triangles; END after a whole triangle only",
    ),
    "Apexes": (
        "apexes",
        "two different elements, then for each edge of a queue in its turn the apex of the "
        "triangle at its left, or slot 1, which says that there is none; END when none waits",
    ),
}
OBEYED_BY_EXAMPLE = ("free", "subset", "permutation", "tour", "closed-subset", "apexes")

ANSWERS = {
    "indices": "the elements of the tokens, in their order",
    "closed": "the elements of the tokens, in their order, without the last, which is the first",
    "triangles": "special slots left out, each three elements are a triangle",
    "apexes": "a queue of directed edges starts with the edge from element 1 to element 2 of the "
    "sequence; each further token is for the edge (a, b) in front, which leaves: an element c is "
    "the triangle (a, b, c), slot 1 is none; then of the sides (b, c) and (c, a) each that waits "
    "in the queue leaves it, and of each that does not the reverse joins at the end",
}
ORDERS = (
    "given: as they come; lexicographic: by the first feature, then the second, and so on; "
    "hilbert: along Hilbert's curve. The answer's indices are in the order given. Where the model "
    "reads another one, ptrnet then writes a polygon or a tour from its canonical start on."
)
LOOP = [
    "scale the elements, put them into the order, pass them to the encoder once",
    "encoded_* of the step are the encoder's outputs of these names, at each step the same",
    "state_K is at first the encoder's output, then the step's output next_state_K",
    "tokens, where the step has that input, is at first 0, then the token chosen last",
    "log_probs are of the next token, -inf on padding: choose the likeliest that is allowed",
    "END (token 0) ends the answer; so does max_tokens tokens",
]


def describe(solver: Solver, graphs: dict[str, Graph]) -> dict[str, Any]:
    """Return the manifest of a model and its graphs, without files and checks."""
    task, model = solver.task, solver.model
    constraint = type(task.build_constraint())
    kind, meaning = CONSTRAINTS.get(constraint.__name__, ("other", constraint.__doc__ or ""))
    answer = _answer_kind(task)
    return {
        "format": FORMAT,
        "ptrnet": VERSION,
        "opset": OPSET,
        "task": {"name": task.name, "settings": to_mapping(task)},
        "model": {"name": registered_name(model), "settings": model.settings()},
        "inputs": {
            "features": task.num_features,
            **_fields(task),
            "elements": {
                "only": model.n,
                "min": task.min_elements,
                "trained": solver.trained.get("n"),
            },
            "scaling": _scaling(task),
            "order": task.order,
            "order_meaning": ORDERS,
        },
        "dimensions": DIMENSIONS,
        "encoder": {"file": ENCODER, **asdict(graphs[ENCODER])},
        "step": {"file": STEP, **asdict(graphs[STEP])},
        "loop": LOOP,
        "tokens": {
            "specials": list(task.special_names),
            "end": END,
            "start": END,
            "first_element": task.num_specials,
            "meaning": "token first_element + i is element i in the order that the model reads",
        },
        "constraint": {
            "kind": kind,
            "meaning": meaning,
            "min_length": task.min_length,
            "obeyed_by_example": kind in OBEYED_BY_EXAMPLE,
        },
        "answer": {"kind": answer, "meaning": ANSWERS[answer], "max_tokens": _max_tokens(task)},
    }


def with_files(manifest: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the manifest with the size and the SHA-256 of each file in the folder."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": checksum(path)}
        for path in sorted(folder.iterdir())
    }
    return {**manifest, "files": files}


def _fields(task: Task) -> dict[str, Any]:
    """Describe the features if elements have fields."""
    if task.schema is None:
        return {}
    pairs = zip(task.schema.fields, task.schema.categories, strict=True)
    unknown = "ignore" if task.schema.ignores_unknown else "refuse"
    return {
        "fields": [
            {"name": name, "categories": list(texts), "unknown_category": unknown}
            for name, texts in pairs
        ],
        "fields_meaning": "a field without categories is a feature; another one is a feature for "
        "each category, 1 for the element's own and 0 else; any other text is refused, or all 0",
    }


def _scaling(task: Task) -> dict[str, Any]:
    if isinstance(task, Custom):
        return {
            "kind": "standardize",
            "center": task.center,
            "spread": task.spread,
            "clip": MAX_NORMALIZED,
            "meaning": "(x - center) / spread of each feature, then clipped to -clip and clip",
        }
    return {
        "kind": "unit-cube",
        "smallest_range": SMALLEST_RANGE,
        "meaning": "an instance with a number outside of 0 to 1, or whose largest range of a "
        "feature is below smallest_range and not 0: from each feature its least value is taken, "
        "then all are divided by that largest range; others stay as they are",
    }


def _answer_kind(task: Task) -> str:
    if isinstance(task, Delaunay):
        return "apexes" if task.sequence == "apexes" else "triangles"
    return "closed" if getattr(task, "closed", False) else "indices"


def _max_tokens(task: Task) -> dict[str, Any]:
    """Return `max_length` as `ceil(per_element * n) + plus`, clipped to `least` and `most`."""
    if isinstance(task, Custom) and task.repeats:
        rule = {"per_element": task.longest_share, "plus": 0, "least": task.longest_answer}
        return {**rule, "most": MAX_LENGTH}
    n = 1000  # large enough for the linear part
    slope = task.max_length(n + 1) - task.max_length(n)
    plus, minimum = task.max_length(n) - slope * n, task.max_length(task.min_elements)
    return {"per_element": slope, "plus": plus, "least": minimum, "most": task.max_length(LARGEST)}
