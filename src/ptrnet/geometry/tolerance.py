"""Room for rounding errors in limits, such as a capacity or the longest length of a tour."""

from typing import Any

from array_api_compat import array_namespace

SHARE = 1e-9  # a sum may exceed its limit by this share, so that 0.1 + 0.2 fits into 0.3
# A sum of whole numbers has no rounding errors, and exceeds a whole limit by 1 or more.
MOST = 0.5


def with_tolerance(limit: Any) -> Any:
    """Return a limit with room for rounding errors: a float, an array or a tensor, 0 or more."""
    if isinstance(limit, float):  # also a scalar of NumPy's
        return limit + min(SHARE * limit, MOST)
    return limit + array_namespace(limit).clip(SHARE * limit, max=MOST)
