"""Indices that are all different, as in a permutation."""

import numpy as np
import pytest

import gradcli
from gradcli.cases import OWN_DTYPE
from gradcli.errors import UsageError
from gradcli.inputs.domains import DOMAINS
from gradcli.inputs.drawing import DRAWING, in_order
from gradcli.verdict import Verdict

IMPORTS = "import gradcli.engine as torch\nfrom gradcli.engine.autograd import Function\n"
MOVED = """

class Moved(Function):
    # {comment}
    @staticmethod
    def forward(ctx, x, {name}):
        ctx.save_for_backward({name})
        out = torch.zeros_like(x)
        out[{name}] = 3 * x
        return out

    @staticmethod
    def backward(ctx, g):
        (places,) = ctx.saved_tensors
        return {gradient}, None
"""


def checked(file, text, name, *, shrink=False):
    file.write_text(IMPORTS + text)
    (case,) = gradcli.check(f"{file}:{name}", order=1, shrink=shrink).cases
    return case


@pytest.mark.parametrize("shape", [(6,), (3, 4), (1,), (0,), (2, 0)])
def test_a_permutation_has_every_number_once(shape):
    drawn = DRAWING["permutation"](np.random.default_rng(0), shape, {})
    assert drawn.dtype == np.int64
    np.testing.assert_array_equal(np.sort(drawn, -1), np.broadcast_to(np.arange(shape[-1]), shape))


def test_fewer_numbers_than_there_are_differ():
    drawn = DRAWING["permutation"](np.random.default_rng(0), (200, 3), {"high": 5})
    assert set(np.unique(drawn)) == {0, 1, 2, 3, 4}
    assert (np.diff(np.sort(drawn, -1)) > 0).all()


@pytest.mark.parametrize(("shape", "parameters", "message"), [((), {}, "last axis"), ((4,), {"high": 3}, "at least")])
def test_too_few_numbers_are_refused(shape, parameters, message):
    with pytest.raises(UsageError, match=message):
        DRAWING["permutation"](np.random.default_rng(0), shape, parameters)


def test_what_is_left_of_a_permutation_is_one():
    np.testing.assert_array_equal(in_order(np.array([4, 0, 3]), "permutation"), [2, 0, 1])
    np.testing.assert_array_equal(in_order(np.array([1, 0, 0, 1]), "permutation"), [2, 0, 1, 3])


@pytest.mark.parametrize(
    ("name", "comment"),
    [
        ("perm", "rows in another order"),
        ("ids_shuffle", "rows in another order"),
        ("places", "x (N, C), places (N,) permutation of the rows"),
        ("places", "places: unique indices of the rows"),
    ],
)
@pytest.mark.parametrize(
    ("gradient", "verdict"),
    [
        ("3 * g[places]", Verdict.PASSED),
        ("3 * g[torch.argsort(places)]", Verdict.FAILED),
        ("2.997 * g[places]", Verdict.FAILED),
    ],
)
@pytest.mark.usefixtures("unexplained")
def test_rows_are_moved_by_a_permutation(name, comment, gradient, verdict, tmp_path):
    case = checked(tmp_path / "written.py", MOVED.format(name=name, comment=comment, gradient=gradient), "Moved")
    assert case.verdict is verdict, case
    assert [spec.domain for spec in case.inputs] == ["normal", "permutation"]


@pytest.mark.parametrize(("gradient", "noted"), [("3 * g[places]", True), ("2 * g[places]", False)])
def test_a_gradient_right_where_no_index_repeats_is_told_with_its_flag(gradient, noted, tmp_path):
    text = MOVED.format(name="places_taken", comment="rows put elsewhere", gradient=gradient)
    case = checked(tmp_path / "written.py", text, "Moved", shrink=True)
    assert case.verdict is Verdict.FAILED, case
    assert any("domain=permutation" in note for note in case.notes) is noted, case.notes


def test_whole_numbers_keep_their_dtype_in_a_case_of_another_dtype(tmp_path):
    (tmp_path / "written.py").write_text(IMPORTS + MOVED.format(name="places", comment="", gradient="3 * g[places]"))
    spec = tmp_path / "moved.yaml"
    spec.write_text(
        f"target: {tmp_path / 'written.py'}:Moved\n"
        "defaults: {dtype: float32, order: 1}\ncases:\n"
        "  - inputs: {x: {shape: [3, 2]}, places: {shape: [3], domain: permutation}}\n"
    )
    (case,) = gradcli.check(str(spec)).cases
    assert case.verdict is Verdict.PASSED, case
    assert {domain.name for domain in DOMAINS.values() if domain.integral or domain.boolean} == OWN_DTYPE


STRETCHED = """

class Stretched(Function):
    # x (N, 3) positions, bonds (M, 2) integer pairs of them
    @staticmethod
    def forward(ctx, x, bonds):
        apart = x[bonds[:, 0]] - x[bonds[:, 1]]
        length = (apart**2).sum(-1).sqrt()
        ctx.save_for_backward(x, bonds, apart, length)
        return (length - 1) ** 2

    @staticmethod
    def backward(ctx, g):
        x, bonds, apart, length = ctx.saved_tensors
        force = (2 * g * (length - 1) / length).unsqueeze(-1) * apart
        return torch.zeros_like(x).index_add(0, bonds[:, 0], force).index_add(0, bonds[:, 1], {sign}force), None
"""


@pytest.mark.parametrize(("sign", "verdict"), [("-", Verdict.PASSED), ("", Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_the_two_ends_of_a_bond_differ(sign, verdict, tmp_path):
    """Between a point and itself the distance is zero, and has no gradient."""
    case = checked(tmp_path / "written.py", STRETCHED.format(sign=sign), "Stretched")
    assert case.verdict is verdict, case
    assert (case.inputs[1].domain, case.inputs[1].shape[-1]) == ("permutation", 2)
    assert dict(case.inputs[1].parameters)["high"] >= 2
