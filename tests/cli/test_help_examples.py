"""Each example of each `--help` runs with the shipped models, in one folder with the user's files.

The examples of `reproduce`, `bench`, `push`, `serve`, `export` and `check` run in the tests of
these verbs.
"""

import shlex
from pathlib import Path

import numpy as np
import pytest

from ptrnet import cli

ROOT = Path(__file__).parents[2]
ELSEWHERE = ("reproduce", "bench", "push", "serve", "export", "check")
# Words that make an example short. The folders that they need are trained first.
SHORT = ["--steps", "2", "--batch-size", "4", "--hidden-size", "8", "--heads", "2"]
SHORTER = {
    "train": [*SHORT, "--valid-batches", "1"],
    "train --data": ["--steps", "2"],
    "train hull-ptr-net": ["--steps", "2", "--batch-size", "4", "--valid-batches", "1"],
    "tune": ["--steps", "2", "--ensemble", "1", "--trials", "2", "--folds", "2"],
    "generate": ["--count", "20"],
}
COLOURS = ("red", "green", "blue")
TABLE = "order,price,colour,country,bought,place\n" + "".join(
    f"{k},{(k * 7 + j * 5) % 11},{COLOURS[j]},{'ab'[k % 2]},{int(j == k % 3)},{(j + k) % 3}\n"
    for k in range(20)
    for j in range(3)
)
WIDE = "income,car_cost,bus_cost,choice\n" + "".join(
    f"{k % 4},{k * 7 % 11},{k * 5 % 7},{('car', 'bus')[k % 2]}\n" for k in range(20)
)
TSP = "NAME: berlin52\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
TOUR = "NAME: berlin52\nTYPE: TOUR\nDIMENSION: 4\nTOUR_SECTION\n1\n2\n3\n4\n-1\nEOF\n"


@pytest.fixture
def files(ptrnet, tmp_path, monkeypatch):
    """Change to a folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)

    def write(name, text):
        (tmp_path / name).write_text(text)

    (tmp_path / "examples").symlink_to(ROOT / "examples")
    write("stops.csv", "x,y\n" + "".join(f"{x},{y}\n" for x, y in rng.random((9, 2))))
    write("points.csv", "x,y\n" + "".join(f"{x},{y}\n" for x, y in rng.random((9, 2))))
    for name in ("test.csv", "offers.csv"):
        write(name, TABLE)
    rows = [line.split(",") for line in TABLE.splitlines()]
    write("new.csv", "".join(f"{','.join([*row[:4], *row[5:]])}\n" for row in rows))  # no answers
    write("trips.csv", WIDE)
    write("berlin52.tsp", TSP + "1 0 0\n2 1 0\n3 1 1\n4 0 1\nEOF\n")
    write("berlin52.opt.tour", TOUR)
    assert ptrnet("generate", "hull", "--n", "5-9", "--count", "8", "--output", "test.txt")[0] == 0
    write("million.txt", (tmp_path / "test.txt").read_text())
    for name in ("tsp", "tsp-test"):
        words = ["generate", "tsp", "--n", "5-9", "--count", "8", "--output", f"{name}.txt"]
        assert ptrnet(*words)[0] == 0
    lines = [
        f'{{"inputs": [{{"price": {k}}}, {{"price": {k * 3 % 7}}}], "context": '
        f'{{"country": "{"ab"[k % 2]}"}}, "outputs": [{k % 2}]}}\n'
        for k in range(20)
    ]
    write("test.jsonl", "".join(lines))
    write("mine.jsonl", "".join(lines))


@pytest.mark.parametrize("verb", [verb for verb in cli.names() if verb not in ELSEWHERE])
def test_the_examples_of_help_run(ptrnet, files, verb):
    if verb == "tune":
        pytest.importorskip("optuna")
    out = ptrnet(verb, "--help")[1]
    commands = [line.strip() for line in out.splitlines() if line.startswith("      ptrnet ")]
    assert commands
    for command in commands:
        words = shlex.split(command)[1:]
        if "my-offers" in words:  # the model that README trains, of the file's kind
            data = next(word for word in words if word.endswith((".csv", ".jsonl")))
            data = "offers.csv" if data == "new.csv" else data  # which has no answers
            columns = ["--set-id", "order", "--chosen", "bought", "--fields", "price"]
            columns = columns if data.endswith(".csv") else []
            folder = f"my-offers-{data}"
            train = ["train", "--data", data, *columns, "--steps", "2", "--output", folder]
            assert Path(folder).exists() or ptrnet(*train)[0] == 0
            words = [folder if word == "my-offers" else word for word in words]
        if verb == "plot":
            for run in words[1:3]:
                assert ptrnet("train", "hull", *SHORTER["train"], "--output", run)[0] == 0
        if "conditional-logit" in words:  # it has no steps
            short = []
        else:
            short = next(
                (SHORTER[key] for key in (" ".join(words[:2]), verb) if key in SHORTER), []
            )
        code, _, err = ptrnet(*words, *short)
        assert code == 0, f"{command}\n{err}"
