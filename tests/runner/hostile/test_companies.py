"""What a case comes to does not depend on its company: sets of cases in any order, spread in any way.

`benchmarks/companies.py` draws as many as it is asked for; here a few are drawn, the same each time.
"""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Run
from tests.programs.hostile import CASES, HELPER, program

_DEADLY = ("Aborts", "ExitsInC", "KillsItself", "WritesToSockets", "Hangs", "Closes")
_MILD = ("BaseInForward", "Exits", "PatchesTensor", "PatchesJson", "SetsDefaults", "LeavesThread", "ChangesFolder")
_NAMES = tuple(f"{kind}{name}" for name in (*_DEADLY, *_MILD) for kind in ("", "Right", "Wrong"))
_SURVIVED = ("BaseInForward", "Exits", "PatchesTensor", "PatchesJson", "PatchesLen", "ChangesFolder", "NoText")
"""Attacks that a process survives which does not isolate its cases."""
_NAMES_IN_PROCESS = tuple(f"{kind}{name}" for name in _SURVIVED for kind in ("", "Right", "Wrong"))
_alone: dict[str, object] = {}


def _seen(case: dict[str, object]) -> tuple[object, ...]:
    return case["verdict"], case["seed"], json.dumps(case["findings"]), case["backend"]


def _cases(gradcli: Run, names: list[str], *extra: str) -> dict[str, tuple[object, ...]]:
    targets = [f"attacks.py:{name}" for name in names]
    flags = ("-i", "x=3", "--samples", "1", "--order", "1")
    ended = gradcli("check", *targets, *flags, "--format", "json", *extra)
    return {case["id"].partition(":")[2]: _seen(case) for case in json.loads(ended.stdout)["cases"]}


@pytest.fixture
def attacks(folder: Path) -> Path:
    (folder / "helper.py").write_text(HELPER)
    (folder / "attacks.py").write_text(program())
    assert set(_DEADLY) | set(_MILD) <= set(CASES)
    return folder


@settings(max_examples=4, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.sampled_from(_NAMES), min_size=2, max_size=5, unique=True),
    extra=st.sampled_from([("--timeout", "3"), ("--timeout", "3", "-j", "2"), ("--shard", "1/2", "--timeout", "3")]),
)
def test_a_case_comes_to_what_it_comes_to_alone(
    gradcli: Run, attacks: Path, names: list[str], extra: tuple[str, ...]
) -> None:
    for name, seen in _cases(gradcli, names, *extra).items():
        if name not in _alone:
            _alone[name] = _cases(gradcli, [name], "--timeout", "3")[name]
        assert seen == _alone[name], (name, names, extra)


@settings(max_examples=2, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.sampled_from(_NAMES_IN_PROCESS), min_size=3, max_size=8, unique=True))
def test_so_it_is_in_the_process_of_the_command(gradcli: Run, attacks: Path, names: list[str]) -> None:
    for name, seen in _cases(gradcli, names, "--in-process").items():
        if name not in _alone:
            _alone[name] = _cases(gradcli, [name], "--timeout", "3")[name]
        assert seen == _alone[name], (name, names)
