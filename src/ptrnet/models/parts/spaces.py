"""Scores that are linear in three spaces of features: what a few hundred examples can teach."""

import torch
from torch import Tensor, nn

from ptrnet.kernels import is_eager

LENGTH = 3.0  # of the kernel, times the square root of the number of features
FARTHEST = 10.0  # the most that a feature counts as away from its mean, in standard deviations
MAX_KERNELS = 2**17  # that are computed at the same time, in a processor's cache
MAX_NUMBERS = 2**24  # that are in memory at the same time


class Spaces(nn.Module):
    """`f(x_j) = b' z_j + sum_i a_i k(z_j, z_i) + sum_i c_i k(p_j, p_i)`, the score of element j.

    `z` are the features, standardised by the mean and the standard deviation of the examples.
    `p` are places in the set: the share of the other elements that have a lower value, minus the
    share of those that have a higher one, for each feature. `k(z, y) = exp(-|z - y|_1 / l)` is
    Laplace's kernel, with `l = 3 sqrt(d)`; it is 1 if both are equal, and near 0 if they are far
    away. `z_i` and `p_i` are some of the examples' elements. `ptrnet.training.spaces` fits b, a, c.

    The first space knows what is linear, the second one products and jumps, the third one what
    counts within a set, whatever the units.

    Args:
        features: the number of features, d.
        num_rows: the number of elements `z_i`, which is also that of `p_i`.

    Attributes:
        means, scales: `(d,)`, of the examples; a scale is 1 / the standard deviation, or 0 if all
            examples have the same number.
        weights: `(d,)`, b.
        rows, places: `(R, d)`, `z_i` and `p_i`.
        of_rows, of_places: `(R,)`, a and c.
        share: `()`, the share of `f` in a mixture of models, which `forward` does not read.
    """

    means: Tensor
    scales: Tensor
    rows: Tensor
    places: Tensor
    share: Tensor

    def __init__(self, features: int, num_rows: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(features))
        self.of_rows = nn.Parameter(torch.zeros(num_rows))
        self.of_places = nn.Parameter(torch.zeros(num_rows))
        for name in ("means", "scales"):
            self.register_buffer(name, torch.zeros(features))
        for name in ("rows", "places"):
            self.register_buffer(name, torch.zeros(num_rows, features))
        self.register_buffer("share", torch.zeros(()))

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def resize(self, num_rows: int) -> None:
        """Have more rows. New ones do not count, so the scores stay the same."""
        more = num_rows - len(self)
        for name in ("rows", "places", "of_rows", "of_places"):
            value = getattr(self, name)
            value.data = torch.cat([value, value.new_zeros(more, *value.shape[1:])]).detach()

    def forward(self, inputs: Tensor, is_element: Tensor) -> Tensor:
        """Return the scores `(B, N)` of elements `(B, N, d)`; `is_element` is `(B, N)`."""
        z = self.standardised(inputs)
        length = LENGTH * (self.scales != 0).sum().clamp(min=1).to(z).sqrt()
        scores = z @ self.weights
        scores = scores + weighted(z, self.rows, length, self.of_rows)
        return scores + weighted(places(z, is_element), self.places, length, self.of_places)

    def standardised(self, inputs: Tensor) -> Tensor:
        """Return `z`, of the shape of `inputs` `(..., d)`."""
        return ((inputs - self.means) * self.scales).clamp(-FARTHEST, FARTHEST)


def weighted(x: Tensor, rows: Tensor, length: Tensor, weights: Tensor) -> Tensor:
    """Return `sum_i weights_i k(x, row_i)` `(...)` of elements `(..., d)`."""
    if not is_eager(x):
        return kernel(x, rows, length) @ weights
    columns, sums = rows.T.contiguous(), []
    for part in torch.split(x.flatten(0, -2), max(1, MAX_KERNELS // max(1, len(rows)))):
        distances = -part.sum(1)[:, None] - rows.sum(1)  # |x - y| = 2 max(x, y) - x - y
        for of_part, of_rows in zip(part.T, columns, strict=True):
            distances = distances.add_(torch.maximum(of_part[:, None], of_rows), alpha=2)
        sums.append((distances / -length).exp() @ weights)
    return torch.cat(sums).view(x.shape[:-1])


def kernel(x: Tensor, rows: Tensor, length: Tensor | float) -> Tensor:
    """Return Laplace's kernel `(..., R)` of elements `(..., d)` and rows `(R, d)`."""
    if is_eager(x):
        distances = torch.cdist(x.flatten(0, -2), rows, p=1).reshape(*x.shape[:-1], len(rows))
    else:  # ONNX adds a small number to all distances of `cdist`
        distances = (x[..., None, :] - rows).abs().sum(-1)
    return (-distances / length).exp()


def places(x: Tensor, is_element: Tensor) -> Tensor:
    """Return each element's place `(B, N, d)` in its set, by each feature: from -1 to 1.

    The largest value has place 1, the lowest one -1, and equal ones share theirs. The place in a
    set of one element is 0.
    """
    others = is_element[:, None].to(x) / (is_element.sum(-1).to(x) - 1).clamp(min=1)[:, None, None]
    at_once = x.shape[-1]
    if is_eager(x):
        at_once = max(1, MAX_NUMBERS // max(1, x.shape[0] * x.shape[1] ** 2))
    parts = [
        (others[..., None] * (part[:, :, None] - part[:, None]).sign()).sum(2)
        for part in torch.split(x, at_once, -1)
    ]
    return torch.cat(parts, -1)
