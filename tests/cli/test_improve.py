"""`--improve` and `--no-improve` of `solve` and `evaluate`."""

import json


def test_the_commands_improve_tours_unless_told_otherwise(ptrnet, small, tmp_path):
    model, file = tmp_path / "model", tmp_path / "cities.txt"
    small("tsp").save_pretrained(model)
    assert ptrnet("generate", "tsp", "--n", "12", "--count", "4", "--output", file)[0] == 0
    answers = [
        ptrnet("solve", "tsp", file, "--model", model, *words)[1]
        for words in ((), ("--improve",), ("--no-improve",))
    ]
    assert answers[0] == answers[1] != answers[2]
    gaps = [
        ptrnet("evaluate", "tsp", file, "--model", model, "--json", *words)[1]
        for words in ((), ("--no-improve",))
    ]
    first, second = (json.loads(text)["metrics"]["gap"]["value"] for text in gaps)
    assert first < second
