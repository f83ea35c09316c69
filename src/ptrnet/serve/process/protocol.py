"""HTTP as the service reads it: uvicorn's protocol on httptools, with a bound on what it holds."""

from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ptrnet.serve.problems import CLOSE, Problem

MAX_HEAD = 65_536  # bytes of a request's first line and headers, and of what follows a body


class BoundedProtocol(HttpToolsProtocol):
    """Refuses a request whose headers do not end, which would be held in memory as they come."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._pending = 0  # bytes since the parser has last come to an end of something

    def data_received(self, data: bytes) -> None:
        """Takes what has arrived."""
        self._pending += len(data)
        super().data_received(data)
        if self._pending > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response(f"headers: expected at most {MAX_HEAD} bytes")

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP, by a problem document as all others."""
        response = Problem(HTTPStatus.BAD_REQUEST, msg, CLOSE).response()
        headers = [name + b": " + value for name, value in response.raw_headers]
        lines = [b"HTTP/1.1 400 Bad Request", *headers, b"", bytes(response.body)]
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()

    def on_headers_complete(self) -> None:
        """The parser has read all headers."""
        self._pending = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """The parser has read a part of a body."""
        self._pending = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The parser has read a request."""
        self._pending = 0
        super().on_message_complete()
