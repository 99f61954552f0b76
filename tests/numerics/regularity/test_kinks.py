"""Points on kinks and jumps: what is named, at what cost, and wrong claims there."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import AWKWARD, FormulaMap, space

LABELS = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
SCORES = np.array([0.3, -1.2, 2.5, 0.7, 0.1])


def hinge(x: np.ndarray) -> np.ndarray:
    """PyTorch's hinge embedding loss: scores where the label is 1, the margin left where it is -1."""
    scores, labels = x[:5], x[5:]
    far = np.where(labels == 1, 0.0, np.maximum(0.0, 1.0 - scores))
    near = np.where(labels == -1, 0.0, scores)
    return np.array([np.mean(far + near)])


def hinge_slopes(x: np.ndarray) -> np.ndarray:
    scores, labels = x[:5], x[5:]
    slopes = np.where(labels == -1, 0.0, 1.0) - np.where(labels == 1, 0.0, scores < 1.0)
    return np.concatenate([slopes / 5, np.zeros(5)])


def hinge_map(spoil=None) -> FormulaMap:
    return FormulaMap(hinge, hinge_slopes, space((5,), (5,)), space(()), spoil)


@pytest.mark.parametrize("seed", range(3))
def test_labels_are_named_as_jumps_and_cost_a_few_evaluations_each(seed) -> None:
    counted = CountedMap(hinge_map())
    result = verify(counted, np.concatenate([SCORES, LABELS]), seed=seed, witness=hinge_map())
    assert [block.outcome for block in result.blocks] == [Outcome.AGREES] * 2
    assert {kink.coordinate for kink in result.kinks} == {5, 6, 8, 9}  # beyond the margin nothing depends on the label
    assert all(kink.jump and kink.between for kink in result.kinks)
    assert counted.values < 250


@pytest.mark.parametrize("error", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("seed", range(3))
def test_a_wrong_gradient_beside_labels_is_found(seed, error) -> None:
    claim = hinge_map(lambda j: (1 + error) * j)
    first, second = verify(claim, np.concatenate([SCORES, LABELS]), seed=seed, witness=hinge_map()).blocks
    assert (first.outcome, second.outcome) == (Outcome.DIFFERS, Outcome.AGREES)


@pytest.mark.parametrize("seed", range(3))
def test_every_entry_of_a_norm_at_zero_is_named_with_slopes_from_a_few_values(seed) -> None:
    def slopes(x: np.ndarray) -> np.ndarray:
        size = np.linalg.norm(x)
        return x / size if size else np.zeros(5)

    def norm() -> FormulaMap:
        return FormulaMap(lambda x: np.array([np.linalg.norm(x)]), slopes, space((5,)), space(()))

    counted = CountedMap(norm())
    result = verify(counted, np.zeros(5), seed=seed, witness=norm())
    assert result.blocks[0].outcome is Outcome.AGREES
    assert [(k.coordinate, round(k.left, 8), round(k.right, 8)) for k in result.kinks] == [(i, -1, 1) for i in range(5)]
    assert counted.values < 250


def test_slopes_of_curved_sides_are_exact() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, np.expm1(3 * x), np.sin(0.5 * x))

    def slopes(x: np.ndarray) -> np.ndarray:
        return np.diag(np.where(x > 0, 3 * np.exp(3 * x), 0.5 * np.cos(0.5 * x)))

    (kink,) = verify(FormulaMap(function, slopes, space((2,)), space((2,))), np.array([0.0, 0.4]), seed=0).kinks
    assert kink.left == pytest.approx(0.5, rel=1e-9)
    assert kink.right == pytest.approx(3.0, rel=1e-9)


def test_a_cusp_is_still_looked_at_at_length() -> None:
    def slopes(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.diag(np.where(x == 0, 0.0, 0.5 * np.sign(x) / np.sqrt(np.abs(x))))

    map_ = FormulaMap(lambda x: np.sqrt(np.abs(x)), slopes, space((1,)), space((1,)))
    result = verify(map_, np.zeros(1), seed=0)
    assert result.blocks[0].outcome is Outcome.AGREES
    assert [kink.coordinate for kink in result.kinks] == [0]
    assert not result.kinks[0].jump


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(12))
def test_a_claim_that_is_off_everywhere_is_wrong_close_to_kinks_too(seed) -> None:
    case = next(case for case in AWKWARD if case.name == "clip at its edges")
    (block,) = verify(case.map(lambda j: j + 0.1), case.x, seed=seed).blocks
    assert block.outcome is Outcome.DIFFERS


def bent(claimed: float) -> FormulaMap:
    """sign(x) log(1 + |x|), with the slope 1 at 0, where its second derivative jumps."""

    def value(x: np.ndarray) -> np.ndarray:
        return np.sign(x) * np.log1p(np.abs(x))

    def slopes(x: np.ndarray) -> np.ndarray:
        return np.diag(np.where(x == 0, claimed, 1 / (1 + np.abs(x))))

    return FormulaMap(value, slopes, space((1,)), space((1,)))


@pytest.mark.parametrize("witnessed", [False, True])
def test_a_wrong_slope_where_the_second_derivative_jumps_is_wrong_at_this_point(witnessed) -> None:
    (right,), (wrong,) = (
        verify(bent(claimed), np.zeros(1), seed=1, witness=bent(claimed) if witnessed else None).blocks
        for claimed in (1.0, 0.0)
    )
    assert right.outcome is Outcome.AGREES
    assert right.special is None
    assert wrong.special is not None
    assert (wrong.special.claimed, wrong.special.jump) == (0.0, False)
    assert wrong.special.left == pytest.approx(1.0)


def medians(x: np.ndarray) -> np.ndarray:
    return np.sort(x.reshape(2, 5))[:, 2]


def shares(one_of_many: bool, factor: float, of_tied: float = 1.0):
    """The gradient of medians, times `factor`; at a tie it is that of one tied entry or divided, times `of_tied`."""

    def jacobian(x: np.ndarray) -> np.ndarray:
        found = np.zeros((2, 10))
        for row, (entries, middle) in enumerate(zip(x.reshape(2, 5), medians(x), strict=True)):
            tied = np.flatnonzero(entries == middle)
            chosen = tied[:1] if one_of_many else tied
            found[row, 5 * row + chosen] = factor / chosen.size * (of_tied if tied.size > 1 else 1.0)
        return found

    return jacobian


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("one_of_many", [True, False])
def test_a_tie_of_three_is_decided_at_a_point_close_by(one_of_many: bool, seed: int) -> None:
    x = np.array([1.0, 1.0, 1.0, 2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])

    def found(factor: float, of_tied: float = 1.0) -> Outcome:
        map_ = FormulaMap(medians, shares(one_of_many, factor, of_tied), space((10,)), space((2,)))
        return verify(map_, x, seed=seed).blocks[0].outcome

    assert found(1.0) is Outcome.AGREES
    assert found(1.1) is Outcome.DIFFERS
    assert found(1.0, 0.0) is not Outcome.AGREES
    assert found(1.0, 3.0) is not Outcome.AGREES
