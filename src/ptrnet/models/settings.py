"""The settings of models, each written once: its type, default, bounds and help. No torch here.

A variant has one of these classes as its `Settings`; its fields are keyword arguments of
`models.build` and options of `ptrnet train`.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal

from ptrnet.errors import unknown

MAX_UNITS = 65_536  # a layer of more would not fit any memory; a dictionary likewise


def setting(help: str, default: Any = MISSING, bounds: tuple[float, float] | None = None) -> Any:
    """A field of a model's settings, with its help for the command line.

    Args:
        help: what it says.
        default: without one the setting has to be given.
        bounds: the least and the largest value of a number.
    """
    return field(default=default, metadata={"help": help, "bounds": bounds})


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Settings of every model."""

    hidden_size: int = setting("units of encoder and decoder", 256, (1, MAX_UNITS))

    @property
    def sees_order(self) -> bool:
        """Whether the model can tell in which order the elements stand."""
        return True


@dataclass(frozen=True, kw_only=True)
class RecurrentSettings(ModelSettings):
    """Settings of models that read and answer one element after another."""

    cell: Literal["lstm", "gru"] = setting("cell of encoder and decoder", "lstm")
    layers: int = setting("layers of encoder and decoder, each", 1, (1, 64))
    bidirectional: bool = setting("half of the encoder's units read backwards", False)


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(RecurrentSettings):
    """Settings of models that score encoder states against decoder states."""

    score: Literal["additive", "dot", "general"] = setting("how an element is scored", "additive")


@dataclass(frozen=True, kw_only=True)
class FreeRunningSettings(AttentionSettings):
    """Settings of models whose next input is made of their own distribution."""

    teacher_forcing: bool = setting(
        "soft-, hard- and multi-ptr-net are fed the true elements in training; free running if not",
        True,
    )


@dataclass(frozen=True, kw_only=True)
class ThresholdSettings(FreeRunningSettings):
    """Settings of the model whose next input is the mean of the likely elements."""

    threshold: float = setting("multi-ptr-net: least probability of what is fed", 0.1, (1e-6, 1.0))


@dataclass(frozen=True, kw_only=True)
class DictionarySettings(RecurrentSettings):
    """Settings of models whose output is a fixed dictionary."""

    n: int = setting("elements of every instance", bounds=(1, MAX_UNITS))


@dataclass(frozen=True, kw_only=True)
class DictionaryAttentionSettings(DictionarySettings, AttentionSettings):
    """Settings of models whose output is a fixed dictionary, and that score encoder states."""


@dataclass(frozen=True, kw_only=True)
class EncoderSettings(ModelSettings):
    """Settings of models whose elements attend to each other, in the encoder of a transformer."""

    heads: int = setting("transformer: heads of each attention", 4, (1, MAX_UNITS))
    encoder_layers: int = setting("transformer: layers of the encoder", 4, (1, 64))
    feed_forward: int = setting(
        "transformer: units between a layer's two maps", 512, (1, MAX_UNITS)
    )
    octaves: int = setting("transformer: sines and cosines of each feature, in octaves", 0, (0, 16))

    @property
    def sees_order(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(EncoderSettings):
    """Settings of the model that reads all elements at once."""

    decoder_layers: int = setting("transformer: layers of the decoder", 2, (1, 64))
    see_indices: bool = setting("transformer: elements' indices are seen", False)
    edge_frames: bool = setting(
        "transformer: elements are seen in the frame of the answer's last edge, too", False
    )
    frame_edge: Literal["last", "open"] = setting(
        "transformer: edge of the frames; open: of a sequence of apexes", "last"
    )

    @property
    def sees_order(self) -> bool:
        return self.see_indices


@dataclass(frozen=True, kw_only=True)
class RemainingSettings(EncoderSettings):
    """Settings of the model that encodes what remains at every step."""

    nearest: int = setting(
        "remaining-ptr-net: elements encoded at a step, those near the last one; 0: all",
        0,
        (0, MAX_UNITS),
    )
    repeats: bool = setting("remaining-ptr-net: what was pointed at may be again", False)


# Former names and values of settings, which files and recipes may still have.
ALIASES = {"train_feed": ("teacher_forcing", {"truth": True, "own": False})}


def resolve_aliases(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings by their present names.

    Raises:
        InputError: a value that the former name did not have.
    """
    resolved = dict(settings)
    for former in ALIASES.keys() & settings.keys():
        name, values = ALIASES[former]
        value = resolved.pop(former)
        if not isinstance(value, str) or value not in values:
            raise unknown(f"setting {former}", str(value), values)
        resolved[name] = values[value]
    return resolved


def every_setting() -> dict[str, "Field[Any]"]:
    """The dataclass field of each setting that some model has, by its name."""
    settings: dict[str, Field[Any]] = {}
    classes: list[type[ModelSettings]] = [ModelSettings]
    for cls in classes:  # grows by its subclasses
        settings.update({f.name: f for f in fields(cls)})
        classes += cls.__subclasses__()
    return settings
