"""Settings of decoders, each declared once; and decoders by name and options.

This module does not import torch, so that `ptrnet --help` starts fast.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from ptrnet import decoding
from ptrnet.errors import InputError
from ptrnet.settings import Settings, options_of, setting

if TYPE_CHECKING:
    from ptrnet.decoding import Decoder

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


InnerName = Literal["greedy", "beam", "sample"]  # decoders that `Incremental` can use
DecoderName = Literal["greedy", "beam", "sample", "incremental", "reconstruct"]
DECODERS = get_args(DecoderName)
# For each decoder, the names of its options, and the setting that each option sets.
_SETTINGS_OF = {
    "greedy": {},
    "beam": {"beam_size": "size"},
    "sample": {"samples": "size", "temperature": "temperature"},
    "incremental": {"window": "window", "inner": "inner"},
    "reconstruct": {"seconds": "seconds", "rounds": "rounds", "part": "part"},
}


def _option(cls: type[Settings], name: str) -> Any:
    """Return an option that sets the setting `name` of a decoder.

    If the option is None, the decoder uses its own default.
    """
    declared = options_of(cls)[name]
    default = "" if declared.default is None else f"  [{declared.default:g}]"
    return setting(None, declared.help + default, **declared.bounds._asdict())


@dataclass(frozen=True)
class DecoderOptions(Settings):
    """A decoder's name and options. An option that was not given is None.

    Examples:
        >>> DecoderOptions(decoder="beam", beam_size=4).build(seed=1)
        Beam(size=4)
    """

    decoder: DecoderName = setting("greedy", "greedy, beam, sample, incremental or reconstruct.")
    beam_size: int | None = _option(BeamSettings, "size")
    samples: int | None = _option(SampleSettings, "size")
    temperature: float | None = _option(SampleSettings, "temperature")
    window: int | None = _option(IncrementalSettings, "window")
    inner: InnerName | None = setting(
        None, "Search that solves each window: greedy, beam or sample.  [greedy]"
    )
    seconds: float | None = _option(ReconstructSettings, "seconds")
    rounds: int | None = _option(ReconstructSettings, "rounds")
    part: int | None = _option(ReconstructSettings, "part")

    def build(self, seed: int, spell: Callable[[str], str] = str) -> "Decoder":
        """Return the decoder. Options that were not given have the decoder's defaults.

        Args:
            seed: seed of decoders that draw random numbers.
            spell: how error messages write the name of an option, such as `--beam-size`.

        Raises:
            InputError: an option was given that this decoder does not have.
        """
        is_incremental = self.decoder == "incremental"
        search = (self.inner or "greedy") if is_incremental else self.decoder
        used = {*_SETTINGS_OF[self.decoder], *_SETTINGS_OF[search]}
        for option in (option for options in _SETTINGS_OF.values() for option in options):
            if getattr(self, option) is not None and option not in used:
                inner = f" and {spell('inner')} {search}" if is_incremental else ""
                raise InputError(
                    f"{spell(option)} has no effect with {self.decoder} decoding{inner}"
                )
        if self.decoder == "reconstruct":
            return decoding.Reconstruct(seed=seed, **self._settings("reconstruct"))
        if is_incremental:
            solver = self._search(search, seed)
            return decoding.Incremental(**self._settings("incremental") | {"inner": solver})
        return self._search(search, seed)

    def _search(self, name: str, seed: int) -> "Decoder":
        if name == "beam":
            return decoding.Beam(**self._settings("beam"))
        if name == "sample":
            return decoding.Sample(seed=seed, **self._settings("sample"))
        return decoding.Greedy()

    def _settings(self, name: str) -> dict[str, Any]:
        """Return those settings of a decoder that the user set by options."""
        given = {key: getattr(self, option) for option, key in _SETTINGS_OF[name].items()}
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class AnswerOptions(DecoderOptions):
    """Options that decide how to answer instances: the decoder, and options for every decoder."""

    augment: int = setting(
        1, "Solve this many turned and shuffled views of an instance; keep the best answer.", ge=1
    )
    constrained: bool = setting(True, "Consider only answers that the task allows.")
    improve: bool = setting(
        True,
        "Improve tours and routes by 2-opt and Or-opt moves until none makes them shorter.",
    )
