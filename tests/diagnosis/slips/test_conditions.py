"""An edit that makes a condition of backward true or false throughout is no correction, whatever the gradients say."""

import ast

import pytest

from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import named, patched
from gradcli.diagnosis.slips.conditions import Conditions
from gradcli.diagnosis.slips.standing import brings_left_over, left_over
from gradcli.edits.deciding import decides
from gradcli.edits.draft import draft_of
from gradcli.edits.idiom import name
from gradcli.edits.render import Change
from gradcli.edits.source import written


def own(lines: str) -> str:
    body = "".join(f"        {line}\n" for line in lines.splitlines())
    head = "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\n"
    head += "def helper(x):\n    return 3 * torch.exp(torch.sin(x)) * torch.cos(5 * x)\n\n\n"
    return (
        f"{head}class Own(Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n"
        "        return x * x\n\n    @staticmethod\n    def backward(ctx, g):\n"
        f"        (x,) = ctx.saved_tensors\n{body}"
    )


BODIES = (
    "return g * torch.where(x > 0, 2 * x, helper(x))",
    "mask = x < 0\nreturn g * torch.where(mask, helper(x), 2 * x)",
    "return g * torch.where(helper(x) > 0.5, helper(x), 2 * x)",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lines", BODIES)
def test_no_patch_settles_a_condition(lines, tmp_path):
    text = own(lines)
    specimen = Specimen("own", "", "engine", "Own", text, text, frozenset())
    result, _ = patched(specimen, tmp_path)
    said, _ = named(specimen, tmp_path)
    assert result.patch is not None
    for each in (result.patch, said.patch):
        for node in ast.walk(ast.parse(each.after)) if each is not None else ():
            if isinstance(node, ast.Compare):
                assert ast.unparse(node) in text


def backward_of(ctx, g):
    x, k, edge, flag, _other = ctx
    m = x * k
    mask = m > edge
    if flag:
        return g * mask
    return g * x


def values_in(draft, text):
    return [n for n in ast.walk(draft.backward.node) if isinstance(n, ast.expr) and ast.unparse(n) == text]


@pytest.fixture
def draft():
    found = written(backward_of)
    assert found is not None
    return draft_of(found, {})


@pytest.mark.parametrize(
    ("text", "found"), [("x * k", True), ("m", True), ("flag", True), ("mask", False), ("g", False)]
)
def test_what_reaches_a_comparison_alone_decides(draft, text, found):
    node = next(n for n in values_in(draft, text) if not isinstance(getattr(n, "ctx", None), ast.Store))
    assert decides(node, draft.backward.node, draft.tree) is found


@pytest.mark.parametrize(
    ("old", "new", "settled"),
    [
        ("x * k", "abs(_other)", True),
        ("x * k", "x * _other", False),
        ("edge", "-99", False),
        ("flag", "_other", False),
        ("mask", "g", False),
    ],
)
def test_only_a_condition_that_no_longer_changes_is_settled(draft, old, new, settled):
    class Numbers:
        is_tensor = staticmethod(lambda value: False)

    def run():
        for x in (-2, 1, 3):
            backward_of((x, 2, 0.5, False, 7), 1.0)

    nodes = [n for n in values_in(draft, old) if not isinstance(getattr(n, "ctx", None), ast.Store)]
    conditions = Conditions(draft, run, Numbers)
    assert conditions.are_settled_by([Change(nodes[0], name(new))]) is settled


def loops_of(ctx, g):
    (x,) = ctx
    total, n = 0, len(x)
    for t in range(n):
        total = total + x[t]
    for t, k in enumerate(reversed(x)):
        total = total + k * t
    for i in range(n):
        i = i + 1
    return g * total


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("total + x[t]", {"k"}),
        ("reversed(x)", {"t", "k"}),
        ("total + k * t", set()),
        ("g * total", {"t", "k"}),
    ],
)
def test_after_a_loop_its_variables_are_left_over(text, found):
    draft = draft_of(written(loops_of), {})
    node = values_in(draft, text)[0]
    assert left_over(node, draft) == found
    for name_ in ("t", "k", "n", "i"):
        assert brings_left_over([Change(node, name(name_))], draft) is (name_ in found)
