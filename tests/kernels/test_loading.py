"""What a process computes before it loads compiled code."""

import pytest

import ptrnet
from ptrnet.kernels import loading
from ptrnet.solver import bulk


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    monkeypatch.setattr(loading, "_prefixes", 0)


def test_a_few_answers_are_given_before(monkeypatch):
    monkeypatch.setattr(loading, "PREFIXES_BEFORE", 10)
    assert [loading.is_worthwhile(4) for _ in range(5)] == [False, False, False, True, True]


def test_many_at_a_time_load_it_at_once():
    assert not loading.is_worthwhile(loading.MIN_ROWS - 1)
    assert loading.is_worthwhile(loading.MIN_ROWS)


def test_work_that_is_gone_on_with_need_not_wait():
    loading.at_once()
    assert loading.is_worthwhile(1)


def test_a_training_and_a_long_file_are_such_work(tmp_path):
    task = ptrnet.tasks.get("hull")
    model = ptrnet.models.build("transformer-ptr-net", 2, 1, hidden_size=8, edge_frames=True)
    solver = ptrnet.Solver(model.eval(), task)
    for count, expected in ((bulk.CHUNK, 0), (bulk.CHUNK + 1, loading.PREFIXES_BEFORE)):
        path = tmp_path / f"{count}.txt"
        path.write_text("0.1 0.2 0.5 0.1 0.3 0.9\n" * count)
        how = bulk.Answering(ptrnet.Greedy(), True, 1)
        work = bulk.work(solver, str(path), str(tmp_path / "out.txt"), how)
        next(iter(work.items_after(0)))
        work.compute([])
        assert loading._prefixes == expected
    loading._prefixes = 0
    examples = ptrnet.generate("hull", n=4, count=4)
    ptrnet.fit(examples, steps=1, batch_size=2, hidden_size=4, output=tmp_path / "run")
    assert loading._prefixes == loading.PREFIXES_BEFORE
