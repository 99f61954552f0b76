"""Derivatives of functions by tangents: Jacobian-vector products and what is made of them.

The tangents are carried along the graph of one call, as `autograd.forward_ad` does it, each time in a table of its own:
levels nest, and one call serves several tangents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.autograd.forward_ad import Tangents, carried, require_fitting, require_numbers
from gradcli.engine.autograd.levels import point, settled, tensors
from gradcli.engine.creation import zeros_like
from gradcli.engine.func.arguments import Argnums, called, output_tensors, places, require_real, without_aux
from gradcli.engine.grad_mode import enable_grad
from gradcli.engine.ops.joining import stack
from gradcli.engine.tensor import Tensor, from_array
from gradcli.engine.utils.trees import leaves, mapped, rebuilt, structure

_JVP = "jvp(f, primals, tangents)"


def _point(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        require_numbers(value, "primal")
    return point(value)


class _Called:
    """A function called once at points of its own, for the tangents of its outputs.

    Args:
        func: the function.
        args: its arguments.
        numbers: which of them have tangents.
        has_aux: it returns (output, anything).
    """

    def __init__(
        self, func: Callable[..., Any], args: tuple[Any, ...], numbers: tuple[int, ...], has_aux: bool = False
    ) -> None:
        with enable_grad():
            full = tuple(mapped(_point, value) if place in numbers else value for place, value in enumerate(args))
            self.output, aux = without_aux(called(func, full), has_aux, _JVP)
        self.points = tensors(tuple(full[number] for number in numbers))
        self.outputs = output_tensors(self.output, _JVP)
        self.value = settled(self.output, self.points)
        self.aux = settled(aux, self.points)

    def pushed(self, tangents: list[Tensor], strict: bool = False) -> list[Tensor]:
        """Return the tangents of the outputs for those of the points."""
        known: Tangents = {}
        for own, tangent in zip(self.points, tangents, strict=True):
            require_fitting(own, tangent)
            node, number = own._edge()
            if node is not None:
                known[node, number] = tangent
        found = [carried(output, known) for output in self.outputs]
        if strict and any(entry is None for entry in found):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        full = [zeros_like(o) if entry is None else entry for entry, o in zip(found, self.outputs, strict=True)]
        return [settled(entry, self.points) for entry in full]


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return `func(*primals)`, and the tangent of its outputs along those of the primals.

    Args:
        func: a function of tensors, or of nested containers of them.
        primals: the tuple of its arguments.
        tangents: the same containers, of tangents.
        strict: refuse an output that does not depend on the primals, instead of giving zeros.
        has_aux: `func` returns (output, anything); the second is given back too.

    Raises:
        RuntimeError: the containers differ, or a tangent does not fit.
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    if structure(primals) != structure(tangents):
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            "tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{structure(primals)} and tangents with structure {structure(tangents)}"
        )
    for name, given in (("primals", leaves(primals)), ("tangents", leaves(tangents))):
        if not given:
            raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
        for entry in given:
            if not isinstance(entry, Tensor):
                raise RuntimeError(f"{_JVP}: Expected {name} to only contain Tensors, got {type(entry)}")
    call = _Called(func, primals, tuple(range(len(primals))), has_aux)
    result = rebuilt(call.output, call.pushed(leaves(tangents), strict))
    return (call.value, result, call.aux) if has_aux else (call.value, result)


def jacfwd(
    func: Callable[..., Any], argnums: Argnums | None = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Any:
    """Return a function that gives the Jacobian of `func`, a column for each entry of its inputs.

    Args:
        func: a function of tensors, or of nested containers of them.
        argnums: which arguments to differentiate by; None for all.
        has_aux: `func` returns (output, anything); the second is given back beside the Jacobian.
        randomness: has no effect: the function is called once.
    """
    del randomness

    def run(*args: Any) -> Any:
        require_real("jacfwd", args, "inputs")
        numbers = tuple(range(len(args))) if argnums is None else places(argnums, len(args))
        call = _Called(func, args, numbers, has_aux)
        require_real("jacfwd", call.outputs, "outputs")
        chosen = tuple(args[number] for number in numbers)
        blocks = [rebuilt(chosen, block) for block in _columns(call)]
        single = [block[0] for block in blocks] if isinstance(argnums, int) else blocks
        jacobian = rebuilt(call.output, single)
        return (jacobian, call.aux) if has_aux else jacobian

    return run


def _columns(call: _Called) -> list[list[Tensor]]:
    """Return, for each output, its Jacobian by every point."""
    blocks: list[list[Tensor]] = [[] for _ in call.outputs]
    for number, own in enumerate(call.points):
        columns = []
        for place in range(own._data.size):
            tangents = [zeros_like(entry) for entry in call.points]
            unit = np.zeros(own._data.shape, own._data.dtype)
            unit.flat[place] = 1
            tangents[number] = from_array(unit)
            columns.append(call.pushed(tangents))
        for place, (block, output) in enumerate(zip(blocks, call.outputs, strict=True)):
            shape = list(output._data.shape) + list(own._data.shape)
            entries = [column[place] for column in columns]
            block.append(stack(entries, -1).reshape(shape) if entries else output.new_zeros(shape))
    return blocks


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return `func(*primals)`, and a function from tangents of the primals to those of the outputs.

    Raises:
        RuntimeError: the containers of the tangents differ from those of the primals, or a tangent does not fit.
    """
    call = _Called(func, primals, tuple(range(len(primals))))
    expected = structure(primals)

    def push(*tangents: Any) -> Any:
        if structure(tangents) != expected:
            raise RuntimeError(
                f"Expected the tangents {structure(tangents)} to have the same argspec as the primals {expected}"
            )
        given = leaves(tangents)
        for place, (tangent, own) in enumerate(zip(given, call.points, strict=True)):
            for what, found, wanted in (
                ("shape", tangent.shape, own.shape),
                ("dtype", tangent.dtype, own.dtype),
            ):
                if found != wanted:
                    raise RuntimeError(
                        f"tangent:{place} with {what} {found} in flattened pytree doesn't match the {what} {wanted} of "
                        "the corresponding primal."
                    )
        return rebuilt(call.output, call.pushed(given))

    return call.value, push
