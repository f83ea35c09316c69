"""One of several worker processes, started by uvicorn."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI


def create_worker() -> "FastAPI":
    """Return the app of a worker. Its settings come from `server.serve`."""
    from ptrnet import runtime

    runtime.tune()  # before torch is imported

    from ptrnet.serve.server import load_models, prepare, settings_of_worker

    settings = settings_of_worker()
    return prepare(settings, load_models(settings.models))
