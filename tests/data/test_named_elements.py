"""Models read named fields of dictionaries, frames, .csv and .jsonl by their names."""

import io
import json
import warnings
from contextlib import nullcontext

import numpy as np
import pytest

import ptrnet
from ptrnet import InputError
from ptrnet.cli import run
from ptrnet.solver.trained_range import TrainedRange
from ptrnet.types import Example

SMALL = {"steps": 2, "hidden_size": 8, "valid_batches": 0, "ensemble": 1}


def write_text(tmp_path, text, name):
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def test_learns_and_saves_named_fields(tmp_path, capsys):
    """The answer has the red offers first, each colour in the order of its prices."""
    rng = np.random.default_rng(0)

    def draw(count):
        for _ in range(count):
            offers = [
                {
                    "price": rng.random(),
                    "colour": ["red", "blue"][k % 2],
                    "title": str(rng.random()),
                }
                for k in rng.permutation(4)
            ]
            keys = [(offer["colour"] == "blue", offer["price"]) for offer in offers]
            yield offers, sorted(range(4), key=keys.__getitem__)

    offers, places = zip(*draw(400), strict=True)
    solver = ptrnet.fit(
        offers, places, fields=["price", "colour"], steps=100, hidden_size=16, seed=1,
        learning_rate=1e-2, ensemble=1, dropout=0.0,
    )  # fmt: skip
    unseen = list(draw(200))
    assert solver.evaluate(unseen)["accuracy"]["value"] > 0.9
    solver.save_pretrained(tmp_path / "m")
    again = ptrnet.load(tmp_path / "m")
    assert again.task == solver.task and again.task.categories == ((), ("blue", "red"))
    assert list(again.task.center[1:]) == [0, 0] and list(again.task.spread[1:]) == [1, 1]
    answer = again.answer(unseen[0][0])
    assert answer.elements == [unseen[0][0][k] for k in answer.outputs]
    frame = pytest.importorskip("pandas").DataFrame(unseen[0][0])
    assert again.solve(frame).tolist() == answer.outputs.tolist()
    assert len(again.solve([unseen[0][0], unseen[1][0]])) == 2
    for numbers in ([[0.5, 1.0], [0.5, 0.0]], np.ones((2, 3))):  # without names of fields
        with pytest.raises(InputError, match="expected elements with the fields price, colour"):
            again.solve(numbers)
    with pytest.raises(InputError, match="elements with fields cannot be drawn at random"):
        again.task.sample(rng, 1, 3)

    line = {"inputs": unseen[0][0], "outputs": unseen[0][1], "id": 7}
    (tmp_path / "new.jsonl").write_text(json.dumps(line) + "\n")
    assert run(["solve", "--model", str(tmp_path / "m"), str(tmp_path / "new.jsonl")]) == 0
    solved = json.loads(capsys.readouterr().out)
    assert solved == {**line, "outputs": answer.outputs.tolist()}
    titles = [offer["title"] for offer in answer.elements]
    header = "title,colour,price\n"
    rows = [f"{o['title']},{o['colour']},{o['price']}\n" for o in unseen[0][0]]
    table = write_text(tmp_path, header + "".join(rows), "one.csv")
    assert run(["solve", "--model", str(tmp_path / "m"), table]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == header.strip() and [r.split(",")[0] for r in printed[1:]] == titles
    out = str(tmp_path / "o.parquet")
    arguments = ["--model", str(tmp_path / "m"), str(tmp_path / "new.jsonl"), "--output", out]
    assert run(["solve", *arguments]) == 2
    assert (
        "would lose the names of the elements' fields; write to .jsonl" in capsys.readouterr().err
    )


def test_train_reads_the_given_fields_and_prints_them(tmp_path, capsys):
    lines = [
        {
            "inputs": [{"x": k, "y": -k, "z": "a"}, {"x": 1 - k, "y": k, "z": "b"}],
            "outputs": [k % 2],
        }
        for k in range(20)
    ]
    data = write_text(tmp_path, "".join(json.dumps(line) + "\n" for line in lines), "d.jsonl")
    options = ["--steps", "2", "--hidden-size", "8", "--batch-size", "4", "--valid-batches", "0"]
    options += ["--ensemble", "1"]
    for fields, read in (("x,z", "3 features: x (a number), z (a, b)"), ("y,x", "2 features: y")):
        out = str(tmp_path / fields.replace(",", ""))
        assert run(["train", "--data", data, "--fields", fields, *options, "--output", out]) == 0
        assert read in capsys.readouterr().err
        assert ptrnet.load(out).task.fields == tuple(fields.split(","))
        assert run(["train", "--output", out, "--resume"]) == 0
    assert run(["train", "--data", data, "--fields", "w", *options]) == 2
    assert 'd.jsonl:1: "inputs": element 1: expected the field "w"' in capsys.readouterr().err
    numbers = write_text(tmp_path, '{"inputs": [[1, 2]], "outputs": [0]}\n', "n.jsonl")
    assert run(["train", "--data", numbers, "--fields", "x", *options]) == 2
    assert "fields needs elements with named fields" in capsys.readouterr().err
    assert run(["train", "--data", data, "--unknown", "keep", *options]) == 2
    assert "unknown 'keep' (known: missing, refuse)" in capsys.readouterr().err


def model_of_prices():
    """Return a model that sorts elements by price and has to ignore their weight."""
    rng = np.random.default_rng(3)
    offers = [[{"price": p, "weight": w} for p, w in rng.random((4, 2))] for _ in range(300)]
    places = [sorted(range(4), key=lambda k, o=o: o[k]["price"]) for o in offers]
    solver = ptrnet.fit(
        offers, places, model="transformer-ptr-net", encoder_layers=1, decoder_layers=1, steps=120,
        hidden_size=32, seed=1, learning_rate=1e-2, feed_forward=32, ensemble=1,
    )  # fmt: skip
    return solver, offers[:20], places[:20]


def test_numeric_columns_of_frames_are_found_by_name():
    """The order of the columns does not matter. A missing column is refused by its name."""
    solver, offers, places = model_of_prices()
    assert solver.task.fields == ("price", "weight")
    for library in (pytest.importorskip("pandas"), pytest.importorskip("polars")):
        frames = [library.DataFrame(offer) for offer in offers]
        swapped = [frame[["weight", "price"]] for frame in frames]
        expected = [answer.tolist() for answer in solver.solve(offers)]
        assert np.mean([a == b for a, b in zip(expected, places, strict=True)]) > 0.8
        for given in (frames, swapped):
            assert [answer.tolist() for answer in solver.solve(given)] == expected
        assert [solver.solve(frame).tolist() for frame in swapped] == expected
        answer = solver.answer(swapped[0])
        assert answer.elements == [{**offers[0][k]} for k in expected[0]]
        (_, one), (_, other) = (solver.attention(given) for given in (offers[0], swapped[0]))
        assert np.array_equal(one, other)
        pairs = list(zip(swapped, places, strict=True))
        assert (
            solver.evaluate(pairs)["accuracy"]
            == solver.evaluate(list(zip(offers, places, strict=True)))["accuracy"]
        )
        with pytest.raises(InputError, match='expected the field "price"'):
            solver.solve(library.DataFrame({"a": [1.0, 2.0], "weight": [1.0, 2.0]}))
    with pytest.raises(InputError, match="expected elements with the fields price, weight"):
        solver.solve(np.ones((3, 2)))


def test_fit_reads_the_columns_of_frames_by_name():
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame({"x": [1.0, 2.0], "y": [k, 3.0]}) for k in range(8)]
    outputs = [[0, 1]] * 8
    assert ptrnet.fit(frames, outputs, **SMALL).task.fields == ("x", "y")
    assert ptrnet.fit(frames, outputs, fields=["y"], **SMALL).task.fields == ("y",)
    numbered = [frame.set_axis([0, 1], axis=1) for frame in frames]
    assert ptrnet.fit(numbered, outputs, **SMALL).task.fields == ()
    with pytest.raises(InputError, match="fields: expected names of fields, got 5"):
        ptrnet.fit(frames, outputs, fields=5, **SMALL)
    with pytest.raises(InputError, match="with a cost, elements are numbers"):
        rows = [frame.to_dict("records") for frame in frames]
        ptrnet.fit(rows, cost=lambda x, y: 0.0, constraint="permutation", **SMALL)


def test_fit_reads_scalars_of_numpy_and_ignores_other_fields():
    """A field that the model does not read may hold any object."""
    kinds = [np.int64, np.float32, np.bool_]
    offers = [
        [{"x": kind(k % 2), "c": "a", "title": object()} for k in range(3)] for kind in kinds * 3
    ]
    solver = ptrnet.fit(offers, [[0, 1, 2]] * 9, fields=["x", "c"], **SMALL)
    assert solver.answer(offers[0]).elements[0] in offers[0]


def test_shipped_models_read_the_numeric_fields_of_elements(tmp_path, capsys):
    """As in a .csv, texts are not read, but are written again with the answer."""
    points = np.random.default_rng(5).random((9, 2))
    rows = [{"id": 1, "name": f"p{k}", "x": x, "y": y} for k, (x, y) in enumerate(points)]
    (example,) = ptrnet.read_table(rows, set_id="id")
    solver = ptrnet.load("hull")
    expected = solver.solve(points).tolist()
    assert solver.solve(example).tolist() == expected
    assert solver.solve([example])[0].tolist() == expected
    assert solver.solve(example.inputs).tolist() == expected
    assert [e["name"] for e in solver.answer(example).elements] == [f"p{k}" for k in expected]
    assert len(solver.attention(example)[1]) == len(expected) + 1
    with pytest.raises(InputError, match="of 2 numbers each, got 1 fields that are numbers: x"):
        solver.solve([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    lines = write_text(tmp_path, json.dumps({"inputs": example.inputs}) + "\n", "t.jsonl")
    assert run(["solve", "hull", lines, "--output", str(tmp_path / "o.csv")]) == 0
    solved = (tmp_path / "o.csv").read_text().splitlines()
    assert solved[0] == "name,x,y" and [row.split(",")[0][1:] for row in solved[1:]] == [
        *map(str, expected)
    ]


def test_numbers_match_categories_that_were_texts(tmp_path):
    """If a later table has the sizes 10 and 12.5 but not XL, its column is numeric."""
    offers = [[{"size": size} for size in ("10", "12.5", "XL", "2.0")]] * 4
    options = {**SMALL, "unknown": "refuse"}
    schema = ptrnet.fit(offers, [[0, 1, 2, 3]] * 4, **options).task.facts.schema
    expected = schema.encode([{"size": size} for size in ("10", "10", "12.5", "2.0")], "")
    for sizes in ([10, 10.0, 12.5, 2.0], np.array([10, 10, 12.5, 2])):
        again = schema.encode([{"size": size} for size in sizes], "")
        assert again.tolist() == expected.tolist()
    for size, name in (
        (12, "'12'"),
        (12.25, "'12.25'"),
        (10**400, "'1000"),
        (float("nan"), "''"),
        (True, "True"),
    ):
        with pytest.raises(InputError, match=f"got {name}"):
            schema.encode([{"size": size}], "")


def test_refuses_quoted_numbers_next_to_a_missing_value():
    offers = [[{"price": text} for text in ("7.1", "3", hole)] for hole in ("2", "N/A")]
    with pytest.raises(InputError, match=r"expected numbers or texts.*'N/A'"):
        ptrnet.fit(offers, [[0, 1, 2]] * 2, steps=1, hidden_size=8)


def test_fields_next_to_the_coordinates_are_ignored_unless_ambiguous(tmp_path):
    """Ids that are texts and mixed fields are ignored. Numeric fields with gaps are refused."""
    solver = ptrnet.load("hull")
    points = [
        {"id": str(k), "x": k % 3 / 2, "y": k / 5, "note": ["a", "7"][k % 2]} for k in range(5)
    ]
    expected = solver.solve(np.array([[e["x"], e["y"]] for e in points])).tolist()
    assert solver.solve(points).tolist() == expected
    for field, value in (("pop", None), ("y", "0.1"), ("y", "NA")):
        gappy = [{"n": 1, **e} for e in points]
        gappy = [{**e, field: value} if k == 1 else {**e, field: k} for k, e in enumerate(gappy)]
        with pytest.raises(InputError, match=r"expected (a number|elements of 2 numbers)"):
            solver.solve(gappy)
    missing = [{"id": 1, "x": 0.1}, {"id": 2, "x": 0.5, "y": 0.9}, {"id": 3, "x": 0.7, "y": 0.1}]
    with pytest.raises(
        InputError, match='element 1: "y": expected a number in all cells or in none, got None'
    ):
        solver.solve(missing)


def test_refuses_elements_without_fields():
    examples = ptrnet.read_table([{"a": 1, "r": k} for k in (2, 1)], set_id="a", rank="r")
    with pytest.raises(InputError, match="element 1: expected a field to learn from"):
        ptrnet.fit(examples, steps=1, hidden_size=8)


def test_errors_and_warnings_name_the_field(recwarn):
    offers = [[{"c": "ab"[k % 2], "p": k} for k in range(3)]] * 4
    solver = ptrnet.fit(offers, [[0, 1, 2]] * 4, **SMALL)
    strict = ptrnet.fit(offers, [[0, 1, 2]] * 4, unknown="refuse", **SMALL)
    with pytest.raises(InputError, match='element 2: "p": expected a number, got nan'):
        strict.solve([{"c": "a", "p": 1}, {"c": "a", "p": float("nan")}])
    with pytest.raises(InputError, match="element 1: \"c\": expected one of 'a', 'b', got 'zzz'"):
        strict.solve([{"c": "zzz", "p": 1}])
    solver.solve([{"c": "zzz", "p": 1e6}, {"c": "zzz", "p": None}])
    messages = [str(w.message) for w in recwarn]
    assert any('mean of the training: "p" by ' in message for message in messages)
    unseen = "treated as missing, because no training example had it: "
    assert f'{unseen}"c": \'zzz\' (2 elements); "p": no value (1 element)' in messages


def test_solve_reads_named_elements_from_standard_input(tmp_path, monkeypatch, capsys):
    offers = [[{"x": k, "y": -k} for k in range(3)]] * 4
    solver = ptrnet.fit(offers, [[0, 1, 2]] * 4, **SMALL)
    solver.save_pretrained(tmp_path / "m")
    line = json.dumps({"inputs": offers[0], "id": 7})
    content = io.BufferedReader(io.BytesIO(f"{line}\n{line}\n".encode()))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content))
    assert run(["solve", "--model", str(tmp_path / "m"), "-"]) == 0
    answer = {"inputs": offers[0], "outputs": solver.solve(offers[0]).tolist(), "id": 7}
    assert [json.loads(text) for text in capsys.readouterr().out.splitlines()] == [answer] * 2


def test_a_second_model_encodes_the_elements_of_an_answer_again():
    """The features that another model made of the elements must not be read as coordinates."""
    offers = [[{"x": k, "y": k % 2, "c": "abc"[k]} for k in range(3)]] * 4
    one = ptrnet.fit(offers, [[0, 1, 2]] * 4, fields=["c"], **SMALL)
    other = ptrnet.fit(offers, [[0, 1, 2]] * 4, fields=["y", "c", "x"], **SMALL)
    (answered,) = one.predict(
        [Example(offers[0], None, "x").replace(inputs=np.eye(3), elements=offers[0])]
    )
    for solver in (other, ptrnet.load("hull")):
        expected = solver.solve(offers[0])
        assert np.array_equal(solver.solve(answered), expected)


def test_refuses_weights_of_a_model_with_other_categories_or_fields(tmp_path):
    def offers(colours):
        return [[{"price": k, "colour": c} for k, c in enumerate(colours)]] * 4

    ptrnet.fit(offers("ab"), [[0, 1]] * 4, output=tmp_path / "ab", **SMALL)
    options = {**SMALL, "weights": str(tmp_path / "ab")}
    ptrnet.fit(offers("ba"), [[0, 1]] * 4, **options)
    with pytest.raises(InputError, match=r"weights: .* has categories"):
        ptrnet.fit(offers("ac"), [[0, 1]] * 4, **options)
    with pytest.raises(InputError, match=r"weights: .* has fields"):
        ptrnet.fit(offers("ab"), [[0, 1]] * 4, fields=["colour", "price"], **options)


def test_solve_reads_a_table_of_one_instance(tmp_path, capsys):
    """Elements keep the names of their fields in .jsonl."""
    offers = [[{"x": k, "y": -k} for k in range(3)]] * 4
    solver = ptrnet.fit(offers, [[0, 1, 2]] * 4, **SMALL)
    solver.save_pretrained(tmp_path / "m")
    table = write_text(tmp_path, "title,y,x\na,0,1\nb,2,0\nc,5,5\n", "one.csv")
    command = ["solve", "--model", str(tmp_path / "m"), table]
    out, picture = tmp_path / "o.jsonl", tmp_path / "o.svg"
    assert run([*command, "--output", str(out), "--plot", str(picture)]) == 0
    assert json.loads(out.read_text())["inputs"][1] == {"title": "b", "y": 2, "x": 0}
    assert picture.exists()
    for extension in ("txt", "parquet"):
        assert run([*command, "--output", str(tmp_path / f"o.{extension}")]) == 2
        assert "would lose the names" in capsys.readouterr().err
    assert run([*command[:-1], write_text(tmp_path, "x,y,x\n1,2,3\n", "two.csv")]) == 2
    assert "duplicate column name 'x'" in capsys.readouterr().err
    assert run(["solve", "--model", str(tmp_path / "m"), "--random", "3"]) == 2
    assert "cannot be drawn at random" in capsys.readouterr().err


ROWS = [
    {"trip": trip, "colour": colour, "size": size, "price": price, "bought": k % 2}
    for k, (trip, colour, size, price) in enumerate(
        [
            ("A", "red", "L", 1.5),
            ("A", "zzz", "S", 2.0),
            ("B", "blue", "XL", None),
            ("B", "zzz", "XXL", 3.0),
            ("C", "red", None, 1.0),
            ("C", "yyy", "S", None),
        ]
    )
]
# The same rows as the model reads them: its training had missing sizes, but no missing colours or
# prices. A colour that is not `blue` or `red` has the features 0 and 0.
FEATURES = [[0, 1, 0, 1, 0, 1.5], [0, 0, 0, 0, 1, 2.0], [1, 0, 1, 0, 0, 2.5],
            [0, 0, 1, 0, 0, 3.0], [0, 1, 1, 0, 0, 1.0], [0, 0, 0, 0, 1, 2.5]]  # fmt: skip
WARNING = (
    "treated as missing, because no training example had it: \"colour\": 'zzz' (2 elements), "
    "'yyy' (1 element); \"size\": 'XL' (1 element), 'XXL' (1 element); \"price\": no value "
    "(2 elements)"
)


def model_of_rows(small, **settings):
    """Return a model of three fields, and the same model without fields, as an oracle."""
    fields = {"fields": ("colour", "size", "price")}
    fields |= {"categories": (("blue", "red"), ("", "L", "S"), ())}
    scaling = {"center": (0.0,) * 5 + (2.5,), "spread": (1.0,) * 6, "kind": "choice"}
    solver = small("custom", scale=8.0, **fields, **scaling, **settings)
    return solver, ptrnet.Solver(solver.model, small("custom", **scaling).task)


def warned(action):
    """Return the result of an action, and its warnings about values that training did not see."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = action()
    return result, [m for w in caught if (m := str(w.message)).startswith("treated")]


def test_every_form_of_a_table_treats_unseen_values_as_missing(small, tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    solver, plain = model_of_rows(small)
    trips = [np.array(FEATURES[k : k + 2]) for k in (0, 2, 4)]
    expected = np.concatenate(plain.predict_proba(trips))
    frame = pandas.DataFrame(ROWS)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    tables = [frame, polars.DataFrame(ROWS), ROWS, tmp_path / "t.csv", tmp_path / "t.parquet"]
    for table in tables:
        solver.trained_range = TrainedRange(
            solver.task, solver.trained
        )  # it does not repeat warnings
        found, messages = warned(lambda t=table: solver.predict_proba(t, set_id="trip"))
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert messages == [WARNING]
        assert warned(lambda t=table: solver.predict_proba(t, set_id="trip"))[1] == []
    sets = [ROWS[k : k + 2] for k in (0, 2, 4)]
    for instances in (sets, [pandas.DataFrame(rows) for rows in sets]):
        solver.trained_range = TrainedRange(solver.task, solver.trained)
        found, messages = warned(lambda i=instances: np.concatenate(solver.predict_proba(i)))
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert messages == [WARNING]


USES = {
    "solve": lambda solver, data: [a.tolist() for a in solver.solve([x for x, _ in data])],
    "evaluate": lambda solver, data: solver.evaluate(data),
    "explain": lambda solver, data: solver.explain(data)["value"],
    "log_likelihoods": lambda solver, data: solver.log_likelihoods(data).tolist(),
    "sample": lambda solver, data: solver.sample([x for x, _ in data], seed=1)[1].tolist(),
    "attention": lambda solver, data: [p.tolist() for p, _ in solver.attention(data)],
    "plot_reliability": lambda solver, data: solver.plot_reliability(data).get_title(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_every_use_of_a_model_warns_once_of_unseen_values(small, use):
    solver, plain = model_of_rows(small)
    known = ptrnet.read_table(ROWS, set_id="trip", chosen="bought")
    data = [(example.inputs, example.outputs) for example in known]
    found, messages = warned(lambda: use(solver, data))
    assert found == use(plain, [(np.array(FEATURES[k : k + 2]), [1]) for k in (0, 2, 4)])
    assert messages == [WARNING]


def test_each_answer_names_its_own_unseen_values(small):
    solver, _ = model_of_rows(small)
    answers, messages = warned(lambda: solver.answer(ROWS, set_id="trip"))
    texts = [answer.warnings[-1].partition(": ")[2] for answer in answers]
    assert messages == [] and texts[0] == "\"colour\": 'zzz' (1 element)"
    assert texts[2] == '"colour": \'yyy\' (1 element); "price": no value (1 element)'


def test_commands_print_one_line_for_all_unseen_values_of_a_file(small, tmp_path, capsys):
    solver, _ = model_of_rows(small)
    solver.save_pretrained(tmp_path / "m")
    model, table, lines = (str(tmp_path / name) for name in ("m", "t.csv", "t.jsonl"))
    rows = [["" if cell is None else str(cell) for cell in row.values()] for row in ROWS]
    write_text(tmp_path, "".join(",".join(row) + "\n" for row in [[*ROWS[0]], *rows]), "t.csv")
    convert = ["convert", table, lines, "--set-id", "trip", "--chosen", "bought"]
    assert run(convert) == 0
    named = ["--set-id", "trip", "--chosen", "bought"]
    commands = [
        ["evaluate", "--model", model, table, *named],
        ["evaluate", "--model", model, lines],
        ["evaluate", "--model", model, lines, "--jobs", "2"],
        ["explain", model, table, *named],
        ["explain", model, lines],
        ["solve", "--model", model, table, "--set-id", "trip"],
        ["solve", "--model", model, table, "--set-id", "trip", "--json"],
        ["solve", "--model", model, lines],
        ["solve", "--model", model, table],  # a single instance
    ]
    printed = []
    for command in commands:
        capsys.readouterr()
        assert run(command) == 0, command
        out, error = capsys.readouterr()
        printed.append(out)
        assert error.count("treated as missing") == 1 and f"ptrnet: {WARNING}\n" in error, command
    assert printed[0] == printed[1] == printed[2] and printed[3] == printed[4]
    strict, _ = model_of_rows(small, unknown="refuse")
    strict.save_pretrained(tmp_path / "m")
    for command in commands:
        assert run(command) == 2
        assert "which no training example had" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({}, []),
        ({"unknown": "refuse"}, [{"c": "zzz"}, {"c": None}, {"p": None}]),
        ({"missing": "refuse"}, [{"c": None}, {"p": None}]),
    ],
)
def test_a_training_keeps_its_rules_for_unseen_and_missing_values(tmp_path, options, refused):
    """The rules are in the model's folder, and a resumed training reads the same examples."""
    rng = np.random.default_rng(0)
    rows = [{"trip": k // 3, "c": "ab"[k % 2], "p": p} for k, p in enumerate(rng.random(30))]
    chosen = rng.integers(3, size=10)
    data = [{**row, "bought": int(k % 3 == chosen[k // 3])} for k, row in enumerate(rows)]
    sizes = {"steps": 2, "hidden_size": 8, "batch_size": 4, "ensemble": 1}
    columns = {"set_id": "trip", "chosen": "bought"}
    ptrnet.fit(data, **columns, **options, **sizes, output=tmp_path / "m")
    assert run(["train", "--output", str(tmp_path / "m"), "--resume"]) == 0
    solver = ptrnet.load(tmp_path / "m")
    for changed in ({}, {"c": "zzz"}, {"c": None}, {"p": None}):
        with pytest.raises(InputError) if changed in refused else nullcontext():
            solver.solve([{**rows[0], **changed}, rows[1]])
    if "missing" in options:
        with pytest.raises(InputError, match="expected a value, got none"):
            ptrnet.fit([*data, {**data[-1], "p": None, "bought": 0}], **columns, **options, **sizes)
