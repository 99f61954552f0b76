"""Properties of the error-bounded directional derivative."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import Estimate, Status
from gradcli.numerics.maps.space import Block, Space
from gradcli.numerics.sampling.directions import entry_scales, random_direction, snap
from tests.numerics.expressions import random_case


def differentiate(function, x, **options) -> tuple[Estimate, np.ndarray]:
    x = np.atleast_1d(np.asarray(x, float))
    scales = entry_scales(Space((Block("x", x.shape, "float64"),)), x)
    x = snap(x, scales)
    rng = np.random.default_rng(options.pop("seed", 0))
    direction = random_direction(rng, scales)
    with np.errstate(all="ignore"):
        return directional_derivative(function, x, direction, rng=rng, **options), direction


def test_bound_covers_the_error_on_random_expressions() -> None:
    missed, known, wide = [], 0, 0
    for seed in range(300):
        expression, x = random_case(seed)
        scales = entry_scales(Space((Block("x", x.shape, "float64"),)), x)
        x = snap(x, scales)
        rng = np.random.default_rng([3, seed])
        v = random_direction(rng, scales)
        truth = float(expression.evaluate(x, v).slope)
        if not np.isfinite(truth) or not np.isfinite(expression(x)):
            continue
        estimate = directional_derivative(lambda p, e=expression: np.array([e(p)]), x, v, rng=rng)
        if not estimate.smooth[0]:
            continue
        known += 1
        wide += estimate.bound[0] > 1e-6 * abs(truth)
        if abs(estimate.value[0] - truth) > estimate.bound[0] + 1e-15 * abs(truth):
            missed.append(seed)
    assert known > 280
    assert len(missed) <= 2
    assert wide < 0.05 * known


@pytest.mark.parametrize(
    ("function", "slope", "x"),
    [
        (np.log, lambda x: 1 / x, 1e-9),
        (np.sqrt, lambda x: 0.5 / np.sqrt(x), 1e-12),
        (np.arcsin, lambda x: 1 / np.sqrt((1 - x) * (1 + x)), 1 - 1e-9),
        (lambda x: 1 / x, lambda x: -1 / x**2, 1e-6),
        (lambda x: np.sin(1e5 * x), lambda x: 1e5 * np.cos(1e5 * x), 0.7),
        (lambda x: 1e8 + np.sin(x), np.cos, 0.7),
        (lambda x: 1e-200 * np.exp(x), lambda x: 1e-200 * np.exp(x), 0.3),
    ],
    ids=["log", "sqrt", "arcsin", "reciprocal", "fast", "offset", "tiny"],
)
def test_bound_covers_the_error_at_awkward_points(function, slope, x) -> None:
    estimate, direction = differentiate(function, x)
    at = snap(np.array([x]), np.abs(entry_scales(Space((Block("x", (1,), "float64"),)), np.array([x]))))
    truth = slope(at)[0] * direction[0]
    assert estimate.smooth[0]
    assert abs(estimate.value[0] - truth) <= estimate.bound[0] + 1e-14 * abs(truth)
    assert estimate.bound[0] < 1e-4 * abs(truth)


def test_smooth_functions_cost_seventeen_evaluations() -> None:
    estimate, _ = differentiate(lambda x: np.array([np.sin(x).sum()]), np.linspace(0.3, 2, 5))
    assert estimate.evaluations == 17


def test_known_noise_saves_the_cluster() -> None:
    function = lambda x: np.array([np.sin(x).sum()])  # noqa: E731 - one expression
    first, _ = differentiate(function, np.linspace(0.3, 2, 5))
    second, _ = differentiate(function, np.linspace(0.3, 2, 5), noise=first.noise, seed=1)
    assert second.evaluations <= 9
    assert second.smooth.all()


@pytest.mark.parametrize(
    ("function", "x", "left", "right"),
    [
        (lambda x: np.maximum(x, 0), 0.0, 0.0, 1.0),
        (np.abs, 0.0, -1.0, 1.0),
        (lambda x: np.sin(x) + 1e-3 * np.abs(x - 1), 1.0, np.cos(1) - 1e-3, np.cos(1) + 1e-3),
        (lambda x: np.clip(x, -1, 1), 1.0, 1.0, 0.0),
    ],
    ids=["rectifier", "absolute", "small", "clip"],
)
def test_kinks_are_seen_with_both_slopes(function, x, left, right) -> None:
    estimate, direction = differentiate(function, x)
    low, high = (left, right) if direction[0] > 0 else (right, left)
    assert Status(int(estimate.status[0])) is Status.KINK
    assert estimate.left[0] == pytest.approx(low * direction[0], abs=1e-6)
    assert estimate.right[0] == pytest.approx(high * direction[0], abs=1e-6)


BENT = {
    "x |x|": lambda x: x + x * np.abs(x),
    "symmetric logarithm": lambda x: np.sign(x) * np.log1p(np.abs(x)),
    "exponential unit": lambda x: np.where(x > 0, x, np.expm1(x)),
}


@pytest.mark.parametrize("function", BENT.values(), ids=BENT)
def test_where_only_higher_derivatives_jump_there_is_a_slope(function) -> None:
    estimate, direction = differentiate(function, 0.0)
    assert Status(int(estimate.status[0])) is Status.OK
    assert estimate.value[0] == pytest.approx(direction[0], rel=1e-8)
    kinked, _ = differentiate(lambda x: function(x) + 1e-6 * np.abs(x), 0.0)
    assert Status(int(kinked.status[0])) is Status.KINK


def test_a_jump_is_no_derivative() -> None:
    estimate, _ = differentiate(lambda x: 2 * x + (x > 0.5), 0.5)
    assert estimate.broken[0]


def test_a_cusp_is_no_derivative() -> None:
    estimate, _ = differentiate(lambda x: np.sqrt(np.abs(x - 1)), 1.0)
    assert not estimate.smooth[0]


def test_a_kink_close_by_does_not_spoil_the_slope() -> None:
    estimate, direction = differentiate(lambda x: np.maximum(x - 1, 0), 1 + 1e-6)
    assert estimate.smooth[0]
    assert abs(estimate.value[0] - direction[0]) <= estimate.bound[0]


@pytest.mark.parametrize("digits", [4, 6, 8])
def test_rounded_values_never_give_a_false_bound(digits) -> None:
    for seed in range(20):
        estimate, direction = differentiate(lambda x: np.round(np.sin(x), digits), 0.9, seed=seed)
        if estimate.smooth[0]:
            assert abs(estimate.value[0] - np.cos(0.9) * direction[0]) <= estimate.bound[0] + 1e-12


@pytest.mark.parametrize("distance", [2e-5, 4e-5, -6e-5, 7e-5])
@pytest.mark.parametrize("seed", range(4))
def test_values_in_single_precision_never_give_a_false_bound_next_to_a_jump(distance, seed) -> None:
    """A sawtooth of period 0.01, whose jump lies between the points of the first cluster and x."""

    def sawtooth(x):
        return (50 * np.remainder(x.astype(np.float32), np.float32(0.01))).astype(float)

    estimate, direction = differentiate(sawtooth, [-1.05 + distance], seed=seed)
    assert not estimate.smooth[0] or abs(estimate.value[0] - 50 * direction[0]) <= 3 * estimate.bound[0]


def test_a_staircase_has_no_bound() -> None:
    estimate, _ = differentiate(lambda x: np.floor(x * 50), 0.93)
    assert (
        Status(int(estimate.status[0])) in (Status.STAIRCASE, Status.UNRESOLVED, Status.JUMP) or estimate.value[0] == 0
    )
    flat, _ = differentiate(lambda x: 1.0 + np.round((x - 0.9) * 3e3) / 3e3, 0.93)
    assert not flat.smooth[0] or flat.bound[0] > 1e-7


def test_single_precision_keeps_its_own_bound() -> None:
    for seed in range(20):
        x = np.linspace(0.2, 2.2, 9)
        estimate, direction = differentiate(lambda p: np.sin(p.astype(np.float32)).astype(float), x, seed=seed)
        error = np.abs(estimate.value - np.cos(x) * direction)
        assert (error <= estimate.bound)[estimate.smooth].all()
        assert (estimate.bound > 1e-8 * np.abs(direction)).all()


def test_values_that_underflow_have_a_floor() -> None:
    estimate, _ = differentiate(lambda x: 1e-300 * x * 1e-30, 0.7)
    assert estimate.bound[0] > 0


def test_an_exception_away_from_the_point_is_the_edge_of_the_domain() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        if x[0] <= 0.69:
            raise ValueError("outside")
        return np.sin(x)

    estimate, direction = differentiate(function, 0.7)
    assert estimate.smooth[0]
    assert abs(estimate.value[0] - np.cos(0.7) * direction[0]) <= estimate.bound[0] + 1e-12


def test_an_exception_at_the_point_propagates() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        raise ValueError(f"never {x.size}")

    with pytest.raises(ValueError, match="never 1"):
        differentiate(function, 0.7)


def test_on_the_edge_of_the_domain_the_slope_is_one_sided() -> None:
    estimate, direction = differentiate(lambda x: np.where(x >= 0.5, np.exp(x), np.nan), 0.5)
    assert Status(int(estimate.status[0])) is Status.DOMAIN
    assert abs(estimate.value[0] - np.exp(0.5) * direction[0]) <= estimate.bound[0]
    assert estimate.bound[0] < 1e-6


def test_outputs_are_independent_of_each_other() -> None:
    estimate, direction = differentiate(
        lambda x: np.array([np.sin(x[0]), np.abs(x[0] - 0.5), np.nan, 0.0, 1e9 + x[0]]), 0.5
    )
    assert [Status(int(s)) for s in estimate.status[:3]] == [Status.OK, Status.KINK, Status.DOMAIN]
    assert abs(estimate.value[0] - np.cos(0.5) * direction[0]) <= estimate.bound[0]
    assert estimate.value[3] == 0
    assert not np.isfinite(estimate.bound[2])


def test_the_same_seed_gives_the_same_estimate() -> None:
    one, _ = differentiate(np.sin, 0.4, seed=5)
    two, _ = differentiate(np.sin, 0.4, seed=5)
    assert one.value[0] == two.value[0]
    assert one.bound[0] == two.bound[0]
