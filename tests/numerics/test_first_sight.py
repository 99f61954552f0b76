"""Most right gradients are settled in three evaluations, and nothing wrong is."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.sampling.directions import entry_scales, generator_of, snap
from gradcli.numerics.sampling.line import power_of_two_above
from gradcli.numerics.verify import Doubt, Outcome, verify
from tests.numerics.cases import AWKWARD, ORDINARY, Case, FormulaMap, space

RNG = np.random.default_rng(7)
WIDE = RNG.standard_normal((30, 40)) / 10


def large(name: str, function, jacobian, *inputs: tuple[int, ...], size: int, outputs: int) -> Case:
    x = RNG.uniform(0.3, 1.3, size) * RNG.choice([-1.0, 1.0], size)
    return Case(name, function, jacobian, x, inputs or ((size,),), ((outputs,),))


LARGE = [
    large("sine", np.sin, lambda x: np.diag(np.cos(x)), size=300, outputs=300),
    large("tanh of a product", lambda x: np.tanh(WIDE @ x), lambda x: (1 / np.cosh(WIDE @ x) ** 2)[:, None] * WIDE,
          size=40, outputs=30),
    large("bilinear", lambda x: x[:50] * x[50:], lambda x: np.hstack([np.diag(x[50:]), np.diag(x[:50])]),
          (50,), (50,), size=100, outputs=50),
    large("sum of squares", lambda x: np.array([x @ x]), lambda x: 2 * x[None], size=500, outputs=1),
]  # fmt: skip
ALL = ORDINARY + AWKWARD + LARGE


def at_once(case: Case, spoil=None, spoil_witness=None, seed: int = 0):
    """The verification, if every block agrees with the reference after three evaluations and one backward."""
    with np.errstate(all="ignore"):
        found = verify(case.map(spoil), case.x, seed=seed, witness=case.map(spoil_witness))
    agreed = all((block.outcome, block.reference) == (Outcome.AGREES, "autodiff") for block in found.blocks)
    return found if agreed and found.evaluations <= 3 and found.vjps == 1 else None


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_what_three_evaluations_settle_differences_alone_confirm(case) -> None:
    for seed in range(5):
        short = at_once(case, seed=seed)
        if short is None:
            continue
        with np.errstate(all="ignore"):
            whole = verify(case.map(), case.x, seed=seed)
        assert Outcome.DIFFERS not in {block.outcome for block in whole.blocks}
        assert all(block.max_rel_error == 0 < block.resolution for block in short.blocks)
        assert (short.point == whole.point).all()
        assert (short.evaluations, short.vjps) == (3, 1)


@pytest.mark.parametrize("case", [*ORDINARY, *LARGE], ids=lambda case: case.name)
def test_ordinary_maps_are_settled_at_first_sight(case) -> None:
    settled = at_once(case)
    assert settled is not None
    assert {block.outcome for block in settled.blocks} == {Outcome.AGREES}


def scaled(delta):
    return lambda j: j * (1 + delta)


def entry_scaled(delta):
    def spoil(j):
        j = j.copy()
        j.reshape(-1)[np.abs(j).argmax()] *= 1 + delta
        return j

    return spoil


WRONG = {
    "all entries by 0.1 %": scaled(1e-3),
    "all entries by 1e-6": scaled(1e-6),
    "one entry by 0.1 %": entry_scaled(1e-3),
    "one entry by 1e-6": entry_scaled(1e-6),
    "columns exchanged": lambda j: np.roll(j, 1, axis=1),
    "a row dropped": lambda j: j * (np.arange(len(j)) != np.abs(j).sum(axis=1).argmax())[:, None],
}


@pytest.mark.sampled(13)
@pytest.mark.parametrize("case", [*ORDINARY, *LARGE], ids=lambda case: case.name)
@pytest.mark.parametrize("spoil", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_claim_is_never_settled(case, spoil) -> None:
    if (case.map(spoil).claimed(case.x) == case.map().claimed(case.x)).all():
        pytest.skip("this changes nothing here")
    assert at_once(case, spoil) is None
    found = verify(case.map(spoil), case.x, seed=0, witness=case.map()).blocks
    assert Outcome.DIFFERS in {block.outcome for block in found}


@pytest.mark.sampled(21)
@pytest.mark.parametrize("case", [*ORDINARY, *LARGE], ids=lambda case: case.name)
@pytest.mark.parametrize("spoil", [scaled(1e-3), scaled(1e-5), WRONG["a row dropped"]])
def test_claim_and_witness_that_are_wrong_alike_are_refuted_by_values(case, spoil) -> None:
    assert at_once(case, spoil, spoil) is None
    found = verify(case.map(spoil), case.x, seed=0, witness=case.map(spoil)).blocks
    assert Outcome.DIFFERS in {block.outcome for block in found}


def test_a_witness_that_raises_is_silent_or_not_finite_leaves_the_map_to_differences() -> None:
    case = LARGE[0]

    def raising(j):
        raise RuntimeError("no derivative")

    for spoil in (raising, lambda j: j[:, :-1], lambda j: j * np.nan, lambda j: j * np.inf):
        assert at_once(case, None, spoil) is None
        (block,) = verify(case.map(), case.x, seed=0, witness=case.map(spoil)).blocks
        assert (block.outcome, block.reference) == (Outcome.AGREES, "finite-difference")


def test_a_kink_close_by_is_not_settled() -> None:
    def jacobian(x):
        return np.diag(np.where(x > 0, 2.0, 1.0))

    x = RNG.standard_normal(50)
    x[7] = 1e-7
    bend = Case("bend", lambda x: np.where(x > 0, 2 * x, x), jacobian, x, ((50,),), ((50,),))
    assert at_once(bend) is None


def test_slopes_of_very_different_size_are_left_to_the_protocol() -> None:
    def spoil(j):
        j = j.copy()
        j[3:6] *= 2
        return j

    sizes = np.where((np.arange(60) >= 3) & (np.arange(60) < 6), 1e-9, 1.0)
    x = RNG.standard_normal(60)
    case = Case("faint rows", lambda x: sizes * np.sin(x), lambda x: np.diag(sizes * np.cos(x)), x, ((60,),), ((60,),))
    assert at_once(case, spoil) is None
    (block,) = verify(case.map(spoil), x, seed=0, witness=case.map()).blocks
    assert block.outcome is Outcome.DIFFERS


@pytest.mark.parametrize("outputs", [((2,), (3,)), ((0,),)])
def test_several_outputs_take_three_evaluations_too_and_empty_ones_none(outputs) -> None:
    size = sum(shape[0] for shape in outputs)
    map_ = FormulaMap(lambda x: x[:size] ** 2, lambda x: np.diag(2 * x)[:size], space((6,)), space(*outputs))
    found = verify(map_, np.arange(1.0, 7), seed=0, witness=map_)
    assert {block.outcome for block in found.blocks} == {Outcome.AGREES if size else Outcome.UNDECIDED}
    assert found.evaluations == (3 if size else 0)


def test_the_evaluations_allowed_are_kept_to() -> None:
    case, found = LARGE[0], []
    for budget in range(6):
        claim = CountedMap(case.map())
        found.append(verify(claim, case.x, seed=0, witness=case.map(), budget=budget).blocks[0])
        assert claim.values <= budget + 2
    assert (found[0].outcome, found[0].doubt) == (Outcome.UNDECIDED, Doubt.BUDGET)
    assert found[-1].outcome is Outcome.AGREES


def test_scales_are_powers_of_two_and_points_move_to_their_grid() -> None:
    for _ in range(50):
        x = RNG.standard_normal(200) * 10.0 ** RNG.integers(-200, 200) * 10.0 ** RNG.integers(-5, 5, 200)
        x[:20] = 2.0 ** RNG.integers(-5, 5, 20)
        scales = entry_scales(space((200,)), x)
        assert (scales == power_of_two_above(np.abs(x))).all()
        assert (snap(x, scales) == np.rint(x / scales * 2.0**44) * 2.0**-44 * scales).all()


def test_a_seed_draws_what_numpys_own_sequence_draws() -> None:
    for seed in (0, 5, 2**63 + 5):
        own = np.random.default_rng([0x6772, seed % 2**63])
        assert (generator_of(seed).bit_generator.random_raw(5) == own.bit_generator.random_raw(5)).all()
        assert generator_of(seed).random() == generator_of(seed).random()
