"""The words of CONTRIBUTING.md: those it avoids are no names of files, functions or parameters."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "ptrnet").rglob("*.py"))
MAX_FUNCTION, MAX_FOLDER = 60, 16


def avoided():
    """The last column of the table of words."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (table,) = re.findall(r"\| word \| meaning \| not \|\n\|[-|]+\|\n((?:\|.*\n)+)", text)
    cells = [row.rsplit("|", 2)[1] for row in table.splitlines()]
    return {word.strip() for cell in cells for word in cell.split(",")} - {""}


def names(tree):
    """Names that a reader meets from outside: with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                targets = field.targets if isinstance(field, ast.Assign) else []
                targets += [field.target] if isinstance(field, ast.AnnAssign) else []
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield target.id, field.lineno


def test_the_table_is_read():
    assert {"found", "far", "shown", "corners", "own_feed", "learned"} <= avoided()
    assert dict(names(ast.parse("async def f(far, /, *, own=1): ..."))).keys() == {
        "f",
        "far",
        "own",
    }
    assert dict(names(ast.parse("class C:\n a: int\n b = 1"))).keys() == {"C", "a", "b"}


def test_avoided_words_do_not_come_back():
    words = avoided()
    for path in SOURCES:
        assert path.stem not in words, path
        for name, line in names(ast.parse(path.read_text())):
            assert name not in words, f"{path.relative_to(ROOT)}:{line}: {name}"


def code_lines(function):
    """Of a function, without its docstring; of a verb, without its list of options."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    first = body[0].lineno if body else function.end_lineno
    return function.end_lineno - first + 1


def test_functions_fit_a_screen_and_folders_a_glance():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                where = f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
                assert code_lines(node) <= MAX_FUNCTION, where
    for folder in {path.parent for path in SOURCES}:
        files = list(folder.glob("*.py"))
        assert len(files) <= MAX_FOLDER, f"{folder.relative_to(ROOT)}: {len(files)} files"


def imports(path, modules):
    """The modules of ptrnet that a file imports, for types or inside a function too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ptrnet"):
            for alias in node.names:  # a submodule, or else a name that the module defines
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in modules else node.module


def test_no_import_goes_in_a_circle():
    modules = {}
    for path in SOURCES:
        parts = ("ptrnet", *path.relative_to(ROOT / "src" / "ptrnet").with_suffix("").parts)
        modules[".".join(parts).removesuffix(".__init__")] = path
    graph = {name: set(imports(path, modules)) for name, path in modules.items()}
    finished, active = set(), []

    def visit(name):
        if name in finished:
            return
        assert name not in active, " -> ".join([*active[active.index(name) :], name])
        active.append(name)
        for imported in graph[name]:
            visit(imported)
        active.pop()
        finished.add(name)

    for name in graph:
        visit(name)
