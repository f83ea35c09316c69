"""The tensors of what a model has encoded, by names: a graph has tensors only, no objects."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from torch import Tensor, nn

from ptrnet.models.base import Encoded


def tensors_of(encoded: Encoded) -> dict[str, Tensor]:
    """Every tensor but the state's, by the path of fields to it; one in several places once.

    Weights are left out: they are the graph's own; and the number of tokens, which the recording
    of a graph makes a tensor.
    """
    tensors: dict[str, Tensor] = {}
    for name, tensor in _walk(replace(encoded, num_tokens=0, state=()), "encoded"):
        if not any(tensor is other for other in tensors.values()):
            tensors[name] = tensor
    return tensors


def with_tensors(encoded: Encoded, tensors: Mapping[str, Tensor]) -> Encoded:
    """The same object around other tensors, which have the names that `tensors_of` gives."""
    replacements = {id(old): tensors[name] for name, old in tensors_of(encoded).items()}
    rebuilt: Encoded = _rebuild(replace(encoded, state=()), replacements)
    return rebuilt


def _walk(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        yield name, value
    elif is_dataclass(value):
        for f in fields(value):
            if f.init:  # others are made of these
                yield from _walk(getattr(value, f.name), f"{name}_{f.name}")
    elif isinstance(value, list | tuple):
        for k, item in enumerate(value):
            yield from _walk(item, f"{name}_{k}")


def _rebuild(value: Any, replacements: Mapping[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return replacements.get(id(value), value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        return replace(
            value, **{name: _rebuild(part, replacements) for name, part in parts.items()}
        )
    if isinstance(value, list | tuple):
        return type(value)(_rebuild(item, replacements) for item in value)
    return value
