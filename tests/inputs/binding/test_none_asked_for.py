"""Arguments without a default that forward compares with None, and errors about 64-bit tensors among others."""

from typing import Any

import pytest

import gradcli
from gradcli.errors import InputsNotFoundError
from gradcli.inputs.search.error_messages import refuses_double
from gradcli.inputs.search.inference import infer
from gradcli.verdict import Verdict
from tests.programs import plain_functions as plain


def chosen(ns: Any, factor: float) -> type:
    class Chosen(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: Any, eps: Any, branch: Any, verbose: Any) -> Any:
            if branch is None:
                branch = 10
            assert isinstance(branch, int)
            assert branch >= 10
            if verbose >= 0 and n > branch:
                raise ValueError("too many")
            ctx.save_for_backward(x)
            ctx.n = n
            return x**n + eps

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * ctx.n * g * x ** (ctx.n - 1), None, None, None, None

    return Chosen


@pytest.mark.parametrize("backend", ["engine", "torch"], indirect=True)
@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_none_is_given_where_forward_asks_for_it(ns: Any, factor: float) -> None:
    (case,) = gradcli.check(chosen(ns, factor), order=1, samples=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case
    given = {spec.name: spec.value for spec in case.inputs if spec.kind == "value"}
    assert given["branch"] is None
    assert given["verbose"] == 0


def given(value: Any) -> bool:
    """Whether there is a value, as a helper of one line tells."""
    return value is not None


def absent(value: Any) -> bool:
    """The opposite."""
    return value is None


def in_tiles(ns: Any, factor: float) -> type:
    """A product by rows, with weights of rows for which forward has no use for a tensor of the wrong kind."""

    class InTiles(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, mask: Any) -> Any:
            tiles = x.shape[0]
            mask = mask.tiles(tiles) if given(mask) else (None,) * tiles
            ctx.save_for_backward(x, y)
            rows = [row * y if part is None else row * y * part for row, part in zip(x, mask, strict=True)]
            return ns.stack(rows)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y, factor * (g * x).sum(0), None

    return InTiles


def started(ns: Any, factor: float) -> type:
    """A recurrence, whose first state is an object of the caller's or None."""

    class Started(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, start: Any) -> Any:
            if absent(start):
                start = x[0] * 0
            else:
                start = start.unwrapped
            ctx.save_for_backward(x)
            return x.exp() + start

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * g * x.exp(), None

    return Started


@pytest.mark.parametrize("backend", ["engine", "torch"], indirect=True)
@pytest.mark.parametrize("factor", [1.0, 1.01])
@pytest.mark.parametrize(("program", "wrong", "name"), [(in_tiles, "y", "mask"), (started, "x", "start")])
def test_none_is_given_where_a_helper_asks_for_it(ns: Any, factor: float, program: Any, wrong: str, name: str) -> None:
    (case,) = gradcli.check(program(ns, factor), order=1, samples=1, shrink=False).cases
    assert {spec.name: spec.value for spec in case.inputs if spec.kind == "value"} == {name: None}
    assert [finding.input for finding in case.findings] == ([] if factor == 1 else [wrong])
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("expected scalar type Double but found Float", True),
        ("Input type (double) and bias type (float) should be the same", False),
        ("mat1 and mat2 must have the same dtype, but got Double and Float", True),
        ("expected m1 and m2 to have the same dtype, but got: float32 != float64", True),
        ("value cannot be converted to type float without overflow", True),
        ("expected scalar type Long but found Double", False),
        ("The size of tensor a (3) must match the size of tensor b (4)", False),
    ],
)
def test_what_is_said_of_64_and_32_bits(message: str, expected: bool) -> None:
    assert refuses_double(message) is expected


def test_an_error_about_precision_is_kept_beside_one_that_came_later() -> None:
    def smoothed(x: Any, h: Any) -> Any:
        if not getattr(h, "ndim", 0):
            raise TypeError("expected scalar type Double but found Float")
        y = x + 1
        z = y + 1
        raise ValueError("the sizes do not fit")
        return z

    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(smoothed), plain.attempt_of(smoothed))
    assert caught.value.refuses_double == "expected scalar type Double but found Float"
    assert str(caught.value.__cause__) == "the sizes do not fit"
