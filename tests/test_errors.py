"""Whole numbers as options, and the names of warnings."""

import numpy as np
import pytest

import ptrnet
from ptrnet import errors
from ptrnet.decoding import Beam, Incremental, Sample
from ptrnet.errors import InputError, check_int
from ptrnet.labels import generate


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float64(2), "3", None, 0, -(10**50)])
def test_what_is_no_whole_number_of_one_or_more(value):
    with pytest.raises(InputError, match=r"^size: expected a whole number of 1 or more, got .+$"):
        check_int("size", value, 1)


def test_whole_numbers_of_numpy_are_taken(tmp_path):
    """They are not written as JSON, nor as themselves, into the keys of resumable work."""
    assert repr(Beam(np.int64(4))) == repr(Beam(4))
    assert repr(Incremental(np.uint8(4))) == repr(Incremental(4))
    assert repr(Sample(np.int16(4), seed=np.int32(2))) == repr(Sample(4, seed=2))
    for path, number in ((tmp_path / "a.txt", 300), (tmp_path / "b.txt", np.int64(300))):
        generate("sort", 5, number, seed=type(number)(3), output=path)
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()


def test_former_names_of_warnings_are_aliases():
    assert ptrnet.OutsideTraining is errors.OutsideTraining is ptrnet.OutOfDistributionWarning
    assert errors.DoubtfulInput is errors.AmbiguousInputWarning
