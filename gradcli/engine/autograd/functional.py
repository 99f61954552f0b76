"""Derivatives of functions: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.backward.api import grad
from gradcli.engine.creation import zeros_like
from gradcli.engine.grad_mode import enable_grad
from gradcli.engine.tensor import Tensor


def _tuple(value: Any, what: str) -> tuple[Tensor, ...]:
    found = (value,) if isinstance(value, Tensor) else tuple(value)
    if not all(isinstance(entry, Tensor) for entry in found):
        raise TypeError(f"{what} must be a Tensor or a tuple of Tensors, got {type(value).__name__}")
    return found


def _like(value: Any, results: tuple[Any, ...]) -> Any:
    return results[0] if isinstance(value, Tensor) else results


def _call(func: Callable[..., Any], inputs: Any, create_graph: bool) -> tuple[tuple[Tensor, ...], Any]:
    """Run the function on tracked copies of the inputs (on the inputs themselves, aliased, to record further)."""
    given = _tuple(inputs, "inputs")
    points = tuple(
        entry.view_as(entry) if create_graph and entry.requires_grad else entry.detach().requires_grad_()
        for entry in given
    )
    return points, func(*points)


def _require_vector(v: Any, given: Any, what: str) -> None:
    """Raise RuntimeError where a vector is left out; only for a single element it may be."""
    if v is None and not (isinstance(given, Tensor) and given.numel() == 1):
        raise RuntimeError(f"The vector v can only be None if the {what} a single Tensor with a single element.")


def _finished(value: Tensor, create_graph: bool) -> Tensor:
    return value if create_graph else value.detach()


def _grads(
    output: Tensor, points: tuple[Tensor, ...], cotangent: Tensor | None, create_graph: bool, strict: bool
) -> Any:
    if not output.requires_grad:
        if strict:
            raise RuntimeError("The output of the user-provided function is independent of the inputs, in strict mode")
        return tuple(zeros_like(point) for point in points)
    found = grad(output, points, cotangent, retain_graph=True, create_graph=create_graph, allow_unused=True)
    if strict and any(entry is None for entry in found):
        raise RuntimeError("The user-provided function does not use one of its inputs, in strict mode")
    return tuple(zeros_like(p) if entry is None else entry for entry, p in zip(found, points, strict=True))


def _require_strategy(strategy: str, *, vectorize: bool, create_graph: bool) -> None:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more '
            'outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
            f'"reverse-mode". Got {strategy!r}.'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            'functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). '
            'Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            'functional.jacobian: computing Jacobian with `strategy="forward-mode"` requires `vectorize=True`.'
        )


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return d func / d inputs, shaped output axes then input axes; nested tuples for several outputs or inputs.

    Args:
        func: a function of tensors.
        inputs: the point, a tensor or a tuple of tensors.
        create_graph: record the computation, so that the result can be differentiated.
        strict: raise RuntimeError where an output does not depend on an input.
        vectorize: has no effect: rows are computed one by one.
        strategy: "reverse-mode" or "forward-mode"; has no effect on the result, which is the same.
    """
    _require_strategy(strategy, vectorize=vectorize, create_graph=create_graph)
    with enable_grad():
        points, outputs = _call(func, inputs, create_graph)
        blocks = []
        for output in _tuple(outputs, "outputs"):
            flat = output.reshape(-1)
            rows = [_grads(flat[i], points, None, create_graph, strict) for i in range(flat.numel())]
            shape = list(output._data.shape)
            columns = [
                point.stack([row[i] for row in rows]).reshape(shape + list(point._data.shape))
                if rows
                else point.new_zeros(shape + list(point._data.shape))
                for i, point in enumerate(points)
            ]
            blocks.append(_like(inputs, tuple(_finished(column, create_graph) for column in columns)))
    return _like(outputs, tuple(blocks))


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the second derivatives of a function with one output of one element; see `jacobian`."""
    _require_strategy(outer_jacobian_strategy, vectorize=vectorize, create_graph=create_graph)

    def gradient(*points: Tensor) -> Any:
        with enable_grad():
            result = func(*points)
            if not isinstance(result, Tensor) or result.numel() != 1:
                raise RuntimeError("The function given to hessian should return a single value")
            found = _grads(result.reshape(()), points, None, True, strict)
        return _like(inputs, found)

    return jacobian(gradient, inputs, create_graph=create_graph, strict=strict)


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (outputs, v^T J): the value of a function and the product of a cotangent with its Jacobian."""
    with enable_grad():
        points, outputs = _call(func, inputs, create_graph)
        _require_vector(v, outputs, "user-provided function returns")
        results = _tuple(outputs, "outputs")
        cotangents = [None] * len(results) if v is None else list(_tuple(v, "v"))
        tracked = [(result, c) for result, c in zip(results, cotangents, strict=True) if result.requires_grad]
        if not tracked:
            found: tuple[Any, ...] = tuple(zeros_like(point) for point in points)
        else:
            raw = grad(
                [result for result, _ in tracked],
                points,
                [c for _, c in tracked],
                create_graph=create_graph,
                allow_unused=True,
            )
            if strict and any(entry is None for entry in raw):
                raise RuntimeError("The user-provided function does not use one of its inputs, in strict mode")
            found = tuple(zeros_like(p) if entry is None else entry for entry, p in zip(raw, points, strict=True))
    values = tuple(_finished(result, create_graph) for result in results)
    return _like(outputs, values), _like(inputs, tuple(_finished(entry, create_graph) for entry in found))


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (outputs, J v), by differentiating v^T J, which is linear in v."""
    _require_vector(v, inputs, "input to the user-provided function is")
    with enable_grad():
        points, outputs = _call(func, inputs, create_graph)
        results = _tuple(outputs, "outputs")
        tangents = _tuple(v, "v") if v is not None else tuple(zeros_like(point) + 1 for point in points)
        products = []
        for result in results:
            dummy = zeros_like(result).requires_grad_()
            pulled = _grads(result, points, dummy, True, strict)
            total = sum(((p * t.detach()).sum() for p, t in zip(pulled, tangents, strict=True)), result.new_zeros(()))
            products.append(_grads(total, (dummy,), None, create_graph, False)[0])
    values = tuple(_finished(result, create_graph) for result in results)
    return _like(outputs, values), _like(outputs, tuple(_finished(entry, create_graph) for entry in products))


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (value, v^T H) of a function with one output of one element."""
    _require_vector(v, inputs, "input to the user-provided function is")
    with enable_grad():
        points, output = _call(func, inputs, create_graph)
        gradient = _grads(output, points, None, True, strict)
        vectors = _tuple(v, "v") if v is not None else tuple(zeros_like(point) + 1 for point in points)
        total = sum(((g * t.detach()).sum() for g, t in zip(gradient, vectors, strict=True)), output.new_zeros(()))
        found = _grads(total, points, None, create_graph, strict)
    return _finished(output, create_graph), _like(inputs, tuple(_finished(entry, create_graph) for entry in found))


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (value, H v); the same as `vhp`, since a Hessian is symmetric."""
    return vhp(func, inputs, v, create_graph, strict)
