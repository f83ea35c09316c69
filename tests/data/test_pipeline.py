"""Threads that read ahead and write aside: order, errors, and ends."""

import threading
import time
from itertools import count

import pytest

from ptrnet.data.bulk import pipeline
from ptrnet.data.bulk.pipeline import consumed_aside, read_ahead
from ptrnet.errors import InputError, OutputError


def failing(count, error):
    yield from range(count)
    raise error


def test_items_keep_their_order_and_errors_their_place():
    assert list(read_ahead(range(100))) == list(range(100))
    items, taken = read_ahead(failing(5, InputError("no more"))), []
    with pytest.raises(InputError, match="no more"):
        taken.extend(items)
    assert taken == list(range(5))


def test_the_next_items_are_drawn_meanwhile_and_no_more_of_them():
    drawn, before = [], {*threading.enumerate()}

    def endless():
        while True:
            drawn.append(threading.current_thread().name)
            yield len(drawn)

    items = read_ahead(endless())
    assert next(items) == 1
    deadline = time.monotonic() + 60
    while len(drawn) < 3:
        assert time.monotonic() < deadline
    time.sleep(0.05)
    assert len(drawn) == 3 and threading.current_thread().name not in drawn
    items.close()
    assert {*threading.enumerate()} <= before


def test_the_thread_gets_every_item():
    got = []
    assert list(consumed_aside(range(100), got.extend)) == got == list(range(100))


@pytest.mark.parametrize("error", [InputError("no more"), KeyboardInterrupt()])
def test_what_came_before_an_error_is_consumed(error):
    got = []
    with pytest.raises(type(error)):
        list(consumed_aside(failing(5, error), got.extend))
    assert got == list(range(5))


@pytest.mark.parametrize("count", [1, 50])
def test_what_consuming_raises_is_raised(count):
    """At the last item, too, and though nothing is taken any more."""

    def consume(items):
        next(items)
        raise OutputError("no room")

    with pytest.raises(OutputError, match="no room"):
        list(consumed_aside(range(count), consume))


def test_a_caller_may_leave_early():
    got = []
    items = consumed_aside(range(100), got.extend)
    assert next(items) == 0
    items.close()
    assert got == [0]


def test_a_second_interrupt_ends_the_thread(monkeypatch):
    """While the thread was waited for: it never heard that nothing more comes."""
    put, taken = pipeline._put, []

    def interrupted(waiting, item, consuming):
        if item is pipeline._END:
            raise KeyboardInterrupt
        put(waiting, item, consuming)

    def consume(items):
        for item in items:
            taken.append(item)
            time.sleep(0.05)

    monkeypatch.setattr(pipeline, "_put", interrupted)
    items = consumed_aside(count(), consume)
    assert next(items) == 0
    with pytest.raises(KeyboardInterrupt):
        items.close()  # it waits for the thread
    assert taken in ([], [0])
