"""A function of arrays as the numerics call it: compiled where a plain call would compile its loops every time anew."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from gradcli.backends.array_transforms import Transforms

Tensors = Sequence[Any]


@final
class Program:
    """A function with its pull-back and push-forward, for hundreds of calls at arrays of the same shapes.

    A loop of the framework's whose body is a function defined inside the user's is another one in every call, and takes
    a tenth of a second to compile. A function that has such loops is compiled as a whole, once; whether it gives the
    same compiled and not is for a check of its own. One that asks for values while it is compiled is called as it is.
    """

    def __init__(self, transforms: "Transforms", function: Callable[..., Any], *, compiled: bool) -> None:
        self._transforms = transforms
        self._function = function
        self._is_compiled = compiled
        self._value = transforms.compiled(function)
        self._pull = transforms.compiled(self._pulled)
        self._push = transforms.compiled(self._pushed)

    def value(self, tensors: Tensors) -> tuple[Any, ...]:
        """The outputs."""
        return self._called(self._value, self._function, *tensors)

    def pull_back(self, tensors: Tensors, rows: Sequence[Tensors]) -> list[tuple[Any, ...]]:
        """The gradients for several sets of cotangents."""
        if self._is_compiled:
            return [self._called(self._pull, self._pulled, tuple(tensors), tuple(row)) for row in rows]
        _, pull = self._transforms.adjoint(self._function, *tensors)
        return [pull(row) for row in rows]

    def push_forward(self, tensors: Tensors, tangents: Tensors) -> tuple[Any, ...]:
        """The derivative of the outputs along tangents."""
        return self._called(self._push, self._pushed, tuple(tensors), tuple(tangents))

    def _pulled(self, tensors: Tensors, row: Tensors) -> tuple[Any, ...]:
        return self._transforms.adjoint(self._function, *tensors)[1](row)

    def _pushed(self, tensors: Tensors, tangents: Tensors) -> tuple[Any, ...]:
        return self._transforms.pushed(self._function, tensors, tangents)

    def _called(self, compiled: Callable[..., Any], plain: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
        if self._is_compiled:
            try:
                found: tuple[Any, ...] = compiled(*arguments)
            except Exception as error:
                if not self._transforms.asks_for_values(error):
                    raise
                self._is_compiled = False
            else:
                return found
        result: tuple[Any, ...] = plain(*arguments)
        return result


def of_order(
    transforms: "Transforms", order: int, function: Callable[..., Any], inputs: int, outputs: int
) -> Callable[..., Any]:
    """The function whose derivative is checked at `order`: itself, then (point, cotangents) -> gradients, and so on."""
    for _ in range(order - 1):
        function = _gradient_of(transforms, function, inputs)
        inputs, outputs = inputs + outputs, inputs
    return function


def _gradient_of(transforms: "Transforms", function: Callable[..., Any], inputs: int) -> Callable[..., Any]:
    def gradient(*tensors: Any) -> tuple[Any, ...]:
        _, pull = transforms.adjoint(function, *tensors[:inputs])
        return pull(tensors[inputs:])

    return gradient
