"""The decorator of the labellers' compiled functions."""

import numba

# nogil: training goes on while another thread labels. cache: compiled once, not in every process.
jit = numba.njit(nogil=True, cache=True)
