"""What the tests of several kernels share."""

import pytest
import torch
from numba.core.codegen import get_host_cpu_features

from ptrnet.kernels import packed


@pytest.fixture
def needs_instructions():
    """A function that skips a test unless packed products of a type can be computed here.

    Also where they are not used, since a processor with matrix tiles is faster without them.
    """

    def skip_without(dtype):
        has_pairs = "+avx512bf16" in get_host_cpu_features().split(",")
        if not packed.available(torch.float32) or (dtype == torch.bfloat16 and not has_pairs):
            pytest.skip(f"this processor has no instructions for {dtype}")

    return skip_without


@pytest.fixture
def needs_matrix_tiles():
    """Skips a test where there are no matrix tiles (AMX)."""
    if not packed.has_matrix_tiles():
        pytest.skip("this processor has no matrix tiles, or the system does not lend them")
