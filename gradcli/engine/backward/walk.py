"""The backward pass: every node runs once, with the whole cotangent of each of its outputs, latest node first.

The walk is a loop over a heap of ready nodes, so that its depth does not grow with the graph; the cotangents under way
live in one dict of this call, and go with it. In a pass that is not recorded they are bare arrays, wherever a rule can
do with arrays: tensors are made of them for users' rules and hooks, and for what is handed out.
"""

from __future__ import annotations

import heapq
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.backward.cotangents import fit, fitted, refuse_count
from gradcli.engine.backward.hooks import through_hooks, through_post_hooks, through_pre_hooks
from gradcli.engine.backward.ownership import held_once
from gradcli.engine.dtypes import BY_NUMPY, Size
from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import AccumulateGrad, Edge, GradientEdge, Meta, Node
from gradcli.engine.tensor import Tensor, from_array

NOT_USED = (
    "The differentiated Tensor at index {} appears to not have been used in the graph. Set "
    "allow_unused=True if this is "
    "the desired behavior."
)


def _meta(output: Tensor | GradientEdge) -> Meta:
    """Return the shape and element type that the cotangent of an output has."""
    if isinstance(output, Tensor):
        return output._data.shape, output._data.dtype
    node, number = output
    found: Meta = node._outputs[number]
    return found


def first_cotangents(outputs: Sequence[Tensor | GradientEdge], given: Sequence[Tensor | None]) -> list[Tensor]:
    """Return the cotangent each output starts with: the given one, or 1 for an output of one element.

    Raises:
        AssertionError: an output is neither a tensor nor an edge of the graph.
        RuntimeError: shapes differ, an output is untracked, or has several elements and no cotangent.
    """
    if len(given) < len(outputs):  # more are accepted, and left alone, as in PyTorch
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    result: list[Tensor] = []
    for number, (output, cotangent) in enumerate(zip(outputs, given, strict=False)):
        if not isinstance(output, (Tensor, GradientEdge)):
            raise AssertionError("Expected output to be a torch.Tensor")
        if cotangent is None:
            result.append(_implicit_one(output))
            continue
        if not isinstance(cotangent, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(cotangent).__name__}")
        shape, kind = _meta(output)
        if cotangent._data.shape != shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{number}] has a shape of {Size(cotangent._data.shape)} and "
                f"output[{number}] has a shape of {Size(shape)}."
            )
        if (cotangent._data.dtype.kind == "c") != (kind.kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{number}] has a dtype of {cotangent.dtype} and output[{number}] has a dtype of "
                f"{BY_NUMPY[kind]}."
            )
        result.append(cotangent)
    for number, output in enumerate(outputs):
        if isinstance(output, Tensor) and not output.requires_grad:
            raise RuntimeError(f"element {number} of tensors does not require grad and does not have a grad_fn")
    return result


def _implicit_one(output: Tensor | GradientEdge) -> Tensor:
    shape, kind = _meta(output)
    if not isinstance(output, Tensor) or output.requires_grad:
        if math.prod(shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if kind.kind == "c":
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {BY_NUMPY[kind]}")
    return from_array(np.ones(shape, kind))


class Walk:
    """One backward pass.

    Args:
        retain_graph: keep what the nodes have saved.
        create_graph: record the pass itself.
        inputs: where to stop and hand out cotangents; None accumulates into every leaf that is reached.
        accumulate: the inputs keep their gradients, and the nodes of those that are results run, as in PyTorch.
    """

    def __init__(
        self,
        *,
        retain_graph: bool,
        create_graph: bool,
        inputs: Sequence[Tensor] | None,
        accumulate: bool = False,
    ) -> None:
        self.accumulate = accumulate
        self.retain_graph = retain_graph or STATE.forward
        self.selective = inputs is not None
        self.anomaly = STATE.anomaly
        self.create_graph = create_graph
        self.targets: dict[Node, list[tuple[int, int]]] = {}
        self.captured: list[Tensor | None] = []
        self.inputs = inputs
        if inputs is not None:
            self.captured = [None] * len(inputs)
            for position, tensor in enumerate(inputs):
                if not isinstance(tensor, (Tensor, GradientEdge)):
                    raise RuntimeError(
                        f"all inputs have to be Tensors or GradientEdges, but got {type(tensor).__name__}"
                    )
                node, number = tensor._edge()
                if node is None:
                    raise RuntimeError("One of the differentiated Tensors does not require grad")
                self.targets.setdefault(node, []).append((number, position))
        # For each node ahead: how many edges still lead to it, and what has arrived for each of its outputs.
        self.state: dict[Node, list[Any]] = {}
        self.useful: dict[Node, bool] = {}
        self.heap: list[tuple[int, int, Node]] = []
        self.pushed = 0

    def run(self, roots: Sequence[tuple[Edge, Tensor]]) -> list[Tensor | None]:
        """Carry the cotangents of the roots through the graph, and return those of the inputs."""
        starts = [edge[0] for edge, _ in roots if edge[0] is not None]
        self._survey(starts)
        enabled, STATE.enabled = STATE.enabled, self.create_graph
        outer, STATE.walk = STATE.walk, self
        warned = np.seterr(all="ignore")
        try:
            for (node, number), cotangent in roots:
                if node is not None:
                    slots, fitting = self.state[node], fit(cotangent, node._outputs[number], None, number)
                    if slots[number + 1] is None:
                        slots[number + 1] = fitting
                    else:
                        self._deliver(slots, number + 1, fitting)
            for start in dict.fromkeys(starts):
                if self.state[start][0] == 0:
                    self._push(start)
            heap, pop = self.heap, heapq.heappop
            while heap:
                self._visit(pop(heap)[2])
        finally:
            np.seterr(**warned)
            STATE.enabled, STATE.walk = enabled, outer
        return self.captured

    def _survey(self, starts: Sequence[Node]) -> None:
        """Count, for every node that can be reached, the edges that lead to it; mark those worth running."""
        state = self.state
        order: list[Node] = []
        stack: list[Node] = []
        for start in starts:
            if start not in state:
                state[start] = [0] + [None] * len(start._outputs)
                stack.append(start)
        while stack:
            node = stack.pop()
            order.append(node)
            for following, _ in node._edges:
                if following is None:
                    continue
                slots = state.get(following)
                if slots is None:
                    state[following] = [1] + [None] * len(following._outputs)
                    stack.append(following)
                else:
                    slots[0] += 1
        if self.inputs is not None:
            self._mark_useful(order)

    def _mark_useful(self, order: list[Node]) -> None:
        """Mark the nodes from which an input can be reached, walking the edges backwards from the inputs."""
        users: dict[Node, list[Node]] = {}
        for node in order:
            for following, _ in node._edges:
                if following is not None:
                    users.setdefault(following, []).append(node)
        stack = [node for node in self.targets if node in self.state]
        if self.accumulate:
            self.useful.update((node, True) for node in stack if not isinstance(node, AccumulateGrad))
        while stack:
            for user in users.get(stack.pop(), ()):
                if user not in self.useful:
                    self.useful[user] = True
                    stack.append(user)

    def _push(self, node: Node) -> None:
        pushed = self.pushed = self.pushed + 1
        heapq.heappush(self.heap, (-node._number, pushed, node))

    def _deliver(self, slots: list[Any], place: int, cotangent: Any) -> None:
        """Add a cotangent to one that has arrived before, in place where nobody else refers to that."""
        if self.create_graph:
            slots[place] = slots[place] + cotangent
            return
        array = cotangent._data if isinstance(cotangent, Tensor) else cotangent
        if held_once(slots, place):
            np.add(slots[place], array, out=slots[place])
        else:
            present = slots[place]
            slots[place] = np.add(present._data if isinstance(present, Tensor) else present, array)

    def _visit(self, node: Node) -> None:
        slots = self.state.pop(node)
        chosen = not self.selective or (node in self.useful and node not in self.targets)
        if node._watched or self.anomaly or not chosen:
            self._visit_watched(node, slots[1:])
        elif isinstance(node, AccumulateGrad):
            if node.variable._backward_hooks:
                self._visit_watched(node, slots[1:])
            elif slots[1] is not None:
                node.variable._accumulate(slots[1], held_once(slots, 1))
        else:
            if node._on_arrays and not self.create_graph:
                results = _run_on_arrays(node, slots[1])
            else:
                results = self._run_on_tensors(node, slots[1:])
            if node._entries and not self.retain_graph:
                node._release()
            self._hand_on(node, results)

    def _run_on_tensors(self, node: Node, cotangents: list[Any]) -> tuple[Any, ...]:
        _wrap(cotangents)
        results = node._run(cotangents)
        if self.create_graph or node._is_users:
            return results
        return tuple([_bared(result, cotangents) for result in results])

    def _visit_watched(self, node: Node, cotangents: list[Any]) -> None:
        """As `_visit`, where hooks are called, cotangents are kept or handed out, or nothing is to be done at all."""
        _wrap(cotangents)
        if isinstance(node, AccumulateGrad):
            if node.variable._backward_hooks and self._wanted(node):
                cotangents[0] = through_hooks(node.variable._backward_hooks, cotangents[0])
        elif (node._tensor_hooks or node._retained) and self._wanted(node):
            self._output_hooks(node, cotangents)
        if self.inputs is not None:
            for number, position in self.targets.get(node, ()):
                self.captured[position] = cotangents[number]
        results: tuple[Any, ...] = (None,) * len(node._edges)
        if self.inputs is None or node in self.useful:
            results = self._execute(node, cotangents)
        self._hand_on(node, results)

    def is_ahead(self, node: Node | None) -> bool:
        """Tell whether this pass will come to a node on the way to what was asked for."""
        return node in self.state and self._wanted(node)

    def _wanted(self, node: Node) -> bool:
        """Tell whether a node lies on the way to what was asked for."""
        return self.inputs is None or node in self.useful or node in self.targets

    def _leads_on(self, following: Node | None) -> bool:
        return following is not None and self._wanted(following)

    def _hand_on(self, node: Node, results: Sequence[Any]) -> None:
        """Give each result, in the shape and type of what it belongs to, to the node that comes next."""
        edges = node._edges
        if len(results) != len(edges):
            refuse_count(node, results)
        state = self.state
        for position, (following, number) in enumerate(edges):
            if following is None:
                continue
            slots = state[following]
            result = results[position]
            if result is not None:
                meta = following._outputs[number]
                array = result._data if isinstance(result, Tensor) else result
                if array.dtype is not meta[1] or array.shape != meta[0]:
                    result = fit(result, meta, node, position)
                if slots[number + 1] is None:
                    slots[number + 1] = result
                else:
                    self._deliver(slots, number + 1, result)
            if slots[0] == 1:
                self._push(following)
            else:
                slots[0] -= 1

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
            results = fitted(node, node._run(cotangents))
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
        if self.inputs is not None and not node._is_users:
            ahead = zip(results, node._edges, strict=True)
            results = tuple([result if self._leads_on(following) else None for result, (following, _) in ahead])
        if node._post_hooks:
            results = through_post_hooks(node, results, cotangents)
        if not self.retain_graph:
            node._release()
        return results


def _run_on_arrays(node: Node, cotangent: Any) -> tuple[Any, ...]:
    """Run a rule that can do with arrays; a result in the memory of a user's tensor stays tied to that tensor."""
    if cotangent is None:
        return (None,) * len(node._edges)
    given = cotangent if isinstance(cotangent, Tensor) else None
    try:
        returned = node._vjp(cotangent if given is None else given._data)
    except ValueError as error:  # NumPy's, of arrays that do not fit, as an unpack hook may give them
        raise RuntimeError(str(error)) from error
    results = returned if type(returned) is tuple else (returned,)
    return results if given is None else tuple([_tied(result, given) for result in results])


def _tied(result: Any, given: Tensor) -> Any:
    if result is given._data:
        return given
    if isinstance(result, np.ndarray) and result.base is not None:
        view = from_array(result)
        view._counter = given._shared_counter()
        return view
    return result


def _bared(result: Tensor | None, cotangents: list[Any]) -> Any:
    """Return the array of a rule's result if nothing else refers to it: no view, and not what the rule was given."""
    if result is None or result._counter is not None or any(result is entry for entry in cotangents):
        return result
    return result._data


def _wrap(cotangents: list[Any]) -> None:
    """Make tensors of the arrays among the cotangents of a node."""
    for number, entry in enumerate(cotangents):
        if entry is not None and not isinstance(entry, Tensor):
            cotangents[number] = from_array(entry)


def _refuse_nan(node: Node, results: Sequence[Tensor | None]) -> None:
    for position, result in enumerate(results):
        if result is not None and bool(np.isnan(result._data).any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {position}th output.")
