"""An output is judged by the rounding of its own value, also beside outputs that are larger by many decades."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from gradcli import check, engine
from gradcli.numerics.verify import BlockOutcome, Doubt, Outcome, verify
from gradcli.verdict import Verdict
from tests.numerics.cases import Array, FormulaMap, elementwise, space

MASKED = -1e30


def entropy(x: Array) -> Array:
    return -x * np.log(x)


def entropy_slope(x: Array) -> Array:
    return -np.log(x) - 1


def length(x: Array) -> Array:
    return np.sqrt(1 + x * x)


def length_slope(x: Array) -> Array:
    return x / length(x)


def found(map_: FormulaMap, x: object, seed: int) -> BlockOutcome:
    with np.errstate(all="ignore"):
        (block,) = verify(map_, np.asarray(x, float), seed=seed).blocks
    return block


SPREAD = [
    (entropy, entropy_slope, (1e-12, 1e-3, 2.0, 1e12), 1e-2, -1.0),
    (entropy, entropy_slope, (1e-12, 1e-3, 2.0, 1e12), 1e-10, -1.0),
    (entropy, entropy_slope, (1e-150, 1e-40, 1e-3, 2.0, 1e30), 1e-100, 1.1),
    (entropy, entropy_slope, (1e-20, 1e-3, 2.0), 1e-10, 1.1),
    (entropy, entropy_slope, (0.05, 3.0, 1e14), 1.0, -1.0),
    (entropy, entropy_slope, (0.05, 0.07, 1e15), 1.0, -1.0),
    (length, length_slope, (0.5, 3.0, 1e15), 1.0, -1.0),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("function", "slope", "x", "below", "factor"), SPREAD)
def test_entries_over_many_decades_are_all_compared_at_the_given_point(
    function, slope, x, below: float, factor: float, seed: int
) -> None:
    case = elementwise("", function, slope, x)
    right = found(case.map(), x, seed)
    assert right.outcome is Outcome.AGREES
    assert "compared" not in (right.note or "")
    wrong = found(case.map(lambda j: j * np.where(np.asarray(x) < below, factor, 1.0)), x, seed)
    assert wrong.outcome is Outcome.DIFFERS
    assert wrong.table is not None
    off = np.abs(wrong.table.claimed - wrong.table.numeric) > 3 * wrong.table.bound
    assert {*wrong.table.rows[off.any(axis=1)].tolist()} <= {*np.flatnonzero(np.asarray(x) < below).tolist()}


def masked(size: int, factor: float = 1.0, rest: float = 0.0) -> FormulaMap:
    """Sines, and two outputs that hold a mask."""
    return FormulaMap(
        lambda x: np.append(np.sin(x), [MASKED, MASKED]),
        lambda x: np.vstack([factor * np.diag(np.cos(x)), np.full((2, size), rest)]),
        space((size,)),
        space((size + 2,)),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [3, 150])
def test_a_constant_output_hides_no_others(size: int, seed: int) -> None:
    x = np.linspace(0.2, 1.2, size)
    right = found(masked(size), x, seed)
    assert right.outcome is Outcome.AGREES
    assert not right.zero_everywhere
    assert right.resolution is not None
    assert right.resolution < 1e-9
    assert found(masked(size, 1.1), x, seed).outcome is Outcome.DIFFERS
    assert found(masked(size, 1.0, 2.0), x, seed).outcome is not Outcome.AGREES


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_a_claim_that_rounding_hides_is_not_zero_at_all_points(factor: float) -> None:
    hidden = FormulaMap(lambda x: 1e30 + np.sin(x), lambda x: factor * np.diag(np.cos(x)), space((3,)), space((3,)))
    block = found(hidden, [0.3, 0.5, 1.2], 1)
    assert (block.outcome, block.doubt) == (Outcome.UNDECIDED, Doubt.NO_SIGNAL)


@pytest.mark.parametrize("seed", range(3))
def test_the_tail_of_a_single_output_has_its_own_digits(seed: int) -> None:
    def tails(x: Array) -> Array:
        return np.array([math.erfc(v) for v in x])

    x = np.array([0.1, 5.0, 12.0, 20.0, 25.0])
    case = elementwise("tails", tails, lambda x: -2 / np.pi**0.5 * np.exp(-x * x), x)
    right = found(case.map(), x, seed)
    assert (right.outcome, right.note) == (Outcome.AGREES, None)
    assert found(case.map(lambda j: j * np.where(x > 15, 1.1, 1.0)), x, seed).outcome is Outcome.DIFFERS


class Sum(FormulaMap):
    """1e9 sin a + sin b: the slope by b is known to four digits, and over large steps to six."""

    def __init__(self, size: int, factor: float) -> None:
        def jacobian(x: Array) -> Array:
            return np.hstack([np.diag(1e9 * np.cos(x[:size])), np.diag(factor * np.cos(x[size:]))])

        super().__init__(
            lambda x: 1e9 * np.sin(x[:size]) + np.sin(x[size:]), jacobian, space((size,), (size,)), space((size,))
        )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [1, 6, 20])
def test_a_slope_that_is_seen_is_not_taken_for_zero(size: int, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal(2 * size)
    for factor, outcome in ((1.0, Outcome.AGREES), (1.1, Outcome.DIFFERS), (1.001, Outcome.DIFFERS)):
        verification = verify(Sum(size, factor), x, seed=seed)
        large, small = verification.blocks
        assert large.outcome is Outcome.AGREES
        assert small.outcome is outcome or (factor == 1.001 and small.outcome is Outcome.UNDECIDED)
        assert not verification.moved


def _function(framework: SimpleNamespace, factor: float) -> type:
    tensor, base, where = framework.tensor, framework.base, framework.where

    class Entropies(base):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            values = x.detach().numpy()
            return framework.as_tensor(-values * np.log(values))

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return -grad_output * (x.log() + 1) * where(x < 1e-2, factor, 1.0)

        @staticmethod
        def sample_inputs():
            return (tensor((1e-12, 1e-3, 2.0, 1e12), dtype=framework.float64, requires_grad=True),)

    return Entropies


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_a_check_names_the_outputs_of_small_value(name: str) -> None:
    module = engine if name == "engine" else pytest.importorskip("torch")
    framework = SimpleNamespace(
        tensor=module.tensor,
        base=module.autograd.Function,
        where=lambda condition, one, other: module.where(
            condition, module.full_like(condition, one, dtype=module.float64), other
        ),
        as_tensor=module.as_tensor,
        float64=module.float64,
    )
    right = check(_function(framework, 1.0), order=1)
    assert right.verdict is Verdict.PASSED
    assert not any("the gradient is" in note for case in right.cases for note in case.notes)
    wrong = check(_function(framework, -1.0), order=1)
    assert wrong.verdict is Verdict.FAILED
    messages = [finding.message for case in wrong.cases for finding in case.findings]
    assert any("values or derivatives are far smaller" in message for message in messages), messages
