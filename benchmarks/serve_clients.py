"""A service under load, and the clients that are the load; see `serve_load.py`."""

import asyncio
import contextlib
import io
import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import numpy as np

N = 50  # points of a hull
RNG = np.random.default_rng(0)
JSON, NPY = "application/json", "application/x-npy"
SLOW_SECONDS = 5  # until a slow client is refused
TOLD = 1.0  # seconds after which Retry-After lets a client come again


class Service:
    """The program, and its address."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "ptrnet", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        match = re.search(r"http://([\d.]+):(\d+)", line)
        if match is None:
            raise SystemExit(f"not started: {line}")
        self.host, self.port = match[1], int(match[2])

    def memory(self) -> float:
        """MB that the process has in memory."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1000  # type: ignore[index]

    def end(self) -> int:
        """Sends SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


@contextlib.contextmanager
def service(*options: str) -> Iterator[Service]:
    """A service with the hull's model, ended at the end."""
    running = Service("--model", "hull", *options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end()


def head(length: int, kind: str = JSON) -> bytes:
    return (
        f"POST /v1/models/hull/solve HTTP/1.1\r\nHost: service\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def json_request(count: int) -> bytes:
    body = json.dumps({"instances": RNG.random((count, N, 2)).tolist()}).encode()
    return head(len(body)) + body


def npy_request(count: int) -> bytes:
    stream = io.BytesIO()
    np.save(stream, RNG.random((count, N, 2)))
    return head(len(stream.getvalue()), NPY) + stream.getvalue()


async def response(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """The status of a response that is read to its end, and whether its connection goes on."""
    text = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(re.search(rb"content-length: (\d+)", text)[1]))  # type: ignore[index]
    return int(text.split(None, 2)[1]), b"connection: close" not in text


@contextlib.asynccontextmanager
async def connected(
    of: Service,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(of.host, of.port, limit=2**24)
    try:
        yield reader, writer
    finally:
        writer.close()


class Log:
    """What clients have met: statuses with the seconds that each took, and lost connections."""

    def __init__(self) -> None:
        self.seconds: dict[int, list[float]] = {}
        self.lost: list[float] = []  # when their requests were sent

    def add(self, status: int, seconds: float) -> None:
        self.seconds.setdefault(status, []).append(seconds)

    def count(self) -> Counter[int]:
        return Counter({status: len(seconds) for status, seconds in self.seconds.items()})

    def p(self, percent: float, status: int) -> float:
        """That percentile in milliseconds; NaN of none."""
        seconds = self.seconds.get(status, [])
        return 1000 * float(np.percentile(seconds, percent)) if seconds else float("nan")


async def ask(of: Service, request: bytes, until: float, log: Log, back_off: float = TOLD) -> None:
    """One client: one request after another, until a time or until the service is gone."""
    while time.perf_counter() < until:
        try:
            async with connected(of) as (reader, writer):
                goes_on = True
                while goes_on and time.perf_counter() < until:
                    start = time.perf_counter()
                    writer.write(request)
                    try:
                        status, goes_on = await response(reader)
                    except (OSError, asyncio.IncompleteReadError):
                        log.lost.append(start)
                        break
                    log.add(status, time.perf_counter() - start)
                    if status != 200:
                        await asyncio.sleep(back_off)
        except ConnectionRefusedError:
            return


async def drip(of: Service, request: bytes, until: float, log: Log) -> None:
    """One slow client: its body comes a byte a second; when it is refused, it comes again."""
    start_of_body = request.index(b"\r\n\r\n") + 4
    await asyncio.sleep(RNG.random() * SLOW_SECONDS)  # or all would be refused at one moment
    while time.perf_counter() < until:
        start = time.perf_counter()
        async with connected(of) as (reader, writer):
            answer = asyncio.ensure_future(response(reader))
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                writer.write(request[:start_of_body])
                for byte in request[start_of_body:]:
                    writer.write(bytes([byte]))
                    await asyncio.sleep(1)
                    if answer.done() or time.perf_counter() >= until:
                        break
                if answer.done():
                    log.add(answer.result()[0], time.perf_counter() - start)
            answer.cancel()


async def crowd(count: int, client: Callable[[], Awaitable[None]], within: float = 1.0) -> None:
    """So many clients, who come within so many seconds; 0: in one moment."""

    async def come() -> None:
        await asyncio.sleep(within * RNG.random())
        await client()

    await asyncio.gather(*(come() for _ in range(count)))
