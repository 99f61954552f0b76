"""Values too rough for any fine step: a right claim agrees at a coarse resolution, and one wrong by more does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gradcli.numerics.claims.residual import ROUGHNESS, stretch
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.sampling.directions import random_direction
from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import Case, FormulaMap, elementwise, sech2, space
from tests.numerics.expressions import random_case

Array = np.ndarray
Spoil = Callable[[Array], Array]


def half(x: Array) -> Array:
    return np.asarray(x).astype(np.float16).astype(float)


def brain(x: Array) -> Array:
    """Rounded to eight bits, as bfloat16 is."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * 256) / 256, exponent)


def iterated(tolerance: float) -> tuple[Callable[[Array], Array], Callable[[Array], int]]:
    """y = x - 0.2 sin y by damped steps, and how many of them."""

    def run(x: Array) -> tuple[Array, int]:
        y, step, count = np.ones_like(x), np.full_like(x, np.inf), 0
        while np.abs(step).max() >= tolerance:
            step = 0.7 * (x - y - 0.2 * np.sin(y))
            y, count = y + step, count + 1
        return y, count

    return lambda x: run(x)[0], lambda x: run(x)[1]


def inverted(x: Array) -> Array:
    return 1 / (1 + 0.2 * np.cos(iterated(1e-14)[0](x)))


def product(x: Array) -> Array:
    return (half(x.reshape(3, 3)) @ np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]])).ravel()


def products(_: Array) -> Array:
    return np.kron(np.eye(3), np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]]).T)


POINT = np.array([0.7, -1.3, 0.21, 2.2])
LOOSE, STEPS = iterated(1e-4)
CASES = [
    elementwise("float16 sine", lambda x: half(np.sin(half(x))), np.cos, POINT),
    elementwise("bfloat16 tanh", lambda x: brain(np.tanh(brain(x))), sech2, POINT),
    elementwise("three digits", lambda x: np.round(np.exp(x), 3), np.exp, POINT),
    elementwise("grid inside", lambda x: np.sin(np.round(x * 2e3) / 2e3), np.cos, POINT),
    Case("float16 matrix", product, products, np.linspace(-1.4, 2.1, 9), ((3, 3),), ((3, 2),)),
    replace(elementwise("stopped at 1e-4", LOOSE, inverted, POINT), steps=STEPS),
]


def outcome(case: Case, seed: int, spoil: Spoil | None = None):
    with np.errstate(all="ignore"):
        return verify(case.map(spoil), case.x, seed=seed).blocks[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("seed", range(2))
def test_a_right_claim_agrees_and_says_what_would_not_have_shown(case, seed) -> None:
    block = outcome(case, seed)
    assert block.outcome is Outcome.AGREES, block
    assert 1e-5 < block.resolution <= 0.3
    assert block.max_rel_error < block.resolution / 6


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("seed", range(2))
def test_an_error_of_three_resolutions_never_agrees(case, seed) -> None:
    resolution = outcome(case, seed).resolution

    def doubled(jacobian: Array) -> Array:
        wrong = jacobian.copy()
        wrong[np.unravel_index(np.argmax(np.abs(wrong)), wrong.shape)] *= 2
        return wrong

    spoils: list[Spoil] = [
        lambda j: j * (1 + 3 * resolution),
        lambda j: j * (1 - 3 * resolution),
        lambda j: -j,
        doubled,
        lambda j: j[::-1],
        lambda j: j + 3 * resolution * np.abs(j).max(),
    ]
    for spoil in spoils:
        assert outcome(case, seed, spoil).outcome is not Outcome.AGREES


@pytest.mark.parametrize("case", CASES[1:], ids=lambda case: case.name)
def test_one_percent_is_caught_or_lies_below_the_resolution(case) -> None:
    block = outcome(case, 5, lambda j: 1.01 * j)
    assert block.outcome is not Outcome.AGREES or block.resolution > 1e-2


@pytest.mark.sampled(3)
@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize(
    "structure",
    [
        lambda x, width: 3 * width * np.sin(x / width),
        lambda x, width: np.abs(np.mod(x, width) - width / 2),
        np.mod,
    ],
    ids=["ripple", "triangles", "sawteeth"],
)
def test_fine_structure_of_the_function_is_no_noise(structure, width) -> None:
    """The claim leaves out what repeats every `width`: over wide steps it is right."""
    point = POINT[:3] + 0.3 * width
    case = elementwise("structure", lambda x: x + structure(x, width), np.ones_like, point)
    for seed in range(3):
        assert outcome(case, seed).outcome is not Outcome.AGREES


def test_what_the_claim_leaves_bends_as_its_error_does() -> None:
    """In float16 the slope of the remainder is the claim's error, within its own uncertainty."""
    ratios = []
    for seed in range(31_000, 31_120):
        expression, x = random_case(seed)
        factor = 1 + float(np.random.default_rng(seed).choice([0.0, 0.05, -0.4]))
        map_ = FormulaMap(
            lambda p, e=expression: half(np.array([e(p)])),
            lambda p, e=expression, f=factor: f * e.gradient(p),
            space(x.shape),
            space(()),
        )
        with np.errstate(all="ignore"):
            site = Site.at(CountedMap(map_), x, np.random.default_rng(seed))
            direction = random_direction(site.rng, site.scales)
            for reach in (0.3, 0.03):
                found = (
                    stretch(site, direction, reach, np.ones(1, bool), None)
                    if np.isfinite(site.evaluate()).all()
                    else None
                )
                if found is None or len({float(found.line.at(t)[0]) for t in found.nodes.tolist()}) < 5:
                    continue  # on one plateau there is nothing to see
                error = float((expression.gradient(site.x) * (1 - factor)) @ direction)
                allowed = np.maximum(found.uncertainty, ROUGHNESS * found.noise / reach)
                ratios.append(abs(found.slope[0] - error) / allowed[0])
    assert len(ratios) > 150
    assert max(ratios) < FAIL_FACTOR
    assert np.mean(np.array(ratios) < 1) > 0.98


def budgeted(steps: int, x: Array) -> Case:
    """The projection onto 0 <= y <= 1, sum y = 2 by bisection of so many steps, with the gradient of the exact one."""

    def project(x: Array) -> Array:
        low, high = x.min() - 1, x.max()
        for _ in range(steps):
            middle = (low + high) / 2
            low, high = (middle, high) if np.clip(x - middle, 0, 1).sum() > 2 else (low, middle)
        return np.clip(x - (low + high) / 2, 0, 1)

    def jacobian(x: Array) -> Array:
        y = project(x)
        inside = ((y > 0) & (y < 1)).astype(float)
        return np.diag(inside) - np.outer(inside, inside) / max(inside.sum(), 1)

    return Case(f"{steps} steps", project, jacobian, x, (x.shape,), (x.shape,))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("steps", "size"), [(17, 1.0), (18, 1e-3), (20, 1.0), (20, 1e-3), (30, 1.0), (30, 1e-3)])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_of_the_limit_of_a_fixed_number_of_bisections_never_differs(steps, size, seed) -> None:
    case = budgeted(steps, size * np.random.default_rng(seed + 7).standard_normal(6))
    assert outcome(case, seed).outcome is not Outcome.DIFFERS


def test_a_factor_in_the_gradient_of_a_fixed_number_of_bisections_is_found() -> None:
    """Neither the average slope nor the one between two jumps is the claimed one."""
    cases = [budgeted(30, np.random.default_rng(seed).standard_normal(6)) for seed in range(4)]
    found = [outcome(case, seed, lambda j: 1.3 * j) for seed, case in enumerate(cases)]
    assert [block.outcome for block in found] == [Outcome.DIFFERS] * 4
