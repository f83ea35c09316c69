"""What requests and responses are made of; `/openapi.json` shows these classes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, get_args, get_type_hints

from ptrnet.decoding import Decoder
from ptrnet.decoding.options import DECODERS, DecoderOptions
from ptrnet.errors import InputError, short, unknown
from ptrnet.settings import check

# As JSON writes them; Python would take more.
_NUMBERS = {
    int: re.compile(r"-?[0-9]{1,18}"),
    float: re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?"),
}
_NOT_SERVED = "reconstruct"  # its answers depend on the clock


class Method(NamedTuple):
    """How instances are answered: requests of one method can share a batch."""

    decoder: Decoder
    constrained: bool
    augment: int


@dataclass(frozen=True)
class MethodOptions:
    """The options of `ptrnet solve` that say how answers are decoded, under the same names."""

    decoder: str = "greedy"
    beam_size: int | None = None
    samples: int | None = None
    temperature: float | None = None
    window: int | None = None
    inner: str | None = None
    augment: int = 1
    constrained: bool = True
    seed: int = 0

    @classmethod
    def from_table(cls, table: dict[str, Any]) -> "MethodOptions":
        """From names and values; null stands for an option that was left out.

        Raises:
            InputError: a value of another type.
        """
        hints = get_type_hints(MethodOptions)
        values = {
            name: check(name, value, _plain(hints[name]))
            for name, value in table.items()
            if value is not None
        }
        return MethodOptions(**values)

    @classmethod
    def from_texts(cls, texts: Sequence[tuple[str, str]]) -> "MethodOptions":
        """From names and values as an address has them: `?decoder=beam&beam_size=4`.

        Raises:
            InputError: an unknown name, with the nearest, one that occurs twice, or a text that
                stands for no value.
        """
        hints = get_type_hints(MethodOptions)
        table: dict[str, Any] = {}
        for name, text in texts:
            if name not in hints:
                raise unknown("option", name, hints)
            if name in table:
                raise InputError(f"{name}: expected once, got it twice")
            table[name] = _value(name, text, _plain(hints[name]))
        return cls.from_table(table)

    def method(self) -> Method:
        """The method.

        Raises:
            InputError: an unknown decoder, or an option that is out of range or does nothing.
        """
        served = set(DECODERS) - {_NOT_SERVED}
        if self.decoder not in served:
            raise unknown("decoder", self.decoder, served)
        for name, minimum in (("seed", 0), ("augment", 1)):
            if getattr(self, name) < minimum:
                raise InputError(
                    f"{name}: expected a whole number of {minimum} or more, "
                    f"got {short(getattr(self, name))}"
                )
        names = {field.name for field in fields(DecoderOptions)} & vars(self).keys()
        options = DecoderOptions(**{name: getattr(self, name) for name in names})
        return Method(options.build(self.seed), self.constrained, self.augment)


@dataclass(frozen=True)
class SolveRequest(MethodOptions):
    """`instances`, or one `instance`; each is a list of elements, each a list of numbers."""

    instances: list[list[list[float]]] | None = None
    instance: list[list[float]] | None = None


@dataclass(frozen=True)
class EvaluateRequest(SolveRequest):
    """The same with the true answer to each instance, 0-based."""

    outputs: list[list[int] | list[list[int]]] | None = None


@dataclass(frozen=True)
class TraceRequest:
    """One instance, and how it is decoded: `greedy`, or `beam` with its size."""

    instance: list[list[float]] | None = None
    decoder: str = "greedy"
    beam_size: int | None = None
    constrained: bool = True


@dataclass(frozen=True)
class Answer:
    """The answer to one instance."""

    outputs: list[int] | list[list[int]]  # 0-based; of triangulations lists of three
    log_likelihood: float  # log-probability that the model gives this answer
    cost: float | None  # of a tour its length; None where the task has none, or the tour is none
    warnings: list[str]  # of an instance unlike those that the model was trained on


@dataclass(frozen=True)
class SolveResponse:
    """An answer to each instance, in their order."""

    task: str
    model: str
    decoder: str
    answers: list[Answer]
    seconds: float  # from the end of the request's body on


@dataclass(frozen=True)
class Prefix:
    """A beginning of an answer: one before the step, and a token more."""

    parent: int  # among the prefixes before the step
    token: int  # 0 is END; `special_names` are the first, then the elements
    log_likelihood: float


@dataclass(frozen=True)
class TraceStep:
    """A step of the search."""

    # By the model, of each prefix before the step and each token; null where it may not come.
    probabilities: list[list[float | None]]
    prefixes: list[Prefix]  # after the step, the likeliest first


@dataclass(frozen=True)
class ExactAnswer:
    """By an algorithm."""

    outputs: list[int] | list[list[int]]
    cost: float | None
    labeller: str
    proved: bool  # else the best that was known when the proof was given up


@dataclass(frozen=True)
class TraceResponse:
    """An answer, how it came about, and the exact one."""

    task: str
    model: str
    decoder: str
    special_names: list[str]  # of the first tokens
    tokens: list[int]  # of the answer
    steps: list[TraceStep]
    answer: Answer
    exact: ExactAnswer | None  # null where no labeller serves it, and while it is pending
    pending: bool  # whether the exact answer was still computed: the same request gets it later
    correct: bool | None  # whether the answer is as good as the exact one
    metrics: dict[str, float | None]
    seconds: float


@dataclass(frozen=True)
class EvaluateResponse:
    """As `ptrnet evaluate --json` prints it."""

    task: str
    model: str
    decoder: str
    instances: int
    metrics: dict[str, dict[str, float | int | bool | None]]
    seconds: float


@dataclass(frozen=True)
class Model:
    """A model of the service."""

    name: str
    task: str
    model: str  # its architecture
    features: int  # numbers of an element
    fields: list[str]  # of elements that are objects those that are read; none of numbers
    n: str | None  # the sizes it was trained on
    scores: list[dict[str, Any]]


@dataclass(frozen=True)
class ModelCard(Model):
    """The same with its card."""

    card: str  # Markdown


def _plain(hint: Any) -> Any:
    """A type without its None."""
    return next((part for part in get_args(hint) if part is not type(None)), hint)


def _value(name: str, text: str, kind: Any) -> Any:
    """A text of an address as a value."""
    if kind is bool:
        if text not in ("true", "false"):
            raise InputError(f"{name}: expected true or false, got {short(text)}")
        return text == "true"
    if kind is not str and not _NUMBERS[kind].fullmatch(text):
        expected = "a whole number" if kind is int else "a number"
        raise InputError(f"{name}: expected {expected}, got {short(text)}")
    return kind(text)
