"""The settings of decoders, each declared once. No torch here."""

from dataclasses import dataclass

from ptrnet.settings import Settings, setting

MIN_PART = 4  # cities between the ends of a part of a tour


@dataclass(frozen=True)
class BeamSettings(Settings):
    """Settings of a beam search."""

    size: int = setting(8, "Prefixes that a beam keeps.", ge=1, kw_only=False)


@dataclass(frozen=True)
class SampleSettings(Settings):
    """Settings of a decoder that draws answers."""

    size: int = setting(16, "Answers that are drawn; the best counts.", ge=1, kw_only=False)
    temperature: float = setting(
        1.0, "Of the draws: near 0 greedy, 1 the model's own.", gt=0, kw_only=False
    )
    seed: int | None = setting(
        None, "Of the random numbers; they are drawn anew if none.", ge=0, kw_only=False
    )


@dataclass(frozen=True)
class IncrementalSettings(Settings):
    """Settings of a decoder that solves groups of elements."""

    window: int = setting(
        25, "Elements that incremental decoding adds at a time.", ge=1, kw_only=False
    )


@dataclass(frozen=True)
class ReconstructSettings(Settings):
    """Settings of a decoder that solves parts of tours again."""

    seconds: float | None = setting(
        None, "How long parts of tours are solved again.  [1]", ge=0, kw_only=False
    )
    rounds: int | None = setting(
        None,
        "How often they are; unlike --seconds the same on any machine.",
        ge=0,
        kw_only=False,
    )
    part: int = setting(
        50,
        "Cities of such a part: about as many as the model learned on.",
        ge=MIN_PART,
        kw_only=False,
    )
    seed: int = setting(1, "Of the parts.", ge=0, kw_only=False)
