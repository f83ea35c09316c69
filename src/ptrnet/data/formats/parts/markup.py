"""Where elements are in the text of XML and HTML documents.

Writers change a document only between such positions, so that every other byte stays. Programs
write files with a hundred thousand elements, mostly words. So the compiled parser of Python reads
the content of XML, and we look for positions only in the first elements of a document.
"""

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import AnyStr
from xml.etree.ElementTree import Element, ParseError, XMLParser
from xml.parsers.expat import ExpatError, ParserCreate

from ptrnet.errors import InputError

_DEEPEST = 200  # how many elements of XML may be in one another before the first region
# A tag. Attribute values may contain ">".
_TAG = re.compile(rb"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""")
# What is no tag, or a tag of HTML: a slash of an end tag, the name, the attributes, a slash.
_HTML = re.compile(
    r"""<!--.*?-->|<(script|style)\b.*?</\1\s*>"""
    r"""|<(/?)([a-zA-Z][^\s/>]*)((?:[^<>"']|"[^"]*"|'[^']*')*?)(/?)>""",
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""([^\s=/]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""")
# Elements of HTML that have no end tag.
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr"}


class Node:
    """An element of a document, and where it is: its line is 0 if it is not known."""

    __slots__ = ("attributes", "children", "end", "line", "name", "prefix", "start")

    def __init__(self, name: str, start: int, attributes: dict[str, str], line: int = 0) -> None:
        self.prefix, colon, self.name = name.rpartition(":")
        self.prefix += colon
        self.start, self.attributes, self.line = start, attributes, line
        self.end = start  # the position after its end tag
        self.children: list[Node] = []

    def child(self, name: str) -> "Node | None":
        """Return the first child with this name."""
        return next((node for node in self.children if node.name == name), None)


# XML


def parse_xml(content: bytes, path: str, until: frozenset[str]) -> tuple[Node, Element]:
    """Return the root of an XML document in UTF-8, whatever encoding it declares, in two forms.

    The first has the positions of all elements up to the first that is named in `until`, without
    its prefix. The second has the content. Raises InputError if the content is not XML, has
    elements that are nested too deeply, or declares entities, which could expand to any size.
    """
    top = Node("", 0, {})
    stack = [top]
    parser = ParserCreate("UTF-8")

    def start(name: str, attributes: dict[str, str]) -> None:
        node = Node(name, parser.CurrentByteIndex, attributes, parser.CurrentLineNumber)
        if len(stack) > _DEEPEST:
            raise InputError(f"{path}:{node.line}: elements are nested too deeply")
        stack[-1].children.append(node)
        stack.append(node)
        if node.name in until:
            raise StopIteration

    def end(_: str) -> None:
        node, at = stack.pop(), parser.CurrentByteIndex
        # After a tag such as <a/>, the parser is behind the tag, otherwise before the end tag.
        is_empty = content[at - 2 : at] == b"/>" and start_tag_end(content, node) == at
        node.end = at if is_empty else content.index(b">", at) + 1

    def refuse(name: str, *_: object) -> None:
        raise InputError(
            f"{path}:{parser.CurrentLineNumber}: declares the entity {name}; expected XML without "
            "entities of its own"
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.EntityDeclHandler = refuse
    reader = XMLParser(encoding="utf-8")
    try:
        with suppress(StopIteration):
            parser.Parse(content, True)
        reader.feed(content)
        return top.children[0], reader.close()
    except (ExpatError, ParseError) as error:
        reason, _, place = str(error).partition(": line ")
        raise InputError(f"{path}:{place.partition(',')[0]}: not XML: {reason}") from None


def start_tag_end(content: bytes, node: Node) -> int:
    """Return the position after the start tag of an element of XML."""
    found = _TAG.match(content, node.start)
    assert found is not None
    return found.end()


def local_name(element: Element) -> str:
    """Return the name of an element, without its namespace."""
    return element.tag.rpartition("}")[2]


class Place:
    """The file and the line of an element. The line is found when an error message needs it."""

    def __init__(self, path: str, content: bytes, root: Element, element: Element) -> None:
        self._path, self._content, self._root, self._element = path, content, root, element

    def __str__(self) -> str:
        index = next(k for k, element in enumerate(self._root.iter()) if element is self._element)
        lines, parser = list[int](), ParserCreate("UTF-8")
        parser.StartElementHandler = lambda *_: lines.append(parser.CurrentLineNumber)
        parser.Parse(self._content, True)
        return f"{self._path}:{lines[index]}"


def indentation(content: bytes, start: int) -> str:
    """Return the line break and the spaces before an element; empty if a line has other text."""
    line = content.rfind(b"\n", 0, start)
    if line < 0 or content[line:start].strip():
        return ""
    return content[line - (content[line - 1 : line] == b"\r") : start].decode()


def new_id(content: bytes, id: str) -> str:
    """Return an id that begins like the given one, and with which no id of the content begins."""
    while f'"{id}'.encode() in content:
        id += "_"
    return id


def nested(elements: Sequence[tuple[str, str]], lines: Sequence[str], indent: str) -> str:
    """Return elements in one another, and lines in the innermost one.

    Each element has a name and attributes. `indentation` returned `indent` for the outermost one.
    """
    if not elements:
        return "".join(f"{indent}{line}" for line in lines)
    (name, attributes), *others = elements
    step = ("\t" if "\t" in indent else "  ") if indent else ""
    return f"{indent}<{name}{attributes}>{nested(others, lines, indent + step)}{indent}</{name}>"


# HTML


def parse_html(content: str, mark: re.Pattern[str]) -> Node:
    """Return an element with the elements of an HTML or XHTML document. No HTML is refused.

    Elements whose attributes do not contain `mark` are left out. Their children become children of
    the element around them.
    """
    top = Node("", 0, {})
    kept = [top]  # the open elements that are not left out
    stack: list[tuple[str, Node | None]] = []  # all open elements
    line, counted = 1, 0  # the number of the line at a position

    def close(depth: int, end: int) -> None:
        """Close elements at a position until `depth` elements are open."""
        while len(stack) > depth:
            _, node = stack.pop()
            if node is not None:
                kept.pop().end = end

    for found in _HTML.finditer(content):
        _, closes, name, attributes, is_empty = found.groups()
        if name is None:  # a comment or a script
            continue
        name = name.lower()
        if closes:
            depth = next((k for k in range(len(stack) - 1, -1, -1) if stack[k][0] == name), None)
            if depth is not None:
                close(depth + 1, found.start())
                close(depth, found.end())
            continue
        if stack and stack[-1][0] == name == "p":  # a paragraph ends where the next one begins
            close(len(stack) - 1, found.start())
        node = None
        if mark.search(attributes):
            line, counted = line + content.count("\n", counted, found.start()), found.start()
            node = Node(name, found.start(), _attributes(attributes), line)
            node.end = found.end()
            kept[-1].children.append(node)
        if not is_empty and name not in _VOID:
            stack.append((name, node))
            kept += [node] if node is not None else []
    close(0, len(content))
    return top


def _attributes(text: str) -> dict[str, str]:
    return {
        name.lower(): html.unescape(value[1:-1] if value[0] in "\"'" else value)
        for name, value in _ATTRIBUTE.findall(text)
    }


def of_classes(top: Node, classes: set[str]) -> Iterator[Node]:
    """Yield the outermost elements of HTML in an element that have one of the classes."""
    stack = top.children[::-1]
    while stack:
        node = stack.pop()
        if classes.intersection(node.attributes.get("class", "").split()):
            yield node
        else:
            stack.extend(reversed(node.children))


def plain_text(content: str, node: Node) -> str:
    """Return the text in an element of HTML, with single spaces between its words."""
    text = re.sub(r"<[^>]*>", " ", content[node.start : node.end])
    return " ".join(html.unescape(text).split())


def spliced(content: AnyStr, edits: Sequence[tuple[int, int, AnyStr]]) -> AnyStr:
    """Replace the parts of a text from a start to an end. Parts do not overlap."""
    parts: list[AnyStr] = []
    done = 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        parts += (content[done:start], new)
        done = end
    parts.append(content[done:])
    return content[:0].join(parts)
