import copy
import pickle

import numpy as np
import pytest

from ptrnet.errors import InputError
from ptrnet.types import LARGEST, Sizes


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("50", [50]),
        ("5-8", [5, 6, 7, 8]),
        ("5,10, 20-21", [5, 10, 20, 21]),
        ("7,5-8", [5, 6, 7, 8]),
    ],
)
def test_parses_sizes_and_keeps_the_text(text, sizes):
    assert list(Sizes(text)) == sizes and str(Sizes(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "5-", "-5", "8-5", "0", f"1-{LARGEST + 1}", "5.5", "a", "5,,6", "\u00b2", "\u0665", True],
)
def test_refuses_other_texts(text):
    with pytest.raises(InputError, match=r"^n: expected"):
        Sizes(text)


def test_a_number_is_a_size():
    assert Sizes(7) == Sizes(np.int64(7)) == (7,)


def test_text_of_numbers_uses_ranges():
    assert str(Sizes.of(np.array([9, 3, 5, 4, 3, 11]))) == "3-5,9,11"
    assert list(Sizes.of([3, 5, 4])) == [3, 4, 5]


def test_copies_keep_the_text():
    sizes = Sizes("5, 7")
    for copied in (copy.deepcopy(sizes), pickle.loads(pickle.dumps(sizes))):
        assert copied == sizes and str(copied) == "5, 7"
