"""Edits that keep the parts of an expression: what each makes of one, and that a right one is left alone."""

import ast

import pytest

from gradcli.edits.idiom import Idiom
from gradcli.edits.products import symmetrised, turned
from gradcli.edits.regrouping import (
    deconvolved,
    exclusive,
    interleaved,
    inverted,
    of_other_methods,
    regrouped,
    reordered,
    solved,
    with_opposite_signs,
    with_signs,
)
from tests import warm


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("a * b - c", {"a * (b - c)"}),
        ("c + a * b", {"(c + a) * b"}),
        ("a * (b + c)", {"a * b + c"}),
        ("(b - c) * a", {"b - c * a"}),
        ("a - b + c", {"a - (b + c)"}),
        ("a / b", set()),
        ("x.view(-1)", {"x.reshape(-1)"}),
        ("x.index_put((i,), g)", {"x.index_put((i,), g, accumulate=True)"}),
        ("x.index_put((i,), g, accumulate=True)", set()),
    ],
)
def test_the_parts_are_kept(text, made):
    node = ast.parse(text, mode="eval").body
    found = [change.new for each in (*regrouped(node), *of_other_methods(node)) for change in each.changes]
    assert {ast.unparse(new) for new in found if isinstance(new, ast.expr)} == made


TORCH, NUMPY = Idiom(by_methods=True, namespace="torch"), Idiom(by_methods=False, namespace="np")


@pytest.mark.parametrize(
    ("text", "idiom", "made"),
    [
        ("(a, b, b)", TORCH, {"(b, a, b)"}),
        ("[-s, c]", TORCH, {"[--s, c]", "[-s, -c]"}),
        ("low | high", TORCH, {"~(low | high)"}),
        ("a", TORCH, {"~a", "a.inverse()"}),
        ("a", NUMPY, {"~a", "np.linalg.inv(a)"}),
        ("a @ b", NUMPY, {"np.linalg.solve(a, b)"}),
        ("g.repeat(1, k)", TORCH, {"g.repeat_interleave(k, 1)"}),
        ("g.repeat(n, k)", TORCH, set()),
        ("F.conv2d(g, w.mT, padding=1)", TORCH, {"F.conv_transpose2d(g, w, padding=1)"}),
        ("a + b", TORCH, set()),
    ],
)
def test_another_form_of_an_expression(text, idiom, made):
    node = ast.parse(text, mode="eval").body
    found = [
        *reordered(node),
        *with_signs(node),
        *inverted(node),
        *solved(node, idiom),
        *interleaved(node),
        *deconvolved(node),
    ]
    assert {ast.unparse(change.new) for each in found for change in each.changes} == made


@pytest.mark.parametrize(
    ("text", "transposed", "symmetric"),
    [
        ("-x @ g.T", {"-g @ x.T"}, {("-x + (-x).T", "g.T"), ("-x", "g.T + g")}),
        ("x @ a.T", {"a @ x.T"}, {("x + x.T", "a.T"), ("x", "a.T + a")}),
        ("a @ b", {"(a @ b).T", "a.T @ b", "a @ b.T"}, {("a + a.T", "b"), ("a", "b + b.T")}),
        ("a * b", set(), set()),
    ],
)
def test_a_product_is_transposed_or_made_symmetric(text, transposed, symmetric):
    node = ast.parse(text, mode="eval").body
    assert {ast.unparse(change.new) for each in turned(node, TORCH) for change in each.changes} == transposed
    sums = {f"{_inside(left)} @ {_inside(right)}" for left, right in symmetric}
    wanted = {ast.unparse(ast.parse(each, mode="eval").body) for each in sums}
    assert {ast.unparse(change.new) for each in symmetrised(node, TORCH, 1) for change in each.changes} == wanted


def _inside(text):
    return f"({text})" if "+" in text else text


@pytest.mark.parametrize(("rank", "made"), [(0, set()), (1, set()), (2, {"(a + a.T) / 2"})])
def test_a_matrix_by_name_is_the_mean_of_it_and_its_transpose(rank, made):
    node = ast.parse("a", mode="eval").body
    assert {ast.unparse(change.new) for each in symmetrised(node, TORCH, rank) for change in each.changes} == made


def test_twice_a_matrix_gives_a_sum_alone():
    node = ast.parse("2 * a @ x", mode="eval").body
    made = {ast.unparse(change.new) for each in symmetrised(node, TORCH, 1) for change in each.changes}
    assert made == {"(a + a.T) @ x", "a @ (x + x.T)"}


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("[c * x - s * y, s * x + c * y]", {"[c * x + s * y, s * x - c * y]", "[c * x + s * y, c * y - s * x]"}),
        ("[a - b, c - d]", {"[a + b, c + d]"}),
        ("[a - b, c]", set()),
    ],
)
def test_a_list_with_opposite_signs(text, made):
    node = ast.parse(text, mode="eval").body
    assert {ast.unparse(change.new) for each in with_opposite_signs(node) for change in each.changes} == made


LEAK = """from gradcli.engine.autograd import Function


class Tanh(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, g):
        y = ctx.y
        return g * (1 - y * y)
"""
PARENTHESES = """from gradcli.engine.autograd import Function


class Between(Function):
    @staticmethod
    def forward(ctx, a, t):
        ctx.save_for_backward(a, t)
        return t * t * (t - a)

    @staticmethod
    def backward(ctx, g):
        a, t = ctx.saved_tensors
        return -t * t * g, g * (3 * t * t - 2 * t * a)
"""


@pytest.mark.parametrize(
    ("text", "wrong", "line"),
    [
        (LEAK, None, "y, = ctx.saved_tensors"),
        (PARENTHESES, ("g * (3 * t * t - 2 * t * a)", "g * 3 * t * t - 2 * t * a"), "- 2 * t * a * g"),
    ],
)
def test_a_patch_is_proven(text, wrong, line, tmp_path):
    own = tmp_path / "own.py"
    own.write_text(text if wrong is None else text.replace(*wrong))
    name = "Tanh" if wrong is None else "Between"
    done = warm.run_for_text(["fix", f"own.py:{name}", "--write", "--force"], tmp_path)
    assert done.returncode == 0, done.stdout
    assert line in own.read_text()
    assert warm.run_for_text(["check", f"own.py:{name}"], tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("x.cumsum(1)", "x.cumsum(1) - x"),
        ("torch.cumsum(a * b, 0)", "torch.cumsum(a * b, 0) - a * b"),
        ("x.flip(0).cumsum(0).flip(0)", "x.flip(0).cumsum(0).flip(0) - x"),
        ("np.cumsum(x[::-1])[::-1]", "np.cumsum(x[::-1])[::-1] - x"),
        ("np.flip(np.cumsum(np.flip(x, 1), 1), 1)", "np.flip(np.cumsum(np.flip(x, 1), 1), 1) - x"),
        ("x.cumsum(0).flip(0)", None),
        ("x.flip(0)", None),
        ("x[::-1]", None),
        ("f(x)", None),
    ],
)
def test_a_running_sum_leaves_out_the_entry_itself(text, made):
    found = [ast.unparse(c.changes[0].new) for c in exclusive(ast.parse(text, mode="eval").body)]
    assert found == ([] if made is None else [made])
