"""The search ends after its number of tries, or at its time limit, whatever else the machine does."""

import itertools

import numpy as np
import pytest

from gradcli.errors import InputsNotFoundError
from gradcli.inputs.search.budget import GUARANTEED_TRIES, at_most
from gradcli.inputs.search.inference import infer
from tests.inputs.search.expected import ALSO_FOUND, EXPECTED, inferred
from tests.programs import plain_functions as plain


def test_the_search_is_quick():
    tries = sorted(inferred(name).tries for name in [*EXPECTED, *ALSO_FOUND])
    assert tries[len(tries) // 2] < 20


@pytest.fixture
def slow_clock(monkeypatch):
    """A machine so busy that an hour passes between any two looks at the clock."""
    hours = itertools.count()
    monkeypatch.setattr("gradcli.watchdog.limit.monotonic", lambda: 3600.0 * next(hours))


@pytest.mark.parametrize("name", ["linear", "layer_norm", "cross_entropy", "bilinear"])
def test_a_busy_machine_finds_the_same_inputs(name, slow_clock):
    assert inferred(name).as_flags() == EXPECTED[name]


def test_the_limit_of_time_leaves_a_guaranteed_number_of_tries_and_is_told(slow_clock):
    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(never), plain.attempt_of(never), limit_seconds=7)
    assert f"tried {GUARANTEED_TRIES} sets" in str(caught.value)
    assert "stopped at its time limit of 7 s" in str(caught.value)


def test_without_a_busy_machine_tries_alone_end_the_search():
    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(never), plain.attempt_of(never), budget_tries=700)
    assert "tried 700 sets" in str(caught.value)
    assert "limit of" not in str(caught.value)


def test_a_search_that_nothing_depends_on_is_given_up():
    needed = inferred("layer_norm").tries
    with at_most(needed):
        assert inferred("layer_norm").as_flags() == EXPECTED["layer_norm"]
    with at_most(needed - 1), pytest.raises(InputsNotFoundError, match=f"in {needed - 1} tries"):
        inferred("layer_norm")
    assert inferred("layer_norm").as_flags() == EXPECTED["layer_norm"]


@pytest.mark.parametrize("name", ["linear", "layer_norm", "bilinear"])
def test_backward_runs_once_on_each_set_of_inputs(name):
    seen = []

    def attempt_backward(arguments):
        seen.append([(a.name, np.shape(a.value), np.asarray(a.value).tolist()) for a in arguments])
        return attempt(arguments)

    function = getattr(plain, name)
    attempt = plain.attempt_of(function)
    found = infer(plain.info_of(function), attempt, attempt_backward=attempt_backward)
    assert found.as_flags() == EXPECTED[name]
    assert seen
    assert all(each not in seen[:number] for number, each in enumerate(seen))


def never(first, second):
    raise RuntimeError(f"sizes {np.shape(first)} and {np.shape(second)} do not fit")


def test_inputs_that_forward_refused_are_not_run_again_and_count_as_tries():
    seen = []

    def attempt(arguments):
        seen.append(tuple((a.name, np.shape(a.value), np.asarray(a.value).tobytes()) for a in arguments))
        return plain.attempt_of(never)(arguments)

    with pytest.raises(InputsNotFoundError, match="tried 700 sets"):
        infer(plain.info_of(never), attempt, budget_tries=700)
    assert len(set(seen)) == len(seen) < 700
