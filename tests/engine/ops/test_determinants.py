"""Derivatives of determinants at matrices of every rank, against exact arithmetic and PyTorch."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gradcli import engine
from gradcli.engine.ops import determinants


def exact(matrix: list[list[Fraction]]) -> Fraction:
    """Return a determinant by elimination in fractions."""
    rows, result = [list(row) for row in matrix], Fraction(1)
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            rows[k], rows[pivot], result = rows[pivot], rows[k], -result
        result *= rows[k][k]
        for i in range(k + 1, len(rows)):
            share = rows[i][k] / rows[k][k]
            rows[i] = [x - share * y for x, y in zip(rows[i], rows[k], strict=True)]
    return result


def exact_derivative(matrix: np.ndarray, directions: list[np.ndarray]) -> float:
    """Return the derivative of the determinant along several directions at once.

    det(A + t_1 E_1 + ... + t_q E_q) has degree at most n in each t, and its coefficient of t_1 ... t_q is read off its
    values at t = 0, ..., n.
    """
    n, q = len(matrix), len(directions)
    fractions = [[[Fraction(float(x)) for x in row] for row in part] for part in (matrix, *directions)]
    slopes = _slopes_at_zero(n)
    total = Fraction(0)
    for steps in itertools.product(range(n + 1), repeat=q):
        weight = math.prod((slopes[step] for step in steps), start=Fraction(1))
        if weight:
            moved = [[sum((t * part[i][j] for t, part in zip((1, *steps), fractions, strict=True)), Fraction(0))
                      for j in range(n)] for i in range(n)]  # fmt: skip
            total += weight * exact(moved)
    return float(total)


def _slopes_at_zero(n: int) -> list[Fraction]:
    """Return the slopes at 0 of the polynomials that are 1 at one of 0, ..., n and 0 at the others."""
    slopes = []
    for i in range(n + 1):
        others = [j for j in range(n + 1) if j != i]
        base = math.prod((Fraction(i - j) for j in others), start=Fraction(1))
        terms = (math.prod((Fraction(-j) for j in others if j != left), start=Fraction(1)) for left in others)
        slopes.append(sum(terms, Fraction(0)) / base)
    return slopes


def found_derivative(matrix: np.ndarray, directions: list[np.ndarray]) -> float:
    """Return the same by the engine's backward passes."""
    point = engine.tensor(matrix, requires_grad=True)
    value = engine.linalg.det(point)
    for direction in directions:
        (slope,) = engine.autograd.grad(value, point, create_graph=True)
        value = (slope * engine.tensor(direction)).sum()
    return float(value.detach())


def matrices() -> dict[str, np.ndarray]:
    """Return matrices of every rank, some a rounding error away from a lower one."""
    source = np.random.default_rng(3)
    result = {
        "published": (np.arange(12.0).reshape(3, 4) / 5 - 0.9)[:, :3],
        "counting": np.arange(1.0, 10).reshape(3, 3),
    }
    for n, rank in [(2, 2), (2, 1), (3, 2), (4, 4), (4, 3), (4, 2), (5, 4), (5, 1)]:
        part = source.normal(size=(n, rank)) @ source.normal(size=(rank, n))
        result[f"rank {rank} of {n}"] = part
        if rank < n:
            result[f"almost rank {rank} of {n}"] = part + 1e-9 * source.normal(size=(n, n))
    result["zeros"], result["one entry"] = np.zeros((4, 4)), np.diag([0.0, 2.0, 0, 0])
    result["scales"] = np.diag([1.0, 1e-3, 1e-6, 1e-9]) + np.triu(source.normal(size=(4, 4)), 1)
    result["a rounding"] = np.ones((4, 4)) / 7 + 1e-17 * source.normal(size=(4, 4))
    return result


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", matrices())
def test_derivatives_are_exact(name: str) -> None:
    matrix = matrices()[name]
    source = np.random.default_rng(11)
    for order in (1, 2, 3):
        directions = [source.normal(size=matrix.shape) for _ in range(order)]
        truth = exact_derivative(matrix, directions)
        assert abs(found_derivative(matrix, directions) - truth) < 1e-10 * max(abs(truth), 1e-3), order


def test_the_fourth_derivative_at_zeros() -> None:
    directions = list(np.random.default_rng(11).normal(size=(4, 4, 4)))
    truth = exact_derivative(np.zeros((4, 4)), directions)
    assert abs(found_derivative(np.zeros((4, 4)), directions) - truth) < 1e-10 * abs(truth)


def test_the_formula_with_an_inverse_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above finds det(A) A^-1 wrong, which is right on paper."""
    matrix = matrices()["almost rank 3 of 4"]
    directions = [np.random.default_rng(11).normal(size=matrix.shape) for _ in range(2)]
    truth = exact_derivative(matrix, directions)

    def inverted(a: Any, result: Any = None) -> Any:
        del result
        return determinants.det(a)[..., None, None] * determinants.inv(a)

    monkeypatch.setattr(determinants, "_adjugate", inverted)
    assert abs(found_derivative(matrix, directions) - truth) > 1e-9 * abs(truth)


def test_a_batch_of_every_rank() -> None:
    entries = [matrix for matrix in matrices().values() if len(matrix) == 4]
    point = engine.tensor(np.stack(entries), requires_grad=True)
    (first,) = engine.autograd.grad(engine.linalg.det(point).sum(), point, create_graph=True)
    (second,) = engine.autograd.grad(first.sin().sum(), point)
    for number, entry in enumerate(entries):
        alone = engine.tensor(entry, requires_grad=True)
        (slope,) = engine.autograd.grad(engine.linalg.det(alone), alone, create_graph=True)
        (again,) = engine.autograd.grad(slope.sin().sum(), alone)
        np.testing.assert_allclose(first[number].detach().numpy(), slope.detach().numpy(), atol=1e-12)
        np.testing.assert_allclose(second[number].numpy(), again.numpy(), atol=1e-11)


@pytest.mark.parametrize("values", [np.zeros((0, 0)), np.zeros((0, 4, 4)), np.full((4, 4), np.nan), np.array([[2.0]])])
def test_matrices_without_entries_or_numbers(values: np.ndarray) -> None:
    point = engine.tensor(values, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = engine.linalg.det(point).sum()
    (slope,) = engine.autograd.grad(value, point, create_graph=True)
    assert slope.shape == point.shape
    assert np.isnan(slope.detach().numpy()).all() == (values.size > 1 or not values.size)


def _both_orders(namespace: Any, array: np.ndarray, function: Any) -> list[np.ndarray]:
    point = namespace.tensor(array, requires_grad=True)
    value = function(namespace, point)
    weight = namespace.tensor(np.random.default_rng(2).normal(size=array.shape))
    first = namespace.autograd.grad(value, point, create_graph=True)[0]
    second = namespace.autograd.grad((first * weight).sum().abs(), point)[0]
    return [entry.detach().numpy(force=True) for entry in (value, first, second)]


FUNCTIONS = {
    "det": lambda t, a: t.linalg.det(a).abs().sum(),
    "det of a batch": lambda t, a: t.det(t.stack([a, a.mT * a, a * 0 + a[0]])).abs().sum(),
    "logabsdet": lambda t, a: t.linalg.slogdet(a)[1].sum(),
    "sign": lambda t, a: t.angle(t.slogdet(a)[0] * (2 + 1j)).sum(),
    "sign and logarithm": lambda t, a: (t.slogdet(a)[0] * t.slogdet(a)[1]).abs().sum(),
    "logdet": lambda t, a: t.logdet(a).abs().sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [3, 5])
def test_agrees_with_torch(name: str, size: int) -> None:
    torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")
    source = np.random.default_rng(size)
    real = source.normal(size=(size, size))
    real[0] *= np.sign(np.linalg.det(real))
    for array in (real, real + 1j * source.normal(size=(size, size))):
        if name == "sign" and array.dtype.kind != "c":
            continue
        ours, theirs = (_both_orders(space, array, FUNCTIONS[name]) for space in (engine, torch))
        for mine, reference in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, reference, rtol=1e-8, atol=1e-9)


def test_logdet_of_a_large_matrix_neither_overflows_nor_underflows() -> None:
    for factor in (1e-4, 1e4):
        point = engine.tensor(np.eye(100) * factor, requires_grad=True)
        value = engine.logdet(point)
        value.backward()
        assert abs(value.item() - 100 * math.log(factor)) < 1e-9
        np.testing.assert_allclose(point.grad.numpy(), np.eye(100) / factor, rtol=1e-12)


def test_logdet_of_a_negative_determinant_is_nan_as_in_torch() -> None:
    point = engine.tensor([[0.0, 1.0], [1.0, 0.0]], requires_grad=True)
    value = engine.logdet(point)
    value.backward()
    assert np.isnan(value.item())
    assert point.grad.tolist() == [[0, 0], [0, 0]]
