"""Checkpoints of both kinds run, save, differentiate and refuse as PyTorch's do."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from tests.engine.test_semantics_against_torch import differences
from tests.programs.semantics.table import caught, plain


class Program:
    """A checkpoint of a framework, tensors to run it on, and a list of what was called.

    Args:
        t: the framework.
        reentrant: the kind of checkpoint.
    """

    def __init__(self, t: Any, reentrant: bool) -> None:
        self.t, self.calls, self.runs = t, [], 0
        self.module = importlib.import_module(f"{t.__name__}.utils.checkpoint")
        self.x = t.tensor([0.5, 1.5], dtype=t.float64, requires_grad=True)
        self.w = t.tensor([2.0, -1.0], dtype=t.float64, requires_grad=True)
        self.reentrant = reentrant

    def f(self, a: Any, scale: float = 1.0) -> Any:
        """A function of an argument and of a tensor that it closes over."""
        self.calls.append([self.t.is_grad_enabled(), a.requires_grad])
        return (a.exp() * self.w).sin() * scale

    def first_then(self, first: Callable[[Any], Any], then: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function that does something else when it is run again."""

        def run(a: Any) -> Any:
            self.runs += 1
            return first(a) if self.runs == 1 else then(a)

        return run

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Call the checkpoint."""
        return self.module.checkpoint(*args, use_reentrant=self.reentrant, **kwargs)


def _twice(p: Program) -> None:
    total = p.run(p.f, p.x).sum()
    total.backward(retain_graph=True)
    total.backward()


def _freed(p: Program) -> None:
    total = p.run(p.f, p.x).sum()
    total.backward()
    total.backward()


def _written(p: Program) -> None:
    a = p.x * 1
    y = p.run(lambda b: b.exp(), a)
    a.add_(1)
    y.sum().backward()


def _random(p: Program) -> bool:
    y = p.run(lambda a: a * p.t.rand(2, dtype=p.t.float64), p.x)
    y.sum().backward()
    same = bool(p.t.allclose(y, p.x.grad * p.x))
    p.x.grad = None
    return same


def _backwards(p: Program, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    result = p.run(function, *args, **kwargs)
    outputs = result if isinstance(result, tuple) else (result,)
    p.t.stack([entry.sum() for entry in outputs if not isinstance(entry, int)]).sum().backward()


CASES: dict[str, Callable[[Program], Any]] = {
    "result": lambda p: _backwards(p, p.f, p.x * 1),
    "leaf": lambda p: _backwards(p, p.f, p.x),
    "untracked": lambda p: p.run(p.f, p.x.detach()).requires_grad,
    "grad": lambda p: p.t.autograd.grad(p.run(p.f, p.x).sum(), p.x),
    "second order": lambda p: p.t.autograd.grad(p.run(p.f, p.x).sum(), p.x, create_graph=True)[0].sum().backward(),
    "inputs": lambda p: p.run(p.f, p.x).sum().backward(inputs=[p.x]),
    "named": lambda p: _backwards(p, p.f, p.x, scale=2.0),
    "several": lambda p: _backwards(p, lambda a, b: (a * b, (a + b).sum(), 3), p.x, p.w),
    "number": lambda p: _backwards(p, lambda a, k: a * k, p.x, 3.0),
    "twice": _twice,
    "freed": _freed,
    "nested": lambda p: _backwards(p, lambda a: p.run(p.f, a) * 2, p.x),
    "random": _random,
    "sequence": lambda p: p.module.checkpoint_sequential(
        [p.t.sin, p.f, p.t.exp, p.t.cos], 2, p.x, use_reentrant=p.reentrant
    )
    .sum()
    .backward(),
    "node": lambda p: p.run(p.f, p.x).grad_fn.name(),
    "saves more": lambda p: _backwards(p, p.first_then(lambda a: a.exp(), lambda a: a.exp().sin()), p.x),
    "saves more, to the end": lambda p: _backwards(
        p,
        p.first_then(lambda a: a.exp(), lambda a: a.exp().sin()),
        p.x,
        **({} if p.reentrant else {"early_stop": False}),
    ),
    "saves less": lambda p: _backwards(p, p.first_then(lambda a: a.exp().sin(), lambda a: a * 1), p.x),
    "another shape": lambda p: _backwards(
        p, p.first_then(lambda a: a.exp(), lambda a: p.t.cat([a, a]).exp()), p.x
    ),
    "detached later": lambda p: _backwards(p, p.first_then(lambda a: a * 2, lambda a: a.detach()), p.x),
    "written": _written,
    "raises": lambda p: p.run(lambda a: {}[a], p.x),
    "random numbers as they are": lambda p: _backwards(p, p.f, p.x, preserve_rng_state=False),
    "contexts": lambda p: plain(p.run(p.f, p.x, context_fn=lambda: (p.t.no_grad(), p.t.enable_grad()))),
    "unchecked": lambda p: _backwards(p, p.f, p.x, determinism_check="none"),
    "class of the error": lambda p: issubclass(p.module.CheckpointError, RuntimeError),
}  # fmt: skip


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_does_what_it_does_in_torch(name: str, reentrant: bool) -> None:
    torch = pytest.importorskip("torch", reason="the reference for checkpoints is PyTorch")
    found = []
    for t in (engine, torch):
        program = Program(t, reentrant)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = caught(lambda p=program: CASES[name](p), words=name != "raises")
        found.append(
            [result, program.calls, [None if e.grad is None else plain(e.grad) for e in (program.x, program.w)]]
        )
    assert not (lines := differences(*found)), "\n".join(lines)


def test_a_checkpoint_without_a_kind_warns_and_runs_without_a_graph() -> None:
    program = Program(engine, reentrant=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        y = program.module.checkpoint(program.f, program.x)
    assert program.calls == [[False, True]]
    y.sum().backward()
    assert program.calls == [[False, True], [True, True]]
