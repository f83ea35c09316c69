"""Groups of instances: the sets of one person, household, document or session.

Instances of one group are alike. So a group is never on both sides of a split, such as that between
training and validation, and the intervals of scores take a group as one observation. A model reads
neither groups nor their ids.

`Example.group` and `Dataset.groups` hold a code of the group's id instead of the id itself: equal
ids have equal codes, in all chunks of a file, in all processes and in all files.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from ptrnet.data.arrays import split
from ptrnet.data.cells import check_id
from ptrnet.errors import InputError
from ptrnet.types import Dataset, Example, Indices

KEY = "group"  # the key of a group's id in a line of JSON, unless the user names another key


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
        example: the instance.
        field: the name of the field.
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


def with_groups(examples: Iterable[Example], field: str = "") -> Iterator[Example]:
    """Yield the examples with the codes of their groups.

    Args:
        examples: the examples. If `field` is empty, they may already have groups.
        field: the field of the groups' ids; see `shared_value`. If it is empty, the ids are the
            values of KEY, or the examples have no groups.

    Raises:
        InputError: a group's id is neither a name nor a number, or only some examples have one.
    """
    has_groups = None
    for example in examples:
        group = example.group
        if field or KEY in example.extra:
            value = shared_value(example, field, "group") if field else example.extra[KEY]
            group = code_of(check_id(value, f'{example.source}: "{field or KEY}"'))
        if has_groups is None:
            has_groups = group is not None
        elif has_groups != (group is not None):
            expected = "a group" if has_groups else "no group"
            raise InputError(f"{example.source}: expected {expected}, as in earlier examples")
        yield example.replace(group=group)


def codes_of(examples: Iterable[Example]) -> Indices | None:
    """Return the codes `(B,)` of the examples' groups, or None without groups."""
    codes = [example.group for example in examples]
    return None if not codes or None in codes else np.array(codes)


def grouped(data: Dataset, groups: Any) -> Dataset:
    """Return a dataset with groups.

    Args:
        data: the dataset.
        groups: the name of a field, as in `with_groups`; or a group for each instance: names or
            numbers in a list, an array or a series.

    Raises:
        InputError: as in `with_groups`, or the number of groups is wrong.
    """
    if isinstance(groups, str):
        return _with_codes(data, codes_of(with_groups(data, groups)))
    values = split(groups, "group")
    if len(values) != len(data):
        raise InputError(
            f"group: expected a group for each of the {len(data)} examples, got {len(values)}"
        )
    ids = [check_id(value, f"group: example {k}") for k, value in enumerate(values)]
    return _with_codes(data, np.array([code_of(value) for value in ids]))


def _with_codes(data: Dataset, codes: Indices | None) -> Dataset:
    if codes is None:
        return data
    return data.with_columns(group=codes.tolist())
