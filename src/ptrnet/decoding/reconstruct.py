"""Improve tours for a given time: the network solves random parts of the tours again.

A part is a path of a tour, with two fixed ends. The network reads the part as an unfinished tour.
This tour began at the part's last city, and has just reached the part's first city. The inner
cities remain. If the network's order is shorter, it replaces the former order. This is the random
re-construction of LEHD (Luo et al. 2023):

    tour      ... a b c d e z ...
    part      z a | b c d e       a tour that began at z and has come to a, with b to e remaining
    solved    z a | c b e d       the network's order of the rest, which closes from d back to z
    new tour  ... a c b e d z ... if the closed part is shorter now
"""

import math
import time
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import torch
from torch import Tensor

from ptrnet.constraints import Constraint, Tour
from ptrnet.decoding.options import MIN_PART, ReconstructSettings
from ptrnet.decoding.search import Decoder, Greedy, Hypotheses
from ptrnet.masks import gather_rows, gather_tokens, length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import END, Floats, Indices, real


@dataclass(frozen=True)
class Reconstruct(ReconstructSettings, Decoder):
    """Improve the tours of a greedy search in rounds.

    In a round, the network solves random parts (paths) of all tours of a batch again. The decoder
    returns two answers for each instance: the improved tour and the greedy tour. The solver takes
    the shorter tour, so the result is never worse than that of greedy decoding. The parts of a
    round depend only on `part`, `seed`, the round's number and the size of the tour. Therefore an
    instance gets the same tour after the same number of rounds, alone or in any batch. Further
    rounds can shorten this tour, but never make it longer.

    Args:
        seconds: time limit for the instances of a batch, after the greedy search. None: no limit.
            If `rounds` is None, too, the limit is 1.0.
        rounds: maximum number of rounds. None: no limit.
        part: maximum number of cities of a part, without its two ends. A good value is the size of
            the largest instances in the model's training. The default fits the shipped model.
        seed: seed of the random parts.

    Examples:
        >>> tour = ptrnet.load("tsp").solve(points, ptrnet.Reconstruct(seconds=5.0))
    """

    size: int = field(default=1, init=False)

    name = "reconstruct"
    needs_circular = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seconds is None and self.rounds is None:
            object.__setattr__(self, "seconds", 1.0)

    @torch.no_grad()
    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        max_lengths: Tensor,
        constraint: Constraint | None = None,
    ) -> Hypotheses:
        """See `Decoder.decode`. `constraint` is ignored, because every answer obeys `Tour`."""
        greedy = Greedy().decode(model, inputs, lengths, max_lengths, Tour())
        tours = (greedy.tokens[:, 0] - model.num_specials).clamp(min=0).cpu().numpy()
        tours = self._improve(model, inputs, tours, lengths.cpu().numpy())
        rotated = torch.from_numpy(_from_city_0(tours, lengths.cpu().numpy())).to(inputs.device)
        mask = length_mask(lengths, rotated.shape[1])
        tokens = torch.where(mask, rotated + model.num_specials, END)
        return Hypotheses(
            torch.stack([tokens, greedy.tokens[:, 0]], 1),
            greedy.lengths.expand(-1, 2),
            torch.cat([_log_probs(model, inputs, lengths, tokens), greedy.log_probs], 1),
        )

    def _improve(
        self, model: PointerModel, inputs: Tensor, tours: Indices, sizes: Indices
    ) -> Indices:
        """Return the tours after the rounds that the limits allow.

        Args:
            model: the model that solves the parts.
            inputs: `(B, N, d)` cities.
            tours: `(B, N + 1)`, padded with 0. The last column is always padding (in place of END).
            sizes: `(B,)` number of cities of each tour.
        """
        if sizes.max() < MIN_PART + 2:  # no tour has room for a part
            return tours
        deadline = math.inf if self.seconds is None else time.monotonic() + self.seconds
        # Compare lengths in float64. In float32, rounding could make an equal tour look shorter.
        points = inputs.double().cpu().numpy()
        for round_number in count():
            if round_number == self.rounds or time.monotonic() >= deadline:
                break
            drawn = np.random.default_rng([self.seed, round_number]).random(3)
            tours = _with_parts_solved(model, inputs, points, tours, *self._parts(drawn, sizes))
        return tours

    def _parts(self, drawn: Floats, sizes: Indices) -> tuple[Indices, Indices]:
        """Choose the parts of a round. Parts of the same tour share only their ends.

        Args:
            drawn: three random numbers from 0 to 1, which decide the length of the parts, the start
                of the first part, and the direction.
            sizes: `(B,)` number of cities of each tour.

        Returns:
            Two arrays for P parts: `(P,)`, the row of each part's tour in the batch, and `(P, W)`,
            the positions of each part's cities in its tour. The positions begin with the last and
            the first city of the part, which are fixed. The inner cities follow in their order.
            Parts shorter than W are padded with -1.
        """
        rows: list[int] = []
        parts: list[Indices] = []  # positions of each part
        share, rotation, direction = drawn.tolist()
        for row, n in enumerate(sizes.tolist()):
            max_inner = min(self.part, n - 2)
            if max_inner < MIN_PART:
                continue
            inner = MIN_PART + int(share * (max_inner + 1 - MIN_PART))
            starts = np.arange(n // (inner + 1)) * (inner + 1) + int(rotation * n)
            steps = np.concatenate([[inner + 1], np.arange(inner + 1)])
            along = (starts[:, None] + steps) % n
            rows += [row] * len(starts)
            # A network may do better in one of the two directions, so draw the direction.
            parts += list(n - 1 - along if direction < 0.5 else along)
        padded = np.full((len(parts), max(map(len, parts))), -1)
        for padded_row, positions in zip(padded, parts, strict=True):
            padded_row[: len(positions)] = positions
        return np.array(rows), padded


def _with_parts_solved(
    model: PointerModel,
    inputs: Tensor,
    points: Floats,
    tours: Indices,
    rows: Indices,
    positions: Indices,
) -> Indices:
    """Return the tours `(B, N + 1)` after the model has reordered their parts.

    If the model's order of a part is not shorter, the part keeps its former order.

    Args:
        model: the model that solves the parts.
        inputs: `(B, N, d)` cities.
        points: the cities in float64.
        tours: `(B, N + 1)`.
        rows: `(P,)` the row of each part's tour, see `Reconstruct._parts`.
        positions: `(P, W)` the positions of each part.
    """
    mask = positions >= 0
    cities = tours[rows[:, None], positions]
    cities[~mask] = 0
    instances = gather_rows(
        inputs[torch.from_numpy(rows).to(inputs.device)],
        torch.from_numpy(cities).to(inputs.device),
    )
    order = _solve_parts(model, instances, torch.from_numpy(mask.sum(1)))
    reordered = np.take_along_axis(cities, order, 1)
    lengths, former = (
        _closed_lengths(points[rows[:, None], path], mask) for path in (reordered, cities)
    )
    replaced = mask & (lengths < former)[:, None]
    tours = tours.copy()
    all_rows = np.broadcast_to(rows[:, None], mask.shape)
    tours[all_rows[replaced], positions[replaced]] = reordered[replaced]
    return tours


def _solve_parts(model: PointerModel, inputs: Tensor, counts: Tensor) -> Indices:
    """Return for each part the greedy tour that begins with the part's cities 0 and 1.

    The result is `(P, W)`. A row has the indices of a part's cities in their new order, then the
    indices of its padding, unchanged.

    Args:
        model: the model that solves the parts.
        inputs: `(P, W, d)` cities of the parts, padded.
        counts: `(P,)` number of cities of each part.
    """
    batch, width, _ = inputs.shape
    counts = counts.to(inputs.device)
    encoded, constraint = model.encode(inputs, counts), Tour()
    model_state = encoded.state
    constraint_state = constraint.begin(inputs, counts)
    tokens = torch.full((batch, 1), END, device=inputs.device)
    parents, columns = torch.zeros_like(tokens), []
    for step in range(width):
        log_probs, model_state = model.step(encoded, model_state, tokens)
        if step < 2:
            tokens = torch.full_like(tokens, model.num_specials + step)
        else:
            allowed = constraint.mask(constraint_state)
            tokens = log_probs.masked_fill(~allowed, -torch.inf).argmax(-1)
        constraint_state = constraint.advance(constraint_state, parents, tokens)
        columns.append(tokens)
    solved = torch.cat(columns, 1) - model.num_specials
    unchanged = torch.arange(width, device=inputs.device)
    order: Indices = torch.where(length_mask(counts, width), solved, unchanged).cpu().numpy()
    return order


def _closed_lengths(path: Floats, mask: np.ndarray) -> Floats:
    """Return the lengths `(P,)` of closed tours.

    Args:
        path: `(P, W, d)` points of each tour in its order.
        mask: `(P, W)`, False on padding.
    """
    steps = np.linalg.norm(np.diff(path, axis=1), axis=-1)
    closing = path[np.arange(len(path)), mask.sum(1) - 1] - path[:, 0]
    lengths: Floats = (steps * mask[:, 1:]).sum(1) + np.linalg.norm(closing, axis=-1)
    return lengths


def _from_city_0(tours: Indices, sizes: Indices) -> Indices:
    """Rotate tours `(B, N + 1)` to begin at city 0. `sizes` `(B,)` are their numbers of cities."""
    steps, mask = np.arange(tours.shape[1]), real(sizes, tours.shape[1])
    start = np.argmin(np.where(mask, tours, tours.shape[1]), 1)[:, None]
    rotation = np.where(mask, (steps + start) % sizes[:, None], steps)
    return np.take_along_axis(tours, rotation, 1)


def _log_probs(model: PointerModel, inputs: Tensor, lengths: Tensor, tokens: Tensor) -> Tensor:
    """Return `(B, 1)` log-probabilities of the tours `(B, M)`, including END.

    `model.log_probs` would keep `(B, M, S + N)` numbers in memory. This function keeps only the
    numbers of one step.
    """
    encoded = model.encode(inputs, lengths)
    state, last = encoded.state, torch.full_like(tokens[:, :1], END)
    total = inputs.new_zeros(len(inputs), 1)
    for step in range(tokens.shape[1]):
        log_probs, state = model.step(encoded, state, last)
        last = tokens[:, step : step + 1]
        gained = gather_tokens(log_probs, last)
        total = total + torch.where(step <= lengths[:, None], gained, 0)
    return total
