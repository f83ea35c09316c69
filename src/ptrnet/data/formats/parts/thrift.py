"""Thrift's compact protocol, in which Parquet writes its headers and footers."""

from typing import Any

Struct = dict[int, Any]  # whole numbers, bytes, structs and lists of such

# The types of values, by the numbers that the protocol has for them; maps and sets, which Parquet
# does not use, are left out.
_STOP = 0  # after the last field of a struct
_TRUE, _FALSE = 1, 2  # of a field: its type is its value
_BYTE, _INT16, _INT32, _INT64, _DOUBLE, _BINARY, _LIST, _STRUCT = 3, 4, 5, 6, 7, 8, 9, 12
_LONG_LIST = 15  # in place of a list's length: the length follows, as a varint


class Reader:
    """Reads one thing after another; `position` is after what was read.

    Args:
        content: the bytes.
        position: of the first.
    """

    def __init__(self, content: bytes, position: int = 0) -> None:
        self._content, self.position = content, position

    def struct(self) -> Struct:
        """The fields of a struct, by their numbers.

        Raises:
            IndexError: the bytes end, or a type that Parquet does not use.
            RecursionError: structs in structs without end.
        """
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != _STOP:
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else _signed(self.varint())
            fields[number] = int(kind == _TRUE) if kind in (_TRUE, _FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):  # in a list a boolean is a byte
            return self._byte()
        if kind in (_INT16, _INT32, _INT64):
            return _signed(self.varint())
        if kind == _DOUBLE:
            return self._read_exactly(8)
        if kind == _BINARY:
            return self._read_exactly(self.varint())
        if kind == _LIST:
            head = self._byte()
            count = head >> 4 if head >> 4 < _LONG_LIST else self.varint()
            return [self._value(head & 15) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct()
        raise IndexError(f"type {kind}")

    def _byte(self) -> int:
        self.position += 1
        return self._content[self.position - 1]

    def _read_exactly(self, count: int) -> bytes:
        part = self.read(count)
        if len(part) < count:
            raise IndexError("the end")
        return part

    def read(self, count: int) -> bytes:
        """The next `count` bytes; fewer where the content ends before."""
        part = self._content[self.position : self.position + count]
        self.position += len(part)
        return part

    def varint(self) -> int:
        """A whole number, seven bits a byte. Raises IndexError where the bytes end before it."""
        value = shift = 0
        while shift < 64:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise IndexError("no number of 64 bits")


def _signed(value: int) -> int:
    """A zigzag number: 0, -1, 1, -2 and so on."""
    return value >> 1 ^ -(value & 1)
