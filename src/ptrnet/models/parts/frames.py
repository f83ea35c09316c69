"""Edge frames: elements of the plane as seen along an edge of the answer, and scores of that.

All of it is computed from coordinates and stays float32 (or better) under autocast.
"""

import torch
from torch import Tensor, nn

from ptrnet.indexing import gather_rows
from ptrnet.kernels.eager import is_unchanged
from ptrnet.kernels.frames import FrameScores, Round
from ptrnet.models.base import safe_sqrt
from ptrnet.models.parts.prefixes import PrefixEnds

UNITS = 32  # hidden units of a `FrameScore`, U
ROUNDS = 3  # along the edge to the likeliest token, after the one along the last edge
# A difference below such a scale is seen by its size, above it by its logarithm.
SCALES = (1e-3, 1e-5, 1e-7)
MIN_DIST = 1e-6  # stands for a distance of zero, whose logarithm is taken


class EdgeFrames(nn.Module):
    """Adds to the score of every token what a small network makes of its position in a frame.

    In the first round the frame is the last edge of the answer, from the last element but one to
    the last (after a single element: down the second axis). In each further round it is the edge
    from the last element to the likeliest token so far; where no element has been pointed at yet,
    there is no edge, and differences of coordinates are seen instead of cosines and sines. A
    special slot has the position of the answer's first element. The first round's x is `A q + B k`
    of the decoder's state q and the token's state k.

    Args:
        units: size of queries and keys, H.
    """

    is_open = False  # whether the edges are those of a triangulation that is continued
    first_features, further_features = 5, 7 + 3 * len(SCALES)

    def __init__(self, units: int) -> None:
        super().__init__()
        self.query = nn.Linear(units, UNITS, bias=False)
        self.key = nn.Linear(units, UNITS, bias=False)
        sizes = (self.first_features, *[self.further_features] * ROUNDS)
        rounds = (FrameScore(features) for features in sizes)
        self.looks = nn.ModuleList(rounds)  # "looks" is their name in models' files

    # ---- Which edge it is, and what is seen along it: other frames define these anew.

    def empty(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """The state of empty prefixes, of as many as there are `(B, K)` tokens; see `ends`."""
        return PrefixEnds.empty(tokens)

    def append(
        self, prefixes: tuple[Tensor, ...], tokens: Tensor, num_specials: int
    ) -> tuple[Tensor, ...]:
        """The state after one more token `(B, K)` of each prefix."""
        return PrefixEnds(*prefixes).append(tokens, num_specials)

    def ends(self, prefixes: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The tokens that the edges run between, each `(B, K)`, as `forward` takes them."""
        return prefixes

    def view(self, points: Tensor, num_specials: int, ends: tuple[Tensor, ...]) -> "FrameFeatures":
        """Points `(B, N, 2)` as seen along the edges between `ends` `(B, M)`."""
        return FrameFeatures(points, num_specials, PrefixEnds(*ends))

    # ---- What all frames share.

    def all_ends(self, tokens: Tensor, num_specials: int) -> tuple[Tensor, ...]:
        """`ends` of the prefixes that end with each of the tokens: M of `(B, M)` tokens."""
        prefixes, steps = self.empty(tokens[:, :1]), []
        for i in range(tokens.shape[1]):
            prefixes = self.append(prefixes, tokens[:, i : i + 1], num_specials)
            steps.append(self.ends(prefixes))
        return tuple(torch.cat(columns, 1) for columns in zip(*steps, strict=True))

    def project_keys(self, keys: Tensor) -> Tensor:
        """Keys `(B, S + N, H)` projected to `(U, B, 1, S + N)`, as `forward` takes them."""
        with torch.autocast(keys.device.type, enabled=False):
            return self.key(keys).permute(2, 0, 1).contiguous()[:, :, None]

    def compiled(self, points: Tensor, keys: Tensor) -> FrameScores | None:
        """`forward` for points `(B, N, 2)` and keys of `project_keys`, as a compiled kernel.

        None of changed frames.
        """
        if not is_unchanged(self, (type(self), nn.ModuleList, FrameScore, nn.Linear)):
            return None
        rounds = [score.weights() for score in self.looks]  # type: ignore[operator]
        return FrameScores(points, keys, rounds, self.is_open)

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
            scores: `(B, M, S + N)` before them, -inf on padding.
            ends: each `(B, M)`, of the prefixes' edges.
            queries: `(B, M, H)` of the prefixes.
            points: `(B, N, 2)` the elements' coordinates.
            keys: of the tokens, from `project_keys`.
        """
        num_specials = scores.shape[2] - points.shape[1]
        with torch.autocast(scores.device.type, enabled=False):
            views = self.view(points, num_specials, ends)
            states = self.query(queries).permute(2, 0, 1).contiguous()[..., None] + keys
            first, *further = self.looks
            scores = scores + first(views.along_last_edge(), states)
            for score in further:
                likeliest = scores.argmax(-1, keepdim=True)
                scores = scores + score(views.along_edge_to(likeliest))
        return scores


class FrameScore(nn.Module):
    """`w' max(0, W f + b + x)` of the F features f of each step and token."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features, self.score = nn.Linear(features, UNITS), nn.Linear(UNITS, 1, bias=False)

    def weights(self) -> Round:
        """As the compiled kernel takes them."""
        return Round(self.features.weight, self.features.bias, self.score.weight)

    def forward(self, features: Tensor, x: Tensor | None = None) -> Tensor:
        """`(B, M, S + N)` of `(F, B, M, S + N)` features and x `(U, B, M, S + N)`, None: 0.

        The axis of features comes first: the last one would be too short for fast rows.
        """
        weight, bias = self.features.weight, self.features.bias[:, None]
        hidden = torch.addmm(bias, weight, features.flatten(1))
        hidden = (hidden if x is None else hidden + x.flatten(1)).relu_()
        return (self.score.weight @ hidden).view(features.shape[1:])


class FrameFeatures:
    """Every token as seen from the last element of every prefix.

    Tensors of tokens are `(B, M, S + N)`, those of prefixes `(B, M, 1)`.
    """

    def __init__(self, points: Tensor, num_specials: int, ends: PrefixEnds) -> None:
        self.padded = padded = nn.functional.pad(points, (0, 0, num_specials, 0))
        self.tokens = torch.arange(padded.shape[1], device=points.device)
        is_special = self.tokens < num_specials
        xs, ys = padded[:, None].unbind(-1)  # (B, 1, S + N)
        first, previous, last = (gather_rows(padded, tokens).chunk(2, -1) for tokens in ends)
        self.has_element = (ends.last > 0)[..., None]
        self.set_vectors(
            torch.where(is_special, first[0], xs) - last[0],
            torch.where(is_special, first[1], ys) - last[1],
        )
        has_no_edge = (ends.previous == 0)[..., None]
        self.edge = (
            torch.where(has_no_edge, 0, last[0] - previous[0]),
            torch.where(has_no_edge, -1, last[1] - previous[1]),
        )
        real = self.has_element & ~is_special
        self.is_end = [((xs == x) & (ys == y) & real).to(points.dtype) for x, y in (first, last)]

    def set_vectors(self, x: Tensor, y: Tensor) -> None:
        """Sets the vectors to all tokens, by their coordinates."""
        self.x, self.y = x, y
        self.dist = vector_length(x, y)
        self.log_dist = self.dist.log()

    def along_last_edge(self) -> Tensor:
        """`(5, B, M, S + N)`: cosine and sine of the angle with the last edge, log of the distance,
        and whether the token is where the first and the last element are."""
        x, y = self.edge
        framed = [*self._cosine_sine(x, y, vector_length(x, y)), self.log_dist]
        return torch.stack([*(torch.where(self.has_element, f, 0) for f in framed), *self.is_end])

    def along_edge_to(self, token: Tensor) -> Tensor:
        """`(F, B, M, S + N)`: the same of the edge to the tokens `(B, M, 1)`, the distance from its
        line, and logarithms of these, by which tokens that are near each other differ."""
        x, y, dist, log_dist = (
            values.gather(2, token) for values in (self.x, self.y, self.dist, self.log_dist)
        )
        cosine, sine = self._cosine_sine(x, y, dist)
        parallel = torch.where(self.has_element, cosine, self.y - y)
        perpendicular = torch.where(self.has_element, sine, self.x - x)
        line_dist = torch.where(self.has_element, sine * self.dist, 0)
        is_token, has_element = (self.tokens == token).to(x.dtype), self.has_element.to(x.dtype)
        log_ratio = (self.log_dist - log_dist) * has_element
        flags = [*self.is_end, is_token, has_element.expand_as(log_ratio)]
        geometry = torch.stack([parallel, perpendicular, line_dist])
        logs = signed_logs(geometry).flatten(0, 1)
        return torch.cat([geometry[:2], logs, torch.stack([log_ratio, *flags])])

    def _cosine_sine(self, x: Tensor, y: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine of the angle from a vector to every token; 0 where one has no length."""
        product = length * self.dist
        return (x * self.x + y * self.y) / product, (x * self.y - y * self.x) / product


def vector_length(x: Tensor, y: Tensor) -> Tensor:
    """The length of vectors (x, y), at least MIN_DIST."""
    return safe_sqrt(x * x + y * y).clamp(min=MIN_DIST)


def signed_logs(x: Tensor) -> Tensor:
    """`(F, 3, ...)` of `(F, ...)`: `sign(x) log(1 + |x| / scale)` for each scale.

    Together, as on few tokens an operation costs no less than on many.
    """
    size = x.abs()
    scaled = torch.stack([size * (1 / scale) for scale in SCALES], 1)
    return scaled.log1p() * x.sign()[:, None]  # not copysign: NaN where differentiated twice
