"""Arguments that are number formats, devices, members of an Enum or words of a Literal."""

import pytest

from gradcli.cases import FrameworkObject
from gradcli.inputs.flags import parse_argument
from gradcli.inputs.hints.uses.objects import plain_objects
from gradcli.targets import TargetInfo
from gradcli.verdict import Verdict
from tests.inputs.hints.uses.written import checked

FILLED = """
def ramp(count, {kind}, place):
    return torch.arange(count, dtype={kind}, device=place)


class Ramp(Function):
    @staticmethod
    def forward(ctx, x, {annotated}):
        weights = ramp(x.shape[-1], {kind}, {place})
        ctx.save_for_backward(weights)
        return x * weights

    @staticmethod
    def backward(ctx, g):
        (weights,) = ctx.saved_tensors
        return {gradient}, None, None
"""
ANNOTATED = {"kind": "kind", "place": "place", "annotated": "kind: torch.dtype, place: torch.device"}
PLAIN = {"kind": "kind", "place": "out_device", "annotated": "kind, out_device"}


@pytest.mark.parametrize("names", [ANNOTATED, PLAIN], ids=["annotated", "by use and name"])
@pytest.mark.parametrize(("gradient", "verdict"), [("g * weights", Verdict.PASSED), ("g", Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_formats_and_devices_are_no_tensors(names, gradient, verdict, tmp_path):
    pytest.importorskip("torch")
    case = checked(tmp_path, FILLED.format(gradient=gradient, **names), "Ramp", "torch")
    assert case.verdict is verdict, case
    flags = [spec.as_flag() for spec in case.inputs]
    assert flags[1:] == ["-a kind=torch.float64", f"-a \"{names['place']}=torch.device('cpu')\""]
    assert parse_argument("kind=torch.float64").value == case.inputs[1].value == FrameworkObject("torch.float64")


CHOSEN = """
class Way(enum.Enum):
    TWICE = 2
    THRICE = 3


class Chosen(Function):
    @staticmethod
    def forward(ctx, x, way: Way, how: typing.Literal["plain", "square"]):
        if how not in ("plain", "square"):
            raise ValueError(how)
        ctx.save_for_backward(x)
        ctx.way, ctx.how = way, how
        return (x if how == "plain" else x * x) * way.value

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.way.value * (1 if ctx.how == "plain" else {factor} * x), None, None
"""


@pytest.mark.parametrize(("factor", "verdict"), [(2, Verdict.PASSED), (3, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_members_and_words_are_those_that_the_annotation_names(factor, verdict, tmp_path):
    case = checked(tmp_path, CHOSEN.format(factor=factor), "Chosen")
    assert case.verdict is verdict, case
    assert case.inputs[2].value == "plain"


def test_the_format_of_a_tensor_does_not_make_a_format_of_it() -> None:
    code = "torch.zeros(3, dtype=x.dtype, device=x.device) + torch.ones(3, dtype=kind)"
    info = TargetInfo(name="f", backend="torch", parameters=(), forward=None, backward=None)
    assert list(plain_objects(info, ["x", "kind"], code, {})) == ["kind"]
