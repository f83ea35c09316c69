"""Long tables from training to answers: by the command line, as frames, and resumed."""

import asyncio
import json
import warnings

import numpy as np
import pytest

import ptrnet
from ptrnet.cli import run
from ptrnet.data.tables import Table
from ptrnet.errors import InputError
from ptrnet.training.loop import LossCheck

TINY = {"steps": 2, "hidden_size": 8, "batch_size": 4, "valid_batches": 0, "ensemble": 1}
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]


def rows(count=12):
    """Return offers. The cheapest one was bought; every seventh price is missing."""
    rng = np.random.default_rng(0)
    table = []
    for order in range(count):
        prices = rng.random(3).round(3)
        for k, price in enumerate(prices):
            bought = int(k == prices.argmin())
            price = None if len(table) % 7 == 0 else float(price)
            fields = {"price": price, "colour": "ab"[k % 2], "income": order % 5, "bought": bought}
            table.append({"order": 2**60 + order, **fields})
    return [table[k] for k in rng.permutation(len(table))]


def written(path, table):
    rows = [["" if cell is None else str(cell) for cell in row.values()] for row in table]
    path.write_text("".join(",".join(row) + "\n" for row in [[*table[0]], *rows]))
    return str(path)


def test_a_table_is_trained_on_resumed_measured_and_answered(tmp_path, capsys):
    data, model = written(tmp_path / "t.csv", rows()), str(tmp_path / "m")
    columns = ["--set-id", "order", "--chosen", "bought"]
    assert run(["train", "--data", data, *columns, *OPTIONS, "--output", model]) == 0
    summary = capsys.readouterr().err
    assert "12 examples of 3 to 3 elements" in summary and "choice" in summary
    task = ptrnet.load(model).task
    assert (task.kind, task.context, task.filled) == ("choice", ("income",), ("price",))
    assert run(["train", "--output", model, "--resume"]) == 0
    assert run(["evaluate", "--model", model, data, *columns, "--json"]) == 0
    measured = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert measured["instances"] == 12
    out = str(tmp_path / "out.csv")
    assert run(["solve", "--model", model, data, "--set-id", "order", "--output", out]) == 0
    before, after = ((tmp_path / f).read_text().splitlines() for f in ("t.csv", "out.csv"))
    assert [line.rpartition(",")[0] for line in after] == before
    assert after[0].endswith(",chosen") and sum(line.endswith(",1") for line in after[1:]) == 12
    without = ["--set-id", "order", "--output", str(tmp_path / "no")]
    for options, message in (
        (without, "with --chosen, --rank, --grade or --member"),
        (
            without[2:],
            "needs set_id and the column of its answers, such as --set-id",
        ),
    ):
        assert run(["train", "--data", data, *options]) == 2
        assert message in capsys.readouterr().err and not (tmp_path / "no").exists()
    bad = written(tmp_path / "bad.csv", [{**row, "bought": 1} for row in rows()])
    assert run(["train", "--data", bad, *columns, *OPTIONS, "--output", str(tmp_path / "no")]) == 2
    assert "expected one chosen row" in capsys.readouterr().err and not (tmp_path / "no").exists()


def trips(code=lambda number: number):
    """Return choices of the smallest purpose, a code that some rows lack, as `code` writes it."""
    rng = np.random.default_rng(4)
    table = []
    for trip in range(20):
        purposes = rng.permutation([1, 2, 3, 10])[:3].tolist()
        for k, purpose in enumerate(purposes):
            cell = None if (trip + k) % 7 == 0 else code(purpose)
            fields = {"purpose": cell, "minutes": round(rng.random(), 3), "rank": k % 2}
            table.append({"trip": f"t{trip}", **fields, "taken": int(purpose == min(purposes))})
    return table


TAKEN = {"set_id": "trip", "chosen": "taken"}
DECLARED = {**TAKEN, "categories": ["purpose"]}


def same_weights(solver, other):
    state = other.model.state_dict()
    return all(state[name].equal(value) for name, value in solver.model.state_dict().items())


def test_declared_codes_are_learned_as_texts_are_from_every_form_of_a_table(tmp_path):
    """The oracle is the same table with codes that begin with a letter: A1, A10, A2, A3."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    lettered = ptrnet.fit(trips("A{}".format), **TAKEN, **TINY)
    assert lettered.task.categories[0] == ("", "A1", "A10", "A2", "A3")
    frame = pandas.DataFrame(trips())  # floats, because of the gaps
    frame.to_csv(tmp_path / "floats.csv", index=False)
    frame.to_parquet(tmp_path / "floats.parquet")
    forms = [trips(), frame, frame.astype({"purpose": "Int64"}), polars.DataFrame(trips())]
    forms += [written(tmp_path / "t.csv", trips()), tmp_path / "floats.csv"]
    forms += [tmp_path / "floats.parquet"]
    for form in forms:
        solver = ptrnet.fit(form, **DECLARED, **TINY)
        assert solver.task.categories == (("", "1", "10", "2", "3"), (), ())
        assert same_weights(solver, lettered)
    lines = tmp_path / "t.jsonl"
    columns = ["--set-id", "trip", "--chosen", "taken"]
    assert run(["convert", str(tmp_path / "t.csv"), str(lines), *columns]) == 0
    options = {"kind": "choice", "categories": "purpose", **TINY}
    assert same_weights(ptrnet.fit(lines, **options), lettered)


def test_saved_resumed_exported_and_served_models_read_codes_alike(tmp_path, monkeypatch):
    """1, 1.0 and "1" are one category; 7 is one that training did not have."""
    example = pytest.importorskip("ptrnet.export.example")
    conftest = pytest.importorskip("tests.serve.conftest")
    lettered = ptrnet.fit(trips("A{}".format), **TAKEN, **TINY)
    data, folder = written(tmp_path / "t.csv", trips()), tmp_path / "m"
    check = LossCheck.__call__

    def stop(*arguments):
        check(*arguments)
        raise KeyboardInterrupt

    command = ["train", "--data", data, "--set-id", "trip", "--chosen", "taken"]
    with monkeypatch.context() as patch:
        patch.setattr(LossCheck, "__call__", stop)
        declared = [*command, "--categories", "purpose", *OPTIONS, "--checkpoint-every", "1"]
        assert run([*declared, "--output", str(folder)]) == 130
    assert run(["train", "--output", str(folder), "--resume"]) == 0
    solver = ptrnet.load(folder)
    assert same_weights(solver, lettered)
    solver.save_pretrained(tmp_path / "copy")
    ptrnet.export_onnx(solver, tmp_path / "onnx", instances=3)
    cells = [1, 1.0, "1", "1.0", 10, 10.0, None, 7]
    texts = ["A1", "A1", "A1", "A1", "A10", "A10", None, "A7"]
    minutes = np.linspace(0, 1, len(cells)).tolist()
    elements, expected_elements = (
        [{"purpose": c, "minutes": m, "rank": 0} for c, m in zip(column, minutes, strict=True)]
        for column in (cells, texts)
    )
    with pytest.warns(ptrnet.OutOfDistributionWarning, match="\"purpose\": 'A7'"):
        expected = lettered.scores(expected_elements)
    for read in (solver, ptrnet.load(tmp_path / "copy")):
        with pytest.warns(ptrnet.OutOfDistributionWarning, match="\"purpose\": '7'"):
            assert read.scores(elements).tolist() == expected.tolist()

    async def served():
        async with conftest.client_of({"m": solver}) as client:
            response = await client.post("/v1/models/m/solve", json={"instance": elements})
            return response.json()["answers"][0]["scores"]

    assert asyncio.run(served()) == pytest.approx(expected.tolist(), rel=1e-4)
    table = written(tmp_path / "e.csv", elements)
    manifest = json.loads((tmp_path / "onnx" / "manifest.json").read_text())
    read = example.read(table, manifest["inputs"]["fields"])
    assert read.tolist() == lettered.task.facts.schema.encode(expected_elements, "").tolist()
    assert read.tolist() == Table.of(elements).encode(solver.task.facts.schema).tolist()
    scores = example.solve_and_score(read, tmp_path / "onnx")[1]
    assert scores.tolist() == pytest.approx(expected.tolist(), rel=1e-4)


def test_one_line_names_the_fields_whose_whole_numbers_may_be_codes(tmp_path, capsys):
    table = [
        {**row, **{f"code{k}": k + number % 4 for k in range(6)}, "flag": number % 2, "half": 0.5}
        for number, row in enumerate(trips())
    ]
    data = written(tmp_path / "t.csv", table)
    line = (
        "read as numbers: 7 fields of few whole numbers: purpose (1 to 10), code0 (0 to 3), "
        "code1 (1 to 4), code2 (2 to 5), code3 (3 to 6), and 2 more; if they are codes, list them "
        "in the option `categories`"
    )
    for given in (table, data):
        ptrnet.fit(given, **TAKEN, **TINY)
        assert capsys.readouterr().err.splitlines().count(line) == 1
    codes = ["purpose", *(f"code{k}" for k in range(5))]
    solver = ptrnet.fit(table, **TAKEN, **TINY, categories=codes)
    assert (
        "read as numbers: 1 field of few whole numbers: code5 (5 to 8);" in capsys.readouterr().err
    )
    assert [*map(len, solver.task.categories)] == [5, 0, 0, *[4] * 5, 0, 0, 0]
    ptrnet.fit(table, **TAKEN, **TINY, categories=[*codes, "code5"])
    assert "read as numbers" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("categories", "complaint"),
    [
        ("purpos", 'categories: expected fields that the model reads, got "purpos"; it reads'),
        ("trip", 'categories: expected fields that the model reads, got "trip"'),
        ("minutes,,rank", "categories: expected names of fields"),
    ],
)
def test_refuses_categories_that_are_not_fields(tmp_path, capsys, categories, complaint):
    data = written(tmp_path / "t.csv", trips())
    command = ["train", "--data", data, "--set-id", "trip", "--chosen", "taken", *OPTIONS]
    assert run([*command, "--categories", categories, "--output", str(tmp_path / "m")]) == 2
    assert complaint in capsys.readouterr().err and not (tmp_path / "m").exists()
    with pytest.raises(InputError, match="fit: categories needs elements with named"):
        ptrnet.fit([([[1.0], [2.0]], [0])], "choice", categories=["x"], **TINY)


@pytest.mark.parametrize("extension", ["tsv", "txt", "dat"])
def test_every_command_reads_tables_of_tabs_as_it_reads_csv(tmp_path, capsys, extension):
    """The oracle is the same table as .csv."""
    plain = written(tmp_path / "t.csv", rows())
    data = str(tmp_path / f"t.{extension}")
    (tmp_path / f"t.{extension}").write_text((tmp_path / "t.csv").read_text().replace(",", "\t"))
    columns = ["--set-id", "order", "--chosen", "bought"]

    def answered(path, extension):
        model, out = str(tmp_path / f"m-{extension}"), tmp_path / f"out.{extension}"
        commands = [
            ["train", "--data", path, *columns, *OPTIONS, "--output", model],
            ["evaluate", "--model", model, path, *columns, "--json"],
            ["explain", model, path, *columns, "--repeats", "1", "--json"],
            ["solve", "--model", model, path, *columns[:2], "--probability", "p"],
        ]
        commands[-1] += ["--output", str(out)]
        assert [run(command) for command in commands] == [0] * 4
        return capsys.readouterr().out.replace(model, "model"), out.read_text()

    expected, table = answered(plain, "csv")
    assert answered(data, extension) == (expected, table.replace(",", "\t"))
    weights = ptrnet.fit(data, set_id="order", chosen="bought", **TINY).model.state_dict()
    assert all(
        weights[k].equal(v) for k, v in ptrnet.load(tmp_path / "m-csv").model.state_dict().items()
    )
    if extension == "txt":  # the authors' format
        assert run(["train", "--data", data, *OPTIONS, "--output", str(tmp_path / "no")]) == 2
        assert "a table with a row for each element needs set_id" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after"), [("\n1,5,3", "\n1,5,9"), ("\n2,", "\n1,")], ids=["grade", "set"]
)
def test_resuming_notices_other_grades_and_other_sets(tmp_path, capsys, before, after):
    lines = [f"{k // 3},{k},{k % 4}" for k in range(24)]
    data, model = tmp_path / "t.csv", str(tmp_path / "m")
    data.write_text("\n".join(["query,x,grade", *lines, ""]))
    columns = ["--set-id", "query", "--grade", "grade"]
    assert run(["train", "--data", str(data), *columns, *OPTIONS, "--output", model]) == 0
    text = data.read_text()
    data.write_text(text.replace(before, after) if before in text else f"{before} is not there")
    capsys.readouterr()
    assert run(["train", "--output", model, "--resume"]) == 2
    assert "t.csv" in capsys.readouterr().err


def test_frames_files_and_rows_train_the_same_weights(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = rows()
    frame = pandas.DataFrame(table)
    columns = {"set_id": "order", "chosen": "bought"}
    given = (table, frame, written(tmp_path / "t.csv", table))
    first, *others = (ptrnet.fit(values, **columns, **TINY) for values in given)
    for other in others:
        assert other.task == first.task
        for a, b in zip(*(m.model.state_dict().values() for m in (first, other)), strict=True):
            assert a.equal(b)
    answers = [a.tolist() for a in first.solve(frame, set_id="order")]
    shuffled = frame[[*reversed(frame.columns)]].assign(note="x")
    assert [a.tolist() for a in first.solve(shuffled, set_id="order")] == answers
    assert first.evaluate(frame, **columns)["accuracy"]["count"] == 12


def test_a_run_of_fit_keeps_its_examples_and_is_resumed_from_them(tmp_path, capsys):
    model = str(tmp_path / "m")
    ptrnet.fit(rows(), set_id="order", chosen="bought", output=model, **TINY)
    assert run(["train", "--output", model, "--resume"]) == 0
    array = next((tmp_path / "m" / "examples").glob("inputs.npy"))
    array.write_bytes(array.read_bytes()[:-8])
    capsys.readouterr()
    assert run(["train", "--output", model, "--resume"]) == 2
    assert "examples: damaged" in capsys.readouterr().err


def test_a_column_of_weights_is_learned_with_saved_and_resumed(tmp_path, capsys):
    """Frames, lists of examples and files of one table train the same weights."""
    pandas = pytest.importorskip("pandas")
    table = [{**row, "count": row["order"] % 3} for row in rows()]
    names = {"set_id": "order", "chosen": "bought", "weight": "count"}
    given = [
        ptrnet.fit(pandas.DataFrame(table), **names, **TINY),
        ptrnet.fit(table, **names, output=str(tmp_path / "saved"), **TINY),
    ]
    examples = ptrnet.read_table(table, **names)
    assert [e.weight for e in examples] == [e.extra["order"] % 3 for e in examples]
    fields = ["price", "colour", "income"]
    given.append(ptrnet.fit(examples, "choice", fields=fields, context=["income"], **TINY))
    data, model = written(tmp_path / "t.csv", table), str(tmp_path / "m")
    options = ["--set-id", "order", "--chosen", "bought", "--weight", "count", *OPTIONS]
    assert run(["train", "--data", data, *options, "--output", model]) == 0
    first, *others = [*given, ptrnet.load(model)]
    assert first.task.fields == ("price", "colour", "income")
    expected = first.model.state_dict()
    for other in others:
        state = other.model.state_dict()
        assert all(state[name].equal(expected[name]) for name in expected)
    unweighted = ptrnet.fit([{**row, "count": 1} for row in table], **names, **TINY)
    state = unweighted.model.state_dict()
    assert not all(state[name].equal(expected[name]) for name in expected)
    for folder in (model, str(tmp_path / "saved")):
        assert run(["train", "--output", folder, "--resume"]) == 0
    written(tmp_path / "t.csv", [{**row, "count": 1} for row in table])
    assert run(["train", "--output", model, "--resume"]) == 2
    assert "t.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("counts", "complaint"),
    [
        ([1, 2, 1, 1], 'row 1: "w": expected the weight of q 1, the same number in all of its ro'),
        ([1, None, 1, 1], 'row 1: "w": expected the weight of q 1, .* got None'),
        ([1, 1, "a", "a"], 'row 2: "w": expected a number, got .a.'),
        ([-1, -1, 1, 1], '^q 1: "w": expected 0, or a number from'),
        ([0, 0, 0, 0], '^"w": expected a number above 0, got only zeros'),
    ],
)
def test_refuses_columns_that_are_not_weights(counts, complaint):
    table = [{"q": 1 + k // 2, "x": k, "c": k % 2, "w": w} for k, w in enumerate(counts)]
    with pytest.raises(InputError, match=complaint):
        ptrnet.fit(table, set_id="q", chosen="c", weight="w", **TINY)


def test_context_of_a_line_is_read_as_fields_of_its_elements_and_written_back(tmp_path, capsys):
    elements = [{"price": 1.0}, {"price": 2.5}]
    lines = [
        {"inputs": elements, "outputs": [k % 2], "context": {"income": k % 3}} for k in range(8)
    ]
    path, model = tmp_path / "c.jsonl", str(tmp_path / "m")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["train", "--data", str(path), *OPTIONS, "--output", model]) == 0
    solver = ptrnet.load(model)
    assert solver.task.fields == ("price", "income") and solver.task.context == ("income",)
    capsys.readouterr()
    assert run(["solve", "--model", model, str(path)]) == 0
    answered = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [{**line, "outputs": None} for line in answered] == [
        {**line, "outputs": None} for line in lines
    ]
    merged = [[{**e, "income": k % 3} for e in elements] for k in range(8)]
    assert [line["outputs"] for line in answered] == [a.tolist() for a in solver.solve(merged)]
    path.write_text(json.dumps({**lines[0], "context": {"price": 1}}) + "\n")
    assert run(["solve", "--model", model, str(path)]) == 2
    assert 'c.jsonl:1: element 1: "price" is in "context", too' in capsys.readouterr().err


def test_unseen_values_of_a_validation_file_are_warned_of_once(tmp_path, capsys):
    data = written(tmp_path / "t.csv", rows())
    table = [{**row, "colour": "zzz" if row["income"] else row["colour"]} for row in rows()]
    valid, model = written(tmp_path / "v.csv", table), str(tmp_path / "m")
    columns = ["--set-id", "order", "--chosen", "bought"]
    options = [option for option in OPTIONS if "valid-batches" not in option]
    assert (
        run(["train", "--data", data, "--valid", valid, *columns, *options, "--output", model]) == 0
    )
    said = [line for line in capsys.readouterr().err.splitlines() if "treated as missing" in line]
    count = sum(row["colour"] == "zzz" for row in table)
    assert len(said) == 1 and said[0].endswith(f": \"colour\": 'zzz' ({count} elements)")
    assert run(["train", "--output", model, "--resume"]) == 0
    changed = written(tmp_path / "t.csv", table)  # data to learn from must have known values
    recipe = tmp_path / "m" / "recipe.toml"
    assert run(["train", str(recipe), "--data", changed, "--output", str(tmp_path / "n")]) == 2
    assert "expected one of 'a', 'b', got 'zzz'" in capsys.readouterr().err


@pytest.mark.parametrize("extension", ["csv", "jsonl"])
def test_a_frame_is_validated_on_a_file_with_the_same_columns(tmp_path, extension):
    """Once, `fit` lost the names of the columns for the validation file."""
    pandas = pytest.importorskip("pandas")
    columns, options = {"set_id": "order", "chosen": "bought"}, {**TINY, "valid_batches": 1}
    data = written(tmp_path / "t.csv", rows())
    valid, _ = examples_file(tmp_path, "jsonl") if extension == "jsonl" else (data, columns)
    frame = pandas.DataFrame(rows())
    for k, given in enumerate((frame, data)):
        output = tmp_path / f"m{k}"
        ptrnet.fit(given, **columns, **options, valid=str(valid), output=output)
        assert "Measured on 12 examples" in (output / "README.md").read_text()
    recipes = [(tmp_path / f"m{k}/recipe.toml").read_text().splitlines() for k in range(2)]
    other = [pair for pair in zip(*recipes, strict=True) if len({*pair}) > 1]
    assert [line.split(" = ")[0] for line, _ in other] == ["data"]


def test_fit_asks_for_the_column_of_the_sets(tmp_path):
    """Once, it advised `ptrnet convert`."""
    pandas, path = pytest.importorskip("pandas"), tmp_path / "t.parquet"
    pandas.DataFrame(rows()).to_parquet(path)
    for given in (written(tmp_path / "t.csv", rows()), path):
        with pytest.raises(InputError, match=r"needs set_id .*--set-id"):
            ptrnet.fit(given, **TINY)


def examples_file(folder, extension):
    """Write examples to a file. Return its path and the names of its columns."""
    path, columns = folder / f"t.{extension}", {"set_id": "order", "chosen": "bought"}
    if extension == "svmlight":
        grades = np.random.default_rng(0).integers(2, size=30)
        lines = [f"{g} qid:{k // 3} 1:{k % 7}.5 2:{k % 5}\n" for k, g in enumerate(grades)]
        path.write_text("".join(lines))
        return path, {}
    if extension == "parquet":
        pytest.importorskip("pandas").DataFrame(rows()).to_parquet(path)
        return path, columns
    table = written(folder / "t.csv", rows())
    if extension == "csv":
        return path, columns
    assert run(["convert", table, str(path), "--set-id=order", "--chosen=bought"]) == 0
    return path, {}


@pytest.mark.parametrize("extension", ["csv", "parquet", "jsonl", "svmlight"])
def test_fit_takes_the_path_of_a_file_with_the_words_of_the_command(tmp_path, capsys, extension):
    """Once, `fit("t.jsonl")` expected a list or an array."""
    path, columns = examples_file(tmp_path, extension)
    options = [f"--{key.replace('_', '-')}={value}" for key, value in columns.items()]
    capsys.readouterr()
    train = ["train", "--data", str(path), *options, *OPTIONS]
    assert run([*train, "--output", str(tmp_path / "a")]) == 0
    expected = capsys.readouterr().err.splitlines()[:2]
    given = path if extension == "csv" else str(path)
    solvers = [ptrnet.fit(given, **columns, **TINY)]
    assert capsys.readouterr().err.splitlines()[:2] == expected
    solvers.append(ptrnet.fit(given, **columns, **TINY, output=tmp_path / "b"))
    assert (tmp_path / "a/recipe.toml").read_text() == (tmp_path / "b/recipe.toml").read_text()
    weights = ptrnet.load(tmp_path / "a").model.state_dict()
    for solver in (*solvers, ptrnet.load(tmp_path / "b")):
        for key, tensor in solver.model.state_dict().items():
            assert tensor.equal(weights[key])


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("t.jsonl", '{"inputs": [[1], [2]], "outputs": [0]}\n{"inputs": [[1], [2]]}\n', {}),
        ("t.jsonl", '{"inputs": [[1], [2]], "outputs": [0]}\n{"inputs": [[1], 2]}\n', {}),
        ("t.csv", "o,x,b\n1,2,0\n1,3,0\n", {"set_id": "o", "chosen": "b"}),
        ("t.csv", "o,x,b\n1,2,0\n1,3\n", {"set_id": "o", "chosen": "b"}),
        ("t.csv", "o,x,b\n1,2,0\n", {"set_id": "p", "chosen": "b"}),
        ("t.csv", "o,x,b\n1,2,0\n", {}),
        ("no.jsonl", None, {}),
        ("t.doc", "x", {}),
    ],
)
def test_errors_in_a_file_have_the_words_of_the_command(tmp_path, capsys, name, text, options):
    if text is not None:
        (tmp_path / name).write_text(text)
    path, output = str(tmp_path / name), tmp_path / "m"
    with pytest.raises(ptrnet.InputError) as error:
        ptrnet.fit(path, **options, **TINY, output=output)
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
    capsys.readouterr()
    assert run(["train", "--data", path, *flags, *OPTIONS, "--output", str(output)]) == 2
    assert capsys.readouterr().err == f"ptrnet: {error.value}\n"
    assert not output.exists()
    with pytest.raises(ptrnet.InputError, match=r"expected no outputs, because .* has the answers"):
        ptrnet.fit(path, [[0]])


def test_an_ensemble_warns_in_one_line_of_the_examples_that_its_networks_hold_out():
    """Once, each network had a line of its own. Each field has six values far from the others."""
    rng, table = np.random.default_rng(0), []
    for k in range(400):
        for j in range(2):
            fields = {f"x{f}": 1e3 * (j == 0 and k % 66 == f) + rng.random() for f in range(5)}
            table.append({"s": k, "y": j, **fields})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ptrnet.fit(table, set_id="s", chosen="y", steps=1, ensemble=3)
    lines = [str(w.message) for w in caught if w.category is ptrnet.OutOfDistributionWarning]
    assert len(lines) == 1 and "of 240 instances" in lines[0]
