"""Random generators: found by whoever draws from one, put back for the user, left alone where nobody draws."""

import random

import numpy as np
import pytest

import gradcli
from gradcli.backends import generators
from gradcli.backends.generators import PythonGenerator, SharedGenerator
from gradcli.backends.tensor.framework import Framework
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch", reason="the Functions are PyTorch's")

GIVEN = (0.5, 0.75, 1.25, 1.5, 2.0, 3.0)
DRAWS = {
    "torch": lambda x: torch.rand_like(x),
    "numpy": lambda x: torch.from_numpy(np.random.rand(*x.shape)),
    "numpy's normal": lambda x: torch.full_like(x, np.random.normal()),
    "python": lambda x: torch.full_like(x, random.random()),
    "python's normal": lambda x: torch.full_like(x, random.gauss(0.0, 1.0)),
}
everyone = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())


def scaled(draw, *, where, factor=2.0):
    """A Function x -> x^2 m with m drawn at the points `where` says, and 1 elsewhere."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            drawn = draw(x) if where(x) else torch.ones_like(x)
            ctx.save_for_backward(x, drawn)
            return x * x * drawn

        @staticmethod
        def backward(ctx, g):
            x, drawn = ctx.saved_tensors
            return factor * g * x * drawn

    return Scaled


def everywhere(x):
    return True


def elsewhere(x):
    """Not at the given point: what the first call does says nothing of the later ones."""
    return x.detach().tolist() != list(GIVEN)


def given():
    return (torch.tensor(GIVEN, dtype=torch.float64, requires_grad=True),)


def states():
    return (
        torch.get_rng_state().tolist(),
        [np.asarray(part).tolist() for part in np.random.get_state()],
        random.getstate(),
    )


@pytest.mark.sampled(5)
@everyone
@pytest.mark.parametrize("where", [everywhere, elsewhere])
@pytest.mark.usefixtures("unexplained")
def test_what_is_drawn_is_the_same_in_every_call(draw, where):
    report = gradcli.check(scaled(draw, where=where), given(), order=1, shrink=False)
    assert report.verdict is Verdict.PASSED, str(report)
    wrong = gradcli.check(scaled(draw, where=where, factor=2.5), given(), order=1, shrink=False)
    assert wrong.verdict is Verdict.FAILED


@everyone
@pytest.mark.parametrize("where", [everywhere, elsewhere])
def test_the_users_generators_are_put_back_with_numbers_kept(draw, where):
    for source in (torch.manual_seed, np.random.seed, random.seed):
        source(7)
    np.random.normal()
    random.gauss(0.0, 1.0)
    before = states()
    gradcli.check(scaled(draw, where=where), given(), order=1, skip=("untracked",), shrink=False)
    assert states() == before


def test_generators_are_not_set_where_nobody_draws(monkeypatch):
    seeds = []
    monkeypatch.setattr(Framework, "seed", lambda self, seed: seeds.append(seed))
    report = gradcli.check(scaled(DRAWS["torch"], where=lambda x: False), given(), order=1)
    assert report.ok
    assert seeds == []


def test_a_generator_of_its_own_makes_forward_differ():
    own = np.random.default_rng()
    report = gradcli.check(
        scaled(lambda x: torch.full_like(x, own.random()), where=everywhere), given(), order=1, shrink=False
    )
    assert [f.kind.value for f in report.cases[0].findings] == ["nondeterministic-forward"]


@pytest.mark.parametrize("kept", [False, True])
def test_a_number_drawn_shows_and_a_restored_state_is_the_same(kept):
    np.random.seed(3)
    if kept:
        np.random.normal()
    shared = SharedGenerator()
    before = shared.state()
    assert shared.is_at(before)
    np.random.normal()
    assert not shared.is_at(before)
    np.random.set_state(before)
    assert shared.is_at(before)
    assert shared.state()[3] == int(kept)


def test_another_bit_generator_is_asked_for_its_state():
    shared, before = SharedGenerator(), np.random.mtrand.get_bit_generator()
    np.random.mtrand.set_bit_generator(np.random.MT19937(5))
    try:
        state = shared.state()
        assert shared.is_at(state)
        np.random.random()
        assert not shared.is_at(state)
    finally:
        np.random.mtrand.set_bit_generator(before)


@pytest.mark.parametrize("draw", [random.random, lambda: random.gauss(0.0, 1.0), lambda: random.getrandbits(7)])
@pytest.mark.parametrize("kept", [False, True])
def test_a_number_drawn_from_pythons_generator_shows(draw, kept):
    before = random.getstate()
    try:
        random.seed(3)
        if kept:
            random.gauss(0.0, 1.0)
        watched = PythonGenerator()
        state = watched.state()
        assert state == random.getstate()
        assert watched.is_at(state)
        assert watched.state() is state
        draw()
        assert not watched.is_at(state)
        assert watched.state() == random.getstate() != state
        random.setstate(state)
        assert watched.is_at(state)
    finally:
        random.setstate(before)


def test_pythons_generator_is_asked_where_its_memory_is_not_known(monkeypatch):
    monkeypatch.setattr(generators, "_memory_of_python", lambda: None)
    before = random.getstate()
    try:
        watched = PythonGenerator()
        state = watched.state()
        assert watched.is_at(state)
        random.random()
        assert not watched.is_at(state)
    finally:
        random.setstate(before)
