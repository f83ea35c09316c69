"""The features of boxes and of pairs of boxes, which `box-ptr-net` reads.

`boxes_cpu.py` computes the same, compiled for a CPU. After a change of a constant, remove numba's
cache, see `numerics`.
"""

import torch
from torch import Tensor

SCALES = (12.0, 60.0)  # differences of 1/12 and of 1/60 of the page fill the range of a feature
WAVES = (12.0, 40.0)  # radians per page of the sines of the boxes' edges
SMALLEST = 1e-3  # of the page: smaller boxes are as wide and as high as this
NUM_FEATURES, NUM_PAIR_FEATURES = 8 + 4 * len(WAVES), 8 * (1 + len(SCALES)) + 2


def box_features(boxes: Tensor) -> Tensor:
    """Features `(B, N, 16)` of boxes `(B, N, 4)` in the unit square: places, sizes and waves."""
    sizes = boxes[..., 2:] - boxes[..., :2]
    logs = sizes.clamp(min=SMALLEST).log()
    waves = [(scale * boxes).sin() for scale in WAVES]
    return torch.cat([boxes, sizes, logs, *waves], -1)


def pair_features(some: Tensor, boxes: Tensor) -> Tensor:
    """Features `(B, M, N, 26)` of boxes `(B, N, 4)` relative to each of some boxes `(B, M, 4)`.

    The differences between the edges of both boxes, as they are and clipped in two scales, and how
    much they overlap in x and in y, in shares of the smaller box; negative for a gap.
    """
    here, there = some[:, :, None], boxes[:, None]
    (here_low, here_high), (there_low, there_high) = here.chunk(2, -1), there.chunk(2, -1)
    differences = torch.cat([there, there], -1) - torch.cat([here, here_high, here_low], -1)
    sizes = [(box[..., 2:] - box[..., :2]).clamp(min=SMALLEST) for box in (here, there)]
    shared = torch.minimum(here_high, there_high) - torch.maximum(here_low, there_low)
    overlaps = shared / torch.minimum(*sizes)
    clipped = [(scale * differences).clamp(-1, 1) for scale in SCALES]
    return torch.cat([differences, *clipped, overlaps.clamp(-1, 1)], -1)
