"""The recorded cases, as calls that give verdicts: maps in closed form, planted errors, and right Functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

import gradcli
from benchmarks import misses
from benchmarks.alarms import form
from benchmarks.correct.catalogue import ALL
from benchmarks.correct.planted import planted
from benchmarks.correct.specimen import Specimen, hidden
from benchmarks.plateaus import run as plateaus
from benchmarks.plateaus.functions import FOUND, Rough
from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import snap
from gradcli.numerics.verify import Outcome, verify
from gradcli.results import CheckResult
from tests.numerics.cases import AWKWARD, ORDINARY, Case
from tests.numerics.test_wide_errors import JUMPING
from tests.numerics.test_wide_steps import CASES as WIDE

Array = npt.NDArray[np.float64]
Verdicts = list[str]
Cases = Iterator[tuple[str, Callable[[], Verdicts]]]
ERRORS = (1e-2, 1e-4, 1e-6)
SIZES = (1, 3, 30, 300)
JAX = "jax"


def of_map(map_: VectorMap, x: Array, seed: int, witness: VectorMap | None = None) -> Verdicts:
    """The outcome of every block; where one differs, the columns that do."""
    found = verify(map_, x, seed=seed, witness=witness).blocks
    return [f"{b.input},{b.output} {b.outcome.value} {_columns(b.wrong_columns, b.outcome)}".strip() for b in found]


def _columns(columns: object, outcome: Outcome) -> str:
    return "" if columns is None or outcome is not Outcome.DIFFERS else str(np.asarray(columns).tolist())


def of_result(result: CheckResult) -> Verdicts:
    """The verdict, those of every piece of evidence, and the findings."""
    told = [f"{e.check} {e.input} {e.order} {e.verdict.value}" for e in result.evidence]
    return [result.verdict.value, *told, *(f"{f.kind.value} at order {f.order}" for f in result.findings)]


def doubled(j: Array) -> Array:
    """The largest entry doubled."""
    wrong = j.copy()
    wrong[np.unravel_index(np.argmax(np.abs(wrong)), wrong.shape)] *= 2
    return wrong


SPOILT: dict[str, Callable[[Array], Array] | None] = {
    "right": None,
    "times 1.1": lambda j: 1.1 * j,
    "times 1.0001": lambda j: 1.0001 * j,
    "negated": lambda j: -j,
    "largest entry doubled": doubled,
    "all zero": lambda j: 0 * j,
}


def maps(seeds: int) -> Cases:
    """The maps of the tests, right and wrong, with a reference and without."""
    groups: dict[str, list[Case]] = {"ordinary": ORDINARY, "awkward": AWKWARD, "wide": WIDE, "own jumps": JUMPING}
    for (group, cases), (spoilt, spoil) in product(groups.items(), SPOILT.items()):
        for case, witnessed, seed in product(cases, (False, True), range(1, seeds + 1)):
            if witnessed and group != "awkward":
                continue
            name = f"{group}, {case.name}, {spoilt}{', with reference' if witnessed else ''}, seed {seed}"
            yield name, partial(of_map, case.map(spoil), case.x, seed, case.map() if witnessed else None)


def planted_errors(seeds: int) -> Cases:
    """Errors of three sizes in a whole gradient, and in its largest entry, of forty maps."""
    for seed, name, n in product(range(seeds), misses.SLOPES, SIZES):
        rng = np.random.default_rng([seed, n, len(name), *name.encode()])
        x, weights = rng.standard_normal(n), rng.standard_normal(n) + 3
        right = misses.maps(name, n, weights, lambda j: j)[0].claimed(x)
        for kind, error, witnessed in product(("whole", "entry"), ERRORS, (False, True)):
            claim, witness = misses.maps(name, n, weights, misses.spoiling(kind, right, error))
            told = f"{name}, n = {n}, {kind} {error:.0e}{', with reference' if witnessed else ''}, seed {seed}"
            yield told, partial(of_map, claim, x, seed, witness if witnessed else None)


def checked(specimen: Specimen, seed: int) -> Verdicts:
    """A right Function, at all its orders."""
    options = {} if specimen.grad is None else {"grad": specimen.grad}
    given = specimen.inputs(seed)
    (result,) = gradcli.check(specimen.target, given, order=specimen.limit, seed=seed, shrink=False, **options).cases
    return of_result(result)


def right_functions(seeds: int) -> Cases:
    """The right Functions of the benchmark of false alarms, half of them with forward's body hidden."""
    for seed, (number, given) in product(range(seeds), enumerate(ALL)):
        if seed < given.seeds and given.group != JAX:
            name = f"{given.group}: {given.name}, {number}, seed {seed}"
            yield name, partial(checked, form(given, number, seed), seed)


def second_order(seeds: int) -> Cases:
    """Errors at order 2 alone, with forward's body in sight and hidden."""
    for (mistake, name, function), seed in product(planted(), range(seeds)):
        specimen = Specimen(name=function.__name__, group="planted", target=function, draws=(), witnessed=True)
        for shown, target in (("in sight", function), ("hidden", hidden(specimen).target)):
            yield f"{mistake}, {name}, {shown}, seed {seed}", partial(_second, target, seed)


def _second(target: object, seed: int) -> Verdicts:
    import torch

    x = torch.tensor(np.random.default_rng([seed, 6]).standard_normal(6)).requires_grad_()
    (result,) = gradcli.check(target, (x,), seed=seed, shrink=False).cases
    return of_result(result)


def few_digits(seeds: int) -> Cases:
    """Forwards in few digits with right gradients, with 10 % in one entry, and with another sign."""
    for rough, way, seed in product(FOUND, plateaus.WAYS, range(seeds)):
        if way == "open" and not rough.graph:
            continue
        yield f"{rough.name}, {way}, seed {seed}", partial(_plateaus, rough, way, seed)
        if way == "opaque":
            for name, spoil in plateaus.plants(rough):
                if name in ("sign", "one entry by 10 %"):
                    yield f"{rough.name}, {name}, seed {seed}", partial(_plateaus, rough, way, seed, spoil)


def _plateaus(rough: Rough, way: str, seed: int, spoil: plateaus.Spoil | None = None) -> Verdicts:
    return of_result(plateaus.check(rough, way, seed, spoil))


BENT = 1.0
"""Where the rough functions have their kink, cusp or jump."""
SMOOTH: dict[str, tuple[misses.Function, misses.Function]] = {
    "sine": (np.sin, np.cos),
    "exponential": (np.exp, np.exp),
    "large sine": (lambda x: 1e6 + np.sin(x), np.cos),
    "cube": (lambda x: (x - 1) ** 3, lambda x: 3 * (x - 1) ** 2),
}


def _hashed(x: Array) -> Array:
    """Noise in [0, 1) that is the same at the same x."""
    return np.mod(np.sin(x * 2.0**30) * 43758.5453, 1.0)


ROUGH: dict[str, misses.Function] = {
    "as it is": lambda y: y,
    "float32": lambda y: y.astype(np.float32).astype(float),
    "float16": lambda y: y.astype(np.float16).astype(float),
    **{f"rounded to {d} places": partial(np.round, decimals=d) for d in (2, 4, 6, 8, 10)},
    **{f"with noise {s:.0e}": (lambda y, s=s: y + s * _hashed(y)) for s in (1e-4, 1e-8, 1e-12)},
}
ADDED: dict[str, tuple[misses.Function, misses.Function]] = {
    "nothing": (lambda x: 0 * x, lambda x: 0 * x),
    "a kink": (lambda x: np.abs(x - BENT), lambda x: np.sign(x - BENT)),
    "a jump": (lambda x: 1.0 * (x > BENT), lambda x: 0 * x),
    **{
        f"a cusp {p}": (
            lambda x, p=p: np.abs(x - BENT) ** p,
            lambda x, p=p: p * np.sign(x - BENT) * np.abs(x - BENT) ** (p - 1),
        )
        for p in (0.2, 0.5, 0.8, 1.3)
    },
}
DISTANCES = (0.0, 1e-9, -1e-6, 1e-4, -1e-2, 0.7)


def estimates(seeds: int) -> Cases:
    """Slopes with their bounds of smooth, rounded and noisy functions with a kink, a cusp or a jump at a distance."""
    for seed, smooth, rough, added, size in product(range(seeds), SMOOTH, ROUGH, ADDED, (1, 12)):
        yield f"{rough} {smooth} and {added}, {size}, seed {seed}", partial(_slopes, smooth, rough, added, size, seed)


def _slopes(smooth: str, rough: str, added: str, size: int, seed: int) -> Verdicts:
    """At every distance: the status, and whether the bound holds; no function here has a slope where it is broken."""
    (f, slope), (bend, more), rounded = SMOOTH[smooth], ADDED[added], ROUGH[rough]

    def whole(x: Array) -> Array:
        return rounded(f(x) + bend(x))

    told = []
    for distance in DISTANCES:
        rng = np.random.default_rng([seed, size])
        x = snap(BENT + distance + 0.5 * np.arange(size), np.full(size, 2.0))
        v = np.full(size, 2.0)
        with np.errstate(all="ignore"):
            truth = 2 * (slope(x) + more(x))
            found = directional_derivative(whole, x, v, rng=rng)
        off = np.abs(found.value - truth) > found.bound * (1 + 1e-9) + 1e-15 * np.abs(truth)
        broken = (x == BENT) & (added not in ("nothing", "a cusp 1.3"))
        wrong = found.smooth & (off | broken)
        told.append(f"{distance:g} known {int(found.smooth.sum())} wrong {int(wrong.sum())} {found.status.tolist()}")
    return told


TABLES: dict[str, Callable[[int], Cases]] = {
    "estimates": estimates,
    "maps": maps,
    "misses": planted_errors,
    "second": second_order,
    "alarms": right_functions,
    "plateaus": few_digits,
}
