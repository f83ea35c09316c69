import subprocess
import sys
import threading

import torch

from ptrnet import models
from ptrnet.kernels.threads import run_slices


def test_slices_run_on_one_torch_thread_each_and_leave_the_callers_setting():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        seen = {}
        run_slices(lambda k, a, b: seen.update({k: (a, b, torch.get_num_threads())}), [0, 2, 2, 9])
        assert seen == {0: (0, 2, 1), 1: (2, 2, 1), 2: (2, 9, 1)}
        assert torch.get_num_threads() == 3
        inherited = []
        thread = threading.Thread(target=lambda: inherited.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert inherited == [3]
    finally:
        torch.set_num_threads(before)


def test_an_error_in_a_slice_reaches_the_caller():
    def fail(k, a, b):
        if k == 1:
            raise ZeroDivisionError

    try:
        run_slices(fail, [0, 1, 2])
    except ZeroDivisionError:
        return
    raise AssertionError("expected the slice's error")


def test_inference_mode_holds_in_slices():
    """Kernels write into tensors of inference mode, which PyTorch refuses outside it."""
    torch.manual_seed(0)
    model, points = models.build("ptr-net", 2, 1, hidden_size=8), torch.rand(64, 5, 2)
    with torch.no_grad():
        expected = model.encode(points).keys
    with torch.inference_mode():
        assert torch.equal(model.encode(points).keys, expected)


def test_one_pool_serves_any_number_of_slices():
    run_slices(lambda *_: None, [0, 1, 2])
    before = threading.active_count()
    for slices in range(2, 9):
        run_slices(lambda *_: None, range(slices + 1))
    assert threading.active_count() == before


def test_a_forked_process_gives_its_parents_answers():
    code = """
import faulthandler, os, sys
from ptrnet import runtime
runtime.tune()
import numpy as np, torch
torch.set_num_threads(2)
import ptrnet
solver = ptrnet.load("hull")
instances = list(np.random.default_rng(0).random((64, 30, 2)))
answers = solver.solve(instances)
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
faulthandler.dump_traceback_later(200, exit=True)
same = [np.array_equal(a, b) for a, b in zip(answers, solver.solve(instances))]
os._exit(0 if all(same) else 3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_layer_of_float32_weights_is_trained_in_several_threads():
    """Threads do not inherit that gradients are off inside a kernel, which writes with `out`."""
    before = torch.get_num_threads()
    gradients = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            model = models.build("ptr-net", 2, 1, hidden_size=8)
            model.encode(torch.rand(128, 5, 2)).keys.square().sum().backward()
            gradients.append([p.grad for p in model.parameters() if p.grad is not None])
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(*gradients)
