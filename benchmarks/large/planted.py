"""Mistakes of every kind that the battery knows, planted in a Function of many entries, with the findings.

Each is an elementwise Function whose body autodiff sees, and one that computes in NumPy; the right ones must pass and
the wrong ones must fail. Compare the output of two states of the code line by line.

Run: python -m benchmarks.large.planted [--entries N] [--only WORD]...
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import gradcli


@dataclass
class State:
    """What a wrong Function keeps between calls."""

    kept: Any = None
    alive: list[Any] = field(default_factory=list)
    calls: Any = field(default_factory=itertools.count)


@dataclass
class Now:
    """One run of forward or backward: the context, the state, and the tensors that are known."""

    ctx: Any
    state: State
    hidden: bool
    x: Any
    y: Any = None
    g: Any = None

    @property
    def right(self) -> Any:
        """The right gradient."""
        return self.g * (1 - self.y * self.y)


Step = Callable[[Now], Any]


def tanh(x: Any, hidden: bool) -> Any:
    """In PyTorch, or in NumPy."""
    return torch.from_numpy(np.tanh(x.detach().numpy())) if hidden else x.tanh()


def spot(x: Any) -> int:
    """The place of the wrong entry."""
    return int(x.numel()) // 3


def entry(gradient: Any, factor: float, shift: float = 0.0) -> Any:
    """The gradient with one entry changed."""
    flat = gradient.reshape(-1).clone()
    if flat.numel():
        flat[spot(flat)] = flat[spot(flat)] * factor + shift
    return flat.reshape(gradient.shape)


def made(hidden: bool, *, before: Step | None = None, after: Step | None = None, back: Step) -> Any:
    """A Function of one input: `before` runs before the right forward, `after` changes its result."""
    state = State()

    class Planted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            now = Now(ctx, state, hidden, x)
            if before is not None:
                before(now)
            now.y = tanh(x, hidden)
            ctx.save_for_backward(x, now.y)
            return now.y if after is None else after(now)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return back(Now(ctx, state, hidden, x, y, g))

    return Planted


def right(now: Now) -> Any:
    """The right gradient."""
    return now.right


def scaled_in_place(now: Now) -> Any:
    """Overwrites all of a saved tensor."""
    return now.g * now.y.mul_(now.y).neg_().add_(1)


def writing(which: str) -> Step:
    """Writes into one entry of what is not its own, after the gradient is computed."""

    def back(now: Now) -> Any:
        found, tensor = now.right, getattr(now, which)
        tensor.data.view(-1)[spot(tensor)] = 0.25
        return found

    return back


def written_by_forward(now: Now) -> Any:
    """Writes into one entry of the input."""
    if now.x.numel():
        now.x.data.view(-1)[spot(now.x)] = 0.25
    return now.y


def kept(measure: Callable[[Any], Any]) -> dict[str, Step]:
    """Backward is off by the ratio of what forward measured last to what it should be."""

    def before(now: Now) -> None:
        now.state.kept = measure(now.x.detach())

    return {"before": before, "back": lambda c: c.right * (c.state.kept / measure(c.x.detach()))}


def by_shape(now: Now) -> None:
    """Keeps the last output for each shape."""
    now.state.kept = {**(now.state.kept or {}), now.x.shape: tanh(now.x.detach(), now.hidden)}


def keep_value(now: Now) -> None:
    """Keeps the last output."""
    now.state.kept = tanh(now.x.detach(), now.hidden)


def keep_entry(now: Now) -> None:
    """Keeps one entry of the last input."""
    now.state.kept = now.x.detach().clone().reshape(-1)[spot(now.x) :][:1].sum()


def contiguous(tensor: Any) -> Any:
    """What lies in memory, as if the tensor were contiguous."""
    return torch.as_strided(tensor, tensor.shape, torch.empty(tensor.shape).stride())


def freed(now: Now) -> Any:
    """A second pass through the same graph fails."""
    if getattr(now.ctx, "used", False):
        raise RuntimeError("freed")
    now.ctx.used = True
    return now.right


def other_again(now: Now) -> Any:
    """A second pass through the same graph gives another gradient."""
    found = now.right * (1.5 if getattr(now.ctx, "used", False) else 1.0)
    now.ctx.used = True
    return found


def third_pass(now: Now) -> Any:
    """From the third pass on the gradient is another one."""
    now.ctx.used = getattr(now.ctx, "used", 0) + 1
    return now.right * (1.5 if now.ctx.used > 2 else 1.0)


def keeps_output(now: Now) -> Any:
    """A cycle of the output and ctx."""
    now.ctx.output = now.y
    return now.y


def keeps_for_ever(now: Now) -> Any:
    """The output stays alive outside of the call."""
    now.state.alive[:] = [*now.state.alive[-3:], now.y]
    return now.y


def only_at(wrong: Callable[[int], bool]) -> dict[str, Step]:
    """Wrong at some sizes."""
    return {"back": lambda c: c.right * (1.5 if wrong(c.x.numel()) else 1.0)}


def raising_at(wrong: Callable[[int], bool]) -> dict[str, Step]:
    """Raises at some sizes."""

    def back(now: Now) -> Any:
        if wrong(now.x.numel()):
            raise ValueError("unexpected size")
        return now.right

    return {"back": back}


def changed(change: Callable[[Any], Any]) -> dict[str, Step]:
    """The right gradient, changed."""
    return {"back": lambda c: change(c.right)}


def at_spot(gradient: Any, other: Any) -> Any:
    """One entry of `other`, the rest of the gradient."""
    return torch.where(torch.arange(gradient.numel()) == spot(gradient), other, gradient)


def values(n: int) -> dict[str, dict[str, Step]]:
    """Wrong values, and gradients of a wrong kind."""
    return {
        "right": {"back": right},
        "entry 1e-6": changed(lambda d: entry(d, 1 + 1e-6)),
        "entry 10 %": changed(lambda d: entry(d, 1.1)),
        "entry lost": changed(lambda d: entry(d, 0.0)),
        "entry sign": changed(lambda d: entry(d, -1.0)),
        "entry nan": changed(lambda d: entry(d, float("nan"))),
        "last entry": changed(lambda d: torch.cat([d[:-1], 0 * d[-1:]])),
        "first entry": changed(lambda d: torch.cat([2 * d[:1], d[1:]])),
        "negative entries": {"back": lambda c: torch.where(c.x < 0, 0.999 * c.right, c.right)},
        "large entries": {"back": lambda c: torch.where(c.x.abs() > 2, 1.01 * c.right, c.right)},
        "small entries": {"back": lambda c: torch.where(c.x.abs() < 1e-3, 1.01 * c.right, c.right)},
        "tiny entries": {"back": lambda c: torch.where(c.x.abs() < 1e-4, 1.5 * c.right, c.right)},
        "all 1e-3": changed(lambda d: 1.001 * d),
        "all 1e-6": changed(lambda d: (1 + 1e-6) * d),
        "reversed": changed(lambda d: d.flip(0)),
        "rolled": changed(lambda d: d.roll(1)),
        "offset": changed(lambda d: d + 1e-4),
        "offset entry": changed(lambda d: entry(d, 1.0, 1e-2)),
        "float32": changed(lambda d: d.float().double()),
        "no gradient": changed(lambda d: None if d.numel() else d),
        "shape": changed(lambda d: d[:1]),
        "arity": changed(lambda d: (d, d)),
        "clipped": changed(lambda d: d.clamp(-100, 100)),
        "clipped entry": changed(lambda d: at_spot(d, d.clamp(-100, 100)) if d.numel() == n else d),
        "squared": {"back": lambda c: c.right * c.g},
        "squared entry": {"back": lambda c: at_spot(c.right, c.right * c.g)},
        "ignores grad_output": {"back": lambda c: 1 - c.y * c.y},
        "ignores it in an entry": {"back": lambda c: at_spot(c.right, 1 - c.y * c.y)},
        "first of grad_output": {"back": lambda c: c.g.reshape(-1)[:1] * (1 - c.y * c.y)},
    }


def protocols(n: int) -> dict[str, dict[str, Step]]:
    """Broken contracts: writes, state, layouts, graphs, sizes."""
    return {
        "writes input": {"after": written_by_forward, "back": right},
        "writes input in backward": {"back": writing("x")},
        "writes saved": {"back": writing("y")},
        "writes saved all": {"back": scaled_in_place},
        "writes grad_output": {"back": writing("g")},
        "varies": {"back": lambda c: entry(c.right, 1 + 1e-3 * (next(c.state.calls) % 5))},
        "varies later": {"back": lambda c: entry(c.right, 1 + 1e-3 * (next(c.state.calls) > 4))},
        "draws in backward": {"back": lambda c: entry(c.right, 1.0, 1e-3 * float(torch.rand(())))},
        "varies in forward": {"after": lambda c: entry(c.y, 1.0, 1e-6 * next(c.state.calls)), "back": right},
        "kept largest": kept(lambda x: x.abs().max()),
        "kept sign of sum": kept(lambda x: torch.sign(x.sum())),
        "kept first": kept(lambda x: x.reshape(-1)[0]),
        "kept last": kept(lambda x: x.reshape(-1)[-1]),
        "kept size": kept(lambda x: float(x.numel())),
        "kept whether positive": kept(lambda x: 1.0 + bool((x > 0).any())),
        "kept whether negative": kept(lambda x: 1.0 + bool((x < 0).any())),
        "kept output": {"before": keep_value, "back": lambda c: c.g * (1 - c.state.kept * c.state.kept)},
        "kept by shape": {"before": by_shape, "back": lambda c: c.g * (1 - c.state.kept[c.x.shape] ** 2)},
        "kept entry": {
            "before": keep_entry,
            "back": lambda c: entry(c.right, 1.0, float(c.state.kept - c.x.reshape(-1)[spot(c.x) :][:1].sum())),
        },
        "strided grad_output": {"back": lambda c: contiguous(c.g) * (1 - c.y * c.y) if any(c.g.stride()) else c.right},
        "strided input": {"back": lambda c: c.g * (1 - tanh(contiguous(c.x), c.hidden) ** 2)},
        "expanded grad_output": {"back": lambda c: c.g.view(-1).add_(0) * (1 - c.y * c.y)},
        "raises for strides": {
            "back": lambda c: c.g.view(-1, 1).view(torch.uint8).view(c.g.dtype).view(-1) * (1 - c.y * c.y)
        },
        "freed": {"back": freed},
        "other again": {"back": other_again},
        "other on a third pass": {"back": third_pass},
        "keeps output on ctx": {"after": keeps_output, "back": right},
        "keeps output for ever": {"after": keeps_for_ever, "back": right},
        "keeps ctx for ever": {"before": lambda c: c.state.alive.append(c.ctx), "back": right},
        "wrong below": only_at(lambda k: 0 < k < n),
        "wrong above": only_at(lambda k: k > n),
        "wrong at odd sizes": only_at(lambda k: k % 2 == 1),
        "wrong at 1": only_at(lambda k: k == 1),
        "raises below": raising_at(lambda k: 0 < k < n),
        "raises above": raising_at(lambda k: k > n),
        "last of more": changed(lambda d: torch.cat([d[:-1], 0 * d[-1:]]) if d.numel() > n else d),
        "raises when empty": raising_at(lambda k: k == 0),
    }


class Two(torch.autograd.Function):
    """Two inputs and outputs, x z and x + z."""

    wrong = ""

    @staticmethod
    def forward(ctx: Any, x: Any, z: Any) -> Any:
        """The outputs."""
        ctx.save_for_backward(x, z)
        ctx.set_materialize_grads(False)
        return x * z, x + z


def two(wrong: str) -> Any:
    """The same, wrong in what `wrong` says."""

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, z = ctx.saved_tensors
        if wrong == "raises at None" and (g is None or h is None):
            raise TypeError("None")
        if wrong == "wrong at None" and h is None:
            return g * z, 2 * g * x
        g, h = torch.zeros_like(x) if g is None else g, torch.zeros_like(x) if h is None else h
        own = [g * z + h, g * x + h]
        if wrong == "swapped":
            own.reverse()
        if wrong == "needs_input_grad" and not all(ctx.needs_input_grad):
            own[0] = 2 * own[0]
        if wrong == "lost term":
            own[1] = g * x
        if wrong == "aliased" and x.data_ptr() == z.data_ptr():
            own[0] = 3 * own[0]
        return tuple(own)

    return type("Two", (Two,), {"backward": staticmethod(backward)})


TWO = ("right", "swapped", "needs_input_grad", "raises at None", "wrong at None", "lost term", "aliased")


def report(name: str, hidden: bool, function: Any, inputs: tuple[Any, ...]) -> None:
    """One line: what the check says."""
    started = time.process_time()
    found = gradcli.check(function, inputs, order=1, seed=0).cases[0]
    said = sorted({f"{f.kind.value}: {f.message[:110]}" for f in found.findings})
    seconds = time.process_time() - started
    body = "hidden" if hidden else "visible"
    print(f"{name:28s} {body:8s} {seconds:6.2f} {found.verdict.value:12s} {'; '.join(said)}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--only", action="append", default=[])
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    torch.manual_seed(5)
    x, z = (torch.randn(given.entries, dtype=torch.float64).requires_grad_() for _ in range(2))

    def is_chosen(name: str) -> bool:
        return not given.only or any(word in name for word in given.only)

    for hidden in (False, True):
        for name, parts in {**values(given.entries), **protocols(given.entries)}.items():
            if is_chosen(name):
                report(name, hidden, made(hidden, **parts), (x,))
    for wrong in filter(is_chosen, TWO):
        report("two: " + wrong, False, two(wrong), (x, z))


if __name__ == "__main__":
    main()
