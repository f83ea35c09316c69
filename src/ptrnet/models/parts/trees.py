"""Gradient-boosted regression trees, evaluated in PyTorch and as an operator of ONNX."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ptrnet.kernels import is_eager

LEAVES = 15  # the most leaves of a tree
NODES = 2 * LEAVES - 1
DEPTH = 8  # the most decisions on the way from a root to a leaf
# The most pairs of an element and a tree that walk at the same time: their nodes fit in a cache.
MAX_WALKS = 2**17


class Trees(nn.Module):
    """`f(x) = sum_t v_t(x)`, where `v_t(x)` is the value of the leaf of tree t that `x` reaches.

    At node i, an element goes to the first child if `x[feature_i] <= threshold_i`, and otherwise to
    the second child. Both children of a leaf are the leaf itself, so each walk has DEPTH steps.
    Node 0 of a tree is its root. `ptrnet.training.trees` grows trees.

    Args:
        count: the number of trees, T. Each of them is a leaf of value 0.
    """

    features: Tensor  # `(T, NODES)` int32, the feature that a node compares
    thresholds: Tensor  # `(T, NODES)` float32
    branches: Tensor  # `(T, NODES, 2)` int32, the children of a node
    values: Tensor  # `(T, NODES)` float32, the value of a leaf; 0 for other nodes
    # `()`, the share of the trees in a mixture of models, which `forward` does not read.
    share: Tensor

    def __init__(self, count: int) -> None:
        super().__init__()
        self.register_buffer("features", torch.zeros(count, NODES, dtype=torch.int32))
        self.register_buffer("thresholds", torch.zeros(count, NODES))
        itself = torch.arange(NODES, dtype=torch.int32)[:, None]
        self.register_buffer("branches", itself.repeat(count, 1, 2))
        self.register_buffer("values", torch.zeros(count, NODES))
        self.register_buffer("share", torch.zeros(()))

    def __len__(self) -> int:
        """The number of trees."""
        return len(self.values)

    def are_sound(self, num_features: int) -> bool:
        """Whether each node compares a feature, and leads to later nodes only, or to itself."""
        itself = torch.arange(NODES)[:, None]
        return bool(
            ((self.branches >= itself) & (self.branches < NODES)).all()
            and ((self.features >= 0) & (self.features < num_features)).all()
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores `(...)` of elements `(..., d)`."""
        if torch.onnx.is_in_onnx_export():
            return _Operator.apply(inputs, self.walk)  # type: ignore[no-untyped-call]
        return self.walk(inputs)

    def walk(self, inputs: Tensor) -> Tensor:
        """Return the scores `(...)` of elements `(..., d)`."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        count, width = rows.shape
        flat, group = rows.flatten(), len(self)
        if is_eager(inputs):
            group = max(1, min(group, MAX_WALKS // max(1, count)))
        scores = inputs.new_zeros(count)
        for first in range(0, len(self), group):
            features, thresholds, branches, values = (
                part[first : first + group]
                for part in (self.features, self.thresholds, self.branches, self.values)
            )
            # Number the nodes of all trees in one row. Both children of node i are at 2i and 2i + 1
            # of a flat array. Lookups with int32 take a third of the time of those with int64.
            roots = NODES * torch.arange(len(values), dtype=torch.int32, device=inputs.device)
            children = (branches + roots[:, None, None]).flatten()
            features, thresholds, values = (x.flatten() for x in (features, thresholds, values))
            starts = width * torch.arange(count, dtype=torch.int32, device=inputs.device)
            starts = starts.repeat_interleave(len(roots))  # where the features of elements begin
            nodes = roots.repeat(count)
            for _ in range(DEPTH):
                compared = flat.index_select(0, features.index_select(0, nodes) + starts)
                is_second = compared > thresholds.index_select(0, nodes)
                nodes = children.index_select(0, 2 * nodes + is_second)
            scores = scores + values.index_select(0, nodes).reshape(count, -1).sum(1)
        return scores.reshape(inputs.shape[:-1])


class _Operator(torch.autograd.Function):
    """Records trees as `TreeEnsembleRegressor`, an operator of ONNX.

    Its argument is a method of the trees, because PyTorch cannot record a module as an argument.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, walk: Any) -> Tensor:
        result: Tensor = walk(inputs)
        return result

    @staticmethod
    def symbolic(graph: Any, inputs: Any, walk: Any) -> Any:
        def numbers(*values: int) -> Any:
            return graph.op("Constant", value_t=torch.tensor(values))

        shape = graph.op("Shape", inputs)
        width = graph.op("Slice", shape, numbers(-1), numbers(2**31))
        scores = graph.op(
            "ai.onnx.ml::TreeEnsembleRegressor",
            graph.op("Reshape", inputs, graph.op("Concat", numbers(-1), width, axis_i=0)),
            n_targets_i=1,
            **_attributes(walk.__self__),
        )
        return graph.op("Reshape", scores, graph.op("Slice", shape, numbers(0), numbers(-1)))


def _attributes(trees: Trees) -> dict[str, Sequence[Any]]:
    """Return the attributes of `TreeEnsembleRegressor` for the nodes that a root leads to."""
    nodes: list[tuple[int, int, int, float, str, int, int]] = []
    leaves: list[tuple[int, int, int, float]] = []
    columns = (trees.features, trees.thresholds, trees.branches, trees.values)
    for tree, columns_of_tree in enumerate(zip(*(x.tolist() for x in columns), strict=True)):
        features, thresholds, branches, values = columns_of_tree
        reached = [0]
        for node in reached:  # the list grows in the loop
            if branches[node] == [node, node]:
                nodes.append((tree, node, 0, 0.0, "LEAF", 0, 0))
                leaves.append((tree, node, 0, values[node]))
            else:
                decision = (features[node], thresholds[node], "BRANCH_LEQ")
                nodes.append((tree, node, *decision, *branches[node]))
                reached += branches[node]
    of_nodes = "treeids_i nodeids_i featureids_i values_f modes_s truenodeids_i falsenodeids_i"
    names = [f"nodes_{name}" for name in of_nodes.split()]
    names += [f"target_{name}" for name in ("treeids_i", "nodeids_i", "ids_i", "weights_f")]
    return dict(zip(names, [*zip(*nodes, strict=True), *zip(*leaves, strict=True)], strict=True))
