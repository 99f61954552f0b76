"""gradcli, its gradcheck, and PyTorch's, slow and fast, on one Function: verdict and processor time of each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch
from torch.autograd import gradcheck, gradgradcheck

import gradcli
from benchmarks.operators.database import Sample, fresh
from benchmarks.operators.functions import Plant, visible, wrapped
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

T = TypeVar("T")

TIMED = 2
"""Runs of each checker on right operators, of which the shortest counts: nobody pays for an operator's first call."""
WAYS = ("callable", "wrapped", "opaque")
"""A plain callable; a Function with a differentiable forward; a Function whose forward hides from autodiff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What they said of one Function at one sample. Seconds are processor time of one thread, of the shortest run."""

    operator: str
    dtype: str
    sample: int
    way: str
    order: int
    plant: str | None = None
    entries: int = 0
    gradcli: str = ""
    gradcli_seconds: float = 0.0
    forwards: int = 0
    backwards: int = 0
    resolution: float | None = None
    telling: list[str] = field(default_factory=list)
    drop_in: str = ""
    drop_in_seconds: float = 0.0
    slow: str = ""
    slow_seconds: float = 0.0
    fast: str = ""
    fast_seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return asdict(self)


def target_of(sample: Sample, way: str, plant: Plant | None = None) -> Any:
    """The Function class, or the callable, that is checked."""
    if way == "callable":
        return sample.function
    return wrapped(sample.function, sample.tensors, opaque=way == "opaque", plant=plant)


def row_of(sample: Sample, way: str, order: int, dtype: torch.dtype, *, plant: Plant | None, peers: bool) -> Row:
    """Check one sample with all three; `peers` is false where PyTorch's verdict is known from another way."""
    target = target_of(sample, way, plant)
    callable_ = target if way == "callable" else target.apply
    timed = {"drop_in": ("", 0.0), "slow": ("", 0.0), "fast": ("", 0.0)}
    runs = TIMED if peers and plant is None else 1
    result, seconds = _shortest(runs, lambda: _gradcli(target, sample, order))
    if peers:
        # PyTorch's checkers go last: a sample that only they cannot finish is still in the table.
        ours = gradcli.gradcheck, gradcli.gradgradcheck
        timed["drop_in"] = _shortest(runs, lambda: _peer(ours, callable_, sample, order))
        for mode in ("slow", "fast"):
            theirs = partial(gradcheck, fast_mode=mode == "fast"), partial(gradgradcheck, fast_mode=mode == "fast")
            timed[mode] = _shortest(runs, partial(_peer, theirs, callable_, sample, order))
    return Row(
        operator=sample.operator,
        dtype=str(dtype).removeprefix("torch."),
        sample=sample.number,
        way=way,
        order=order,
        plant=None if plant is None else plant.name,
        entries=sum(t.numel() for t in sample.tensors),
        gradcli=result.verdict.value,
        gradcli_seconds=seconds,
        forwards=result.forwards,
        backwards=result.backwards,
        resolution=result.resolution,
        telling=_telling(result),
        drop_in=timed["drop_in"][0],
        drop_in_seconds=timed["drop_in"][1],
        slow=timed["slow"][0],
        slow_seconds=timed["slow"][1],
        fast=timed["fast"][0],
        fast_seconds=timed["fast"][1],
    )


def _shortest(runs: int, work: Callable[[], tuple[T, float]]) -> tuple[T, float]:
    """What some runs give, and the time of the shortest."""
    answers = [work() for _ in range(runs)]
    return answers[-1][0], min(seconds for _, seconds in answers)


def is_visible(sample: Sample, plant: Plant) -> bool:
    """Whether a plant changes this sample's gradient at all; not where PyTorch itself cannot be asked."""
    try:
        return visible(sample.function, sample.tensors, plant)
    except (RuntimeError, NotImplementedError):
        return False


def _gradcli(target: Any, sample: Sample, order: int) -> tuple[CheckResult, float]:
    inputs = fresh(sample.tensors)
    started = time.thread_time()
    report = gradcli.check(target, inputs, order=order, shrink=False)
    return report.cases[0], time.thread_time() - started


def _peer(
    checkers: tuple[Callable[..., Any], Callable[..., Any]], function: Callable[..., Any], sample: Sample, order: int
) -> tuple[str, float]:
    """The verdict and processor time of a gradcheck, and of its gradgradcheck after it where order 2 is asked for."""
    inputs = fresh(sample.tensors)
    torch.manual_seed(0)
    started = time.thread_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for checker in checkers[:order]:
                checker(function, inputs, nondet_tol=sample.nondet_tol)
    except Exception as error:
        # Whatever it raises is its verdict.
        failed = type(error).__name__ == "GradcheckError"
        text = str(error).strip().splitlines() or [type(error).__name__]
        verdict = "failed" if failed else f"error: {type(error).__name__}: {text[0][:120]}"
        return verdict, time.thread_time() - started
    return "passed", time.thread_time() - started


def _telling(result: CheckResult) -> list[str]:
    """Why a verdict is not PASSED: findings, reasons, the error."""
    if result.verdict is Verdict.PASSED:
        return []
    found = [f"{f.kind.value} (order {f.order}): {f.message}" for f in result.findings]
    undecided = [
        f"{e.check} (order {e.order}), {e.input} -> {e.output}: {e.reason and e.reason.value}: {e.note}"
        for e in result.evidence
        if e.verdict is Verdict.INCONCLUSIVE
    ]
    return [*([] if result.error is None else [result.error]), *found, *undecided]
