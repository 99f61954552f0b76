"""Derivatives of functions: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine.backward.api import grad
from gradcli.engine.creation import zeros_like
from gradcli.engine.grad_mode import enable_grad
from gradcli.engine.tensor import Tensor

STRICT = "This is not allowed in strict mode."
LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    f"independent of the input. {STRICT} You should ensure that your function is twice differentiable and that the "
    "jacobian depends on the inputs (this would be violated by a linear function for example)."
)
UNUSED = f"The output of the user-provided function is independent of input {{}}. {STRICT}"
UNTRACKED = (
    "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode."
)


def _tuple(value: Any, what: str, who: str, source: str = "") -> tuple[Tensor, ...]:
    """Return one tensor, or a tuple of them, as a tuple; TypeError for anything else, a list too."""
    found = value if isinstance(value, tuple) else (value,)
    start = f"The {what}{source} given to {who} must be either a Tensor or a tuple of Tensors but the "
    for place, entry in enumerate(found):
        if not isinstance(entry, Tensor):
            which = f"value at index {place}" if isinstance(value, tuple) else f"given {what}{source}"
            raise TypeError(f"{start}{which} has type {type(entry)}.")
    return found


def _outputs(value: Any, who: str, strict: bool) -> tuple[Tensor, ...]:
    """The outputs of a user's function; in strict mode all must be tracked."""
    found = _tuple(value, "outputs", who, " of the user-provided function")
    untracked = [place for place, output in enumerate(found) if not output.requires_grad] if strict else []
    if untracked:
        raise RuntimeError(UNTRACKED.format(untracked[0]))
    return found


def _one_value(value: Any, who: str, strict: bool) -> Tensor:
    """The one output, of one element, of a function whose second derivatives are taken."""
    found = _outputs(value, who, strict)
    if not isinstance(value, Tensor):
        raise RuntimeError(f"The function given to {who} should return a single Tensor")
    if value.numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {who} should contain a single element")
    return found[0].reshape(())


def _vectors(v: Any, given: Any, fitting: tuple[Tensor, ...], who: str, what: str) -> tuple[Tensor | None, ...]:
    """The vector that a derivative is multiplied by, as a tuple like the tensors that it fits."""
    if v is None:
        if len(fitting) != 1 or fitting[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if the {what} a single Tensor with a single element.")
        return (None,)
    found = _tuple(v, "v", who)
    several = isinstance(given, tuple)
    if len(found) != len(fitting):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(fitting)} but got {len(found)}."
            if several
            else "The given v should contain a single Tensor."
        )
    for place, (vector, tensor) in enumerate(zip(found, fitting, strict=True)):
        if vector.size() != tensor.size():
            where = f"Entry {place} in " if several else ""
            raise RuntimeError(f"{where}v has invalid size: should be {tensor.size()} but got {vector.size()}.")
    return found


def _like(value: Any, results: tuple[Any, ...]) -> Any:
    return results[0] if isinstance(value, Tensor) else results


def _points(inputs: Any, who: str, create_graph: bool) -> tuple[Tensor, ...]:
    """Tracked copies of the inputs (the inputs themselves, aliased, to record further)."""
    return tuple(
        entry.view_as(entry) if create_graph and entry.requires_grad else entry.detach().requires_grad_()
        for entry in _tuple(inputs, "inputs", who)
    )


def _finished(value: Tensor, create_graph: bool) -> Tensor:
    return value if create_graph else value.detach()


def _grads(
    outputs: Sequence[Tensor],
    points: tuple[Tensor, ...],
    cotangents: Sequence[Tensor | None],
    create_graph: bool,
    unused: str = "",
) -> tuple[Tensor, ...]:
    """Return the gradients of outputs; where there is none zeros, or RuntimeError if its text is given."""
    pairs = [pair for pair in zip(outputs, cotangents, strict=True) if pair[0].requires_grad]
    found: tuple[Any, ...] = (None,) * len(points)
    if pairs:
        roots, starts = zip(*pairs, strict=True)
        found = grad(roots, points, starts, retain_graph=True, create_graph=create_graph, allow_unused=True)
    missing = [place for place, entry in enumerate(found) if entry is None]
    if unused and missing:
        raise RuntimeError(unused.format(missing[0]))
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
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
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
    points = _points(inputs, "jacobian", create_graph)
    with enable_grad():
        outputs = func(*points)
        blocks = []
        for number, output in enumerate(_outputs(outputs, "jacobian", strict)):
            flat = output.reshape(-1)
            unused = f"Output {number} of the user-provided function is independent of input {{}}. {STRICT}"
            rows = [
                _grads([flat[i]], points, [None], create_graph, unused if strict else "") for i in range(flat.numel())
            ]
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

    _tuple(inputs, "inputs", "hessian")

    def gradient(*points: Tensor) -> Any:
        with enable_grad():
            output = _one_value(func(*points), "hessian", strict)
            found = _grads([output], points, [None], True)
        untracked = [place for place, entry in enumerate(found) if not entry.requires_grad] if strict else []
        if untracked:
            raise RuntimeError(LINEAR.format(untracked[0]))
        return _like(inputs, found)

    return jacobian(gradient, inputs, create_graph=create_graph, strict=strict)


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (outputs, v^T J): the value of a function and the product of a cotangent with its Jacobian."""
    points = _points(inputs, "vjp", create_graph)
    with enable_grad():
        outputs = func(*points)
        results = _outputs(outputs, "vjp", strict)
        cotangents = _vectors(v, outputs, results, "vjp", "user-provided function returns")
        found = _grads(results, points, cotangents, create_graph, UNUSED if strict else "")
    values = tuple(_finished(result, create_graph) for result in results)
    return _like(outputs, values), _like(inputs, tuple(_finished(entry, create_graph) for entry in found))


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (outputs, J v), by differentiating v^T J, which is linear in v."""
    points = _points(inputs, "jvp", create_graph)
    vectors = _vectors(v, inputs, points, "jvp", "input to the user-provided function is")
    tangents = [zeros_like(p) + 1 if t is None else t.detach() for p, t in zip(points, vectors, strict=True)]
    with enable_grad():
        outputs = func(*points)
        results = _outputs(outputs, "jvp", strict)
        dummies = tuple(zeros_like(result).requires_grad_() for result in results)
        pulled = _grads(results, points, dummies, True, UNUSED if strict else "")
        total = sum(((p * t).sum() for p, t in zip(pulled, tangents, strict=True)), points[0].new_zeros(()))
        products = _grads([total], dummies, [None], create_graph)
    values = tuple(_finished(result, create_graph) for result in results)
    return _like(outputs, values), _like(outputs, tuple(_finished(entry, create_graph) for entry in products))


def _vector_hessian(
    func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, who: str
) -> tuple[Tensor, Any]:
    points = _points(inputs, who, create_graph)
    vectors = _vectors(v, inputs, points, who, "input to the user-provided function is")
    tangents = [zeros_like(p) + 1 if t is None else t.detach() for p, t in zip(points, vectors, strict=True)]
    with enable_grad():
        returned = func(*points)
        output = _one_value(returned, who, strict)
        gradient = _grads([output], points, [None], True, UNUSED if strict else "")
        untracked = [place for place, entry in enumerate(gradient) if not entry.requires_grad] if strict else []
        if untracked:
            raise RuntimeError(LINEAR.format(untracked[0]))
        total = sum(((g * t).sum() for g, t in zip(gradient, tangents, strict=True)), output.new_zeros(()))
        unused = f"The jacobian of the user-provided function is independent of input {{}}. {STRICT}"
        found = _grads([total], points, [None], create_graph, unused if strict else "")
    return _finished(returned, create_graph), _like(inputs, tuple(_finished(entry, create_graph) for entry in found))


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (value, v^T H) of a function with one output of one element."""
    return _vector_hessian(func, inputs, v, create_graph, strict, "vhp")


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (value, H v); the same as `vhp`, since a Hessian is symmetric."""
    return _vector_hessian(func, inputs, v, create_graph, strict, "hvp")
