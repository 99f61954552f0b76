"""The namespace `func`: functions that make derivatives of functions.

They are built on the recorded graph. A level's own point is a leaf, or a view of the tensor of the level outside of
it, so that levels nest; and a result that depends on nothing but the level's own point leaves the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from gradcli.engine.autograd.functional import jacobian as _jacobian
from gradcli.engine.autograd.functional import jvp as _jvp
from gradcli.engine.backward.api import grad as _grad
from gradcli.engine.creation import zeros_like
from gradcli.engine.grad_mode import enable_grad, no_grad
from gradcli.engine.graph import AccumulateGrad
from gradcli.engine.nn.base.module import Module
from gradcli.engine.ops.joining import stack
from gradcli.engine.tensor import Tensor

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]


# The leaves that levels have made for points, by identity, once their level has its result.
_DONE: WeakValueDictionary[int, Tensor] = WeakValueDictionary()


def functional_call(
    module: Module, parameters_and_buffers: Any, args: Any = None, kwargs: dict[str, Any] | None = None
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    Args:
        module: the module.
        parameters_and_buffers: tensors by dotted names, or a tuple of such dicts; the others stay the module's own.
        args: an argument, or a tuple of arguments.
        kwargs: named arguments.

    Raises:
        AttributeError: the module has nothing of that name.
    """
    dicts = parameters_and_buffers if isinstance(parameters_and_buffers, tuple) else (parameters_and_buffers,)
    places: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in [pair for entries in dicts for pair in entries.items()]:
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            store = owner._parameters if last in owner._parameters else owner._buffers
            if last not in store:
                raise AttributeError(f"{type(module).__name__} has no parameter or buffer `{name}`")
            places.append((store, last, store[last]))
            store[last] = value
        given = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*given, **(kwargs or {}))
    finally:
        for store, last, before in reversed(places):
            store[last] = before


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to every tensor of nested tuples, lists and dicts."""
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(function, entry) for entry in value)
    if isinstance(value, dict):
        return {key: _mapped(function, entry) for key, entry in value.items()}
    return function(value) if isinstance(value, Tensor) else value


def _tensors(value: Any) -> list[Tensor]:
    found: list[Tensor] = []
    _mapped(found.append, value)
    return found


def _point(tensor: Tensor) -> Tensor:
    return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()


def _settled(value: Any, points: list[Tensor]) -> Any:
    """Detach the tensors that depend on no leaf but points of this level, and of levels within that are done."""
    for point in points:
        if point.is_leaf:
            _DONE[id(point)] = point

    def settle(tensor: Tensor) -> Tensor:
        stack_, seen = [tensor._edge()[0]], set()
        while stack_:
            node = stack_.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if isinstance(node, AccumulateGrad) and _DONE.get(id(node.variable)) is not node.variable:
                return tensor
            stack_ += [following for following, _ in node._edges]
        return tensor.detach()

    return _mapped(settle, value)


def _chosen(args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[tuple[Any, ...], Any]:
    """Return the arguments with points in the chosen places, and the chosen ones."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    numbers = tuple(number % len(args) for number in numbers)
    full = tuple(_mapped(_point, value) if place in numbers else value for place, value in enumerate(args))
    picked = tuple(full[number] for number in numbers)
    return full, picked[0] if isinstance(argnums, int) else picked


def _pulled(outputs: list[Tensor], chosen: Any, cotangents: list[Tensor] | None) -> Any:
    """Return the cotangents of the chosen tensors, in their structure; zeros where nothing depends on them."""
    points = _tensors(chosen)
    tracked = [place for place, output in enumerate(outputs) if output.requires_grad]
    found: tuple[Any, ...] = (None,) * len(points)
    if tracked:
        starts = None if cotangents is None else [cotangents[place] for place in tracked]
        roots = [outputs[place] for place in tracked]
        found = _grad(roots, points, starts, retain_graph=True, create_graph=True, allow_unused=True)
    entries = iter([zeros_like(p) if entry is None else entry for entry, p in zip(found, points, strict=True)])
    return _mapped(lambda _: next(entries), chosen)


def grad_and_value(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Any:
    """Return a function that gives the gradient of `func`, and its value.

    Args:
        func: a function with one output of one element (and further results, with `has_aux`).
        argnums: which arguments to differentiate by.
        has_aux: `func` returns (output, anything); the pair is given back as the value.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            full, chosen = _chosen(args, argnums)
            result = func(*full, **kwargs)
            output, aux = result if has_aux else (result, None)
            if not isinstance(output, Tensor) or output._data.ndim:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got "
                    + (f"tensor with {output._data.ndim} dims" if isinstance(output, Tensor) else str(type(output)))
                    + ". Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            gradients = _pulled([output], chosen, None)
        points = _tensors(chosen)
        value = (_settled(output, points), _settled(aux, points)) if has_aux else _settled(output, points)
        return _settled(gradients, points), value

    return run


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Any:
    """Return a function that gives the gradient of `func` (and what else it returns, with `has_aux`)."""
    both = grad_and_value(func, argnums, has_aux)

    def run(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return run


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return `func(*primals)`, and a function from cotangents of the outputs to a tuple of those of the primals."""
    with enable_grad():
        points = _mapped(_point, primals)
        result = func(*points)
    output, aux = result if has_aux else (result, None)
    own = _tensors(points)

    def pull(cotangents: Any) -> Any:
        with enable_grad():
            return _settled(_pulled(_tensors(output), points, _tensors(cotangents)), own)

    value = _settled(output, own)
    return (value, pull, _settled(aux, own)) if has_aux else (value, pull)


def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Return `func(*primals)`, and the tangent of its outputs along those of the primals."""
    points = tuple(_point(primal) for primal in primals)
    value, tangent = _jvp(func, points, tangents, create_graph=True)
    return _settled(value, list(points)), _settled(tangent, list(points))


def jacrev(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Any:
    """Return a function that gives the Jacobian of `func`."""

    def run(*args: Any) -> Any:
        full, chosen = _chosen(args, argnums)
        numbers = (argnums,) if isinstance(argnums, int) else argnums
        places = [number % len(args) for number in numbers]

        def of_chosen(*points: Any) -> Any:
            call = list(full)
            for place, point in zip(places, points, strict=True):
                call[place] = point
            result = func(*call)
            return tuple(result) if isinstance(result, list) else result

        return _settled(
            _jacobian(of_chosen, tuple(chosen) if isinstance(chosen, list) else chosen, create_graph=True),
            _tensors(chosen),
        )

    return run


jacfwd = jacrev


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Any:
    """Return a function that gives the second derivatives of `func`."""
    return jacrev(jacrev(func, argnums), argnums)


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error") -> Any:
    """Return a function that runs `func` for each index of its arguments' axes, and stacks what it returns.

    Args:
        func: a function of tensors, or of nested tuples, lists and dicts of them.
        in_dims: the axis of every argument's tensors, or a tuple of one for each argument; None for what is shared.
        out_dims: the axis along which results are stacked, or a tuple of one for each output.
        randomness: has no effect: the runs follow each other.

    Raises:
        ValueError: there is no such axis, lengths differ, or the function returns something else than tensors.
    """
    del randomness

    def run(*args: Any, **kwargs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        for value, dim in zip(args, dims, strict=True):
            _check_mapped(value, dim)
        sizes = [
            tensor.size(dim)
            for value, dim in zip(args, dims, strict=True)
            if dim is not None
            for tensor in _tensors(value)
        ]
        if len(set(sizes)) != 1:
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
                "mapped dimension"
            )

        def at(index: int, value: Any, dim: int | None) -> Any:
            return value if dim is None else _mapped(lambda tensor: tensor.select(dim, index), value)

        rows = [
            func(*[at(index, value, dim) for value, dim in zip(args, dims, strict=True)], **kwargs)
            for index in range(sizes[0])
        ]
        return _stacked(rows, out_dims, getattr(func, "__name__", repr(func)))

    return run


def _check_mapped(value: Any, dim: Any) -> None:
    """Raise ValueError when an axis to map over is none, or the argument has no tensor."""
    if dim is None:
        return
    if not isinstance(dim, int):
        raise ValueError(f"vmap: expected `in_dims` to be int, None or a tuple of them, got: {type(dim)}")
    found = _tensors(value)
    if not found:
        raise ValueError(
            f"vmap: Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    for tensor in found:
        if not -tensor._data.ndim <= dim < tensor._data.ndim:
            raise ValueError(
                f"vmap: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{tensor._data.ndim} so expected in_dim to satisfy -{tensor._data.ndim} <= in_dim < "
                f"{tensor._data.ndim}."
            )


def _stacked(rows: list[Any], out_dims: Any, name: str) -> Any:
    first = rows[0]
    if isinstance(first, (tuple, list)):
        dims = out_dims if isinstance(out_dims, (tuple, list)) else (out_dims,) * len(first)
        columns = zip(*rows, strict=True)
        return type(first)(_stacked(list(column), dim, name) for column, dim in zip(columns, dims, strict=True))
    if isinstance(first, dict):
        return {key: _stacked([row[key] for row in rows], out_dims, name) for key in first}
    if out_dims is None:
        return first
    if not isinstance(first, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(first)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    with enable_grad() if any(row.requires_grad for row in rows) else no_grad():
        return stack(rows, out_dims)
