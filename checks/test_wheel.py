"""The built package contains everything that it needs, and needs nothing from the checkout."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from venv import EnvBuilder

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
pytest.importorskip("hatchling")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and a source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def test_wheel_and_source_contain_the_whole_package(built):
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "src"], cwd=ROOT, capture_output=True, check=True
    )
    files = {name.removeprefix("src/") for name in tracked.stdout.decode().split("\0") if name}
    assert {
        "ptrnet/py.typed",
        "ptrnet/weights/hull/model.safetensors",
        "ptrnet_lab/plugin.py",
    } <= files
    wheel = set(zipfile.ZipFile(built[0]).namelist())
    assert files <= wheel
    assert all(name.startswith(("ptrnet/", "ptrnet_lab/", "ptrnet-")) for name in wheel)
    with tarfile.open(built[1]) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in files} | {
        "README.md",
        "LICENSE",
        "tests/conftest.py",
    } <= source


def requirements(name, known):
    """Return the dependencies without extras, and their dependencies."""
    if name in known:
        return
    known[name] = distribution(name)
    for text in known[name].requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            requirements(requirement.name, known)


@pytest.fixture(scope="module")
def clean(built, tmp_path_factory):
    """A new environment with the wheel and its dependencies: no extras, no tools of the tests."""
    folder = tmp_path_factory.mktemp("clean")
    EnvBuilder(with_pip=False).create(folder)
    (site,) = folder.glob("lib/python3*/site-packages")
    needed = {}
    requirements("ptrnet", needed)
    for dist in (d for name, d in needed.items() if name != "ptrnet"):
        for top in {file.parts[0] for file in dist.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(dist.locate_file(top))
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install"]
    subprocess.run([*pip, "--quiet", "--no-deps", "--no-index", built[0]], check=True)
    return folder / "bin"


def run(program, *arguments):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [program, *arguments]
    return subprocess.run(
        command, cwd=program.parent, env=environment, capture_output=True, text=True
    )


def test_the_program_is_installed(clean):
    done = run(clean / "ptrnet", "solve", "hull", ROOT / "examples" / "capitals.csv")
    assert done.returncode == 0 and done.stdout.startswith("city,longitude"), done.stderr


def test_the_package_works_by_itself(clean):
    """Also features with a missing extra, which name it. Each process would import torch."""
    lines = {
        "train sort --steps 1": "train",
        "solve hull --random 5 --plot a.png": "plot",
        "export hull graphs": "export",
        "serve": "serve",
        "generate hull --n 5 --count 2 --output a.parquet": "parquet",
    }
    code = (
        "import sys, ptrnet; assert 'site-packages' in ptrnet.__file__;"
        "print(sorted(map(int, ptrnet.load('hull').solve([[0, 0], [1, 0], [.4, .3], [0, 1]]))));"
        "assert 'seq2seq' in ptrnet.models.names();"
        "from ptrnet_lab.reproduce import tables; assert len(tables.names()) == 6;"
        "from ptrnet.cli import run; print([run(a.split()) for a in sys.argv[1:]])"
    )
    done = run(clean / "python", "-c", code, *lines)
    assert done.stdout == "[0, 1, 3]\n[2, 2, 2, 2, 2]\n", done.stderr
    messages = done.stderr.splitlines()
    for message, extra in zip(messages, lines.values(), strict=True):
        assert f'needs the extra "{extra}": pip install "ptrnet[{extra}]"' in message


def test_the_source_makes_the_same_wheel(built, tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--no-index", "-w", tmp_path, built[1]], check=True)
    (again,) = tmp_path.glob("*.whl")
    first, second = (
        {entry.filename: entry.CRC for entry in zipfile.ZipFile(wheel).infolist()}
        for wheel in (built[0], again)
    )
    assert first == second


def test_the_metadata_is_complete(built):
    with zipfile.ZipFile(built[0]) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    for line in ("Name: ptrnet", "License-Expression: MIT", "Requires-Python: >=3.11"):
        assert f"\n{line}\n" in text
    assert "Classifier: Typing :: Typed" in text and "Provides-Extra: sklearn" in text
    assert "Project-URL: Paper, https://" in text


def test_the_page_that_an_index_shows_has_no_link_into_the_checkout(built):
    with zipfile.ZipFile(built[0]) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        _, page = archive.read(name).decode().split("\n\n", 1)
    assert page.startswith("# ptrnet") and "Tutorial (five minutes)" in page
    assert not re.search(r"\]\((?!https?://)", page)
    assert not re.search(r'(?:src|href)="(?!https?://)', page)
