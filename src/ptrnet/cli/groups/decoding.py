"""The options of `solve` and `evaluate` that say how answers are decoded."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ptrnet.decoding import Decoder


def complete_decoders(incomplete: str) -> list[str]:
    """Decoders that begin so."""
    from ptrnet.decoding.options import DECODERS

    return [name for name in DECODERS if name.startswith(incomplete)]


@dataclass(frozen=True)
class DecoderFlags:
    """The flags that set `DecoderOptions`, and those that go with every decoder.

    The defaults in brackets are the decoders' own: help is printed without importing them.
    """

    decoder: Annotated[
        str,
        typer.Option(
            "--decoder",
            help="greedy, beam, sample, incremental or reconstruct.",
            autocompletion=complete_decoders,
        ),
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
    part: Annotated[
        int | None,
        typer.Option(
            "--part", help="Cities of such a part: about as many as the model learned on.  [50]"
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
        from ptrnet.decoding.options import DecoderOptions

        options = {field.name: getattr(self, field.name) for field in fields(DecoderOptions)}
        return DecoderOptions(**options).build(seed, _flag)


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")
