"""Edge frames: scores from the positions of elements relative to an edge in the plane.

Everything is computed from coordinates, in float32 or better even under autocast.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from ptrnet.constraints.triangulations import OpenEdges
from ptrnet.kernels import prepare, structure_of
from ptrnet.kernels.frames import LastEdgeFeatures, OpenEdgeFeatures

if TYPE_CHECKING:
    from ptrnet.kernels.frames_cpu import CompiledFrames

UNITS = 32  # hidden units of a `FrameScore`, U
ROUNDS = 3  # rounds after the first round; see `EdgeFrames`


class PrefixEnds(NamedTuple):
    """The first and the last two elements of prefixes, as tokens `(B, K)`; 0: no such element."""

    first: Tensor
    previous: Tensor  # the element before the last element
    last: Tensor

    @classmethod
    def empty(cls, tokens: Tensor) -> "PrefixEnds":
        """The ends of empty prefixes, in the shape of `tokens` `(B, K)`."""
        return cls(*[torch.zeros_like(tokens)] * 3)

    def append(self, tokens: Tensor, num_specials: int) -> "PrefixEnds":
        """The ends after another token `(B, K)` of each prefix. Special slots change nothing."""
        is_element = tokens >= num_specials
        return PrefixEnds(
            torch.where(is_element & (self.first == 0), tokens, self.first),
            torch.where(is_element, self.last, self.previous),
            torch.where(is_element, tokens, self.last),
        )


class EdgeFrames(nn.Module):
    """Adds terms to each token's score. Small networks compute the terms from the token's position.

    There are several rounds, and each round adds one term. In a round, positions are relative to an
    edge, the frame:

    - In the first round, the edge runs between the last two elements of the answer. After a single
      element, the edge points downwards along the second axis.
    - In each further round, the edge runs from the last element to the token with the highest score
      so far.
    - Before the first element there is no edge. Instead of cosines and sines, the network reads
      zeros in the first round, and differences of coordinates in further rounds.

    A special slot has the position of the answer's first element. If the frame is an open edge (see
    below), the slot has angle 0 and distance 1. In the first round, the network also reads
    `A q + B k`, where q is the decoder's state and k the token's state.

    A sequence of apexes builds a triangulation; see `ptrnet.constraints.triangulations`. Each token
    decides the triangle on the left of the first open edge. For sequences of apexes, this edge is
    the frame of the first round. In further rounds, positions are those in this frame
    (see `OpenEdgeFeatures`), and the edge begins at its origin, not at the last element.
    After a single element there is no open edge yet, and the frame
    points downwards along the second axis.

    Args:
        units: size of queries and keys, H.
        is_open: whether answers are sequences of apexes.
    """

    def __init__(self, units: int, is_open: bool = False) -> None:
        super().__init__()
        self.is_open = is_open
        self.query = nn.Linear(units, UNITS, bias=False)
        self.key = nn.Linear(units, UNITS, bias=False)
        kind = self._features = OpenEdgeFeatures if is_open else LastEdgeFeatures
        sizes = (kind.first_size, *[kind.further_size] * ROUNDS)
        rounds = (FrameScore(features) for features in sizes)
        self.looks = nn.ModuleList(rounds)  # the name "looks" is part of saved weights
        self._built = structure_of(self)

    def empty(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """The state of empty prefixes, in the shape of `tokens` `(B, K)`."""
        return OpenEdges.empty(tokens) if self.is_open else PrefixEnds.empty(tokens)

    def append(
        self, prefixes: tuple[Tensor, ...], tokens: Tensor, num_specials: int
    ) -> tuple[Tensor, ...]:
        """The state after another token `(B, K)` of each prefix."""
        if self.is_open:
            return OpenEdges(*prefixes).append(tokens)
        return PrefixEnds(*prefixes).append(tokens, num_specials)

    def ends(self, prefixes: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The tokens that define each prefix's edge, `(B, K)` each: `PrefixEnds` or `FrontEdge`."""
        return OpenEdges(*prefixes).front() if self.is_open else prefixes

    def all_ends(self, tokens: Tensor, num_specials: int) -> tuple[Tensor, ...]:
        """The tensors of `ends`, `(B, M)` each. Column i is for the first i + 1 of M tokens."""
        prefixes, steps = self.empty(tokens[:, :1]), []
        for i in range(tokens.shape[1]):
            prefixes = self.append(prefixes, tokens[:, i : i + 1], num_specials)
            steps.append(self.ends(prefixes))
        return tuple(torch.cat(columns, 1) for columns in zip(*steps, strict=True))

    def project_keys(self, keys: Tensor) -> Tensor:
        """Project keys `(B, S + N, H)` to `(U, B, 1, S + N)`, the form that `forward` takes."""
        with torch.autocast(keys.device.type, enabled=False):
            return self.key(keys).permute(2, 0, 1).contiguous()[:, :, None]

    def compiled(self, points: Tensor, keys: Tensor) -> "CompiledFrames | None":
        """A compiled kernel that computes `forward` for these points and keys.

        Returns None if a part was subclassed, patched or hooked. Points are `(B, N, 2)`, and keys
        are the result of `project_keys`.
        """
        rounds = prepare(self, self._built, self._rounds) if type(self) is EdgeFrames else None
        if rounds is None:
            return None
        from ptrnet.kernels.frames_cpu import CompiledFrames  # imports numba

        return CompiledFrames(points, keys, rounds, self.is_open)

    def _rounds(self) -> list[list[Tensor]]:
        return [list(score.parameters()) for score in self.looks]  # W, b and w

    def forward(
        self,
        scores: Tensor,
        ends: tuple[Tensor, ...],
        queries: Tensor,
        points: Tensor,
        keys: Tensor,
    ) -> Tensor:
        """The scores `(B, M, S + N)` after all rounds.

        Args:
            scores: `(B, M, S + N)` before all rounds, -inf on padding.
            ends: the tokens at the ends of each prefix's edge, each `(B, M)`.
            queries: `(B, M, H)`, one for each prefix.
            points: `(B, N, 2)`, the elements' coordinates.
            keys: the tokens' keys, from `project_keys`.
        """
        num_specials = scores.shape[2] - points.shape[1]
        with torch.autocast(scores.device.type, enabled=False):
            views = self._features(points, num_specials, *ends)
            states = self.query(queries).permute(2, 0, 1).contiguous()[..., None] + keys
            first, *further = self.looks
            scores = scores + first(views.along_last_edge(), states)
            for score in further:
                likeliest = scores.argmax(-1, keepdim=True)
                scores = scores + score(views.along_edge_to(likeliest))
        return scores


class FrameScore(nn.Module):
    """The score `w' max(0, W f + b + x)` of a token at a step, from its F features f.

    In the first round, x is `A q + B k` (see `EdgeFrames`); in further rounds it is 0.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features, self.score = nn.Linear(features, UNITS), nn.Linear(UNITS, 1, bias=False)

    def forward(self, features: Tensor, x: Tensor | None = None) -> Tensor:
        """Scores `(B, M, S + N)` of features `(F, B, M, S + N)` and x `(U, B, M, S + N)` (None: 0).

        The first axis is for the features. If the last axis were for the features, rows would be
        short, and computing would be slow.
        """
        weight, bias = self.features.weight, self.features.bias[:, None]
        hidden = torch.addmm(bias, weight, features.flatten(1))
        hidden = (hidden if x is None else hidden + x.flatten(1)).relu_()
        return (self.score.weight @ hidden).view(features.shape[1:])
