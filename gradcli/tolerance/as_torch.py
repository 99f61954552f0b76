"""`gradcheck` and `gradgradcheck` with PyTorch's answers: the same functions, decided by step and tolerances.

The engine's `autograd.gradcheck` is this one, for programs that rely on what PyTorch accepts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

from gradcli.tolerance import gradcheck as _gradcheck
from gradcli.tolerance import gradgradcheck as _gradgradcheck
from gradcli.tolerance.answer import decided_by_tolerance
from gradcli.tolerance.problem import GradcheckError

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

P = ParamSpec("P")


def _as_pytorch(check: Callable[P, bool]) -> Callable[P, bool]:
    """The same check, decided as PyTorch decides it."""

    @functools.wraps(check)
    def decided(*args: P.args, **options: P.kwargs) -> bool:
        with decided_by_tolerance():
            return check(*args, **options)

    return decided


gradcheck = _as_pytorch(_gradcheck)
gradgradcheck = _as_pytorch(_gradgradcheck)
