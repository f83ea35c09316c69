"""What `ptrnet serve` does under load; the load is of this process.

    python benchmarks/serve_load.py [PART ...] [--seconds 20] [--clients 200] [--restarts 20]

PART is one or several of

- `full`: 200 clients on a queue of 32: statuses, times of answers and refusals, memory
- `slow`: 500 clients that send their bodies byte by byte; times of others with and without them
- `share`: hulls of 50 points in a second, beside `Solver.solve` in a process alone on the machine
- `sigterm`: the service is ended while 100 clients ask; what was sent before is to be answered
- `restarts`: 20 times: start, one answer, SIGTERM

All of them by default, ten minutes at most.
"""

import argparse
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

from ptrnet.bench.machine import describe, machine, versions

N = 50
RNG = np.random.default_rng(0)
JSON, NPY = "application/json", "application/x-npy"
SLOW_SECONDS = 5  # until a slow client is refused
BACK_OFF = 0.2  # seconds after a refusal; Retry-After says 1
SOLVE_ALONE = """
import time
import numpy as np
from ptrnet import runtime
runtime.tune()
import ptrnet
solver, instances = ptrnet.load("hull"), list(np.random.default_rng(0).random((1000, {n}, 2)))
solver.solve(instances)
start, count = time.perf_counter(), 0
while time.perf_counter() - start < {seconds}:
    solver.solve(instances)
    count += len(instances)
print(count / (time.perf_counter() - start))
"""


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


async def ask(of: Service, request: bytes, until: float, log: Log) -> None:
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
                        await asyncio.sleep(BACK_OFF)
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


async def crowd(count: int, client: Callable[[], Awaitable[None]]) -> None:
    """So many clients at once."""
    await asyncio.gather(*(client() for _ in range(count)))


def full(options: argparse.Namespace) -> None:
    request, log = json_request(20), Log()

    async def load(of: Service) -> list[float]:
        until, memory = time.perf_counter() + options.seconds, []
        clients = asyncio.ensure_future(
            crowd(options.clients, lambda: ask(of, request, until, log))
        )
        while not clients.done():
            await asyncio.sleep(options.seconds / 10)
            memory.append(of.memory())
        await clients
        return memory

    with service("--queue", "32") as of:
        memory = asyncio.run(load(of))
    print(f"full     {options.clients} clients, a queue of 32, 20 hulls a request")
    print(f"         statuses {dict(log.count())}, lost connections {len(log.lost)}")
    print(f"         p50 and p99 of answers {log.p(50, 200):.0f} and {log.p(99, 200):.0f} ms")
    print(f"         p50 and p99 of refusals {log.p(50, 429):.0f} and {log.p(99, 429):.0f} ms")
    print("         memory, MB:", " ".join(f"{mb:.0f}" for mb in memory))


def slow(options: argparse.Namespace) -> None:
    request, logs, slow_log = json_request(1), (Log(), Log()), Log()

    async def load(of: Service) -> None:
        for log, drips in zip(logs, (0, options.slow), strict=True):
            until = time.perf_counter() + options.seconds
            await asyncio.gather(
                crowd(8, lambda log=log, until=until: ask(of, request, until, log)),
                crowd(drips, lambda until=until: drip(of, request, until, slow_log)),
            )

    with service("--body-seconds", str(SLOW_SECONDS)) as of:
        asyncio.run(load(of))
    alone, beside = (log.p(99, 200) for log in logs)
    print(f"slow     8 clients alone, then beside {options.slow} that send a byte a second")
    print(f"         statuses {[dict(log.count()) for log in logs]}, p99 {alone:.1f} and ", end="")
    print(f"{beside:.1f} ms, {beside / alone:.2f} times; the slow got {dict(slow_log.count())}")


def answers_a_second(of: Service, request: bytes, clients: int, seconds: float) -> float:
    log, start = Log(), time.perf_counter()
    asyncio.run(crowd(clients, lambda: ask(of, request, start + seconds, log)))
    return log.count()[200] / (time.perf_counter() - start)


def share(options: argparse.Namespace) -> None:
    loads = {
        "1 in JSON, 64 clients": (json_request(1), 64, 1),
        "20 in JSON, 16 clients": (json_request(20), 16, 20),
        "500 in .npy, 4 clients": (npy_request(500), 4, 500),
    }
    seconds, rounds = max(2.0, options.seconds / 5), 3
    shares: dict[str, list[float]] = {name: [] for name in loads}
    rates = []
    for _ in range(rounds):
        code = SOLVE_ALONE.format(n=N, seconds=seconds)
        alone = float(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
        rates.append(alone)
        for name, (request, clients, count) in loads.items():
            with service() as of:
                asyncio.run(ask(of, request, time.perf_counter() + 1, Log()))
                answers = answers_a_second(of, request, clients, seconds)
            shares[name].append(answers * count / alone)
    print(f"share    Solver.solve alone: {np.median(rates):.0f} hulls of {N} points a second")
    for name, of_name in shares.items():
        spread = f"{min(of_name):.2f} to {max(of_name):.2f}"
        print(f"         {name}: {np.median(of_name):.2f} of it ({spread})")


def sigterm(options: argparse.Namespace) -> None:
    request, log = json_request(5), Log()

    async def load(of: Service) -> tuple[float, int]:
        until = time.perf_counter() + 60
        clients = asyncio.ensure_future(crowd(100, lambda: ask(of, request, until, log)))
        await asyncio.sleep(min(3.0, options.seconds / 2))
        ended, code = time.perf_counter(), await asyncio.to_thread(of.end)
        await clients
        return ended, code

    with service("--queue", "128") as of:
        ended, code = asyncio.run(load(of))
    lost = sum(start < ended for start in log.lost)
    print(f"sigterm  100 clients: exit code {code}, statuses {dict(log.count())}")
    print(f"         sent before SIGTERM and not answered: {lost}; after: {len(log.lost) - lost}")


def restarts(options: argparse.Namespace) -> None:
    request, seconds, codes = json_request(1), [], Counter[int]()
    for _ in range(options.restarts):
        start, log = time.perf_counter(), Log()
        with service() as of:
            asyncio.run(ask(of, request, time.perf_counter() + 0.001, log))
            seconds.append(time.perf_counter() - start)
            codes[of.end() if log.count() == {200: 1} else -1] += 1
    print(f"restarts {options.restarts}: exit codes {dict(codes)}, ", end="")
    print(f"to the first answer {np.median(seconds):.1f} s ({max(seconds):.1f} at most)")


PARTS = {part.__name__: part for part in (full, slow, share, sigterm, restarts)}


def main() -> None:
    parser = argparse.ArgumentParser(description="What ptrnet serve does under load.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--slow", type=int, default=500)
    parser.add_argument("--restarts", type=int, default=20)
    options = parser.parse_args()
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"unknown part {name}: expected {', '.join(PARTS)}")
    print(describe(machine("cpu"), versions()))
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main()
