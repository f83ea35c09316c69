"""Compare PyTorch's fused attention with ours on a CPU, for a few elements.

    python benchmarks/attention.py [REPEATS]

B=128, 256 units, 4 heads. All elements attend to each other, as in the encoder of
`transformer-ptr-net`, where queries, keys and values are parts of one tensor. The two sides run in
turn. With one thread we measure processor time, which other processes do not lengthen; with two
threads we measure time by the clock.
"""

from ptrnet import runtime

runtime.tune()

import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402

import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from ptrnet.models.parts.attention import attend, split_heads  # noqa: E402
from ptrnet_lab.bench.harness import Side, describe, interleaved, machine, spread, versions  # noqa: E402

BATCH, UNITS, HEADS = 128, 256, 4
Attention = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def fused(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    attended = scaled_dot_product_attention(queries, keys, values, bias.to(queries.dtype))
    return attended.transpose(-2, -3).flatten(-2)


def products(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    q, k, v = (x.flatten(0, 1) for x in (queries, keys, values))
    flat = bias.to(q.dtype).expand(BATCH, HEADS, -1, -1).flatten(0, 1)
    scores = torch.baddbmm(flat, q, k.transpose(1, 2), alpha=q.shape[-1] ** -0.5)
    return (scores.softmax(-1) @ v).view(queries.shape).transpose(-2, -3).flatten(-2)


SIDES: dict[str, Attention] = {"fused": fused, "baddbmm": products, "attend": attend}


def forward(attention: Attention, inward: Tensor, bias: Tensor) -> Callable[[], object]:
    def run() -> Tensor:
        with torch.no_grad():
            return attention(*(split_heads(x, HEADS) for x in inward.chunk(3, -1)), bias)

    return run


def both(attention: Attention, inward: Tensor, bias: Tensor) -> Callable[[], object]:
    """Run attention forward and backward."""
    grad = torch.rand(*inward.shape[:2], UNITS).to(inward.dtype)

    def run() -> tuple[Tensor, ...]:
        heads = (split_heads(x, HEADS) for x in inward.chunk(3, -1))
        return torch.autograd.grad(attention(*heads, bias), inward, grad)

    return run


def main(repeats: int) -> None:
    """Print a table of median milliseconds."""
    print(describe(machine("cpu"), versions()))
    heads = [f"{name} {work}" for work in ("forward", "both") for name in SIDES]
    print(f"| threads | type | n | {' | '.join(heads)} |\n|{'---|' * (3 + len(heads))}")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        clock = time.process_time if threads == 1 else time.perf_counter
        for dtype in (torch.float32, torch.bfloat16):
            for n in (5, 10, 20, 50, 100):
                torch.manual_seed(0)
                inward = torch.randn(BATCH, n, 3 * UNITS).to(dtype).requires_grad_()
                bias = torch.zeros(BATCH, 1, 1, n)
                sides = {
                    f"{name} {work.__name__}": Side(work(attention, inward, bias), warmups=1)
                    for work in (forward, both)
                    for name, attention in SIDES.items()
                }
                times = interleaved(sides, repeats, f"n={n}", clock=clock)
                cells = [f"{spread(ms.values()).median:.2f}" for ms in times.values()]
                print(f"| {threads} | {str(dtype)[6:]} | {n} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
