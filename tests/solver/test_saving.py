"""Solvers on disk and on the hub."""

import numpy as np
import pytest

import ptrnet


def test_round_trip_through_a_folder(small, tmp_path):
    solver = small(scale=8.0)
    solver.save_pretrained(tmp_path / "mine")
    again = ptrnet.Solver.from_pretrained(tmp_path / "mine")
    assert again.trained == solver.trained
    points = np.random.default_rng(5).random((7, 2))
    assert again.solve(points).tolist() == solver.solve(points).tolist()
    assert ptrnet.load(tmp_path / "mine").task == solver.task


def test_unknown_models_are_refused(tmp_path):
    with pytest.raises(ptrnet.InputError, match="unknown model 'hul'"):
        ptrnet.load("hul")
    with pytest.raises(ptrnet.ModelError, match="no such folder"):
        ptrnet.load(tmp_path / "none" / "model")


def test_hub_ids_are_fetched_and_pushed_by_the_hubs_client(small, tmp_path, monkeypatch):
    solver = small()
    solver.save_pretrained(tmp_path / "cache")
    requests = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download",
        lambda name, revision, allow_patterns: (
            requests.append((name, revision)) or str(tmp_path / "cache")
        ),
    )
    assert ptrnet.load("someone/hull-model").task == solver.task
    assert ptrnet.load("someone/hull-model@v1.0").task == solver.task
    assert requests == [("someone/hull-model", None), ("someone/hull-model", "v1.0")]

    class Hub:
        def create_repo(self, repository, private, exist_ok):
            return f"hub:{repository}"

        def upload_folder(self, repo_id, folder_path):
            requests.append(sorted(p.name for p in folder_path.iterdir()))

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    assert solver.push_to_hub("me/mine") == "hub:me/mine"
    assert requests[-1] == ["README.md", "config.json", "model.safetensors"]
    for name in ("mine", "me/mine@v1", "me/mi ne"):
        with pytest.raises(ptrnet.ModelError, match="expected OWNER/NAME on the hub"):
            solver.push_to_hub(name)


def test_errors_of_the_hub_are_one_line(monkeypatch):
    def refuse(*_, **__):
        raise OSError("not found\nmore words")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(ptrnet.ModelError, match=r"not fetched from the hub: not found$"):
        ptrnet.load("someone/nothing")


def test_saving_into_the_folder_of_a_run_is_refused(small, tmp_path):
    (tmp_path / "recipe.toml").write_text("")
    with pytest.raises(ptrnet.InputError, match="holds the run of a training; name another folder"):
        small().save_pretrained(tmp_path)


def test_a_readme_of_the_user_is_not_overwritten(small, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    small("sort").save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"
    small("sort").save_pretrained(tmp_path / "other")
    card = (tmp_path / "other" / "README.md").read_text()
    small("hull").save_pretrained(tmp_path / "other")  # replaces the card of a model
    assert (tmp_path / "other" / "README.md").read_text() != card


@pytest.mark.parametrize(
    ("features", "specials", "complaint"),
    [(3, 1, "2 features, got one of 3"), (2, 0, "1 special slots, got one of 0"), (2, 3, "of 3")],
)
def test_a_network_that_was_built_for_another_task_is_refused(features, specials, complaint):
    network = ptrnet.models.build("ptr-net", features, specials, hidden_size=4)
    with pytest.raises(ptrnet.ModelError, match=f"the task hull needs a network of .*{complaint}"):
        ptrnet.Solver(network, ptrnet.tasks.get("hull"))
