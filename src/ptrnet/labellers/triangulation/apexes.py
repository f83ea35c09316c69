"""Triangulations as sequences of apexes, one for each edge that is open (`edge_queue.py`)."""

from collections.abc import Sequence

NO_APEX = -1


def triangles_of(apexes: Sequence[int]) -> list[tuple[int, int, int]]:
    """The triangles `(tail, head, apex)` that a sequence names, as a queue reaches them.

    What has no place repeats its last vertex: an element where no edge waits, or a first edge that
    nothing follows. Any other sequence gets what it names, right or wrong.
    """
    if len(apexes) < 3 or NO_APEX in apexes[:2]:
        elements = [apex for apex in apexes if apex != NO_APEX]
        return [(elements[0], elements[-1], elements[-1])] if elements else []
    triangles: list[tuple[int, int, int]] = []
    waiting = {(apexes[0], apexes[1]): None}  # in the order of the queue
    for apex in apexes[2:]:
        if waiting:
            tail, head = next(iter(waiting))
            del waiting[tail, head]
        else:
            tail = head = apex
        if apex == NO_APEX:
            continue
        triangles.append((tail, head, apex))
        if tail == head:
            continue
        sides = [(head, apex), (apex, tail)]
        joining = [side[::-1] for side in sides if side not in waiting]
        for side in sides:
            waiting.pop(side, None)
        waiting.update(dict.fromkeys(joining))
    return triangles
