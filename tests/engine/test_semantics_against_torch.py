"""The behaviours in `tests/programs/semantics` are PyTorch's: values, error classes and heads of messages."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

from gradcli import engine
from tests.programs.semantics import CASES

torch = pytest.importorskip("torch", reason="the reference for these behaviours is PyTorch")


def same(ours: Any, theirs: Any) -> bool:
    """Compare plain data, floats to 1e-9."""
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, float) and isinstance(theirs, float):
        return (math.isnan(ours) and math.isnan(theirs)) or math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return bool(ours == theirs)


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Say where two pieces of plain data differ."""
    if same(ours, theirs):
        return []
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)) and len(ours) == len(theirs):
        pairs: Any = enumerate(zip(ours, theirs, strict=True))
        return [line for place, (a, b) in pairs for line in differences(a, b, f"{path}[{place}]")]
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        return [line for key in ours for line in differences(ours[key], theirs[key], f"{path}[{key}]")]
    return [f"{path}: ours {ours!r}, torch {theirs!r}"]


@pytest.mark.parametrize("name", CASES)
def test_behaviour_agrees_with_torch(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = CASES[name](torch)
        ours = CASES[name](engine)
    assert not (found := differences(ours, theirs)), "\n".join(found)
