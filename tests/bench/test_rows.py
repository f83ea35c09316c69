"""What is measured is what is asked for, and what is printed and written agrees with it."""

import json
import pickle
import re
from importlib import import_module

import pytest
import torch

from ptrnet import bench, models
from ptrnet.bench import code_paths, harness, page, roofline
from ptrnet.bench.measurements import data, label, train
from ptrnet.bench.row import Baseline, Row, format_table
from ptrnet.bench.timing import Spread
from ptrnet.errors import InputError, MissingExtraError, OutputError
from ptrnet.export import folder
from ptrnet.kernels import packed
from ptrnet.training.recipe import Recipe

SMALL = {
    "score": {"n": 5, "batch_size": 3, "hidden_size": 8},
    "train": {"n": 6, "batch_size": 4, "hidden_size": 8},
    "solve": {"n": 6, "batch_size": 3},
    "label": {"task": "sort", "n": 6},
    "data": {"n": 6, "batch_size": 4, "hidden_size": 8},
    "export": {"task": "sort", "n": 6, "batch_size": 3},
}


@pytest.fixture
def quick(monkeypatch):
    """Small products, files and processes; the setups of other processes are only pickled."""

    def pickled_sizes(setups, title):
        return {name: float(len(pickle.dumps(setup))) for name, setup in setups.items()}

    monkeypatch.setattr(harness, "peaks", pickled_sizes)
    monkeypatch.setitem(roofline._SIDE, "cpu", 32)
    monkeypatch.setattr(roofline, "_TIMES", 20)
    monkeypatch.setattr(data, "COUNT", 40)
    monkeypatch.setattr(data, "STEPS", 2)
    monkeypatch.setattr(label, "MIN_SECONDS", 1e-4)
    monkeypatch.setattr(label, "cpu_count", lambda: 1)


@pytest.mark.parametrize("measurement", bench.MEASUREMENTS)
def test_each_measurement_gives_rows(quick, measurement):
    assert set(SMALL) == set(bench.MEASUREMENTS)
    options = {**SMALL[measurement], "repeats": 2, "seed": 1}
    (planned,) = bench.plan(measurement, options).values()
    rows = list(planned)
    assert rows and len({row.name for row in rows}) == len(rows)
    for row in rows:
        table = json.loads(json.dumps(row.table()))
        assert table["what"] == measurement and table["n"] == SMALL[measurement]["n"]
        assert 0 < table["low_ms"] <= table["median_ms"] <= table["high_ms"]
        assert table["runs"] >= 1 and table["rate"] > 0 and table["unit"].endswith("/s")
        assert table["peak_mb"] > 0
        if table["roofline_ms"] is not None:
            share = table["roofline_ms"] / table["median_ms"]
            assert table["roofline_share"] == pytest.approx(share) and share > 0
        if table["other"] is not None:
            assert table["other"]["ms"] > 0 and table["other"]["ratio"] > 0
        assert row.name in format_table(rows)


def test_all_that_can_be_measured_is_planned(monkeypatch):
    """Without the extra of one measurement the others are still there."""
    monkeypatch.setattr(folder, "find_spec", lambda package: None)
    assert set(bench.plan(None, {})) == set(bench.MEASUREMENTS) - {"export"}
    with pytest.raises(MissingExtraError):
        bench.plan("export", {})


def test_a_training_step_is_counted_whole(quick):
    shape = {"n": 6, "batch_size": 4, "hidden_size": 8}
    (row,) = train.rows(model="ptr-net", **shape, precision="float32", repeats=3)
    table = row.table()
    assert table["step_ms"] == table["median_ms"] > table["waiting_ms"] > 0
    assert table["rate"] == pytest.approx(4000 / table["step_ms"])
    assert table["runs"] == 3 and table["precision"] == "float32"
    assert table["other"]["name"] == "naive float32"


@pytest.mark.parametrize("model", models.names())
def test_every_model_is_measured_beside_its_products(quick, model):
    (row,) = train.rows(model=model, **SMALL["train"], repeats=2)
    table = row.table()
    assert table["model"] == model and table["step_ms"] == table["median_ms"] > 0
    assert table["roofline_ms"] > 0 and table["roofline_share"] > 0
    assert (table["other"] is not None) == (model == "ptr-net")
    assert (table["task"], table.get("cuts")) == (
        ("tsp", 1) if model == "remaining-ptr-net" else ("hull", None)
    )


def test_without_options_the_shipped_architectures_are_measured(quick, monkeypatch):
    monkeypatch.setattr(train, "measure", lambda measurement, cases: iter(cases))
    recipes = [case.recipe for case in bench.plan("train", {})["train"]]
    sizes = [(r.model, r.task.name, r.network.hidden_size, str(r.n), r.batch_size) for r in recipes]
    assert sizes == [
        ("ptr-net", "hull", 256, "50", 128),
        ("ptr-net", "hull", 512, "50", 128),
        ("transformer-ptr-net", "hull", 256, "50", 128),
        ("remaining-ptr-net", "tsp", 256, "50", 128),
    ]
    assert {r.optimizer for r in recipes} == {"adamw"}
    # Where answers depend on indices that a model does not see, elements are sorted.
    recipes = [case.recipe for case in bench.plan("train", {"task": "delaunay"})["train"]]
    assert [r.task.order for r in recipes] == ["given"] * 2 + ["lexicographic"] * 2


def test_operations_are_those_of_the_plain_loops():
    """Two for each number of a product's left side, by column of its right side."""
    batch, units, elements, slots, steps = 3, 5, 7, 8, 4
    products = [(batch * elements, units, 4 * units), (batch * slots, units, units)]
    products += [(batch * steps, units, 4 * units), (batch * steps, units, units)]
    expected = sum(2 * rows * inner * columns for rows, inner, columns in products)
    assert roofline.operations(batch, units, elements, slots, steps) == expected


def test_a_table_leaves_out_what_no_row_has():
    facts = {"task": "hull", "n": 5, "hidden_size": 8}
    one = Row("train", "first", Spread(2.0, 1.5, 3.0, 4), 100, "examples", facts, roofline_ms=0.5)
    other = Row("train", "second", one.time, 7, "examples", {**facts, "n": 6}, roofline_ms=0.1)
    text = format_table([one, other]).splitlines()
    assert text[0] == "task hull, hidden size 8"
    assert text[1].split() == ["ms", "quartiles", "rate", "roofline", "ms", "share"]
    assert " ".join(text[2].split()) == "first 2 1.5 to 3 50,000 examples/s 0.5 25%"
    beside = Row(
        "train", "third", one.time, 7, "examples", baseline=Baseline("naive", 20, 10, 512.4)
    )
    assert "naive 20 ms  10.0   512" in format_table([beside])


@pytest.mark.parametrize(
    ("measurement", "options", "complaint"),
    [
        ("trian", {}, "unknown measurement 'trian'; did you mean 'train'"),
        ("solve", {"hidden_size": 5}, "--hidden-size does nothing with bench solve"),
        (None, {"n": 0}, "n: expected 1 <= A <= B"),
        (None, {"task": "hul"}, "did you mean 'hull'"),
        ("label", {"task": "delaunay", "n": 2}, "expected 3 or more"),
        ("train", {"model": "transformer"}, "unknown model 'transformer'"),
        ("solve", {"model": "ptr-net"}, "--model does nothing with bench solve"),
        ("train", {"precision": "float"}, "unknown precision 'float'; did you mean 'float32'"),
        ("score", {"device": "cpuu"}, "unknown device 'cpuu'; did you mean 'cpu'"),
        ("solve", {"batch_size": 10**9}, "too many elements"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is(measurement, options, complaint):
    with pytest.raises(InputError, match=complaint):
        bench.plan(measurement, options)


def test_a_page_of_the_day_gets_a_section_for_each_run(tmp_path, monkeypatch):
    rows = [Row("score", "a", Spread(1.0, 1.0, 2.0, 3), 10, "scores", paths={"gates": "compiled"})]
    for command in ("ptrnet bench score", "ptrnet bench"):
        saved = page.add_section(tmp_path / "new", command, "a machine", {"score": rows})
    text = saved.read_text()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d\.md", saved.name)
    assert text.count(f"# {saved.stem}, commit ") == 2
    assert text.index("`ptrnet bench score`") < text.index("`ptrnet bench`")
    assert text.count("\na machine\n") == text.count("\ngates: compiled\n") == 2
    saved.unlink()
    saved.mkdir()
    with pytest.raises(OutputError, match=f"{saved}: cannot be written"):
        page.add_section(tmp_path / "new", "ptrnet bench", "a machine", {"score": rows})


def test_code_paths_say_what_is_taken_and_why(monkeypatch):
    def products(dtype, units=256, restricted=False, tiles=False, instruction=""):
        packed.vector_kernel.cache_clear()
        monkeypatch.setattr(packed, "get_host_cpu_features", lambda: instruction)
        monkeypatch.setattr(code_paths, "get_host_cpu_features", lambda: instruction)
        monkeypatch.setattr(packed, "is_restricted", lambda: restricted)
        monkeypatch.setattr(packed.amx, "is_permitted", lambda: tiles)
        return code_paths._products(units, 0, dtype)

    half, single = torch.bfloat16, torch.float32
    assert "AMX tiles" in products(half, tiles=True)
    assert "as the processor has avx512_bf16" in products(half, instruction="+avx512bf16")
    assert "as the processor has avx512f" in products(single, instruction="+avx512f")
    assert "PyTorch's, as the processor has no avx512_bf16" in products(half)
    assert "as the processor has avx2" in products(single, instruction="+avx2,+fma")
    assert "PyTorch's, as the processor has no avx2" in products(single)
    assert "do not fill whole panels" in products(single, 6, instruction="+avx512f")
    assert "another processor" in products(single, restricted=True, instruction="+avx512f")
    packed.vector_kernel.cache_clear()
    for model in models.names():
        sizes = {"n": "6"} if "n" in models.setting_names(model) else {}
        paths = code_paths.code_paths(Recipe.from_table({"task": "hull", "model": model, **sizes}))
        assert ("attention" in paths) != bool({"layers", "recurrent products"} & paths.keys())
        assert "large products" in paths


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_code_paths_are_those_that_a_step_takes(precision, monkeypatch):
    """In float32 the bench once named the compiled layers, which serve there without gradients."""
    taken = []
    for path in ("cpu", "torch_layer"):
        module = import_module(f"ptrnet.kernels.lstm.{path}")
        layer = module.lstm

        def counted(*args, path=path, layer=layer):
            taken.append(path)
            return layer(*args)

        monkeypatch.setattr(module, "lstm", counted)
    model = models.build("ptr-net", 2, 1, hidden_size=8)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        model.log_probs(torch.rand(64, 5, 2), None, torch.zeros(64, 3, dtype=torch.int64))
    recipe = Recipe.from_table(task="hull", precision=precision, hidden_size=8)
    said = "torch_layer" if "layers" in code_paths.code_paths(recipe) else "cpu"
    assert set(taken) == {said}
