"""The bodies of requests and responses; `/openapi.json` shows these classes."""

from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, SkipValidation

from ptrnet.decoding import Decoder
from ptrnet.decoding.options import DECODERS, DecoderOptions
from ptrnet.errors import unknown

DECODERS_SERVED = sorted({*DECODERS} - {"reconstruct"})  # its answers depend on the clock
DECODERS_TRACED = ["beam", "greedy"]  # their answer is the first of the prefixes that they hold

# pydantic checks only the types of options. Instances and answers are checked once, with their
# task, when `requests.py` makes examples of them.
Instance = SkipValidation[list[list[float]] | list[dict[str, Any]]]
Outputs = list[int] | list[list[int]]  # 0-based; a triangulation is a list of triples


class Method(NamedTuple):
    """How instances are decoded. Requests with the same method can share a batch."""

    decoder: Decoder
    constrained: bool
    augment: int


class MethodOptions(BaseModel):
    """The decoding options of `ptrnet solve`, under the same names."""

    model_config = ConfigDict(extra="forbid")

    decoder: str = Field("greedy", json_schema_extra={"enum": [*DECODERS_SERVED]})
    beam_size: int | None = None
    samples: int | None = None
    temperature: FiniteFloat | None = None
    window: int | None = None
    inner: str | None = None
    augment: int = Field(1, ge=1)
    constrained: bool = True
    seed: int = Field(0, ge=0)

    def method(self) -> Method:
        """Return the decoder with its settings.

        Raises:
            InputError: an unknown decoder, or an option that is out of range or has no effect.
        """
        if self.decoder not in DECODERS_SERVED:
            raise unknown("decoder", self.decoder, DECODERS_SERVED)
        options = self.model_dump(include=set(DecoderOptions.__dataclass_fields__))
        return Method(DecoderOptions(**options).build(self.seed), self.constrained, self.augment)


class SolveRequest(MethodOptions):
    """Several `instances`, or one `instance`, and how to decode them.

    An instance is a list of elements. An element is a list of numbers, or an object if the model
    reads fields.
    """

    instances: list[Instance] | None = None
    instance: Instance | None = None


class EvaluateRequest(SolveRequest):
    """The same, with the true answer to each instance, or to the one `instance`."""

    outputs: SkipValidation[list[Outputs] | Outputs | None] = None


class TraceRequest(BaseModel):
    """One instance, and how to decode it."""

    model_config = ConfigDict(extra="forbid")

    instance: Instance
    decoder: str = Field("greedy", json_schema_extra={"enum": [*DECODERS_TRACED]})
    beam_size: int | None = None
    constrained: bool = True

    def method(self) -> Method:
        """Return the decoder with its settings. Raises InputError as `MethodOptions.method`."""
        if self.decoder not in DECODERS_TRACED:
            raise unknown("decoder", self.decoder, DECODERS_TRACED)
        return MethodOptions(**self.model_dump(exclude={"instance"})).method()


class Answer(BaseModel):
    """The answer to one instance."""

    outputs: Outputs
    log_likelihood: float  # log-probability of the answer by the model
    cost: float | None  # a tour's length; null if the task has no costs or this is not a tour
    warnings: list[str]  # how the instance differs from those that the model was trained on


class Header(BaseModel):
    """What every response says about the model."""

    task: str
    model: str
    decoder: str


class SolveResponse(Header):
    """The answers to the instances, in the order of the instances."""

    answers: list[Answer]
    seconds: float  # since the end of the request's body


class EvaluateResponse(Header):
    """The metrics as `ptrnet evaluate --json` prints them."""

    instances: int
    metrics: dict[str, dict[str, float | int | bool | None]]
    seconds: float


class Prefix(BaseModel):
    """The beginning of an answer: a prefix of the step before, and one more token."""

    parent: int  # index among the prefixes before the step
    token: int  # 0 is END; the first tokens are the special ones, then the elements follow
    log_likelihood: float


class TraceStep(BaseModel):
    """One step of the search."""

    # For each prefix before the step and each token; null if the constraint forbids the token.
    probabilities: list[list[float | None]]
    prefixes: list[Prefix]  # after the step, the likeliest first


class ExactAnswer(BaseModel):
    """The answer of an algorithm."""

    outputs: Outputs
    cost: float | None
    labeller: str
    proved: bool  # false: the best answer found before the labeller gave up its proof


class TraceResponse(Header):
    """The model's answer, the steps that led to it, and the exact answer."""

    special_names: list[str]  # of the first tokens
    tokens: list[int]  # of the answer
    steps: list[TraceStep]
    answer: Answer
    exact: ExactAnswer | None  # null if no labeller fits the instance, and while it is pending
    pending: bool  # the exact answer is still being computed; send the same request again for it
    correct: bool | None  # whether the model's answer is as good as the exact one
    metrics: dict[str, float | None]
    seconds: float


class Model(BaseModel):
    """A model of the service."""

    name: str
    task: str
    model: str  # the architecture
    features: int  # numbers of an element
    fields: list[str]  # the fields that are read if elements are objects; else empty
    n: str | None  # the sizes that the model was trained on
    scores: list[dict[str, Any]]


class ModelCard(Model):
    """A model with its card."""

    card: str  # Markdown
