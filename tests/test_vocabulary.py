"""The words of CONTRIBUTING.md: those it avoids name no files, functions or parameters."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "ptrnet").rglob("*.py"))
OTHERS = sorted(
    path for name in ("tests", "tools", "benchmarks") for path in ROOT.glob(f"{name}/**/*.py")
)
MAX_FUNCTION, MAX_FOLDER = 60, 16

# Former names, beside those of the table, with the folders in which they are right.
# `low` and `high` are an interval's ends.
INTERVALS = ("src/ptrnet/bench", "src/ptrnet/metrics", "src/ptrnet/page/static/view/frame.js")
ORIENTATION = (
    *("src/ptrnet/geometry", "src/ptrnet/labellers", "src/ptrnet/page/static/exact"),
    *("tests/labellers", "tests/stress"),
)
FORMER = {
    **dict.fromkeys(("closing_repeat", "comparable", "fed", "few", "mark"), ()),
    **dict.fromkeys(("named", "train_feed", "wide"), ()),
    "low": INTERVALS,
    "mixed": ("src/ptrnet/geometry/sampling.py",),  # the value of `points`
    "turn": (*ORIENTATION, "src/ptrnet/serve"),  # there of the event loop
}
# Elsewhere a layer has weights; in tours nothing is oriented, and a path is reversed.
FORMER_OF_FOLDERS = {"src/ptrnet/labellers/tour": {"weight", "turn"}}
FORMER_FILES = {"columns", "lists", "mark", "numbers", "packed", "partial", "turn", "words"}
PACKED = ROOT / "src/ptrnet/kernels/packed"  # matrices are


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
        if isinstance(node, ast.alias) and node.asname:
            yield node.asname, node.lineno
        if isinstance(node, ast.Module | ast.ClassDef):
            for field in node.body:
                targets = field.targets if isinstance(field, ast.Assign) else []
                targets += [field.target] if isinstance(field, ast.AnnAssign) else []
                for name in (name for target in targets for name in ast.walk(target)):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                        yield name.id, field.lineno


# In JavaScript: the constants and classes of a module, functions and methods with their parameters.
SCRIPT_NAMES = re.compile(
    r"^(?:export )?(?:class|const|let) [^={]+"
    r"|^(?:export )?(?:async )?function .*\{$"
    r"|^  (?:async )?#?\w+\(.*\) \{$",
    re.MULTILINE,
)


def plain(name):
    """A name as it is compared: `_found` and `Found` are `found`."""
    return name.strip("_").lower()


def is_under(path, folders):
    return any(path.is_relative_to(ROOT / folder) for folder in folders)


def avoided_in(path, words):
    """What no name of a file may be: words of the table, and former names."""
    former = {word for word, folders in FORMER.items() if not is_under(path, folders)}
    for folder, names_of_folder in FORMER_OF_FOLDERS.items():
        former |= names_of_folder if is_under(path, [folder]) else set()
    return words | former


def test_the_table_is_read():
    assert {"found", "far", "shown", "corners", "own_feed", "learned"} <= avoided()
    assert dict(names(ast.parse("async def f(far, /, *, own=1): ..."))).keys() == {
        "f",
        "far",
        "own",
    }
    assert dict(names(ast.parse("class C:\n a: int\n b = 1"))).keys() == {"C", "a", "b"}
    assert dict(names(ast.parse("import x as w\nA, _b = 1, 2"))).keys() == {"w", "A", "_b"}


def test_names_are_compared_without_case_and_underscores():
    assert [plain(name) for name in ("Found", "_found", "found_")] == ["found"] * 3
    tour = ROOT / "src/ptrnet/labellers/tour/one_tree.py"
    assert "weight" in avoided_in(tour, set()) - avoided_in(ROOT / "src/ptrnet/jit.py", set())
    assert "low" not in avoided_in(ROOT / "src/ptrnet/metrics/interval.py", set())


def is_avoided_file(path):
    former = FORMER_FILES if path.parent != PACKED else FORMER_FILES - {"packed"}
    parts = {plain(part) for part in path.relative_to(ROOT).with_suffix("").parts}
    return bool(parts & former) or plain(path.stem) in avoided_in(path, avoided())


def test_avoided_words_do_not_come_back():
    words = avoided()
    for path in [*SOURCES, *OTHERS]:
        where, here = path.relative_to(ROOT), avoided_in(path, words)
        assert not is_avoided_file(path), where
        for name, line in names(ast.parse(path.read_text())):
            assert plain(name) not in here, f"{where}:{line}: {name}"


def test_nor_in_scripts():
    for path in sorted((ROOT / "src/ptrnet/page/static").rglob("*.js")):
        assert not is_avoided_file(path), path
        for match in SCRIPT_NAMES.finditer(path.read_text()):
            declared = {plain(name) for name in re.findall(r"\w+(?!\w|:)", match[0])}
            assert not declared & avoided_in(path, avoided()), f"{path.name}: {match[0]}"


def test_no_import_is_known_by_a_letter():
    for path in [*SOURCES, *OTHERS]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.alias) and node.asname:
                assert len(node.asname) > 1, f"{path.relative_to(ROOT)}:{node.lineno}"


@pytest.mark.parametrize(
    "path", ["cli/words.py", "labellers/tour/turn.py", "geometry/comparable.py"]
)
def test_former_names_of_files_are_known(path):
    assert is_avoided_file(ROOT / "src" / "ptrnet" / path)


def test_docstrings_begin_with_what_a_thing_is():
    """Not with what it is of: a reader meets them alone, in an editor or in the reference."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.get_docstring(node) if isinstance(node, documented) else None
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
            assert not (text or "").startswith("Of "), where


def code_lines(function):
    """How many a function has, without its docstring, and a verb without its list of options."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    first = body[0].lineno if body else function.end_lineno
    return function.end_lineno - first + 1


def test_functions_fit_a_screen_and_folders_a_glance():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                where = f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
                assert code_lines(node) <= MAX_FUNCTION, where
    for folder in {path.parent for path in [*SOURCES, *OTHERS]}:
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
