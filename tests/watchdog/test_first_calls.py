"""A first call that compiles gets more time where its inputs are probably right."""

import sys
import time
from types import ModuleType
from typing import Any

import pytest

import gradcli
from gradcli.inputs.search.inference import infer
from gradcli.results import CheckResult
from gradcli.targets import Parameter, TargetInfo, Trial
from gradcli.verdict import Verdict
from gradcli.watchdog.case import Watchdog


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.watchdog.case.UNMEASURED_SECONDS", 0.5)
    monkeypatch.setattr("gradcli.watchdog.case.FLOOR_SECONDS", 0.5)
    monkeypatch.setattr("gradcli.watchdog.case.COMPILING_SECONDS", 20.0)
    monkeypatch.setattr("gradcli.watchdog.case.SEARCH_SECONDS", 1.0)


def compiled(kind: str, factor: float = 1.0) -> Any:
    """A JAX function of which the first call takes longer than the limit; asleep, a call gets three times its limit."""
    jax = pytest.importorskip("jax")
    calls: list[int] = []

    def wait() -> None:
        calls.append(1)
        if len(calls) == 1:
            time.sleep(3.0 if kind == "bare" else 1.2)

    @jax.custom_vjp
    def sine(x: Any) -> Any:
        wait()
        return jax.numpy.sin(x)

    sine.defvjp(lambda x: (sine(x), x), lambda x, g: (factor * g * jax.numpy.cos(x),))

    def documented(x: Any, y: Any) -> Any:
        """x, y: (n,)"""
        return sine(x) + y

    return {"one": lambda x: sine(x), "documented": documented, "bare": lambda x, y: sine(x) + y}[kind]


def stopped(case: CheckResult) -> bool:
    """Whether a call was stopped during the search for inputs."""
    return any("stopped after" in note and "inference of inputs" in note for note in case.notes)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("kind", ["one", "documented"])
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_a_first_call_may_compile(kind: str, factor: float, verdict: Verdict) -> None:
    (case,) = gradcli.check(compiled(kind, factor), order=1, shrink=False).cases
    assert case.verdict is verdict, (case.error, case.findings)
    assert not stopped(case)


@pytest.mark.usefixtures("short")
def test_it_is_stopped_where_its_inputs_are_guessed() -> None:
    (case,) = gradcli.check(compiled("bare"), order=1, shrink=False).cases
    assert stopped(case)


@pytest.mark.parametrize(
    ("backend", "loaded", "compiles"), [("numpy", True, True), ("numpy", False, False), ("torch", True, False)]
)
def test_a_plain_function_may_turn_out_to_be_jaxs(
    backend: str, loaded: bool, compiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loaded:
        monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    else:
        monkeypatch.delitem(sys.modules, "jax", raising=False)
    info = TargetInfo(name="f", backend=backend, parameters=(Parameter(name="x"),), forward=lambda x: x, backward=None)
    with Watchdog().watching() as watchdog, watchdog.during("inference of inputs", searching=True) as phase:
        infer(info, lambda arguments: Trial(outputs=(arguments[0].value,), differentiable=(True,)))
        assert phase.compiling is compiles
