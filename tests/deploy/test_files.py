"""Check the files for containers and clusters, without a container or a cluster."""

import re
import shlex
from pathlib import Path

import pytest

from ptrnet import kernels
from ptrnet.cli import run
from ptrnet.serve.limits import Limits
from ptrnet.serve.routes import probes

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
PROBES = {route.path for route in probes.routes}
PORT = 8000


def instructions():
    """Return the instructions of the Dockerfile, with continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    return [line.split(None, 1) for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def test_the_image_copies_only_existing_files():
    allowed = (ROOT / ".dockerignore").read_text().split()
    stages = [text.split()[-1] for name, text in instructions() if name == "FROM"]
    for name, text in instructions():
        if name == "COPY" and not text.startswith("--from="):
            for source in text.split()[:-1]:
                assert (ROOT / source).exists() and f"!{source}" in allowed
        elif name == "COPY":
            assert text.split()[0].removeprefix("--from=") in stages


def test_the_image_runs_as_an_unprivileged_user():
    found = dict(instructions())
    assert found["USER"] == "ptrnet" and "useradd" in (ROOT / "Dockerfile").read_text()
    names = [name for name, _ in instructions()]
    assert names.index("USER") < names.index("ENTRYPOINT")


def test_the_health_check_uses_the_service():
    found = dict(instructions())
    (route,) = re.findall(rf"http://127\.0\.0\.1:{PORT}(/\w+)", found["HEALTHCHECK"])
    assert route in PROBES and found["EXPOSE"] == str(PORT)


def test_the_command_of_the_image_is_valid(capsys):
    """The only error of the command is that its token file does not exist."""
    words = shlex.split(dict(instructions())["ENTRYPOINT"].strip("[]").replace(",", " "))
    assert words[0] == "ptrnet"
    assert run([*words[1:], "--port", "0"]) == 2
    assert "/run/secrets/token" in capsys.readouterr().err


def test_the_images_warm_up_command_runs(monkeypatch):
    monkeypatch.setattr(kernels, "_steps", 0)  # which the command changes for the whole process
    text = (ROOT / "Dockerfile").read_text()
    (code,) = re.findall(r'^RUN python -c "(.*?)"$', text, re.DOTALL | re.MULTILINE)
    exec(code.replace("\\\n", ""), {})


def test_the_cluster_asks_the_services_routes_and_waits_for_its_answers():
    deployment, service, budget = yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
        probed = container[probe]["httpGet"]
        assert probed["path"] in PROBES and probed["port"] == PORT
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"]
    assert labels == service["spec"]["selector"] == budget["spec"]["selector"]["matchLabels"]
    assert service["spec"]["ports"][0]["targetPort"] == PORT
    assert pod["terminationGracePeriodSeconds"] > Limits().answer_seconds + 5
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert "/run/secrets/token" in mounts and pod["securityContext"]["runAsNonRoot"]
    (user,) = re.findall(r"--uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert pod["securityContext"]["runAsUser"] == int(user)
    assert {"name": "OMP_NUM_THREADS", "value": "1"} in container["env"]
