"""Gather the elements that remain after a prefix, and embed their relative positions."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ptrnet.kernels import can_read_values, is_recorded
from ptrnet.kernels.frames import safe_sqrt
from ptrnet.masks import length_mask

# An element that is too distant to be encoded gets the lowest score of all encoded tokens, minus
# MARGIN. So the distant element is e^-10 times as likely as the least likely encoded token, and not
# impossible.
MARGIN = 10.0
TOLERANCE = 1e-5  # lengths below this share of the largest coordinate count as 0 in `aligned`


class Rest(NamedTuple):
    """The elements to encode after each of R prefixes: at most W of N elements."""

    elements: Tensor  # (R, W) indices of the elements, increasing; then padding
    mask: Tensor  # (R, W) boolean, False on padding
    distant: Tensor | None  # (R, N) boolean: remaining elements that are left out; None: no element
    size: int  # N

    @classmethod
    def of_all(cls, remaining: Tensor) -> "Rest":
        """Take all remaining elements, those where `remaining` `(R, N)` is True.

        W is the largest number of elements that remain after a prefix. In a trace, an export, a
        CUDA graph or `vmap`, shapes cannot depend on values, so W is N.
        """
        counts, width = remaining.sum(-1), remaining.shape[1]
        is_captured = remaining.is_cuda and torch.cuda.is_current_stream_capturing()
        if can_read_values(remaining) and not is_captured:
            width = int(counts.max())
        return cls(
            _in_front(remaining)[:, :width], length_mask(counts, width), None, remaining.shape[1]
        )

    @classmethod
    def of_nearest(cls, remaining: Tensor, dist: Tensor, count: int) -> "Rest":
        """Take the `count` remaining elements with the smallest `dist` `(R, N)`."""
        dist = dist.masked_fill(~remaining, torch.inf)
        if is_recorded():  # `topk` in a graph would refuse instances of fewer than `count` elements
            near = dist.argsort(-1).argsort(-1) < count
        else:
            indices = dist.topk(count, largest=False).indices
            near = torch.zeros_like(remaining).scatter(1, indices, True)
        rest = cls.of_all(remaining & near)
        elements, mask = rest.elements[:, :count], rest.mask[:, :count]
        return cls(elements, mask, remaining & ~near, rest.size)

    def log_probs(self, scores: Tensor) -> Tensor:
        """Log-probabilities `(R, Q, S + N)` of all tokens from scores `(R, Q, S + W)`."""
        num_specials = scores.shape[-1] - self.elements.shape[1]
        is_padding = nn.functional.pad(~self.mask, (num_specials, 0))[:, None]
        distant_score = scores.detach().amin(-1, keepdim=True) - MARGIN
        scores = scores.masked_fill(is_padding, -torch.inf)
        special, of_elements = scores[..., :num_specials], scores[..., num_specials:]
        every = scores.new_full((*scores.shape[:2], self.size), -torch.inf)
        if self.distant is not None:
            every = torch.where(self.distant[:, None], distant_score, every)
        every = every.scatter(-1, self.elements[:, None].expand(of_elements.shape), of_elements)
        return torch.cat([special, every], -1).log_softmax(-1)

    def positions(self, tokens: Tensor, num_specials: int) -> Tensor:
        """The positions of tokens `(R, Q)` in `[special slots; elements]`, from 0 to S + W - 1.

        The position of a token that does not remain is arbitrary.
        """
        rows, width = self.elements.shape
        slots = torch.arange(num_specials + width, device=tokens.device).expand(rows, -1)
        special, of_elements = slots.tensor_split([num_specials], -1)
        every = slots.new_zeros(rows, self.size).scatter(1, self.elements, of_elements)
        return torch.cat([special, every], -1).gather(1, tokens)


def _in_front(remaining: Tensor) -> Tensor:
    """Indices `(R, N)` of all elements: remaining elements, then others, each group increasing."""
    if not is_recorded():
        return remaining.to(torch.int8).argsort(dim=-1, descending=True, stable=True)
    positions = torch.arange(remaining.shape[1], device=remaining.device)
    keys = (
        positions - remaining.long() * remaining.shape[1]
    )  # all keys differ, so the sort need not be stable
    return keys.argsort(-1)


class RelativePositions(nn.Module):
    """Embedding of points, `W [x; r; |r|; g; |g|; log s; sin(pi r); cos(pi r); ...] + b`.

    For a point x, a current point c and a goal e: `r = (x - c) / s` and `g = (x - e) / s`. The
    scale s is the largest absolute coordinate of any `x - c`. The embedding is computed in float32
    or better even under autocast.

    Args:
        features: numbers in a point, d.
        units: size of the result, H.
        octaves: number of frequencies of sines and cosines. Each octave doubles the frequency.
        align: whether to replace x by `x - c`, e by `e - c` and c by 0, and to apply `aligned`.
    """

    def __init__(self, features: int, units: int, octaves: int, align: bool) -> None:
        super().__init__()
        self.octaves, self.align = octaves, align
        self.map = nn.Linear(features * (3 + 2 * octaves) + 3, units)

    def forward(self, points: Tensor, current: Tensor, goal: Tensor) -> Tensor:
        """Embed points `(R, L, d)` as `(R, L, H)`; `current` and `goal` are `(R, 1, d)`.

        Padding in `points` must have the coordinates of `current`.
        """
        with torch.autocast(points.device.type, enabled=False):
            if self.align:
                points, goal = aligned(points - current, goal - current)
                current = torch.zeros_like(current)
            differences = points - current
            size = differences.abs().amax((1, 2), keepdim=True)
            size = torch.where(size > 0, size, 1)
            from_current, from_goal = differences / size, (points - goal) / size
            dist_current, dist_goal = (_vector_length(x) for x in (from_current, from_goal))
            scale = size.log().expand_as(dist_current)
            angles = [2**k * math.pi * from_current for k in range(self.octaves)]
            waves = [wave(angle) for angle in angles for wave in (torch.sin, torch.cos)]
            numbers = [points, from_current, dist_current, from_goal, dist_goal, scale, *waves]
            return self.map(torch.cat(numbers, -1))  # type: ignore[no-any-return]


def aligned(points: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate and mirror points `(R, L, 2)` and a goal `(R, 1, 2)` around the origin.

    Afterwards the goal is on the positive half of the first axis, and the mean of the points is not
    below this axis. If the goal is at the origin, the mean of the points is on this half axis
    instead, and points are not mirrored. If the mean is also at the origin, points are not rotated.
    Lengths below TOLERANCE times the largest coordinate count as 0, so that rounding does not
    decide in symmetric instances.
    """
    least = TOLERANCE * points.abs().amax((1, 2), keepdim=True)
    axis = torch.where(_vector_length(goal) > least, goal, points.mean(1, keepdim=True))
    length = _vector_length(axis)
    has_axis = length > least
    cos, sin = (axis / torch.where(has_axis, length, 1)).chunk(2, -1)
    cos, sin = torch.where(has_axis, cos, 1), torch.where(has_axis, sin, 0)
    x, y = points.chunk(2, -1)
    is_below = (y * cos - x * sin).mean(1, keepdim=True) < -least
    side = torch.where(is_below, -1, 1).to(points.dtype)

    def turn(vectors: Tensor) -> Tensor:
        x, y = vectors.chunk(2, -1)
        return torch.cat([x * cos + y * sin, (y * cos - x * sin) * side], -1)

    return turn(points), turn(goal)


class DistanceBias(nn.Module):
    """Attention bias of each pair of points: `a log(1 + distance / spacing)`.

    Each head has a slope a. The spacing is the mean distance of a point to its nearest neighbour.
    So the bias does not depend on the unit of length, and hardly on the number of points. The
    initial slopes are spread from 0 to -2.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        slopes = torch.empty(heads)
        if not slopes.is_meta:  # arithmetic on the meta device would import PyTorch's compiler
            slopes = -2 * torch.arange(heads) / max(1, heads - 1)
        self.slopes = nn.Parameter(slopes)

    def forward(self, points: Tensor, mask: Tensor) -> Tensor:
        """Return the scores `(R, heads, L, L)` of points `(R, L, d)`; padding has mask False."""
        with torch.autocast(points.device.type, enabled=False):
            squares = [(x[:, :, None] - x[:, None]).square() for x in points.unbind(-1)]
            dist = safe_sqrt(torch.stack(squares).sum(0))
            is_pair = (dist > 0) & mask[:, None] & mask[:, :, None]
            nearest = dist.masked_fill(~is_pair, torch.inf).amin(-1)
            has_neighbour = nearest.isfinite()
            total = torch.where(has_neighbour, nearest, 0).sum(-1)
            spacing = total / has_neighbour.sum(-1).clamp(min=1)
            spacing = torch.where(spacing > 0, spacing, 1)[:, None, None]
            return self.slopes[:, None, None] * (dist / spacing).log1p()[:, None]


def _vector_length(x: Tensor) -> Tensor:
    """The lengths `(R, L, 1)` of vectors `(R, L, d)`."""
    return safe_sqrt(x.square().sum(-1, keepdim=True))
