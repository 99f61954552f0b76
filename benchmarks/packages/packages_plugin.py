"""A pytest plugin: every gradcheck of a test suite is answered by PyTorch and by gradcli, and both are written down.

    GRADCLI_ANSWERS=answers.ndjson PYTHONPATH=benchmarks/packages python -m pytest -p packages_plugin tests

What the test gets is gradcli's answer, so that a test passes only if gradcli can stand in PyTorch's place.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import gradcli.tolerance

NAMES = ("gradcheck", "gradgradcheck")
_LONGEST = 2000
_asking: list[Callable[..., bool]] = []
"""The checker that is being asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one checker said: True, False or the exception, with its warnings and its processor time."""

    said: str
    text: str
    warned: str
    seconds: float
    value: bool
    error: BaseException | None

    def recorded(self) -> dict[str, Any]:
        """The answer for the record, without the exception itself."""
        return {"said": self.said, "text": self.text, "warned": self.warned, "seconds": self.seconds}


def asked(check: Callable[..., bool], arguments: tuple[Any, ...], options: dict[str, Any]) -> Answer:
    """Ask one checker, with the random generator as it was before."""
    state, began = torch.get_rng_state(), time.process_time()
    value, error = False, None
    _asking.append(check)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = bool(check(*arguments, **options))
        except Exception as raised:
            error = raised
    _asking.pop()
    torch.set_rng_state(state)
    told = [str(w.message) for w in seen if issubclass(w.category, gradcli.tolerance.GradcheckWarning)]
    return Answer(
        said=str(value) if error is None else type(error).__name__,
        text="" if error is None else str(error)[:_LONGEST],
        warned="\n".join(told)[:_LONGEST],
        seconds=time.process_time() - began,
        value=value,
        error=error,
    )


def both(theirs: Callable[..., bool], ours: Callable[..., bool], name: str) -> Callable[..., bool]:
    """A checker that asks both, writes both answers down, and gives ours."""

    def check(*arguments: Any, **options: Any) -> bool:
        if _asking:  # PyTorch's gradgradcheck calls gradcheck by its name
            return theirs(*arguments, **options)
        first, second = asked(theirs, arguments, options), asked(ours, arguments, options)
        record = {
            "test": os.environ.get("PYTEST_CURRENT_TEST", "?").rpartition(" ")[0],
            "check": name,
            "options": {key: repr(value)[:80] for key, value in options.items()},
            "pytorch": first.recorded(),
            "gradcli": second.recorded(),
        }
        with open(os.environ["GRADCLI_ANSWERS"], "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        if second.error is not None:
            raise second.error
        return second.value

    return check


def pytest_configure() -> None:
    """Put the pair in PyTorch's place before any test module is imported."""
    module = sys.modules["torch.autograd.gradcheck"]
    for name in NAMES:
        pair = both(vars(module)[name], vars(gradcli.tolerance)[name], name)
        setattr(module, name, pair)
        setattr(torch.autograd, name, pair)
