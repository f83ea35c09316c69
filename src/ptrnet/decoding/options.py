"""A decoder by its name and options, as the command line and the service take them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ptrnet.decoding.beam import Beam, Greedy
from ptrnet.decoding.incremental import Incremental
from ptrnet.decoding.reconstruct import Reconstruct
from ptrnet.decoding.sample import Sample
from ptrnet.decoding.search import Decoder
from ptrnet.errors import InputError, unknown

SEARCHES = ("greedy", "beam", "sample")  # incremental decoding runs one of them on each window
DECODERS = (*SEARCHES, "incremental", "reconstruct")
_OPTIONS_OF = {
    "beam": ("beam_size",),
    "sample": ("samples", "temperature"),
    "incremental": ("window", "inner"),
    "reconstruct": ("seconds", "rounds", "part"),
}


@dataclass(frozen=True)
class DecoderOptions:
    """A decoder's name and options; None stands for an option that was left out."""

    decoder: str = "greedy"
    beam_size: int | None = None
    samples: int | None = None
    temperature: float | None = None
    window: int | None = None
    inner: str | None = None
    seconds: float | None = None
    rounds: int | None = None
    part: int | None = None

    def build(self, seed: int, spell: Callable[[str], str] = str) -> Decoder:
        """The decoder, with its defaults for options that were left out.

        Args:
            seed: of what is drawn at random.
            spell: how complaints write the name of an option.

        Raises:
            InputError: an unknown name, with the nearest, or an option that does nothing here.
        """
        if self.decoder not in DECODERS:
            raise unknown("decoder", self.decoder, DECODERS)
        if self.decoder != "incremental":
            self._check_unused(self.decoder, spell)
            if self.decoder == "reconstruct":
                part = _without_none(part=self.part)
                return Reconstruct(self.seconds, self.rounds, seed=seed, **part)
            return self._build_search(self.decoder, seed)
        inner = "greedy" if self.inner is None else self.inner
        if inner not in SEARCHES:
            raise unknown("inner decoder", inner, SEARCHES)
        self._check_unused(inner, spell)
        search = self._build_search(inner, seed)
        return Incremental(inner=search, **_without_none(window=self.window))

    def _check_unused(self, search: str, spell: Callable[[str], str]) -> None:
        """Refuses options that neither the decoder nor its search has."""
        used = {option for name in (self.decoder, search) for option in _OPTIONS_OF.get(name, ())}
        for option in (option for options in _OPTIONS_OF.values() for option in options):
            if getattr(self, option) is not None and option not in used:
                raise InputError(f"{spell(option)} does nothing with {search} decoding")

    def _build_search(self, name: str, seed: int) -> Decoder:
        if name == "beam":
            return Beam(**_without_none(size=self.beam_size))
        if name == "sample":
            options = _without_none(size=self.samples, temperature=self.temperature)
            return Sample(seed=seed, **options)
        return Greedy()


def _without_none(**options: Any) -> dict[str, Any]:
    """The options that were not left out; for the others a decoder has its own defaults."""
    return {name: value for name, value in options.items() if value is not None}
