"""Forwards in few digits: nothing right fails, and what is clearly wrong does.

`right` checks every forward of benchmarks/plateaus/functions.py with its right gradient: as a Function of the engine,
of PyTorch with its body hidden from autodiff, and with it in sight. `planted` spoils the gradients of those that
nothing but rounding keeps from being smooth. An error of six times the resolution at which the right gradient passes
must fail; none may pass at a resolution finer than itself.

Run: python -m benchmarks.plateaus right|planted [--seeds N] [--ways WAY,...] [--only WORD,...]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import gradcli
from benchmarks.plateaus.functions import COARSE, FOUND, RANDOM, SURROGATE, Rough, Tensor
from gradcli import engine
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

WAYS = ("engine", "opaque", "open")
CLEARLY = 6.0
VISIBLE = 1e-9
Spoil = Callable[[Tensor, Tensor, Tensor], Tensor]


def in_torch(rough: Rough, *, opaque: bool, spoil: Spoil | None) -> type[torch.autograd.Function]:
    """The forward as a Function of PyTorch; `spoil` turns the right gradient into another."""

    class Plateaus(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            with torch.set_grad_enabled(torch.is_grad_enabled() and not opaque):
                return rough.body(x)

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            right = rough.gradient(grad_output, x)
            return right if spoil is None else spoil(right, grad_output, x)

    return Plateaus


def in_engine(rough: Rough, spoil: Spoil | None) -> type[engine.autograd.Function]:
    """The same on NumPy arrays inside a Function of the engine."""

    class Plateaus(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return engine.tensor(rough.body(_array(x)).numpy())

        @staticmethod
        @engine.autograd.function.once_differentiable
        def backward(ctx: Any, grad_output: Any) -> Any:
            (x,) = ctx.saved_tensors
            right = rough.gradient(_array(grad_output), _array(x))
            return engine.tensor((right if spoil is None else spoil(right, _array(grad_output), _array(x))).numpy())

    return Plateaus


def _array(tensor: Any) -> Tensor:
    return torch.from_numpy(np.array(tensor.detach().numpy()))


def check(rough: Rough, way: str, seed: int, spoil: Spoil | None = None) -> CheckResult:
    """Check one forward, first order, at a seed's point."""
    x = rough.input(seed)
    if way == "engine":
        target, given = in_engine(rough, spoil), engine.tensor(x.numpy(), requires_grad=True)
    else:
        target, given = in_torch(rough, opaque=way == "opaque", spoil=spoil), x.clone().requires_grad_()
    with np.errstate(all="ignore"):
        (result,) = gradcli.check(target, (given,), order=1, seed=seed, shrink=False).cases
    return result


def _one_entry(right: Tensor, grad_output: Tensor, x: Tensor) -> Tensor:
    factors = torch.ones_like(right)
    factors[right.numel() // 2] = 1.1
    return right * factors


def plants(rough: Rough) -> Iterator[tuple[str, Spoil]]:
    """The planted errors."""
    for factor in (-1.0, 2.0, 1.1, 1.01, 1.001, 1 + 1e-4, 1e-4):
        yield ("sign" if factor < 0 else f"times {factor:g}"), lambda right, g, x, c=factor: c * right
    yield "one entry by 10 %", _one_entry
    yield "reversed", lambda right, g, x: right.flip(0)
    yield "rolled", lambda right, g, x: right.roll(1)
    yield "grad_output ignored", lambda right, g, x: rough.gradient(torch.ones_like(g), x)


def error_of(rough: Rough, x: Tensor, spoil: Spoil) -> float:
    """The largest wrong entry of the Jacobian beside its largest entry, each times the scale of its input."""
    like = rough.body(x)
    cotangents = torch.eye(like.numel(), dtype=torch.float64).reshape(-1, *like.shape)
    right = torch.stack([rough.gradient(g, x) for g in cotangents])
    wrong = torch.stack([spoil(rough.gradient(g, x), g, x) for g in cotangents])
    scales = 2.0 ** torch.ceil(torch.log2(x.abs()))
    return float(((right - wrong) * scales).abs().max() / (right * scales).abs().max())


def chosen(options: argparse.Namespace) -> list[Rough]:
    """The forwards asked for."""
    return [f for f in FOUND if not options.only or any(word in f.name for word in options.only)]


def right(options: argparse.Namespace) -> None:
    """Print the verdicts by kind of forward, and every failure of what is neither coarse, random nor a surrogate."""
    counts = Counter[tuple[str, str, str]]()
    for rough in chosen(options):
        for way in (way for way in options.ways if way != "open" or rough.graph):
            for seed in range(options.seeds):
                result = check(rough, way, seed)
                counts[rough.kind, way, result.verdict.value] += 1
                if result.verdict is Verdict.FAILED and rough.kind not in (COARSE, RANDOM, SURROGATE):
                    print(
                        f"  FAILED: {rough.name}, {way}, seed {seed}: {'; '.join(f.message for f in result.findings)}"
                    )
    print(f"{len(chosen(options))} forwards")
    for (kind, way, verdict), count in sorted(counts.items()):
        print(f"{kind}, {way}: {verdict} {count}")


def planted(options: argparse.Namespace) -> None:
    """Print what came of every plant, and what passed or stayed open though it should not have."""
    counts, clear = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for rough in (f for f in chosen(options) if f.plain):
        for way in (way for way in options.ways if way != "open" or rough.graph):
            for seed in range(options.seeds):
                x, known = rough.input(seed), check(rough, way, seed)
                resolution = known.resolution if known.verdict is Verdict.PASSED else None
                for name, spoil in plants(rough):
                    error = error_of(rough, x, spoil)
                    if error < VISIBLE:
                        continue
                    result = check(rough, way, seed, spoil)
                    told = _told(result, error)
                    counts[name, told] += 1
                    needed = resolution is not None and error > CLEARLY * resolution
                    clear[name, told] += needed
                    if told == "MISSED" or (needed and told != "failed"):
                        print(f"  {told}: {rough.name}, {way}, seed {seed}, {name}: {error:.1e} beside {resolution}")
    for name in dict.fromkeys(name for name, _ in counts):
        told = {verdict: count for (plant, verdict), count in sorted(counts.items()) if plant == name}
        must = {verdict: count for (plant, verdict), count in sorted(clear.items()) if plant == name and count}
        print(f"{name}: {told}; of those {CLEARLY:g} times what the right gradient passes at: {must}")


def _told(result: CheckResult, error: float) -> str:
    """The verdict; a pass is honest if its resolution is coarser than the error."""
    if result.verdict is not Verdict.PASSED:
        return result.verdict.value
    return "passed, resolution coarser" if (result.resolution or 0.0) >= error else "MISSED"


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["right", "planted"])
    parser.add_argument("--seeds", default=5, type=int)
    parser.add_argument("--ways", default=list(WAYS), type=lambda text: text.split(","))
    parser.add_argument("--only", default=[], type=lambda text: text.split(","))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    started = time.perf_counter()
    (right if options.what == "right" else planted)(options)
    print(f"{time.perf_counter() - started:.0f} s")
