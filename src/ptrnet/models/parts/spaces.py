"""Scores that are linear in three spaces of features: what a few hundred examples can teach."""

import torch
from torch import Tensor, nn

from ptrnet.kernels import is_eager

LENGTH = 3.0  # of the kernel, times the square root of the number of features
FARTHEST = 10.0  # the most that a feature counts as away from its mean, in standard deviations
MANY_ELEMENTS = 1_000  # that are worth a search for features of few values
FEW_VALUES = 8
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
    if not is_eager(x) or x.shape[:-1].numel() < MANY_ELEMENTS:
        return kernel(x, rows, length) @ weights
    shape, x, y = x.shape[:-1], x.flatten(0, -2) / length, rows / length
    # A product of matrices is the fastest of all operations. Features of few values v in the rows
    # y, such as those of a word, are a product: |x - y| = sum_v |x - v| [y = v]. Of the others, x
    # and y are a part of the product: |x - y| = x + y - 2 min(x, y).
    found = [feature.unique() for feature in y.T]
    few = [k for k, values in enumerate(found) if len(values) <= FEW_VALUES]
    others = [k for k, values in enumerate(found) if len(values) > FEW_VALUES]
    owners = torch.tensor([k for k in few for _ in found[k]], dtype=torch.int64, device=x.device)
    values = torch.cat([y.new_zeros(0), *(found[k] for k in few)])
    x_sum, y_sum = (part[:, others].sum(1, keepdim=True) for part in (x, y))
    left = -torch.cat([(x[:, owners] - values).abs(), x_sum, torch.ones_like(x_sum)], 1)
    right = torch.cat([(y[:, owners] == values).to(y), torch.ones_like(y_sum), y_sum], 1)
    pairs = [(x[:, k, None].contiguous(), y[:, k].contiguous()) for k in others]
    sums, size = [], max(1, MAX_KERNELS // max(1, len(rows)))
    for first in range(0, len(x), size):
        part = slice(first, first + size)
        negative = left[part] @ right.T
        for of_x, of_y in pairs:
            negative.add_(torch.minimum(of_x[part], of_y), alpha=2)
        sums.append(negative.exp_() @ weights)
    return torch.cat(sums).view(shape)


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
