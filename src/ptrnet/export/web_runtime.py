"""onnxruntime for browsers, which a page without a service runs its models by.

It is fourteen megabytes of its makers' own, so it is no part of this package: npm fetches the
pinned version, whose checksum is known here, or a user names a folder that has it.
"""

import base64
import hashlib
import importlib.util
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from ptrnet.errors import InputError

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
INTEGRITY = (  # SHA-512 of the package, as npm's registry and its lock files say it
    "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
)
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
LICENCES = ("LICENSE", "ThirdPartyNotices.txt")  # of onnxruntime, in Python's package as well
SECONDS = 600  # for npm


def copy_runtime(folder: Path, source: Path | None) -> None:
    """Puts the files of the runtime into a folder, its licence beside them.

    Args:
        folder: is there.
        source: a folder that has the files, as npm's package or its `dist`; None: npm fetches them.

    Raises:
        InputError: a file is missing, npm is not there or fails, or what it fetches is another file
            than the one that is known.
    """
    if source is None:
        _fetch(folder)
    else:
        for name in FILES:
            shutil.copyfile(_find(source, name), folder / name)
    _copy_licences(folder, source)


def check_runtime(source: Path | None) -> None:
    """Refuses what `copy_runtime` would refuse, as far as that can be seen at once."""
    if source is not None:
        for name in FILES:
            _find(source, name)
    elif shutil.which("npm") is None:
        raise InputError(
            f"npm is not installed, which fetches {PACKAGE} {VERSION}: install it, or name with "
            f"--runtime a folder with {', '.join(FILES)}"
        )


def _find(source: Path, file: str) -> Path:
    for path in (source / file, source / "dist" / file):
        if path.is_file():
            return path
    raise InputError(f"--runtime {source}: expected {PACKAGE}'s files, got no {file}")


def _fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        command = ["npm", "pack", f"{PACKAGE}@{VERSION}", "--silent"]
        try:
            done = subprocess.run(
                command, cwd=temporary, capture_output=True, text=True, timeout=SECONDS
            )
            reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"npm: {PACKAGE} {VERSION} was not fetched: {error}") from None
        packages = list(Path(temporary).glob("*.tgz"))
        if done.returncode or len(packages) != 1:
            raise InputError(
                f"npm: {PACKAGE} {VERSION} was not fetched: {reason[:200]}; or name with --runtime "
                "a folder that has it"
            )
        _unpack(packages[0], folder)


def _unpack(package: Path, folder: Path) -> None:
    """Takes the files out of npm's package, once it is known to be the right one."""
    with package.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha512").digest()
    if base64.b64encode(digest).decode() != INTEGRITY:
        raise InputError(f"npm: {PACKAGE} {VERSION}: what it fetched has another checksum")
    with tarfile.open(package) as archive:
        for name in FILES:
            content = archive.extractfile(f"package/dist/{name}")
            assert content is not None  # its checksum is known
            with (folder / name).open("wb") as stream:
                shutil.copyfileobj(content, stream)


def _copy_licences(folder: Path, source: Path | None) -> None:
    spec = importlib.util.find_spec("onnxruntime")
    homes = [source] if source else []
    homes += [Path(home) for home in (spec.submodule_search_locations if spec else None) or ()]
    for name in LICENCES:
        path = next((home / name for home in homes if (home / name).is_file()), None)
        if path is not None:
            shutil.copyfile(path, folder / name)
    if not (folder / LICENCES[0]).is_file():
        raise InputError(f"{PACKAGE}: expected its {LICENCES[0]} beside its files")
