"""Reading the bodies of requests: so many bytes, in so many seconds."""

import asyncio
from http import HTTPStatus

from fastapi import Request

from ptrnet.serve.limits import Limits
from ptrnet.serve.problems import CLOSE, Problem, out_of_time, too_busy, too_large

SHARES = 8  # bodies of the largest size that are held at a time, while they arrive


class Bodies:
    """Reads bodies; those that are arriving share a budget of bytes.

    Args:
        limits: the bytes and the seconds of one.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits, self._free = limits, SHARES * limits.max_body

    async def read(self, request: Request) -> bytes:
        """The whole body.

        What is too large is read to its end, within the seconds, and not held: so a client that
        listens only when it has sent all gets to know.

        Raises:
            Problem: 413 for too many bytes, 503 out of time, 429 where too many bodies arrive at
                once, 415 for a compressed one.
            ClientDisconnect: the client left.
        """
        _check_plain(request)
        limit = self._limits.max_body
        complaint = f"body: expected at most {limit} bytes"
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:18]) > limit and "expect" in request.headers:
            raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, complaint, CLOSE)
        body, is_large = bytearray(), False
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for part in request.stream():
                    is_large = is_large or len(body) + len(part) > limit
                    if not is_large:
                        self._take(len(part))
                        body += part
        except TimeoutError:
            seconds = self._limits.body_seconds
            raise out_of_time(f"body: not there after {seconds:g} seconds", CLOSE) from None
        finally:
            self._free += len(body)
        if is_large:
            raise too_large(complaint)
        return bytes(body)

    def _take(self, count: int) -> None:
        if count > self._free:
            raise too_busy("too many bodies arrive at once; try again")
        self._free -= count


def _check_plain(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        detail = f"Content-Encoding: expected none, got {encoding[:40]!r}"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
