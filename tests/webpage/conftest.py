"""Fixtures: one browser per file, one service for all files, and one static page.

A browser ends with its file: while it is there, an event loop runs in this thread, and tests of
other files could run none.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

import ptrnet
from ptrnet.errors import InputError
from ptrnet.export import page as export_folder
from ptrnet.export.page import export_page
from ptrnet.solver import Solver
from ptrnet.tasks.reading_order import label_name

TASKS = ("hull", "delaunay", "tsp", "sort")
POINTS = "0.1,0.2;0.8,0.1;0.9,0.7;0.5,0.9;0.4,0.4;0.2,0.75"
NUMBERS = "0.5;0.2;0.9;0.3"
BOXES = (  # y down: a title, two columns, a caption below a picture, and a box without a label
    "0.55,0.2,0.9,0.5,picture;0.1,0.05,0.9,0.1,title;0.55,0.52,0.9,0.56,caption;"
    "0.1,0.2,0.45,0.9,text;0.55,0.6,0.9,0.9"
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 90_000  # ms that any action may take on a busy machine


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium. Skips the test if there is none."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = os.environ.get("PTRNET_CHROMIUM", "/usr/bin/chromium")
    if not Path(path).is_file():
        pytest.skip(f"no browser: neither {path} nor what PTRNET_CHROMIUM names")
    sync_api.expect.set_options(timeout=SECONDS)
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def models():
    """The shipped models, that of pages in all directions. `sort` has a list of trained sizes."""
    models = {name: ptrnet.load(name) for name in (*TASKS, "reading-order")}
    for direction in ("rtl", "vertical"):
        models[f"pages-{direction}"] = ptrnet.load("reading-order", direction=direction)
    sort = models["sort"]
    models["sort"] = Solver(sort.model, sort.task, {**sort.trained, "n": "1-4,20"})
    return models


@contextmanager
def running(app):
    """Run a service in a thread of this process, and yield its address."""
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="on", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
    try:
        (listener,) = server.servers[0].sockets
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def service():
    """Yield the address of a service with the shipped models.

    It is a process of its own. In a thread it would answer while later tests of other files run,
    and shapely and numba replace the filters of warnings for a moment, for the whole process.
    """
    command = [sys.executable, "-m", "ptrnet", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if match := re.search(r"serves .* at (http://\S+)$", line):
                break
        yield match[1] + "/"
        process.kill()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def runtime(tmp_path_factory):
    """A folder with onnxruntime-web."""
    pytest.importorskip("onnxruntime")
    named = os.environ.get("PTRNET_RUNTIME")
    if named is not None:
        return named
    if shutil.which("npm") is None:
        pytest.skip("no npm, which fetches onnxruntime-web; PTRNET_RUNTIME may name its folder")
    folder = tmp_path_factory.mktemp("runtime")
    try:
        export_folder.copy_runtime(folder, None)
    except InputError as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="session")
def static(models, runtime, tmp_path_factory):
    """The address and the folder of the page without a service."""
    folder = tmp_path_factory.mktemp("page") / "site"
    export_page(models, folder, runtime=runtime, instances=2)
    with served(folder) as address:
        yield address, folder


@contextmanager
def served(folder):
    """Serve the files of a folder, and yield the address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


class Page:
    """A tab with the page. It records errors, and requests to other hosts."""

    def __init__(self, browser, address, **options):
        options = {"viewport": {"width": 1200, "height": 900}, **options}
        self.context = browser.new_context(**{"reduced_motion": "reduce", **options})
        self.context.set_default_timeout(SECONDS)
        self.tab, self.address = self.context.new_page(), address
        self.complaints, self.hosts = [], set()
        self.tab.on("console", lambda message: self._note(message))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.context.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, fragment=""):
        """Open an address, and wait for the answer."""
        self.tab.goto("about:blank")  # because a new fragment alone does not load the page
        self.tab.goto(self.address + fragment)
        self.wait()

    def wait(self):
        """Wait for the answer. Except for pages, wait until it is compared with the exact one."""
        self.see("#facts", "compared with|^(reading-order|pages-)")

    def see(self, selector, text):
        from playwright.sync_api import expect

        expect(self.tab.locator(selector)).to_contain_text(re.compile(text))

    def elements(self):
        """Return the instance in the link."""
        self.tab.wait_for_timeout(300)  # because the address may be out of date
        fields = self.tab.evaluate("location.hash.match(/elements=(.*)/)[1]")
        rows = [text.split(",") for text in fields.split(";") if text]
        return [[*map(float, row[:4]), *row[4:]] for row in rows]  # a fifth word is a label

    def check(self):
        """Check that there were no errors, and no requests to other hosts."""
        assert self.complaints == []
        assert self.hosts == {self.address.split("/")[2]}


@pytest.fixture(scope="module")
def shared(browser, service):
    """A tab that tests share. Each of them opens its own link."""
    page = Page(browser, service)
    yield page
    page.context.close()


@pytest.fixture
def page(shared):
    """The shared tab. At the end it must have no errors, and no requests to other hosts."""
    shared.complaints, shared.hosts = [], set()
    yield shared
    shared.check()


@pytest.fixture
def open_page(browser):
    """Return a function that opens a page in its own browser context."""
    pages = []

    def open_one(address, **options):
        pages.append(Page(browser, address, **options))
        return pages[-1]

    yield open_one
    for page in pages:
        page.context.close()


def fragment(task, **fields):
    elements = {"sort": NUMBERS, "reading-order": BOXES}.get(task, POINTS)
    return "#" + "&".join(
        f"{k}={v}" for k, v in {"task": task, "elements": elements, **fields}.items()
    )


def to_rows(page):
    """Return the boxes `(n, 5)` of a page as the browser has them, with names as labels."""
    return [[*box[:4].tolist(), *([label_name(box[4])] if box[4] else [])] for box in page]


def place(page, x, y):
    """Return the pixel of a point of the unit square."""
    box = page.tab.locator("#board").bounding_box()
    unit = box["width"] / 1000
    return box["x"] + (60 + 880 * x) * unit, box["y"] + (940 - 880 * y) * unit
