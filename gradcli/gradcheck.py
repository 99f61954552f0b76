"""`gradcheck` and `gradgradcheck` under PyTorch's signatures, for engine tensors and torch tensors alike.

Derivatives are central differences with one fixed step, compared by tolerances, since whoever passes `eps` and `atol`
means them (parameters and defaults: PyTorch 2.13, `torch.autograd.gradcheck`). `gradcli check` does better: its steps
adapt and its tolerance is an error bound.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Array = NDArray[Any]
Function = Callable[..., Any]
NONE_TRACKED = (
    "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
)
LOW_PRECISION = (
    "Input #{} requires gradient and is not a double precision floating point or complex. This check will likely fail "
    "if all the inputs are not of double precision floating point or complex. "
)


class GradcheckError(RuntimeError):
    """A gradient that `gradcheck` does not accept."""


def framework_of(tensor: object) -> ModuleType:
    """Return the module in whose names a tensor is worked with: the package above its class that has `autograd`.

    Raises:
        TypeError: no such package is loaded.
    """
    parts = type(tensor).__module__.split(".")
    for length in range(len(parts), 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is not None and {"Tensor", "autograd"} <= vars(module).keys():
            return module
    raise TypeError(
        f"gradcheck expects tensors of a loaded framework, got {type(tensor).__module__}.{type(tensor).__name__}"
    )


def _is_tensor(value: object) -> bool:
    return all(name in dir(type(value)) for name in ("requires_grad", "grad_fn", "detach"))


@functools.cache
def _error_class(framework: ModuleType) -> type[GradcheckError]:
    """Return an error that is also the framework's own, where it has one."""
    theirs = sys.modules.get(framework.__name__ + ".autograd.gradcheck")
    own = vars(theirs).get("GradcheckError") if theirs is not None else None
    if own is None or own is GradcheckError:
        return GradcheckError
    return type("GradcheckError", (GradcheckError, own), {"__doc__": GradcheckError.__doc__})


def _tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,)


class _Problem:
    """A function at a point: its tracked inputs, and its differentiable outputs."""

    def __init__(self, function: Function, inputs: tuple[Any, ...]) -> None:
        self.function = function
        self.inputs = inputs
        self.places = [i for i, value in enumerate(inputs) if _is_tensor(value) and value.requires_grad]
        if not self.places:
            raise ValueError(NONE_TRACKED)
        self.torch = framework_of(inputs[self.places[0]])
        self.error = _error_class(self.torch)

    def tracked(self) -> list[Any]:
        """Return the inputs that are differentiated by."""
        return [self.inputs[place] for place in self.places]

    def outputs(self) -> list[Any]:
        """Return the outputs that have a gradient."""
        return _differentiable(self.function(*self.inputs))

    def values(self) -> list[Array]:
        """Return copies of the outputs' values."""
        return [_array(output).copy() for output in self.outputs()]

    def gradients(self, outputs: Sequence[Any], cotangents: Sequence[Any], **options: Any) -> list[Any]:
        """Return the gradients of all tracked inputs."""
        found = self.torch.autograd.grad(
            list(outputs), self.tracked(), list(cotangents), retain_graph=True, allow_unused=True, **options
        )
        return list(found)


def _differentiable(result: Any) -> list[Any]:
    outputs = _tuple(result)
    return [entry for entry in outputs if _is_tensor(entry) and (entry.is_floating_point() or entry.is_complex())]


def _array(tensor: Any) -> Array:
    """Return the memory of a tensor as an array; writing to it changes the tensor."""
    return np.asarray(
        tensor.detach().resolve_conj().numpy() if "resolve_conj" in dir(tensor) else tensor.detach().numpy()
    )


def _kind(tensor: Any) -> np.dtype[Any]:
    return _array(tensor).dtype


def _directions(array: Array) -> Iterator[tuple[tuple[int, ...], complex]]:
    """Yield every element, once along the real axis, and for complex elements once along the imaginary one."""
    for index in np.ndindex(*array.shape):
        yield index, 1.0
        if array.dtype.kind == "c":
            yield index, 1j


def _numerical(problem: _Problem, eps: float) -> list[list[Array]]:
    """Return, for every input and output, the matrix of central differences: a row for each direction of the input."""
    result = []
    for tensor in problem.tracked():
        memory = tensor.data
        rows: list[list[Array]] = []
        for index, along in _directions(_array(tensor)):
            before = _array(tensor)[index].item()
            memory[index] = before + eps * along
            above = problem.values()
            memory[index] = before - eps * along
            below = problem.values()
            memory[index] = before
            rows.append([((high - low) / (2 * eps)).reshape(-1) for high, low in zip(above, below, strict=True)])
        result.append([np.array(column) for column in zip(*rows, strict=True)])
    return result


def _cotangents(output: Any) -> Iterator[tuple[int, complex, Any]]:
    """Yield one-hot cotangents of an output, for complex outputs also times i."""
    array = _array(output)
    for number, (index, along) in enumerate(_directions(array)):
        seed = np.zeros_like(array)
        seed[index] = along
        yield number, along, seed


def _wrap(problem: _Problem, array: Array, like: Any) -> Any:
    return problem.torch.tensor(array, dtype=like.dtype)


def _analytical(problem: _Problem, outputs: list[Any], number: int) -> list[Array]:
    """Return, for every input, the matrix that backward gives for one output, in the layout of `_numerical`.

    For L = Re(conj(c) y) a gradient is dL/dRe x + i dL/dIm x; with c = 1 and c = i that gives the real and the
    imaginary part of dy along both axes of x.
    """
    output = outputs[number]
    y = _array(output)
    complex_output = y.dtype.kind == "c"
    shapes = [(_array(tensor), _array(tensor).dtype.kind == "c") for tensor in problem.tracked()]
    matrices = [np.zeros((x.size * (2 if split else 1), y.size), dtype=y.dtype) for x, split in shapes]
    for row, along, seed in _cotangents(output):
        column = row // 2 if complex_output else row
        if not output.requires_grad:
            continue
        found = problem.gradients([output], [_wrap(problem, seed, output)])
        for matrix, gradient, (_, split) in zip(matrices, found, shapes, strict=True):
            if gradient is None:
                continue
            values = _array(gradient).reshape(-1)
            parts = np.stack([values.real, values.imag], axis=1).reshape(-1) if split else values.real
            matrix[:, column] += parts * along if complex_output else parts
    return matrices


def _mismatch(
    problem: _Problem, analytic: Any, numeric: Any, output: int, position: int, extra: str = ""
) -> GradcheckError:
    return problem.error(
        f"{extra}Jacobian mismatch for output {output} with respect to input {position},\n"
        f"numerical:{numeric}\nanalytical:{analytic}\n"
    )


def _close(a: Any, n: Any, rtol: float, atol: float) -> bool:
    return bool(np.allclose(a, n, rtol=rtol, atol=atol))


def _text(problem: _Problem, matrix: Array) -> str:
    return str(problem.torch.tensor(matrix))


def _slow(problem: _Problem, outputs: list[Any], eps: float, atol: float, rtol: float, nondet_tol: float) -> None:
    numeric = _numerical(problem, eps)
    for number, output in enumerate(outputs):
        analytic = _analytical(problem, outputs, number)
        for position, matrix in enumerate(analytic):
            if not _close(matrix, numeric[position][number], rtol, atol):
                raise _mismatch(
                    problem, _text(problem, matrix), _text(problem, numeric[position][number]), number, position
                )
        if output.requires_grad:
            again = _analytical(problem, outputs, number)
            for first, second in zip(analytic, again, strict=True):
                if first.size and float(np.abs(first - second).max()) > nondet_tol:
                    raise problem.error(_NOT_REENTRANT.format(np.abs(first - second).max(), nondet_tol))


_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
    "values, although analytical gradient matches numerical gradient. The largest difference was {}; the tolerance for "
    "nondeterminism was {}."
)


def _unit(shape: tuple[int, ...], kind: np.dtype[Any], source: np.random.Generator, count: int) -> list[Array]:
    """Return unit vectors of positive random numbers: one, or for complex types one for each part."""
    result = []
    for _ in range(count):
        vector = source.random(shape) + 0.0
        length = float(np.sqrt((vector**2).sum()))
        real = np.dtype(np.float32 if kind.itemsize == 4 or kind == np.dtype(np.complex64) else np.float64)
        result.append((vector / length if length else vector).astype(real))
    return result


def _fast(problem: _Problem, outputs: list[Any], eps: float, atol: float, rtol: float) -> None:
    """Compare u^T J v for one random u and v of each output and input, as sums of the real and imaginary parts."""
    source = np.random.default_rng(0)
    seeds = []
    for output in outputs:
        y = _array(output)
        parts = _unit(y.shape, y.dtype, source, 2 if y.dtype.kind == "c" else 1)
        seeds.append((parts[0] + 1j * parts[1]).astype(y.dtype) if len(parts) == 2 else parts[0].astype(y.dtype))
    analytic_rows = []
    for output, seed in zip(outputs, seeds, strict=True):
        if output.requires_grad:
            analytic_rows.append(problem.gradients([output], [_wrap(problem, seed, output)]))
        else:
            analytic_rows.append([None] * len(problem.places))
    for position, tensor in enumerate(problem.tracked()):
        x = _array(tensor)
        parts = _unit(x.shape, x.dtype, source, 2 if x.dtype.kind == "c" else 1)
        step = parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0]
        original, memory = x.copy(), tensor.data
        memory.copy_(_wrap(problem, original + eps * step, tensor))
        above = problem.values()
        memory.copy_(_wrap(problem, original - eps * step, tensor))
        below = problem.values()
        memory.copy_(_wrap(problem, original, tensor))
        for number, seed in enumerate(seeds):
            slope = (above[number] - below[number]) / (2 * eps)
            numeric = float((seed.conj() * slope).sum().real)
            found = analytic_rows[number][position]
            analytic = 0.0 if found is None else float((_array(found).conj() * step).sum().real)
            sums = _allowance(problem, seed, step)
            if not _close(analytic, numeric, rtol, atol * sums):
                raise _mismatch(problem, analytic, numeric, number, position, "")


def _allowance(problem: _Problem, seed: Array, step: Array) -> float:
    """Return the factor for `atol`: errors of up to atol in every entry of J add up to this much in u^T J v."""
    del problem
    return float(np.abs(seed).sum() * np.abs(step).sum()) if seed.size and step.size else 1.0


def _undefined_gradients(problem: _Problem) -> None:
    """Backward must take None for gradients of outputs (as it gets them from operations that give none)."""
    outputs = [entry for entry in _differentiable(problem.function(*problem.inputs)) if entry.requires_grad]
    if not outputs:
        return
    choices = [[True] * len(outputs)]
    if len(outputs) > 1:
        choices += [[place != kept for place in range(len(outputs))] for kept in range(len(outputs))]
    undefined = _undefiner(problem)
    for choice in choices:
        passed = undefined(choice, *outputs)
        seeds = [_wrap(problem, np.ones_like(_array(entry)), entry) for entry in outputs]
        try:
            found = problem.gradients(_tuple(passed), seeds)
        except RuntimeError as error:
            raise problem.error(
                'Expected backward function to handle undefined output grads. Please look at "Notes about undefined '
                'output gradients" in "tools/autograd/derivatives.yaml"'
            ) from error
        if all(choice) and any(entry is not None and bool((_array(entry) != 0).any()) for entry in found):
            raise problem.error(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


def _undefiner(problem: _Problem) -> Callable[..., Any]:
    """Return an identity whose backward gives None for chosen outputs."""

    def forward(ctx: Any, choice: list[bool], *tensors: Any) -> Any:
        ctx.choice = choice
        return tuple(tensor.clone() for tensor in tensors)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        return (None, *(None if drop else g for drop, g in zip(ctx.choice, cotangents, strict=True)))

    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    apply: Callable[..., Any] = type("Undefined", (problem.torch.autograd.Function,), body).apply  # type: ignore[attr-defined]  # made at run time
    return apply


def _look_at_backward(problem: _Problem, outputs: list[Any], check_grad_dtypes: bool) -> None:
    """Gradients must have the shape, and where asked the type, of their inputs."""
    tracked = [output for output in outputs if output.requires_grad]
    if not tracked:
        raise problem.error("no Tensors requiring grad found in input")
    seeds = [_wrap(problem, np.zeros_like(_array(entry)), entry) for entry in tracked]
    for gradient, tensor in zip(problem.gradients(tracked, seeds), problem.tracked(), strict=True):
        if gradient is None:
            continue
        if bool((_array(gradient) != 0).any()):
            raise problem.error("backward not multiplied by grad_output")
        if check_grad_dtypes and gradient.dtype != tensor.dtype:
            raise problem.error("grad is incorrect type")
        if gradient.shape != tensor.shape:
            raise problem.error("grad is incorrect size")


def _check_inputs(problem: _Problem) -> None:
    for place in problem.places:
        tensor = problem.inputs[place]
        if _kind(tensor).itemsize * (1 if _kind(tensor).kind == "f" else 0.5) < 8:
            warnings.warn(LOW_PRECISION.format(place), UserWarning, stacklevel=4)
        strides = tensor.stride()
        if any(step == 0 and size > 1 for step, size in zip(strides, tensor.shape, strict=True)):
            raise RuntimeError(
                f"The {place}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on "
                "the input before passing it to gradcheck."
            )
        if not tensor.is_leaf:
            tensor.retain_grad()


def _unsupported(named: dict[str, bool]) -> None:
    for name, asked in named.items():
        if asked:
            raise ValueError(
                f"{name}=True is not available: gradcli.gradcheck checks reverse mode, one gradient at a time"
            )


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients that backward gives with central differences.

    Args:
        func: takes the inputs, and returns a tensor or a tuple of them.
        inputs: a tensor or a tuple; those with requires_grad are differentiated by, others are constants.
        eps: the step of the differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise instead of returning False.
        nondet_tol: how much two runs of the same backward may differ.
        check_undefined_grad: see that backward takes None for gradients of outputs.
        check_grad_dtypes: see that gradients have the element type of their inputs.
        check_batched_grad: not available.
        check_batched_forward_grad: not available.
        check_forward_ad: not available.
        check_backward_ad: False leaves everything unchecked.
        fast_mode: compare one random projection of each Jacobian instead of all its entries.
        masked: has no effect; there are no sparse tensors.

    Returns:
        True when all agree; False when they do not and `raise_exception` is off.

    Raises:
        GradcheckError: a gradient is wrong.
        ValueError: no input requires a gradient, or an option is not available.
    """
    del masked
    _unsupported(
        {
            "check_batched_grad": check_batched_grad,
            "check_batched_forward_grad": check_batched_forward_grad,
            "check_forward_ad": check_forward_ad,
        }
    )
    if not check_backward_ad:
        return True
    problem = _Problem(func, _tuple(inputs))
    try:
        _check(problem, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode)
    except RuntimeError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    problem: _Problem,
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_undefined_grad: bool,
    check_grad_dtypes: bool,
    fast_mode: bool,
) -> None:
    _check_inputs(problem)
    outputs = problem.outputs()
    if not any(output.requires_grad for output in outputs):
        _independent(problem, eps)
        return
    if fast_mode:
        _fast(problem, outputs, eps, atol, rtol)
    else:
        _slow(problem, outputs, eps, atol, rtol, nondet_tol)
    _look_at_backward(problem, outputs, check_grad_dtypes)
    if check_undefined_grad:
        _undefined_gradients(problem)


def _independent(problem: _Problem, eps: float) -> None:
    """Outputs without a gradient must not depend on the inputs."""
    for matrices in _numerical(problem, eps):
        for matrix in matrices:
            if bool((np.abs(matrix) > eps).any()):
                raise problem.error("Numerical gradient for function expected to be zero")


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare second derivatives, by both inputs and cotangents, with central differences of the first.

    Args:
        func: as for `gradcheck`.
        inputs: as for `gradcheck`.
        grad_outputs: the cotangents to differentiate at; random ones unless given.
        eps: the step of the differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        gen_non_contig_grad_outputs: make the random cotangents non-contiguous.
        raise_exception: raise instead of returning False.
        nondet_tol: how much two runs of the same backward may differ.
        check_undefined_grad: see that backward takes None for gradients of outputs.
        check_grad_dtypes: see that gradients have the element type of their inputs.
        check_batched_grad: not available.
        check_fwd_over_rev: not available.
        check_rev_over_rev: False leaves everything unchecked.
        fast_mode: compare one random projection of each Jacobian instead of all its entries.
        masked: has no effect; there are no sparse tensors.

    Returns:
        True when all agree; False when they do not and `raise_exception` is off.

    Raises:
        GradcheckError: a gradient is wrong.
        ValueError: no input requires a gradient, or an option is not available.
    """
    _unsupported({"check_fwd_over_rev": check_fwd_over_rev})
    if not check_rev_over_rev:
        return True
    problem = _Problem(func, _tuple(inputs))
    seeds = _second_seeds(problem, grad_outputs, gen_non_contig_grad_outputs)
    count = len(problem.inputs)

    def first_derivatives(*values: Any) -> Any:
        points = tuple(
            entry.requires_grad_() if _is_tensor(entry) and entry.is_leaf and place in problem.places else entry
            for place, entry in enumerate(values[:count])
        )
        outputs = [entry for entry in _differentiable(func(*points)) if entry.requires_grad]
        tracked = [points[place] for place in problem.places]
        found = problem.torch.autograd.grad(
            outputs, tracked, list(values[count:]), create_graph=True, allow_unused=True
        )
        return tuple(entry for entry in found if entry is not None)

    return gradcheck(
        first_derivatives,
        problem.inputs + tuple(seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
    )


def _second_seeds(problem: _Problem, given: Any, non_contiguous: bool) -> list[Any]:
    if given is not None:
        return list(_tuple(given))
    source = np.random.default_rng(0)
    seeds = []
    for output in problem.outputs():
        if not output.requires_grad:
            continue
        y = _array(output)
        values = source.standard_normal((*y.shape, 2) if non_contiguous else y.shape).astype(y.dtype)
        if y.dtype.kind == "c":
            values = values + (1j * source.standard_normal(values.shape)).astype(y.dtype)
        seed = _wrap(problem, values, output)
        seeds.append((seed[..., 0] if non_contiguous else seed).detach().requires_grad_())
    return seeds
