"""A second witness decides entry by entry, is itself checked, and costs little."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES
from gradcli.numerics.sampling.directions import TRIES
from gradcli.numerics.verify import Doubt, Outcome, verify
from tests.numerics.cases import AWKWARD, NORMAL, ORDINARY, Case, FormulaMap, space

SURE = [case for case in ORDINARY + AWKWARD if case.sure]


def run(claim: FormulaMap, witness: FormulaMap, x: np.ndarray, seed: int = 0, **options):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return verify(claim, x, seed=seed, witness=witness, **options)


def with_witness(case: Case, spoil=None, spoil_witness=None, seed: int = 0):
    return run(case.map(spoil), case.map(spoil_witness), case.x, seed)


def one_entry(j: np.ndarray) -> np.ndarray:
    j = j.copy()
    j.reshape(-1)[np.abs(j).argmax()] *= 1.01
    return j


def column_dropped(j: np.ndarray) -> np.ndarray:
    j = j.copy()
    j[:, -1] = 0
    return j


@pytest.mark.parametrize("case", ORDINARY, ids=lambda case: case.name)
def test_a_witness_that_agrees_is_certified_by_one_direction(case) -> None:
    claim, witness = CountedMap(case.map()), CountedMap(case.map())
    result = run(claim, witness, case.x)
    assert {(b.outcome, b.reference) for b in result.blocks} == {(Outcome.AGREES, AUTODIFF)}
    assert all(1e-14 <= b.resolution < 1e-11 for b in result.blocks)
    assert result.evaluations <= 5
    assert claim.vjps <= 3
    assert witness.vjps <= 3
    assert witness.values == 0


@pytest.mark.sampled(11)
@pytest.mark.parametrize("case", AWKWARD, ids=lambda case: case.name)
def test_awkward_maps_with_a_witness_never_differ(case) -> None:
    for seed in range(4):
        for block in with_witness(case, seed=seed).blocks:
            assert block.outcome is not Outcome.DIFFERS, (seed, block)
            assert block.outcome is Outcome.AGREES or not case.sure, (seed, block)


@pytest.mark.sampled(22)
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("case", SURE, ids=lambda case: case.name)
def test_a_wrong_claim_is_found_beside_a_right_witness(case, delta) -> None:
    with np.errstate(all="ignore"):
        if not np.abs(case.map().claimed(case.x)).max() > 0:
            pytest.skip("a factor does not change a gradient of zeros")
    assert any(b.outcome is Outcome.DIFFERS for b in with_witness(case, lambda j: j * (1 + delta)).blocks)


@pytest.mark.parametrize("case", ORDINARY, ids=lambda case: case.name)
def test_a_clear_difference_is_tabulated_from_the_witness(case) -> None:
    claim = CountedMap(case.map(one_entry))
    result = run(claim, case.map(), case.x)
    wrong = [b for b in result.blocks if b.outcome is Outcome.DIFFERS]
    assert [b.reference for b in wrong] == [AUTODIFF]
    table = wrong[0].table
    assert table.complete
    assert np.count_nonzero(np.abs(table.claimed - table.numeric) > 3 * table.bound) == 1
    looks_for_an_iteration = 2 + TRIES + 16
    assert result.evaluations <= 8 + 6 * (len(case.inputs) + 1) + looks_for_an_iteration


@pytest.mark.parametrize("case", ORDINARY[:8], ids=lambda case: case.name)
def test_a_witness_that_leaves_something_out_is_overruled(case) -> None:
    (block,) = with_witness(case, None, column_dropped).blocks
    assert (block.outcome, block.reference) == (Outcome.AGREES, DIFFERENCES)
    assert "autodiff of forward's body disagrees with finite differences" in block.note


@pytest.mark.parametrize("case", ORDINARY, ids=lambda case: case.name)
def test_claim_and_witness_may_both_be_wrong(case) -> None:
    same = with_witness(case, lambda j: j * 1.01, lambda j: j * 1.01)
    assert {(b.outcome, b.reference) for b in same.blocks} == {(Outcome.DIFFERS, DIFFERENCES)}
    other = with_witness(case, lambda j: j * 1.01, lambda j: j * 0.5)
    assert {b.outcome for b in other.blocks} == {Outcome.DIFFERS}


def test_a_witness_that_is_not_finite_or_raises_is_ignored() -> None:
    class Raising(FormulaMap):
        def vjp_many(self, x, cotangents):
            raise RuntimeError("no graph")

    case = ORDINARY[0]
    (block,) = with_witness(case, None, lambda j: j * np.nan).blocks
    assert (block.outcome, block.reference) == (Outcome.AGREES, DIFFERENCES)
    mute = Raising(case.function, case.jacobian, space(*case.inputs), space(*case.outputs))
    assert run(case.map(), mute, case.x).blocks[0].outcome is Outcome.AGREES


def test_blocks_of_zeros_are_looked_at_elsewhere_together() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        return np.concatenate([3 * x[:4], 2 * x[4:8], x[8:] ** 2])

    def jacobian(x: np.ndarray) -> np.ndarray:
        return np.diag(np.concatenate([np.full(4, 3.0), np.full(4, 2.0), 2 * x[8:]]))

    x = np.linspace(-1, 1.3, 12)
    map_ = FormulaMap(function, jacobian, space((4,), (4,), (4,)), space((4,), (4,), (4,)))
    zeros = {(i, o) for i in range(3) for o in range(3) if i != o}
    for witness, evaluations, vjps in ((None, 70, 100), (map_, 8, 21)):
        result = verify(map_, x, seed=0, witness=witness)
        assert {b.outcome for b in result.blocks} == {Outcome.AGREES}
        assert {(b.input, b.output) for b in result.blocks if b.zero_everywhere} == zeros
        assert result.evaluations <= evaluations
        assert result.vjps <= vjps


def test_a_dead_point_hides_neither_claim_nor_witness() -> None:
    def rectifier(factor: float) -> FormulaMap:
        return FormulaMap(lambda x: np.maximum(x, 0), lambda x: np.diag((x > 0) * factor), space((3,)), space((3,)))

    x = np.array([-1.0, -2.0, -0.5])
    assert run(rectifier(1.0), rectifier(1.0), x).blocks[0].outcome is Outcome.AGREES
    for wrong in (0.0, 1.001):
        (block,) = run(rectifier(wrong), rectifier(1.0), x).blocks
        assert block.outcome is Outcome.DIFFERS
        assert "the gradient is zero here; compared at" in block.note


@pytest.mark.sampled(2)
@pytest.mark.parametrize("witnessed", [True, False])
@pytest.mark.parametrize("factor", [1.001, 1 + 3e-6])
def test_a_kink_is_not_mistaken_for_a_jump(witnessed, factor) -> None:
    def bend(x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, 2 * x, 3 * x)

    def slope(x: np.ndarray) -> np.ndarray:
        return np.diag(np.where(x > 0, 2.0, 3.0))

    for x in (NORMAL, np.array([0.1, -0.02, 1.0]), np.array([0.0, 1.0, -1.0])):
        right = FormulaMap(bend, slope, space(x.shape), space(x.shape))
        wrong = FormulaMap(bend, slope, space(x.shape), space(x.shape), lambda j: j * factor)
        for seed in range(5):
            witness = right if witnessed else None
            assert verify(wrong, x, seed=seed, witness=witness).blocks[0].outcome is Outcome.DIFFERS, (x, seed)


def test_a_long_wrong_gradient_is_located_at_once() -> None:
    rng = np.random.default_rng(5)
    n = 100_000
    a, x = rng.standard_normal(n) + 3, rng.standard_normal(n)
    picked = np.sort(rng.choice(n, 10, replace=False))

    def spoil(j: np.ndarray) -> np.ndarray:
        j = j.copy()
        j[0, picked] *= 1.01
        return j

    right = FormulaMap(lambda p: np.array([a @ np.sin(p)]), lambda p: a * np.cos(p), space((n,)), space(()))
    wrong = FormulaMap(right.function, right.jacobian, space((n,)), space(()), spoil)
    result = run(wrong, right, x)
    (block,) = result.blocks
    assert block.outcome is Outcome.DIFFERS
    assert block.wrong_columns.tolist() == picked.tolist()
    assert result.evaluations <= 40
    assert set(picked) <= set(block.table.columns.tolist())


def test_what_is_wrong_everywhere_is_not_called_wrong_in_small_entries_alone() -> None:
    rng = np.random.default_rng(2)
    rates = 10.0 ** rng.uniform(-7, 1, 200)
    x = rng.standard_normal(201)

    def slopes(p: np.ndarray) -> np.ndarray:
        return np.hstack([np.diag(rates * np.cos(rates * p[:-1])), np.ones((200, 1))])

    def spoil(j: np.ndarray) -> np.ndarray:
        return np.hstack([1.1 * j[:, :-1], j[:, -1:]])

    right = FormulaMap(lambda p: np.sin(rates * p[:-1]) + p[-1], slopes, space((200,), ()), space((200,)))
    wrong = FormulaMap(right.function, slopes, right.domain, right.codomain, spoil)
    block, other = run(wrong, right, x).blocks
    assert (block.outcome, other.outcome) == (Outcome.DIFFERS, Outcome.AGREES)
    assert block.note is None
    assert block.max_rel_error == pytest.approx(0.1 / 1.1)


class TestSpecialPoints:
    """A claim proven wrong at the given point alone."""

    def test_outside_the_slopes_of_a_kink(self) -> None:
        def spoil(j: np.ndarray) -> np.ndarray:
            return np.where(j == 0.25, 5.0, j)

        x = np.array([0.0, 1.5, -2.0])
        claim = FormulaMap(
            np.abs, lambda p: np.diag(np.where(p == 0, 0.25, np.sign(p))), space((3,)), space((3,)), spoil
        )
        (block,) = verify(claim, x, seed=1).blocks
        assert block.outcome is Outcome.AGREES
        assert (block.special.coordinate, block.special.output, block.special.claimed) == (0, 0, 5.0)
        assert (block.special.left, block.special.right) == pytest.approx((-1, 1))
        claim.spoil = None
        assert verify(claim, x, seed=1).blocks[0].special is None

    def test_not_a_number_on_a_kink_with_finite_slopes(self) -> None:
        claim = FormulaMap(lambda x: np.sqrt(x**2), lambda x: np.diag(x / np.sqrt(x**2)), space((2,)), space((2,)))
        (block,) = run(claim, None, np.array([0.0, 1.5])).blocks
        assert np.isnan(block.special.claimed)

    def test_a_choice_among_tied_entries_is_none(self) -> None:
        case = Case(
            "median", np.median, lambda x: np.eye(3)[np.argsort(x, kind="stable")[1]], np.ones(3), ((3,),), ((),)
        )
        for seed in range(6):
            (block,) = verify(case.map(), case.x, seed=seed).blocks
            assert block.special is None
            assert block.outcome is not Outcome.DIFFERS

    def test_wrong_at_one_smooth_point(self) -> None:
        x = np.array([0.5, 1.25])

        def jacobian(p: np.ndarray) -> np.ndarray:
            return np.diag(np.cos(p)) * (3.0 if np.array_equal(p, x) else 1.0)

        (block,) = verify(FormulaMap(np.sin, jacobian, space((2,)), space((2,))), x, seed=3).blocks
        assert block.doubt is Doubt.KINK
        assert block.special.left == pytest.approx(np.cos(x[block.special.coordinate]))
        assert block.special.claimed == pytest.approx(3 * block.special.left)


def offset(n: int, spoil=None) -> FormulaMap:
    """A sum of numbers that are large beside their changes: differences over fine steps drown in its rounding."""
    weights = np.linspace(2, 4, n)
    return FormulaMap(
        lambda x: np.array([weights @ (1e6 + np.sin(x))]), lambda x: weights * np.cos(x), space((n,)), space(()), spoil
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "error"), [(3, 1e-5), (30, 1e-5), (300, 1e-4)])
def test_small_errors_beside_large_values_are_found_over_steps_as_long_as_x(n, error, seed) -> None:
    x = np.random.default_rng(seed).uniform(0.6, 1.2, n)

    def one(j: np.ndarray) -> np.ndarray:
        j = j.copy()
        j[0, n // 2] *= 1 + error
        return j

    for spoil in (one, lambda j: j * (1 + error)):
        (block,) = run(offset(n, spoil), offset(n), x, seed).blocks
        assert block.outcome is Outcome.DIFFERS
        (block,) = run(offset(n), offset(n, spoil), x, seed).blocks
        assert block.outcome is Outcome.AGREES, "the witness is wrong there"
    assert run(offset(n), offset(n), x, seed).blocks[0].outcome is Outcome.AGREES


def test_a_claim_and_a_witness_masked_at_one_point_are_wrong_there() -> None:
    """where(x == 0, 1, f(x) / x) cuts the gradient at zero, for autodiff as for a backward that does the same."""

    def quotient(x: np.ndarray) -> np.ndarray:
        return np.where(x == 0, 1.0, np.expm1(x) / np.where(x == 0, 1.0, x))

    def masked(x: np.ndarray) -> np.ndarray:
        safe = np.where(x == 0, 1.0, x)
        return np.diag(np.where(x == 0, 0.0, (safe * np.exp(safe) - np.expm1(safe)) / safe**2))

    x = np.array([0.0, 0.5, -1.0])
    both = FormulaMap(quotient, masked, space((3,)), space((3,)))
    (block,) = run(both, both, x).blocks
    assert block.special is not None
    assert (block.special.coordinate, block.special.claimed) == (0, 0.0)
    assert block.special.left == pytest.approx(0.5)


@pytest.mark.parametrize(("error", "outcome"), [(3e-6, Outcome.AGREES), (1e-5, Outcome.DIFFERS)])
def test_the_note_on_an_accepted_difference_has_the_limit_of_the_format(error, outcome) -> None:
    single = space((3,), dtype="float32")

    def cube(spoil=None) -> FormulaMap:
        return FormulaMap(
            lambda x: x.astype(np.float32) ** 3, lambda x: np.diag(3 * x.astype(np.float32) ** 2), single, single, spoil
        )

    x = np.array([0.3, 1.2, -2.0])
    (block,) = run(cube(lambda j: j * (1 + error)), cube(), x).blocks
    assert block.outcome is outcome
    assert outcome is Outcome.DIFFERS or block.note.endswith(
        "differs by 3.0e-06 of the gradient's largest entry, which is not counted as an error (up to 4e-06 is allowed)"
    )


def test_no_note_on_a_difference_that_rounding_explains() -> None:
    def tanh(x: np.ndarray) -> np.ndarray:
        return np.tanh(x.astype(np.float32))

    def by_tanh(x: np.ndarray) -> np.ndarray:
        return np.diag(1 - tanh(x) ** 2)

    def by_cosh(x: np.ndarray) -> np.ndarray:
        return np.diag(np.cosh(x.astype(np.float32)) ** -2)

    errors = []
    for seed in range(12):
        x = np.random.default_rng(seed).uniform(0.2, 0.8, 6)
        claim, witness = (FormulaMap(tanh, slope, space((6,)), space((6,))) for slope in (by_tanh, by_cosh))
        (block,) = run(claim, witness, x, seed).blocks
        assert (block.outcome, block.reference, block.note) == (Outcome.AGREES, AUTODIFF, None), seed
        errors.append(block.max_rel_error)
        off = FormulaMap(tanh, by_tanh, space((6,)), space((6,)), lambda j: j * (1 + 1.5e-6))
        (noted,) = run(off, witness, x, seed).blocks
        assert "not counted as an error" in noted.note, seed
    assert min(errors) < 1e-7 < max(errors)
