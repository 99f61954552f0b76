"""How often a planted error is missed: at 1 to 10,000 entries, in one entry of a million, and at the second order.

Run: python benchmarks/misses.py [SEEDS] [small|million|second]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gradcli
from benchmarks.correct.planted import planted
from benchmarks.correct.specimen import Specimen, hidden
from gradcli.numerics.verify import BlockOutcome, Outcome, verify
from tests.numerics.cases import FormulaMap, space

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]
ERRORS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
SIZES = (1, 3, 30, 300, 10_000)

SLOPES: dict[str, tuple[Function, Function]] = {
    "sin": (np.sin, np.cos),
    "cos": (np.cos, lambda x: -np.sin(x)),
    "exp": (np.exp, np.exp),
    "tanh": (np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    "arctan": (np.arctan, lambda x: 1 / (1 + x * x)),
    "sinh": (np.sinh, np.cosh),
    "arcsinh": (np.arcsinh, lambda x: 1 / np.sqrt(1 + x * x)),
    "log1p square": (lambda x: np.log1p(x * x), lambda x: 2 * x / (1 + x * x)),
    "square": (lambda x: x * x, lambda x: 2 * x),
    "cube": (lambda x: x**3, lambda x: 3 * x * x),
    "fifth power": (lambda x: x**5, lambda x: 5 * x**4),
    "gauss": (lambda x: np.exp(-x * x), lambda x: -2 * x * np.exp(-x * x)),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    "softplus": (lambda x: np.logaddexp(0, x), lambda x: 1 / (1 + np.exp(-x))),
    "rational": (lambda x: x / (1 + x * x), lambda x: (1 - x * x) / (1 + x * x) ** 2),
    "hypotenuse": (lambda x: np.sqrt(1 + x * x), lambda x: x / np.sqrt(1 + x * x)),
    "sin of exp": (lambda x: np.sin(np.exp(x)), lambda x: np.cos(np.exp(x)) * np.exp(x)),
    "ripple": (lambda x: np.sin(50 * x) / 50 + x, lambda x: np.cos(50 * x) + 1),
    "offset": (lambda x: 1e6 + np.sin(x), np.cos),
    "tiny": (lambda x: 1e-9 * np.sin(x), lambda x: 1e-9 * np.cos(x)),
    "huge": (lambda x: 1e9 * np.sin(x), lambda x: 1e9 * np.cos(x)),
    "linear": (lambda x: 3 * x, lambda x: 3 + 0 * x),
    "affine": (lambda x: 3 * x - 7, lambda x: 3 + 0 * x),
    "steep": (lambda x: np.tanh(20 * (x - 0.3)), lambda x: 20 / np.cosh(20 * (x - 0.3)) ** 2),
    "swish": (
        lambda x: x / (1 + np.exp(-x)),
        lambda x: (1 + np.exp(-x) * (1 + x)) / (1 + np.exp(-x)) ** 2,
    ),
    "reciprocal": (lambda x: 1 / (x * x + 0.1), lambda x: -2 * x / (x * x + 0.1) ** 2),
    "log of cosh": (lambda x: np.log(np.cosh(x)), np.tanh),
    "cubic root": (lambda x: np.cbrt(x * x + 1), lambda x: 2 * x / (3 * np.cbrt(x * x + 1) ** 2)),
    "power": (lambda x: (x * x + 1) ** 1.7, lambda x: 3.4 * x * (x * x + 1) ** 0.7),
    "bend": (lambda x: np.where(x > 0, 2 * x, 3 * x), lambda x: np.where(x > 0, 2.0, 3.0)),
    "rectifier": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "sine times x": (lambda x: x * np.sin(x), lambda x: np.sin(x) + x * np.cos(x)),
    "expm1": (np.expm1, np.exp),
    "sine of square": (lambda x: np.sin(x * x), lambda x: 2 * x * np.cos(x * x)),
    "exp of sine": (lambda x: np.exp(np.sin(x)), lambda x: np.exp(np.sin(x)) * np.cos(x)),
    "log of cosine": (lambda x: np.log(2 + np.cos(x)), lambda x: -np.sin(x) / (2 + np.cos(x))),
    "arccosh": (lambda x: np.arccosh(2 + x * x), lambda x: 2 * x / np.sqrt((2 + x * x) ** 2 - 1)),
    "arctan of exp": (lambda x: np.arctan(np.exp(x)), lambda x: np.exp(x) / (1 + np.exp(2 * x))),
    "x exp": (lambda x: x * np.exp(-x), lambda x: (1 - x) * np.exp(-x)),
    "quartic root": (lambda x: (1 + x**4) ** 0.25, lambda x: x**3 * (1 + x**4) ** -0.75),
}
HIDDEN = ("offset", "steep", "ripple", "bend", "rectifier")
"""Maps whose values' rounding (10^6 beside a sine; a slope in the tail of a tanh), fast wiggles or kinks may hide an
error of 10^-6: counted apart from the others, which are smooth and hide nothing."""


def maps(name: str, n: int, weights: Array, spoil: Callable[[Array], Array]) -> tuple[FormulaMap, FormulaMap]:
    """The map with a wrong claim, and with the right one: entry by entry for small n, else their weighted sum."""
    function, slope = SLOPES[name]
    if n <= 30:
        given: tuple[Function, Function] = (lambda x: weights * function(x), lambda x: np.diag(weights * slope(x)))
        codomain = space((n,))
    else:
        given = (lambda x: np.array([weights @ function(x)]), lambda x: (weights * slope(x))[None])
        codomain = space(())
    return FormulaMap(*given, space((n,)), codomain, spoil), FormulaMap(*given, space((n,)), codomain)


def spoiling(kind: str, right: Array, error: float) -> Callable[[Array], Array]:
    """A whole gradient, a row, or the largest entry made wrong by a relative error."""
    row, column = np.unravel_index(int(np.abs(right).argmax()), right.shape)

    def spoil(j: Array) -> Array:
        j = j.copy()
        if kind == "whole":
            return j * (1 + error)
        place = row if kind == "row" else (row, column)
        j[place] *= 1 + error
        return j

    return spoil


def small(seeds: int) -> None:
    """Print the counts by kind of error, its size, and whether there was a witness."""
    for names in ([name for name in SLOPES if name not in HIDDEN], HIDDEN):
        counts: dict[tuple[bool, str, float], Counter[str]] = {}
        for seed, name, n in product(range(seeds), names, SIZES):
            one_map(name, n, seed, counts)
        told = ", ".join(HIDDEN) if names is HIDDEN else "smooth, and nothing hides an error"
        print(f"{len(names)} maps ({told}), sizes {SIZES}, {seeds} seed(s)")
        for witnessed, kind, error in sorted(counts):
            tally = ", ".join(f"{k} {v}" for k, v in sorted(counts[witnessed, kind, error].items()))
            print(f"{'with' if witnessed else 'without'} witness  {kind:6s} {error:7.0e}  {tally}", flush=True)


def million(seeds: int) -> None:
    """One random entry of a million wrong by 1e-6 of itself, differences alone; each seed another entry and point."""
    n, counts = 1_000_000, Counter[str]()
    for seed in range(seeds):
        for name in EVEN:
            rng = np.random.default_rng([seed, n, *name.encode()])
            x, weights = rng.uniform(0.8, 1.3, n), rng.uniform(2, 4, n) * rng.choice([-1, 1], n)
            place = int(rng.integers(n))
            claim, _ = maps(name, n, weights, _one_entry(place, 1e-6))
            with np.errstate(all="ignore"):
                found = verify(claim, x, seed=seed).blocks
            word = "caught" if found[0].outcome is Outcome.DIFFERS else _named(found[0], 1e-6)
            counts[word] += 1
            if word != "caught":
                print(
                    f"  {name}, seed {seed}, entry {place}: {word}, resolution {found[0].resolution}, {found[0].note}"
                )
    print(f"one entry of {n} wrong by 1e-6, {len(EVEN)} maps, {seeds} seed(s): {dict(counts)}")


EVEN = ("sin", "exp", "tanh", "cube", "softplus", "linear")
"""Maps whose slope is of one size between 0.8 and 1.3."""


def _one_entry(place: int, error: float) -> Callable[[Array], Array]:
    def spoil(j: Array) -> Array:
        j[0, place] *= 1 + error
        return j

    return spoil


def second(seeds: int) -> None:
    """Right at order 1 and wrong at order 2: what `gradcli.check` says, with forward's body and without."""
    counts: dict[tuple[bool, str], Counter[str]] = {}
    for mistake, name, function in planted():
        forms = (True, function), (False, hidden(_specimen(function)).target)
        for witnessed, target in forms:
            for seed in range(seeds):
                for n in (1, 6):
                    x = torch.tensor(np.random.default_rng([seed, n]).standard_normal(n)).requires_grad_()
                    (result,) = gradcli.check(target, (x,), seed=seed, shrink=False).cases
                    told = sorted({f"{f.kind.value} at order {f.order}" for f in result.findings})
                    word = result.verdict.value if not told else f"{result.verdict.value} ({', '.join(told)})"
                    counts.setdefault((witnessed, mistake), Counter())[word] += 1
                    if not any(f.order == 2 for f in result.findings):
                        print(f"  missed: {mistake}, {name}, n = {n}, seed {seed}, witness {witnessed}: {word}")
    for (witnessed, mistake), tally in sorted(counts.items()):
        print(f"{'with' if witnessed else 'without'} witness  {mistake}: {dict(tally)}")


def _specimen(function: type[torch.autograd.Function]) -> Specimen:
    return Specimen(name=function.__name__, group="planted", target=function, draws=(), witnessed=True)


def main() -> None:
    """Run the parts asked for, all by default."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for part in (small, million, second):
        if len(sys.argv) < 3 or sys.argv[2] == part.__name__:
            started = time.perf_counter()
            part(seeds)
            print(f"{part.__name__}: {time.perf_counter() - started:.0f} s")


def _named(block: BlockOutcome, error: float) -> str:
    """What became of an error that was not reported; a PASS says itself how fine it is."""
    if block.outcome is not Outcome.AGREES:
        return "undecided"
    if block.resolution is not None and block.resolution > error / 100:
        return "agrees, resolution coarser"
    return "noted" if block.note and "significance" in block.note else "MISSED"


def one_map(name: str, n: int, seed: int, counts: dict[tuple[bool, str, float], Counter[str]]) -> None:
    """Every error in one map at one size."""
    rng = np.random.default_rng([seed, n, len(name), *name.encode()])
    x, weights = rng.standard_normal(n), rng.standard_normal(n) + 3
    right = maps(name, n, weights, lambda j: j)[0].claimed(x)
    for kind in ("whole", "row", "entry"):
        for error in ERRORS:
            claim, witness = maps(name, n, weights, spoiling(kind, right, error))
            for witnessed in (False, True):
                with np.errstate(all="ignore"):
                    found = verify(claim, x, seed=seed, witness=witness if witnessed else None).blocks
                caught = any(block.outcome is Outcome.DIFFERS for block in found)
                word = "caught" if caught else _named(found[0], error)
                counts.setdefault((witnessed, kind, error), Counter())[word] += 1
                if word == "MISSED" and np.abs(right).max() > 0:
                    noted = f" ({found[0].note})" if found[0].note else ""
                    print(f"  missed: {name}, n = {n}, {kind} {error:.0e}, witness {witnessed}: {word}{noted}")


if __name__ == "__main__":
    main()
