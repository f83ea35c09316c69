"""A folder of documents of pages, read and written as one file.

Documents are read in the order of their names. Other files and folders in it are not read.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

from ptrnet.data import formats
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import pages
from ptrnet.errors import InputError
from ptrnet.files import named_failure
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(task="reading-order", binary=True, document=True, stdout_format="jsonl")


def read(path: str, task: Task) -> Iterator[Example]:
    with named_failure(f"{path}: cannot be read"):
        files = sorted(Path(path).iterdir())
    attempts = list[Callable[[], Iterator[Example]]]()
    for file in files:
        if file.is_file() and formats.is_document(str(file)):
            source = formats.format_of(str(file))
            source.check(str(file), task)
            attempts.append(partial(source.module.read, str(file), task))
    if not attempts:
        raise InputError(f"{path}: holds no documents of pages ({formats.extensions_for(task)})")
    yield from pages.usable(attempts)


def write(folder: Path, examples: Iterable[Example], task: Task) -> None:
    for document, group in groupby(
        examples, lambda example: example.page and example.page.document
    ):
        assert document is not None
        with (folder / Path(document.path).name).open("wb") as stream:
            formats.format_of(document.path).module.write(stream, group, task)
