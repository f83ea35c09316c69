"""`ptrnet models`."""

import json
from pathlib import Path


def test_models_lists_the_shipped_models_and_show_prints_a_card(ptrnet):
    code, out, _ = ptrnet("models")
    assert code == 0 and "hull" in out and "sort" in out
    listed = json.loads(ptrnet("models", "--json")[1])["models"]
    assert {row["task"] for row in listed} >= {"hull", "sort"}
    assert all(row["scores"] and Path(row["file"]).exists() for row in listed)
    code, out, _ = ptrnet("models", "show", "hull")
    assert code == 0 and out.startswith("# hull")
