"""What every test shares: the process settings of the program, and small models."""

from ptrnet import runtime

runtime.tune()

import pytest  # noqa: E402

from tests.small_models import small_solver  # noqa: E402


@pytest.fixture
def small():
    """A function that builds an untrained solver of a task, by default of 16 units."""
    return small_solver
