"""Imports without circles, small files, and results without paths of a machine."""

import ast
import re
import runpy
import subprocess
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
MAX_BYTES = 6_000_000  # of a tracked file: shipped weights are the largest


def test_modules_do_not_import_each_other_in_a_circle():
    """Including imports inside functions; lint-imports holds the layers."""
    graph = grimp.build_graph(
        "ptrnet", "ptrnet_lab", cache_dir=None, exclude_type_checking_imports=True
    )
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules


def test_no_tracked_file_is_large():
    result = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in result.stdout.decode().rstrip("\0").split("\0"):
        assert (ROOT / name).stat().st_size < MAX_BYTES, name


def test_results_contain_no_absolute_paths():
    for path in (ROOT / "results").glob("*.json"):
        assert not re.search(r"[ '\"]/(root|home|tmp|Users)/", path.read_text()), path


def test_scores_in_the_readme_equal_those_in_results():
    script = runpy.run_path(str(ROOT / "benchmarks" / "readme_scores.py"))
    _, rest = (ROOT / "README.md").read_text().split(script["BEGIN"])
    table, _ = rest.split(script["END"])
    assert table.strip().split("\n") == list(script["lines"]())


def test_the_scripts_find_what_they_import():
    """Nothing else runs the scripts of benchmarks/ before somebody needs them."""
    scripts = {
        path.stem: ast.parse(path.read_text()) for path in (ROOT / "benchmarks").glob("*.py")
    }
    for name, tree in scripts.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            if node.module in scripts:
                known = names_in(scripts[node.module])
            elif node.module.partition(".")[0] in ("ptrnet", "ptrnet_lab"):
                module = import_module(node.module)
                known = {alias.name for alias in node.names if has(module, alias.name)}
            else:
                continue
            missing = {alias.name for alias in node.names} - known
            assert not missing, f"benchmarks/{name}.py:{node.lineno}: {missing}"


def names_in(tree):
    """Return the names that the statements of a script define."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return names


def has(module, name):
    """Whether a module has a name, or is a package with a module of this name."""
    try:
        return hasattr(module, name) or bool(import_module(f"{module.__name__}.{name}"))
    except ImportError:
        return False
