"""Tours that get better the longer one waits: random parts are solved again by the network.

A part runs from one city to another; the cities between them are what remains of a tour that
begins at the second and has just come to the first (random re-construction, as in LEHD, Luo et
al. 2023). What is found is kept where it is shorter.
"""

import time
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import torch
from torch import Tensor

from ptrnet.constraints import Constraint, Tour
from ptrnet.decoding.beam import Greedy
from ptrnet.decoding.search import Decoder, Found
from ptrnet.errors import InputError
from ptrnet.models.base import PointerModel, pick
from ptrnet.types import END, Floats, Indices

LEAST = 4  # cities between the ends of a part
AT_ONCE = 32  # tours that are worked on: several copies of few


@dataclass(frozen=True)
class Reconstruct(Decoder):
    """Improves the tours of a greedy search for some seconds, an instance's parts all at once.

    Of few instances several copies are improved in a round, and the best of each is kept.
    Of each instance it gives the tour that it ends with and the one that it began with. What is
    drawn in a round follows from the seed and the round alone: more seconds go on from there.

    Args:
        seconds: for the instances of a batch, beside the greedy search.
        part: the most cities that are solved again at once; those of the training, about.
        seed: of the parts.
    """

    seconds: float = 1.0
    part: int = 50
    seed: int = 1
    size: int = field(default=1, init=False)

    name = "reconstruct"
    for_tours = True

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < float("inf"):
            raise InputError(f"seconds: expected a number of 0 or more, got {self.seconds!r}")
        if not isinstance(self.part, int) or self.part < LEAST:
            raise InputError(f"part: expected a whole number of {LEAST} or more, got {self.part!r}")

    @torch.no_grad()
    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        longest: Tensor,
        constraint: Constraint | None = None,
    ) -> Found:
        first = Greedy().decode(model, inputs, lengths, longest, Tour())
        tours = (first.tokens[:, 0] - model.specials).cpu().numpy()
        begun, sizes = time.monotonic(), lengths.cpu().numpy()
        copies = max(1, AT_ONCE // len(tours))
        owners = np.repeat(np.arange(len(tours)), copies)
        points = inputs.double().cpu().numpy()[owners]
        each = inputs.repeat_interleave(copies, 0)
        for k in count():
            if time.monotonic() - begun >= self.seconds or sizes.max() < LEAST + 2:
                break
            found = self._improved(model, each, points, tours[owners], sizes[owners], k)
            real = np.arange(found.shape[1]) < sizes[owners, None]
            whole = _length(points, np.arange(len(found)), found, real)
            best = whole.reshape(-1, copies).argmin(1)
            tours = found.reshape(len(tours), copies, -1)[np.arange(len(tours)), best]
        tokens = _from_the_first(tours, sizes) + model.specials
        tokens[np.arange(tokens.shape[1]) >= sizes[:, None]] = END
        better = torch.from_numpy(tokens).to(inputs.device)
        return Found(
            torch.stack([better, first.tokens[:, 0]], 1),
            first.lengths.expand(-1, 2),
            torch.cat([_log_probs(model, inputs, lengths, better), first.log_probs], 1),
        )

    def _improved(
        self,
        model: PointerModel,
        inputs: Tensor,
        points: Floats,
        tours: Indices,
        sizes: Indices,
        round_: int,
    ) -> Indices:
        """The tours `(B, N)` after one round, in which parts of each are solved again."""
        owners, places = self._parts(np.random.default_rng([self.seed, round_]), sizes)
        real = places >= 0
        cities = tours[owners[:, None], places]
        cities[~real] = 0
        # The far end is where a tour begins, the near one where it has come to.
        rows = torch.from_numpy(owners).to(inputs.device)
        chosen = torch.from_numpy(cities).to(inputs.device)
        within = _solved(model, pick(inputs[rows], chosen), torch.from_numpy(real.sum(1)))
        again = np.take_along_axis(cities, within, 1)
        shorter = _length(points, owners, again, real) < _length(points, owners, cities, real)
        tours = tours.copy()
        kept = real & shorter[:, None]
        tours[np.broadcast_to(owners[:, None], kept.shape)[kept], places[kept]] = again[kept]
        return tours

    def _parts(self, rng: np.random.Generator, sizes: Indices) -> tuple[Indices, Indices]:
        """Instances `(P,)`, and places in their tours `(P, W)`: of the far end, then from the
        near one on; -1 behind a part. Parts of a tour have their ends alone in common.
        """
        owners, rows = [], []
        for b, n in enumerate(sizes.tolist()):
            share, turn, backwards = rng.random(3)
            most = min(self.part, n - 2)
            if most < LEAST:
                continue
            inner = LEAST + int(share * (most + 1 - LEAST))
            starts = np.arange(n // (inner + 1)) * (inner + 1) + int(turn * n)
            steps = np.concatenate([[inner + 1], np.arange(inner + 1)])
            found = (starts[:, None] + steps) % n
            owners += [b] * len(found)
            rows += list(n - 1 - found if backwards < 0.5 else found)
        places = np.full((len(rows), max(map(len, rows))), -1)
        for row, found in zip(places, rows, strict=True):
            row[: len(found)] = found
        return np.array(owners), places


def _solved(model: PointerModel, parts: Tensor, counts: Tensor) -> Indices:
    """`(P, W)`: the elements of parts `(P, W, d)` in the order of a greedy tour of each that
    begins at element 0 and goes on to element 1; behind a part's end its padding.
    """
    batch, width, _ = parts.shape
    counts = counts.to(parts.device)
    encoded, rule = model.encode(parts, counts), Tour()
    state, allowing = encoded.state, rule.start(counts, model.specials, encoded.tokens)
    last = torch.zeros(batch, 1, dtype=torch.int64, device=parts.device)
    none, chosen = torch.zeros_like(last), []
    for k in range(width):
        log_probs, state = model.step(encoded, state, last)
        if k < 2:
            last = torch.full_like(last, model.specials + k)
        else:
            last = log_probs.masked_fill(~rule.allowed(allowing), -torch.inf).argmax(-1)
        allowing = rule.advance(allowing, none, last)
        chosen.append(last[:, 0])
    found = torch.stack(chosen, 1) - model.specials
    places = torch.arange(width, device=parts.device).expand_as(found)
    order: Indices = torch.where(places < counts[:, None], found, places).cpu().numpy()
    return order


def _length(points: Floats, owners: Indices, cities: Indices, real: np.ndarray) -> Floats:
    """`(P,)`: of closed tours of cities `(P, W)` of the owners' points, behind whose end none is
    real.
    """
    found = points[owners[:, None], np.where(real, cities, 0)]
    steps = np.linalg.norm(np.diff(found, axis=1), axis=-1)
    closing = found[np.arange(len(found)), real.sum(1) - 1] - found[:, 0]
    length: Floats = (steps * real[:, 1:]).sum(1) + np.linalg.norm(closing, axis=-1)
    return length


def _from_the_first(tours: Indices, sizes: Indices) -> Indices:
    """The tours, each from city 0 on."""
    inside = np.arange(tours.shape[1]) < sizes[:, None]
    start = np.argmin(np.where(inside, tours, tours.shape[1]), 1)[:, None]
    places = np.arange(tours.shape[1])
    turned = np.where(inside, (places + start) % sizes[:, None], places)
    return np.take_along_axis(tours, turned, 1)


def _log_probs(model: PointerModel, inputs: Tensor, lengths: Tensor, tokens: Tensor) -> Tensor:
    """`(B, 1)` of the sequences `(B, M)`, each with the END behind its length."""
    encoded = model.encode(inputs, lengths)
    state, last = encoded.state, torch.zeros_like(tokens[:, :1])
    total = inputs.new_zeros(len(inputs), 1)
    for k in range(tokens.shape[1]):
        log_probs, state = model.step(encoded, state, last)
        last = tokens[:, k : k + 1]
        found = log_probs.gather(2, last[..., None])[..., 0]
        total = total + torch.where(k <= lengths[:, None], found, 0)
    return total
