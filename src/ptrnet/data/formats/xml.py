"""PAGE-XML and ALTO, which are told apart by the root element: the pages of task `reading-order`.

An answer is written as the element `ReadingOrder`. Every other byte of the file stays.
"""

from collections.abc import Iterator
from functools import partial

from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import alto, page_xml, pages
from ptrnet.data.formats.parts.markup import parse_xml
from ptrnet.errors import InputError, short
from ptrnet.tasks.base import Task
from ptrnet.types import Document, Example

CAPABILITIES = Capabilities(task="reading-order", binary=True, document=True, stdout_format="jsonl")
_READERS = {"PcGts": ("page-xml", page_xml.sheets), "alto": ("alto", alto.sheets)}
# Answers are written before these elements.
_FIRST = page_xml.REGIONS | {alto.LAYOUT}


def read(path: str, task: Task) -> Iterator[Example]:
    content, encoding = pages.read_text(path)
    header, root = parse_xml(content, path, _FIRST)
    if header.name not in _READERS:
        raise InputError(
            f"{path}:{header.line}: expected PAGE-XML (root element PcGts) or ALTO (alto), got "
            f"{short(header.name)}"
        )
    kind, sheets = _READERS[header.name]
    document = Document(path, content, encoding, kind)
    yield from pages.examples_of(sheets(document, header, root), task, path, document)


write = partial(pages.write, writers={"page-xml": page_xml.write, "alto": alto.write})
