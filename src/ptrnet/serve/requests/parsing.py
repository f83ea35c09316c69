"""Bodies as checked examples and a method, with the complaints of the command line."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from ptrnet.data import checks
from ptrnet.data.arrays import records_of
from ptrnet.data.dataset import instances_of
from ptrnet.data.formats.parts import json_values
from ptrnet.errors import InputError, short, unknown
from ptrnet.serve.limits import Limits
from ptrnet.serve.problems import too_large
from ptrnet.serve.requests.npy import parse_npy
from ptrnet.serve.requests.schemas import (
    EvaluateRequest,
    Method,
    MethodOptions,
    SolveRequest,
    TraceRequest,
)
from ptrnet.tasks.base import Task
from ptrnet.types import Example

_INPUTS = ("instances", "instance")
_MIN_ELEMENTS = 8  # elements that a prefix of the smallest instance takes memory for
_TRACED = ("greedy", "beam")  # whose answer is the first of the prefixes that they hold


class Question(NamedTuple):
    """What a request wants to know."""

    examples: list[Example]  # with the true answers where they are to be measured
    method: Method


def parse_solve(body: bytes, task: Task, limits: Limits) -> Question:
    """The instances of a `SolveRequest`. Raises InputError, or Problem 413."""
    document = _document(body, SolveRequest)
    instances = _instances(document)
    method = MethodOptions.from_table(document).method()
    _check_sizes(map(_length, instances), method, limits)
    return Question([_example(values, task, k) for k, values in enumerate(instances)], method)


def parse_evaluate(body: bytes, task: Task, limits: Limits) -> Question:
    """The examples of an `EvaluateRequest`. Raises InputError, or Problem 413."""
    document = _document(body, EvaluateRequest)
    outputs = document.pop("outputs", None)
    is_one = "instance" in document
    instances = _instances(document)
    method = MethodOptions.from_table(document).method()
    _check_sizes(map(_length, instances), method, limits)
    answers = [outputs] if is_one else outputs
    if not instances:
        raise InputError("instances: expected one or more, got none")
    if not isinstance(answers, list) or len(answers) != len(instances):
        raise InputError(
            f"outputs: expected a list with the answers to all instances, here {len(instances)}, "
            f"got {_described(outputs)}"
        )
    examples = []
    for k, (values, answer) in enumerate(zip(instances, answers, strict=True)):
        example = _example(values, task, k)
        source = f'{example.source}: "outputs"'
        indices = json_values.flat_indices(answer, task.item_size, source)
        known = checks.check_answer(indices, len(example.inputs), task, source)
        examples.append(example.replace(outputs=known))
    return Question(examples, method)


def parse_trace(body: bytes, task: Task, limits: Limits) -> Question:
    """The instance of a `TraceRequest`. Raises InputError, or Problem 413."""
    document = _document(body, TraceRequest)
    if "instance" not in document:
        raise InputError('body: expected "instance", got none')
    (values,) = _instances(document)
    decoder = document.get("decoder")
    if isinstance(decoder, str) and decoder not in _TRACED:
        raise unknown("decoder", decoder, _TRACED)
    method = MethodOptions.from_table(document).method()
    n = _length(values)
    _check_sizes([n], method, limits)
    steps, tokens = task.max_length(max(n, task.min_elements)) + 1, task.num_specials + n
    count = steps * method.decoder.size * tokens
    if count > limits.max_trace:
        raise too_large(
            f"a trace of {n} elements: expected at most {limits.max_trace} probabilities, "
            f"got {steps} steps times {method.decoder.size} prefixes times {tokens} tokens"
        )
    return Question([_example(values, task, 0)], method)


def parse_array(
    body: bytes, options: Sequence[tuple[str, str]], task: Task, limits: Limits
) -> Question:
    """The instances of an `.npy` body, with the options of its address.

    Raises:
        InputError: no array of instances, or a wrong option.
        Problem: 413 for too many of them.
    """
    method = MethodOptions.from_texts(options).method()
    array = parse_npy(body)
    count, n = (1, *array.shape)[-3:-1]
    _check_sizes([n] * min(count, limits.max_elements + 1), method, limits)
    data, _ = instances_of(array, task)
    return Question(list(data), method)


def _document(body: bytes, kind: type) -> dict[str, Any]:
    """The JSON object, whose keys are fields of `kind`."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"body: not UTF-8 at byte {error.start + 1}") from None
    # `check_instance` refuses infinite numbers, so parse floats the fast way.
    document = json_values.parse_object(text, "body", float)
    known = {field.name for field in fields(kind)}
    for key in document:
        if key not in known:
            raise unknown("field", key, known)
    return document


def _instances(document: dict[str, Any]) -> list[Any]:
    """Takes the instances out of a document."""
    names = [name for name in _INPUTS if name in document]
    if len(names) != 1:
        both = "both" if names else "neither"
        raise InputError(f'body: expected "instances" or "instance", got {both}')
    values = document.pop(names[0])
    if not isinstance(values, list):
        raise InputError(f"{names[0]}: expected a list, got {_described(values)}")
    return [values] if names[0] == "instance" else values


def _described(value: Any) -> str:
    if value is None:
        return "nothing"
    return f"{len(value)} of them" if isinstance(value, list) else short(value)


def _length(values: Any) -> int:
    return len(values) if isinstance(values, list) else 0


def _example(values: Any, task: Task, number: int) -> Example:
    source = f"instance {number}"
    json_values.check_numbers(values, source)
    inputs = checks.check_instance(values, task, source)
    return Example(inputs, source=source, elements=records_of(values))


def _check_sizes(lengths: Iterable[int], method: Method, limits: Limits) -> None:
    """Refuses instances that are too large, alone or together, before they are made arrays."""
    total = per_prefix = 0
    for k, n in enumerate(lengths):
        total += max(n, 1)
        per_prefix += max(n, _MIN_ELEMENTS)
        if n > limits.max_n:
            raise too_large(f"instance {k}: expected at most {limits.max_n} elements, got {n}")
    if total > limits.max_elements:
        raise too_large(
            f"expected at most {limits.max_elements} elements of all instances, got {total}"
        )
    prefixes = method.decoder.size * method.augment
    if prefixes * per_prefix > limits.max_prefix_elements and prefixes > 1:
        raise too_large(
            f"expected at most {limits.max_prefix_elements} elements times prefixes and views, "
            f"each instance as of {_MIN_ELEMENTS} or more, got {per_prefix} times {short(prefixes)}"
        )
