"""The first derivatives of a function, as a function of its inputs and cotangents."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.tolerance.problem import Function, Problem, array_of, as_tuple, differentiable, is_tensor


def with_cotangents(problem: Problem, grad_outputs: Any, non_contiguous: bool) -> Problem:
    """The first derivatives of a problem, as a problem in its inputs and its cotangents, random unless given."""
    seeds = _second_seeds(problem, grad_outputs, non_contiguous)
    return Problem(_first_derivatives(problem), problem.inputs + tuple(seeds))


def _first_derivatives(problem: Problem) -> Function:
    """Return the function of inputs and cotangents whose results are the first derivatives."""
    count = len(problem.inputs)

    def first_derivatives(*values: Any) -> Any:
        points = tuple(
            entry.requires_grad_() if is_tensor(entry) and entry.is_leaf and place in problem.places else entry
            for place, entry in enumerate(values[:count])
        )
        with problem.torch.enable_grad():
            outputs = [entry for entry in differentiable(problem.function(*points)) if entry.requires_grad]
            tracked = [points[place] for place in problem.places]
            found = problem.torch.autograd.grad(
                outputs, tracked, list(values[count:]), create_graph=True, allow_unused=True
            )
        return tuple(entry for entry in found if entry is not None)

    return first_derivatives


def _second_seeds(problem: Problem, given: Any, non_contiguous: bool) -> list[Any]:
    if given is not None:
        return list(as_tuple(given))
    source = np.random.default_rng(0)
    seeds = []
    for output in problem.outputs():
        if not output.requires_grad:
            continue
        y = array_of(output)
        values = source.standard_normal((*y.shape, 2) if non_contiguous else y.shape).astype(y.dtype)
        if y.dtype.kind == "c":
            values = values + (1j * source.standard_normal(values.shape)).astype(y.dtype)
        seed = problem.tensor(values, output)
        seeds.append((seed[..., 0] if non_contiguous else seed).detach().requires_grad_())
    return seeds
