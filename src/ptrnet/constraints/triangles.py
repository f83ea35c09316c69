"""The constraint of triangulations: triangles of increasing indices, with or without separators.

A small automaton reads such a sequence. Its table says for each state, and for each kind of token
that may come then, which state follows. Beside the table, a vertex is larger than the one before
it in its triangle, and leaves enough larger elements for the vertices that must follow.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints.base import gather_prefixes


class Phase(IntEnum):
    """Where in a sequence a prefix stands."""

    FIRST = 0  # the first vertex of a triangle must come
    SECOND = 1  # its second vertex must come
    THIRD = 2  # its third vertex must come
    COMPLETE = 3  # the last triangle is complete: the end may come, or what leads to another
    ENDED = 4
    FORBIDDEN = 5  # a token came that may not


FIRST, SECOND, THIRD, COMPLETE, ENDED = list(Phase)[:-1]
_ = Phase.FORBIDDEN

TRIANGLES = (
    # END    vertex
    (_, SECOND),  # FIRST
    (_, THIRD),  # SECOND
    (_, COMPLETE),  # THIRD
    (ENDED, SECOND),  # COMPLETE
    (ENDED, _),  # ENDED
    (_, _),  # FORBIDDEN
)
SEPARATED_TRIANGLES = (
    # END  separator  vertex
    (_, _, SECOND),  # FIRST
    (_, _, THIRD),  # SECOND
    (_, _, COMPLETE),  # THIRD
    (ENDED, FIRST, _),  # COMPLETE
    (ENDED, _, _),  # ENDED
    (_, _, _),  # FORBIDDEN
)
# How many vertices must follow one that comes in this phase.
VERTICES_TO_FOLLOW = (2, 1, 0, 2, 0, 0)


@cache
def _tables(num_specials: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The next phase by phase and kind of token `(6, S + 1)`, and `VERTICES_TO_FOLLOW` `(6,)`."""
    transitions = TRIANGLES if num_specials == 1 else SEPARATED_TRIANGLES
    return (
        torch.tensor(transitions, device=device),
        torch.tensor(VERTICES_TO_FOLLOW, device=device),
    )


class OpenTriangle(NamedTuple):
    """The state of the constraint."""

    phase: Tensor  # (B, K) a `Phase`
    previous: Tensor  # (B, K) the last vertex of a triangle that is not complete; 0 without one
    tokens: Tensor  # (S + N,) all tokens: 0, 1, 2, ...
    padding: Tensor  # (B, 1) the first token that is padding: S + n


@dataclass(frozen=True)
class Triangles:
    """One triangle or more, each three increasing indices.

    Args:
        num_specials: special slots S: END alone, or 2, END and a separator between triangles.
    """

    num_specials: int

    def initial_state(self, lengths: Tensor, num_specials: int, num_tokens: int) -> OpenTriangle:
        padding = (lengths + num_specials)[:, None]
        phase = torch.full_like(padding, FIRST)
        tokens = torch.arange(num_tokens, device=lengths.device)
        return OpenTriangle(phase, torch.zeros_like(phase), tokens, padding)

    def allowed(self, state: OpenTriangle) -> Tensor:
        transitions, to_follow = _tables(self.num_specials, state.phase.device)
        by_kind = transitions[state.phase] != Phase.FORBIDDEN  # (B, K, S + 1)
        end = (state.padding - to_follow[state.phase])[..., None]
        vertices = (state.tokens > state.previous[..., None]) & (state.tokens < end)
        vertices = vertices & by_kind[..., -1:]
        return torch.cat([by_kind[..., :-1], vertices[..., self.num_specials :]], -1)

    def advance(self, state: OpenTriangle, parents: Tensor, tokens: Tensor) -> OpenTriangle:
        transitions = _tables(self.num_specials, tokens.device)[0]
        kind = tokens.clamp(max=self.num_specials)  # the special slots, then any vertex
        phase = transitions[gather_prefixes(state.phase, parents), kind]
        unfinished = (phase == Phase.SECOND) | (phase == Phase.THIRD)
        return state._replace(phase=phase, previous=torch.where(unfinished, tokens, 0))
