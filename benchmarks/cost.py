"""What a verdict costs beside PyTorch's gradcheck: evaluations, processor time and memory, in one process.

Run: python benchmarks/cost.py [--large]
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gradcli.backends.base import Subject
from gradcli.backends.registry import backend_named
from gradcli.cases import Argument
from gradcli.checks.base import Situation
from gradcli.checks.gradient import GradientCheck, HigherOrderCheck
from gradcli.numerics.verify import verify
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.programs.functions import TABLE, Row, arguments, layer_norm, linear, softmax

SLOW_LIMIT = 20.0
"""Seconds beyond which the slow mode is left out, judged from its size."""
REPEATS, MOST = 5, 200
ENTRIES = 1_000_000
"""Large Functions are run as often as it takes to go over so many entries, if that is between 5 and 200 times."""


def processor_time(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The median processor time of some runs, in milliseconds, after one to warm up."""
    return taking_turns([work], repeats)[0]


def taking_turns(works: list[Callable[[], Any]], repeats: int) -> list[float]:
    """The median processor time of each of several in turns, in milliseconds, after one run of each to warm up."""
    times: list[list[float]] = [[] for _ in works]
    for number in range(repeats + 1):
        for work, taken in zip(works, times, strict=True):
            started = time.thread_time()
            work()
            if number:
                taken.append(1e3 * (time.thread_time() - started))
    return [statistics.median(taken) for taken in times]


def checked(subject: Subject, order: int) -> None:
    """Orders 1 to `order` of the two checks that are compared with gradcheck, as the battery runs them."""
    situation = Situation(subject=subject, settings=Settings(order=order), seed=0)
    with subject.session(lazy=True) as session:
        found = [*GradientCheck().run(situation), *(HigherOrderCheck().run(situation) if order > 1 else ())]
        if session.check():
            raise SystemExit("expected no random numbers to be drawn")
    if any(e.verdict is not Verdict.PASSED for e in found):
        raise SystemExit(f"expected every check to pass, got {[e for e in found if e.verdict is not Verdict.PASSED]}")


def alone(subject: Subject, order: int) -> int:
    """The same without a witness; gives the number of forwards."""
    before = subject.counters.forward
    with subject.session():
        for k in range(1, order + 1):
            verify(subject.derivative_map(k), subject.base_point(k, 0), seed=k - 1)
    return subject.counters.forward - before


def tensors(given: Iterable[Argument]) -> list[Any]:
    """Arguments for gradcheck."""
    made: list[Any] = []
    for argument in given:
        if argument.is_tensor:
            made.append(torch.from_numpy(np.array(argument.value)).requires_grad_(argument.requires_grad))
        else:
            made.append(argument.value)
    return made


def function_of(row: Row, function: Any) -> Callable[..., Any]:
    """The Function as gradcheck wants it: in-place ones work on a copy."""
    return lambda *given: function.apply(
        *(g.clone() if row.name == "in-place" and torch.is_tensor(g) else g for g in given)
    )


def compared(function: Callable[..., Any], given: list[Any]) -> None:
    """PyTorch's slow mode at both orders, on the floating outputs: it cannot take differences of boolean ones."""

    def floating(*arguments: Any) -> Any:
        returned = function(*arguments)
        outputs = returned if isinstance(returned, tuple) else (returned,)
        return tuple(output for output in outputs if output.dtype.is_floating_point or output.dtype.is_complex)

    torch.autograd.gradcheck(floating, given)
    torch.autograd.gradgradcheck(floating, given)


def small() -> None:
    """The table of small Functions at orders 1 and 2."""
    backend = backend_named("torch")
    print(f"{'Function':16s} {'with witness':>24s} {'without':>18s} {'gradcheck + gradgradcheck':>26s}")
    print(f"{'':16s} {'forwards':>8s} {'backwards':>9s} {'ms':>5s} {'forwards':>10s} {'ms':>7s} {'ms':>26s}")
    columns: list[tuple[float, float, float]] = []
    for row in TABLE:
        function, given = row.build(torch), arguments(row)
        subject = backend.bind(function, given)
        counters = subject.counters
        checked(subject, 2)
        before = counters.forward, counters.backward
        checked(subject, 2)
        forwards, backwards = counters.forward - before[0], counters.backward - before[1]
        ours = processor_time(partial(checked, subject, 2))
        without = alone(subject, 2)
        bare = processor_time(partial(alone, subject, 2))
        wrapped, passed = function_of(row, function), tensors(given)
        theirs = processor_time(partial(compared, wrapped, passed))
        columns.append((ours, bare, theirs))
        print(f"{row.name:16s} {forwards:8d} {backwards:9d} {ours:5.1f} {without:10d} {bare:7.1f} {theirs:26.1f}")
    medians = [statistics.median(column) for column in zip(*columns, strict=True)]
    print(f"{'median':16s} {'':18s} {medians[0]:5.1f} {'':10s} {medians[1]:7.1f} {medians[2]:26.1f}")


def elementwise(ns: Any) -> Any:
    """tanh."""

    class Tanh(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.tanh()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * (1 - y * y)

    return Tanh


def convolution(ns: Any) -> Any:
    """A two-dimensional convolution with a 3 x 3 kernel."""

    class Convolution(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return ns.nn.functional.conv2d(x, w, padding=1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            gx = ns.nn.grad.conv2d_input(x.shape, w, g, padding=1)
            return gx, ns.nn.grad.conv2d_weight(x, w.shape, g, padding=1)

    return Convolution


def sized(n: int) -> list[Row]:
    """The operations at about n input entries."""
    side = max(2, round(n**0.5))
    return [
        Row("elementwise", elementwise, {"x": (n,)}),
        Row("linear", linear, {"x": (8, max(1, n // 18)), "w": (10, max(1, n // 18)), "b": (10,)}),
        Row("layer-norm", layer_norm, {"x": (side, side), "gamma": (side,), "beta": (side,), "eps": 1e-5}),
        Row("softmax", softmax, {"x": (side, side)}),
        Row("convolution", convolution, {"x": (1, 4, max(2, side // 2), max(2, side // 2)), "w": (4, 4, 3, 3)}),
    ]


def peak_memory(work: Callable[[], Any]) -> float:
    """The peak of Python's and NumPy's own allocations during some work, in bytes."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak)


def large() -> None:
    """First order at growing sizes, against the fast and the slow mode of gradcheck."""
    backend = backend_named("torch")
    print(f"\n{'first order':14s} {'entries':>8s} {'ours':>9s} {'fast':>9s} ratio {'alone':>9s} {'slow':>9s}    peak")
    print(f"{'':14s} {'':>8s} {'ms':>9s} {'ms':>9s} {'':5s} {'ms':>9s} {'ms':>9s} bytes/entry")
    per_entry = 0.0
    for n in (100, 1_000, 10_000, 100_000, 1_000_000):
        for row in sized(n):
            function, given = row.build(torch), arguments(row)
            entries = sum(a.value.size for a in given if a.is_tensor)
            passed = tensors(given)
            repeats = min(MOST, max(REPEATS, ENTRIES // n))
            fresh = backend.bind(function, given)
            peer = partial(torch.autograd.gradcheck, function.apply, passed, fast_mode=True)
            ours, fast = taking_turns([partial(checked, fresh, 1), peer], repeats)
            bare = processor_time(partial(alone, fresh, 1), min(repeats, REPEATS))
            slow = ""
            if n == 100 or (n == 1000 and per_entry * 100 < SLOW_LIMIT):
                value = processor_time(partial(torch.autograd.gradcheck, function.apply, passed), 1)
                per_entry = max(per_entry, 1e-3 * value) if n == 100 else per_entry
                slow = f"{value:9.1f}"
            peak = peak_memory(partial(checked, fresh, 1)) / entries
            print(
                f"{row.name:14s} {entries:8d} {ours:9.2f} {fast:9.2f} {ours / fast:5.2f} {bare:9.1f} {slow:>9s}"
                f"    {peak:7.0f}",
                flush=True,
            )
    print(f"peak of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    small()
    if "--large" in sys.argv:
        large()


if __name__ == "__main__":
    main()
