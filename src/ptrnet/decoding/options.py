"""Decoders by name and options, for the command line and the service.

This module does not import torch, so that `ptrnet --help` starts fast.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from ptrnet import decoding
from ptrnet.decoding.settings import (
    BeamSettings,
    IncrementalSettings,
    ReconstructSettings,
    SampleSettings,
)
from ptrnet.errors import InputError
from ptrnet.settings import Settings, options_of, setting

if TYPE_CHECKING:
    from ptrnet.decoding import Decoder

Search = Literal["greedy", "beam", "sample"]  # decoders that can be `inner` of `Incremental`
Name = Literal["greedy", "beam", "sample", "incremental", "reconstruct"]
DECODERS = get_args(Name)
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

    decoder: Name = setting("greedy", "greedy, beam, sample, incremental or reconstruct.")
    beam_size: int | None = _option(BeamSettings, "size")
    samples: int | None = _option(SampleSettings, "size")
    temperature: float | None = _option(SampleSettings, "temperature")
    window: int | None = _option(IncrementalSettings, "window")
    inner: Search | None = setting(
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
