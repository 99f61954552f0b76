"""The backward pass: every node runs once, with the whole cotangent of each of its outputs, latest node first.

The walk is a loop over a heap of ready nodes, so that its depth does not grow with the graph; the cotangents under way
live in one dict of this call, and go with it.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.backpropagation_hooks import through_hooks, through_post_hooks, through_pre_hooks
from gradcli.engine.dtypes import BY_NUMPY, Size
from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import AccumulateGrad, Edge, Node, OutputMeta
from gradcli.engine.ops.shape import sum_to
from gradcli.engine.tensor import Tensor, from_array

NOT_USED = (
    "The differentiated Tensor at index {} appears to not have been used in the graph. Set "
    "allow_unused=True if this is "
    "the desired behavior."
)


def first_cotangents(outputs: Sequence[Tensor], given: Sequence[Tensor | None]) -> list[Tensor]:
    """Return the cotangent each output starts with: the given one, or 1 for an output of one element.

    Raises:
        RuntimeError: shapes differ, an output is untracked, or has several elements and no cotangent.
    """
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    result: list[Tensor] = []
    for number, (output, cotangent) in enumerate(zip(outputs, given, strict=True)):
        if cotangent is None:
            result.append(_implicit_one(output))
            continue
        if cotangent._data.shape != output._data.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{number}] has a shape of {Size(cotangent._data.shape)} and "
                f"output[{number}] has a shape of {Size(output._data.shape)}."
            )
        if (cotangent._data.dtype.kind == "c") != (output._data.dtype.kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{number}] has a dtype of {cotangent.dtype} and output[{number}] has a dtype of "
                f"{output.dtype}."
            )
        result.append(cotangent)
    for number, output in enumerate(outputs):
        if not output.requires_grad:
            raise RuntimeError(f"element {number} of tensors does not require grad and does not have a grad_fn")
    return result


def _implicit_one(output: Tensor) -> Tensor:
    if output.requires_grad:
        if output._data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if output._data.dtype.kind == "c":
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")
    return from_array(np.ones_like(output._data))


class Walk:
    """One backward pass.

    Args:
        retain_graph: keep what the nodes have saved.
        create_graph: record the pass itself.
        inputs: where to stop and hand out cotangents; None accumulates into every leaf that is reached.
    """

    def __init__(self, *, retain_graph: bool, create_graph: bool, inputs: Sequence[Tensor] | None) -> None:
        self.retain_graph = retain_graph
        self.anomaly = STATE.anomaly
        self.create_graph = create_graph
        self.targets: dict[Node, list[tuple[int, int]]] = {}
        self.captured: list[Tensor | None] = []
        self.inputs = inputs
        if inputs is not None:
            self.captured = [None] * len(inputs)
            for position, tensor in enumerate(inputs):
                node, number = tensor._edge()
                if node is None:
                    raise RuntimeError("One of the differentiated Tensors does not require grad")
                self.targets.setdefault(node, []).append((number, position))
        self.pending: dict[Node, list[Any]] = {}
        self.waiting: dict[Node, int] = {}
        self.useful: dict[Node, bool] = {}
        self.heap: list[tuple[int, int, Node]] = []
        self.pushed = 0

    def run(self, roots: Sequence[tuple[Edge, Tensor]]) -> list[Tensor | None]:
        """Carry the cotangents of the roots through the graph, and return those of the inputs."""
        starts = [edge[0] for edge, _ in roots if edge[0] is not None]
        self._survey(starts)
        enabled, STATE.enabled = STATE.enabled, self.create_graph
        try:
            for (node, number), cotangent in roots:
                if node is not None:
                    self._deliver(node, number, fit(cotangent, node._outputs[number], None, number))
            for start in dict.fromkeys(starts):
                if self.waiting[start] == 0:
                    self._push(start)
            while self.heap:
                self._visit(heapq.heappop(self.heap)[2])
        finally:
            STATE.enabled = enabled
        return self.captured

    def _survey(self, starts: Sequence[Node]) -> None:
        """Count, for every node that can be reached, the edges that lead to it; mark those worth running."""
        waiting = self.waiting
        order: list[Node] = []
        stack: list[Node] = []
        for start in starts:
            if start not in waiting:
                waiting[start] = 0
                stack.append(start)
        while stack:
            node = stack.pop()
            order.append(node)
            for following, _ in node._edges:
                if following is None:
                    continue
                if following in waiting:
                    waiting[following] += 1
                else:
                    waiting[following] = 1
                    stack.append(following)
        if self.inputs is not None:
            self._mark_useful(order)

    def _mark_useful(self, order: list[Node]) -> None:
        """Mark the nodes from which an input can be reached, walking the edges backwards from the inputs."""
        users: dict[Node, list[Node]] = {}
        for node in order:
            for following, _ in node._edges:
                if following is not None:
                    users.setdefault(following, []).append(node)
        stack = [node for node in self.targets if node in self.waiting]
        while stack:
            for user in users.get(stack.pop(), ()):
                if user not in self.useful:
                    self.useful[user] = True
                    stack.append(user)

    def _push(self, node: Node) -> None:
        pushed = self.pushed = self.pushed + 1
        heapq.heappush(self.heap, (-node._number, pushed, node))

    def _deliver(self, node: Node, number: int, cotangent: Tensor | None) -> None:
        """Add a cotangent to what has arrived for an output; an array there is a sum that only this pass refers to."""
        buffer = self.pending.get(node)
        if buffer is None:
            buffer = self.pending[node] = [None] * len(node._outputs)
        if cotangent is None:
            return
        present = buffer[number]
        if present is None:
            buffer[number] = cotangent
        elif self.create_graph:
            buffer[number] = present + cotangent
        elif type(present) is np.ndarray:
            np.add(present, cotangent._data, out=present)
        else:
            buffer[number] = np.asarray(np.add(present._data, cotangent._data))

    def _visit(self, node: Node) -> None:
        cotangents = self.pending.pop(node, None)
        if cotangents is None:
            cotangents = [None] * len(node._outputs)
        watched = (
            node._post_hooks is not None
            or node._pre_hooks is not None
            or node._tensor_hooks is not None
            or node._retained is not None
            or self.inputs is not None
            or self.anomaly
        )
        if isinstance(node, AccumulateGrad):
            if not watched and not node.variable._backward_hooks:
                _accumulate(node.variable, cotangents[0])
                return
            _wrap(cotangents)
            if node.variable._backward_hooks and self._wanted(node):
                cotangents[0] = through_hooks(node.variable._backward_hooks, cotangents[0])
        else:
            _wrap(cotangents)
            if not watched:
                results = node._run(cotangents)
                if not self.retain_graph and node._entries:
                    node._release()
                self._hand_on(node, results, cotangents, not self.create_graph and node._gives_fresh_results)
                return
            if (node._tensor_hooks or node._retained) and self._wanted(node):
                self._output_hooks(node, cotangents)
        if self.inputs is not None:
            for number, position in self.targets.get(node, ()):
                self.captured[position] = cotangents[number]
        results = (None,) * len(node._edges)
        if self.inputs is None or node in self.useful:
            results = self._execute(node, cotangents)
        self._hand_on(node, results, cotangents, False)

    def _wanted(self, node: Node) -> bool:
        """Tell whether a node lies on the way to what was asked for."""
        return self.inputs is None or node in self.useful or node in self.targets

    def _hand_on(self, node: Node, results: Sequence[Any], cotangents: list[Any], fresh: bool) -> None:
        """Give each result, in the shape and type of what it belongs to, to the node that comes next."""
        edges = node._edges
        if len(results) != len(edges):
            _refuse_count(node, results)
        waiting, pending = self.waiting, self.pending
        for position, result in enumerate(results):
            following, number = edges[position]
            if following is None:
                continue
            if result is not None:
                meta, array = following._outputs[number], result._data
                if array.dtype is not meta[1] or array.shape != meta[0]:
                    result = fit(result, meta, node, position)  # noqa: PLW2901  (the fitted one goes on)
            if following in pending or len(following._outputs) != 1:
                self._deliver(following, number, result)
            elif fresh and isinstance(following, AccumulateGrad) and _sole(result, results, cotangents):
                pending[following] = [result._data]
            else:
                pending[following] = [result]
            left = waiting[following] = waiting[following] - 1
            if left == 0:
                self._push(following)

    def _output_hooks(self, node: Node, cotangents: list[Tensor | None]) -> None:
        for number, hooks in list((node._tensor_hooks or {}).items()):
            cotangents[number] = through_hooks(hooks, cotangents[number])
        for number, reference in (node._retained or {}).items():
            tensor = reference()
            cotangent = cotangents[number]
            if tensor is not None and cotangent is not None:
                tensor._grad = cotangent.clone() if tensor._grad is None else tensor._grad + cotangent

    def _execute(self, node: Node, cotangents: list[Tensor | None]) -> tuple[Tensor | None, ...]:
        if node._pre_hooks:
            cotangents = through_pre_hooks(node, cotangents)
        try:
            results = _fitted(node, node._run(cotangents))
            if STATE.anomaly and STATE.check_nan:
                _refuse_nan(node, results)
        except Exception:
            if STATE.anomaly and node._metadata and "traceback_" in node._metadata:
                stack = "".join(node._metadata["traceback_"])
                warnings.warn(
                    f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{stack}",
                    UserWarning,
                    stacklevel=2,
                )
            raise
        if node._post_hooks:
            results = through_post_hooks(node, results, cotangents)
        if not self.retain_graph:
            node._release()
        return results


def _fitted(node: Node, results: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """Return what a rule gave, each in the shape and type of what it belongs to."""
    edges = node._edges
    if len(results) != len(edges):
        _refuse_count(node, results)
    return tuple(
        [
            result if result is None or following is None else fit(result, following._outputs[output], node, position)
            for position, ((following, output), result) in enumerate(zip(edges, results, strict=True))
        ]
    )


def _refuse_count(node: Node, results: Sequence[Any]) -> None:
    raise RuntimeError(
        f"{node.name()} gave {len(results)} gradients for {len(node._edges)} inputs: a rule gives one, or None, for "
        "each"
    )


def _sole(result: Tensor | None, results: Sequence[Any], cotangents: Sequence[Any]) -> bool:
    """Tell whether a rule's result has memory of its own, which nothing else refers to."""
    if result is None or result._data.base is not None:
        return False
    return sum(result is entry for entry in results) == 1 and not any(result is entry for entry in cotangents)


def _wrap(cotangents: list[Any]) -> None:
    for number, entry in enumerate(cotangents):
        if type(entry) is np.ndarray:
            cotangents[number] = from_array(entry)


def _accumulate(leaf: Tensor, cotangent: Any) -> None:
    if type(cotangent) is np.ndarray:
        leaf._accumulate(from_array(cotangent), owned=True)
    elif cotangent is not None:
        leaf._accumulate(cotangent)


def fit(cotangent: Tensor, meta: OutputMeta, node: Node | None, position: int) -> Tensor:
    """Return the cotangent summed to the shape, and cast to the type, of what it belongs to.

    Raises:
        RuntimeError: no sum over broadcast axes gives that shape.
    """
    array = cotangent._data
    if array.shape != meta.shape:
        if not _expandable(meta.shape, array.shape):
            who = f"Function {node.name()} returned" if node is not None else "Backward was given"
            raise RuntimeError(
                f"{who} an invalid gradient at index {position} - got {list(array.shape)} but expected shape "
                f"compatible with {list(meta.shape)}"
            )
        cotangent = sum_to(cotangent, meta.shape)
    if array.dtype != meta.dtype:
        if array.dtype.kind == "c" and meta.dtype.kind != "c":
            if node is not None and not node._may_cast_to_real:
                raise RuntimeError(
                    f"Function {node.name()} returned an invalid gradient at index {position} - expected a real "
                    "gradient "
                    f"for a real input but got {BY_NUMPY[array.dtype]!r}; return its .real"
                )
            cotangent = cotangent.real
        cotangent = cotangent.to(BY_NUMPY[meta.dtype])
    return cotangent


def _expandable(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    if len(shape) > len(larger):
        return False
    return all(size in (1, other) for size, other in zip(reversed(shape), reversed(larger), strict=False))


def _refuse_nan(node: Node, results: Sequence[Tensor | None]) -> None:
    for position, result in enumerate(results):
        if result is not None and bool(np.isnan(result._data).any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {position}th output.")
