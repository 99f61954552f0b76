"""Random differentiable expressions with their derivatives carried along in extended precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray

UNARY = ("sin", "cos", "exp", "log", "sqrt", "tanh", "arctan", "square", "cube", "reciprocal", "sigmoid", "softplus")
BINARY = ("+", "-", "*", "/")


@dataclass(frozen=True)
class Dual:
    """A value and its derivative along one direction."""

    value: Array
    slope: Array


def _unary(name: str, a: Dual) -> Dual:
    v, one = a.value, a.value.dtype.type(1)
    if name == "sin":
        y, d = np.sin(v), np.cos(v)
    elif name == "cos":
        y, d = np.cos(v), -np.sin(v)
    elif name == "exp":
        y = np.exp(v)
        d = y
    elif name == "log":
        y, d = np.log(v), one / v
    elif name == "sqrt":
        y = np.sqrt(v)
        d = one / (2 * y)
    elif name == "tanh":
        y = np.tanh(v)
        d = one / np.cosh(v) ** 2
    elif name == "arctan":
        y, d = np.arctan(v), one / (one + v * v)
    elif name == "square":
        y, d = v * v, 2 * v
    elif name == "cube":
        y, d = v * v * v, 3 * v * v
    elif name == "reciprocal":
        y = one / v
        d = -y * y
    elif name == "sigmoid":
        y = one / (one + np.exp(-v))
        d = np.exp(-np.abs(v)) / (one + np.exp(-np.abs(v))) ** 2
    else:
        y, d = np.logaddexp(0 * v, v), one / (one + np.exp(-v))
    return Dual(y, d * a.slope)


def _binary(name: str, a: Dual, b: Dual) -> Dual:
    if name == "+":
        return Dual(a.value + b.value, a.slope + b.slope)
    if name == "-":
        return Dual(a.value - b.value, a.slope - b.slope)
    if name == "*":
        return Dual(a.value * b.value, a.slope * b.value + a.value * b.slope)
    return Dual(a.value / b.value, (a.slope - a.value / b.value * b.slope) / b.value)


@dataclass(frozen=True)
class Expression:
    """A tree: ("x", i), ("c", value), (unary, child) or (binary, left, right)."""

    tree: tuple
    inputs: int

    def evaluate(self, x: Array, direction: Array, dtype: type = np.longdouble) -> Dual:
        """The value at x and the derivative along a direction, in the given precision."""
        with np.errstate(all="ignore"):
            return self._run(self.tree, np.asarray(x, dtype), np.asarray(direction, dtype))

    def _run(self, tree: tuple, x: Array, v: Array) -> Dual:
        if tree[0] == "x":
            return Dual(x[tree[1]], v[tree[1]])
        if tree[0] == "c":
            return Dual(x.dtype.type(tree[1]), x.dtype.type(0))
        children = [self._run(child, x, v) for child in tree[1:]]
        return _unary(tree[0], *children) if len(children) == 1 else _binary(tree[0], *children)

    def __call__(self, x: Array) -> float:
        return float(self.evaluate(x, np.zeros_like(x), np.float64).value)

    def gradient(self, x: Array) -> Array:
        """The exact gradient, rounded once to float64."""
        with np.errstate(all="ignore"):
            return np.array([self.evaluate(x, unit).slope for unit in np.eye(len(x))], dtype=np.float64)


def _tree(rng: np.random.Generator, inputs: int, depth: int) -> tuple:
    if depth == 0 or rng.random() < 0.08:
        if rng.random() < 0.8:
            return ("x", int(rng.integers(inputs)))
        return ("c", float(rng.choice([0.5, 1.0, 2.0, 3.0, -1.5, 10.0])))
    if rng.random() < 0.45:
        return (str(rng.choice(UNARY)), _tree(rng, inputs, depth - 1))
    return (str(rng.choice(BINARY)), _tree(rng, inputs, depth - 1), _tree(rng, inputs, depth - 1))


def random_case(seed: int) -> tuple[Expression, Array]:
    """A random expression and a point where its value and gradient are finite and not astronomically large."""
    for attempt in range(1000):
        rng = np.random.default_rng([seed, attempt])
        inputs = int(rng.integers(1, 6))
        expression = Expression(_tree(rng, inputs, int(rng.integers(2, 7))), inputs)
        x = rng.standard_normal(inputs) * 10.0 ** rng.uniform(-1.5, 1.5)
        value, gradient = expression(x), expression.gradient(x)
        largest = np.abs(gradient * x).max()
        if np.isfinite(value) and np.isfinite(gradient).all() and largest > 0 and max(abs(value), largest) < 1e200:
            return expression, x
    raise RuntimeError(f"no finite expression for seed={seed}")
