"""The two primitives of a backend with tensors: a call of forward (`Caller.run`), and a pass back through its graph."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Counters, Gradients, Layout
from gradcli.backends.tensor.framework import Framework, double_precision, same_values
from gradcli.cases import Argument
from gradcli.frozen import dataclass


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The tensors of one call: leaves (by position), what was passed, and all outputs as a tuple.

    `returned` are the outputs as the user's code returned them: on its device, sparse where they are.
    """

    leaves: Mapping[int, Any]
    passed: tuple[Any, ...]
    outputs: tuple[Any, ...]
    returned: tuple[Any, ...]


@final
class Caller:
    """Calls a Function class through `apply`, or any callable, on arrays.

    Every tensor is passed as a clone of a leaf, so that a Function that marks its input dirty may write into it. If
    `protected`, backward gets copies of what was saved, so that it may write into those.
    """

    def __init__(
        self,
        framework: Framework,
        function: Any,
        arguments: Sequence[Argument],
        *,
        layout: Layout = Layout.CONTIGUOUS,
        held: Collection[str] = (),
        casts: Mapping[int, str] | None = None,
        protected: bool = False,
    ) -> None:
        self.framework = framework
        self.function = framework.saving_copies(function) if protected else function
        self.arguments = tuple(arguments)
        self._layout = layout
        self._held = held
        self._casts = casts or {}
        self._is_plain = framework.is_plain and not self._casts and all(a.sparsity is None for a in self.arguments)
        self._is_direct = self._is_plain and layout is Layout.CONTIGUOUS and not any(a.keyword for a in self.arguments)
        self._given = tuple((a.is_tensor, a.value) for a in self.arguments)
        self._keywords = tuple((place, a.name) for place, a in enumerate(self.arguments) if a.keyword)
        self._positions = tuple(place for place, a in enumerate(self.arguments) if not a.keyword)

    def leaves(self, positions: Sequence[int]) -> dict[int, Any]:
        """Leaves with the values of the arguments at `positions`, in their own memory where that can be."""
        arrays = [self.arguments[position].value for position in positions]
        return dict(zip(positions, self.framework.leaves(arrays), strict=True))

    def run(self, leaves: Mapping[int, Any]) -> Call:
        """Call with these tensors, cloned, at their positions and the arguments' own values elsewhere."""
        if self._is_direct:
            from_array = self.framework.from_array
            passed = tuple(
                [
                    leaves[place].clone() if place in leaves else from_array(value) if tensor else value
                    for place, (tensor, value) in enumerate(self._given)
                ]
            )
            result = self.function(*passed)
        else:
            passed = tuple([self._passed(position, leaves) for position in range(len(self.arguments))])
            keywords = {name: passed[place] for place, name in self._keywords}
            result = self.function(*[passed[place] for place in self._positions], **keywords)
        returned = tuple(result) if isinstance(result, tuple | list) else (result,)
        outputs = self.framework.to_host(returned) if self.framework.converts_outputs else returned
        return Call(leaves=leaves, passed=passed, outputs=outputs, returned=returned)

    def _passed(self, position: int, leaves: Mapping[int, Any]) -> Any:
        argument = self.arguments[position]
        if position in leaves:
            clone = leaves[position].clone()
            # A module makes its own parameters, and makes them contiguous.
            if self._layout is not Layout.CONTIGUOUS and argument.name not in self._held:
                laid = laid_out(self.framework, clone, self._layout)
                expanded = self._layout is Layout.EXPANDED
                clone = laid if expanded else self.framework.in_memory_of(clone, laid)
            return clone if self._is_plain else self._to_user(position, clone)
        if argument.is_tensor:
            tensor = self.framework.from_array(argument.value)
            return tensor if self._is_plain else self._to_user(position, tensor)
        return argument.value

    def _to_user(self, position: int, tensor: Any) -> Any:
        return self.framework.to_user_tensor(tensor, self._casts.get(position), self.arguments[position].sparsity)

    def changed(self, call: Call, node: object | None) -> tuple[int, ...]:
        """Positions of tensors that forward changed in place although it did not mark them dirty.

        A tensor marked dirty has the Function's own node as its grad_fn afterwards, or is itself an output.
        """
        positions = []
        for position, tensor in enumerate(call.passed):
            if not self.framework.is_tensor(tensor):
                continue
            before = self.framework.as_array(self._passed(position, call.leaves))
            marked = any(tensor is output for output in call.returned)
            marked = marked or (node is not None and tensor.grad_fn is node)
            if not marked and not same_values(self.framework.as_array(tensor), before):
                positions.append(position)
        return tuple(positions)


def pullback(
    framework: Framework,
    counters: Counters,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    cotangents: Sequence[Any],
    *,
    retain: bool = False,
    create_graph: bool = False,
    zeros: bool = False,
) -> list[Any]:
    """Gradients of the inputs for cotangents of the outputs, by the framework's own backward pass; all are tensors.

    None where no gradient arrives. To be run as the user's code.

    Args:
        framework: whose tensors they are.
        counters: where the pass is booked, if there is anything to pass back.
        outputs: where the pass begins; those that require no gradient are left out.
        inputs: where it ends.
        cotangents: one for each output.
        retain: keep the graph for another pass.
        create_graph: make a graph of the pass itself, and keep that of forward.
        zeros: give zeros in place of None.
    """
    tracked = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    namespace, found = framework.namespace, [None] * len(inputs)
    if tracked:
        counters.backward += 1
        found = namespace.autograd.grad(
            [o for o, _ in tracked],
            inputs,
            [c for _, c in tracked],
            retain_graph=retain or create_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    return [namespace.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)] if zeros else found


def gradients_of(
    framework: Framework,
    counters: Counters,
    call: Call,
    numbers: Sequence[int],
    cotangents: Sequence[NDArray[Any] | None],
    *,
    retain: bool = False,
    layout: Layout = Layout.CONTIGUOUS,
) -> Gradients:
    """Gradients of the leaves of a call, in the order of their positions, as arrays; to be run as the user's code.

    Args:
        framework: whose tensors they are.
        counters: where the pass is booked, if there is anything to pass back.
        call: the call, whose graph is there still.
        numbers: the outputs that the cotangents are for; those that do not exist, or carry no gradient, are left out.
        cotangents: one for each of these outputs; None leaves it out.
        retain: keep the graph for another pass.
        layout: how the cotangents lie in memory.
    """
    given = [
        (call.outputs[n], framework.like(call.outputs[n], np.asarray(c)))
        for n, c in zip(numbers, cotangents, strict=True)
        if c is not None and n < len(call.outputs) and carries_gradient(framework, call.outputs[n])
    ]
    seeds = [c if layout is Layout.CONTIGUOUS else laid_out(framework, c, layout) for _, c in given]
    inputs = list(call.leaves.values())
    return framework.to_arrays(pullback(framework, counters, [o for o, _ in given], inputs, seeds, retain=retain))


def carries_gradient(framework: Framework, output: object) -> bool:
    """Whether an output of forward is a tensor that a gradient can be passed back from."""
    return framework.is_tensor(output) and bool(output.requires_grad)  # type: ignore[attr-defined]


def in_64_bits(arguments: Sequence[Argument]) -> tuple[tuple[Argument, ...], dict[int, str]]:
    """The arguments with every tensor of a lower precision raised to 64 bits, and what those were, by position."""
    low: dict[int, str] = {}
    made: list[Argument] = []
    for position, argument in enumerate(arguments):
        own = argument.dtype_name if argument.is_tensor and argument.value.dtype.kind in "fc" else ""
        wanted = double_precision(own)
        if wanted == own:
            made.append(argument)
            continue
        low[position] = own
        made.append(replace(argument, value=argument.value.astype(wanted), dtype=None))
    return tuple(made), low


def laid_out(framework: Framework, tensor: Any, layout: Layout) -> Any:
    """A tensor of the same values, connected to `tensor` by the graph, that lies in memory as asked.

    Strided: every other column of a buffer twice as wide, a constant between them, so that code which reads on past an
    entry reads what depends on no input. Transposed: the last two axes exchanged in memory. Expanded: one number for
    all entries, which are equal.
    """
    if layout is Layout.TRANSPOSED and tensor.dim() >= 2:
        return tensor.transpose(-1, -2).clone().contiguous().transpose(-1, -2)
    if layout is Layout.STRIDED and tensor.dim() >= 1:
        gaps = framework.namespace.full_like(tensor.detach(), 0.625)
        return framework.namespace.stack([tensor, gaps], -1)[..., 0]
    if layout is Layout.EXPANDED and tensor.dim() >= 1 and tensor.numel():
        return tensor.reshape(-1)[0].expand(tensor.shape)
    return tensor
