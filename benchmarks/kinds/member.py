"""What a member of a kind is: a Function with its wrong twin, and what is to be said of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A target with its inputs (None infers them) and what `gradcli.check` is given besides."""

    target: Any
    inputs: Any = None
    options: dict[str, Any] = field(default_factory=dict)


Build = Callable[[Any, bool], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """`build(ns, spoilt)` makes the right Function or its wrong twin, in each framework that `backends` names.

    `right` and `wrong` are what must be said: a verdict, then the names of findings of which one must be there
    (`failed stateful repeat`), then what a note must contain (`passed: buffer`). None stands for no such twin.
    """

    kind: str
    name: str
    build: Build
    right: str | None = "passed"
    wrong: str | None = "failed"
    backends: tuple[str, ...] = ("torch", "engine")


MEMBERS: list[Member] = []


def member(kind: str, **said: Any) -> Callable[[Build], Build]:
    """Take in what builds a member."""

    def take(build: Build) -> Build:
        MEMBERS.append(Member(kind=kind, name=build.__name__.strip("_").replace("_", " "), build=build, **said))
        return build

    return take


def case(target: Any, *inputs: Any, **options: Any) -> Case:
    """A target with inputs and options."""
    return Case(target=target, inputs=inputs or None, options=options)


def normal(ns: Any, *shape: int, seed: int = 0, scale: float = 1.0, shift: float = 0.0, grad: bool = True) -> Any:
    """A tensor of random numbers."""
    value = shift + scale * np.random.default_rng([seed, *shape]).standard_normal(shape)
    return ns.tensor(value, requires_grad=grad)


def leaf(ns: Any, value: Any) -> Any:
    """A tensor of float64 that requires a gradient."""
    return ns.tensor(np.asarray(value, np.float64), requires_grad=True)


def spd(ns: Any, n: int, *, seed: int = 0) -> Any:
    """A symmetric positive definite matrix."""
    a = np.random.default_rng([seed, n]).standard_normal((n, n))
    return leaf(ns, a @ a.T / n + np.eye(n))


def twins(found: Member) -> Iterator[tuple[str, bool]]:
    """The backends and twins of a member."""
    there = [spoilt for spoilt in (False, True) if (found.wrong if spoilt else found.right) is not None]
    yield from ((backend, spoilt) for backend in found.backends for spoilt in there)
