"""What the tests of several kernels share."""

import pytest
import torch
from numba.core.codegen import get_host_cpu_features

from ptrnet.kernels import packed
from ptrnet.kernels.packed import avx2, avx512

INSTRUCTIONS = {
    (avx512, torch.float32): {"+avx512f"},
    (avx512, torch.bfloat16): {"+avx512f", "+avx512bf16"},
    (avx2, torch.float32): {"+avx2", "+fma"},
}


@pytest.fixture
def needs_instructions():
    """A function that skips a test unless a kernel's products of a type can be computed here.

    Also where they are not used, since the processor has something faster.
    """

    def skip_without(kernel, dtype):
        instructions = INSTRUCTIONS.get((kernel, dtype))
        if instructions is None:
            pytest.skip(f"{kernel.__name__} has no products of {dtype}")
        if packed.is_restricted() or not instructions <= set(get_host_cpu_features().split(",")):
            pytest.skip(f"this processor has not {instructions}, or numba may not use them")

    return skip_without


@pytest.fixture
def needs_amx():
    """Skips a test where there is no AMX."""
    if not packed.has_amx():
        pytest.skip("this processor has no AMX, or the system does not permit it")
