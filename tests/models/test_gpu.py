"""Compare models on a GPU with the same models on the CPU. Skipped without a GPU."""

import copy

import pytest
import torch

from ptrnet import models
from ptrnet.training.hardware import matmul_precision

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
N = 6


@needs_gpu
@pytest.mark.parametrize("name", models.names())
@pytest.mark.parametrize("options", [{}, {"cell": "gru", "layers": 2, "bidirectional": True}])
@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_log_probs_and_gradients_equal_those_of_the_cpu(name, options, precision):
    """TF32 and bfloat16 have larger tolerances. Warnings are errors in all tests."""
    torch.manual_seed(0)
    known = models.setting_names(name)
    options = {key: value for key, value in {"n": N, **options}.items() if key in known}
    model = models.build(name, 2, 1, hidden_size=32, **options)
    inputs, targets = torch.rand(4, N, 2), torch.randint(1, 4, (4, 5))
    lengths = torch.full((4,), N) if "n" in known else torch.tensor([6, 3, 4, 6])
    ends = torch.tensor([5, 2, 3, 1])
    real = (torch.arange(5) < ends[:, None])[..., None]
    on_gpu = copy.deepcopy(model).cuda()
    tolerance = {"float32": 1e-4, "tf32": 2e-2, "bfloat16": 3e-2}[precision]
    for mode in (True, False):
        results = []
        for module, device in ((model, "cpu"), (on_gpu, "cuda")):
            module.train(mode).zero_grad()
            batch = [t.to(device) for t in (inputs, lengths, targets, ends)]
            low = device == "cuda" and precision == "bfloat16"
            with matmul_precision(precision, device):
                with torch.autocast(device, torch.bfloat16, enabled=low):
                    rows = module.log_probs(*batch[:4]).cpu()
                rows = torch.where(real & rows.isfinite(), rows, 0)
                (rows * torch.linspace(0, 1, rows.shape[-1])).sum().backward()
            results.append(
                [rows, *(p.grad.cpu() for p in module.parameters() if p.grad is not None)]
            )
        scale = max(expected.abs().max().item() for expected in results[0])
        for expected, actual in zip(*results, strict=True):
            assert actual.dtype == torch.float32
            torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance * scale)


@needs_gpu
def test_solver_gives_the_same_answers_on_cpu_and_gpu(small):
    solver = small("hull", scale=4.0)
    sets = [
        torch.rand(n, 2, generator=torch.Generator().manual_seed(n)).numpy() for n in (5, 9, 30)
    ]
    expected = solver.solve(sets)
    solver.model.cuda()
    with matmul_precision("float32", "cuda"):
        assert [list(a) for a in solver.solve(sets)] == [list(a) for a in expected]
