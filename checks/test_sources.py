"""Imports without circles, small files, and results without paths of a machine."""

import re
import runpy
import subprocess
from graphlib import TopologicalSorter
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
