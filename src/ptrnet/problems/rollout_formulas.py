"""The rollouts of `ptrnet.problems.rollouts` in PyTorch, for GPUs and for exported graphs.

All first choices F = n of an instance are rolled out together. A graph that PyTorch records keeps
the loops, because `script_if_tracing` compiles them, so it fits instances of all sizes. The
compiler of TorchScript knows no keyword-only arguments, no closures and few types, hence the style.
"""

import torch
from torch import Tensor

from ptrnet.kernels import is_recorded
from ptrnet.problems.routes import NEAR


@torch.jit.script_if_tracing
def makespans(
    machine: Tensor,
    duration: Tensor,
    done: Tensor,
    job_free: Tensor,
    machine_free: Tensor,
    allowed: Tensor,
) -> Tensor:
    """Return what `ptrnet.problems.rollouts.makespans` returns."""
    batch, n, most = machine.shape
    jobs = torch.arange(n, device=machine.device)
    is_done = torch.arange(most, device=machine.device) < done[..., None]
    work = duration.masked_fill(is_done, 0.0).sum(-1)[:, None].expand(batch, n, n)
    done = done[:, None].expand(batch, n, n)
    ends = job_free[:, None].expand(batch, n, n)
    free = machine_free[:, None].expand(batch, n, machine_free.shape[1])
    machines = machine[:, None].expand(batch, n, n, most)
    durations = duration[:, None].expand(batch, n, n, most)
    job = jobs[:, None].expand(batch, n, 1)
    is_on = allowed[..., None]
    while bool(is_on.any()):
        k = done.clamp(max=most - 1)[..., None]
        on, lasts = machines.gather(3, k)[..., 0].clamp(min=0), durations.gather(3, k)[..., 0]
        end = torch.maximum(ends, free.gather(2, on)) + lasts
        is_next = (jobs == job) & is_on
        ends = torch.where(is_next, end, ends)
        free = torch.where(is_on, free.scatter(2, on.gather(2, job), end.gather(2, job)), free)
        work = torch.where(is_next, work - lasts, work)
        done = done + is_next.long()
        k = done.clamp(max=most - 1)[..., None]
        on, lasts = machines.gather(3, k)[..., 0], durations.gather(3, k)[..., 0]
        waits = (done < most) & (on >= 0)
        first = _least(torch.maximum(ends, free.gather(2, on.clamp(min=0))), waits)
        first = _least(-work, first)
        first = _least(on.double(), first)
        first = _least(lasts, first)
        job = jobs.expand(batch, n, n).masked_fill(~first, n).amin(-1, keepdim=True)
        job = job.clamp(max=n - 1)
        is_on = is_on & waits.any(-1, keepdim=True)
    return ends.amax(-1).masked_fill(~allowed, float("inf"))


def values(weight: Tensor, value: Tensor, density: Tensor, left: Tensor) -> Tensor:
    """Return what `ptrnet.problems.rollouts.values` returns."""
    # The operator that exported graphs have is stable, but the exporter refuses the argument.
    order = (-density).argsort(1) if is_recorded() else (-density).argsort(dim=1, stable=True)
    return _values(weight.gather(1, order), value.gather(1, order), left).gather(
        1, order.argsort(1)
    )


@torch.jit.script_if_tracing
def _values(weight: Tensor, value: Tensor, left: Tensor) -> Tensor:
    """Compute `values` of items in the order of the rule."""
    fits = weight <= left[:, None]
    gained = value.masked_fill(~fits, 0.0)
    room = (left[:, None] - weight).masked_fill(~fits, -1.0)
    items = torch.arange(weight.shape[1], device=weight.device)
    for item in range(weight.shape[1]):
        takes = (weight[:, item, None] <= room) & (items != item)
        gained = gained + takes * value[:, item, None]
        room = room - takes * weight[:, item, None]
    return gained


@torch.jit.script_if_tracing
def prizes(
    position: Tensor,
    prize: Tensor,
    rounded: Tensor,
    unvisited: Tensor,
    last: Tensor,
    left: Tensor,
    allowed: Tensor,
    near: float = NEAR,
) -> Tensor:
    """Return what `ptrnet.problems.rollouts.prizes` returns."""
    batch, n = prize.shape
    matrix = _distances(position, rounded)
    least = _ways_home(matrix, rounded, unvisited)[:, None].expand(batch, n, n)
    waits = unvisited[:, None].expand(batch, n, n)
    matrices = matrix[:, None].expand(batch, n, n, n)
    worth = prize[:, None].expand(batch, n, n)
    places = torch.arange(n, device=prize.device)
    here = last[:, None, None].expand(batch, n, 1)
    place = places[:, None].expand(batch, n, 1)
    rest = left[:, None, None].expand(batch, n, 1)
    is_on = allowed[..., None]
    found = torch.zeros_like(prize)
    while bool(is_on.any()):
        there = matrices.gather(2, here[..., None].expand(batch, n, 1, n))[:, :, 0]
        found = found + (worth.gather(2, place) * is_on)[..., 0]
        rest = rest - there.gather(2, place) * is_on
        waits = waits & ((places != place) | ~is_on)
        here = torch.where(is_on, place, here)
        there = matrices.gather(2, here[..., None].expand(batch, n, 1, n))[:, :, 0]
        ratio = (worth / (there + near)).masked_fill(~(waits & (there + least <= rest)), -1.0)
        place = ratio.argmax(-1, keepdim=True)
        # `least` is outdated if a shortest way uses a place that this rollout has visited.
        direct = matrices[:, :, :, 0].gather(2, place)
        is_far = is_on & (there.gather(2, place) + direct > rest)
        is_outdated = bool((is_far & (rounded[:, None, None] != 0)).any())
        while is_outdated:  # once; the exporter fails for an `if` here
            is_outdated = False
            rounding = rounded[:, None].expand(batch, n).flatten()
            home = _ways_home(matrices.flatten(0, 1), rounding, waits.flatten(0, 1))
            home = home.view(batch, n, n)
            again = (worth / (there + near)).masked_fill(~(waits & (there + home <= rest)), -1.0)
            ratio = torch.where(is_far, again, ratio)
            place = ratio.argmax(-1, keepdim=True)
        is_on = is_on & (ratio.amax(-1, keepdim=True) >= 0)
    return found


@torch.jit.script_if_tracing
def ways_back(position: Tensor, rounded: Tensor, unvisited: Tensor) -> Tensor:
    """Return what `ptrnet.problems.rollouts.ways_back` returns."""
    return _ways_home(_distances(position, rounded), rounded, unvisited)


def _ways_home(matrix: Tensor, rounded: Tensor, unvisited: Tensor) -> Tensor:
    """Return the lengths `(B, n)` of the shortest ways to element 0 through unvisited places."""
    ways = matrix[:, :, 0]
    changes = bool((rounded != 0).any())  # otherwise the direct way is a shortest one
    while changes:
        through = matrix + ways.masked_fill(~unvisited, float("inf"))[:, None]
        shorter = torch.minimum(ways, through.amin(-1))
        shorter = torch.where(rounded[:, None] != 0, shorter, ways)
        changes = bool((shorter < ways).any())
        ways = shorter
    return ways


def _distances(position: Tensor, rounded: Tensor) -> Tensor:
    """Return the distances `(B, n, n)`, rounded as in EUC_2D where `rounded` is not 0."""
    differences = position[:, :, None] - position[:, None]
    x, y = differences[..., 0], differences[..., 1]
    whole = ((x * x + y * y).sqrt() + 0.5).floor()
    return torch.where(rounded[:, None, None] != 0, whole, x.hypot(y))


def _least(keys: Tensor, among: Tensor) -> Tensor:
    """Return which of the elements `among` have the smallest key; booleans `(..., n)`."""
    keys = keys.masked_fill(~among, float("inf"))
    return among & (keys == keys.amin(-1, keepdim=True))
