"""Gradient-boosted regression trees, evaluated in PyTorch and as an operator of ONNX."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ptrnet.kernels import is_eager

LEAVES = 15  # the most leaves of a tree
NODES = 2 * LEAVES - 1
DEPTH = 8  # the most decisions on the way from a root to a leaf
# The most pairs of an element and a tree that we compute at the same time: they fit in a cache.
MAX_WALKS = 2**17
# `exclude` first makes tables, which takes longer than a walk of fewer than MANY_ELEMENTS. The time
# for tables grows with the square of the number of trees, so more than MOST_TREES walk.
MANY_ELEMENTS, MOST_TREES = 1_000, 500


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
        """Whether each node compares a feature, and is a leaf or has two later nodes of its own.

        The nodes that a root leads to come first, before those that no tree uses.
        """
        node = torch.arange(NODES)[:, None]
        is_leaf = (self.branches == node).all(-1)
        is_decision = ((self.branches > node) & (self.branches < NODES)).all(-1)
        if not (is_leaf | is_decision).all():
            return False
        is_child = nn.functional.one_hot(self.branches.long(), NODES).sum(2)  # (T, node, child)
        parents = (is_child * is_decision[..., None]).sum(1)
        last = 2 * is_decision.sum(1, keepdim=True)
        is_of_tree = (node.T > 0) & (last >= node.T)
        is_feature = (self.features >= 0) & (self.features < num_features)
        return bool((parents == is_of_tree).all() and is_feature.all())

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores `(...)` of elements `(..., d)`."""
        if torch.onnx.is_in_onnx_export():
            return _Operator.apply(inputs, self.walk)  # type: ignore[no-untyped-call]
        is_worth_it = len(self) <= MOST_TREES and inputs.shape[:-1].numel() >= MANY_ELEMENTS
        is_on_cpu = inputs.dtype == torch.float32 and inputs.device.type == "cpu"
        if is_worth_it and is_on_cpu and is_eager(inputs):
            return self.exclude(inputs)
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

    def exclude(self, inputs: Tensor) -> Tensor:
        """Return what `walk` returns, for many elements on a CPU in a fraction of the time.

        This is the idea of QuickScorer (Lucchese et al. 2015). Each decision excludes the leaves
        below the child that it does not choose. So the leaf that a walk reaches is the only one
        that no decision of the tree excludes. The bits of a number stand for the leaves of a tree,
        and `&` joins what the values of several features exclude.
        """
        rows = inputs.detach().reshape(-1, inputs.shape[-1])
        is_leaf = self.branches[..., 0] == torch.arange(NODES)
        values, counts = self.values[is_leaf], is_leaf.sum(1)
        first = (counts.cumsum(0) - counts).int()  # of each tree's values
        below = self._leaves_below(is_leaf.numpy())
        decided = [
            (remaining, torch.searchsorted(thresholds, rows[:, feature].contiguous()))
            for feature, thresholds, remaining in self._decisions(below)
        ]
        roots, size = torch.from_numpy(below[:, 0]), max(1, MAX_WALKS // max(1, len(self)))
        scores = [inputs.new_zeros(0)]
        for begin in range(0, len(rows), size):
            end = min(begin + size, len(rows))
            left = roots.repeat(end - begin, 1)
            for remaining, places in decided:
                left &= remaining.index_select(0, places[begin:end])
            leaves = (left.float().view(torch.int32) >> 23) - 127  # the exponent: the bit's place
            reached = values.index_select(0, (leaves + first).flatten())
            scores.append(reached.view(left.shape).sum(1))
        return torch.cat(scores).reshape(inputs.shape[:-1])

    def _leaves_below(self, is_leaf: NDArray[np.bool_]) -> NDArray[np.int16]:
        """Return the leaves below each node `(T, NODES)`. Bit i stands for leaf i of the tree."""
        branches, trees = self.branches.numpy(), np.arange(len(self))
        below = (1 << (is_leaf.cumsum(1) - 1)).astype(np.int16)
        for node in reversed(range(NODES)):
            first, second = branches[:, node].T
            of_children = below[trees, first] | below[trees, second]
            below[:, node] = np.where(is_leaf[:, node], below[:, node], of_children)
        return below

    def _decisions(self, below: NDArray[np.int16]) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield what the values of each feature decide, given the leaves below each node.

        Yields:
            A feature, its thresholds `(K,)` in increasing order, and the leaves `(K + 1, T)` that
            remain in each tree if 0, 1, ..., K of the thresholds are lower than the value.
        """
        branches = self.branches.numpy()
        at = trees, _ = np.nonzero(branches[..., 0] != np.arange(NODES))
        features, thresholds = self.features.numpy()[at], self.thresholds.numpy()[at]
        without_first, without_second = ~below[trees, branches[at].T]
        for feature in np.unique(features):
            of = np.flatnonzero(features == feature)
            of = of[np.argsort(thresholds[of])]
            low, high = np.full((2, len(of) + 1, len(self)), -1, np.int16)
            high[np.arange(len(of)) + 1, trees[of]] = without_first[of]
            low[np.arange(len(of)), trees[of]] = without_second[of]
            remaining = np.bitwise_and.accumulate(high)
            remaining &= np.bitwise_and.accumulate(low[::-1])[::-1]
            yield int(feature), torch.from_numpy(thresholds[of]), torch.from_numpy(remaining)


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
