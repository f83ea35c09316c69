"""The options of `solve` and `evaluate` that say how answers are decoded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptrnet.decoding.options import AnswerOptions

if TYPE_CHECKING:
    from ptrnet.decoding import Decoder


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


@dataclass(frozen=True)
class DecoderFlags(AnswerOptions):
    """`AnswerOptions` as flags, which complaints write as the user does."""

    def build(self, seed: int, spell: Callable[[str], str] = _flag) -> "Decoder":
        """The decoder; see `DecoderOptions.build`."""
        return super().build(seed, spell)
