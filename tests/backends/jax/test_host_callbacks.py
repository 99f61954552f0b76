"""A function on the host, called through pure_callback, that raises: the user's error in one sentence."""

from functools import partial

import numpy as np
import pytest

import gradcli
from gradcli.inputs.search.inference import infer
from gradcli.verdict import Verdict

pytest.importorskip("jax", reason="the jax backend needs JAX")

PROGRAM = """
import jax
import numpy as np


def on_host(function, x):
    return jax.pure_callback(function, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def made(forward, backward):
    target = jax.custom_vjp(lambda x: on_host(forward, x))
    target.defvjp(lambda x: (target(x), x), lambda x, g: (on_host(backward, g),))
    return target


def twice(x):
    return 2 * np.asarray(x)


def refusing(x):
    raise ValueError("expected a matrix\\nsecond line")


def chained(x):
    try:
        {}["table"]
    except KeyError as error:
        raise RuntimeError("no such table") from error


def divided(x):
    return x / (1 // 0)


right = made(twice, twice)
forward_refusing, forward_chained, forward_divided = (made(f, twice) for f in (refusing, chained, divided))
backward_refusing, backward_chained, backward_divided = (made(twice, f) for f in (refusing, chained, divided))
"""
SAID = {
    "refusing": "ValueError: expected a matrix",
    "chained": "RuntimeError: no such table",
    "divided": "ZeroDivisionError: integer division or modulo by zero",
}


GIVEN = (np.array([0.5, -0.25]),)


def case_of(tmp_path, name, given=GIVEN):
    path = tmp_path / "hosts.py"
    path.write_text(PROGRAM)
    return gradcli.check(f"{path}:{name}", given, order=1, shrink=False).cases[0]


def test_a_function_on_the_host_that_does_not_raise_passes(tmp_path):
    assert case_of(tmp_path, "right").verdict is Verdict.PASSED


@pytest.mark.parametrize("phase", ["forward", "backward"])
@pytest.mark.parametrize("raising", SAID)
def test_one_that_raises_is_an_error_in_one_sentence(tmp_path, phase, raising):
    case = case_of(tmp_path, f"{phase}_{raising}")
    assert case.verdict is Verdict.ERROR
    assert (
        case.error == f"{phase} called a Python function from compiled code (a callback), which raised {SAID[raising]}"
    )


def test_the_search_for_inputs_says_it_in_one_sentence_too(tmp_path, monkeypatch):
    monkeypatch.setattr("gradcli.runner.arguments.searching.infer", partial(infer, budget_tries=20, limit_seconds=3.0))
    case = case_of(tmp_path, "forward_refusing", None)
    assert f"which raised {SAID['refusing']}\n" in case.error
    assert "Traceback" not in case.error
    assert "gradcli/" not in f"{case.error}{case.error_traceback}"
