import subprocess
import sys
import threading

import pytest

from ptrnet.data.streams import prefetch


def test_items_come_in_their_order_each_made_once():
    made = []
    items = prefetch(lambda k: made.append(k) or k, 3, 2)
    assert [next(items) for _ in range(5)] == [3, 4, 5, 6, 7]
    items.close()
    assert made == sorted(set(made)) and made[-1] <= 9


def test_an_error_is_raised_where_its_item_is_asked_for():
    before = {*threading.enumerate()}  # other tests may have left a training of theirs
    items = prefetch(lambda k: 1 // (2 - k), 0, 2)
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(items)
    assert {*threading.enumerate()} <= before


def test_a_process_ends_well_while_items_are_made():
    """The thread is inside torch, without the interpreter's lock, when the program ends."""
    code = (
        "import torch; from ptrnet.data.streams import prefetch; x = torch.ones(600, 600);"
        "items = prefetch(lambda k: (x @ x).sum(), 0, 2); next(items)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")
