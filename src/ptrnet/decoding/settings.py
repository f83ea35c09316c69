"""Settings of decoders, each declared once.

This module does not import torch, so that `ptrnet --help` starts fast.
"""

from dataclasses import dataclass

from ptrnet.settings import Settings, setting

# Minimum number of cities in a part of a tour, without its two fixed ends. Four cities have 24
# orders. With fewer cities, the network could improve little.
MIN_PART = 4


@dataclass(frozen=True)
class BeamSettings(Settings):
    """Settings of a beam search."""

    size: int = setting(8, "Prefixes that the beam keeps after each step.", ge=1, kw_only=False)


@dataclass(frozen=True)
class SampleSettings(Settings):
    """Settings of a decoder that draws answers at random."""

    size: int = setting(
        16, "Draw this many answers to each instance; keep the best.", ge=1, kw_only=False
    )
    temperature: float = setting(
        1.0,
        "Sampling temperature: near 0 is greedy, 1 is the model's own distribution.",
        gt=0,
        kw_only=False,
    )
    seed: int | None = setting(
        None,
        "Seed of the random numbers; without it, each call draws new ones.",
        ge=0,
        kw_only=False,
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
        None,
        "Solve parts of tours again for this many seconds per batch.  [1]",
        ge=0,
        kw_only=False,
    )
    rounds: int | None = setting(
        None,
        "Solve parts again this many times; unlike --seconds, the same on any machine.",
        ge=0,
        kw_only=False,
    )
    part: int = setting(
        100,
        "Maximum number of cities of a part: about the largest size in the model's training.",
        ge=MIN_PART,
        kw_only=False,
    )
    seed: int = setting(1, "Seed of the choice of parts.", ge=0, kw_only=False)
