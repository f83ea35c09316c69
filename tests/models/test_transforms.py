"""Compare every model with its traces, exports and transforms (`vmap`, `grad`) by PyTorch."""

import pytest
import torch

from ptrnet import models

FRAMES = {
    f"{edge}-edge-frames": {"edge_frames": True, "frame_edge": edge} for edge in ("last", "open")
}
MODELS = pytest.mark.parametrize("name", [*models.names(), *FRAMES])
pytestmark = pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
B, N, M = 3, 6, 4


class LogProbs(torch.nn.Module):
    """A module with `log_probs` as its `forward`, as exports need it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, inputs, lengths, targets):
        return self.model.log_probs(inputs, lengths, targets)


def build(small, name, dtype=torch.float64):
    if name not in FRAMES:
        return LogProbs(small(model=name).model).to(dtype)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 8}
    num_specials = 2 if name.startswith("open") else 1
    model = models.build("transformer-ptr-net", 2, num_specials, **sizes, **FRAMES[name])
    return LogProbs(model).to(dtype)


def draw(seed, batch=B, n=N, steps=M, dtype=torch.float64):
    torch.manual_seed(seed)
    inputs, targets = torch.rand(batch, n, 2, dtype=dtype), torch.randint(1, n + 1, (batch, steps))
    return inputs, torch.full((batch,), n), targets


def likelihood(log_probs, targets):
    return log_probs.gather(-1, targets[..., None]).sum()


def assert_same(actual, expected):
    tolerance = 1e-9 if actual.dtype == torch.float64 else 1e-5
    torch.testing.assert_close(actual.exp(), expected.exp(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float32) for name in [*models.names(), *FRAMES]),
        *((name, torch.float64) for name in ("ptr-net", "transformer-ptr-net")),  # without kernels
    ],
    ids=str,
)
def test_traces_are_right_for_other_values_and_sizes(small, name, dtype):
    """The ONNX export traces models. Kernels that write into arrays would leave zeros."""
    module = build(small, name, dtype)
    traced = torch.jit.trace(module, draw(0, dtype=dtype), check_trace=False)
    batches = [draw(1, dtype=dtype)]
    if module.model.n is None:
        batches.append(draw(2, 40, 8, 5 if name.startswith(("ptr", "mem")) else M, dtype))
    with torch.no_grad():
        for batch in batches:
            assert_same(traced(*batch), module(*batch))


@pytest.mark.parametrize("name", ["ptr-net", "transformer-ptr-net"])
@pytest.mark.parametrize("with_gradients", [True, False])
def test_exports_are_right_for_other_batch_sizes(small, name, with_gradients):
    """Code that computes in chunks must not read sizes while it is exported."""
    module, batch = build(small, name), torch.export.Dim("batch", min=2, max=6000)
    shapes = tuple({0: batch} for _ in range(3))
    with torch.set_grad_enabled(with_gradients):
        program = torch.export.export(module, draw(0), dynamic_shapes=shapes, strict=False)
    others = draw(1, batch=5000)
    assert_same(program.module()(*others), module(*others))


def test_strict_export_works(small):
    """Dynamo then interprets the code. It cannot interpret PyTorch's stack of modes."""
    module, arguments = build(small, "remaining-ptr-net"), draw(0)
    program = torch.export.export(module, arguments, strict=True)
    assert_same(program.module()(*arguments), module(*arguments))


@MODELS
def test_vmap_of_gradients_equals_gradients_of_the_batch(small, name):
    module, (inputs, lengths, targets) = build(small, name), draw(0)
    parameters = dict(module.named_parameters())

    def of_one(parameters, inputs, lengths, targets):
        batch = inputs[None], lengths[None], targets[None]
        log_probs = torch.func.functional_call(module, parameters, batch)
        return likelihood(log_probs, targets[None]), log_probs[0]

    gradient = torch.func.grad(of_one, has_aux=True)
    grads, log_probs = torch.func.vmap(gradient, (None, 0, 0, 0))(
        parameters, inputs, lengths, targets
    )
    expected = module(inputs, lengths, targets)
    assert_same(log_probs, expected)
    likelihood(expected, targets).backward()
    for key, parameter in parameters.items():
        summed = grads[key].sum(0)
        wanted = torch.zeros_like(summed) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(summed, wanted, rtol=1e-8, atol=1e-10)


@MODELS
def test_gradient_of_squared_gradient_equals_hessian_product(small, name):
    """`d |g|^2 / dx = 2 H g`: double backward against forward over reverse."""
    module, (inputs, lengths, targets) = build(small, name), draw(0, batch=1, steps=2)

    def total(inputs):
        return likelihood(module(inputs, lengths, targets), targets)

    inputs.requires_grad_()
    (gradient,) = torch.autograd.grad(total(inputs), inputs, create_graph=True)
    (actual,) = torch.autograd.grad(gradient.square().sum(), inputs)
    hessian = torch.func.hessian(total)(inputs.detach())
    expected = 2 * torch.einsum("abcdef,def->abc", hessian, gradient.detach())
    torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-12)
    assert actual.any()


def test_vmap_over_gru_layers(small):
    model = models.build("ptr-net", 2, 1, hidden_size=8, cell="gru").double()
    inputs, lengths, targets = draw(0)
    mapped = torch.func.vmap(lambda x, t: model.log_probs(x[None], None, t[None])[0])(
        inputs, targets
    )
    assert_same(mapped, model.log_probs(inputs, lengths, targets))
