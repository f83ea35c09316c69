"""Tours improved for as long as one waits: random parts are solved again by the network.

A part runs from one city to another; the cities between them are what remains of a tour that
began at the second of these two and has just come to the first (random re-construction, as in
LEHD, Luo et al. 2023). The new order replaces the former one where it is shorter:

    tour      ... a b c d e z ...
    part      z a | b c d e       a tour that began at z and has come to a; b to e remain
    solved    z a | c b e d       by the network; closed, it goes from d back to z
    new tour  ... a c b e d z ... if the closed part has become shorter
"""

import math
import time
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import torch
from torch import Tensor

from ptrnet.constraints import Constraint, Tour
from ptrnet.decoding.beam import Greedy
from ptrnet.decoding.search import Decoder
from ptrnet.decoding.settings import MIN_PART, ReconstructSettings
from ptrnet.decoding.steps import Hypotheses
from ptrnet.masks import gather_rows, gather_tokens, length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import END, Answers, Floats, Indices


@dataclass(frozen=True)
class Reconstruct(ReconstructSettings, Decoder):
    """Improves the tours of a greedy search, in rounds of all instances of a batch at once.

    Of each instance it gives the tour that it ends with and the one that it began with, so that it
    is never worse. What is drawn in a round follows from the seed and the round alone: more rounds
    continue from there, and as many rounds give the same tours, alone and in any batch.

    Args:
        seconds: for the instances of a batch, after the greedy search; None: no limit, or 1.0
            where `rounds` is None, too.
        rounds: the most of them; None: no limit.
        part: the most cities that are solved again at once; best about as many as the instances had
            on which the model was trained.
        seed: of the parts.
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
        """See `Decoder`; `constraint` is not read, as all answers are tours under `Tour`."""
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
        """The tours after all rounds that there is time for.

        Args:
            model: solves the parts.
            inputs: `(B, N, d)`.
            tours: `(B, N + 1)`, each of as many cities as `sizes` says; what stands after them, and
                always in the last column, where END was, is 0.
            sizes: `(B,)`.
        """
        if sizes.max() < MIN_PART + 2:
            return tours
        deadline = math.inf if self.seconds is None else time.monotonic() + self.seconds
        points = inputs.double().cpu().numpy()
        for round_number in count():
            if round_number == self.rounds or time.monotonic() >= deadline:
                break
            drawn = np.random.default_rng([self.seed, round_number]).random(3)
            tours = _with_parts_solved(model, inputs, points, tours, *self._parts(drawn, sizes))
        return tours

    def _parts(self, drawn: Floats, sizes: Indices) -> tuple[Indices, Indices]:
        """Parts of tours of `sizes` `(B,)` cities; those of a tour share only their ends.

        Args:
            drawn: three numbers from 0 to 1: how long the parts are, where the first one begins,
                and in which direction they go.

        Returns:
            For each of P parts the row of its tour, `(P,)`, and positions in that tour, `(P, W)`:
            first that of the fixed city after the part, then that of the fixed city before it,
            then those of its inner cities in their order; -1 pads parts that are shorter than W.
        """
        rows: list[int] = []
        parts: list[Indices] = []  # (W,) positions each
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
            parts += list(n - 1 - along if direction < 0.5 else along)  # backwards, or forwards
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
    """The tours `(B, N + 1)`, with their parts in the model's order where that is shorter.

    `inputs` and `points`, the same in float64, are `(B, N, d)`; `rows` `(P,)` and `positions`
    `(P, W)` are the parts.
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
    """`(P, W)`: the order of each part's cities in a greedy tour that begins with cities 0 and 1.

    The inputs are the cities of the P parts, `(P, W, d)`, as many of each as `counts` `(P,)` says;
    what stands after these stays there.
    """
    batch, width, _ = inputs.shape
    counts = counts.to(inputs.device)
    encoded, constraint = model.encode(inputs, counts), Tour()
    model_state = encoded.state
    constraint_state = constraint.initial_state(counts, model.num_specials, encoded.num_tokens)
    tokens = torch.full((batch, 1), END, device=inputs.device)
    parents, columns = torch.zeros_like(tokens), []
    for step in range(width):
        log_probs, model_state = model.step(encoded, model_state, tokens)
        if step < 2:
            tokens = torch.full_like(tokens, model.num_specials + step)
        else:
            allowed = constraint.allowed(constraint_state)
            tokens = log_probs.masked_fill(~allowed, -torch.inf).argmax(-1)
        constraint_state = constraint.advance(constraint_state, parents, tokens)
        columns.append(tokens)
    solved = torch.cat(columns, 1) - model.num_specials
    unchanged = torch.arange(width, device=inputs.device)
    order: Indices = torch.where(length_mask(counts, width), solved, unchanged).cpu().numpy()
    return order


def _closed_lengths(path: Floats, mask: np.ndarray) -> Floats:
    """`(P,)`: the lengths of closed tours of points `(P, W, d)`; the mask is False on padding."""
    steps = np.linalg.norm(np.diff(path, axis=1), axis=-1)
    closing = path[np.arange(len(path)), mask.sum(1) - 1] - path[:, 0]
    lengths: Floats = (steps * mask[:, 1:]).sum(1) + np.linalg.norm(closing, axis=-1)
    return lengths


def _from_city_0(tours: Indices, sizes: Indices) -> Indices:
    """The tours `(B, N + 1)` of `sizes` `(B,)` cities, each from city 0 on."""
    steps, mask = np.arange(tours.shape[1]), Answers(tours, sizes).mask
    start = np.argmin(np.where(mask, tours, tours.shape[1]), 1)[:, None]
    rotation = np.where(mask, (steps + start) % sizes[:, None], steps)
    return np.take_along_axis(tours, rotation, 1)


def _log_probs(model: PointerModel, inputs: Tensor, lengths: Tensor, tokens: Tensor) -> Tensor:
    """`(B, 1)` of the sequences `(B, M)`, each with one END after its tokens."""
    encoded = model.encode(inputs, lengths)
    state, last = encoded.state, torch.full_like(tokens[:, :1], END)
    total = inputs.new_zeros(len(inputs), 1)
    for step in range(tokens.shape[1]):
        log_probs, state = model.step(encoded, state, last)
        last = tokens[:, step : step + 1]
        gained = gather_tokens(log_probs, last)
        total = total + torch.where(step <= lengths[:, None], gained, 0)
    return total
