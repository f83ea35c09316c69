"""Bodies that are a NumPy array, `.npy`: nothing is unpickled, and no header is believed."""

import io
import math
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ptrnet.errors import InputError

MEDIA_TYPE = "application/x-npy"
_KINDS = "fiu"  # real numbers; NumPy's letters


def parse_npy(body: bytes) -> NDArray[Any]:
    """The array in a body: real numbers of any type, `(n, d)` or `(B, n, d)`.

    Raises:
        InputError: no such file, one of Python's objects or other types, or of another length
            than its header says.
    """
    stream = io.BytesIO(body)
    try:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version[0]}.{version[1]}")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = read(stream)
    except Exception as error:  # Python's parser and tokenizer have many, with no common base
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"body: not a .npy file: {reason[:200]}") from None
    if dtype.kind not in _KINDS or dtype.hasobject or dtype.itemsize > 8:
        raise InputError(f"body: expected an array of real numbers, got type {str(dtype)[:40]}")
    if len(shape) not in (2, 3) or any(type(length) is not int or length < 0 for length in shape):
        raise InputError(f"body: expected shape (n, d) or (B, n, d), got {str(shape)[:40]}")
    data = memoryview(body)[stream.tell() :]
    count = math.prod(shape)
    if count * dtype.itemsize != len(data):
        raise InputError(
            f"body: its header says {str(count * dtype.itemsize)[:20]} bytes of numbers, "
            f"got {len(data)}"
        )
    return np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")
