"""What a process computes before it loads compiled code."""

import pytest

import ptrnet
from ptrnet.kernels import eager
from ptrnet.solver.predict import PredictJob


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    monkeypatch.setattr(eager, "_steps", 0)


def test_a_few_steps_are_pytorchs(monkeypatch):
    monkeypatch.setattr(eager, "STEPS_BEFORE", 3)
    assert [eager.is_loaded_for(4) for _ in range(5)] == [False, False, False, True, True]


def test_steps_of_many_prefixes_count_for_more(monkeypatch):
    monkeypatch.setattr(eager, "STEPS_BEFORE", 10)
    rows = 4 * eager.ROWS_OF_A_STEP
    assert [eager.is_loaded_for(rows) for _ in range(4)] == [False, False, True, True]


def test_work_that_is_gone_on_with_need_not_wait():
    eager.use_compiled_kernels()
    assert eager.is_loaded_for(1)


def test_long_work_and_trainings_use_compiled_kernels_at_once(tmp_path):
    examples = ptrnet.generate("hull", n=4, count=4)
    model = ptrnet.models.build("transformer-ptr-net", 2, 1, hidden_size=8, edge_frames=True)
    job = PredictJob(model.eval(), ptrnet.tasks.get("hull"), ptrnet.Greedy(), is_long=True)
    job(examples[:0])
    assert eager.is_loaded_for(1)
    eager._steps = 0
    ptrnet.fit(examples, steps=1, batch_size=2, hidden_size=4, output=tmp_path / "run")
    assert eager.is_loaded_for(1)
