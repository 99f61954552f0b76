"""Arguments that documentation calls complex, boolean or binary, and the checks with such inputs."""

from typing import Any

import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("text", "complexes"),
    [
        ("z complex (B, D), b real (D,)", {"z"}),
        ("z (B, D) complex, b (D,)", {"z"}),
        ("z: a complex tensor, b: shift", {"z"}),
        ("z is complex-valued", {"z"}),
        ("product of complex z and b", {"z", "b"}),
        ("z (complex64): signal", {"z"}),
        ("z: real or complex", set()),
        ("z: (N, 2), complex numbers stored as pairs", set()),
        ("the complex conjugate of z, shifted by b", set()),
        ("z is complex only behind the root", set()),
    ],
)
def test_what_says_that_an_argument_is_complex(text: str, complexes: set[str]) -> None:
    shapes = documented_shapes(("z", "b"), "", text)
    assert documented_values(("z", "b"), "", text, shapes=shapes).complexes == complexes


def scaled_square(ns: Any, conjugates: bool) -> type:
    def conj(z: Any) -> Any:  # by hand: nothing else in the code says that z is complex
        return 2 * z.real - z

    class ScaledSquare(ns.autograd.Function):
        # b * z * z for z complex (B, D), b real (D,)
        @staticmethod
        def forward(ctx: Any, z: Any, b: Any) -> Any:
            ctx.save_for_backward(z, b)
            return b * z * z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, b = ctx.saved_tensors
            inner = conj(z) if conjugates else z
            return 2 * g * b * inner, (g * inner * inner).real.sum(0)

    return ScaledSquare


@pytest.mark.parametrize("conjugates", [True, False])
def test_a_documented_complex_input_is_complex(ns: Any, conjugates: bool) -> None:
    (case,) = gradcli.check(scaled_square(ns, conjugates), order=1, shrink=False).cases
    assert [(spec.shape, spec.dtype) for spec in case.inputs] == [((3, 4), "complex128"), ((4,), None)]
    assert case.verdict is (Verdict.PASSED if conjugates else Verdict.FAILED)
    assert conjugates or FindingKind.MISSING_CONJUGATE in {f.kind for f in case.findings}


def logistic(ns: Any, documentation: str, factor: float) -> type:
    class Logistic(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, x: Any, of: Any) -> Any:
            side = 1 - 2 * of
            ctx.save_for_backward(x, side)
            return ns.log(1 + ns.exp(side * x)).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, side = ctx.saved_tensors  # side is -1 or 1, so that its square is 1
            return factor * g * side / (1 + ns.exp(-side * x)) * side * side, None

    return Logistic


@pytest.mark.sampled(6)
@pytest.mark.parametrize("factor", [1, 1.01, -1])
@pytest.mark.parametrize(
    "documentation",
    [
        "x (N, K), of (N, K) ground truth in {0, 1}",
        "x: a tensor of scores. of: a tensor with the class of each (0 for the background and 1 for the object)",
        "x: scores (N, K), of: binary labels (N, K)",
    ],
)
def test_labels_of_two_classes(ns: Any, documentation: str, factor: float) -> None:
    (case,) = gradcli.check(logistic(ns, documentation, factor), order=1, shrink=False).cases
    assert [(spec.domain, spec.requires_grad) for spec in case.inputs] == [("normal", None), ("binary", False)]
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {f.input for f in case.findings} == (set() if factor == 1 else {"x"})


@pytest.mark.parametrize("factor", [1, 1.01])
def test_a_mask_that_forward_subtracts(factor: float) -> None:
    """PyTorch refuses `1 - w` of booleans: w is then drawn as numbers that are 0 and 1."""
    torch = pytest.importorskip("torch")

    class Kept(torch.autograd.Function):
        """x (N, K), w (N, K) boolean"""

        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return (1 - w) * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return factor * 2 * g * (1 - w) * x, None

    (case,) = gradcli.check(Kept, order=1, shrink=False).cases
    assert case.inputs[1].domain == "binary"
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
