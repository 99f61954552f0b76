"""Arguments that default to None and are no tensors: left out, and given as a constant once."""

from typing import Any, Optional

import pytest

import gradcli
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.argument_names import excludes_tensors, types_named


def capped(annotation: Any, factor: float = 1.0) -> type[Function]:
    """cap·tanh(x / cap); without a cap x itself, where the factor plays no part."""

    class Capped(Function):
        @staticmethod
        def forward(ctx, x, cap=None):
            ctx.save_for_backward(x)
            ctx.cap = cap
            return x.clone() if cap is None else cap * (x / cap).tanh()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return (g if ctx.cap is None else factor * g * (1 - (x / ctx.cap).tanh() ** 2)), None

    if annotation is not None:
        Capped.forward.__annotations__["cap"] = annotation
    return Capped


@pytest.mark.parametrize(
    "annotation",
    [Optional[float], float | None, "Optional[float]", "float | None", Optional[int], None],  # noqa: UP045
)
def test_a_limit_that_is_none_is_tried_as_a_number_and_never_as_indices(annotation: Any) -> None:
    case = gradcli.check(capped(annotation), shrink=False).cases[0]
    assert case.verdict is gradcli.Verdict.PASSED
    assert [spec.name for spec in case.inputs] == ["x"]
    wrong = gradcli.check(capped(annotation, 1.25), shrink=False).cases[0]
    assert [(finding.kind.value, finding.input) for finding in wrong.findings] == [("wrong-factor", "x")]


def chosen(annotation: Any, compared: Any, factor: float) -> type[Function]:
    """x², or x³ where an option says so; backward is wrong by the factor for x³."""

    class Chosen(Function):
        @staticmethod
        def forward(ctx, x, option=None):
            if not (option is None or isinstance(option, (bool, str, tuple))):
                raise TypeError("no such option")
            ctx.save_for_backward(x)
            ctx.cubed = option is not None and (bool(option) if compared is None else option == "cubed")
            return x**3 if ctx.cubed else x**2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return (factor * 3 * g * x**2 if ctx.cubed else 2 * g * x), None

    Chosen.forward.__annotations__["option"] = annotation
    return Chosen


@pytest.mark.parametrize(
    ("annotation", "compared"),
    [(Optional[bool], None), (Optional[str], "cubed"), (Optional[tuple], None), (tuple[int, ...] | None, None)],  # noqa: UP045
)
def test_another_constant_is_tried_for_other_types_too(annotation: Any, compared: str | None) -> None:
    right = gradcli.check(chosen(annotation, compared, 1.0), shrink=False).cases[0]
    assert right.verdict is gradcli.Verdict.PASSED
    assert [spec.name for spec in right.inputs] == ["x"]
    assert gradcli.check(chosen(annotation, compared, 1.25), shrink=False).verdict is gradcli.Verdict.FAILED


def test_indices_and_masks_that_forward_uses_as_such_are_given() -> None:
    class Picked(Function):
        @staticmethod
        def forward(ctx, x, index=None):
            ctx.shape, ctx.index = x.shape, index
            return x * 2 if index is None else x[index] * 2

        @staticmethod
        def backward(ctx, g):
            if ctx.index is None:
                return g * 2, None
            return g.new_zeros(ctx.shape).index_add(0, ctx.index.reshape(-1), 2 * g.reshape(-1, g.shape[-1])), None

    case = gradcli.check(Picked, shrink=False).cases[0]
    assert case.verdict is gradcli.Verdict.PASSED
    assert [spec.domain for spec in case.inputs] == ["normal", "indices"]


@pytest.mark.parametrize(
    ("annotation", "types", "excludes"),
    [
        ("float", ("float",), True),
        ("Optional[float]", ("float",), True),
        ("typing.Union[int, typing.Tuple[int, ...], None]", ("int", "tuple"), True),
        ("float | None", ("float",), True),
        ("'float'", ("float",), True),
        ("Optional[torch.Tensor]", ("tensor",), False),
        ("float | Tensor", ("float", "tensor"), False),
        ("Optional[Any]", ("any",), False),
        ("", (), False),
        ("not an expression", (), False),
    ],
)
def test_what_an_annotation_names(annotation: str, types: tuple[str, ...], excludes: bool) -> None:
    assert types_named(annotation) == types
    assert excludes_tensors(annotation) is excludes
