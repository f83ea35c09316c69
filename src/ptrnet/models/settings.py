"""The settings of models. This module must not import torch, so that `--help` stays fast.

Each model of ptrnet has one of the classes below as its `Settings`. The fields of these classes are
keyword arguments of `models.build` and options of `ptrnet train`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ptrnet.errors import InputError, short
from ptrnet.plugins import load
from ptrnet.settings import OWN_EXAMPLES, Option, Settings, options_of, setting

MAX_UNITS = 65_536  # a square matrix of this size takes 17 GB in float32


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Settings):
    """Settings of every model.

    Attributes:
        scores_once: whether the scores of elements are independent of the previous tokens.
        keeps_signs: whether the model guarantees the signs of `Schema.signs`.
    """

    scores_once: ClassVar[bool] = False
    keeps_signs: ClassVar[bool] = False

    hidden_size: int = setting(256, "units of encoder and decoder", ge=1, le=MAX_UNITS)
    ensemble: int = setting(
        1,
        "networks to train from different initial weights; their probabilities are averaged",
        ge=1,
        le=64,
    )

    @property
    def sees_order(self) -> bool:
        """Whether answers may depend on the order of the elements."""
        return True


@dataclass(frozen=True, kw_only=True)
class RecurrentSettings(ModelSettings):
    """Settings of models whose encoder and decoder are recurrent."""

    cell: Literal["lstm", "gru"] = setting("lstm", "recurrent cell of encoder and decoder")
    layers: int = setting(1, "layers of the encoder and of the decoder", ge=1, le=64)
    bidirectional: bool = setting(False, "half of the encoder's units read the elements backwards")


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(RecurrentSettings):
    """Settings of models that score encoder states against decoder states."""

    score: Literal["additive", "dot", "general"] = setting(
        "additive", "attention score of an element"
    )


@dataclass(frozen=True, kw_only=True)
class LayerSettings(ModelSettings):
    """Settings of models that have the layers of a transformer."""

    heads: int = setting(4, "transformer: attention heads", ge=1, le=MAX_UNITS)
    encoder_layers: int = setting(4, "transformer: layers of the encoder", ge=1, le=64)
    feed_forward: int = setting(
        512, "transformer: hidden units of a feed-forward layer", ge=1, le=MAX_UNITS
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % self.heads:
            raise InputError(
                f"hidden_size: expected a multiple of {self.heads} heads, got {self.hidden_size}"
            )

    @property
    def sees_order(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class EncoderSettings(LayerSettings):
    """Settings of models whose encoder reads the features of elements."""

    octaves: int = setting(
        0, "transformer: number of frequencies of sines and cosines of each feature", ge=0, le=16
    )


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(EncoderSettings):
    """Settings of the transformer."""

    decoder_layers: int = setting(2, "transformer: layers of the decoder", ge=1, le=64)
    see_indices: bool = setting(False, "transformer: adds sines of the elements' indices")
    see_deviations: bool = setting(
        False, "transformer: also reads how far each feature is from its mean over the instance"
    )
    edge_frames: bool = setting(
        False, "transformer: scores use positions relative to the last edge of the answer"
    )
    frame_edge: Literal["last", "open"] = setting(
        "last", "transformer: the edge for edge_frames; use open if answers are sequences of apexes"
    )

    @property
    def sees_order(self) -> bool:
        return self.see_indices


@dataclass(frozen=True, kw_only=True)
class RemainingSettings(EncoderSettings):
    """Settings of the model that encodes the remaining elements at every step."""

    nearest: int = setting(
        0,
        "remaining-ptr-net: encode only this many elements near the last one; 0: all",
        ge=0,
        le=MAX_UNITS,
    )
    repeats: bool = setting(False, "remaining-ptr-net: an answer may repeat elements")
    align: bool = setting(
        False,
        "remaining-ptr-net: rotate and mirror points in the plane, so that the first element of an "
        "answer is always in the same direction from its last one",
    )
    see_distances: bool = setting(
        False, "remaining-ptr-net: attention depends on the distances between points"
    )


_SPACES = (
    "set-ptr-net: mix a chooser with the network, which compares elements with at most this many "
    "of the examples, for answers of the kinds choice and grades; 0: none; 400 if your "
    "own examples have fewer than 50,000 elements together"
)


@dataclass(frozen=True, kw_only=True)
class SetSettings(EncoderSettings):
    """Settings of the model that scores each element of a set once."""

    scores_once = True
    keeps_signs = True

    hidden_size: int = setting(64, "units of the network", ge=1, le=MAX_UNITS)
    encoder_layers: int = setting(2, "layers of the network", ge=1, le=64)
    feed_forward: int = setting(128, "hidden units of a feed-forward layer", ge=1, le=MAX_UNITS)
    dropout: float = setting(
        0.0, "set-ptr-net: dropout, the share of units to drop in training", ge=0, lt=1
    )
    see_logs: bool = setting(
        False, "set-ptr-net: also read the logarithms of features that are positive in all examples"
    )
    answer: Literal["any", "all", "one"] = setting(
        "any", "set-ptr-net: number of elements in an answer"
    )
    repeats: bool = setting(False, "set-ptr-net: an answer may repeat elements")
    positions: int = setting(
        0,
        "set-ptr-net: the last features, which mark where an element was shown; follows from "
        "--position",
        ge=0,
    )
    trees: int = setting(
        0,
        "set-ptr-net: the most gradient-boosted trees to mix with the network, for answers of the "
        "kinds choice and grades; 0: none; for your own examples, 300 with the extra trees",
        ge=0,
        le=10_000,
    )
    spaces: int = setting(0, _SPACES, ge=0, le=10_000)


@dataclass(frozen=True, kw_only=True)
class BoxSettings(LayerSettings):
    """Settings of the model for the boxes of a page."""

    hidden_size: int = setting(96, "units of the network", ge=1, le=MAX_UNITS)
    feed_forward: int = setting(192, "hidden units of a feed-forward layer", ge=1, le=MAX_UNITS)
    pair_units: int = setting(
        32, "box-ptr-net: units of the layers that read pairs of boxes", ge=1, le=MAX_UNITS
    )
    drop_labels: float = setting(
        0.45, "box-ptr-net: share of pages whose labels are dropped in training", ge=0, le=0.75
    )


@dataclass(frozen=True, kw_only=True)
class LogitSettings(ModelSettings):
    """Settings of the conditional logit, which has no choices to make."""

    scores_once = True
    keeps_signs = True

    hidden_size: int = setting(0, "a conditional logit has no hidden units", ge=0, le=0)
    ensemble: int = setting(1, "a conditional logit is fitted once", ge=1, le=1)
    nests: str = setting(
        "",
        "conditional-logit: a nested logit, with the field that names alternatives and the nests "
        "of those that are alike, such as 'mode: bus+train' or 'mode: bus+train, car+bike'",
        owner=OWN_EXAMPLES,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.nests:
            return
        levels = [level for nest in self.nested for level in nest]
        if not (self.nest_field and levels and all(levels)):
            raise InputError(
                "nests: expected a field and those of its values that are alike, such as 'mode: "
                f"bus+train, car+bike', got {short(self.nests)}"
            )
        if len({*levels}) < len(levels):
            raise InputError(f"nests: expected each value once, got {short(self.nests)}")

    @property
    def nest_field(self) -> str:
        """The field whose values are in nests; empty without nests."""
        return self.nests.partition(":")[0].strip()

    @property
    def nested(self) -> list[list[str]]:
        """The values of the field that are in each nest."""
        _, _, nests = self.nests.partition(":")
        return [[level.strip() for level in nest.split("+")] for nest in nests.split(",") if nests]

    @property
    def sees_order(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class ChooserSettings(ModelSettings):
    """Settings of the model that is fitted to a few hundred examples. It has no units."""

    scores_once = True

    hidden_size: int = setting(1, "the model has no network", ge=1, le=1)
    ensemble: int = setting(1, "the model is fitted at once, so there is one", ge=1, le=1)
    spaces: int = setting(0, _SPACES, ge=0, le=10_000)
    answer: Literal["all", "one"] = setting("one", "chooser: number of elements in an answer")

    @property
    def sees_order(self) -> bool:
        return False


def every_setting() -> dict[str, Option]:
    """All settings of all models, by name.

    If a subclass redefines a setting of its base class, use the definition of the base class.
    """
    load()  # plug-ins define settings, too
    settings: dict[str, Option] = {}
    classes: list[type[ModelSettings]] = [ModelSettings]
    for cls in classes:  # the list grows in the loop: breadth first
        settings = {**options_of(cls), **settings}
        classes += cls.__subclasses__()
    return settings
