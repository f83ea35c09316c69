"""Fixtures and settings of all tests: the program's process settings, and small models."""

from ptrnet import runtime

runtime.tune()

import gc  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
from pathlib import Path  # noqa: E402

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from joblib import cpu_count  # noqa: E402

from tests.support.fork_server import ForkServer  # noqa: E402
from tests.support.small_models import small_solver  # noqa: E402

ROOT = Path(__file__).parent

NUM_WORKERS = int(
    os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)
)  # workers of pytest-xdist share the cores
torch.set_num_threads(max(1, torch.get_num_threads() // NUM_WORKERS))

# Only power failures need what is synced, and a disk takes 10 ms for each file.
os.fsync = lambda handle: None

# A shell starts background jobs with Ctrl-C ignored, and so are programs that these start. Some
# tests interrupt programs.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine must not make a test fail.
hypothesis.settings.register_profile(
    "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy")


def pytest_xdist_auto_num_workers(config):
    """Start 2 workers per core, because tests often wait for processes and browsers."""
    return 2 * cpu_count()


# Long files begin first, so that at the end no process is left alone with one of them. The first
# three compile different functions, if none are cached. Files that need many labellers begin when
# these are compiled, because otherwise several processes would compile the same functions.
FIRST = [
    "contract/test_contracts",
    "kernels/test_cold_cache",
    "kernels/test_additive",
    "kernels",
    "training",
    "export",
    "models",
    "webpage",
    "serve",
    "docs",
    "cli",
    "contract",
    "labellers",
    "lab",
    "test_plugins",
    "test_parallel",
]


def pytest_collection_modifyitems(items):
    def place(item):
        path = item.path.relative_to(ROOT).with_suffix("")
        names = [path.as_posix(), path.parts[0]]
        return min(FIRST.index(name) if name in FIRST else len(FIRST) for name in names)

    items.sort(key=place)


def pytest_collection_finish():
    """Exempt imported objects from garbage collection, which took 5% of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def small():
    """Return a function that builds an untrained solver of a task, with 16 units by default."""
    return small_solver


@pytest.fixture(scope="session")
def fork_server():
    """Processes that have imported the package, because a process keeps what was registered."""
    modules = "cli", "jit", "labels", "models.ptr_net", "serve.app", "solver", "training.run"
    loaded = "\n".join(f"import ptrnet.{name}" for name in modules)  # which load no plug-ins
    server = ForkServer(f"import typer, uvicorn\n{loaded}")
    yield server
    server.close()


@pytest.fixture
def pushed(monkeypatch):
    """The uploaded cards, by repository."""
    cards = {}

    class Hub:
        def create_repo(self, repository, private, exist_ok):
            return f"hub:{repository}{' (private)' if private else ''}"

        def upload_folder(self, repo_id, folder_path):
            cards[repo_id] = (folder_path / "README.md").read_text()

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    return cards
