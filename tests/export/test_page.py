"""`ptrnet export --page`: the files that it writes, and the input that it refuses first."""

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

import pytest

import ptrnet
from ptrnet import webpage
from ptrnet.cli import run
from ptrnet.errors import InputError
from ptrnet.export import page as export_folder
from ptrnet.export.page import export_page


@pytest.fixture
def runtime(tmp_path):
    """A folder that looks like that of onnxruntime."""
    folder = tmp_path / "ort" / "dist"
    folder.mkdir(parents=True)
    for name in export_folder.FILES:
        (folder / name).write_text(f"the content of {name}")
    return folder.parent


def test_the_folder_has_page_models_and_runtime(tmp_path, runtime, capsys):
    site = tmp_path / "site"
    code = run(
        ["export", "--page", str(site), "sort", "--runtime", str(runtime), "--instances", "2"]
    )
    out = capsys.readouterr().out
    assert code == 0 and f"python -m http.server --directory {site}" in out
    assert {path.name for path in site.iterdir()} == {"index.html", "page", "models", "runtime"}
    assert {path.name for path in (site / "runtime").iterdir()} >= {
        *export_folder.FILES,
        "LICENSE",
    }
    for name, content in webpage.parts().items():
        assert (site / "page" / name).read_bytes() == content
    (listed,) = json.loads((site / "models" / "models.json").read_text())
    assert (listed["name"], listed["task"], listed["n"]) == ("sort", "sort", "2-20")
    manifest = json.loads((site / "models" / "sort" / "manifest.json").read_text())
    for name, facts in manifest["files"].items():
        content = (site / "models" / "sort" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == facts["sha256"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "hull"], "export: expected MODEL and DIR, got 1 arguments"),
        (["export", "hull", "out", "--runtime", "ort"], "--runtime has no effect without --page"),
        (["export", "--page", "site", "hul"], "unknown model 'hul'; did you mean 'hull'?"),
        (
            ["export", "--page", "site", "--runtime", "nothing"],
            "--runtime nothing: expected onnxruntime-web's files, got no ort.wasm.min.mjs",
        ),
        (["export", "--page", "site", "hull", "hull"], "there is a model named hull already"),
        (["export", "--page", "no/site"], "cannot be written: No such file or directory"),
    ],
)
def test_refused_in_one_line(arguments, message, tmp_path, monkeypatch, capsys, runtime):
    monkeypatch.chdir(tmp_path)
    if "--page" in arguments and "--runtime" not in arguments:
        arguments = [*arguments, "--runtime", str(runtime)]
    code, out, err = run(arguments), *capsys.readouterr()
    assert code == 2 and not out and err.count("\n") == 1 and message in err, err
    assert [path.name for path in tmp_path.iterdir()] == ["ort"]


def test_models_that_the_page_cannot_draw_are_refused(tmp_path, small, runtime):
    own = small("custom", center=(0.5,), spread=(0.3,), kind="subset")
    for models, message in (
        ({}, "models: expected one or more, got none"),
        (
            {"own": own},
            "own: the page draws hull, .*, reading-order; this model is of task custom",
        ),
        ({"h": small("hull", order="hilbert")}, "h: the page reads elements in the order given"),
    ):
        with pytest.raises(InputError, match=message):
            export_page(models, tmp_path / "site", runtime=runtime)
    assert not (tmp_path / "site").exists()


def test_without_npm_the_error_names_the_option_runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(export_folder.shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"npm is not installed.* or pass --runtime with a folder"):
        export_page({"sort": ptrnet.load("sort")}, tmp_path / "site")


def package(folder, **contents):
    """A package in npm's format."""
    path = folder / "onnxruntime-web.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"package/dist/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_only_the_pinned_package_is_unpacked(tmp_path, monkeypatch):
    contents = {name: name.encode() * 3 for name in export_folder.FILES}
    path = package(tmp_path, **contents)
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="the fetched package has another checksum"):
        export_folder.unpack(path, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
    digest = hashlib.sha512(path.read_bytes()).digest()
    monkeypatch.setattr(export_folder, "INTEGRITY", base64.b64encode(digest).decode())
    export_folder.unpack(path, tmp_path / "out")
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == contents


def test_errors_of_npm_are_shown(tmp_path, monkeypatch):
    program = tmp_path / "npm"
    program.write_text("#!/bin/sh\necho one >&2; echo no network >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(InputError, match="was not fetched: no network; you can pass --runtime"):
        export_folder.copy_runtime(tmp_path, None)


def test_the_commands_of_its_page_run(tmp_path, runtime, monkeypatch, capsys):
    """The commands export all shipped models and start a web server."""
    text = (Path(__file__).parents[2] / "docs" / "page.md").read_text()
    exporting, serving = re.findall(r"^ {4}((?:ptrnet export|python -m) .*)$", text, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    words = [*exporting.split()[1:], "--runtime", str(runtime), "--instances", "2"]
    assert run(words) == 0 and serving in capsys.readouterr().out
    command = [sys.executable, "-u", *serving.split()[1:-1], "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = re.search(r"http://[\d.:]+/", server.stdout.readline())[0]
            with urllib.request.urlopen(address, timeout=60) as response:
                assert response.read() == (tmp_path / "site" / "index.html").read_bytes()
        finally:
            server.kill()
