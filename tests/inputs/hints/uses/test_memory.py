"""Float32 inputs where forward views their memory as complex64."""

from pathlib import Path

import pytest

from gradcli.inputs.hints.uses.memory import precision_viewed, views_as_complex
from gradcli.verdict import Verdict
from tests.inputs.hints.uses.written import checked

TURNED = """
def turned(z, by):
    return torch.from_numpy((z.detach().numpy().view("complex64") * by).view("float32"))


class Turned(Function):
    @staticmethod
    def forward(ctx, z):
        assert z.shape[-1] == 2, "expected a last axis of two"
        return turned(z.contiguous(), 2j)

    @staticmethod
    def backward(ctx, g):
        assert g.shape[-1] == 2, "expected a last axis of two"
        return turned(g.contiguous(), {by})
"""


@pytest.mark.parametrize(("by", "verdict"), [("-2j", Verdict.PASSED), ("2j", Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_inputs_are_float32_where_their_memory_is_viewed(by: str, verdict: Verdict, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    case = checked(tmp_path, TURNED.format(by=by), "Turned", "torch")
    assert case.verdict is verdict, case
    assert [(spec.dtype, (spec.shape or ())[-1]) for spec in case.inputs] == [("float32", 2)]
    assert any("views their memory as complex64" in note for note in case.notes)


@pytest.mark.parametrize(
    ("code", "views", "precision"),
    [
        ("x.view('complex64')", True, "float32"),
        ("x.view(torch.complex64)", True, "float32"),
        ("x.view(dtype=np.complex128)", True, None),
        ("torch.view_as_complex(x)", True, None),
        ("x.view(n, 2)", False, None),
        ("x.to(torch.complex64)", False, None),
    ],
)
def test_views_of_memory_are_recognised(code: str, views: bool, precision: str | None) -> None:
    assert (views_as_complex(code), precision_viewed(code)) == (views, precision)
