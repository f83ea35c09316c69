"""The settings of models, each written once: its type, default, bounds and help. No torch here.

A variant has one of these classes as its `Settings`; its fields are keyword arguments of
`models.build` and options of `ptrnet train`.
"""

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal

LARGEST = 65_536  # units: a layer of more would not fit any memory


def _setting(help: str, default: Any = MISSING, bounds: tuple[float, float] | None = None) -> Any:
    return field(default=default, metadata={"help": help, "bounds": bounds})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Of every model."""

    hidden_size: int = _setting("units of encoder and decoder", 256, (1, LARGEST))


@dataclass(frozen=True, kw_only=True)
class Recurrent(Settings):
    """Of models that read and answer one element after another."""

    cell: Literal["lstm", "gru"] = _setting("cell of encoder and decoder: lstm | gru", "lstm")
    layers: int = _setting("layers of encoder and decoder, each", 1, (1, 64))
    bidirectional: bool = _setting("half of the encoder's units read backwards", False)


@dataclass(frozen=True, kw_only=True)
class Attending(Recurrent):
    """Of models that score encoder states against decoder states."""

    score: Literal["additive", "dot", "general"] = _setting(
        "how an element is scored: additive | dot | general", "additive"
    )


@dataclass(frozen=True, kw_only=True)
class OwnFeed(Attending):
    """Of models that are fed what they make of their own distribution."""

    train_feed: Literal["truth", "own"] = _setting(
        "what soft-, hard- and multi-ptr-net are fed in training: truth | own", "truth"
    )


@dataclass(frozen=True, kw_only=True)
class Threshold(OwnFeed):
    """Of the model that is fed the mean of the likely elements."""

    threshold: float = _setting("multi-ptr-net: least probability of what is fed", 0.1, (1e-6, 1.0))


@dataclass(frozen=True, kw_only=True)
class Dictionary(Recurrent):
    """Of models whose output is a fixed dictionary."""

    n: int = _setting("elements of every instance", bounds=(1, LARGEST))


@dataclass(frozen=True, kw_only=True)
class AttendingDictionary(Dictionary, Attending):
    """Of models whose output is a fixed dictionary, and that score encoder states."""


@dataclass(frozen=True, kw_only=True)
class Remaining(Settings):
    """Of the model that encodes what remains at every step."""

    heads: int = _setting("transformer: heads of each attention", 4, (1, LARGEST))
    encoder_layers: int = _setting("transformer: layers of the encoder", 4, (1, 64))
    feed_forward: int = _setting("transformer: units between a layer's two maps", 512, (1, LARGEST))
    octaves: int = _setting(
        "transformer: sines and cosines of each feature, in octaves", 8, (0, 16)
    )
    nearest: int = _setting(
        "remaining-ptr-net: elements encoded at a step, those near the last one; 0: all",
        0,
        (0, LARGEST),
    )
    repeats: bool = _setting("remaining-ptr-net: what was pointed at may be again", False)


def every_setting() -> dict[str, Any]:
    """The field of each setting that some model has, by its name."""
    found, kinds = {}, [Settings]
    for kind in kinds:
        found.update({f.name: f for f in fields(kind)})
        kinds += kind.__subclasses__()
    return found
