"""Find fields that look like ids of groups, if the user named no groups.

A field holds an id of groups if it has one value in each instance, a text or a whole number, and
several instances share a value. It looks like an id if one of these is true:

- Its name says so (`_NAMES`), and it has at least `NAMED` different values.
- It has at least `UNNAMED` different values, each in two instances on average, and the instances
  with one value follow each other. Facts such as an age or a price of the day are shared, too, but
  not by neighbours; except times, which are recognized by their names (`_TIMES`) or form.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

from ptrnet.data.cells import is_finite_number, is_number
from ptrnet.errors import AmbiguousInputWarning
from ptrnet.tasks.schema import Element, is_missing
from ptrnet.types import Example

NAMED, UNNAMED = 3, 20  # the smallest number of different ids, by whether the name tells them
WATCHED = 100_000  # the most examples that `warned_of_ids` looks at
_NAMES = re.compile(
    r"id|((person|people|individual|indiv|ind|user|customer|cust|client|consumer|shopper|buyer|"
    r"panel|panell?ist|household|hh|respondent|resp|participant|subject|subj|passenger|travell?er|"
    r"patient|visitor|player|account|session|document|doc)s?(id|no|nr|num|number|code|key)?)|[pu]id"
)
_TIMES = re.compile(r"date|day|week|month|quarter|year|season|period|hour|time|timestamp|datetime")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}([-/.]\d{1,4}|\b)")


def common_id(values: Sequence[Any]) -> Any:
    """Return the value of all elements of an instance, if it can be an id; otherwise None."""
    first = values[0]
    if isinstance(first, str):
        is_fraction = is_number(first) and not (
            is_finite_number(first) and float(first).is_integer()
        )
        can_be_id = not (is_missing(first) or is_fraction or _DATE.match(first))
    else:
        is_whole = isinstance(first, Integral) and not isinstance(first, bool)
        can_be_id = is_whole or (isinstance(first, float) and first.is_integer())
    # Compare types first: `==` of missing values and of arrays is not a boolean.
    same = can_be_id and all(type(v) is type(first) and v == first for v in values)
    return first if same else None


class SharedFields:
    """Collects the ids of all instances, field by field."""

    def __init__(self) -> None:
        self.ids: dict[str, list[Any]] = {}
        self._count = 0

    def watch(
        self, instances: Iterable[tuple[Sequence[Element], str]]
    ) -> Iterator[tuple[Sequence[Element], str]]:
        """Yield pairs of elements and sources, and collect the ids in the elements."""
        for elements, source in instances:
            self.add(elements)
            yield elements, source

    def add(self, elements: Sequence[Element]) -> None:
        """Collect the ids in the elements of an instance."""
        names = list(self.ids) if self._count else list(elements[0])
        for name in names:
            found = common_id([element.get(name) for element in elements])
            if found is None:
                self.ids.pop(name, None)
            else:
                self.ids.setdefault(name, []).append(found)
        self._count += 1


def find_id(ids: Mapping[str, Sequence[Any]]) -> str | None:
    """Return the field that looks most like an id of groups; None if no field does.

    Args:
        ids: for each field with one id in each instance, the ids of all instances.
    """
    by_name = (name for name, values in ids.items() if _is_named(name, values))
    by_place = (name for name, values in ids.items() if _is_sorted(name, values))
    return next(by_name, None) or next(by_place, None)


def _is_named(name: str, ids: Sequence[Any]) -> bool:
    squeezed = re.sub(r"[\W_]", "", str(name).lower())
    return _NAMES.fullmatch(squeezed) is not None and NAMED <= len({*ids}) < len(ids)


def _is_sorted(name: str, ids: Sequence[Any]) -> bool:
    count = len({*ids})
    is_time = any(_TIMES.fullmatch(word) for word in re.split(r"[\W_\d]+", str(name).lower()))
    is_shared = UNNAMED <= count <= len(ids) / 2
    return is_shared and not is_time and 1 + sum(a != b for a, b in pairwise(ids)) == count


def warn_of_ids(ids: Mapping[str, Sequence[Any]], fields: Sequence[str], source: str) -> None:
    """Warn about a field that looks like an id of groups, before a training.

    Args:
        ids: as in `find_id`.
        fields: the fields that the model reads.
        source: the name of the examples.
    """
    name = find_id(ids)
    if name is None:
        return
    is_read = "; without it, the network also reads this field" if name in fields else ""
    warnings.warn(
        f'{source}: "{name}" looks like an id: {len(ids[name]):,} sets share {len({*ids[name]}):,} '
        "values. A split by set would measure sets of those that training saw; to measure new "
        f'ones, use --group {name} (group="{name}"){is_read}',
        AmbiguousInputWarning,
        stacklevel=4,
    )


def warned_of_ids(examples: Iterable[Example]) -> Iterator[Example]:
    """Yield examples to measure a model on. At the end, warn if they should have groups.

    The warning is about a field that looks like an id of groups, if the examples have no groups.
    Only the first `WATCHED` examples are looked at, so that long files do not fill the memory.
    """
    shared = SharedFields()
    for k, example in enumerate(examples):
        if k < WATCHED and example.group is None and example.elements:
            shared.add(example.elements)
        yield example
    name = find_id(shared.ids)
    if name is not None:
        ids = shared.ids[name]
        warnings.warn(
            f'"{name}" looks like an id: {len(ids):,} sets share {len({*ids}):,} values. The '
            "intervals take each set as one observation, so they are too narrow if the sets of one "
            f'are alike; use --group {name} (group="{name}")',
            AmbiguousInputWarning,
            stacklevel=1,  # the same place for each caller, so equal warnings are printed once
        )
