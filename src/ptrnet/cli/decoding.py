"""The options of `solve` and `evaluate` that say how answers are decoded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.errors import InputError, unknown

if TYPE_CHECKING:
    from ptrnet.decoding import Decoder

_SEARCHES = ("greedy", "beam", "sample")  # incremental decoding runs one of them on each window
_DECODERS = (*_SEARCHES, "incremental", "reconstruct")
_OPTIONS_OF = {
    "beam": ("beam_size",),
    "sample": ("samples", "temperature"),
    "incremental": ("window", "inner"),
    "reconstruct": ("seconds", "rounds"),
}


@dataclass(frozen=True)
class DecodingOptions:
    """A decoder's name and options; None stands for an option that was left out."""

    decoder: Annotated[
        str,
        typer.Option("--decoder", help="greedy, beam, sample, incremental or reconstruct."),
    ] = "greedy"
    beam_size: Annotated[
        int | None, typer.Option("--beam-size", help="Prefixes that a beam keeps.  [8]")
    ] = None
    samples: Annotated[
        int | None, typer.Option("--samples", help="Answers that are drawn; the best counts.  [16]")
    ] = None
    temperature: Annotated[
        float | None,
        typer.Option("--temperature", help="Of the draws: near 0 greedy, 1 the model's own.  [1]"),
    ] = None
    window: Annotated[
        int | None,
        typer.Option("--window", help="Elements that incremental decoding adds at a time.  [25]"),
    ] = None
    inner: Annotated[
        str | None,
        typer.Option("--inner", help="What solves each window: greedy, beam or sample.  [greedy]"),
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", help="How long parts of tours are solved again.  [1]"),
    ] = None
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds", help="How often they are; unlike --seconds the same on any machine."
        ),
    ] = None
    augment: Annotated[
        int,
        typer.Option(
            "--augment", help="Views of an instance, turned and shuffled; the best answer counts."
        ),
    ] = 1
    constrained: Annotated[
        bool,
        typer.Option(
            "--constrained/--free", help="Consider only what the task allows as an answer."
        ),
    ] = True

    def build(self, seed: int) -> "Decoder":
        """The decoder, with its defaults for options that were left out.

        Raises:
            InputError: an unknown name, with the nearest, or an option that does nothing here.
        """
        from ptrnet.decoding import Incremental, Reconstruct

        if self.decoder not in _DECODERS:
            raise unknown("decoder", self.decoder, _DECODERS)
        if self.decoder != "incremental":
            self._check_unused(self.decoder)
            if self.decoder == "reconstruct":
                return Reconstruct(self.seconds, self.rounds, seed=seed)
            return self._build_search(self.decoder, seed)
        inner = "greedy" if self.inner is None else self.inner
        if inner not in _SEARCHES:
            raise unknown("inner decoder", inner, _SEARCHES)
        self._check_unused(inner)
        return Incremental(
            25 if self.window is None else self.window, self._build_search(inner, seed)
        )

    def _check_unused(self, search: str) -> None:
        """Refuses options that neither the decoder nor its search has."""
        used = {option for name in (self.decoder, search) for option in _OPTIONS_OF.get(name, ())}
        for option in (option for options in _OPTIONS_OF.values() for option in options):
            if getattr(self, option) is not None and option not in used:
                flag = "--" + option.replace("_", "-")
                raise InputError(f"{flag} does nothing with {search} decoding")

    def _build_search(self, name: str, seed: int) -> "Decoder":
        from ptrnet.decoding import Beam, Greedy, Sample

        if name == "beam":
            return Beam(8 if self.beam_size is None else self.beam_size)
        if name == "sample":
            samples = 16 if self.samples is None else self.samples
            return Sample(samples, 1.0 if self.temperature is None else self.temperature, seed)
        return Greedy()
