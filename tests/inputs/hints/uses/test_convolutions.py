"""Convolutions by channel have weights with one input channel for each, of as many entries as the padding needs."""

from typing import Any

import pytest

import gradcli
from gradcli.errors import InputsNotFoundError
from gradcli.inputs.hints.uses.convolutions import depthwise_shapes
from gradcli.inputs.search.inference import infer
from gradcli.sources import tree_of
from gradcli.verdict import Verdict
from tests.programs import plain_functions as plain

torch = pytest.importorskip("torch", reason="these convolutions are PyTorch's")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("conv1d(x, k, groups=x.size(1))", {"x": ("batch", "channels", "length_0"), "k": ("channels", 1, "width_0")}),
        (
            "F.conv2d(x, k, padding=2, groups=x.shape[1])",
            {"x": ("batch", "channels", "length_0", "length_1"), "k": ("channels", 1, 5, 5)},
        ),
        ("F.conv2d(x, k, groups=2)", {}),
        ("F.conv2d(x, k, groups=k.shape[0])", {}),
        ("F.conv2d(x, w, groups=x.shape[1])", {}),
    ],
)
def test_the_shapes_follow_from_the_number_of_groups(call: str, expected: dict[str, Any]) -> None:
    assert depthwise_shapes([tree_of(f"def forward(ctx, x, k):\n    return {call}")], ["x", "k"]) == expected


def smoothed(factor: float) -> type:
    class Smoothed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, image: Any, kernel: Any) -> Any:
            ctx.save_for_backward(image, kernel)
            return torch.conv2d(image, kernel, padding=1, groups=image.shape[1])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            image, kernel = ctx.saved_tensors
            flipped = torch.conv2d(g, kernel.flip((2, 3)), padding=1, groups=g.shape[1])
            of_kernel = torch.nn.grad.conv2d_weight(image, kernel.shape, g, padding=1, groups=g.shape[1])
            return factor * flipped, of_kernel

    return Smoothed


def along_time(factor: float) -> type:
    class AlongTime(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, taps: Any) -> Any:
            ctx.save_for_backward(x, taps)
            return torch.nn.functional.conv1d(x, taps, groups=x.size(1))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, taps = ctx.saved_tensors
            of_x = torch.nn.grad.conv1d_input(x.shape, taps, g, groups=x.size(1))
            return factor * of_x, torch.nn.grad.conv1d_weight(x, taps.shape, g, groups=x.size(1))

    return AlongTime


@pytest.mark.parametrize("factor", [1.0, 1.01])
@pytest.mark.parametrize(("program", "wrong"), [(smoothed, "image"), (along_time, "x")])
def test_depthwise_convolutions_are_checked(program: Any, wrong: str, factor: float) -> None:
    (case,) = gradcli.check(program(factor), order=1, samples=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case
    assert [finding.input for finding in case.findings] == ([] if factor == 1 else [wrong])
    weight = case.inputs[1].shape
    assert weight[:2] == (case.inputs[0].shape[1], 1)


def test_a_kernel_that_is_convolved_is_no_number_in_the_flags_that_are_suggested() -> None:
    def blurred(image: Any, kernel: Any) -> Any:
        if kernel.ndim != 4 or kernel.shape[0] != 17 * kernel.shape[3]:
            raise ValueError("not this kernel")
        return torch.nn.functional.conv2d(image, kernel, padding=1, groups=image.shape[1])

    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(blurred), plain.attempt_of(blurred), budget_tries=200)
    assert "-i image=4x5x2x6 -i kernel=5x1x3x3 (a tensor" in str(caught.value)
