"""What a Function does, as numbers: outputs, gradients in several uses, second derivatives, what it changes or keeps.

Two twins are compared by it at the same fresh inputs: a patch is right where it behaves as the right twin does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fix.other_hand.record import flags_of
from gradcli.inputs.builders import build
from gradcli.inputs.flags import parse_argument, parse_input

FRESH = (
    {"N": 2, "M": 5, "K": 4, "L": 3, "B": 3, "T": 7, "D": 6},
    {"N": 4, "M": 3, "K": 6, "L": 2, "B": 1, "T": 5, "D": 2},
)
"""Two sets of sizes, none of which is the one that gradcli is given."""
Behaviour = dict[str, list[Any] | str]
AT_ZEROS = "at zeros"
"""The use in which two right twins may differ: at a kink."""
_TOLERANCE = 1e-9


def arguments(inputs: str, sizes: dict[str, int], seed: int) -> list[tuple[str, Any, bool]]:
    """(name, value, whether it needs a gradient) for each argument that a description of inputs means."""
    flags = flags_of(inputs, sizes)
    specs = [(parse_input if flag == "-i" else parse_argument)(text) for flag, text in flags]
    return [(a.name, a.value, a.requires_grad) for a in build(specs, seed=seed)]


def loaded(text: str, folder: Path, name: str) -> Any:
    """The module of a source text."""
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(str(file))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def behaviour(module: Any, backend: str, target: str, inputs: str, seed: int) -> Behaviour:
    """What the target does at fresh inputs; where a use raises, the exception's type is what it does."""
    given = arguments(inputs, FRESH[seed % len(FRESH)], 100 + seed)
    rng = np.random.default_rng([11, seed])
    if backend == "jax":
        return _jax(getattr(module, target), given, rng)
    if backend == "numpy":
        return _numpy(getattr(module, target), getattr(module, f"{target}_vjp"), given, rng)
    import torch as real_torch

    from gradcli import engine

    return _Calls(real_torch if backend == "torch" else engine, getattr(module, target), given, rng).all()


def differences(one: Behaviour, other: Behaviour) -> list[str]:
    """The uses in which two behaviours differ; of zeros only where the first one takes them."""
    raises = {AT_ZEROS} if isinstance(one.get(AT_ZEROS), str) else set()
    return [use for use in one if use not in raises and not _same(one[use], other.get(use, "absent"))]


def is_finite(gradients: list[Any] | str) -> bool:
    """Whether what was returned has neither NaN nor Inf."""
    return not isinstance(gradients, str) and all(np.isfinite(g).all() for g in gradients)


def _same(one: list[Any] | str, other: list[Any] | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return len(one) == len(other) and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


@contextlib.contextmanager
def _noted(found: Behaviour, use: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # what a mistake does, among them
        found[use] = f"raises {type(error).__name__}"


class _Calls:
    """The uses of a Function of PyTorch or of the engine."""

    def __init__(self, lib: Any, function: Any, given: list[tuple[str, Any, bool]], rng: np.random.Generator) -> None:
        self.lib, self.function, self.given = lib, function, given
        self.tracked = [i for i, (_, _, needs) in enumerate(given) if needs]
        with lib.no_grad():
            shapes = [(np.shape(y), _array(y).dtype.kind) for y in self.call(self.fresh())]
        self.cotangents = [_drawn(rng, shape, kind) for shape, kind in shapes]
        self.probes = [_drawn(rng, np.shape(given[i][1]), given[i][1].dtype.kind) for i in self.tracked]

    def fresh(self, needing: tuple[int, ...] | None = None) -> list[Any]:
        wanted = self.tracked if needing is None else needing
        return [
            self.lib.tensor(value, requires_grad=i in wanted) if isinstance(value, np.ndarray) else value
            for i, (_, value, _) in enumerate(self.given)
        ]

    def call(self, values: list[Any]) -> list[Any]:
        result = self.function.apply(*values)
        return list(result) if isinstance(result, tuple | list) else [result]

    def gradients(self, outputs: list[Any], wanted: list[Any], cotangents: list[Any], **more: Any) -> list[Any]:
        kept = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if y.requires_grad]
        found = self.lib.autograd.grad(
            [y for y, _ in kept], wanted, [g for _, g in kept], allow_unused=True, retain_graph=True, **more
        )
        return [np.zeros(np.shape(w)) if g is None else g for g, w in zip(found, wanted, strict=True)]

    def tensors(self, arrays: list[Any]) -> list[Any]:
        return [self.lib.tensor(a) for a in arrays]

    def all(self) -> Behaviour:
        found: Behaviour = {}
        uses: list[tuple[str, Callable[[], list[Any]]]] = [
            ("first", self.first),
            ("again", lambda: self.first(again=True)),
            ("after another call", lambda: self.first(between=True)),
            ("second", self.second),
            ("what is left", self.left),
            ("transposed cotangent", self.transposed),
            ("kept", self.kept),
            (AT_ZEROS, self.at_zeros),
        ]
        if len(self.tracked) > 1:
            uses += [(f"input {i} alone", lambda i=i: self.first((i,))) for i in self.tracked]  # type: ignore[misc]
        if len(self.cotangents) > 1:
            uses.append(("one output", self.one_output))
        for use, measured in uses:
            with _noted(found, use):
                found[use] = [_array(a) for a in measured()]
        return found

    def first(self, needing: tuple[int, ...] | None = None, *, again: bool = False, between: bool = False) -> list[Any]:
        values = self.fresh(needing)
        wanted = [values[i] for i in (self.tracked if needing is None else needing)]
        outputs = self.call(values)
        if between:
            self.call([v * 0.9 if _floating(v) else v for v in self.fresh()])
        if again:
            self.gradients(outputs, wanted, self.tensors(self.cotangents))
        return [*outputs, *self.gradients(outputs, wanted, self.tensors(self.cotangents))]

    def second(self) -> list[Any]:
        values, cotangents = self.fresh(), self.tensors(self.cotangents)
        for g in cotangents:
            g.requires_grad_(True)
        wanted = [values[i] for i in self.tracked]
        got = self.gradients(self.call(values), wanted, cotangents, create_graph=True)
        probes = self.tensors(self.probes)
        live = [(g, p) for g, p in zip(got, probes, strict=True) if getattr(g, "requires_grad", False)]
        if not live:
            return [np.zeros(())]
        found = self.lib.autograd.grad(
            [g for g, _ in live], [*wanted, *cotangents], [p for _, p in live], allow_unused=True
        )
        return [np.zeros(np.shape(w)) if g is None else g for g, w in zip(found, [*wanted, *cotangents], strict=True)]

    def left(self) -> list[Any]:
        """The cotangents and the inputs after a backward pass."""
        values, cotangents = self.fresh(), self.tensors(self.cotangents)
        self.gradients(self.call(values), [values[i] for i in self.tracked], cotangents)
        return [*cotangents, *(v for v in values if hasattr(v, "shape"))]

    def transposed(self) -> list[Any]:
        values = self.fresh()
        cotangents = [
            self.lib.tensor(np.ascontiguousarray(a.T)).T if a.ndim == 2 else self.lib.tensor(a) for a in self.cotangents
        ]
        return self.gradients(self.call(values), [values[i] for i in self.tracked], cotangents)

    def at_zeros(self) -> list[Any]:
        """As `first`, with zeros among the numbers of inputs that may be negative."""
        values = self.fresh()
        with self.lib.no_grad():
            for i in self.tracked:
                flat = self.given[i][1].reshape(-1)
                if flat.dtype.kind == "f" and flat.size and flat.min() < 0 < flat.max():
                    changed = self.given[i][1].copy()
                    changed.reshape(-1)[::3] = 0
                    values[i] = self.lib.tensor(changed, requires_grad=True)
        outputs = self.call(values)
        if not all(np.isfinite(_array(y)).all() for y in outputs):
            raise ValueError("zeros lie outside of the domain")
        return self.gradients(outputs, [values[i] for i in self.tracked], self.tensors(self.cotangents))

    def one_output(self) -> list[Any]:
        values = self.fresh()
        wanted = [values[i] for i in self.tracked]
        found = []
        for y, g in zip(self.call(values), self.tensors(self.cotangents), strict=True):
            if y.requires_grad:
                found += self.gradients([y], wanted, [g])
        return found

    def kept(self) -> list[Any]:
        """1 for each output that lives on when nobody holds it."""
        gc.collect()
        outputs = self.call(self.fresh())
        alive = [weakref.ref(y) for y in outputs]
        del outputs
        return [np.array(float(y() is not None)) for y in alive]


def _floating(value: Any) -> bool:
    return hasattr(value, "shape") and _array(value).dtype.kind in "fc"


def _array(value: Any) -> Any:
    if hasattr(value, "resolve_conj"):  # PyTorch conjugates when a value is read, which NumPy cannot
        value = value.resolve_conj()
    return np.array(value.detach() if hasattr(value, "detach") else value)


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Any:
    real = rng.standard_normal(shape)
    return real + 1j * rng.standard_normal(shape) if kind == "c" else real


def _jax(function: Any, given: list[tuple[str, Any, bool]], rng: np.random.Generator) -> Behaviour:
    """The uses of a function with a rule of JAX: as it is, compiled, and differentiated twice."""
    import jax

    jax.config.update("jax_enable_x64", True)
    tracked = [i for i, (_, _, needs) in enumerate(given) if needs]
    values = [jax.numpy.asarray(v) if isinstance(v, np.ndarray) else v for _, v, _ in given]

    def of(*leaves: Any) -> Any:
        full = list(values)
        for i, leaf in zip(tracked, leaves, strict=True):
            full[i] = leaf
        return function(*full)

    leaves = [values[i] for i in tracked]
    outputs = jax.tree.leaves(of(*leaves))
    cotangents = [_drawn(rng, y.shape, y.dtype.kind) for y in outputs]
    probes = [_drawn(rng, v.shape, v.dtype.kind) for v in leaves]

    def scalar(*xs: Any) -> Any:
        got = jax.tree.leaves(of(*xs))
        return sum(jax.numpy.real(jax.numpy.sum(y * c)) for y, c in zip(got, cotangents, strict=True))

    numbers = tuple(range(len(leaves)))
    gradient = jax.grad(scalar, numbers)

    def along(*xs: Any) -> Any:
        return sum(jax.numpy.real(jax.numpy.sum(g * p)) for g, p in zip(gradient(*xs), probes, strict=True))

    found: Behaviour = {}
    for use, measured in (
        ("first", lambda: [*outputs, *gradient(*leaves)]),
        ("compiled", lambda: list(jax.jit(gradient)(*leaves))),
        ("second", lambda: list(jax.grad(along, numbers)(*leaves))),
    ):
        with _noted(found, use):
            found[use] = [np.asarray(a) for a in measured()]
    return found


def _numpy(function: Any, vjp: Any, given: list[tuple[str, Any, bool]], rng: np.random.Generator) -> Behaviour:
    values = [v.copy() if isinstance(v, np.ndarray) else v for _, v, _ in given]
    result = function(*values)
    outputs = list(result) if isinstance(result, tuple) else [result]
    cotangents = [_drawn(rng, np.shape(y), np.asarray(y).dtype.kind) for y in outputs]
    cotangent: Any = tuple(cotangents) if isinstance(result, tuple) else cotangents[0]
    found: Behaviour = {}
    with _noted(found, "first"):
        got = vjp(*values, cotangent)
        found["first"] = [np.asarray(a) for a in [*outputs, *(got if isinstance(got, tuple) else (got,))]]
    found["what is left"] = [np.asarray(a) for a in [*cotangents, *(v for v in values if isinstance(v, np.ndarray))]]
    return found
