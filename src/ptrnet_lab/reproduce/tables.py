"""The papers' tables as data: `recipes/PAPER/TABLE.toml`.

A row has a test, the paper's numbers, and up to three lines. A line is a model that answers the
test with a decoder. The lines `paper` and `ours` have recipes that train their models, and `best`
names a shipped model.

Some architectures learn the same weights by the same recipe, but answer differently. Lines with
such architectures share one training, and `answered_by` names the architecture that answers with
the trained weights.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from ptrnet import tasks
from ptrnet.decoding import Decoder
from ptrnet.decoding.options import DecoderOptions
from ptrnet.errors import unknown
from ptrnet.tasks.base import Task
from ptrnet.training.recipe import Recipe

RECIPES = Path(str(files("ptrnet_lab") / "recipes"))
LINES = ("paper", "ours", "best")
_OPTIONS = [field.name for field in fields(DecoderOptions)]  # the decoder's keys in a line
_SEED = 1  # seed of decoders that draw random numbers


@dataclass(frozen=True)
class Decoding:
    """How a line's model answers the test."""

    options: DecoderOptions
    constrained: bool
    model: str = ""  # `answered_by`: the architecture that answers; empty: the trained model

    def build(self) -> Decoder:
        """Build the decoder. Raises InputError if the name or an option is unknown."""
        return self.options.build(_SEED)

    def table(self) -> dict[str, Any]:
        """Return the keys that have a value, as they are written in a table's file."""
        options = {key: value for key, value in vars(self.options).items() if value is not None}
        model = {"answered_by": self.model} if self.model else {}
        return {**options, "constrained": self.constrained, **model}

    def __str__(self) -> str:
        options = self.options
        sizes = {
            "beam": f" {options.beam_size}",
            "incremental": f" {options.window}",
            "reconstruct": f" {options.part}, {options.rounds} rounds",
        }
        valid = ", valid" if self.constrained else ""
        model = f", by {self.model}" if self.model else ""
        return f"{options.decoder}{sizes.get(options.decoder, '')}{valid}{model}"


@dataclass(frozen=True)
class Line:
    """A model that answers the test of a row, and its decoder. ptrnet trains or ships the model."""

    recipe: Recipe | None  # None for a shipped model
    weights: str  # the shipped model's name; empty for a training
    decoding: Decoding


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    table: str  # PAPER/TABLE
    name: str
    method: str  # as the paper calls it
    trained_on: str  # sizes, as the paper gives them
    task: Task
    n: int  # elements of each instance of the test
    # The paper's numbers: for each metric a value (shares in percent) or "FAIL", and for labellers
    # the mean cost. Numbers that the paper does not give are missing.
    published: Mapping[str, float | str]
    labellers: Sequence[str]  # algorithms whose mean cost the table shows
    lines: Mapping[str, Line]

    def __str__(self) -> str:
        return f"{self.table}/{self.name}"


@dataclass(frozen=True)
class Table:
    """A table of a paper."""

    name: str  # PAPER/TABLE
    title: str
    notes: str
    metrics: Sequence[str]
    rows: Sequence[Row]


def names() -> list[str]:
    """Return the names of all tables, as PAPER/TABLE."""
    return sorted(str(p.relative_to(RECIPES).with_suffix("")) for p in RECIPES.glob("*/*.toml"))


def read(name: str) -> Table:
    """Return a table by its name, PAPER/TABLE."""
    content = tomllib.loads((RECIPES / f"{name}.toml").read_text(encoding="utf-8"))
    rows = [_row(name, row_name, row) for row_name, row in content["rows"].items()]
    return Table(name, content["title"], content["notes"].strip(), content["metrics"], rows)


def select(what: str) -> list[Row]:
    """Return the rows that PAPER, PAPER/TABLE or PAPER/TABLE/ROW names; all rows for "".

    Raises:
        InputError: there is no such paper, table or row. The message suggests the nearest name.

    Examples:
        >>> len(select("vinyals2015/table1")) == len(read("vinyals2015/table1").rows)
        True
    """
    paper, _, rest = what.partition("/")
    table, _, row = rest.partition("/")
    if what and paper not in {name.partition("/")[0] for name in names()}:
        raise unknown("paper", paper, {name.partition("/")[0] for name in names()})
    of_paper = [name for name in names() if not what or name.startswith(f"{paper}/")]
    if table and f"{paper}/{table}" not in of_paper:
        raise unknown("table", f"{paper}/{table}", of_paper)
    rows = [
        r for name in of_paper if table in ("", name.partition("/")[2]) for r in read(name).rows
    ]
    if row and row not in {r.name for r in rows}:
        raise unknown(f"row of {paper}/{table}", row, {r.name for r in rows})
    return [r for r in rows if row in ("", r.name)]


def _row(table: str, name: str, content: Mapping[str, Any]) -> Row:
    return Row(
        table=table,
        name=name,
        method=content["method"],
        trained_on=content["trained_on"],
        task=tasks.get(content["task"]),
        n=content["test_n"],
        published=content["published"],
        labellers=content.get("labellers", ()),
        lines=dict(_lines(content)),
    )


def _lines(row: Mapping[str, Any]) -> Iterator[tuple[str, Line]]:
    for name in LINES:
        if name not in row:
            continue
        line = dict(row[name])
        options = DecoderOptions(**{key: line.pop(key) for key in _OPTIONS if key in line})
        how = Decoding(options, line.pop("constrained", False), line.pop("answered_by", ""))
        weights = line.pop("weights", "")
        yield name, Line(None if weights else Recipe.from_table(line), weights, how)


@dataclass(frozen=True)
class Budget:
    """A limit on training and testing."""

    name: str  # the value of the option `--budget`
    steps: int | None  # maximum number of updates of the weights; None: no limit
    share: float  # share of the test's instances to answer

    def limit(self, recipe: Recipe) -> Recipe:
        """Return the recipe with at most `steps` steps.

        The schedule of its learning rate then runs over these steps.
        """
        if self.steps is None or recipe.run.steps <= self.steps:
            return recipe
        every = min(recipe.run.valid_every, self.steps)
        return recipe.replace(steps=self.steps, valid_every=every)


BUDGETS = {"full": Budget("full", None, 1.0), "quick": Budget("quick", 1000, 0.1)}


def budget_of(name: str) -> Budget:
    """Return the budget with this name. Raises InputError if the name is unknown."""
    if name not in BUDGETS:
        raise unknown("budget", name, BUDGETS)
    return BUDGETS[name]
