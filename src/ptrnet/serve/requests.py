"""Parsing of requests: from bytes to checked examples and a decoding method.

`BodyReader` limits the size of a body and the time until the body has arrived. pydantic checks the
options. `_question` checks each instance once, by the rules of the model's task.
"""

import asyncio
import io
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from ptrnet.data import checks
from ptrnet.data.checks import from_dictionary
from ptrnet.data.dataset import checked_instances
from ptrnet.data.formats.parts.json_values import parse_object
from ptrnet.decoding.search import Search
from ptrnet.decoding.trace import Traced
from ptrnet.errors import InputError, short
from ptrnet.serve.errors import CLOSE, RETRY, Refusal, one_line
from ptrnet.serve.limits import Limits
from ptrnet.serve.schemas import EvaluateRequest, Method, MethodOptions, SolveRequest, TraceRequest
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset

JSON, NPY = "application/json", "application/x-npy"
MAX_BODIES = 8  # all arriving bodies together may have `MAX_BODIES * max_body` bytes
_REAL_KINDS = "fiu"  # NumPy's letters for real numbers
# An instance with fewer elements takes about as much memory per prefix as one with this many.
_MIN_ELEMENTS = 8

Body = TypeVar("Body", bound=BaseModel)


class Question(NamedTuple):
    """The checked content of a request: instances, and how to decode them."""

    data: Dataset  # includes the true answers if the request has them
    method: Method


Parse = Callable[..., Question]  # of a body (bytes), a `task` and `limits`


class BodyReader:
    """Reads the bodies of requests. All bodies that are arriving share a budget of bytes.

    The limits `max_body` and `body_seconds` apply to each body.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits, self._free = limits, MAX_BODIES * limits.max_body

    async def read(self, request: Request) -> bytes:
        """Return the whole body.

        If a body is too large, read it to its end and discard it, because many clients read the
        response only after they have sent the whole body.

        Raises:
            Refusal: 413 if the body is too large, 503 if the body takes too long. 429 if all bodies
                that arrive at the same time exceed the budget.
            ClientDisconnect: the client closed the connection.
        """
        limit = self._limits.max_body
        body, is_large = bytearray(), False
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for part in request.stream():
                    is_large = is_large or len(body) + len(part) > limit
                    if is_large:
                        continue
                    if len(part) > self._free:
                        raise Refusal(429, "too many bodies arrive at the same time", RETRY)
                    self._free -= len(part)
                    body += part
        except TimeoutError:
            seconds = self._limits.body_seconds
            raise Refusal(503, f"body: not complete after {seconds:g} seconds", CLOSE) from None
        finally:
            self._free += len(body)
        if is_large:
            raise Refusal(413, f"body: expected at most {limit} bytes")
        return bytes(body)


def media_type(request: Request, expected: Iterable[str]) -> str:
    """Return the media type of the body.

    Raises:
        Refusal: 415 if the type is unexpected or the body is compressed, 422 if a JSON request has
            options in its URL.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in expected:
        wanted = " or ".join(expected)
        raise Refusal(415, f"Content-Type: expected {wanted}, got {kind[:60] or 'none'}")
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise Refusal(415, f"Content-Encoding: expected none, got {encoding[:40]!r}")
    if kind == JSON and request.query_params:
        detail = "the options of a JSON request belong in its body, not in the address"
        raise Refusal(422, detail)
    return kind


def parse_solve(body: bytes, task: Task, limits: Limits) -> Question:
    """Parse the body of a `SolveRequest`. Raises InputError, or Refusal 413."""
    request = _parse_json(SolveRequest, body)
    return _question(_instances(request), request.method(), task, limits)


def parse_evaluate(body: bytes, task: Task, limits: Limits) -> Question:
    """Parse the body of an `EvaluateRequest`. Raises InputError, or Refusal 413."""
    request = _parse_json(EvaluateRequest, body)
    question = _question(_instances(request), request.method(), task, limits)
    count = len(question.data)
    if not count:
        raise InputError("instances: expected one or more, got none")
    outputs = request.outputs
    answers = outputs if request.instance is None else [outputs]
    if not isinstance(answers, list) or len(answers) != count:
        got = f"{len(outputs)} of them" if isinstance(outputs, list) else short(outputs)
        raise InputError(
            f"outputs: expected a list with the answers to all {count} instances, got {got}"
        )
    known = []
    for k, (answer, n) in enumerate(zip(answers, question.data.sizes.tolist(), strict=True)):
        source = f'instance {k}: "outputs"'
        known.append(checks.check_outputs(answer, n, task, source))
    data = question.data.with_answers(known)
    checks.check_feasible(data, task)
    return question._replace(data=data)


def parse_trace(body: bytes, task: Task, limits: Limits) -> Question:
    """Parse the body of a `TraceRequest`. Raises InputError, or Refusal 413."""
    request = _parse_json(TraceRequest, body)
    method = request.method()
    n = _length(request.instance, task)
    steps = task.max_length(max(n, task.facts.min_elements)) + 1
    tokens = task.facts.num_specials + n * task.facts.ways
    if steps * method.decoder.size * tokens > limits.max_trace:
        raise Refusal(
            413,
            f"a trace of {n} elements: expected at most {limits.max_trace} probabilities, "
            f"got {steps} steps times {short(method.decoder.size)} prefixes times {tokens} tokens",
        )
    assert isinstance(method.decoder, Search)  # those of DECODERS_TRACED are
    # A `Traced` equals no other decoder, so the trace gets a batch of its own.
    method = method._replace(decoder=Traced(method.decoder))
    return _question([request.instance], method, task, limits)


def parse_array(options: MethodOptions, body: bytes, task: Task, limits: Limits) -> Question:
    """Parse a `.npy` body. Its options come from the URL.

    Raises:
        InputError: the body is not an array of instances, or an option is wrong.
        Refusal: 413 if one instance, or all instances together, are too large.
    """
    array = _parse_npy(body)
    return _question(array if array.ndim == 3 else array[None], options.method(), task, limits)


def _question(instances: Any, method: Method, task: Task, limits: Limits) -> Question:
    """Return the checked instances and their method. Only this function checks instances."""
    _check_sizes((_length(instance, task) for instance in instances), method, limits)
    names = [f"instance {k}" for k in range(len(instances))]
    values = [
        from_dictionary(value, task, name) if isinstance(value, dict) else value
        for value, name in zip(instances, names, strict=True)
    ]
    return Question(checked_instances(values, names, task), method)


def _parse_json(kind: type[Body], body: bytes) -> Body:
    """Parse a JSON body, and check its options.

    pydantic's own parser would keep the last value of a duplicate key. Raises InputError if the
    body is not JSON, or an option is wrong.
    """
    try:
        text = body.decode("utf-8-sig")  # some clients begin with a byte order mark
    except UnicodeDecodeError as error:
        raise InputError(f"body: not UTF-8 text (byte {error.start + 1})") from None
    row = parse_object(text, "body", finite=False)  # `_question` names the infinite number
    try:
        return kind.model_validate(row, strict=True)
    except ValidationError as error:
        raise one_line(error.errors(include_url=False)[0], "field", kind.model_fields) from None


def _instances(request: SolveRequest) -> list[Any]:
    if (request.instances is None) == (request.instance is None):
        got = "neither" if request.instance is None else "both"
        raise InputError(f'body: expected "instances" or "instance", got {got}')
    return [request.instance] if request.instances is None else request.instances


def _length(values: Any, task: Task) -> int:
    """Return the number of elements, at most.

    For an object, this is the length of its longest field. A row of a wide table has an element for
    each alternative.
    """
    if not isinstance(values, dict):
        return len(values) if isinstance(values, list | np.ndarray) else 0
    layout = task.facts.layout
    if layout.is_wide(values):
        return len(layout.names)
    return max((_length(value, task) for value in values.values()), default=0)


def _check_sizes(lengths: Iterable[int], method: Method, limits: Limits) -> None:
    """Refuse instances that are too large, alone or together, before we convert them to arrays.

    Raises:
        Refusal: 413.
    """
    total = per_prefix = 0
    for k, n in enumerate(lengths):
        total += max(n, 1)
        per_prefix += max(n, _MIN_ELEMENTS)
        if n > limits.max_n:
            raise Refusal(413, f"instance {k}: expected at most {limits.max_n} elements, got {n}")
        if total > limits.max_elements:
            limit = limits.max_elements
            raise Refusal(413, f"expected at most {limit} elements in all, got {total} or more")
    prefixes = method.decoder.size * method.augment
    if prefixes * per_prefix > limits.max_prefix_elements and prefixes > 1:
        raise Refusal(
            413,
            f"expected elements times prefixes times views to be at most "
            f"{limits.max_prefix_elements} (an instance counts as at least {_MIN_ELEMENTS} "
            f"elements), got {per_prefix} elements times {short(prefixes)} (prefixes times views)",
        )


def _parse_npy(body: bytes) -> NDArray[Any]:
    """Return the array in a `.npy` body: real numbers, `(n, d)` or `(B, n, d)`.

    Pickled objects are refused, because unpickling a request could run its code.

    Raises:
        InputError: not a `.npy` file, or the array has another type or shape.
    """
    try:
        array = np.load(io.BytesIO(body), allow_pickle=False)
    except Exception as error:  # NumPy raises exceptions of many unrelated types
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"body: not a .npy file: {reason[:200]}") from None
    if not isinstance(array, np.ndarray):
        raise InputError("body: not a .npy file: expected one array, got an archive")
    if array.dtype.kind not in _REAL_KINDS or array.dtype.itemsize > 8:
        got = str(array.dtype)[:40]
        raise InputError(f"body: expected an array of real numbers, got type {got}")
    if array.ndim not in (2, 3):
        raise InputError(f"body: expected shape (n, d) or (B, n, d), got {str(array.shape)[:40]}")
    return array
