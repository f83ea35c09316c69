"""Long tables become instances of elements with fields, and become tables again."""

import json

import numpy as np
import pytest

import ptrnet
from ptrnet import InputError
from ptrnet.cli import run

TABLE = """order,price,colour,title,place
A, 3.5,red,"one, two",2
B,2,blue,x,1
A,1,blue,y,
A,0.25,red,z,1
"""
ROWS = [
    {"order": "A", "price": 3.5, "colour": "red", "title": "one, two", "place": 2},
    {"order": "B", "price": 2, "colour": "blue", "title": "x", "place": 1},
    {"order": "A", "price": 1, "colour": "blue", "title": "y", "place": None},
    {"order": "A", "price": 0.25, "colour": "red", "title": "z", "place": 1},
]


def written(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    return [pandas.DataFrame(ROWS), polars.DataFrame(ROWS)]


def test_rows_of_one_id_are_an_instance(tmp_path):
    for table in (written(tmp_path, TABLE), ROWS, iter(ROWS), *frames()):
        a, b = ptrnet.read_table(table, set_id="order", rank="place")
        assert a.outputs.tolist() == [2, 0] and b.outputs.tolist() == [0]
        assert a.elements[0] == {"price": 3.5, "colour": "red", "title": "one, two"}
        assert [e["price"] for e in a.elements] == [3.5, 1, 0.25]
        assert (a.extra, b.extra) == ({"order": "A"}, {"order": "B"})


def test_labels_choose_and_without_a_column_there_is_no_answer(tmp_path):
    path = written(tmp_path, "s,x,in\n1,5,true\n1,6,No\n1,7,1\n2,8,0\n")
    first, second = ptrnet.read_table(path, set_id="s", label="in")
    assert first.outputs.tolist() == [0, 2] and second.outputs.tolist() == []
    assert ptrnet.read_table(path, set_id="s")[0].outputs is None
    assert ptrnet.read_table(path, set_id="s")[0].elements[0] == {"x": 5, "in": "true"}


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        (TABLE, {"set_id": "set"}, 't.csv:2: expected the column "set", got'),
        (TABLE, {"set_id": "order", "rank": "r"}, 't.csv:2: expected the column "r", got'),
        (TABLE, {"set_id": "order", "rank": "title"}, "expected a number or nothing, got 'one"),
        (TABLE, {"set_id": "order", "label": "place"}, 't.csv:2: "place": expected 1 or 0, got 2'),
        (TABLE, {"set_id": "order", "rank": "a", "label": "b"}, "rank or label, got both"),
        ("s,r\n1,2\n1,2\n", {"set_id": "s", "rank": "r"}, 't.csv:3: "r": 2 stands in'),
        ("s,x\n1,nan\n", {"set_id": "s"}, 't.csv:2: "x": expected a finite number, got'),
        ("s,x\n1,2,3\n", {"set_id": "s"}, "t.csv:2: expected 2 columns, got 3"),
        ("s,s\n1,2\n", {"set_id": "s"}, "t.csv:1: expected a name of its own for each column"),
        ("s,x\n", {"set_id": "s"}, "t.csv: expected a header and at least one row"),
        ('s,x\n1,"2\n', {"set_id": "s"}, "not CSV"),
    ],
)
def test_what_is_no_table_is_refused_by_its_line(tmp_path, text, options, complaint):
    with pytest.raises(InputError) as error:
        ptrnet.read_table(written(tmp_path, text), **options)
    assert complaint in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("table", [None, 3, {"a": [1]}, [1, 2], []])
def test_what_is_no_table_at_all(table):
    with pytest.raises(InputError, match=r"^(table|row 0): expected"):
        ptrnet.read_table(table, set_id="a")


def test_a_table_goes_through_the_program_and_back(tmp_path, capsys):
    """Every cell comes back, with the places; the titles are carried though no model reads them."""
    table, lines, again = written(tmp_path, TABLE), tmp_path / "t.jsonl", tmp_path / "again.csv"
    columns = ["--set-id", "order", "--rank", "place"]
    assert run(["convert", table, str(lines), *columns]) == 0
    first, _ = map(json.loads, lines.read_text().splitlines())
    assert first["order"] == "A" and first["outputs"] == [2, 0]
    assert first["inputs"][0] == {"price": 3.5, "colour": "red", "title": "one, two"}
    assert run(["convert", str(lines), str(again), *columns]) == 0
    assert again.read_text().splitlines() == [
        "order,place,price,colour,title",
        'A,2,3.5,red,"one, two"',
        "A,,1,blue,y",
        "A,1,0.25,red,z",
        "B,1,2,blue,x",
    ]
    for wrong in (["t.csv", "t.txt", *columns], ["t.jsonl", "t.csv", "--set-id", "order"]):
        assert run(["convert", *wrong]) == 2
        assert "--set-id: expected a .csv" in capsys.readouterr().err
    assert run(["convert", str(lines), str(again), "--set-id", "order", "--rank", "price"]) == 2
    assert 'the elements have a field "price"' in capsys.readouterr().err
    assert "A,1,0.25" in again.read_text()


def test_fields_are_learned_and_stored(tmp_path, capsys):
    """By a model that has to know the colour: red first, then by price; of unseen instances."""
    rng = np.random.default_rng(0)

    def drawn(count):
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

    offers, places = zip(*drawn(400), strict=True)
    network = {"model": "transformer-ptr-net", "encoder_layers": 1, "decoder_layers": 1}
    solver = ptrnet.fit(
        offers, places, fields=["price", "colour"], steps=250, hidden_size=32, seed=1,
        learning_rate=3e-3, feed_forward=32, **network,
    )  # fmt: skip
    unseen = list(drawn(200))
    assert solver.evaluate(unseen)["accuracy"]["value"] > 0.9
    solver.save_pretrained(tmp_path / "m")
    again = ptrnet.load(tmp_path / "m")
    assert again.task == solver.task and again.task.categories == ((), ("blue", "red"))
    assert list(again.task.center[1:]) == [0, 0] and list(again.task.spread[1:]) == [1, 1]
    answer = again.answer(unseen[0][0])
    assert answer.elements == [unseen[0][0][k] for k in answer.outputs]
    for frame in map(type(frames()[0]), [unseen[0][0]]):
        assert again.solve(frame).tolist() == answer.outputs.tolist()
    assert len(again.solve([unseen[0][0], unseen[1][0]])) == 2
    with pytest.raises(InputError, match='"colour": expected one of blue, red'):
        again.solve([{"price": 1, "colour": "green"}])
    with pytest.raises(InputError, match="expected elements with the fields price, colour"):
        again.solve([[0.5, 1.0], [0.5, 0.0]])

    line = {"inputs": unseen[0][0], "outputs": unseen[0][1], "id": 7}
    (tmp_path / "new.jsonl").write_text(json.dumps(line) + "\n")
    assert run(["solve", "--model", str(tmp_path / "m"), str(tmp_path / "new.jsonl")]) == 0
    solved = json.loads(capsys.readouterr().out)
    assert solved == {**line, "outputs": answer.outputs.tolist()}
    titles = [offer["title"] for offer in answer.elements]
    header = "title,colour,price\n"
    rows = [f"{o['title']},{o['colour']},{o['price']}\n" for o in unseen[0][0]]
    table = written(tmp_path, header + "".join(rows), "one.csv")
    assert run(["solve", "--model", str(tmp_path / "m"), table]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == header.strip() and [r.split(",")[0] for r in printed[1:]] == titles
    out = str(tmp_path / "o.parquet")
    arguments = ["--model", str(tmp_path / "m"), str(tmp_path / "new.jsonl"), "--output", out]
    assert run(["solve", *arguments]) == 2
    assert (
        "would lose the names of the elements' fields; write to .jsonl" in capsys.readouterr().err
    )


def test_a_training_on_a_file_reads_the_fields_that_it_is_told(tmp_path, capsys):
    """And says which; others are refused by name, and those of another run are not taken."""
    lines = [
        {
            "inputs": [{"x": k, "y": -k, "z": "a"}, {"x": 1 - k, "y": k, "z": "b"}],
            "outputs": [k % 2],
        }
        for k in range(20)
    ]
    data = written(tmp_path, "".join(json.dumps(line) + "\n" for line in lines), "d.jsonl")
    options = ["--steps", "2", "--hidden-size", "8", "--batch-size", "4", "--valid-batches", "0"]
    for fields, d in (("x,z", 3), ("y,x", 2)):
        out = str(tmp_path / fields.replace(",", ""))
        assert run(["train", "--data", data, "--fields", fields, *options, "--output", out]) == 0
        assert f"{d} features ({fields.replace(',', ', ')})" in capsys.readouterr().err
        assert ptrnet.load(out).task.fields == tuple(fields.split(","))
        assert run(["train", "--output", out, "--resume"]) == 0
    assert run(["train", "--data", data, "--fields", "w", *options]) == 2
    assert 'd.jsonl:1: "inputs": element 1: expected the field "w"' in capsys.readouterr().err
    numbers = written(tmp_path, '{"inputs": [[1, 2]], "outputs": [0]}\n', "n.jsonl")
    assert run(["train", "--data", numbers, "--fields", "x", *options]) == 2
    assert "fields go with elements that are objects" in capsys.readouterr().err
    assert run(["train", "--data", data, "--unknown-category", "keep", *options]) == 2
    assert "unknown_category" in capsys.readouterr().err
