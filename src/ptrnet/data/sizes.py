"""How numbers of elements are written: `50`, `5-50`, `5,10,20-30`."""

from ptrnet.errors import InputError, short

# The elements of the largest instance that is read, generated or solved. A larger one is refused
# before memory is allocated for it.
LARGEST = 100_000


def parse_sizes(text: str) -> list[int]:
    """The sizes that `text` names, in increasing order.

    Raises:
        InputError: anything but whole numbers in 1..LARGEST, alone, in ranges or in a list.
    """
    sizes: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        is_valid = first.isdecimal() and (not dash or last.isdecimal()) and part.isascii()
        if not is_valid or len(part) > 20:
            raise InputError(f"n: expected 50, 5-50 or 5,10,20-30, got {short(text)}")
        start, end = int(first), int(last or first)
        if not 1 <= start <= end <= LARGEST:
            raise InputError(f"n: expected 1 <= A <= B <= {LARGEST}, got {short(part.strip())}")
        sizes.update(range(start, end + 1))
    return sorted(sizes)
