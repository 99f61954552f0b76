"""Random PyTorch programs as custom Functions: how often right ones are called wrong, and wrong ones right.

Run: python benchmarks/programs.py [right|wrong] [COUNT] [FIRST_SEED]
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gradcli

F = torch.nn.functional
Tensor = torch.Tensor
Spoil = Callable[[list[Tensor]], list[Tensor]]


def _along(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A function of the last axis, and nothing of a scalar."""
    return lambda t: function(t) if t.dim() else t


def _product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() == 2 and b.dim() in (1, 2) and a.shape[1] == b.shape[0]:
        return a @ b
    return a @ b.T if a.dim() == 2 and a.shape == b.shape else a * b


UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "sin": torch.sin,
    "tanh": torch.tanh,
    "exp": lambda t: torch.exp(t.clamp(max=6)),
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "gelu": F.gelu,
    "relu": torch.relu,
    "square": lambda t: t * t,
    "cube": lambda t: t**3,
    "log1p": lambda t: torch.log1p(t * t),
    "erf": torch.erf,
    "reciprocal": lambda t: 1 / (1.5 + t * t),
    "abs": torch.abs,
    "clamp": lambda t: t.clamp(-1, 1),
    "scale": lambda t: 2.5 * t - 0.3,
    "softmax": _along(lambda t: torch.softmax(t, -1)),
    "log_softmax": _along(lambda t: torch.log_softmax(t, -1)),
    "layer norm": _along(lambda t: (t - t.mean(-1, True)) / torch.sqrt(t.var(-1, unbiased=False, keepdim=True) + 1e-3)),
    "cumsum": _along(lambda t: t.cumsum(-1)),
    "sort": _along(lambda t: t.sort(-1)[0]),
    "roll": _along(lambda t: t.roll(1, -1)),
    "where": lambda t: torch.where(t > 0, t, 0.2 * t * t),
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / (1.2 + b * b),
    "product": _product,
    "maximum": torch.maximum,
    "hypot": lambda a, b: torch.sqrt(a * a + b * b + 0.1),
    "logaddexp": torch.logaddexp,
    "where": lambda a, b: torch.where(a > b, a * b, a - b),
}
LAST: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "logsumexp": _along(lambda t: t.logsumexp(-1)),
    "max": torch.amax,
    "norm": lambda t: (t * t).sum().add(1e-3).sqrt(),
    "itself": lambda t: t,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Operations, each with the numbers of the values that it takes, a last one, and inputs."""

    steps: tuple[tuple[str, tuple[int, ...]], ...]
    last: str
    inputs: tuple[Tensor, ...]

    @classmethod
    def drawn(cls, seed: int) -> Program:
        """A program of two to eight operations on one to three inputs, some of them far from one."""
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(1, 5)), int(rng.integers(1, 6))
        shapes: list[tuple[int, ...]] = [(n, m), (m,), (n, m), (m, m), (), (n, 1)]
        size = 10.0 ** rng.uniform(-2, 1.5) if rng.random() < 0.3 else 1.0
        chosen = [shapes[k] for k in rng.integers(len(shapes), size=int(rng.integers(1, 4)))]
        steps: list[tuple[str, tuple[int, ...]]] = []
        for known in range(len(chosen), len(chosen) + int(rng.integers(2, 9))):
            recent = int(rng.integers(max(0, known - 3), known))
            if known < 2 or rng.random() < 0.5:
                steps.append((str(rng.choice(list(UNARY))), (recent,)))
            else:
                steps.append((str(rng.choice(list(BINARY))), (int(rng.integers(known)), recent)))
        inputs = tuple(torch.from_numpy(np.asarray(rng.standard_normal(shape) * size)) for shape in chosen)
        return cls(steps=tuple(steps), last=str(rng.choice(list(LAST))), inputs=inputs)

    def run(self, values: tuple[Tensor, ...], cut: int | None = None) -> Tensor:
        """The result for some inputs; the operation `cut` is detached."""
        known = list(values)
        for number, (name, places) in enumerate(self.steps):
            taken = [known[place] for place in places]
            if len(taken) == 1:
                result = UNARY[name](taken[0])
            else:
                try:
                    result = BINARY[name](*taken)
                except RuntimeError:  # shapes that do not fit
                    result = taken[0] * 1.1
            known.append(result.detach() if number == cut else result)
        return LAST[self.last](known[-1])


def function(program: Program, *, hidden: bool, cut: int | None = None, spoil: Spoil | None = None) -> Any:
    """The program as a Function whose backward differentiates it anew; `hidden` runs forward without a graph."""

    class Recomputed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *values: Tensor) -> Tensor:
            ctx.save_for_backward(*values)
            with torch.set_grad_enabled(not hidden):
                return program.run(tuple(t.detach() for t in values) if hidden else values).clone()

        @staticmethod
        def backward(ctx: Any, *cotangents: Tensor) -> Any:
            with torch.enable_grad():
                leaves = [t if t.requires_grad else t.detach().requires_grad_() for t in ctx.saved_tensors]
                leaves = [t.view_as(t) for t in leaves]
                result = program.run(tuple(leaves), cut)
                if not result.requires_grad:
                    return tuple(torch.zeros_like(t) for t in leaves)
                found = torch.autograd.grad(result, leaves, cotangents, create_graph=True, allow_unused=True)
            gradients = [torch.zeros_like(t) if g is None else g for g, t in zip(found, leaves, strict=True)]
            return tuple(gradients if spoil is None else spoil(gradients))

    return Recomputed


def jacobian(wrapped: Any, inputs: tuple[Tensor, ...]) -> Tensor:
    """What the Function claims, one row an output."""
    leaves = tuple(t.clone().requires_grad_() for t in inputs)
    result = wrapped.apply(*leaves)
    rows = []
    for unit in torch.eye(result.numel(), dtype=result.dtype):
        parts = torch.autograd.grad(result, leaves, unit.reshape(result.shape), retain_graph=True)
        rows.append(torch.cat([part.reshape(-1) for part in parts]).detach())
    return torch.stack(rows)


def mistaken(program: Program, rng: np.random.Generator, *, hidden: bool) -> Any:
    """The program with a term cut off, or one gradient or its middle entry off by 1e-5 to 1e-1; None if none shows."""
    place, by = int(rng.integers(len(program.inputs))), 10.0 ** rng.uniform(-5, -1)

    def scaled(gradients: list[Tensor]) -> list[Tensor]:
        return [g * (1 + by) if k == place else g for k, g in enumerate(gradients)]

    def dented(gradients: list[Tensor]) -> list[Tensor]:
        dent = torch.ones(gradients[place].numel(), dtype=gradients[place].dtype)
        dent[dent.numel() // 2 : dent.numel() // 2 + 1] += by
        return [g * dent.reshape(g.shape) if k == place else g for k, g in enumerate(gradients)]

    kind = int(rng.integers(3))
    cut = int(rng.integers(len(program.steps))) if kind == 0 else None
    wrong = function(program, hidden=hidden, cut=cut, spoil=(None, scaled, dented)[kind])
    right, claimed = (jacobian(f, program.inputs) for f in (function(program, hidden=hidden), wrong))
    gap = float((right - claimed).abs().max())
    size = max(float(right.abs().max()), float(claimed.abs().max()))
    value = float(program.run(program.inputs).abs().max())
    return wrong if gap > 1e-6 * size and gap > 1e-12 * value else None


def main() -> None:
    """Print every check that did not come out as it should, and how many came out how."""
    warnings.simplefilter("ignore")
    right = len(sys.argv) < 2 or sys.argv[1] != "wrong"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    outcomes: Counter[str] = Counter()
    for seed in range(first, first + count):
        program, rng = Program.drawn(seed), np.random.default_rng([7, seed])
        if not torch.isfinite(program.run(program.inputs)).all():
            continue
        hidden = bool(rng.random() < 0.5)
        wrapped = function(program, hidden=hidden) if right else mistaken(program, rng, hidden=hidden)
        if wrapped is None:
            outcomes["nothing to see"] += 1
            continue
        leaves = tuple(t.clone().requires_grad_() for t in program.inputs)
        report = gradcli.check(wrapped, leaves, seed=seed % 3, order=2 if right else 1, shrink=False)
        outcomes[report.verdict.value] += 1
        if report.verdict is not (gradcli.Verdict.PASSED if right else gradcli.Verdict.FAILED):
            print(f"{seed} {report.verdict.value}: {program.steps} {program.last}\n{str(report)[:400]}", flush=True)
    print(f"{'right' if right else 'wrong'}: {dict(outcomes)}")


if __name__ == "__main__":
    main()
