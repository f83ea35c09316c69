"""Run the service on Ray Serve with two replicas, if Ray is installed."""

import json
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import ptrnet

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not find_spec("ray"), reason="ray is not installed")

SERVING = """
import json, os, sys, urllib.request
import numpy as np
import ray
from ray import serve
from deploy.ray_serve import app

# As on a cluster that runs already: its processes know nothing of PTRNET_MODELS.
del os.environ["PTRNET_MODELS"]
path = {"PYTHONPATH": os.environ["PYTHONPATH"]}
ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": path})
serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
serve.run(app)
answers = []
for points in np.random.default_rng(0).random((20, 12, 2)):
    request = urllib.request.Request(
        f"http://127.0.0.1:{sys.argv[1]}/v1/models/hull/solve",
        json.dumps({"instance": points.tolist()}).encode(),
        {"Content-Type": "application/json"},
    )
    answers.append(json.load(urllib.request.urlopen(request))["answers"][0]["outputs"])
models = json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/v1/models"))["models"]
(deployment,) = serve.status().applications["default"].deployments.values()
open(sys.argv[2], "w").write(json.dumps([answers, models, deployment.replica_states]))
serve.shutdown()
"""


def test_two_replicas_answer_as_the_solver_does(tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "PTRNET_MODELS": "hull sort",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", SERVING, str(port), tmp_path / "answers.json"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answers, models, states = json.loads((tmp_path / "answers.json").read_text())
    assert states == {"RUNNING": 2} and {model["name"] for model in models} == {"hull", "sort"}
    points = np.random.default_rng(0).random((20, 12, 2))
    assert answers == [answer.tolist() for answer in ptrnet.load("hull").solve(list(points))]
