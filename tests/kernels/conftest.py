"""Fixtures of several kernels' tests."""

import pytest
import torch
from numba.core.codegen import get_host_cpu_features

from ptrnet.kernels import packed

INSTRUCTIONS = {torch.float32: {"+avx2", "+fma"}, torch.bfloat16: {"+avx512f", "+avx512bf16"}}


@pytest.fixture
def needs_instructions():
    """Return a function that skips a test if this processor has no packed products of a type.

    They can be where they are not used, because the processor has something faster.
    """

    def skip_without(dtype):
        instructions = INSTRUCTIONS[dtype]
        if packed.is_restricted() or not instructions <= set(get_host_cpu_features().split(",")):
            pytest.skip(f"this processor lacks one of {instructions}, or numba may not use them")

    return skip_without
