"""Worlds to learn from: small tables of choices or grades whose truth is drawn at random.

A world has fields, a utility that depends on them, noise, and the answers that follow. In shapes, S
is the number of sets, N of elements, and C of features (the columns of fields).
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ptrnet import tasks
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Example, Floats, Indices

Bools = NDArray[np.bool_]

PAIRS, TREES, DEPTH, UNITS, FACTORS, GRADES = 5, 10, 3, 12, 3, 5
NEVER = 12.0  # subtracted from the utility of an alternative that nobody chooses


class World(NamedTuple):
    """Sets of elements, and what is answered."""

    features: Floats  # (S, N, C), 0 on padding
    present: Bools  # (S, N), False on padding
    grades: Floats  # (S, N), 0 on padding; for choices 1 for the chosen element, 0 for all others
    groups: Indices  # (S,), the person of each set if persons are known, otherwise the set
    graded: bool  # whether answers are grades or choices
    several: bool  # whether persons have several sets

    @property
    def task(self) -> Task:
        """The task of the examples. It does not change features."""
        width = self.features.shape[2]
        kind = "grades" if self.graded else "choice"
        return tasks.get("custom", kind=kind, center=(0.0,) * width, spread=(1.0,) * width)

    def examples(self, part: slice) -> Dataset:
        """Return some of the sets, without padding."""
        made = []
        for x, is_element, grades, group in zip(
            *(column[part] for column in self[:4]), strict=True
        ):
            own = grades[is_element]
            order = np.argsort(-own, kind="stable")
            answer = {"outputs": order, "grades": own} if self.graded else {"outputs": order[:1]}
            made.append(Example(x[is_element], **answer, group=int(group)))
        return Dataset.of(made)


def draw(
    rng: Generator, examples: int, questions: int, elements: int, columns: int, graded: bool
) -> World:
    """Draw a world.

    Args:
        rng: draws all numbers.
        examples: how many of the sets are examples, which come first.
        questions: how many sets follow. No person has both examples and questions.
        elements: the most elements of a set, 2 or more.
        columns: the most features, 1 or more.
        graded: whether answers are grades or choices.
    """
    named = _chance(rng, 0.15 if graded else 0.5)  # do alternatives have names?
    present = _present(rng, named, examples + questions, elements)
    several = _chance(rng, 0.4)
    size = 2 + int(28 * rng.random() ** 1.5) if several else 1
    person = np.arange(examples) // size
    person = np.append(person, examples + np.arange(questions) // size)
    table = _fields(rng, named, present, columns, person)
    utility = _utility(rng, named, present, table, person)
    total = _with_noise(rng, named, utility, present, person, several)
    grades = _grades(rng, total, present) if graded else np.eye(total.shape[1])[total.argmax(1)]
    groups = person if _chance(rng, 0.6) else np.arange(len(person))
    return World(_with_gaps(rng, table, present), present, grades, groups, graded, several)


def _chance(rng: Generator, p: float) -> bool:
    """Whether something happens that has the probability p."""
    return bool(rng.random() < p)


def _scale(rng: Generator, low: float, high: float, *shape: int) -> Floats:
    """Draw numbers whose logarithms are uniform."""
    return low * (high / low) ** rng.random(shape)


def _of_persons(rng: Generator, person: Indices, width: int) -> Floats:
    """Draw normal numbers `(S, width)`, which are the same for all sets of a person."""
    return rng.standard_normal((person.max() + 1, width))[person]


def _present(rng: Generator, named: bool, sets: int, elements: int) -> Bools:
    """Which elements a set has. Two or more; in half of the worlds, some are missing."""
    count = max(2, elements - int((elements - 1) * rng.random() ** 2))
    kept = 1 if _chance(rng, 0.5) else 0.4 + 0.6 * rng.random()
    first = rng.random((sets, count)).argsort(1) < 2
    return (rng.random((sets, count)) < kept) | first


class Table(NamedTuple):
    """The fields of a world, as a model would read them."""

    values: Floats  # (S, N, C)
    is_level: Bools  # (C,): the feature marks a category
    absent: Bools  # (N, C): the alternative does not have the field


def _fields(rng: Generator, named: bool, present: Bools, most: int, person: Indices) -> Table:
    """Draw fields: the alternative's name, numbers of many distributions, and categories.

    Field f has `width[f]` features: one for a number, one for each level of a category.
    """
    elements = present.shape[1]
    columns = 1 + int(most * (1 - rng.random() ** 1.5))
    columns = min(most, max(columns, elements + 1 if named else 1))
    width = np.where(rng.random(columns) < 0.15, rng.integers(3, 7, columns), 1)
    if named:
        width[0] = elements
    field = np.repeat(np.arange(columns), width)[:columns]
    level = np.arange(columns) - (np.cumsum(width) - width)[field]
    is_level = width[field] > 1

    number = _numbers(rng, named, present, columns, person)
    cuts = 0.9 * rng.standard_normal((5, columns))
    cuts[np.arange(1, 6)[:, None] >= width] = np.inf
    code = (number[..., None, :] > cuts).sum(-2)
    if named:
        code[..., 0] = np.arange(elements)
    values = np.where(is_level, code[..., field] == level, _shaped(rng, number)[..., field])

    absent = (rng.random((elements, columns)) < 0.4) & (rng.random(columns) < 0.12) & ~is_level
    absent &= ~absent.all(0) & named
    return Table(np.where(absent, 0, values), is_level, absent)


def _numbers(rng: Generator, named: bool, present: Bools, columns: int, person: Indices) -> Floats:
    """Numbers `(S, N, C)` of variance 1: of elements, alternatives, sets, persons.

    Elements share factors across fields, so that fields are correlated. In some fields all elements
    of a set are larger together, as the costs and times of a long way are.
    """
    sets, elements = present.shape
    kind = rng.choice(4, columns, p=[0.45, 0.2, 0.15, 0.2])  # of elements, sets, names, all
    u, v = rng.random((2, columns))
    some = 0.4 * v * (rng.random(columns) < 0.3)
    of_name = np.choose(kind, [0, 0, 1.5 + u, 2 * u]) * named
    of_set = np.choose(kind, [some, 1, 0.4 * v, 2 * v])
    own = np.choose(kind, [1, 0, 0.5 * rng.random(columns), rng.random(columns)])
    by_set = rng.standard_normal((sets, columns))
    if _chance(rng, 0.5):
        by_set = _of_persons(rng, person, columns)
    loads = rng.standard_normal((FACTORS, columns)) * (rng.random(columns) < 0.3)
    each = rng.standard_normal((sets, elements, columns))
    each += rng.standard_normal((sets, elements, FACTORS)) @ (1.5 * rng.random() * loads)
    together = rng.standard_normal((sets, 1, 1)) * _scale(rng, 0.3, 2, columns)
    number = of_name * rng.standard_normal((elements, columns)) + of_set * by_set[:, None]
    number = number + own * each + (rng.random(columns) < 0.15) * together
    return number / np.maximum(number.std((0, 1)), 1e-3)


def _shaped(rng: Generator, x: Floats) -> Floats:
    """Give numbers other distributions: skewed, 0 or 1, whole, uniform, cut at 0, counts."""
    columns = x.shape[-1]
    shapes = [
        x,
        np.exp(x * _scale(rng, 0.3, 1.3, columns)),
        x > 0.8 * rng.standard_normal(columns),
        np.round(x * _scale(rng, 0.5, 3, columns)),
        1 / (1 + np.exp(-1.7 * x)),
        np.maximum(x, 0),
        np.round(2 * np.exp(x * _scale(rng, 0.3, 1, columns))),
    ]
    return np.choose(rng.choice(7, columns, p=[0.4, 0.25, *[0.07] * 5]), shapes)


def _utility(rng: Generator, named: bool, present: Bools, table: Table, person: Indices) -> Floats:
    """The utility `(S, N)` of each element: a mixture of four kinds of functions of its fields.

    They are a sum of functions of single fields (linear ones most often), products of two fields,
    oblivious trees, and a random network that also reads the means of the set. The utility of a
    named alternative has a constant, too.
    """
    z = _standard(table.values, present)
    columns = z.shape[-1]
    counts = np.flatnonzero(rng.random(columns) < 0.15 + 0.85 * rng.random())
    if len(counts) == 0:
        counts = np.arange(columns)
    parts = [
        _additive(rng, z[..., counts], present, person),
        _products(rng, z, counts),
        _trees(rng, z[..., counts]),
        _network(rng, z, present, counts),
    ]
    strengths = (rng.random(4) < (0.8, 0.35, 0.35, 0.3)) * _scale(rng, 0.15, 1, 4)
    strengths[0] += not strengths.any()
    total = sum(s * _unit(part, present) for s, part in zip(strengths, parts, strict=True))
    if named and _chance(rng, 0.75):
        total = total + rng.standard_normal(z.shape[1]) * _scale(rng, 0.2, 1.5)
    return _unit(total, present)


def _standard(values: Floats, present: Bools) -> Floats:
    """Standardise `(S, N, ...)` by the elements that are present."""
    x = values[present]
    return np.clip((values - x.mean(0)) / np.maximum(x.std(0), 1e-4), -8, 8)


def _unit(utility: Floats, present: Bools) -> Floats:
    """Centre utilities within sets, and scale them to the standard deviation 1."""
    centred = utility - utility.mean(1, where=present, keepdims=True)
    deviation = centred.std(where=present)
    return centred / deviation if deviation > 1e-3 else 0 * centred


def _additive(rng: Generator, z: Floats, present: Bools, person: Indices) -> Floats:
    """A sum of functions of single features, with weights that may differ from person to person."""
    columns, is_element = z.shape[-1], present[..., None]
    if _chance(rng, 0.2):  # only what is relative to the set counts
        spread = z.std(1, where=is_element, keepdims=True)
        z = (z - z.mean(1, where=is_element, keepdims=True)) / np.maximum(spread, 0.3)
    at = 0.7 * rng.standard_normal(columns)
    curves = [
        z,
        np.tanh(_scale(rng, 0.7, 4, columns) * (z - at)),
        abs(z - at),
        -0.7 * np.minimum((z - at) ** 2, 6),
        np.maximum(z - at, 0),
        1.5 * (z > at),
    ]
    curve = np.choose(rng.choice(6, columns, p=[0.75, 0.06, 0.05, 0.04, 0.05, 0.05]), curves)
    weights = rng.standard_normal((columns,))
    if _chance(rng, 0.3):
        weights *= _scale(rng, 0.2, 3, columns)
    differs = _scale(rng, 0.1, 1.2) if _chance(rng, 0.35) else np.zeros(())
    own = weights + differs * abs(weights) * _of_persons(rng, person, columns)
    return (curve * own[:, None]).sum(-1)


def _products(rng: Generator, z: Floats, counts: Indices) -> Floats:
    first, second = rng.choice(counts, PAIRS), rng.integers(z.shape[-1], size=PAIRS)
    weights = rng.standard_normal(PAIRS) * (rng.random(PAIRS) < 0.6)
    return (z[..., first] * z[..., second]) @ weights


def _trees(rng: Generator, z: Floats) -> Floats:
    """Oblivious trees, in which all nodes of a level compare the same feature with one number."""
    compared = z[..., rng.integers(z.shape[-1], size=(TREES, DEPTH))]
    leaf = (compared > 0.8 * rng.standard_normal((TREES, DEPTH))) @ 2 ** np.arange(DEPTH)
    grows = rng.random() < 0.5 + rng.random((TREES, 1))
    values = rng.standard_normal((TREES, 2**DEPTH)) * grows
    return values[np.arange(TREES), leaf].sum(-1)


def _network(rng: Generator, z: Floats, present: Bools, counts: Indices) -> Floats:
    maps = rng.standard_normal((len(counts), UNITS)) * _scale(rng, 0.5, 2.5)
    hidden = z[..., counts] @ maps / len(counts) ** 0.5 + 0.7 * rng.standard_normal(UNITS)
    if _chance(rng, 0.4):
        of_set = rng.random() * rng.standard_normal((z.shape[-1], UNITS)) / z.shape[-1] ** 0.5
        hidden += z.mean(1, where=present[..., None], keepdims=True) @ of_set
    hidden = np.tanh(hidden)
    if _chance(rng, 0.5):
        hidden = np.tanh(hidden @ rng.standard_normal((UNITS, UNITS)) / 2)
    return hidden @ rng.standard_normal(UNITS)


def _with_noise(
    rng: Generator, named: bool, utility: Floats, present: Bools, person: Indices, several: bool
) -> Floats:
    """Scale utilities, and add what is not in the fields; -inf on padding.

    That is the taste of persons for alternatives, noise of several kinds, of nests of alternatives
    and of places in a list, alternatives that nobody chooses, and answers that are mere chance.
    """
    sets, elements = present.shape
    gumbel, noise = rng.gumbel(size=present.shape), rng.standard_normal(present.shape)
    if _chance(rng, 0.7):
        noise = gumbel
    elif _chance(rng, 0.6):
        noise = 1.28 * noise  # as uncertain as Gumbel's distribution
    else:
        noise = noise * _scale(rng, 0.3, 3, *present.shape)
    total = utility * (0.02 if _chance(rng, 0.06) else _scale(rng, 0.25, 5)) + noise
    if named and several and _chance(rng, 0.6):
        total += _of_persons(rng, person, elements) * _scale(rng, 0.3, 2.5)
    if _chance(rng, 0.15):
        nest = rng.integers(2, size=elements)
        total += rng.standard_normal((sets, 2))[:, nest] * _scale(rng, 0.3, 2)
    if _chance(rng, 0.08):
        total += 2 * rng.random() / (1 + rng.random(present.shape).argsort(1))
    if named and elements > 2 and _chance(rng, 0.08):
        total[:, -1] -= NEVER
    if _chance(rng, 0.25):
        total = np.where(rng.random((sets, 1)) < 0.3 * rng.random(), gumbel, total)
    return np.where(present, total, -np.inf)


def _grades(rng: Generator, total: Floats, present: Bools) -> Floats:
    """Cut utilities into 2 to GRADES grades."""
    z = _standard(np.where(present, total, 0), present)
    cuts = np.sort(0.5 + 0.6 * rng.standard_normal(GRADES - 1))[: rng.integers(1, GRADES)]
    return (z[..., None] > cuts).sum(-1) * present.astype(float)


def _with_gaps(rng: Generator, table: Table, present: Bools) -> Floats:
    """Return the features, with missing numbers replaced by means.

    The feature after a number that may be missing marks its gaps, as those of `Schema` do. The
    chooser knew the number, so the utility does not change.
    """
    values, is_level, absent = table
    columns, is_element = len(is_level), present[..., None]
    gappy = ~is_level & ~np.roll(is_level, -1) & (rng.random(columns) < 0.12)
    gappy[-1] = False
    gappy[1:] &= ~gappy[:-1]
    lost = (rng.random(values.shape) < 0.02 + 0.4 * rng.random(columns)) & gappy
    known = is_element & ~lost & ~absent
    means = (values * known).sum((0, 1)) / np.maximum(known.sum((0, 1)), 1)
    values = np.where(lost | absent, means, values)
    values = np.where(np.roll(gappy, 1), np.roll(lost, 1, 2), values)
    return values * is_element
