"""Jacobians by central differences and by backward, compared entry by entry or in one projection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.tolerance.problem import Array, GradcheckError, Problem, array_of


def _directions(array: Array) -> Iterator[tuple[tuple[int, ...], complex]]:
    """Yield every element, once along the real axis, and for complex elements once along the imaginary one."""
    for index in np.ndindex(*array.shape):
        yield index, 1.0
        if array.dtype.kind == "c":
            yield index, 1j


def numerical(problem: Problem, eps: float) -> list[list[Array]]:
    """Return, for every input and output, the matrix of central differences: a row for each direction of the input."""
    result = []
    for tensor in problem.tracked():
        memory = tensor.data
        rows: list[list[Array]] = []
        for index, along in _directions(array_of(tensor)):
            before = array_of(tensor)[index].item()
            memory[index] = before + eps * along
            above = problem.values()
            memory[index] = before - eps * along
            below = problem.values()
            memory[index] = before
            rows.append([((high - low) / (2 * eps)).reshape(-1) for high, low in zip(above, below, strict=True)])
        if not rows:
            result.append([np.zeros((0, value.size)) for value in problem.values()])
            continue
        result.append([np.array(column) for column in zip(*rows, strict=True)])
    return result


def _cotangents(output: Any) -> Iterator[tuple[int, complex, Any]]:
    """Yield one-hot cotangents of an output, for complex outputs also times i."""
    array = array_of(output)
    for number, (index, along) in enumerate(_directions(array)):
        seed = np.zeros_like(array)
        seed[index] = along
        yield number, along, seed


def _analytical(problem: Problem, outputs: list[Any], number: int) -> list[Array]:
    """Return, for every input, the matrix that backward gives for one output, in the layout of `numerical`.

    For L = Re(conj(c) y) a gradient is dL/dRe x + i dL/dIm x; with c = 1 and c = i that gives the real and the
    imaginary part of dy along both axes of x.
    """
    output = outputs[number]
    y = array_of(output)
    complex_output = y.dtype.kind == "c"
    shapes = [(array_of(tensor), array_of(tensor).dtype.kind == "c") for tensor in problem.tracked()]
    matrices = [np.zeros((x.size * (2 if split else 1), y.size), dtype=y.dtype) for x, split in shapes]
    for row, along, seed in _cotangents(output):
        column = row // 2 if complex_output else row
        if not output.requires_grad:
            continue
        found = problem.gradients([output], [problem.tensor(seed, output)])
        for matrix, gradient, (_, split) in zip(matrices, found, shapes, strict=True):
            if gradient is None:
                continue
            values = array_of(gradient).reshape(-1)
            parts = np.stack([values.real, values.imag], axis=1).reshape(-1) if split else values.real
            matrix[:, column] += parts * along if complex_output else parts
    return matrices


def _mismatch(
    problem: Problem, analytic: Any, numeric: Any, output: int, position: int, further: str = ""
) -> GradcheckError:
    return problem.error(
        f"Jacobian mismatch for output {output} with respect to input {position},\n"
        f"numerical:{numeric}\nanalytical:{analytic}\n{further}"
    )


def _in_full(problem: Problem, number: int, position: int, eps: float) -> str:
    """The Jacobians of an output and an input whose projections differ, as the comparison of entries shows them."""
    numeric = numerical(problem, eps)[position][number]
    analytic = _analytical(problem, problem.outputs(), number)[position]
    return (
        "\nThese are products of the Jacobians with random vectors, which fast mode compares. The Jacobians, as slow "
        f"mode computes them:\n\nNumerical:\n {_text(problem, numeric)}\nAnalytical:\n{_text(problem, analytic)}\n\n"
        f"The max per-element difference (slow mode) is: {np.abs(numeric - analytic).max(initial=0.0)}.\n"
    )


def _close(a: Any, n: Any, rtol: float, atol: float) -> bool:
    return bool(np.allclose(a, n, rtol=rtol, atol=atol))


def _text(problem: Problem, matrix: Array) -> str:
    return str(problem.torch.tensor(matrix))


_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
    "values. The largest difference was {}; the tolerance for nondeterminism was {}."
)


def compare_entries(
    problem: Problem, outputs: list[Any], eps: float, atol: float, rtol: float, nondet_tol: float
) -> None:
    """Compare both Jacobians of every output entry by entry, and two runs of backward with each other."""
    numeric = numerical(problem, eps)
    tracked = [number for number, output in enumerate(outputs) if output.requires_grad]
    for shown, number in enumerate(tracked):
        analytic = _analytical(problem, outputs, number)
        require_same(problem, analytic, _analytical(problem, outputs, number), nondet_tol)
        for position, matrix in enumerate(analytic):
            if not _close(matrix, numeric[position][number], rtol, atol):
                raise _mismatch(
                    problem, _text(problem, matrix), _text(problem, numeric[position][number]), shown, position
                )


def require_same(problem: Problem, first: Sequence[Array], second: Sequence[Array], nondet_tol: float) -> None:
    """Two runs of the same backward may differ by `nondet_tol` at most.

    Raises:
        GradcheckError: they differ by more.
    """
    for one, other in zip(first, second, strict=True):
        if one.size and float(np.abs(one - other).max()) > nondet_tol:
            raise problem.error(_NOT_REENTRANT.format(np.abs(one - other).max(), nondet_tol))


def check_reentrancy(problem: Problem, outputs: list[Any], nondet_tol: float) -> None:
    """Run backward twice with the same random cotangents."""
    source = np.random.default_rng(0)
    tracked = [output for output in outputs if output.requires_grad]
    seeds = [problem.tensor(source.standard_normal(array_of(o).shape), o) for o in tracked]
    runs = [[array_of(g) for g in problem.gradients(tracked, seeds) if g is not None] for _ in range(2)]
    require_same(problem, runs[0], runs[1], nondet_tol)


def _unit(shape: tuple[int, ...], kind: np.dtype[Any], source: np.random.Generator, count: int) -> list[Array]:
    """Return unit vectors of positive random numbers: one, or for complex types one for each part."""
    result = []
    for _ in range(count):
        vector = source.random(shape) + 0.0
        length = float(np.sqrt((vector**2).sum()))
        real = np.dtype(np.float32 if kind.itemsize == 4 or kind == np.dtype(np.complex64) else np.float64)
        result.append((vector / length if length else vector).astype(real))
    return result


def compare_projections(
    problem: Problem, outputs: list[Any], eps: float, atol: float, rtol: float, nondet_tol: float
) -> None:
    """Compare u^T J v for one random u and v of each output and input, as sums of the real and imaginary parts.

    Two runs of backward are compared with each other, too.
    """
    source = np.random.default_rng(0)
    tracked = [number for number, output in enumerate(outputs) if output.requires_grad]
    seeds = {number: _seed(array_of(outputs[number]), source) for number in tracked}
    runs = [{n: _pulled(problem, outputs[n], seed) for n, seed in seeds.items()} for _ in range(2)]
    for number in tracked:
        pairs = zip(runs[0][number], runs[1][number], strict=True)
        known = [(one, two) for one, two in pairs if one is not None and two is not None]
        require_same(problem, [one for one, _ in known], [two for _, two in known], nondet_tol)
    for position, tensor in enumerate(problem.tracked()):
        x = array_of(tensor)
        parts = _unit(x.shape, x.dtype, source, 2 if x.dtype.kind == "c" else 1)
        step = parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0]
        above, below = _beside(problem, tensor, x.copy(), eps * step)
        for shown, (number, seed) in enumerate(seeds.items()):
            slope = (above[number] - below[number]) / (2 * eps)
            numeric = float((seed.conj() * slope).sum().real)
            found = runs[0][number][position]
            analytic = 0.0 if found is None else float((found.conj() * step).sum().real)
            sums = _allowance(seed, step)
            if not _close(analytic, numeric, rtol, atol * sums):
                raise _mismatch(problem, analytic, numeric, shown, position, _in_full(problem, number, position, eps))


def _seed(y: Array, source: np.random.Generator) -> Array:
    parts = _unit(y.shape, y.dtype, source, 2 if y.dtype.kind == "c" else 1)
    return np.asarray(parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0]).astype(y.dtype)


def _pulled(problem: Problem, output: Any, seed: Array) -> list[Array | None]:
    found = problem.gradients([output], [problem.tensor(seed, output)])
    return [None if gradient is None else array_of(gradient).copy() for gradient in found]


def _beside(problem: Problem, tensor: Any, original: Array, step: Array) -> tuple[list[Array], list[Array]]:
    """The outputs' values a step to either side of an input, which is restored."""
    memory = tensor.data
    memory.copy_(problem.tensor(original + step, tensor))
    above = problem.values()
    memory.copy_(problem.tensor(original - step, tensor))
    below = problem.values()
    memory.copy_(problem.tensor(original, tensor))
    return above, below


def _allowance(seed: Array, step: Array) -> float:
    """Return the factor for `atol`: errors of up to atol in every entry of J add up to this much in u^T J v."""
    return float(np.abs(seed).sum() * np.abs(step).sum()) if seed.size and step.size else 1.0


def check_independence(problem: Problem, eps: float) -> None:
    """Outputs without a gradient must not depend on the inputs."""
    for matrices in numerical(problem, eps):
        for matrix in matrices:
            if bool((np.abs(matrix) > eps).any()):
                raise problem.error("Numerical gradient for function expected to be zero")
