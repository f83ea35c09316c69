"""A Ptr-Net written the usual way, step by step in plain PyTorch: the other side of the ratios.

Its code is `src/ptrnet/bench/naive.py`, so that an installed `ptrnet bench` has it, too.
"""

from ptrnet.bench.naive import NaivePtrNet

__all__ = ["NaivePtrNet"]
