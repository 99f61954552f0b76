"""An axis whose two parts the source calls halves has an even size: forward runs with an odd one and is no rotation."""

import pytest

import gradcli
from gradcli.inputs.hints.equal_parts import cuts_in_halves
from gradcli.verdict import Verdict

CODE = """
{imports}

def {turned}(x):
    {cut} = x.shape[-1] // 2
    return torch.cat((-x[..., {cut}:], x[..., :{cut}]), dim=-1)

class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin):
        {comment}
        ctx.save_for_backward(x, cos, sin)
        return x * cos + {turned}(x) * sin

    @staticmethod
    def backward(ctx, g):
        x, cos, sin = ctx.saved_tensors
        {cut} = x.shape[-1] // 2
        h = g * sin
        back = torch.cat(({sign}h[..., {cut}:], {other}h[..., :{cut}]), dim=-1)
        return g * cos + back, (g * x).sum(0), (g * {turned}(x)).sum(0)
"""
WRITTEN = [
    ("turned", "half", "Turn", "# x: (B, T, D), cos and sin: (T, D)"),
    ("rotate_half", "d", "Turn", ""),
    ("turned", "d", "ApplyRotary", "# x: (B, D), cos and sin: (D,)"),
    ("turned", "n", "RoPE", ""),
]
IMPORTS = {"engine": "import gradcli.engine as torch", "torch": "import torch"}


def checked(path, framework, turned, cut, name, comment, signs):
    pytest.importorskip("torch" if framework == "torch" else "numpy")
    text = CODE.format(
        imports=IMPORTS[framework], turned=turned, cut=cut, name=name, comment=comment, sign=signs[0], other=signs[1]
    )
    (path / "target.py").write_text(text)
    (case,) = gradcli.check(f"{path / 'target.py'}:{name}", shrink=False).cases
    return case


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", ["engine", "torch"])
@pytest.mark.parametrize(("turned", "cut", "name", "comment"), WRITTEN)
def test_a_rotation_of_halves_is_checked_at_even_sizes(framework, turned, cut, name, comment, tmp_path):
    case = checked(tmp_path, framework, turned, cut, name, comment, ("", "-"))
    assert case.verdict is Verdict.PASSED, case.findings


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", ["engine", "torch"])
@pytest.mark.parametrize(("turned", "cut", "name", "comment"), WRITTEN)
def test_a_rotation_in_the_same_direction_fails(framework, turned, cut, name, comment, tmp_path):
    case = checked(tmp_path, framework, turned, cut, name, comment, ("-", ""))
    assert case.verdict is Verdict.FAILED
    assert {finding.input for finding in case.findings} == {"x"}


def test_parts_that_nobody_calls_halves_are_checked_at_odd_sizes_too(tmp_path):
    case = checked(tmp_path, "engine", "turned", "mid", "Turn", "", ("", "-"))
    assert case.verdict is Verdict.FAILED
    assert "sizes that gradcli tried in addition" in str(case.findings)


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("half = x.size(1) // 2\na, b = x[:, :half], x[:, half:]", "Gate", True),
        ("half = k.shape[-1] // 2\ny = pad(x, (half, half))\nreturn y[..., half:-half]", "Smooth", False),
        ("x = x.half()\nn = x.shape[0] // 2\nreturn x[:n], x[n:]", "Cut", False),
        ("n = x.shape[0] // 2\nreturn x[:n], x[n:]", "PropertyOfEurope", False),
        ("return x.roll(1)", "Rope", False),
        ("a, b = x.chunk(2, -1)\nreturn cat((-b, a), -1)", "RotaryEmbedding", True),
        ("a, b = torch.chunk(x, 2, -1)\nreturn cat((-b, a), -1)", "ApplyRope", True),
        ("a, b = x.chunk(2, -1)\nreturn a * b.sigmoid()", "Gate", False),
        ("a, b = x.chunk(25, -1)", "Rotary", False),
    ],
)
def test_what_counts_as_halves(source, name, expected):
    assert cuts_in_halves(source, name) is expected


TABLES = """
{imports}


class RotaryEmbedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, cos_table, sin_table):
        ctx.save_for_backward(cos_table, sin_table)
        a, b = q.chunk(2, -1)
        return q * cos_table + torch.cat([-b, a], -1) * sin_table

    @staticmethod
    def backward(ctx, g):
        cos, sin = ctx.saved_tensors
        a, b = (g * sin).chunk(2, -1)
        return g * cos + torch.cat([{sign}b, -a], -1), None, None
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("framework", ["engine", "torch"])
def test_the_tables_of_a_rotary_embedding_get_no_gradient(framework, sign, tmp_path):
    pytest.importorskip("torch" if framework == "torch" else "numpy")
    (tmp_path / "target.py").write_text(TABLES.format(imports=IMPORTS[framework], sign=sign))
    (case,) = gradcli.check(f"{tmp_path / 'target.py'}:RotaryEmbedding", shrink=False).cases
    assert case.verdict is (Verdict.FAILED if sign else Verdict.PASSED), case.findings
    assert {finding.input for finding in case.findings} <= {"q"}
    assert any("cos_table is taken for data without a gradient, because of its name" in note for note in case.notes)
