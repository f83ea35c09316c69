"""Compare the answers of an exported page in a browser with those of `Solver`.

    ptrnet export --page site
    python benchmarks/compare_page.py site

PTRNET_CHROMIUM names the browser.
"""

import argparse
import functools
import http.server
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

import ptrnet
from ptrnet import tasks
from ptrnet.decoding import Beam, Greedy
from ptrnet.tasks.reading_order import label_name

SIZES = {
    "hull": (3, 5, 10, 20, 50),
    "delaunay": (3, 5, 8, 10, 15),
    "tsp": (5, 10, 20, 30),
    "sort": (2, 5, 10, 20),
    "reading-order": (1, 6, 12, 40),
}
ASK = """async questions => {
  const { Onnx } = await import(new URL('page/sources/onnx.js', document.baseURI));
  globalThis.onnx ??= new Onnx();
  const traces = [];
  for (const question of questions) traces.push(await globalThis.onnx.trace(question));
  return traces;
}"""


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without log messages."""

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


def draw(name: str, rng: np.random.Generator, n: int) -> Any:
    """Return a random instance `(n, d)`: a drawn page, or uniform points or numbers."""
    if name == "reading-order":
        return tasks.get(name).sample(rng, 1, n)[0][rng.permutation(n)]
    return rng.random((n, 1 if name == "sort" else 2))


def rows_of(name: str, instance: Any) -> list[Any]:
    """Return an instance as the browser has it: boxes end with the name of a label, if any."""
    if name != "reading-order":
        return list(instance.tolist())
    return [[*box[:4].tolist(), *filter(None, [label_name(box[4])])] for box in instance]


def compare(tab: Page, name: str, instances: Sequence[Any], size: int) -> str:
    """Return the line to print for a model and a beam size."""
    decoder = "greedy" if size == 1 else "beam"
    asked = [
        {"model": name, "instance": rows_of(name, x), "decoder": decoder, "beamSize": size}
        for x in instances
    ]
    search = Greedy() if size == 1 else Beam(size)
    expected = ptrnet.load(name).answer(instances, search, improve=False)  # as the page
    same, worst = 0, 0.0
    for trace, answer in zip(tab.evaluate(ASK, asked), expected, strict=True):
        same += trace["answer"]["outputs"] == answer.outputs.tolist()
        error = abs(trace["answer"]["log_likelihood"] - answer.log_prob)
        worst = max(worst, error / max(1, abs(answer.log_prob)))
    return (
        f"{name}, {decoder}: {same} of {len(instances)} answers the same, "
        f"log-probabilities equal to {worst:.1g}"
    )


def main() -> None:
    """Ask the page and the solver for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--instances", type=int, default=25, help="instances of each size")
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    handler = functools.partial(Files, directory=options.folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = os.environ.get("PTRNET_CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.set_default_timeout(0)
        tab.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        for name, sizes in SIZES.items():
            for size in (1, 4):
                instances = [draw(name, rng, n) for n in sizes for _ in range(options.instances)]
                print(compare(tab, name, instances, size), flush=True)
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
