"""Forwards in few digits, and forwards with jumps, floors or wiggles of their own, each with its right gradient."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

Tensor = torch.Tensor
Body = Callable[[Tensor], Tensor]
Gradient = Callable[[Tensor, Tensor], Tensor]

PLAIN, OWN, COARSE, RANDOM, SURROGATE = "rounded", "jumps and folds", "coarse plateaus", "chance", "surrogate"
HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


@dataclass(frozen=True, slots=True, kw_only=True)
class Rough:
    """A forward of one float64 vector with the gradient that its author would give.

    `kind` says what keeps it from being smooth: nothing but rounding (PLAIN), so that a wrong gradient can be seen,
    jumps or folds of its own, plateaus as coarse as those of a quantiser, chance, or that the gradient is a surrogate;
    `graph` says that the body can be differentiated where it is not hidden; `scale` and `offset` are the inputs'.
    """

    name: str
    body: Body
    gradient: Gradient
    entries: int
    kind: str
    graph: bool = True
    scale: float = 1.0
    offset: float = 0.0
    positive: bool = False

    @property
    def plain(self) -> bool:
        """Whether nothing but rounding keeps it from being smooth."""
        return self.kind == PLAIN

    def input(self, seed: int) -> Tensor:
        """A point for a seed."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        drawn = rng.normal(size=self.entries)
        return torch.from_numpy(self.offset + self.scale * (np.abs(drawn) + 0.1 if self.positive else drawn))


FOUND: list[Rough] = []


def add(
    name: str,
    body: Body,
    gradient: Gradient,
    entries: int = 5,
    *,
    kind: str = OWN,
    graph: bool = True,
    scale: float = 1.0,
    offset: float = 0.0,
    positive: bool = False,
) -> None:
    """Take in a forward."""
    FOUND.append(
        Rough(
            name=name,
            body=body,
            gradient=gradient,
            entries=entries,
            kind=kind,
            graph=graph,
            scale=scale,
            offset=offset,
            positive=positive,
        )
    )


rounded = functools.partial(add, kind=PLAIN)
coarse = functools.partial(add, kind=COARSE)
surrogate = functools.partial(add, kind=SURROGATE, graph=False)


def inside(dtype: torch.dtype, body: Body) -> Body:
    """The body computed in another precision."""
    return lambda x: body(x.to(dtype)).double()


def stored(dtype: torch.dtype, body: Body) -> Body:
    """The body computed in float64, its result stored in another precision."""
    return lambda x: body(x).to(dtype).double()


def digits(body: Body, count: int) -> Body:
    """The body with its result rounded to so many digits after the point."""
    return lambda x: torch.round(body(x) * 10**count) / 10**count


def figures(body: Body, count: int) -> Body:
    """The body with its result printed to so many significant figures and read again."""

    def printed(x: Tensor) -> Tensor:
        values = [float(f"{v:.{count}g}") for v in body(x).detach().reshape(-1).tolist()]
        return torch.tensor(values, dtype=torch.float64)

    return printed


def matrix(rows: int, columns: int, seed: int = 0) -> Tensor:
    """Fixed weights."""
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, columns)))


def gelu_slope(g: Tensor, x: Tensor) -> Tensor:
    """Of x Φ(x)."""
    density = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return g * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * density)


def softmax_slope(g: Tensor, x: Tensor) -> Tensor:
    """Of softmax."""
    s = torch.softmax(x, 0)
    return s * (g - (g * s).sum())


COARSELY = {True: add, False: coarse}
WIDE, DEEP, LONG = matrix(4, 12), matrix(6, 6, 1) / 2, matrix(3, 200, 2)
for kind, precision in (("float16", HALF), ("bfloat16", BRAIN), ("float32", SINGLE)):
    rounded(f"{kind} cast", lambda x, p=precision: x.to(p).double(), lambda g, x: g.clone())
    rounded(f"{kind} sine", inside(precision, torch.sin), lambda g, x: g * torch.cos(x))
    rounded(f"{kind} exponential", inside(precision, torch.exp), lambda g, x: g * torch.exp(x), 8)
    rounded(f"{kind} tanh", inside(precision, torch.tanh), lambda g, x: g * (1 - torch.tanh(x) ** 2), 3, scale=0.7)
    rounded(f"{kind} result only", stored(precision, lambda x: x**3 + x), lambda g, x: g * (3 * x * x + 1), 4)
    rounded(
        f"{kind} product",
        inside(precision, lambda x: x[:6] * x[6:]),
        lambda g, x: torch.cat([g * x[6:], g * x[:6]]),
        12,
    )
    rounded(f"{kind} sum of squares", inside(precision, lambda x: (x * x).sum()), lambda g, x: 2 * g * x, 20)
    rounded(f"{kind} linear", inside(precision, lambda x: WIDE.to(x.dtype) @ x), lambda g, x: g @ WIDE, 12)
    rounded(
        f"{kind} linear, 200 entries", inside(precision, lambda x: LONG.to(x.dtype) @ x), lambda g, x: g @ LONG, 200
    )
    rounded(f"{kind} gelu", inside(precision, torch.nn.functional.gelu), gelu_slope)
    rounded(f"{kind} softmax", inside(precision, lambda x: torch.softmax(x, 0)), softmax_slope, 6)
    rounded(
        f"{kind} around 100",
        inside(precision, lambda x: torch.sin(x / 20)),
        lambda g, x: g * torch.cos(x / 20) / 20,
        3,
        offset=100.0,
    )
    rounded(f"{kind} square, one entry", inside(precision, lambda x: x * x), lambda g, x: 2 * g * x, 1)
    rounded(
        f"{kind} two layers",
        inside(precision, lambda x: torch.tanh(DEEP.to(x.dtype) @ torch.tanh(DEEP.to(x.dtype) @ x))),
        lambda g, x: (lambda h: DEEP.mT @ ((DEEP.mT @ (g * (1 - torch.tanh(DEEP @ h) ** 2))) * (1 - h * h)))(
            torch.tanh(DEEP @ x)
        ),
        6,
    )
    add(f"{kind} rectifier", inside(precision, torch.relu), lambda g, x: g * (x > 0))
    add(f"{kind} absolute values", inside(precision, torch.abs), lambda g, x: g * torch.sign(x))
    add(f"{kind} clamp", inside(precision, lambda x: x.clamp(-0.8, 0.8)), lambda g, x: g * (x.abs() < 0.8))
    add(f"{kind} maximum", inside(precision, lambda x: x.max()), lambda g, x: g * (x == x.max()))
    add(f"{kind} fraction", inside(precision, torch.frac), lambda g, x: g.clone(), scale=3.0)
    add(f"{kind} remainder", inside(precision, lambda x: torch.remainder(x, 0.37)), lambda g, x: g.clone())
    add(f"{kind} fast remainder", inside(precision, lambda x: torch.remainder(x, 0.01) * 50), lambda g, x: 50 * g)
    add(f"{kind} floor and square", stored(precision, lambda x: torch.floor(x) + x * x), lambda g, x: 2 * g * x)
    add(f"{kind} sign and square", stored(precision, lambda x: torch.sign(x) * x * x), lambda g, x: 2 * g * x.abs())
    add(
        f"{kind} threshold",
        inside(precision, lambda x: torch.where(x > 0.5, x * x, 3 * x)),
        lambda g, x: g * torch.where(x > 0.5, 2 * x, 3.0),
    )
    add(f"{kind} x - round(x)", inside(precision, lambda x: x - torch.round(x)), lambda g, x: g.clone(), scale=2.0)
    add(f"{kind} fast sine", stored(precision, lambda x: torch.sin(1e4 * x)), lambda g, x: 1e4 * g * torch.cos(1e4 * x))
    add(
        f"{kind} ripple",
        stored(precision, lambda x: x + 0.01 * torch.sin(300 * x)),
        lambda g, x: g * (1 + 3 * torch.cos(300 * x)),
    )
    add(
        f"{kind} steep step",
        stored(precision, lambda x: x + torch.tanh(300 * (x - 0.5))),
        lambda g, x: g * (1 + 300 / torch.cosh((300 * (x - 0.5)).clamp(-300, 300)) ** 2),
    )
    add(f"{kind} sorted", inside(precision, lambda x: x.sort().values), lambda g, x: g[x.argsort().argsort()], 6)
    add(
        f"{kind} selected",
        inside(precision, lambda x: x[x.abs().argmax()] ** 2),
        lambda g, x: torch.zeros_like(x).index_fill(0, x.abs().argmax(), 1.0) * 2 * g * x,
    )
    add(
        f"{kind} and a float64 part",
        lambda x, p=precision: x.to(p).sin().double() + x * x,
        lambda g, x: g * (torch.cos(x) + 2 * x),
    )
    COARSELY[precision is SINGLE](f"{kind} tiny values", inside(precision, lambda x: x * 1e-6), lambda g, x: g * 1e-6)
    add(
        f"{kind} huge values",
        inside(precision, lambda x: torch.exp(3 * x)),
        lambda g, x: 3 * g * torch.exp(3 * x),
        offset=3.0,
    )
    COARSELY[precision is SINGLE](
        f"{kind} difference of large", inside(precision, lambda x: (x + 300) - 300), lambda g, x: g.clone()
    )
    COARSELY[precision is SINGLE](
        f"{kind} logarithm of 1 + x",
        inside(precision, lambda x: torch.log(1 + x * x)),
        lambda g, x: 2 * g * x / (1 + x * x),
        scale=0.3,
    )


def sequential(x: Tensor) -> Tensor:
    """A sum in float16, one after the other."""
    total = np.float16(0)
    for value in x.detach().numpy().astype(np.float16):
        total = np.float16(total + value)
    return torch.tensor([float(total)], dtype=torch.float64)


def newton(x: Tensor) -> Tensor:
    """A square root in float16, iterated until it stays."""
    a = x.detach().numpy().astype(np.float16)
    y = np.ones_like(a)
    for _ in range(30):
        following = np.float16(0.5) * (y + a / y)
        if np.abs(following - y).max() < 2e-2:
            break
        y = following
    return torch.from_numpy(following.astype(np.float64))


def loose(x: Tensor) -> Tensor:
    """y = x - 0.2 sin y to three digits."""
    a = x.detach().numpy()
    y = np.ones_like(a)
    while True:
        step = 0.7 * (a - y - 0.2 * np.sin(y))
        y = y + step
        if np.abs(step).max() < 1e-3:
            return torch.from_numpy(y)


def table(x: Tensor, count: int) -> Tensor:
    """The nearest of `count` tabulated sines per unit."""
    return torch.sin(torch.round(x * count) / count)


def by_chance(x: Tensor) -> Tensor:
    """x with fresh noise."""
    return x + 1e-2 * torch.from_numpy(np.random.default_rng().normal(size=x.shape))


def sampled(x: Tensor) -> Tensor:
    """How many of 2000 fixed numbers lie below x, as a part of them."""
    drawn = torch.from_numpy(np.random.default_rng(7).normal(size=2000))
    return (drawn[:, None] < x).double().mean(0)


def normal_density(g: Tensor, x: Tensor) -> Tensor:
    """The slope of what `sampled` estimates."""
    return g * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)


for count in (2, 3, 4, 6):
    (coarse if count == 2 else rounded)(
        f"{count} digits of a sine", digits(torch.sin, count), lambda g, x: g * torch.cos(x), graph=False
    )
    rounded(
        f"{count} digits of the input",
        lambda x, c=count: torch.exp(torch.round(x * 10**c) / 10**c),
        lambda g, x: g * torch.exp(x),
        graph=False,
    )
for count in (3, 4, 6):
    rounded(f"{count} figures", figures(torch.tanh, count), lambda g, x: g / torch.cosh(x) ** 2, graph=False)
rounded("table of 1000", lambda x: table(x, 1000), lambda g, x: g * torch.cos(x), graph=False)
rounded(
    "three sums of float16 squares",
    lambda x: torch.stack([(x[i::3].half() ** 2).double().sum() for i in range(3)]),
    lambda g, x: 2 * x * g.repeat(5),
    15,
)
add("digits of a kink", digits(lambda x: x.abs(), 3), lambda g, x: g * torch.sign(x), graph=False)
add("digits of a jump", digits(lambda x: x + (x > 0.3), 3), lambda g, x: g.clone(), graph=False)
add("float16 sum, one by one", sequential, lambda g, x: g * torch.ones_like(x), 300, graph=False, positive=True)
add("float16 sum of equals", sequential, lambda g, x: g * torch.ones_like(x), 900, graph=False, scale=0.01, offset=0.21)
add("float16 square root by iteration", newton, lambda g, x: g / (2 * torch.sqrt(x)), 3, graph=False, positive=True)
add("solver to three digits", loose, lambda g, x: g / (1 + 0.2 * torch.cos(loose(x))), 4, graph=False)
add("fresh noise", by_chance, lambda g, x: g.clone(), 4, graph=False, kind=RANDOM)
add(
    "fresh noise in float16",
    lambda x: by_chance(x).half().double(),
    lambda g, x: g.clone(),
    4,
    graph=False,
    kind=RANDOM,
)
add("part of 2000 below", sampled, normal_density, 4, graph=False, kind=RANDOM)
add("floor, float64", lambda x: torch.floor(x) + x * x, lambda g, x: 2 * g * x, graph=False)
add("fine floor, float64", lambda x: torch.floor(1000 * x) / 1000 + x * x, lambda g, x: 2 * g * x, graph=False)
add("sawtooth of 1e-3, float64", lambda x: x + torch.remainder(x, 1e-3), lambda g, x: 2 * g, graph=False)
add("rounded, claim of zero", lambda x: torch.round(x), lambda g, x: 0 * g, graph=False, scale=4.0)
add("rounded to a grid, claim of zero", lambda x: torch.round(x * 1000) / 1000, lambda g, x: 0 * g, graph=False)
surrogate("rounded by halves, straight through", lambda x: torch.round(2 * x) / 2, lambda g, x: g.clone())
surrogate("rounded to a grid, straight through", lambda x: torch.round(x * 1000) / 1000, lambda g, x: g.clone())
surrogate(
    "eight bits, straight through",
    lambda x: torch.round(x * 64).clamp(-127, 127) / 64,
    lambda g, x: g * (x.abs() < 127 / 64),
)
surrogate("sign, straight through", torch.sign, lambda g, x: g * (x.abs() <= 1))
surrogate("spikes", lambda x: (x > 0.2).double(), lambda g, x: g / (1 + 5 * (x - 0.2).abs()) ** 2)
surrogate(
    "population of spikes",
    lambda x: (x > 0.2).double().sum()[None],
    lambda g, x: g / (1 + 5 * (x - 0.2).abs()) ** 2,
    60,
)
surrogate(
    "part of a grid goes through",
    lambda x: torch.round(x * 1000) / 1000,
    lambda g, x: g * (torch.arange(5) % 2),
)
surrogate(
    "learnt step",
    lambda x: torch.round(x[:1] * 100) / 100 * x[1:],
    lambda g, x: torch.cat([(g * x[1:]).sum()[None], g * torch.round(x[:1] * 100) / 100]),
)
