"""`ptrnet train`."""

from pathlib import Path

from ptrnet.training.run_folder import next_numbered


def test_runs_without_a_folder_are_numbered(ptrnet, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    options = ["--n", "3", "--steps", "2", "--hidden-size", "4", "--batch-size", "4"]
    options += ["--valid-batches", "0"]
    assert ptrnet("train", "sort", *options)[:2] == (0, "runs/sort-1\n")
    assert ptrnet("train", "sort", *options)[:2] == (0, "runs/sort-2\n")
    assert ptrnet("train", "sort", *options, "--resume")[:2] == (0, "runs/sort-2\n")
    assert ptrnet("train", "sort", "--resume")[:2] == (0, "runs/sort-2\n")
    again = ("--output", "runs/sort-1", "--resume")
    assert ptrnet("train", "sort", *again)[:2] == (0, "runs/sort-1\n")
    refused(ptrnet("train", "hull", *again), "the run is of task sort, not hull")
    refused(ptrnet("train", "sort", *again, "--seed", "9"), "the run has seed = 1, and cannot")
    refused(ptrnet("train", "hull", "--resume"), "runs/hull-1: there is no run to resume")
    refused(ptrnet("train", "hull", "--data", "none.txt"), "none.txt: cannot be read")
    assert not list(Path("runs").glob("hull*"))
    with next_numbered(Path("runs"), "sort") as one, next_numbered(Path("runs"), "sort") as other:
        # If two trainings start at the same time, neither may be refused.
        assert (one.name, other.name) == ("sort-3", "sort-4")
    Path("runs/sort-7").mkdir()  # from a training that was killed before its first step
    assert ptrnet("train", "sort", "--resume")[:2] == (0, "runs/sort-2\n")
    Path("runs/sort-2").rename("runs/sort-10")
    Path("runs/sort-mine").mkdir()
    assert ptrnet("train", "sort", *options)[:2] == (0, "runs/sort-11\n")
    assert ptrnet("train", "sort-ptr-net", *options)[:2] == (0, "runs/sort-12\n")
    assert ptrnet("train", "sort-ptr-net", "--resume")[:2] == (0, "runs/sort-12\n")
