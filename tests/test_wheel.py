"""What is built to be installed: all that the package needs, and nothing of the checkout."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

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


def test_all_of_the_package_is_in_both(built):
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "src/ptrnet"], cwd=ROOT, capture_output=True, check=True
    )
    files = {name.removeprefix("src/") for name in tracked.stdout.decode().split("\0") if name}
    assert {"ptrnet/py.typed", "ptrnet/weights/hull/model.safetensors"} <= files
    wheel = set(zipfile.ZipFile(built[0]).namelist())
    assert files <= wheel
    assert all(name.startswith(("ptrnet/", "ptrnet-")) for name in wheel)
    with tarfile.open(built[1]) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in files} | {
        "README.md",
        "LICENSE",
        "tests/conftest.py",
    } <= source


def test_the_wheel_works_by_itself(built, tmp_path):
    zipfile.ZipFile(built[0]).extractall(tmp_path / "site")
    code = (
        "import ptrnet, sys; assert 'site' in ptrnet.__file__;"
        "print(sorted(map(int, ptrnet.load('hull').solve([[0, 0], [1, 0], [.4, .3], [0, 1]]))));"
        "from ptrnet.reproduce import tables; assert len(tables.names()) == 6"
    )
    path = {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, **path},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[0, 1, 3]\n", done.stderr


def test_the_metadata_is_whole(built):
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
    assert page.startswith("# ptrnet") and "Tutorial: five minutes" in page
    assert not re.search(r"\]\((?!https?://)", page)
    assert not re.search(r'(?:src|href)="(?!https?://)', page)
