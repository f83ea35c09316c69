"""Bodies of requests and responses. `/openapi.json` describes these classes."""

from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, SkipValidation

from ptrnet.decoding import Decoder
from ptrnet.decoding.options import DECODERS, DecoderOptions
from ptrnet.errors import unknown

# Answers of reconstruct depend on the speed of the machine, because it has a time limit.
DECODERS_SERVED = sorted({*DECODERS} - {"reconstruct"})
DECODERS_TRACED = ["beam", "greedy"]  # their answer is the first prefix of the last step

# pydantic checks only the options. `requests.py` checks instances and answers, because their rules
# depend on the task.
Instance = SkipValidation[list[list[float]] | list[dict[str, Any]] | dict[str, Any]]
Outputs = list[int] | list[list[int]]  # 0-based; a triangulation is a list of triples


class Method(NamedTuple):
    """How to decode instances. Requests with equal methods can share a batch."""

    decoder: Decoder
    constrained: bool
    augment: int
    improve: bool


class MethodOptions(BaseModel):
    """Decoding options, with the names that they have in `ptrnet solve`."""

    model_config = ConfigDict(extra="forbid")

    decoder: str = Field("greedy", json_schema_extra={"enum": [*DECODERS_SERVED]})
    beam_size: int | None = None
    samples: int | None = None
    temperature: FiniteFloat | None = None
    window: int | None = None
    inner: str | None = None
    augment: int = Field(1, ge=1)
    constrained: bool = True
    improve: bool = True
    seed: int = Field(0, ge=0)

    def method(self) -> Method:
        """Return the decoding method that the options describe.

        Raises:
            InputError: the decoder is unknown, or an option is out of range or has no effect.
        """
        if self.decoder not in DECODERS_SERVED:
            raise unknown("decoder", self.decoder, DECODERS_SERVED)
        options = self.model_dump(include=set(DecoderOptions.__dataclass_fields__))
        decoder = DecoderOptions(**options).build(self.seed)
        return Method(decoder, self.constrained, self.augment, self.improve)


class SolveRequest(MethodOptions):
    """A list of `instances` or one `instance`, and how to decode them.

    An instance is a list of elements, or an object for a problem. An element is a list of numbers,
    or an object if the model reads fields. If the model was trained on a wide table, an instance
    may also be an object, a row of such a table.
    """

    instances: list[Instance] | None = None
    instance: Instance | None = None


class EvaluateRequest(SolveRequest):
    """Instances with true answers. `outputs` is a list of answers, or the answer to `instance`."""

    outputs: SkipValidation[list[Outputs] | Outputs | None] = None


class TraceRequest(BaseModel):
    """One instance, and how to decode it."""

    model_config = ConfigDict(extra="forbid")

    instance: Instance
    decoder: str = Field("greedy", json_schema_extra={"enum": [*DECODERS_TRACED]})
    beam_size: int | None = None
    constrained: bool = True

    def method(self) -> Method:
        """Return the decoding method. Raises InputError as `MethodOptions.method` does."""
        if self.decoder not in DECODERS_TRACED:
            raise unknown("decoder", self.decoder, DECODERS_TRACED)
        # The answer has to be that of the steps, so it is not improved.
        return MethodOptions(**self.model_dump(exclude={"instance"}), improve=False).method()


class Answer(BaseModel):
    """The answer to one instance."""

    outputs: Outputs
    log_likelihood: float  # the model's log-probability of the answer
    cost: float | None  # null if the task has no costs or the answer is not valid
    warnings: list[str]  # how the instance differs from the training instances
    scores: list[float] | None = Field(
        description="The score of each element, as `model.scores` returns it: a list in the order "
        "of the elements, to sort them by. null if the model was not trained on a user's own "
        "examples."
    )
    probabilities: list[float] | None = Field(
        description="The probability of each element, as `model.predict_proba` returns it. null if "
        "`scores` is null."
    )
    alternatives: list[str] | None = Field(
        description="The name of each element, in the order of `scores`, if the model was trained "
        "on a wide table: alternatives that cannot be chosen are left out. Otherwise null."
    )


class Header(BaseModel):
    """Fields of every response to solve, evaluate and trace."""

    task: str
    model: str
    decoder: str


class SolveResponse(Header):
    """Answers, in the order of the instances."""

    answers: list[Answer]
    seconds: float  # from the end of the request's body to the response


class EvaluateResponse(Header):
    """Metrics, in the format of `ptrnet evaluate --json`."""

    instances: int
    metrics: dict[str, dict[str, float | int | bool | None]]
    warnings: list[str]  # how the instances differ from those of the training
    seconds: float


class Prefix(BaseModel):
    """The beginning of an answer: a prefix of the previous step and one more token."""

    parent: int  # index of the prefix in the previous step
    # Special tokens come first (0 is END), then the tokens of the elements. If the task's `ways` is
    # 2, each element has two tokens: one to reach it directly, and one to reach it via element 0.
    token: int
    log_likelihood: float


class TraceStep(BaseModel):
    """One step of the search."""

    # A row for each prefix of the previous step, a column for each token. null if the constraint
    # forbids the token.
    probabilities: list[list[float | None]]
    prefixes: list[Prefix]  # the prefixes after the step, the most likely first


class ExactAnswer(BaseModel):
    """The answer of the task's first labeller, in most tasks an exact algorithm."""

    outputs: Outputs
    cost: float | None
    labeller: str
    # False if the labeller is a heuristic, or if it stopped before it could prove the answer.
    proved: bool


class TraceResponse(Header):
    """The model's answer, the steps that led to it, and the exact answer."""

    special_names: list[str]  # names of the special tokens
    tokens: list[int]  # tokens of the answer
    steps: list[TraceStep]
    answer: Answer
    # null if pending, if the task's first labeller has no answer, or if no algorithm can know it
    exact: ExactAnswer | None
    pending: bool  # true if the exact answer is still being computed: send the request again later
    # Whether the model's answer is as good as the exact answer; null if no exact answer is proved.
    correct: bool | None
    metrics: dict[str, float | None]
    seconds: float


class Model(BaseModel):
    """Facts about a model of the service."""

    name: str
    task: str
    model: str  # the architecture
    features: int  # numbers in an element
    fields: list[str]  # fields that the model reads if elements are objects; otherwise empty
    labels: list[str]  # names of labels that boxes may have; empty if elements are not boxes
    settings: dict[str, Any]  # such as the direction in which the model reads a page
    n: str | None  # sizes of the training instances
    scores: list[dict[str, Any]]


class ModelCard(Model):
    """Facts about a model, and its card."""

    card: str  # Markdown
