"""Proof that the specimens are right: claimed gradients against mpmath, or against autograd of another body.

Run: python -m benchmarks.correct.prove [SEEDS] [WORD]
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import torch
from mpmath import mp

from benchmarks.correct.catalogue import ALL
from benchmarks.correct.specimen import Specimen
from gradcli import engine

mp.dps = 60


def leaves_of(inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The differentiable arguments."""
    return [i for i in inputs if isinstance(i, torch.Tensor) and i.requires_grad]


def copied(inputs: Sequence[Any]) -> list[Any]:
    """The arguments with copies in place of leaves, which a Function may write into."""
    return [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs]


def outputs_of(result: Any) -> list[torch.Tensor]:
    """The differentiable outputs."""
    found = result if isinstance(result, tuple | list) else (result,)
    return [o for o in found if isinstance(o, torch.Tensor) and (o.is_floating_point() or o.is_complex())]


def gradients(function: Any, inputs: Sequence[Any], seed: int, order: int) -> list[torch.Tensor]:
    """J'u for a fixed cotangent u, and for order 2 the gradient of w·J'u by inputs and u."""
    generator = torch.Generator().manual_seed(seed)
    leaves = leaves_of(inputs)
    outputs = [o for o in outputs_of(function(*copied(inputs))) if o.requires_grad]
    seeds = [torch.randn(o.shape, generator=generator, dtype=o.dtype).requires_grad_() for o in outputs]
    first = torch.autograd.grad(outputs, leaves, seeds, create_graph=order > 1, allow_unused=True)
    first = [torch.zeros_like(x) if g is None else g for g, x in zip(first, leaves, strict=True)]
    if order == 1:
        return [g.detach() for g in first]
    weights = [torch.randn(g.shape, generator=generator, dtype=g.dtype) for g in first]
    total = sum((g * w.conj()).real.sum() for g, w in zip(first, weights, strict=True))
    second = torch.autograd.grad(total, [*leaves, *seeds], allow_unused=True) if total.requires_grad else ()
    return [torch.zeros(()) if g is None else g.detach() for g in second]


def gap(found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> float:
    """The largest difference relative to the largest entry of its block."""
    worst = 0.0
    for a, b in zip(found, wanted, strict=True):
        size = float(b.abs().max()) if b.numel() else 0.0
        if a.numel() and (size > 0 or float(a.abs().max()) > 0):
            worst = max(worst, float((a - b).abs().max()) / max(size, 1e-290))
    return worst if np.isfinite(worst) else float("inf")


def by_reference(specimen: Specimen, inputs: Sequence[Any]) -> str | None:
    """None where autograd of the reference agrees at every order claimed."""
    for order in range(1, specimen.order + 1):
        wanted = gradients(specimen.reference, inputs, 7, order)
        found = gradients(specimen.target.apply, inputs, 7, order)
        difference = gap(found, wanted)
        if not difference <= specimen.tolerance:
            return f"order {order}: off by {difference:.1e}"
    values = outputs_of(specimen.target.apply(*copied(inputs)))
    wanted = outputs_of(specimen.reference(*copied(inputs)))
    difference = gap([v.detach() for v in values], [v.detach() for v in wanted])
    return None if difference <= max(1e-6, specimen.tolerance) else f"values off by {difference:.1e}"


def by_formula(specimen: Specimen, inputs: Sequence[Any]) -> str | None:
    """None where every entry lies between the one-sided derivatives of the formula."""
    (x,) = inputs
    y = specimen.target.apply(x)
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=specimen.order > 1)
    claims = [slope.detach()]
    if specimen.order > 1:
        curved = torch.autograd.grad(slope.sum(), x, allow_unused=True)[0] if slope.requires_grad else None
        claims.append(torch.zeros_like(x) if curved is None else curved)
    floor = mp.mpf(0)
    for order, claim in enumerate(claims, 1):
        sides = [_slopes(specimen.formula, float(v), order) for v in x.detach().reshape(-1)]
        size = max(abs(s) for pair in sides for s in pair)
        for entry, given, pair in zip(x.detach().reshape(-1), claim.reshape(-1), sides, strict=True):
            room = specimen.tolerance * size + floor + mp.mpf(10) ** -300
            if order > 1 and abs(pair[1] - pair[0]) > room:
                continue
            if not min(pair) - room <= mp.mpf(float(given)) <= max(pair) + room:
                return f"order {order} at {float(entry)!r}: claims {float(given)!r}, is {float(pair[0])!r}"
        floor = mp.mpf(2) ** -52 * size
    return None


def by_jacobian(specimen: Specimen, inputs: Sequence[Any]) -> str | None:
    """None where the first derivative, claimed on another backend, is that of the reference in PyTorch."""
    leaves = [torch.tensor(np.asarray(x)).requires_grad_() for x in inputs]
    y = specimen.reference(*leaves)
    u = np.asarray(np.random.default_rng(7).standard_normal(y.shape))
    wanted = torch.autograd.grad(y, leaves, torch.from_numpy(np.asarray(u)))
    found = [torch.from_numpy(np.array(g)) for g in CLAIMS[specimen.group](specimen, inputs, u)]
    difference = gap(found, wanted)
    return None if difference <= specimen.tolerance else f"off by {difference:.1e}"


def _engine_claim(specimen: Specimen, inputs: Sequence[Any], u: Any) -> Sequence[Any]:
    leaves = [engine.tensor(x).requires_grad_() for x in inputs]
    found = engine.autograd.grad(specimen.target.apply(*leaves), leaves, engine.tensor(u))
    return [g.numpy() for g in found]


def _jax_claim(specimen: Specimen, inputs: Sequence[Any], u: Any) -> Sequence[Any]:
    with jax.enable_x64(True):
        y, pull = jax.vjp(specimen.target, *(jax.numpy.asarray(x) for x in inputs))
        return [np.asarray(g) for g in pull(jax.numpy.asarray(u, y.dtype))]


def _numpy_claim(specimen: Specimen, inputs: Sequence[Any], u: Any) -> Sequence[Any]:
    if specimen.grad is None:
        return [specimen.target(*inputs)[1] * u]
    needed = [p for p in inspect.signature(specimen.grad).parameters.values() if p.default is p.empty]
    if sum(p.kind is not p.VAR_KEYWORD for p in needed) > len(inputs):
        return specimen.grad(*inputs, u)
    given = specimen.grad(*inputs)
    found = given if isinstance(given, tuple) else (given,)
    return [_pulled(g, u, x) for g, x in zip(found, inputs, strict=True)]


def _pulled(g: Any, u: Any, x: Any) -> Any:
    """The vjp that a gradient, a Jacobian or an elementwise derivative stands for."""
    if np.size(u) == 1:
        return g * u
    return u.reshape(-1) @ g.reshape(u.size, -1) if g.size == u.size * x.size else g * u


CLAIMS = {"engine": _engine_claim, "jax": _jax_claim, "numpy": _numpy_claim}


def _slopes(formula: Any, x: float, order: int) -> tuple[Any, Any]:
    """The derivatives from the left and from the right."""
    point = mp.mpf(x)
    step = mp.mpf(10) ** -25 * max(abs(point), mp.mpf(10) ** -40)

    def one_sided(sign: int) -> Any:
        h = sign * step
        if order == 1:
            return (-3 * formula(point) + 4 * formula(point + h) - formula(point + 2 * h)) / (2 * h)
        return (
            formula(point) * 2 - 5 * formula(point + h) + 4 * formula(point + 2 * h) - formula(point + 3 * h)
        ) / h**2

    with mp.workdps(120):
        return one_sided(-1), one_sided(1)


def prove(specimen: Specimen, seed: int) -> str | None:
    """What is wrong with a specimen at a seed's inputs, None where nothing is."""
    inputs = specimen.inputs(seed)
    if specimen.formula is not None:
        return by_formula(specimen, inputs)
    if specimen.group in CLAIMS:
        return by_jacobian(specimen, inputs)
    return by_reference(specimen, inputs)


def main() -> None:
    """Prove all, and print what fails."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    chosen = [s for s in ALL if len(sys.argv) < 3 or sys.argv[2] in (s.name, s.group)]
    unproved = [s for s in chosen if s.unproved is not None]
    wrong = 0
    for specimen in chosen:
        for seed in range(seeds if specimen.unproved is None else 0):
            try:
                problem = prove(specimen, seed)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            if problem is not None:
                wrong += 1
                print(f"  {specimen.group}: {specimen.name}, seed {seed}: {problem}")
    print(f"{len(chosen)} specimens, {seeds} seeds: {wrong} failures, {len(unproved)} not proved here")


if __name__ == "__main__":
    main()
