"""What the tests of several kernels share."""

import pytest
import torch
from numba.core.codegen import get_host_cpu_features

from ptrnet.kernels import packed


@pytest.fixture
def needs_instructions():
    """A function that skips a test unless packed products of a type can be computed here.

    Also where they are not used, since a processor with AMX is faster without them.
    """

    def skip_without(dtype):
        has_pairs = "+avx512bf16" in get_host_cpu_features().split(",")
        if not packed.prefers_avx512(torch.float32) or (dtype == torch.bfloat16 and not has_pairs):
            pytest.skip(f"this processor has no instructions for {dtype}")

    return skip_without


@pytest.fixture
def needs_amx():
    """Skips a test where there is no AMX."""
    if not packed.has_amx():
        pytest.skip("this processor has no AMX, or the system does not permit it")
