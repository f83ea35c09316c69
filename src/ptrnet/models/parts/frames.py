"""Elements of the plane as they look from the end of an answer, and scores of that.

All of it is computed from coordinates and stays float32 (or better) under autocast.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ptrnet.models.base import pick

UNITS = 32  # between the two maps of a look
LOOKS = 3  # at the edge to the likeliest element, after the look along the last edge
SMALL = (1e-3, 1e-5, 1e-7)  # below these a difference is seen by its size, above by its logarithm
NONE = 1e-6  # the distance of what is in the same place


class Trail(NamedTuple):
    """The elements that a prefix begins and ends with, as tokens `(B, K)`; 0 where none is."""

    first: Tensor
    before: Tensor  # the last but one
    last: Tensor

    @classmethod
    def empty(cls, like: Tensor) -> "Trail":
        """Of prefixes without elements, as many as there are `(B, K)` tokens."""
        return cls(*[torch.zeros_like(like)] * 3)

    def behind(self, tokens: Tensor, specials: int) -> "Trail":
        """Of the prefixes with one more token `(B, K)` each; special slots are no elements."""
        here = tokens >= specials
        return Trail(
            torch.where(here & (self.first == 0), tokens, self.first),
            torch.where(here, self.last, self.before),
            torch.where(here, tokens, self.last),
        )


def trails(fed: Tensor, specials: int) -> Trail:
    """Of the prefixes that end with each of the tokens `(B, M)`."""
    at, found = Trail.empty(fed[:, :1]), []
    for i in range(fed.shape[1]):
        at = at.behind(fed[:, i : i + 1], specials)
        found.append(at)
    return Trail(*(torch.cat(tokens, 1) for tokens in zip(*found, strict=True)))


class EdgeFrames(nn.Module):
    """Looks at every token in the frame of an edge, and adds to its score what it finds.

    The first look is along the last edge of the answer, from the last element but one to the
    last (behind a single element: down the second axis). Each further look is along the edge from
    the last element to the likeliest token so far; where no element has been pointed at yet, there
    is no edge, and differences of coordinates are seen instead of cosines and sines. A special slot
    is in the place of the answer's first element. The first look's x is `A q + B k` of the
    decoder's state q and the token's state k.

    Args:
        units: size of queries and keys, H.
    """

    def __init__(self, units: int) -> None:
        super().__init__()
        self.query = nn.Linear(units, UNITS, bias=False)
        self.key = nn.Linear(units, UNITS, bias=False)
        further = 7 + 3 * len(SMALL)
        self.looks = nn.ModuleList(Look(features) for features in (5, *[further] * LOOKS))

    def mapped(self, keys: Tensor) -> Tensor:
        """`B k` of keys `(B, T, H)`, as `forward` takes it: `(UNITS, B, 1, T)`."""
        with torch.autocast(keys.device.type, enabled=False):
            return self.key(keys).movedim(-1, 0).contiguous()[:, :, None]

    def forward(
        self, scores: Tensor, places: Tensor, trail: Trail, queries: Tensor, keys: Tensor
    ) -> Tensor:
        """`scores` `(B, M, T)`, -inf on padding, after all looks.

        `places` `(B, N, 2)` are the elements' coordinates, the last N of T tokens; `queries` are
        `(B, M, H)`, `keys` are `mapped`.
        """
        specials = scores.shape[2] - places.shape[1]
        with torch.autocast(scores.device.type, enabled=False):
            seen = _Seen(places, specials, trail)
            states = self.query(queries).movedim(-1, 0).contiguous()[..., None] + keys
            first, *further = self.looks
            scores = scores + first(seen.along_the_last_edge(), states)
            for look in further:
                best = scores.argmax(-1, keepdim=True)
                scores = scores + look(seen.along_the_edge_to(best))
        return scores


class Look(nn.Module):
    """`w' max(0, W f + b + x)` of the features f of each step and token."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features, self.score = nn.Linear(features, UNITS), nn.Linear(UNITS, 1, bias=False)

    def forward(self, features: Tensor, x: Tensor | None = None) -> Tensor:
        """`(B, M, T)` of `(f, B, M, T)` features and of x `(UNITS, B, M, T)`, 0 if None.

        Features come first, as rows of so few numbers would be slow to make.
        """
        weight, bias = self.features.weight, self.features.bias[:, None]
        hidden = torch.addmm(bias, weight, features.flatten(1))
        hidden = (hidden if x is None else hidden + x.flatten(1)).relu_()
        return (self.score.weight @ hidden).view(features.shape[1:])


class _Seen:
    """Every token from the last element of every prefix; tensors `(B, M, T)`, or `(B, M, 1)`."""

    def __init__(self, places: Tensor, specials: int, trail: Trail) -> None:
        padded = nn.functional.pad(places, (0, 0, specials, 0))
        self.tokens = torch.arange(padded.shape[1], device=places.device)
        special = self.tokens < specials
        xs, ys = padded[:, None].unbind(-1)  # (B, 1, T)
        first, before, last = (pick(padded, t).chunk(2, -1) for t in trail)
        self.begun = (trail.last > 0)[..., None]
        self.x = torch.where(special, first[0], xs) - last[0]
        self.y = torch.where(special, first[1], ys) - last[1]
        self.size = _length(self.x, self.y)
        self.log = self.size.log()
        one = (trail.before == 0)[..., None]
        self.edge = (
            torch.where(one, 0, last[0] - before[0]),
            torch.where(one, -1, last[1] - before[1]),
        )
        real = self.begun & ~special
        self.flags = [((xs == x) & (ys == y) & real).to(places.dtype) for x, y in (first, last)]

    def along_the_last_edge(self) -> Tensor:
        """Cosine and sine of the angle with the edge, log of the distance, which is which."""
        x, y = self.edge
        framed = [*self._turned(x, y, _length(x, y)), self.log]
        return torch.stack([*(torch.where(self.begun, f, 0) for f in framed), *self.flags])

    def along_the_edge_to(self, best: Tensor) -> Tensor:
        """The same of the edge to the tokens `(B, M, 1)`, with what tells near ones apart."""
        x, y, size, log = (v.gather(2, best) for v in (self.x, self.y, self.size, self.log))
        cosine, sine = self._turned(x, y, size)
        along = torch.where(self.begun, cosine, self.y - y)
        aside = torch.where(self.begun, sine, self.x - x)
        offset = torch.where(self.begun, sine * self.size, 0)
        best_one, begun = (self.tokens == best).to(x.dtype), self.begun.to(x.dtype)
        ratio = (self.log - log) * begun
        known = [*self.flags, best_one, begun.expand_as(ratio)]
        scaled = [*_scaled(along), *_scaled(aside), *_scaled(offset)]
        return torch.stack([along, aside, *scaled, ratio, *known])

    def _turned(self, x: Tensor, y: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine of the angle from a vector to every token; 0 where one has no length."""
        size = size * self.size
        return (x * self.x + y * self.y) / size, (x * self.y - y * self.x) / size


def _length(x: Tensor, y: Tensor) -> Tensor:
    return (x * x + y * y).sqrt().clamp(min=NONE)


def _scaled(x: Tensor) -> Iterator[Tensor]:
    """`sign(x) log(1 + |x| / small)`."""
    size = x.abs()
    return (torch.copysign((size * (1 / small)).log1p(), x) for small in SMALL)
