"""Graphs whose matrices are of 8 bits: smaller files, and the accuracy that this costs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ptrnet.data.dataset import Dataset
from ptrnet.export.agreement import fresh_instances, sizes_of
from ptrnet.export.graphs import ENCODER, STEP
from ptrnet.labels import generate_dataset
from ptrnet.solver import Solver
from ptrnet.types import Example


def quantize_graphs(folder: Path) -> None:
    """Replaces both files: weights of matrix products are rounded to 8 bits, and what is multiplied
    with them at each run (onnxruntime's dynamic quantization).

    All without sign: else sums of two products saturate at 16 bits on x86 without VNNI.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    for name in (ENCODER, STEP):
        whole, rounded = folder / name, folder / f"int8-{name}"
        with _silent():
            quantize_dynamic(
                whole,
                rounded,
                weight_type=QuantType.QUInt8,
                per_channel=True,
                nodes_to_exclude=_products_with_vectors(whole),
            )
        rounded.replace(whole)


def _products_with_vectors(path: Path) -> list[str]:
    """The nodes of a graph that multiply with a vector, which has no channels to round by."""
    import onnx

    graph = onnx.load(path).graph
    vectors = {tensor.name for tensor in graph.initializer if len(tensor.dims) == 1}
    products = (node for node in graph.node if node.op_type == "MatMul")
    return [node.name for node in products if vectors & set(node.input)]


def cost(solver: Solver, whole: Solver, rounded: Solver, count: int, seed: int) -> dict[str, Any]:
    """What rounding costs, on `count` fresh instances, answered greedily under the constraint.

    Of each metric of the task its value and 95% interval with float32 weights and with int8; of
    the task `custom`, which has no labels, the share of equal answers.

    Args:
        solver: the model in PyTorch.
        whole: its graphs with float32 weights.
        rounded: those with int8 weights.
        count: of instances.
        seed: of what is drawn.
    """
    examples = _labelled(solver, count, seed)
    pairs = [_answers(graphs, examples) for graphs in (whole, rounded)]
    equal = [np.array_equal(*pair) for pair in zip(*pairs, strict=True)]
    facts = {"instances": count, "equal_answers": float(np.mean(equal)), "metrics": {}}
    if not solver.task.labellers:
        return facts
    before, after = (solver.task.measure(examples, answers) for answers in pairs)
    metrics = {
        name: {"float32": before[name].to_dict(), "int8": after[name].to_dict()} for name in before
    }
    return {**facts, "metrics": metrics}


def _labelled(solver: Solver, count: int, seed: int) -> Dataset:
    if solver.task.labellers:
        return generate_dataset(solver.task, sizes_of(solver), count, seed)
    return Dataset.of(Example(inputs) for inputs in fresh_instances(solver, count, seed))


def _answers(graphs: Solver, examples: Dataset) -> list[Any]:
    return [example.outputs for example in graphs.predict(examples)]


@contextmanager
def _silent() -> Iterator[None]:
    """Without the advice that onnxruntime logs."""
    former = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(former)
