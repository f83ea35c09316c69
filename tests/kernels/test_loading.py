"""What a process computes before it loads compiled code."""

import pytest

import ptrnet
from ptrnet.jobs import CHUNK
from ptrnet.kernels import loading
from ptrnet.solver.work import Answering, work_on_file


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    monkeypatch.setattr(loading, "_steps", 0)


def test_a_few_steps_are_pytorchs(monkeypatch):
    monkeypatch.setattr(loading, "STEPS_BEFORE", 3)
    assert [loading.is_loaded_for(4) for _ in range(5)] == [False, False, False, True, True]


def test_steps_of_many_prefixes_count_for_more(monkeypatch):
    monkeypatch.setattr(loading, "STEPS_BEFORE", 10)
    rows = 4 * loading.ROWS_OF_A_STEP
    assert [loading.is_loaded_for(rows) for _ in range(4)] == [False, False, True, True]


def test_work_that_is_gone_on_with_need_not_wait():
    loading.at_once()
    assert loading.is_loaded_for(1)


def test_a_training_and_a_long_file_are_such_work(tmp_path):
    task = ptrnet.tasks.get("hull")
    model = ptrnet.models.build("transformer-ptr-net", 2, 1, hidden_size=8, edge_frames=True)
    solver = ptrnet.Solver(model.eval(), task)
    for count, expected in ((CHUNK, 0), (CHUNK + 1, loading.STEPS_BEFORE)):
        path = tmp_path / f"{count}.txt"
        path.write_text("0.1 0.2 0.5 0.1 0.3 0.9\n" * count)
        how = Answering(ptrnet.Greedy(), True, 1)
        work = work_on_file(solver, str(path), str(tmp_path / "out.txt"), how)
        next(iter(work.items_after(0)))
        work.compute([])
        assert loading._steps == expected
    loading._steps = 0
    examples = ptrnet.generate("hull", n=4, count=4)
    ptrnet.fit(examples, steps=1, batch_size=2, hidden_size=4, output=tmp_path / "run")
    assert loading._steps == loading.STEPS_BEFORE
