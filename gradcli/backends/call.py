"""One call of a Function of PyTorch's shape, with everything about it that the battery asks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Layout
from gradcli.backends.framework import Framework, double_precision, same_values
from gradcli.cases import Argument


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The tensors of one call: leaves (by position), what was passed, and all outputs as a tuple.

    `returned` are the outputs as the user's code returned them: on its device, sparse where they are.
    """

    leaves: dict[int, Any]
    passed: tuple[Any, ...]
    outputs: tuple[Any, ...]
    returned: tuple[Any, ...]


@final
class Caller:
    """Calls a Function class through `apply`, or any callable, on arrays.

    Every tensor is passed as a clone of a leaf, so that a Function that marks its input dirty may write into it.
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
    ) -> None:
        self.framework = framework
        self.function = function
        self.arguments = tuple(arguments)
        self._layout = layout
        self._held = held
        self._casts = casts or {}
        self._is_plain = framework.is_plain and not self._casts and all(a.sparsity is None for a in self.arguments)
        self._is_direct = self._is_plain and layout is Layout.CONTIGUOUS and not any(a.keyword for a in self.arguments)
        self._given = tuple((a.is_tensor, a.value) for a in self.arguments)
        self._keywords = tuple((place, a.name) for place, a in enumerate(self.arguments) if a.keyword)
        self._positions = tuple(place for place, a in enumerate(self.arguments) if not a.keyword)

    def leaf(self, value: NDArray[Any], requires_grad: bool) -> Any:
        """A leaf with these values, in their own memory where that can be: what is passed on is a clone of it."""
        tensor = self.framework.as_tensor(np.asarray(value))
        return tensor.requires_grad_() if requires_grad else tensor

    def run(self, leaves: dict[int, Any]) -> Call:
        """Call with these tensors at their positions and the arguments' own values elsewhere."""
        passed = tuple([self._passed(position, leaves) for position in range(len(self.arguments))])
        if self._keywords:
            keywords = {name: passed[place] for place, name in self._keywords}
            result = self.function(*(passed[place] for place in self._positions), **keywords)
        else:
            result = self.function(*passed)
        returned = tuple(result) if isinstance(result, tuple | list) else (result,)
        settled, is_tensor = self.framework.settled, self.framework.is_tensor
        outputs = tuple([settled(output) if is_tensor(output) else output for output in returned])
        return Call(leaves=leaves, passed=passed, outputs=outputs, returned=returned)

    def outputs(self, leaves: Mapping[int, Any], numbers: Sequence[int]) -> list[Any]:
        """Some of the outputs of a call with these tensors at their positions."""
        if not self._is_direct:
            outputs = self.run(dict(leaves)).outputs
            return [outputs[number] for number in numbers]
        from_array, settled, is_tensor = self.framework.from_array, self.framework.settled, self.framework.is_tensor
        result = self.function(
            *[
                leaves[place].clone() if place in leaves else from_array(value) if tensor else value
                for place, (tensor, value) in enumerate(self._given)
            ]
        )
        returned = result if isinstance(result, tuple | list) else (result,)
        found = [returned[number] for number in numbers]
        return [settled(output) if is_tensor(output) else output for output in found]

    def _passed(self, position: int, leaves: dict[int, Any]) -> Any:
        argument = self.arguments[position]
        if position in leaves:
            clone = leaves[position].clone()
            # A module makes its own parameters, and makes them contiguous.
            if self._layout is not Layout.CONTIGUOUS and argument.name not in self._held:
                laid = laid_out(self.framework, clone, self._layout)
                expanded = self._layout is Layout.EXPANDED
                clone = laid if expanded else self.framework.in_memory_of(clone, laid)
            return clone if self._is_plain else self._handed(position, clone)
        if argument.is_tensor:
            tensor = self.framework.from_array(argument.value)
            return tensor if self._is_plain else self._handed(position, tensor)
        return argument.value

    def _handed(self, position: int, tensor: Any) -> Any:
        return self.framework.handed(tensor, self._casts.get(position), self.arguments[position].sparsity)

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
