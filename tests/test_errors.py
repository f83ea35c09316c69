"""The check of whole numbers, and deprecated names of warnings."""

import numpy as np
import pytest

import ptrnet
from ptrnet import errors
from ptrnet.decoding import Beam, Incremental, Sample
from ptrnet.errors import InputError, check_int
from ptrnet.labels import generate


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float64(2), "3", None, 0, -(10**50)])
def test_check_int_refuses_other_values(value):
    with pytest.raises(InputError, match=r"^size: expected a whole number of 1 or more, got .+$"):
        check_int("size", value, 1)


def test_numpy_integers_are_converted(tmp_path):
    """JSON, and the keys of resumable jobs, must not depend on the type of a number."""
    assert repr(Beam(np.int64(4))) == repr(Beam(4))
    assert repr(Incremental(np.uint8(4))) == repr(Incremental(4))
    assert repr(Sample(np.int16(4), seed=np.int32(2))) == repr(Sample(4, seed=2))
    for path, number in ((tmp_path / "a.txt", 300), (tmp_path / "b.txt", np.int64(300))):
        generate("sort", 5, number, seed=type(number)(3), output=path)
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("a.txt:3", "a.txt"),
        ("a.parquet: row 3", "a.parquet"),
        ('a:1.jsonl:3: "inputs"', "a:1.jsonl"),
        ("instance 3", "instance 3"),
        ("a.tsp", "a.tsp"),
    ],
)
def test_the_file_of_a_source_has_no_line_and_no_field(source, file):
    assert errors.file_of(source) == file


def test_the_short_name_of_a_warning_is_the_same_class():
    assert ptrnet.OutsideTraining is ptrnet.OutOfDistributionWarning
