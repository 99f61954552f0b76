"""Whether a coarse resolution is kept: errors planted in every right Function that agrees over wide steps only.

Where `gradcli.check` passes a Function of benchmarks/correct with a resolution that the roughness of forward's values
sets, its backward is spoilt by three times that resolution, by 1 % and 10 %, in sign, in one entry and by a
transposition, and checked again. A spoilt backward that passes with a resolution finer than its error is a miss.

Run: python benchmarks/resolutions.py [SEEDS] [WORD]
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gradcli
from benchmarks.alarms import form
from benchmarks.correct.catalogue import ALL
from benchmarks.correct.specimen import Specimen
from gradcli.results import CheckResult, Evidence
from gradcli.verdict import Verdict

COARSE = "would not have been caught"
Spoil = Callable[[torch.Tensor], torch.Tensor]


def check(target: Any, specimen: Specimen, seed: int) -> CheckResult:
    """Check a target at a specimen's inputs, first order."""
    options = {} if specimen.grad is None else {"grad": specimen.grad}
    with np.errstate(all="ignore"):
        report = gradcli.check(target, specimen.inputs(seed), order=1, seed=seed, shrink=False, **options)
    (result,) = report.cases
    return result


def coarse(result: CheckResult) -> list[Evidence]:
    """What passed at a resolution set by the roughness of forward's values."""
    return [e for e in result.evidence if e.verdict is Verdict.PASSED and COARSE in (e.note or "")]


def spoilt(base: Any, spoil: Spoil, changes: list[bool]) -> Any:
    """The Function, or callable, with every gradient spoilt; `changes` takes in whether that made a difference."""

    def wrong(gradient: torch.Tensor) -> torch.Tensor:
        found = spoil(gradient)
        changes.append(not torch.allclose(found, gradient, rtol=1e-9, atol=0.0))
        return found

    if not isinstance(base, type):
        return _behind(base, wrong)

    class Spoilt(base):  # type: ignore[misc]
        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
            found = base.backward(ctx, *gradients)
            whole = found if isinstance(found, tuple) else (found,)
            return tuple(None if g is None else wrong(g) for g in whole)

    Spoilt.__name__ = Spoilt.__qualname__ = f"Spoilt{base.__name__}"
    return Spoilt


def _behind(base: Callable[..., Any], wrong: Spoil) -> Callable[..., Any]:
    """A plain callable whose inputs go through an identity with a wrong backward."""

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(_: Any, gradient: torch.Tensor) -> torch.Tensor:
            return wrong(gradient)

    return lambda *inputs: base(*(Identity.apply(x) if isinstance(x, torch.Tensor) else x for x in inputs))


def by(factor: float) -> Spoil:
    """Multiply."""
    return lambda g: g * factor


def doubled(g: torch.Tensor) -> torch.Tensor:
    """Double the first entry."""
    more = torch.zeros_like(g)
    more.view(-1)[:1] = 1
    return g * (1 + more)


def transposed(g: torch.Tensor) -> torch.Tensor:
    """Transpose a matrix, reverse a vector."""
    return g.mT.contiguous() if g.dim() == 2 and g.shape[0] == g.shape[1] else g.flip(0) if g.dim() == 1 else -g


def plants(resolution: float) -> Iterator[tuple[str, float, Spoil]]:
    """Name, size relative to the resolution where it is known to matter, and the mistake."""
    yield "three resolutions too much", 3 * resolution, by(1 + 3 * resolution)
    yield "three resolutions too little", 3 * resolution, by(1 - 3 * resolution)
    yield "1 % too much", 1e-2, by(1.01)
    yield "10 % too little", 0.1, by(0.9)
    yield "sign", 2.0, by(-1.0)
    yield "one entry doubled", 0.0, doubled
    yield "transposed or reversed", 0.0, transposed


def main() -> None:
    """Print what came of every plant, and every miss."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    chosen = [(k, s) for k, s in enumerate(ALL) if len(sys.argv) < 3 or sys.argv[2] in (s.name, s.group)]
    counts, resolutions = Counter[tuple[str, str]](), []
    for number, given in chosen:
        for seed in range(min(seeds, given.seeds)):
            specimen = form(given, number, seed)
            known = [e.resolution or 0.0 for e in coarse(check(specimen.target, specimen, seed))]
            if not known:
                continue
            resolutions.append(max(known))
            for name, size, spoil in plants(max(known)):
                changes: list[bool] = []
                result = check(spoilt(specimen.target, spoil, changes), specimen, seed)
                if not any(changes):
                    continue
                told = [e.resolution or 0.0 for e in result.evidence if e.order == 1]
                verdict = result.verdict.value
                if result.verdict is Verdict.PASSED:
                    verdict = "passed, resolution coarser" if max(told, default=0.0) >= size else "MISSED"
                if verdict == "MISSED" or (size == 3 * max(known) and result.verdict is Verdict.PASSED):
                    print(f"  {verdict}: {specimen.name}, seed {seed}, {name} ({size:.1e} beside {max(known):.1e})")
                counts[name, verdict] += 1
    print(f"{len(resolutions)} checks that pass over wide steps")
    if resolutions:
        print(f"resolution: median {np.median(resolutions):.1e}, largest {max(resolutions):.1e}")
    for (name, verdict), count in sorted(counts.items()):
        print(f"{name}: {verdict} {count}")


if __name__ == "__main__":
    main()
