"""What is read of a request before anybody asks for it stays bounded."""

import asyncio
import json

import pytest
import uvicorn
from uvicorn.server import ServerState

from ptrnet.serve.process.protocol import MAX_HEAD, BoundedProtocol


async def app(scope, receive, send):
    """Answers with the number of bytes of the body."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def exchange(*parts):
    """What a connection that sends so is told until it is closed, and how much was sent."""

    async def run():
        config = uvicorn.Config(app, log_config=None, lifespan="off")
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: BoundedProtocol(config, state, {}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        sent = 0
        try:
            for part in parts:
                if reader.at_eof():
                    break
                writer.write(part)
                await writer.drain()
                sent += len(part)
                await asyncio.sleep(0)
        except ConnectionError:
            pass
        try:
            text = await asyncio.wait_for(reader.read(), 5)
        except ConnectionError:
            text = b""
        writer.close()
        server.close()
        return text, sent

    return asyncio.run(run())


START = b"POST / HTTP/1.1\r\nHost: here\r\n"
LINE = b"X: " + b"a" * 1000 + b"\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [START, *[LINE] * 100_000],
        [START, b"X: ", *[b"a" * 1000] * 100_000],
        [b"POST /", *[b"a" * 1000] * 100_000],
        [START, b"Transfer-Encoding: chunked\r\n\r\n0\r\n", *[LINE] * 100_000],
        [START, b"Transfer-Encoding: chunked\r\n\r\n1;", *[b"a" * 1000] * 100_000],
    ],
    ids=["many headers", "a long header", "a long address", "trailers", "a chunk's extension"],
)
def test_a_head_without_end_is_refused(parts):
    text, sent = exchange(*parts)
    assert text.startswith(b"HTTP/1.1 400") or not text  # the answer may be lost in a reset
    assert sent < 20 * MAX_HEAD  # what the system's own buffers take, and no more


def test_large_bodies_and_many_requests_pass():
    body = b"b" * (20 * MAX_HEAD)
    whole = START + b"Content-Length: %d\r\n\r\n" % len(body)
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    chunked = START + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n"
    last = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    text, _ = exchange(
        whole, body, chunked, *[START + LINE * 60 + b"Content-Length: 0\r\n\r\n"] * 3, last
    )
    sizes = [part.split(b"\r\n\r\n")[1] for part in text.split(b"HTTP/1.1 200 OK")[1:]]
    assert len(sizes) == 6
    assert text.count(b"%d" % len(body)) == 2


def test_what_is_no_http_is_a_problem_like_others():
    text, _ = exchange(b"what\r\n\r\n")
    head, _, body = text.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    assert b"content-length: %d" % len(body) in head.lower()
    assert json.loads(body)["status"] == 400
