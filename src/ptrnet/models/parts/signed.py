"""A path through a network that never falls if a feature moves in the direction of its sign."""

import torch
from torch import Tensor, nn

FACTOR = 10.0  # of raw weights, so that an optimiser such as Adam moves them fast enough
STEPS = 32  # hidden units, which are steps of different places and slopes at first
STEEPEST = 3.0  # log2 of the steepest slope of a step in a new network
SLIGHT = 0.05  # the slope of a step in features that are not its own


class SignedFeatures(nn.Module):
    """Adds `sum_k a_k z_k + sum_m v_m tanh(sum_k w_mk z_k + c_m)` to the score of an element.

    `z` are the element's features that have a sign, multiplied by it. The weights are not negative:
    `a, v = softplus(s r + R h)` and `w = softplus(q)`. `h` is the state of the element in a network
    that does not see any `z`, so the weights depend on all other features. All functions are
    monotone, so the sum never falls if a `z` of the element rises (Daniels and Velikova 2010), and
    it does not depend on the `z` of other elements.

    Args:
        signs: `(d,)`, 1, -1, or 0 for features that have no sign.
        units: the size of `h`.
    """

    signs: Tensor
    columns: Tensor
    has_none: Tensor

    def __init__(self, signs: Tensor, units: int) -> None:
        super().__init__()
        columns = signs.nonzero()[:, 0]
        # The task's settings have the signs, so the saved weights need not include them.
        self.register_buffer("columns", columns, persistent=False)
        self.register_buffer("signs", signs[columns].float(), persistent=False)
        self.register_buffer("has_none", signs == 0, persistent=False)
        count = len(columns)
        # Each step has one feature of its own. Its place is between two standard deviations below
        # the mean and two above.
        own = torch.arange(STEPS) % count
        slopes = 2 ** (STEEPEST * torch.rand(STEPS))
        weights = torch.full((STEPS, count), SLIGHT).scatter(1, own[:, None], slopes[:, None])
        self.raw_slopes = nn.Parameter(_inverse_softplus(weights))
        self.shifts = nn.Parameter(-slopes * (4 * torch.rand(STEPS) - 2))
        sizes = torch.cat([torch.full((count,), 1 / count), torch.full((STEPS,), 1 / STEPS)])
        self.raw_sizes = nn.Parameter(_inverse_softplus(sizes) / FACTOR)
        self.of_states = nn.Linear(units, count + STEPS, bias=False)
        nn.init.zeros_(self.of_states.weight)

    def others(self, inputs: Tensor) -> Tensor:
        """Return features `(B, N, d)` with 0 in place of those that have a sign."""
        return inputs * self.has_none

    def forward(self, inputs: Tensor, states: Tensor) -> Tensor:
        """Return what elements `(B, N, d)` with the states `(B, N, H)` add to their scores."""
        z = inputs.index_select(-1, self.columns) * self.signs
        slopes = nn.functional.softplus(self.raw_slopes)
        # Not a matrix product, which an export to 8 bits would round by the largest z of all sets.
        steps = torch.tanh((z[..., None, :] * slopes).sum(-1) + self.shifts)
        sizes = nn.functional.softplus(FACTOR * self.raw_sizes + self.of_states(states))
        return (sizes * torch.cat([z, steps], -1)).sum(-1)


def _inverse_softplus(numbers: Tensor) -> Tensor:
    return numbers.expm1().log()
