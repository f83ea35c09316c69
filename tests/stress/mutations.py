"""Change lines of text at random, as editors, programs and transfers do."""

import numpy as np

FIELDS = [
    b"nan", b"inf", b"-inf", b"1e999", b"-1e-999", b"0x10", b"1_000", b"1e5", b"-0", b"+1", b".5",
    b"5.", b"00", b"1,5", b"1d3", b"9" * 400, b"0." + b"3" * 300, b"-1", b"0", b"9" * 20,
    b"output", b"OUTPUT", b"<ENDT>", b"null", b"true", b'"x"', b"[]", b"{}", b"", b"\xef\xbb\xbf",
    b"\xc2\xa0", b"\xd9\xa1", b"\xe2\x80\xa8", b"\x00", b"\x1a", b"\xff", b"\xed\xa0\x80", b"\t",
    b"\r", b"\x0b", b"\x85", b"#", b";", b"EOF", b"-1", b"DIMENSION : 3", b"NODE_COORD_SECTION",
    b'{"inputs": [[1, 2]]}', b"[" * 2000, b'{"a":' * 500, b"\\u0000", b"\\ud800", b"1 " * 500,
]  # fmt: skip


def mutated(line: bytes, rng: np.random.Generator) -> bytes:
    """Return the line with one to four changes. It may be cut off."""
    for _ in range(rng.integers(1, 5)):
        line = CHANGES[rng.integers(len(CHANGES))](line, rng)
    return line


def _flip_bit(line: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(line)
    if changed:
        changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _cut(line: bytes, rng: np.random.Generator) -> bytes:
    return line[: rng.integers(len(line) + 1)]


def _remove(line: bytes, rng: np.random.Generator) -> bytes:
    first, last = _range(line, rng)
    return line[:first] + line[last:]


def _repeat(line: bytes, rng: np.random.Generator) -> bytes:
    first, last = _range(line, rng)
    return line[:last] + line[first:]


def _put_field(line: bytes, rng: np.random.Generator) -> bytes:
    """Replace a field. Spaces, commas and brackets separate fields."""
    first = int(rng.integers(len(line) + 1))
    last = first
    while last < len(line) and line[last] not in b" ,[]:\n":
        last += 1
    return line[:first] + FIELDS[rng.integers(len(FIELDS))] + line[last:]


def _swap(line: bytes, rng: np.random.Generator) -> bytes:
    first, last = _range(line, rng)
    return line[first:last] + line[:first] + line[last:]


def _range(line: bytes, rng: np.random.Generator) -> tuple[int, int]:
    """Draw a range of bytes of the line, usually a short one."""
    first = int(rng.integers(len(line) + 1))
    return first, min(len(line), first + int(rng.integers(12)))


CHANGES = (_flip_bit, _cut, _remove, _repeat, _put_field, _put_field, _swap)
