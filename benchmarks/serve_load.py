"""Put `ptrnet serve` under load, and print how it answers. This process runs the clients.

    python benchmarks/serve_load.py [PART ...] [--seconds 20] [--clients 200] [--restarts 20]

Each PART is one of the following; the default is all of them, which takes ten minutes at most.

- `full`: 200 clients and a queue of 32. Prints statuses, times of answers and of refusals, and
  memory. The clients arrive within a second, or all at once. A refused client retries after
  Retry-After, or after a fifth of a second.
- `slow`: 500 clients that send their bodies byte by byte. Prints the times of other clients, with
  and without them.
- `share`: hulls of 50 points per second, compared with `ptrnet solve` alone on the machine (without
  its start) and with `Solver.solve` alone in a process.
- `sigterm`: the service gets SIGTERM while 100 clients send requests. It has to answer the requests
  that were sent before.
- `restarts`: starts the service 20 times, gets one answer, and sends SIGTERM.
"""

import argparse
import asyncio
import contextlib
import gc
import io
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import numpy as np

from ptrnet_lab.bench.harness import describe, machine, versions

N = 50  # points of a hull
RNG = np.random.default_rng(0)
JSON, NPY = "application/json", "application/x-npy"
SLOW_SECONDS = 5  # seconds after which the service refuses a slow client
TOLD = 1.0  # seconds after which a client retries, as Retry-After says
HASTY = 0.2  # seconds after which a hasty client retries
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
    """A running service, and its address."""

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
        """Return the resident memory of the process in MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1000  # type: ignore[index]

    def end(self) -> int:
        """Send SIGTERM, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


@contextlib.contextmanager
def service(*options: str) -> Iterator[Service]:
    """Start a service with the model `hull`, and terminate it on exit."""
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
    """Read a response; return its status, and whether the connection stays open."""
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
    """Log of response times by status, and of lost connections."""

    def __init__(self) -> None:
        self.seconds: dict[int, list[float]] = {}
        self.lost: list[float] = []  # when their requests were sent

    def add(self, status: int, seconds: float) -> None:
        self.seconds.setdefault(status, []).append(seconds)

    def count(self) -> Counter[int]:
        return Counter({status: len(seconds) for status, seconds in self.seconds.items()})

    def p(self, percent: float, status: int) -> float:
        """Return a percentile of a status's times in milliseconds; NaN without such a response."""
        seconds = self.seconds.get(status, [])
        return 1000 * float(np.percentile(seconds, percent)) if seconds else float("nan")


async def ask(of: Service, request: bytes, until: float, log: Log, back_off: float = TOLD) -> None:
    """Run a client that sends one request after another, until a time or the end of the service."""
    while time.perf_counter() < until:
        try:
            async with connected(of) as (reader, writer):
                is_open = True
                while is_open and time.perf_counter() < until:
                    start = time.perf_counter()
                    writer.write(request)
                    try:
                        status, is_open = await response(reader)
                    except (OSError, asyncio.IncompleteReadError):
                        log.lost.append(start)
                        break
                    log.add(status, time.perf_counter() - start)
                    if status != 200:
                        await asyncio.sleep(back_off)
        except ConnectionRefusedError:
            return


async def drip(of: Service, request: bytes, until: float, log: Log) -> None:
    """Run a slow client: it sends a byte of its body per second, and retries when refused."""
    start_of_body = request.index(b"\r\n\r\n") + 4
    # Start at random times, so that the service does not refuse all clients at the same time.
    await asyncio.sleep(RNG.random() * SLOW_SECONDS)
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
    """Run `count` clients that arrive within some seconds; 0: at once."""

    async def come() -> None:
        await asyncio.sleep(within * RNG.random())
        await client()

    await asyncio.gather(*(come() for _ in range(count)))


def full(options: argparse.Namespace) -> None:
    print(f"full     {options.clients} clients, a queue of 32, 20 hulls a request")
    for back_off, within in ((TOLD, 1.0), (HASTY, 1.0), (TOLD, 0.0), (HASTY, 0.0)):
        _full(options, back_off, within)


def _full(options: argparse.Namespace, back_off: float, within: float) -> None:
    request, log = json_request(20), Log()

    async def load(of: Service) -> list[float]:
        until, memory = time.perf_counter() + options.seconds, []
        clients = asyncio.ensure_future(
            crowd(options.clients, lambda: ask(of, request, until, log, back_off), within)
        )
        while not clients.done():
            await asyncio.sleep(options.seconds / 10)
            memory.append(of.memory())
        await clients
        return memory

    with service("--queue", "32") as of:
        memory = asyncio.run(load(of))
    print(f"       clients arrive within {within:g} s; refused ones retry after {back_off:g} s")
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
    print(f"slow     8 clients alone, then with {options.slow} more that send a byte per second")
    print(f"         statuses {[dict(log.count()) for log in logs]}, p99 {alone:.1f} and ", end="")
    print(f"{beside:.1f} ms, {beside / alone:.2f} times; slow clients: {dict(slow_log.count())}")


def answers_a_second(of: Service, request: bytes, clients: int, seconds: float) -> float:
    log, start = Log(), time.perf_counter()
    asyncio.run(crowd(clients, lambda: ask(of, request, start + seconds, log)))
    return log.count()[200] / (time.perf_counter() - start)


def program_rate(count: int) -> float:
    """Return the hulls per second of `ptrnet solve` from file to file."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for instances in (8, count):
            file, output = Path(folder) / f"{instances}.jsonl", Path(folder) / f"o{instances}.jsonl"
            lines = (json.dumps({"inputs": x}) for x in RNG.random((instances, N, 2)).tolist())
            file.write_text("\n".join(lines) + "\n")
            command = [sys.executable, "-m", "ptrnet", "solve", "hull", str(file)]
            start = time.perf_counter()
            subprocess.run([*command, "--output", str(output)], check=True, capture_output=True)
            seconds.append(time.perf_counter() - start)
    return count / (seconds[1] - seconds[0])


def share(options: argparse.Namespace) -> None:
    loads = {
        "1 in JSON, 64 clients": (json_request(1), 64, 1),
        "20 in JSON, 16 clients": (json_request(20), 16, 20),
        "500 in .npy, 4 clients": (npy_request(500), 4, 500),
    }
    seconds, rounds = max(2.0, options.seconds / 5), 3
    shares: dict[str, list[float]] = {name: [] for name in loads}
    rates, programs = [], []
    for _ in range(rounds):
        code = SOLVE_ALONE.format(n=N, seconds=seconds)
        alone = float(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
        rates.append(alone)
        programs.append(program_rate(int(2000 * seconds)))
        for name, (request, clients, count) in loads.items():
            with service() as of:
                asyncio.run(ask(of, request, time.perf_counter() + 1, Log()))
                answers = answers_a_second(of, request, clients, seconds)
            shares[name].append(answers * count / programs[-1])
    print(f"share    ptrnet solve alone: {np.median(programs):.0f} hulls of {N} points a second;")
    print(f"         Solver.solve alone: {np.median(rates):.0f}")
    for name, of_name in shares.items():
        spread = f"{min(of_name):.2f} to {max(of_name):.2f}"
        print(f"         {name}: {np.median(of_name):.2f} times ptrnet solve ({spread})")


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
    print(f"         without an answer: {lost} sent before SIGTERM, {len(log.lost) - lost} after")


def restarts(options: argparse.Namespace) -> None:
    request, seconds, codes = json_request(1), [], Counter[int]()
    for _ in range(options.restarts):
        start, log = time.perf_counter(), Log()
        with service() as of:
            asyncio.run(ask(of, request, time.perf_counter() + 1, log))
            seconds.append(time.perf_counter() - start)
            codes[of.end() if set(log.count()) == {200} else -1] += 1
    print(f"restarts {options.restarts}: exit codes {dict(codes)}, ", end="")
    print(f"start and a second of requests {np.median(seconds):.1f} (at most {max(seconds):.1f}) s")


PARTS = {part.__name__: part for part in (full, slow, share, sigterm, restarts)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Put ptrnet serve under load.")
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
    gc.disable()  # because a collection in this process would lengthen the service's times
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main()
