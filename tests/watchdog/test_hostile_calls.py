"""A right Function passes and its wrong twin fails, whatever forward does at points that were not requested."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.engine as engine
from gradcli.findings import FindingKind
from gradcli.results import CheckResult
from gradcli.verdict import Verdict
from tests.programs import hostile_calls as hostile

TWINS = {"right": Verdict.PASSED, "wrong": Verdict.FAILED}
GIVEN = [1.5, 0.75, 1.25]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls may take a tenth of a second, so that the tests do not wait."""
    monkeypatch.setattr("gradcli.watchdog.case.FLOOR_SECONDS", 0.1)
    monkeypatch.setattr("gradcli.watchdog.case.UNMEASURED_SECONDS", 0.5)
    monkeypatch.setattr("gradcli.watchdog.case.SEARCH_SECONDS", 1.0)


def checked(target: Any, *given: Any, **options: Any) -> CheckResult:
    (case,) = gradcli.check(target, given or None, shrink=False, **options).cases
    return case


def told(case: CheckResult) -> bool:
    return any("gradcli chose" in note for note in case.notes)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("name", [*(f"{act}_negative" for act in hostile.INTERRUPTIBLE), "backward"])
def test_what_does_not_return_elsewhere_changes_no_verdict(name: str, twin: str) -> None:
    case = checked(getattr(hostile, f"{name}_{twin}"), engine.tensor(GIVEN, dtype=engine.float64, requires_grad=True))
    assert case.verdict is TWINS[twin], case.notes
    assert told(case) or name == "backward"
    if twin == "wrong":
        assert case.findings[0].kind is FindingKind.WRONG_FACTOR
        assert case.findings[0].factor == "2/3"


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("where", ["large", "resized"])
def test_so_it_is_at_large_inputs_and_at_other_sizes(where: str, twin: str) -> None:
    target = getattr(hostile, f"loop_{where}_{twin}")
    case = checked(target, engine.tensor(GIVEN, dtype=engine.float64, requires_grad=True))
    assert case.verdict is TWINS[twin], case.notes
    assert told(case)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("twin", TWINS)
def test_inputs_are_inferred_where_normal_numbers_do_not_return(twin: str) -> None:
    case = checked(getattr(hostile, f"loop_negative_{twin}"))
    assert case.verdict is TWINS[twin], case.error
    assert [spec.domain for spec in case.inputs] == ["positive"]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.usefixtures("unexplained")
def test_so_it_is_of_torch_and_of_numpy(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.watchdog.case.OPTIONAL_SECONDS", 1.5)  # a call of NumPy ends when all of it is spent
    torch = pytest.importorskip("torch")
    factor = 1.0 if twin == "right" else 0.5

    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            while bool((x < 0).any()):
                pass
            ctx.save_for_backward(x)
            return x.sqrt()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * g / (2 * x.sqrt())

    def value(x: Any) -> Any:
        while bool((x < 0).any()):
            pass
        return np.sqrt(x)

    given = torch.tensor(GIVEN, dtype=torch.float64, requires_grad=True)
    assert checked(Root, given).verdict is TWINS[twin]
    case = checked(value, np.array(GIVEN), grad=lambda x: factor / (2 * np.sqrt(x)))
    assert case.verdict is TWINS[twin], case.notes


@pytest.mark.usefixtures("short")
def test_a_plain_callable_is_interrupted_too() -> None:
    def solver(x: Any) -> Any:
        while bool((x.detach().numpy() < 0).any()):
            pass
        return hostile.loop_large_right.apply(x)  # type: ignore[attr-defined]

    case = checked(solver, engine.tensor(GIVEN, dtype=engine.float64, requires_grad=True))
    assert case.verdict is Verdict.PASSED, case.notes


def test_endless_recursion_ends_the_search_for_inputs_soon() -> None:
    class Endless(engine.autograd.Function):
        tries = 0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            Endless.tries += 1
            return recursing(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    def recursing(x: Any) -> Any:
        return recursing(x)

    case = checked(Endless)
    assert case.verdict is Verdict.ERROR
    assert "RecursionError" in str(case.error)
    assert Endless.tries <= 100


@pytest.mark.usefixtures("short")
def test_what_never_returns_ends_the_search_and_says_where() -> None:
    class Never(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            hostile.for_ever()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    case = checked(Never)
    assert case.verdict is Verdict.ERROR
    assert "no inputs found" in str(case.error)
    assert "hostile_calls.py" in str(case.error)


def test_a_call_at_the_inputs_asked_for_is_not_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.watchdog.case.FLOOR_SECONDS", 1e-3)
    monkeypatch.setattr("gradcli.watchdog.case.MULTIPLE", 1e-3)
    waits = threading.Event()

    class Slow(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            waits.wait(0.02)
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

    case = checked(Slow, engine.tensor(GIVEN, dtype=engine.float64, requires_grad=True))
    assert case.verdict is not Verdict.ERROR, case.error
    assert case.verdict is not Verdict.FAILED, case.findings


COMMAND = """
import sys
from gradcli.runner import case as cases
from gradcli.runner.workers import worker_pool
from gradcli.watchdog import case

case.FLOOR_SECONDS, worker_pool._GRACE_SECONDS = 0.1, 0.2
cases._explained = lambda result, *_: result

from gradcli.__main__ import main

sys.exit(main())
"""
"""gradcli, with times as short for its workers as `short` makes them here, and failures without findings."""


@pytest.fixture
def crashed(tmp_path: Path) -> dict[str, Any]:
    """The cases of all that ends its process at other points, from one run."""
    names = [f"{act}_negative_{twin}" for act in hostile.FATAL for twin in TWINS]
    names += [f"{act}_resized_{twin}" for act in ("null", "abort") for twin in TWINS]
    targets = [f"{hostile.__file__}:{name}" for name in names]
    flags = ["-i", f"x=3,value={json.dumps(GIVEN)}", "--order", "1", "--format", "json"]
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, "check", *targets, *flags],
        cwd=tmp_path, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 1, ended.stderr
    cases = {case["target"].rpartition(":")[2]: case for case in json.loads(ended.stdout)["cases"]}
    assert list(cases) == names
    return cases


@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be forked there")
def test_a_crash_at_another_point_costs_that_point_alone(crashed: dict[str, Any]) -> None:
    for name, case in crashed.items():
        assert case["verdict"] == TWINS[name.rpartition("_")[2]].value, case
        assert any("run again without" in note for note in case["notes"])


@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be forked there")
def test_a_crash_at_the_inputs_asked_for_is_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gradcli", "check", f"{hostile.__file__}:abort_negative_right"]
    flags = ["-i", "x=3,value=[-1.0,2.0,3.0]", "--format", "json"]
    ended = subprocess.run([*command, *flags], cwd=tmp_path, capture_output=True, timeout=300, check=False)
    (case,) = json.loads(ended.stdout)["cases"]
    assert case["verdict"] == "error"
    assert "SIGABRT" in case["error"]
    assert ended.returncode == 3
