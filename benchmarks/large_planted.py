"""Mistakes of every kind that the battery knows, planted in a Function of many entries, with the findings.

Each is an elementwise Function whose body autodiff sees, and one that computes in NumPy; the right ones must pass and
the wrong ones must fail. Compare the output of two states of the code line by line.

Run: python benchmarks/large_planted.py [--entries N] [--only WORD]... [--dtype float64]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gradcli

MIDDLE = 3
"""The wrong entry is that at a third of the input."""


class State:
    """What a wrong Function keeps between calls."""

    def __init__(self) -> None:
        self.kept: Any = None
        self.alive: list[Any] = []
        self.calls = itertools.count()


Forward = Callable[[Any, State, Any], Any]
Backward = Callable[[Any, State, Any, Any, Any], Any]


def tanh(x: Any, hidden: bool) -> Any:
    """In PyTorch, or in NumPy."""
    return torch.from_numpy(np.tanh(x.detach().numpy())) if hidden else x.tanh()


def spot(x: Any) -> int:
    """The place of the wrong entry."""
    return int(x.numel()) // MIDDLE


def entry(gradient: Any, factor: float, shift: float = 0.0) -> Any:
    """The gradient with one entry changed."""
    flat = gradient.reshape(-1).clone()
    flat[spot(flat)] = flat[spot(flat)] * factor + shift
    return flat.reshape(gradient.shape)


def made(hidden: bool, *, before: Forward | None = None, after: Forward | None = None, back: Backward) -> Any:
    """A Function of one input, with something done before and after the right forward, and with this backward."""
    state = State()

    class Planted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if before is not None:
                before(ctx, state, x)
            y = tanh(x, hidden)
            ctx.save_for_backward(x, y)
            ctx.shape = x.shape
            changed = after(ctx, state, x) if after is not None else None
            return y if changed is None else changed(y)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return back(ctx, state, x, y, g)

    return Planted


def right(_c: Any, _s: State, _x: Any, y: Any, g: Any) -> Any:
    """The right gradient."""
    return g * (1 - y * y)


def of(change: Callable[[Any, Any, Any], Any]) -> Backward:
    """The right gradient changed by `change(gradient, x, g)`."""
    return lambda c, s, x, y, g: change(right(c, s, x, y, g), x, g)


def in_place(tensor: Any, value: float) -> None:
    """Write into one entry."""
    tensor.data.view(-1)[spot(tensor)] = value


def scaled_in_place(_c: Any, _s: State, _x: Any, y: Any, g: Any) -> Any:
    """Overwrites a saved tensor."""
    y.mul_(y).neg_().add_(1)
    return g * y


def written(which: str) -> Backward:
    """A backward that writes into one entry of what is not its own, after its gradient is computed."""

    def back(c: Any, s: State, x: Any, y: Any, g: Any) -> Any:
        found = right(c, s, x, y, g)
        in_place({"x": x, "y": y, "g": g}[which], 0.25)
        return found

    return back


def kept(measure: Callable[[Any], Any], use: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """State of the last call, which backward uses in place of that of its own."""

    def before(_c: Any, s: State, x: Any) -> None:
        s.kept = measure(x.detach())

    return {"before": before, "back": lambda c, s, x, y, g: use(right(c, s, x, y, g), s.kept / measure(x.detach()))}


def varying(c: Any, s: State, x: Any, y: Any, g: Any) -> Any:
    """Differs in one entry from call to call."""
    return entry(right(c, s, x, y, g), 1 + 1e-3 * (next(s.calls) % 5))


def strides_ignored(tensor: Any) -> Any:
    """What lies in memory, as if the tensor were contiguous."""
    return torch.as_strided(tensor, tensor.shape, torch.empty(tensor.shape).stride())


def freed(c: Any, s: State, x: Any, y: Any, g: Any) -> Any:
    """A second pass through the same graph fails."""
    if getattr(c, "used", False):
        raise RuntimeError("freed")
    c.used = True
    return right(c, s, x, y, g)


def cheap(gradient: Any, at: Callable[[Any], Any]) -> Any:
    """Doubled where `at` is true."""
    return torch.where(at, 2 * gradient, gradient) if torch.is_tensor(at) else gradient


def keeps_output(c: Any, _s: State, _x: Any) -> Any:
    """A cycle of the output and ctx."""

    def keep(y: Any) -> Any:
        c.output = y
        return y

    return keep


def keeps_for_ever(_c: Any, s: State, _x: Any) -> Any:
    """The output stays alive outside of the call."""

    def keep(y: Any) -> Any:
        s.alive[:] = [*s.alive[-3:], y]
        return y

    return keep


def drawn(c: Any, s: State, x: Any, y: Any, g: Any) -> Any:
    """Draws in backward."""
    return entry(right(c, s, x, y, g), 1.0, 1e-3 * float(torch.rand(())))


def only_at(wrong: Callable[[int], bool]) -> Backward:
    """Wrong at some sizes."""
    return lambda c, s, x, y, g: right(c, s, x, y, g) * (1.5 if wrong(x.numel()) else 1.0)


def raising_at(wrong: Callable[[int], bool]) -> Backward:
    """Raises at some sizes."""

    def back(c: Any, s: State, x: Any, y: Any, g: Any) -> Any:
        if wrong(x.numel()):
            raise ValueError("unexpected size")
        return right(c, s, x, y, g)

    return back


def cases(hidden: bool, n: int) -> dict[str, Any]:
    """All of them."""
    own = {
        "right": dict(back=right),
        "right, keeps nothing": dict(before=lambda c, s, x: None, back=right),
        "entry 1e-6": dict(back=of(lambda d, x, g: entry(d, 1 + 1e-6))),
        "entry 10 %": dict(back=of(lambda d, x, g: entry(d, 1.1))),
        "entry lost": dict(back=of(lambda d, x, g: entry(d, 0.0))),
        "entry sign": dict(back=of(lambda d, x, g: entry(d, -1.0))),
        "entry nan": dict(back=of(lambda d, x, g: entry(d, float("nan")))),
        "last entry": dict(back=of(lambda d, x, g: torch.cat([d[:-1], 0 * d[-1:]]))),
        "first entry": dict(back=of(lambda d, x, g: torch.cat([2 * d[:1], d[1:]]))),
        "negative entries": dict(back=of(lambda d, x, g: torch.where(x < 0, 0.999 * d, d))),
        "large entries": dict(back=of(lambda d, x, g: torch.where(x.abs() > 2, 1.01 * d, d))),
        "all 1e-3": dict(back=of(lambda d, x, g: 1.001 * d)),
        "all 1e-6": dict(back=of(lambda d, x, g: (1 + 1e-6) * d)),
        "reversed": dict(back=of(lambda d, x, g: d.flip(0))),
        "rolled": dict(back=of(lambda d, x, g: d.roll(1))),
        "offset": dict(back=of(lambda d, x, g: d + 1e-4)),
        "float32": dict(back=of(lambda d, x, g: d.float().double())),
        "no gradient": dict(back=of(lambda d, x, g: None)),
        "shape": dict(back=of(lambda d, x, g: d[:1])),
        "arity": dict(back=of(lambda d, x, g: (d, d))),
        "mutates input": dict(after=lambda c, s, x: in_place(x, 0.25), back=right),
        "mutates input in backward": dict(back=written("x")),
        "mutates saved": dict(back=written("y")),
        "mutates saved all": dict(back=scaled_in_place),
        "mutates grad_output": dict(back=written("g")),
        "clipped": dict(back=of(lambda d, x, g: d.clamp(-100, 100))),
        "clipped entry": dict(back=of(lambda d, x, g: torch.where(torch.arange(n) == n // 3, d.clamp(-100, 100), d)
                                      if x.numel() == n else d)),
        "squared": dict(back=of(lambda d, x, g: d * g)),
        "squared entry": dict(back=of(lambda d, x, g: entry(d, float(g.reshape(-1)[spot(g)])))),
        "ignores grad_output": dict(back=lambda c, s, x, y, g: 1 - y * y),
        "ignores it in an entry": dict(back=lambda c, s, x, y, g: entry(g * (1 - y * y), 0.0, 1.0)),
        "first of grad_output": dict(back=lambda c, s, x, y, g: g.reshape(-1)[:1] * (1 - y * y)),
        "varies": dict(back=varying),
        "draws in backward": dict(back=drawn),
        "varies in forward": dict(after=lambda c, s, x: lambda y: entry(y, 1.0, 1e-6 * next(s.calls)), back=right),
        "kept largest": kept(lambda x: x.abs().max(), lambda d, r: d * r),
        "kept sign of sum": kept(lambda x: torch.sign(x.sum()), lambda d, r: d * r),
        "kept first": kept(lambda x: x.reshape(-1)[0], lambda d, r: d * r),
        "kept last": kept(lambda x: x.reshape(-1)[-1], lambda d, r: d * r),
        "kept size": kept(lambda x: float(x.numel()), lambda d, r: d * r),
        "kept whether positive": kept(lambda x: 1.0 + bool((x > 0).any()), lambda d, r: d * r),
        "kept whether negative": kept(lambda x: 1.0 + bool((x < 0).any()), lambda d, r: d * r),
        "kept mask": dict(
            before=lambda c, s, x: setattr(s, "kept", x.detach() > -9),
            after=lambda c, s, x: setattr(s, "kept", tanh(x.detach(), hidden)),
            back=lambda c, s, x, y, g: g * (1 - s.kept * s.kept),
        ),
        "kept entry": dict(
            before=lambda c, s, x: setattr(s, "kept", float(x.reshape(-1)[spot(x)])) if x.numel() else None,
            back=lambda c, s, x, y, g: entry(
                right(c, s, x, y, g), 1.0, 1e-3 * (s.kept - float(x.reshape(-1)[spot(x)])) if x.numel() else 0.0
            ),
        ),
        "kept by shape": dict(
            before=lambda c, s, x: setattr(s, "kept", {**(s.kept or {}), x.shape: tanh(x.detach(), hidden)}),
            back=lambda c, s, x, y, g: g * (1 - s.kept[x.shape] * s.kept[x.shape]),
        ),
        "kept while larger": dict(
            before=lambda c, s, x: setattr(s, "kept", float(x.sum()) if float(x.sum()) > 0 else s.kept or 1.0),
            back=lambda c, s, x, y, g: right(c, s, x, y, g) * (s.kept if s.kept > 10 * n else 1.0),
        ),
        "strided grad_output": dict(
            back=lambda c, s, x, y, g: right(c, s, x, y, strides_ignored(g) if g.stride() != (0,) else g)
        ),
        "strided input": dict(back=lambda c, s, x, y, g: right(c, s, x, strides_ignored(x).tanh(), g)),
        "expanded grad_output": dict(back=lambda c, s, x, y, g: g.view(-1).add_(0) * (1 - y * y)),
        "raises on strides": dict(back=lambda c, s, x, y, g: (g.view(torch.int64).view(g.dtype)) * (1 - y * y)),
        "freed": dict(back=freed),
        "wrong on a second pass": dict(
            back=lambda c, s, x, y, g: right(c, s, x, y, g) * (1.0 if c.__dict__.setdefault("n", []).append(1) is None
                                                              and len(c.n) == 1 else 1.5)
        ),
        "keeps output on ctx": dict(after=keeps_output, back=right),
        "keeps output for ever": dict(after=keeps_for_ever, back=right),
        "keeps ctx for ever": dict(before=lambda c, s, x: s.alive.append(c), back=right),
        "wrong below": dict(back=only_at(lambda k: 0 < k < n)),
        "wrong above": dict(back=only_at(lambda k: k > n)),
        "wrong at odd sizes": dict(back=only_at(lambda k: k % 2 == 1)),
        "wrong at 1": dict(back=only_at(lambda k: k == 1)),
        "raises below": dict(back=raising_at(lambda k: 0 < k < n)),
        "raises above": dict(back=raising_at(lambda k: k > n)),
        "last of larger": dict(back=of(lambda d, x, g: torch.cat([d[:-1], 0 * d[-1:]]) if x.numel() > n else d)),
        "raises when empty": dict(back=raising_at(lambda k: k == 0)),
    }
    return {name: (lambda parts=parts: made(hidden, **parts)) for name, parts in own.items()}


class Two(torch.autograd.Function):
    """Two inputs and outputs; `wrong` names the mistake."""

    wrong = ""

    @classmethod
    def named(cls, wrong: str) -> Any:
        """The same with a mistake."""
        return type("Two", (cls,), {"wrong": wrong, "backward": staticmethod(lambda c, *g: cls.back(wrong, c, *g))})

    @staticmethod
    def forward(ctx: Any, x: Any, z: Any) -> Any:
        """x z and x + z."""
        ctx.save_for_backward(x, z)
        ctx.set_materialize_grads(False)
        return x * z, x + z

    @staticmethod
    def back(wrong: str, ctx: Any, g: Any, h: Any) -> Any:
        """The gradients, wrong in what `wrong` says."""
        x, z = ctx.saved_tensors
        zeros = torch.zeros_like(x)
        if wrong == "raises at None" and (g is None or h is None):
            raise TypeError("None")
        if wrong == "wrong at None" and h is None:
            return g * z, 2 * g * x
        g, h = zeros if g is None else g, zeros if h is None else h
        own = [g * z + h, g * x + h]
        if wrong == "swapped":
            own.reverse()
        if wrong == "needs_input_grad" and not all(ctx.needs_input_grad):
            own[0] = 2 * own[0] if own[0] is not None else None
        if wrong == "lost term":
            own[1] = g * x
        if wrong == "aliased" and x.data_ptr() == z.data_ptr():
            own[0] = 3 * own[0]
        return tuple(own)


TWO = ("right", "swapped", "needs_input_grad", "raises at None", "wrong at None", "lost term", "aliased")


def report(name: str, hidden: bool, function: Any, inputs: tuple[Any, ...]) -> None:
    """One line: what the check said."""
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
    n = given.entries
    torch.manual_seed(5)
    x, z = (torch.randn(n, dtype=torch.float64).requires_grad_() for _ in range(2))
    for hidden in (False, True):
        for name, make in cases(hidden, n).items():
            if not given.only or any(word in name for word in given.only):
                report(name, hidden, make(), (x,))
    for wrong in TWO:
        if not given.only or any(word in wrong for word in given.only):
            report("two: " + wrong, False, Two.named(wrong), (x, z))


if __name__ == "__main__":
    main()
