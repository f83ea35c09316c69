"""Round the weights of graphs to 8 bits for smaller files, and measure the loss of accuracy."""

import logging
from pathlib import Path
from typing import Any

import numpy as np

from ptrnet.export.agreement import fresh_instances, sizes_of
from ptrnet.export.graphs import ENCODER, STEP
from ptrnet.labels import generate_dataset
from ptrnet.metrics import summary
from ptrnet.solver import Solver
from ptrnet.types import Dataset, Example


def quantize_graphs(folder: Path) -> None:
    """Replace both graphs of a folder by graphs from onnxruntime's dynamic quantization.

    The weights of matrix products are stored in 8 bits. The activations are rounded at each run.
    Weights are unsigned, because sums of products with signed weights saturate at 16 bits on x86
    without VNNI.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    former = logging.root.manager.disable
    logging.disable(logging.WARNING)  # onnxruntime logs advice that users cannot follow
    try:
        for name in (ENCODER, STEP):
            whole, rounded = folder / name, folder / f"int8-{name}"
            quantize_dynamic(
                whole,
                rounded,
                weight_type=QuantType.QUInt8,
                per_channel=True,
                nodes_to_exclude=_products_with_vectors(whole),
            )
            rounded.replace(whole)
    finally:
        logging.disable(former)


def _products_with_vectors(path: Path) -> list[str]:
    """Return the names of a graph's nodes that multiply by a vector of weights.

    A vector has no channels, so it cannot be rounded per channel.
    """
    import onnx

    graph = onnx.load(path).graph
    vectors = {tensor.name for tensor in graph.initializer if len(tensor.dims) == 1}
    products = (node for node in graph.node if node.op_type == "MatMul")
    return [node.name for node in products if vectors & set(node.input)]


def accuracy_lost(
    solver: Solver, whole: Solver, rounded: Solver, count: int, seed: int
) -> dict[str, Any]:
    """Measure how much accuracy the rounding costs, on greedy answers to `count` fresh instances.

    Return the share of equal answers, and each metric of the task with its 95% interval for float32
    and for int8 weights. For tasks without labellers, such as own examples, return only the share.
    The graphs `whole` have float32 weights, and `rounded` int8 weights.
    """
    if solver.task.facts.labellers:
        examples = generate_dataset(solver.task, sizes_of(solver), count, seed)
    else:
        examples = Dataset.of(Example(inputs) for inputs in fresh_instances(solver, count, seed))
    pairs: list[Any] = [
        [e.outputs for e in graphs.predict(examples)] for graphs in (whole, rounded)
    ]
    equal = [np.array_equal(*pair) for pair in zip(*pairs, strict=True)]
    facts = {"instances": count, "equal_answers": float(np.mean(equal)), "metrics": {}}
    if not solver.task.facts.labellers:
        return facts
    before, after = (summary.measure(solver.task, examples, answers) for answers in pairs)
    metrics = {
        name: {"float32": before[name].to_dict(), "int8": after[name].to_dict()} for name in before
    }
    return {**facts, "metrics": metrics}
