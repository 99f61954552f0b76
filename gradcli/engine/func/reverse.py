"""Derivatives of functions by backward passes: gradients, vector-Jacobian products, Jacobians and Hessians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.autograd.levels import point, settled, tensors
from gradcli.engine.backward.api import grad as _grad
from gradcli.engine.creation import zeros_like
from gradcli.engine.func.arguments import Argnums, called, output_tensors, require_real, with_points, without_aux
from gradcli.engine.func.forward import jacfwd
from gradcli.engine.grad_mode import STATE, enable_grad
from gradcli.engine.ops.joining import stack
from gradcli.engine.tensor import Tensor, from_array
from gradcli.engine.utils.trees import leaves, mapped, rebuilt, structure

_GRAD = "grad_and_value(f)(*args)"
_VJP = "vjp(f, *primals)"


def _pulled(
    outputs: list[Tensor],
    points: list[Tensor],
    cotangents: list[Tensor] | None,
    retain_graph: bool = True,
    create_graph: bool = True,
) -> list[Tensor]:
    """Return the cotangents of the points; zeros where nothing depends on them."""
    tracked = [place for place, output in enumerate(outputs) if output.requires_grad]
    found: tuple[Any, ...] = (None,) * len(points)
    if tracked:
        starts = None if cotangents is None else [cotangents[place] for place in tracked]
        roots = [outputs[place] for place in tracked]
        found = _grad(roots, points, starts, retain_graph, create_graph, allow_unused=True)
    return [zeros_like(p) if entry is None else entry for entry, p in zip(found, points, strict=True)]


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Any:
    """Return a function that gives the gradient of `func`, and its value.

    Args:
        func: a function with one output, a 0-d tensor (and further results, with `has_aux`).
        argnums: which arguments to differentiate by.
        has_aux: `func` returns (output, anything); the pair is given back as the value.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            full, chosen = with_points(args, argnums)
            output, aux = without_aux(called(func, full, kwargs), has_aux, _GRAD)
            if not isinstance(output, Tensor):
                raise RuntimeError(f"{_GRAD}: Expected f(*args) to return a Tensor, got {type(output)}")
            if output._data.ndim:
                raise RuntimeError(
                    f"{_GRAD}: Expected f(*args) to return a scalar Tensor, got tensor with {output._data.ndim} dims. "
                    "Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            points = tensors(chosen)
            gradients = rebuilt(chosen, _pulled([output], points, None))
        value = (settled(output, points), settled(aux, points)) if has_aux else settled(output, points)
        return settled(gradients, points), value

    return run


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Any:
    """Return a function that gives the gradient of `func` (and what else it returns, with `has_aux`)."""
    both = grad_and_value(func, argnums, has_aux)

    def run(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return run


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return `func(*primals)`, and a function from cotangents of the outputs to a tuple of those of the primals."""
    with enable_grad():
        points = mapped(point, primals)
        output, aux = without_aux(called(func, points), has_aux, _VJP)
    outputs, own = _differentiable(output), tensors(points)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if structure(cotangents) != structure(output):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {structure(cotangents)}, primal output: {structure(output)}"
            )
        recorded = STATE.enabled if create_graph is None else create_graph
        return settled(rebuilt(points, _pulled(outputs, own, leaves(cotangents), retain_graph, recorded)), own)

    value = settled(output, own)
    return (value, pull, settled(aux, own)) if has_aux else (value, pull)


def _differentiable(output: Any) -> list[Tensor]:
    """Return the tensors in a function's output, which must be real or complex numbers."""
    found = output_tensors(output, _VJP)
    for entry in found:
        if entry._data.dtype.kind not in "fc":
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{entry.dtype}"
            )
    return found


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, chunk_size: int | None = None
) -> Any:
    """Return a function that gives the Jacobian of `func`: for each of its outputs, one tensor for each input.

    Args:
        func: a function of tensors, or of nested containers of them.
        argnums: which arguments to differentiate by.
        has_aux: `func` returns (output, anything); the second is given back beside the Jacobian.
        chunk_size: has no effect: rows are computed one by one.

    Raises:
        ValueError: `chunk_size` is not positive.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    def run(*args: Any) -> Any:
        require_real("jacrev", args, "inputs")
        with enable_grad():
            full, chosen = with_points(args, argnums)
            output, aux = without_aux(called(func, full), has_aux, _VJP)
        outputs, points = _differentiable(output), tensors(chosen)
        require_real("jacrev", outputs, "outputs")
        blocks = rebuilt(output, [rebuilt(chosen, _rows(entry, points)) for entry in outputs])
        return (settled(blocks, points), settled(aux, points)) if has_aux else settled(blocks, points)

    return run


def _rows(output: Tensor, points: list[Tensor]) -> list[Tensor]:
    """Return the Jacobian of one output by every point."""
    size, shape = output._data.size, list(output._data.shape)
    units = np.eye(size, dtype=output._data.dtype).reshape(size, *shape)
    rows = [_pulled([output], points, [from_array(np.asarray(unit))], create_graph=STATE.enabled) for unit in units]
    return [
        stack([row[number] for row in rows]).reshape(shape + list(own._data.shape))
        if rows
        else own.new_zeros(shape + list(own._data.shape))
        for number, own in enumerate(points)
    ]


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Any:
    """Return a function that gives the second derivatives of `func`: the tangents of its gradients."""
    return jacfwd(jacrev(func, argnums), argnums)
