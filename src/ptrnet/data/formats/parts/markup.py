"""Trees of XML and HTML elements that know where they are in their text.

Writers change a document only between such positions, so that every other byte stays.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import AnyStr
from xml.parsers.expat import ExpatError, ParserCreate

from ptrnet.errors import InputError

# A tag. Attribute values may contain ">".
_TAG = re.compile(rb"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""")
_DEEPEST = 200  # how many elements of XML may be in one another
# Elements of HTML that have no end tag.
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr"}


class Node:
    """An element.

    Args:
        name: its name, without a prefix.
        prefix: the prefix with its colon, or an empty text.
        attributes: the values of its attributes.
        line: the number of its line, from 1.
        start: the position of its start tag.
    """

    __slots__ = ("attributes", "children", "end", "line", "name", "prefix", "start")

    def __init__(self, name: str, attributes: dict[str, str], line: int, start: int) -> None:
        self.prefix, colon, self.name = name.rpartition(":")
        self.prefix += colon
        self.attributes, self.line, self.start = attributes, line, start
        self.end = start  # the position after its end tag
        self.children: list[Node] = []

    def walk(self) -> Iterator["Node"]:
        """Yield the element and all elements in it, in the order of the document."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def outermost(self, names: set[str] | frozenset[str]) -> Iterator["Node"]:
        """Yield the elements in this one with these names, but none within another of them."""
        stack = self.children[::-1]
        while stack:
            node = stack.pop()
            if node.name in names:
                yield node
            else:
                stack.extend(reversed(node.children))

    def child(self, *names: str) -> "Node | None":
        """Return the first child with one of these names."""
        return next((node for node in self.children if node.name in names), None)


def parse_xml(content: bytes, path: str) -> Node:
    """Return the root of an XML document in UTF-8, whatever encoding it declares.

    Raises:
        InputError: the content is not XML, has elements that are nested too deeply, or declares
            entities, which could expand to any size.
    """
    top = Node("", {}, 0, 0)
    stack = [top]
    parser = ParserCreate("UTF-8")

    def start(name: str, attributes: dict[str, str]) -> None:
        node = Node(name, attributes, parser.CurrentLineNumber, parser.CurrentByteIndex)
        if len(stack) > _DEEPEST:
            raise InputError(f"{path}:{node.line}: elements are nested too deeply")
        stack[-1].children.append(node)
        stack.append(node)

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
    try:
        parser.Parse(content, True)
    except ExpatError as error:
        reason = str(error).partition(":")[0]
        raise InputError(f"{path}:{error.lineno}: not XML: {reason}") from None
    return top.children[0]


def start_tag_end(content: bytes, node: Node) -> int:
    """Return the position after the start tag of an element of XML."""
    found = _TAG.match(content, node.start)
    assert found is not None
    return found.end()


def plain_text(content: AnyStr, node: Node) -> str:
    """Return the text in an element, with single spaces between its words."""
    part = content[node.start : node.end]
    text = part.decode() if isinstance(part, bytes) else part
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def parse_html(content: str) -> Node:
    """Return an element with all elements of an HTML or XHTML document. No HTML is refused."""
    parser = _HtmlParser(content)
    parser.feed(content)
    parser.close()
    parser.close_until(0, len(content))
    return parser.stack[0]


class _HtmlParser(HTMLParser):
    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=False)
        self.content = content
        self.stack = [Node("", {}, 0, 0)]
        self._starts = [0, *(found.end() for found in re.finditer("\n", content))]

    def _position(self) -> int:
        line, column = self.getpos()
        return self._starts[line - 1] + column

    def close_until(self, depth: int, end: int) -> None:
        """Close elements at a position until `depth` elements are open, besides the first."""
        while len(self.stack) > depth + 1:
            self.stack.pop().end = end

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = self._position()
        if self.stack[-1].name == tag == "p":  # a paragraph ends where the next one begins
            self.close_until(len(self.stack) - 2, at)
        values = {name: value or "" for name, value in attrs}
        node = Node(tag, values, bisect_right(self._starts, at), at)
        node.end = at + len(self.get_starttag_text() or "")
        self.stack[-1].children.append(node)
        if tag not in _VOID:
            self.stack.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        depth = len(self.stack)
        self.handle_starttag(tag, attrs)
        del self.stack[depth:]

    def handle_endtag(self, tag: str) -> None:
        at = self._position()
        for depth in range(len(self.stack) - 1, 0, -1):
            if self.stack[depth].name == tag:
                self.close_until(depth, at)
                self.stack.pop().end = self.content.find(">", at) + 1
                return


def spliced(content: AnyStr, edits: Sequence[tuple[int, int, AnyStr]]) -> AnyStr:
    """Replace the parts of a text from a start to an end. Parts do not overlap."""
    for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        content = content[:start] + new + content[end:]
    return content


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

    Args:
        elements: the name of each element, and its attributes.
        lines: the lines.
        indent: what `indentation` returned for the outermost element.
    """
    if not elements:
        return "".join(f"{indent}{line}" for line in lines)
    (name, attributes), *others = elements
    step = ("\t" if "\t" in indent else "  ") if indent else ""
    return f"{indent}<{name}{attributes}>{nested(others, lines, indent + step)}{indent}</{name}>"
