"""Peaks are those of the work, not of the process that asks."""

from functools import partial

import numpy as np

from ptrnet.bench.memory import peaks, process_peak

MB = 2**20


def test_peaks_are_of_the_work_alone():
    allocated = np.ones(300 * MB // 8)
    assert process_peak() > 300
    # A setup returns what is then run; both have to reach another process.
    little, much = (partial(partial, np.ones, size * MB // 8) for size in (1, 200))
    peak_mb = peaks({"little": little, "much": much}, "a test")
    assert 10 < peak_mb["little"] < 250 and allocated.all()
    assert 190 < peak_mb["much"] - peak_mb["little"] < 260
