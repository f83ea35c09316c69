"""What pictures call elements and features: by a table's cells and header, or by fields' names."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

from ptrnet.types import Example


def element_names(example: Example) -> list[str]:
    """The first text of each element that is no feature; none where nothing names elements."""
    if example.table is not None:
        numeric = example.table.numeric
        return [
            next((cell for k, cell in enumerate(row) if k not in numeric), "")
            for row in example.table.rows
        ]
    return [
        next((value for value in element.values() if isinstance(value, str)), "")
        for element in example.elements or ()
    ]


def feature_names(example: Example) -> list[str]:
    """One for each of d features; none where they have no names, or a category is several."""
    if example.table is not None:
        header = example.table.header
        names = [] if header is None else [header[k] for k in example.table.numeric]
    else:
        fields: Mapping[str, Any] = example.elements[0] if example.elements else {}
        names = [name for name, value in fields.items() if isinstance(value, Real)]
    return names if len(names) == example.inputs.shape[1] else []
