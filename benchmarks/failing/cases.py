"""The planted Functions of this benchmark, and a process that checks them one by one."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import gradcli
from benchmarks.correct.catalogue import GROUPS
from benchmarks.correct.planted import planted
from gradcli import engine
from tests.programs.functions import TABLE, Row, arguments
from tests.programs.mistakes import MISTAKES

NAMESPACES: dict[str, Any] = {"torch": torch, "engine": engine}
STRIDE = 3
"""Of the right Functions of the catalogue every third is spoilt, each by the next mistake."""
MOST_ENTRIES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A wrong Function and what makes its inputs."""

    name: str
    target: Any
    inputs: Callable[[], tuple[Any, ...] | None]


Change = Callable[[Any, Any], Any]


def first_entry(g: Any, _: Any) -> Any:
    """The first entry is off by a thousandth."""
    factors = np.ones(tuple(g.shape))
    factors.flat[0] = 1.001
    return g * namespace_of(g).tensor(factors)


def where_negative(g: Any, x: Any) -> Any:
    """Zero where the input is negative."""
    sign = x.detach()
    return g * (sign.abs() == sign) if not sign.is_complex() else g * 0.5


def transposed(g: Any, _: Any) -> Any:
    """Square matrices are transposed, others doubled."""
    square = len(g.shape) == 2 and g.shape[0] == g.shape[1] > 1
    return g.t() if square else g * 2


SPOILS: dict[str, Change] = {
    "factor 1.5": lambda g, _: g * 1.5,
    "factor 1 + 1e-4": lambda g, _: g * (1 + 1e-4),
    "sign": lambda g, _: -g,
    "missing": lambda _g, _x: None,
    "zeros": lambda g, _: g * 0,
    "one entry": first_entry,
    "where negative": where_negative,
    "square added": lambda g, x: g + 0.1 * x.detach() ** 2,
    "constant added": lambda g, _: g + 0.01,
    "mean": lambda g, _: g * 0 + g.mean(),
    "transposed": transposed,
    "rolled": lambda g, _: namespace_of(g).roll(g, 1, 0) if len(g.shape) else 0.9 * g,
}


def namespace_of(tensor: Any) -> Any:
    """The framework of a tensor."""
    return torch if isinstance(tensor, torch.Tensor) else engine


def spoilt(base: Any, change: Change) -> type:
    """The Function with a mistake in the first gradient that it returns."""

    class Spoilt(base):
        @staticmethod
        def backward(ctx, *g):
            found = base.backward(ctx, *g)
            gradients = list(found) if isinstance(found, tuple) else [found]
            place = next(i for i, each in enumerate(gradients) if each is not None)
            own = gradients[place]
            fitting = [t for t in ctx.saved_tensors if t is not None and t.shape == own.shape]
            gradients[place] = change(own, fitting[0] if fitting else own)
            return tuple(gradients) if isinstance(found, tuple) else gradients[0]

    Spoilt.__name__ = Spoilt.__qualname__ = f"Spoilt{base.__name__}"
    return Spoilt


def tensors(ns: Any, given: Any) -> tuple[Any, ...]:
    """Arguments of the shared tables as a framework's tensors."""
    return tuple(ns.tensor(np.array(a.value), requires_grad=a.requires_grad) if a.is_tensor else a.value for a in given)


def all_planted() -> Iterator[Planted]:
    """Every planted Function."""
    for label, ns in NAMESPACES.items():
        for mistake in MISTAKES:
            given = arguments(mistake, 0)  # type: ignore[arg-type]  # a Mistake has a Row's name and inputs
            yield Planted(
                name=f"{label} mistake {mistake.name}",
                target=mistake.build(ns),
                inputs=lambda ns=ns, given=given: tensors(ns, given),
            )
            yield Planted(
                name=f"{label} mistake {mistake.name}, inferred", target=mistake.build(ns), inputs=lambda: None
            )
        for scale, spoils in ((1, list(SPOILS)), (5, list(SPOILS)[::4])):
            yield from _spoilt_rows(label, ns, scale, spoils)
    rng = np.random.default_rng(3)
    for mistake, curve, target in planted():
        values = rng.standard_normal(4)
        yield Planted(
            name=f"second order {mistake}, {curve}",
            target=target,
            inputs=lambda values=values: (torch.tensor(values, requires_grad=True),),
        )
    yield from _spoilt_catalogue()


def _spoilt_rows(label: str, ns: Any, scale: int, spoils: list[str]) -> Iterator[Planted]:
    """The right Functions of the shared table, spoilt; `scale` times the size along every axis."""
    for number, row in enumerate(TABLE):
        shapes = {n: tuple(scale * size for size in g) if isinstance(g, tuple) else g for n, g in row.inputs.items()}
        for kind in spoils[number % 2 :: 2]:
            given = arguments(Row(row.name, row.build, shapes), 1)
            yield Planted(
                name=f"{label} {row.name} x{scale} {kind}",
                target=spoilt(row.build(ns), SPOILS[kind]),
                inputs=lambda ns=ns, given=given: tensors(ns, given),
            )


def _spoilt_catalogue() -> Iterator[Planted]:
    functions = [
        s
        for group in GROUPS
        for s in group
        if isinstance(s.target, type) and issubclass(s.target, torch.autograd.Function | engine.autograd.Function)
    ]
    kinds = list(SPOILS)
    for number, specimen in enumerate(functions[::STRIDE]):
        size = sum(int(np.prod(v.shape)) for v in specimen.inputs(0) if hasattr(v, "shape"))
        if size <= MOST_ENTRIES:
            kind = kinds[number % len(kinds)]
            yield Planted(
                name=f"{specimen.group}: {specimen.name}, {kind}",
                target=spoilt(specimen.target, SPOILS[kind]),
                inputs=lambda specimen=specimen: specimen.inputs(0),
            )


def slow_planted() -> Iterator[Planted]:
    """Functions whose forward takes its time, by the clock."""
    for seconds in (0.01, 0.1):
        for kind in ("factor 1.5", "missing", "where negative", "square added", "one entry"):
            for row in (r for r in TABLE if r.name in ("linear", "cube", "softmax")):
                given = arguments(row, 1)
                yield Planted(
                    name=f"{seconds * 1e3:g} ms, {row.name} {kind}",
                    target=_slowed(spoilt(row.build(torch), SPOILS[kind]), seconds),
                    inputs=lambda given=given: tensors(torch, given),
                )


def _slowed(base: Any, seconds: float) -> type:
    class Slow(base):
        @staticmethod
        @functools.wraps(base.forward)
        def forward(*given):
            time.sleep(seconds)
            return base.forward(*given)

    Slow.__name__ = Slow.__qualname__ = f"Slow{base.__name__}"
    return Slow


def serve(slow: bool) -> None:
    """Answer questions on stdin: `names`, or the number of a case."""
    cases = list(slow_planted() if slow else all_planted())
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in sys.stdin:
            with redirect_stdout(sys.stderr):
                answer = [c.name for c in cases] if line.strip() == "names" else _answer(cases[int(line)])
            print(json.dumps(answer), flush=True)


def _answer(case: Planted) -> dict[str, Any]:
    inputs = case.inputs()
    with _timed("smallest_failing") as shrinking:
        wall, began = time.perf_counter(), time.process_time()
        try:
            (result,) = gradcli.check(case.target, inputs).cases
        except gradcli.errors.GradcliError as error:
            return _unanswered(case, error)
        seconds, wall = time.process_time() - began, time.perf_counter() - wall
    return {
        "name": case.name,
        "seconds": seconds,
        "wall": wall,
        "shrinking": shrinking[0],
        "calls": result.forwards,
        "verdict": result.verdict.value,
        "findings": [_finding(f) for f in result.findings],
        "smallest": list(result.smallest),
        "entries": sum(text.count(",") + 1 for text in result.smallest),
    }


def _unanswered(case: Planted, error: Exception) -> dict[str, Any]:
    nothing = {"seconds": 0.0, "wall": 0.0, "shrinking": 0.0, "calls": 0, "entries": 0, "smallest": []}
    return {"name": case.name, "verdict": f"error: {error}", "findings": [], **nothing}


def _finding(f: Any) -> dict[str, Any]:
    return {
        "kind": f.kind.value,
        "input": f.input,
        "order": f.order,
        "message": f.message,
        "entries": [list(e.index) for e in f.entries],
        "location": None if f.location is None else f"{f.location.file.rpartition('/')[2]}:{f.location.line}",
    }


@contextmanager
def _timed(name: str) -> Iterator[list[float]]:
    """Processor time spent in a function of the runner that explains failures while the block runs."""
    newer = importlib.util.find_spec("gradcli.runner.outcome") is not None
    home = importlib.import_module("gradcli.runner.outcome.failed" if newer else "gradcli.runner.failed")
    spent, own = [0.0], getattr(home, name)

    def timed(*given: Any, **more: Any) -> Any:
        began = time.process_time()
        try:
            return own(*given, **more)
        finally:
            spent[0] += time.process_time() - began

    setattr(home, name, timed)
    try:
        yield spent
    finally:
        setattr(home, name, own)
