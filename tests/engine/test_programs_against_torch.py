"""Random programs give PyTorch's values, gradients, flags, hook calls, graphs and errors.

200 are run; GRADCLI_PROGRAMS=2000 runs more.
"""

from __future__ import annotations

import os

import pytest

from gradcli import engine
from tests.programs.random_programs import compare

torch = pytest.importorskip("torch", reason="the reference for these programs is PyTorch")
COUNT = int(os.environ.get("GRADCLI_PROGRAMS", "200"))
GROUP = 25


@pytest.mark.parametrize("first", range(0, COUNT, GROUP))
def test_random_programs_agree(first: int) -> None:
    for seed in range(first, min(first + GROUP, COUNT)):
        compare(seed, [engine, torch])


def test_a_wrong_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type((engine.ones(2, requires_grad=True) * engine.ones(2, requires_grad=True)).grad_fn)
    honest = kind._vjp
    monkeypatch.setattr(kind, "_vjp", lambda node, g: tuple(None if r is None else r * 1.001 for r in honest(node, g)))
    with pytest.raises(AssertionError):
        test_random_programs_agree(0)
