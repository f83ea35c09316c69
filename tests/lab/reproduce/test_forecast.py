import pytest

from ptrnet_lab.reproduce.forecast import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (40, "40 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (720, "12 min"),
        (3590, "1 h 0 min"),
        (187_200, "2 d 4 h"),
    ],
)
def test_durations_are_printed_in_suitable_units(seconds, text):
    assert duration(seconds) == text
