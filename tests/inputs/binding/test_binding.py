"""Inputs are bound to forward's parameters as Python binds a call, whatever the signature and the way to give them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.errors import UsageError
from gradcli.inputs.flags import parse_input
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.runner.store.failures import load
from gradcli.runner.store.replay import replay
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.inputs.binding.signatures import (
    MANNERS,
    NOT_BY_POSITION,
    NOT_INFERRED,
    SIGNATURES,
    adding_one,
    by_flags,
    by_name,
    by_tuple,
    inferred,
    passing_on,
    product_of,
    three,
)
from tests.pairs import FRAMEWORKS, each_pair


@pytest.mark.sampled(15)
@each_pair(["backend"], backend=FRAMEWORKS, name=SIGNATURES, manner=MANNERS)
def test_callables_of_every_signature_are_called_as_python_does(ns: Any, name: str, manner: str) -> None:
    way, factor = MANNERS[manner]
    make, names = SIGNATURES[name]
    if (way is by_tuple and name in NOT_BY_POSITION) or (way is inferred and name in NOT_INFERRED):
        names = names[:1] if name in NOT_INFERRED else names
        way = by_name
    result = way(ns, make(product_of(ns, factor)), names)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert {finding.kind.value for finding in result.findings} <= {"wrong-factor"}


def functions_of(ns: Any, factor: float) -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Functions whose forward has a signature of each kind, in both styles."""

    def run(ctx: Any, a: Any, b: Any, k: float) -> Any:
        ctx.save_for_backward(a, b)
        ctx.k = k
        return ns.sin(a) * b * k

    class Base(ns.autograd.Function):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return factor * g * ns.cos(a) * b * ctx.k, g * ns.sin(a) * ctx.k

    class Later(Base):
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs[:2])
            ctx.k = 1.5

    class Variadic(Base):
        @staticmethod
        def forward(ctx: Any, *tensors: Any, call: Any = None) -> Any:
            return run(ctx, tensors[0], tensors[1], 1.5)

    class Rest(Base):
        @staticmethod
        def forward(ctx: Any, x: Any, *rest: Any) -> Any:
            return run(ctx, x, rest[0], 1.5)

    class DefaultBeforeRest(Base):
        @staticmethod
        def forward(ctx: Any, x: Any, p: float = 2.0, *rest: Any) -> Any:
            return run(ctx, x, rest[0], p)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            by_x, by_rest = Base.backward(ctx, g)
            return by_x, None, by_rest

    class ByPosition(Base):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, /) -> Any:
            return run(ctx, x, y, 1.5)

    class ByKeyword(Base):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, *, scale: float = 1.5) -> Any:
            return run(ctx, x, y, scale)

    class OfClass(Base):
        @classmethod
        def forward(cls, ctx: Any, x: Any, y: Any) -> Any:
            return run(ctx, x, y, 1.5)

    class Decorated(Base):
        @staticmethod
        @passing_on
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return run(ctx, x, y, 1.5)

    class LaterVariadic(Later):
        @staticmethod
        def forward(*tensors: Any) -> Any:
            return ns.sin(tensors[0]) * tensors[1] * 1.5

    class LaterByPosition(Later):
        @staticmethod
        def forward(x: Any, y: Any, /) -> Any:
            return ns.sin(x) * y * 1.5

    class LaterDefault(Later):
        @staticmethod
        def forward(x: Any, y: Any, k: float = 1.5) -> Any:
            return ns.sin(x) * y * k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            *tensors, ctx.k = inputs
            ctx.save_for_backward(*tensors)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (*Base.backward(ctx, g), None)

    two, pair = ("x", "y"), ("tensors[0]", "tensors[1]")
    return {
        "*args and a keyword": (Variadic, pair),
        "its apply": (Variadic.apply, pair),
        "a parameter and *args": (Rest, ("x", "rest[0]")),
        "a default before *args": (DefaultBeforeRest, ("x", "p", "rest[0]")),
        "positional-only": (ByPosition, two),
        "a keyword-only default": (ByKeyword, two),
        "a class method": (OfClass, two),
        "decorated": (Decorated, two),
        "*args and setup_context": (LaterVariadic, pair),
        "positional-only and setup_context": (LaterByPosition, two),
        "a default and setup_context": (LaterDefault, two),
    }


FUNCTIONS = (
    *("*args and a keyword", "its apply", "a parameter and *args", "a default before *args", "positional-only"),
    *("a keyword-only default", "a class method", "decorated", "*args and setup_context"),
    *("positional-only and setup_context", "a default and setup_context"),
)


@pytest.mark.sampled(33)
@each_pair(["backend"], backend=FRAMEWORKS, name=FUNCTIONS, manner=MANNERS)
def test_functions_of_every_signature_are_called_as_python_does(ns: Any, name: str, manner: str) -> None:
    way, factor = MANNERS[manner]
    target, names = functions_of(ns, factor)[name]
    result = way(ns, target, names)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert {finding.kind.value for finding in result.findings} <= {"wrong-factor"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["variadic", "by keyword", "by position", "decorated", "its own"])
def test_modules_of_every_signature_are_called_as_python_does(ns: Any, kind: str) -> None:
    product = product_of(ns, 2)

    class Scale(ns.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = ns.nn.Parameter(ns.ones(4, dtype=ns.float64) * 1.5)

    class Variadic(Scale):
        def forward(self, *xs: Any, call: Any = None) -> Any:
            assert call is None
            return product(xs[0], xs[1] * self.w, 1.0)

    class ByKeyword(Scale):
        def forward(self, x: Any, y: Any, *, k: float = 2.0) -> Any:
            return product(x, y * self.w, k)

    class ByPosition(Scale):
        def forward(self, x: Any, y: Any, /) -> Any:
            return product(x, y * self.w, 1.0)

    class Decorated(Scale):
        @passing_on
        def forward(self, x: Any, y: Any) -> Any:
            return product(x, y * self.w, 1.0)

    module: Any = {
        "variadic": Variadic, "by keyword": ByKeyword, "by position": ByPosition, "decorated": Decorated,
        "its own": Decorated,
    }[kind]()  # fmt: skip
    if kind == "its own":
        module.forward = lambda x, y, power=2.0: product(x, y * module.w, power)
    names = ("xs[0]", "xs[1]") if kind == "variadic" else ("x", "y")
    for way in (by_flags, inferred):
        result = way(ns, module, names)
        assert [finding.input for finding in result.findings] == [names[0]], result


def wrong_variadic(*tensors: Any, call: Any = None) -> Any:
    return product_of(engine, 2)(tensors[0], tensors[1], 1.5)


def wrong_default(x: Any, p: float = 2.0, *rest: Any) -> Any:
    return product_of(engine, 2)(x, rest[0], p)


def wrong_by_keyword(x: Any, *, y: Any, k: float = 2.0) -> Any:
    return product_of(engine, 2)(x, y, k)


def wrong_options(x: Any, **others: Any) -> Any:
    return product_of(engine, 2)(x, others["y"], 2.0)


wrong_added = adding_one(three(product_of(engine, 2)))


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("wrong_variadic", ("tensors[1]", "tensors[0]")),
        ("wrong_default", ("rest[0]", "x")),
        ("wrong_by_keyword", ("y", "x")),
        ("wrong_options", ("y", "x")),
        ("wrong_added", ("x", "y")),
    ],
)
def test_a_saved_failure_is_called_in_the_same_way(name: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    shape = "1" if name == "wrong_added" else "3x4"  # with an argument more, a search for a patch's sizes takes seconds
    specs: tuple[InputSpec, ...] = tuple(parse_input(f"{flag}={shape}") for flag in flags)
    spec = CheckSpec(target=f"{__name__}:{name}", inputs=specs, inputs_from=InputsFrom.FLAGS)
    result = check_object(globals()[name], case_of(spec, Settings(order=1, samples=1)), failures=tmp_path)
    assert [finding.kind.value for finding in result.findings] == ["wrong-factor"]
    (file,) = tmp_path.glob("*.json")
    again = replay(load(file))
    assert [finding.kind.value for finding in again.findings] == ["wrong-factor"]


def test_too_many_by_position_names_what_can_be_given_by_name() -> None:
    with pytest.raises(UsageError, match=r"expected at most 1 inputs \(x\), got 2; y, k can be given by name, in a di"):
        gradcli.check(wrong_by_keyword, (np.ones(3), np.ones(3)), shrink=False)
