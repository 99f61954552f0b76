"""Calls of a Function on tensors."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, final

from gradcli.backends.base import Layout
from gradcli.backends.tensor.call_records import Call
from gradcli.backends.tensor.framework import Framework
from gradcli.backends.tensor.precision_and_layout import laid_out
from gradcli.cases import Argument, FrameworkObject


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
        self._original = function
        self.arguments = tuple(self._resolved(each) for each in arguments)
        self._layout = layout
        self._held = held
        self._casts = casts or {}
        self._is_plain = framework.is_plain and not self._casts and all(a.sparsity is None for a in self.arguments)
        self._is_direct = self._is_plain and layout is Layout.CONTIGUOUS and not any(a.keyword for a in self.arguments)
        self._given = tuple((a.is_tensor, a.value) for a in self.arguments)
        self._keywords = tuple((place, a.name) for place, a in enumerate(self.arguments) if a.keyword)
        self._positions = tuple(place for place, a in enumerate(self.arguments) if not a.keyword)

    @cached_property
    def asks_for_grad(self) -> bool:
        """Whether forward may compute something else for tensors that require no gradient."""
        return _reads_requires_grad(self._original)

    def _resolved(self, argument: Argument) -> Argument:
        """The argument with the framework's object for a text that names it."""
        named = isinstance(argument.value, FrameworkObject)
        return replace(argument, value=argument.value.of(self.framework.namespace)) if named else argument

    def leaves(self, positions: Sequence[int]) -> dict[int, Any]:
        """Leaves with the values of the arguments at `positions`, in their own memory where that can be."""
        arrays = [self.arguments[position].value for position in positions]
        return dict(zip(positions, self.framework.leaves(arrays), strict=True))

    def run(self, leaves: Mapping[int, Any]) -> Call:
        """Call with these tensors, cloned, at their positions and the arguments' own values elsewhere."""
        self.framework.exchange = None  # also one that a call which raised has left
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
            passed = tuple([self.passed(position, leaves) for position in range(len(self.arguments))])
            keywords = {name: passed[place] for place, name in self._keywords}
            result = self.function(*[passed[place] for place in self._positions], **keywords)
        exchange = self.framework.exchange
        returned = tuple(result) if isinstance(result, tuple | list) else (result,)
        outputs = self.framework.to_host(returned) if self.framework.converts_outputs else returned
        exchanges = () if exchange is None else (exchange,)
        return Call(leaves=leaves, passed=passed, outputs=outputs, returned=returned, exchanges=exchanges)

    def given(self, position: int, leaves: Mapping[int, Any]) -> Any:
        """The same values as `passed` gives, to be read only."""
        return leaves[position] if self._is_direct and position in leaves else self.passed(position, leaves)

    def passed(self, position: int, leaves: Mapping[int, Any]) -> Any:
        """What forward gets in this place: a clone of the leaf there, else the argument's own value."""
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


def _reads_requires_grad(function: Callable[..., Any]) -> bool:
    """Whether the code of a function, or of the forward that `apply` runs, reads the attribute of tensors."""
    forward = inspect.unwrap(getattr(getattr(function, "__self__", None), "forward", function))
    code = getattr(forward, "__code__", None)
    return code is not None and "requires_grad" in code.co_names
