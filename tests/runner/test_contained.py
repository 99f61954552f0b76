"""An error of gradcli while it explains a failure leaves the verdict as it is, and is a note."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.runner.outcome import failed
from gradcli.runner.outcome.contained import RAISE, contained


class Tripled(Function):
    """2 x with the gradient 3."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output * 3


def _of_gradcli() -> Any:
    """A function that fails as one of gradcli's own would: its frame is of a file of the package."""
    names: dict[str, Any] = {}
    exec(compile("def breaks(*_, **__):\n    return [][3]\n", failed.__file__, "exec"), names)
    return names["breaks"]


BREAKS = _of_gradcli()


def _checked() -> Any:
    given = (engine.tensor([0.5, -1.5], dtype=engine.float64, requires_grad=True),)
    return gradcli.check(Tripled, given, order=1).cases[0]


@pytest.mark.parametrize("part", ["name_findings", "smallest_failing", "_excuse"])
def test_the_verdict_stays_and_a_note_says_where_gradcli_failed(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RAISE)
    monkeypatch.setattr(failed, part, BREAKS)
    result = _checked()
    assert result.verdict.value == "failed"
    assert result.findings[0].input == "x"
    (note,) = [note for note in result.notes if "internal error" in note]
    assert "IndexError" in note
    assert "report it" in note


def test_the_tests_of_gradcli_see_such_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed, "name_findings", BREAKS)
    with pytest.raises(IndexError):
        _checked()


def test_what_the_user_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RAISE)
    own: dict[str, Any] = {}
    exec(compile("def users():\n    raise KeyError('mine')\n", "/home/me/mine.py", "exec"), own)
    notes: list[str] = []
    with pytest.raises(KeyError):
        contained("naming the mistake", own["users"], lambda: None, notes)
    assert not notes
