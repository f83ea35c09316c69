"""The service on Ray Serve: replicas on the machines of a Ray cluster, behind one address.

    serve run deploy.ray_serve:app

`PTRNET_MODELS` names the models (all shipped ones if not), `PTRNET_TOKEN_FILE` a file with the
token that requests have to carry, `PTRNET_REPLICAS` how many answer (2).
"""

import os

from fastapi import FastAPI
from ray import serve


def build() -> FastAPI:
    """The service, in a replica's own process: with models of its own."""
    from ptrnet import runtime

    runtime.tune()

    from ptrnet import weights
    from ptrnet.serve.app import create_app
    from ptrnet.serve.process.listening import read_token
    from ptrnet.serve.process.server import load_models, warm_up

    file = os.environ.get("PTRNET_TOKEN_FILE")
    names = os.environ.get("PTRNET_MODELS", "").split() or weights.names()
    models = load_models(names)
    for model in models.values():
        warm_up(model.solver)
    return create_app(models, token=read_token(file) if file else None, threads=1)


# Replicas on a cluster that runs already have its environment, not that of `serve run`.
CHOSEN = {k: v for k, v in os.environ.items() if k in ("PTRNET_MODELS", "PTRNET_TOKEN_FILE")}


@serve.deployment(
    num_replicas=int(os.environ.get("PTRNET_REPLICAS", "2")),
    # More than a batch of the largest size: the replica's own queue says 429, not Ray's.
    max_ongoing_requests=256,
    ray_actor_options={"num_cpus": 1, "runtime_env": {"env_vars": CHOSEN}},
)
@serve.ingress(build)
class PtrNet:
    """A replica."""


app = PtrNet.bind()
