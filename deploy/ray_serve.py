"""Run the service on Ray Serve: replicas on the machines of a Ray cluster, behind one address.

    serve run deploy.ray_serve:app

`PTRNET_MODELS` names the models (default: all shipped ones), `PTRNET_TOKEN_FILE` a file with the
token that requests have to carry, and `PTRNET_REPLICAS` is the number of replicas (default: 2).
"""

import os

from fastapi import FastAPI
from ray import serve


def build() -> FastAPI:
    """Return the service. Each replica calls this in its process, and has its own models."""
    from ptrnet import runtime

    runtime.tune()

    from ptrnet import weights
    from ptrnet.serve.app import create_app
    from ptrnet.serve.server import read_token, warm_up

    file = os.environ.get("PTRNET_TOKEN_FILE")
    names = os.environ.get("PTRNET_MODELS", "").split() or weights.names()
    models = weights.load_named(names)
    warm_up(models)
    return create_app(models, token=read_token(file) if file else None)


# On a running cluster, replicas have the environment of the cluster, not that of `serve run`.
CHOSEN = {k: v for k, v in os.environ.items() if k in ("PTRNET_MODELS", "PTRNET_TOKEN_FILE")}


@serve.deployment(
    num_replicas=int(os.environ.get("PTRNET_REPLICAS", "2")),
    # More than fit into a replica's queue, so that the replica answers 429, and not Ray.
    max_ongoing_requests=256,
    ray_actor_options={"num_cpus": 1, "runtime_env": {"env_vars": CHOSEN}},
)
@serve.ingress(build)
class PtrNet:
    """A replica of the service."""


app = PtrNet.bind()
