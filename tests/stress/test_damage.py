"""Flip a bit, or cut off the end, in every kind of file that ptrnet reads again.

It has to be noticed, in one line, or to be harmless: what is read is the same. Where a format has
no checksum (a user's own examples), a number may have become another one; then what is read has
to be what other code reads there.
"""

import contextlib
import io
import shutil
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptrnet.errors import PtrnetError
from tests.stress.kinds import KINDS, Kind
from tests.stress.programs import one_line


class Intact(NamedTuple):
    """The files before the damage, and their contents as the reader returns them."""

    folder: Path
    result: Any


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with one bit flipped or, every third time, without its end."""
    if not content or rng.integers(3) == 0:
        return content[: rng.integers(len(content) + 1)]
    changed = bytearray(content)
    changed[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _prepare(kind: Kind, folder: Path) -> Intact:
    (folder / "files").mkdir()
    kind.make(folder / "files")
    shutil.copytree(folder / "files", folder / "copy")
    with contextlib.redirect_stderr(io.StringIO()):
        return Intact(folder / "files", kind.load(folder / "copy"))


def _case(kind: Kind, intact: Intact, rng: np.random.Generator, folder: Path) -> str:
    files = shutil.copytree(intact.folder, intact.folder.parent / "damaged", dirs_exist_ok=False)
    try:
        paths = sorted(p for pattern in kind.files for p in files.glob(pattern) if p.is_file())
        path = paths[rng.integers(len(paths))]
        path.write_bytes(damaged(path.read_bytes(), rng))
        shutil.copytree(files, folder / "files")
        return _outcome(kind, intact.result, files)
    finally:
        shutil.rmtree(files)


def _outcome(kind: Kind, expected: Any, files: Path) -> str:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            result = kind.load(files)
    except PtrnetError as error:
        one_line(error)
        return "refused"
    if result == expected:
        return "said and mended" if said.getvalue() else "the same"
    assert kind.reread is not None, f"silently other: {str(result)[:500]}"
    reread = kind.reread(files)
    assert result == reread, f"{str(result)[:500]} where the file says {str(reread)[:500]}"
    return "another number"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_damage_is_noticed_or_harmless(kind, try_cases, tmp_path):
    (tmp_path / "shared").mkdir()
    intact = _prepare(kind, tmp_path / "shared")
    try_cases(partial(_case, kind, intact), 1000)
