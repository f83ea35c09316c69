"""The settings of models, each declared once. No torch here.

A variant has one of these classes as its `Settings`; its fields are keyword arguments of
`models.build` and options of `ptrnet train`.
"""

from dataclasses import MISSING, dataclass
from typing import Literal

from ptrnet.settings import Option, Settings, options_of, setting

MAX_UNITS = 65_536  # a layer of more would not fit any memory; a dictionary likewise


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Settings):
    """Settings of every model."""

    hidden_size: int = setting(256, "units of encoder and decoder", ge=1, le=MAX_UNITS)
    ensemble: int = setting(
        1, "networks with other first weights, whose probabilities are averaged", ge=1, le=64
    )

    @property
    def sees_order(self) -> bool:
        """Whether the model can tell in which order the elements stand."""
        return True

    @property
    def scores_once(self) -> bool:
        """Whether the scores of elements do not depend on the tokens before."""
        return False


@dataclass(frozen=True, kw_only=True)
class RecurrentSettings(ModelSettings):
    """Settings of models that read and answer one element after another."""

    cell: Literal["lstm", "gru"] = setting("lstm", "cell of encoder and decoder")
    layers: int = setting(1, "layers of encoder and decoder, each", ge=1, le=64)
    bidirectional: bool = setting(False, "half of the encoder's units read backwards")


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(RecurrentSettings):
    """Settings of models that score encoder states against decoder states."""

    score: Literal["additive", "dot", "general"] = setting("additive", "how an element is scored")


@dataclass(frozen=True, kw_only=True)
class FreeRunningSettings(AttentionSettings):
    """Settings of models whose next input is made of their own distribution."""

    teacher_forcing: bool = setting(
        True,
        "soft-, hard- and multi-ptr-net are fed the true elements in training; free running if not",
    )


@dataclass(frozen=True, kw_only=True)
class ThresholdSettings(FreeRunningSettings):
    """Settings of the model whose next input is the mean of the likely elements."""

    threshold: float = setting(
        0.1, "multi-ptr-net: least probability of what is fed", ge=1e-6, le=1
    )


@dataclass(frozen=True, kw_only=True)
class DictionarySettings(RecurrentSettings):
    """Settings of models whose output is a fixed dictionary."""

    n: int = setting(MISSING, "elements of every instance", ge=1, le=MAX_UNITS)


@dataclass(frozen=True, kw_only=True)
class DictionaryAttentionSettings(DictionarySettings, AttentionSettings):
    """Settings of models whose output is a fixed dictionary, and that score encoder states."""


@dataclass(frozen=True, kw_only=True)
class LayerSettings(ModelSettings):
    """Settings of models whose elements attend to each other, in layers of a transformer."""

    heads: int = setting(4, "transformer: heads of each attention", ge=1, le=MAX_UNITS)
    encoder_layers: int = setting(4, "transformer: layers of the encoder", ge=1, le=64)
    feed_forward: int = setting(
        512, "transformer: units between a layer's two maps", ge=1, le=MAX_UNITS
    )

    @property
    def sees_order(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class EncoderSettings(LayerSettings):
    """Settings of models that see the features of elements as they are."""

    octaves: int = setting(
        0, "transformer: sines and cosines of each feature, in octaves", ge=0, le=16
    )


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(EncoderSettings):
    """Settings of the model that reads all elements at once."""

    decoder_layers: int = setting(2, "transformer: layers of the decoder", ge=1, le=64)
    see_indices: bool = setting(False, "transformer: elements' indices are seen")
    edge_frames: bool = setting(
        False, "transformer: elements are seen in the frame of the answer's last edge, too"
    )
    frame_edge: Literal["last", "open"] = setting(
        "last", "transformer: edge of the frames; open: of a sequence of apexes"
    )

    @property
    def sees_order(self) -> bool:
        return self.see_indices


@dataclass(frozen=True, kw_only=True)
class RemainingSettings(EncoderSettings):
    """Settings of the model that encodes what remains at every step."""

    nearest: int = setting(
        0,
        "remaining-ptr-net: elements encoded at a step, those near the last one; 0: all",
        ge=0,
        le=MAX_UNITS,
    )
    repeats: bool = setting(False, "remaining-ptr-net: what was pointed at may be again")


@dataclass(frozen=True, kw_only=True)
class SetSettings(EncoderSettings):
    """Settings of the model that scores each element of a set once."""

    hidden_size: int = setting(64, "units of the network", ge=1, le=MAX_UNITS)
    encoder_layers: int = setting(2, "layers of the network", ge=1, le=64)
    feed_forward: int = setting(128, "units between a layer's two maps", ge=1, le=MAX_UNITS)
    dropout: float = setting(
        0.0, "set-ptr-net: share of units that are left out in training", ge=0, lt=1
    )
    answer: Literal["any", "all", "one"] = setting(
        "any", "set-ptr-net: elements of an answer: any number, all, or one"
    )
    repeats: bool = setting(False, "set-ptr-net: what was pointed at may be again")

    @property
    def scores_once(self) -> bool:
        return True


def every_setting() -> dict[str, Option]:
    """Each setting that some model has, by its name; of several the one of the base class."""
    settings: dict[str, Option] = {}
    classes: list[type[ModelSettings]] = [ModelSettings]
    for cls in classes:  # grows by its subclasses
        settings = {**options_of(cls), **settings}
        classes += cls.__subclasses__()
    return settings
