"""Groups of instances: the sets of one person, household, document or session.

Instances of one group are alike. So a group is never on both sides of a split, such as that between
training and validation, and the intervals of scores take a group as one observation. A model reads
neither groups nor their ids.

`Example.group` and `Dataset.groups` hold a code of the group's id instead of the id itself: equal
ids have equal codes, in all chunks of a file, in all processes and in all files.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from ptrnet.data.arrays import split
from ptrnet.data.cells import check_id, is_finite_number, is_number
from ptrnet.errors import InputError, warn_ambiguous
from ptrnet.tasks.schema import Element, is_missing
from ptrnet.types import Dataset, Example

GROUP_KEY = "group"  # the key of a group's id in a line of JSON, unless the user names another key
NAMED, UNNAMED = 3, 20  # the smallest number of different ids, by whether the name tells them
WATCHED = 100_000  # the most examples that `warned_of_ids` looks at
_NAMES = re.compile(
    r"id|((person|people|individual|indiv|ind|user|customer|cust|client|consumer|shopper|buyer|"
    r"panel|panell?ist|household|hh|respondent|resp|participant|subject|subj|passenger|travell?er|"
    r"patient|visitor|player|account|session|document|doc)s?(id|no|nr|num|number|code|key)?)|[pu]id"
)
_TIMES = re.compile(r"date|day|week|month|quarter|year|season|period|hour|time|timestamp|datetime")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}([-/.]\d{1,4}|\b)")


def code_of(group: Any) -> int:
    """Return the code of a group's id, a number of 64 bits. The ids 7, 7.0 and "7" are equal."""
    if isinstance(group, float) and group.is_integer():
        group = int(group)
    digest = blake2b(str(group).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def shared_value(example: Example, field: str, option: str) -> Any:
    """Return the value of a field for an instance.

    The field is a key of the instance's line, or a field that has the same value in all elements.

    Args:
        option: the option that names the field, for error messages.

    Raises:
        InputError: the instance lacks the field, or the field differs between elements.
    """
    if field in example.extra:
        values = [example.extra[field]]
    else:
        values = [element[field] for element in example.elements or () if field in element]
    if len(values) not in (1, len(example.inputs)):
        raise InputError(f'{example.source}: {option}: expected the field "{field}" of an instance')
    if any(value != values[0] for value in values):
        raise InputError(
            f'{example.source}: {option}: "{field}" differs between elements: expected a field of '
            "the whole instance"
        )
    value = values[0].item() if isinstance(values[0], np.generic) else values[0]
    return value if isinstance(value, str | int | float) else str(value)


def with_groups(chunks: Iterable[Dataset], field: str = "") -> Iterator[Dataset]:
    """Yield datasets with the codes of their groups.

    Args:
        chunks: the examples. If `field` is empty, they may already have groups.
        field: the field of the groups' ids; see `shared_value`. If it is empty, the ids are the
            values of GROUP_KEY, or the examples have no groups.

    Raises:
        InputError: a group's id is neither a name nor a number, or only some examples have one.
    """
    has_groups = None
    for data in chunks:
        groups = list(data.column("group"))
        for row, example in enumerate(data):
            if field or GROUP_KEY in example.extra:
                value = shared_value(example, field, "group") if field else example.extra[GROUP_KEY]
                groups[row] = code_of(check_id(value, f'{example.source}: "{field or GROUP_KEY}"'))
            if has_groups is None:
                has_groups = groups[row] is not None
            elif has_groups != (groups[row] is not None):
                expected = "a group" if has_groups else "no group"
                raise InputError(f"{example.source}: expected {expected}, as in earlier examples")
        yield data.with_columns(group=groups) if has_groups else data


def grouped(data: Dataset, groups: Any) -> Dataset:
    """Return a dataset with groups.

    Args:
        groups: the name of a field, as in `with_groups`; or a group for each instance: names or
            numbers in a list, an array or a series.

    Raises:
        InputError: as in `with_groups`, or the number of groups is wrong.
    """
    if isinstance(groups, str):
        return next(with_groups([data], groups))
    values = split(groups, "group")
    if len(values) != len(data):
        raise InputError(
            f"group: expected a group for each of the {len(data)} examples, got {len(values)}"
        )
    ids = [check_id(value, f"group: example {k}") for k, value in enumerate(values)]
    return data.with_columns(group=[code_of(value) for value in ids])


# Fields that look like ids of groups, if the user named no groups. Such a field has one value in
# each instance, a text or a whole number, and several instances share a value. It looks like an id
# if one of these is true:
#
# - Its name says so (`_NAMES`), and it has at least `NAMED` different values.
# - It has at least `UNNAMED` different values, each in two instances on average, and the instances
#   with one value follow each other. Facts such as an age or a price of the day are shared, too,
#   but not by neighbours; except times, which are recognized by their names (`_TIMES`) or form.


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

    `ids` has, for each field with one id in each instance, the ids of all instances.
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

    The model reads `fields`. See `find_id` for the ids.
    """
    name = find_id(ids)
    if name is None:
        return
    is_read = "; without it, the network also reads this field" if name in fields else ""
    warn_ambiguous(
        f'{source}: "{name}" looks like an id: {len(ids[name]):,} sets share {len({*ids[name]}):,} '
        "values. A split by set would measure sets of those that training saw; to measure new "
        f'ones, use --group {name} (group="{name}"){is_read}'
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
        warn_ambiguous(
            f'"{name}" looks like an id: {len(ids):,} sets share {len({*ids}):,} values. The '
            "intervals take each set as one observation, so they are too narrow if the sets of one "
            f'are alike; use --group {name} (group="{name}")'
        )
