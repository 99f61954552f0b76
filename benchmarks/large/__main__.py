"""What the whole battery costs at a million entries beside PyTorch's fast mode, and at twelve beside its slow mode.

Processor time, order 1, in one process and in turns, so that the ratios hold on a machine under load:
right Functions whose body autodiff sees and such whose body it does not, wrong ones with their findings, small ones.

Run: python -m benchmarks.large [right|wrong|small]... [--entries N] [--only NAME]... [--repeats N] [--stages]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import gradcli
from gradcli.results import Report
from gradcli.verdict import Verdict

ENTRIES = 1_000_000
WRONG_BY = 1e-6
FEW = 12


@dataclass(frozen=True)
class Operation:
    """A forward, and its backward from the inputs, the output and grad_output."""

    name: str
    shapes: Callable[[int], list[tuple[int, ...]]]
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    dtype: torch.dtype = torch.float64


def square(n: int) -> int:
    """The side of a square of about n entries."""
    return max(2, round(n**0.5))


def softmax_back(_x: Any, y: Any, g: Any) -> Any:
    """Of softmax over the last axis."""
    return y * (g - (g * y).sum(-1, keepdim=True))


def normalised(x: Any) -> Any:
    """Rows with mean zero and variance one."""
    x = x - x.mean(-1, keepdim=True)
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


def normalised_back(x: Any, y: Any, g: Any) -> Any:
    """Of `normalised`."""
    size = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    return (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True)) / size


def convolved(x: Any, w: Any) -> Any:
    """A two-dimensional convolution that keeps the size."""
    return torch.nn.functional.conv2d(x, w, padding=1)


def convolved_back(x: Any, w: Any, _y: Any, g: Any) -> Any:
    """Of `convolved`."""
    gx = torch.nn.grad.conv2d_input(x.shape, w, g, padding=1)
    return gx, torch.nn.grad.conv2d_weight(x, w.shape, g, padding=1)


OPERATIONS = [
    Operation("tanh", lambda n: [(n,)], lambda x: x.tanh(), lambda _x, y, g: g * (1 - y * y)),
    Operation("square", lambda n: [(n,)], lambda x: x * x, lambda x, _y, g: 2 * x * g),
    Operation("rectifier", lambda n: [(n,)], lambda x: x.clamp(min=0), lambda x, _y, g: g * (x > 0)),
    Operation("product", lambda n: [(n // 2,)] * 2, lambda x, z: x * z.exp(), lambda _x, z, y, g: (g * z.exp(), g * y)),
    Operation("sum", lambda n: [(n,)], lambda x: x.sin().sum(), lambda x, _y, g: g * x.cos()),
    Operation("softmax", lambda n: [(square(n),) * 2], lambda x: torch.softmax(x, -1), softmax_back),
    Operation("layer norm", lambda n: [(square(n),) * 2], normalised, normalised_back),
    Operation(
        "matmul", lambda n: [(square(n // 2),) * 2] * 2, lambda a, b: a @ b, lambda a, b, _y, g: (g @ b.T, a.T @ g)
    ),
    Operation(
        "convolution", lambda n: [(1, 4, square(n // 4), square(n // 4)), (4, 4, 3, 3)], convolved, convolved_back
    ),
    Operation("tanh float32", lambda n: [(n,)], lambda x: x.tanh(), lambda _x, y, g: g * (1 - y * y), torch.float32),
]


def function_of(operation: Operation, hidden: bool, spoilt: Callable[[Any], Any] = lambda g: g) -> Any:
    """The operation as a Function; a hidden one computes in NumPy's memory, where autodiff loses sight of it."""

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            seen = [torch.from_numpy(t.detach().numpy()) for t in inputs] if hidden else inputs
            y = operation.forward(*seen)
            ctx.save_for_backward(*inputs, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            *inputs, y = ctx.saved_tensors
            found = operation.backward(*inputs, y, g)
            first, *others = found if isinstance(found, tuple) else (found,)
            return (spoilt(first), *others)

    Made.__name__ = Made.__qualname__ = operation.name.replace(" ", "_")
    return Made


def one_entry(gradient: Any) -> Any:
    """One entry wrong by a millionth of itself."""
    flat = gradient.reshape(-1).clone()
    at = flat.numel() // 3
    flat[at] = flat[at] * (1 + WRONG_BY)
    return flat.reshape(gradient.shape)


def scaled(gradient: Any) -> Any:
    """The whole wrong by a thousandth."""
    return gradient * 1.001


def turned(gradient: Any) -> Any:
    """Transposed, or reversed where it has one axis."""
    if gradient.dim() >= 2 and gradient.shape[-1] == gradient.shape[-2]:
        return gradient.transpose(-1, -2)
    return gradient.flip(0)


MISTAKES = {"one entry": one_entry, "0.1 %": scaled, "transposed": turned}


def inputs_of(operation: Operation, entries: int) -> tuple[Any, ...]:
    """Random inputs of about so many entries in all."""
    torch.manual_seed(3)
    return tuple(
        torch.randn(shape, dtype=operation.dtype).mul_(0.5).requires_grad_() for shape in operation.shapes(entries)
    )


def processor_seconds(work: Callable[[], Any]) -> float:
    """The processor time of one run, in seconds, of all threads."""
    started = time.process_time()
    work()
    return time.process_time() - started


def in_turns(works: list[Callable[[], Any]], repeats: int) -> list[float]:
    """The median processor time of each, in turns, after one run of each to warm up."""
    times: list[list[float]] = [[] for _ in works]
    for number in range(repeats + 1):
        for work, taken in zip(works, times, strict=True):
            seconds = processor_seconds(work)
            if number or not repeats:
                taken.append(seconds)
    return [statistics.median(taken) for taken in times]


def checked(function: Any, given: tuple[Any, ...]) -> Report:
    """The whole battery at order 1."""
    return gradcli.check(function, given, order=1)


def stages_of(report: Report) -> Iterator[str]:
    """Where a case's time went, the longest first."""
    for name, stage in sorted(report.cases[0].stages, key=lambda s: -s[1].seconds)[:]:
        yield f"{name} {1e3 * stage.seconds:.0f} ms ({stage.forward}+{stage.backward})"


def right(operations: list[Operation], entries: int, repeats: int, *, stages: bool) -> None:
    """Right Functions of many entries, beside fast mode."""
    print(f"\n{'right':14s} {'body':8s} {'entries':>8s} {'ours ms':>9s} {'fast ms':>9s} ratio  forwards backwards")
    for operation in operations:
        for hidden in (False, True):
            function, given = function_of(operation, hidden), inputs_of(operation, entries)
            loose = {"eps": 1e-2, "atol": 1e-1, "rtol": 1e-1} if operation.dtype is torch.float32 else {}
            found: list[Report] = []

            def ours(function: Any = function, given: Any = given, found: Any = found) -> None:
                found[:] = [checked(function, given)]

            def fast(function: Any = function, given: Any = given, loose: Any = loose) -> None:
                torch.autograd.gradcheck(function.apply, given, fast_mode=True, raise_exception=False, **loose)

            taken, peers = in_turns([ours, fast], repeats)
            case = found[0].cases[0]
            print(
                f"{operation.name:14s} {'hidden' if hidden else 'visible':8s} {sum(t.numel() for t in given):8d} "
                f"{1e3 * taken:9.1f} {1e3 * peers:9.1f} {taken / peers:5.2f}  {case.forwards:8d} {case.backwards:9d}"
                f"{'' if case.verdict is Verdict.PASSED else '  ' + case.verdict.value}",
                flush=True,
            )
            if stages:
                print("    " + ", ".join(stages_of(found[0])), flush=True)


def wrong(operations: list[Operation], entries: int, repeats: int, *, stages: bool) -> None:
    """Wrong Functions of many entries, with their findings; fast mode says only that something is wrong, or passes."""
    print(f"\n{'wrong':14s} {'body':8s} {'mistake':10s} {'entries':>8s} {'ours s':>7s} {'fast s':>7s}  finding")
    for operation in operations:
        for hidden in (False, True):
            for mistake, spoilt in MISTAKES.items():
                function, given = function_of(operation, hidden, spoilt), inputs_of(operation, entries)
                found: list[Report] = []

                def ours(function: Any = function, given: Any = given, found: Any = found) -> None:
                    found[:] = [checked(function, given)]

                def fast(function: Any = function, given: Any = given) -> None:
                    torch.autograd.gradcheck(function.apply, given, fast_mode=True, raise_exception=False)

                taken, peers = in_turns([ours, fast], repeats)
                case = found[0].cases[0]
                told = "; ".join(f"{f.kind.value}: {f.message}" for f in case.findings)[:150]
                print(
                    f"{operation.name:14s} {'hidden' if hidden else 'visible':8s} {mistake:10s} "
                    f"{sum(t.numel() for t in given):8d} {taken:7.2f} {peers:7.2f}  {case.verdict.value} {told}",
                    flush=True,
                )
                if stages:
                    print("    " + ", ".join(stages_of(found[0])), flush=True)


def small(operations: list[Operation], repeats: int, *, stages: bool) -> None:
    """Right Functions of few entries, beside slow mode."""
    print(f"\n{'small':14s} {'body':8s} {'entries':>8s} {'ours ms':>9s} {'slow ms':>9s} ratio  forwards backwards")
    ratios: list[float] = []
    for operation in operations:
        if operation.dtype is torch.float32:
            continue
        for hidden in (False, True):
            function, given = function_of(operation, hidden), inputs_of(operation, FEW)
            found: list[Report] = []

            def ours(function: Any = function, given: Any = given, found: Any = found) -> None:
                found[:] = [checked(function, given)]

            def slow(function: Any = function, given: Any = given) -> None:
                torch.autograd.gradcheck(function.apply, given, raise_exception=False)

            taken, peers = in_turns([ours, slow], 4 * repeats)
            ratios.append(taken / peers)
            case = found[0].cases[0]
            print(
                f"{operation.name:14s} {'hidden' if hidden else 'visible':8s} {sum(t.numel() for t in given):8d} "
                f"{1e3 * taken:9.2f} {1e3 * peers:9.2f} {taken / peers:5.2f}  {case.forwards:8d} {case.backwards:9d}",
                flush=True,
            )
            if stages:
                print("    " + ", ".join(stages_of(found[0])), flush=True)
    print(f"{'median':41s} {statistics.median(ratios):12.2f}")


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="right, wrong, small; all by default")
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stages", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    chosen = [o for o in OPERATIONS if not given.only or o.name in given.only]
    parts = given.parts or ["right", "wrong", "small"]
    if "right" in parts:
        right(chosen, given.entries, given.repeats, stages=given.stages)
    if "wrong" in parts:
        wrong(chosen, given.entries, min(given.repeats, 1), stages=given.stages)
    if "small" in parts:
        small(chosen, given.repeats, stages=given.stages)


if __name__ == "__main__":
    main()
