"""Patches that take something from forward, or keep what backward could do before."""

import pytest

from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import case_of, patched
from gradcli.fix.elsewhere import is_differentiable
from gradcli.runner.arguments.prepare import prepared
from tests import warm

TEXT = """from gradcli import engine as torch
from gradcli.engine.autograd import Function


class Own(Function):
    @staticmethod
    def forward(ctx, {given}):
        {forward}

    @staticmethod
    def backward(ctx, {grads}):
        {backward}
"""
SCALED = "ctx.save_for_backward(q, k)\n        return q @ k.t() / q.shape[1] ** 0.5"
MIRRORED = "ctx.save_for_backward(x)\n        ctx.edge = edge\n        return torch.where(x > edge, 2 * edge - x, x)"
HUBER = (
    "ctx.save_for_backward(x)\n        ctx.d = d\n"
    "        return torch.where(x.abs() <= d, 0.5 * x * x, d * (x.abs() - 0.5 * d))"
)
HELD = "ctx.save_for_backward(x, w)\n        ctx.low, ctx.high = low, high\n        return w * x.clamp(-low, high) ** 2"
KEPT = "y = (x * x).exp()\n        ctx.save_for_backward(x)\n        ctx.y = y\n        return y"
POLAR = "ctx.save_for_backward(r, a)\n        return r * a.cos(), r * a.sin()"
GROWN = (
    "ctx.save_for_backward(x)\n        state, states = 1.0 * x[0], []\n        for t in range(1, x.shape[0]):\n"
    "            states.append(state)\n            state = state * x[t]\n        return state"
)
GROWN_BACK = (
    "(x,) = ctx.saved_tensors\n        before = [x[0]]\n        for t in range(1, x.shape[0]):\n"
    "            before.append(before[-1] * x[t])\n        total, found = g, []\n"
    "        for t in range(x.shape[0] - 1, 0, -1):\n            found.append(total * before[t - 1])\n"
    "            total = {step}\n        return torch.stack([*found, total][::-1])"
)
CASES = {
    "a root of a size": ("q, k", SCALED, "g", "q, k = ctx.saved_tensors\n        return g @ k, g.t() @ q", "q=nm k=km"),
    "a sign behind a border": (
        "x, edge",
        MIRRORED,
        "g",
        "(x,) = ctx.saved_tensors\n        return g, None",
        "x=nm edge=0.4",
    ),
    "a slope that is held": ("x, d", HUBER, "g", "(x,) = ctx.saved_tensors\n        return g * x, None", "x=nm d=0.6"),
    "a value that is held between numbers of ctx": (
        "x, w, low, high",
        HELD,
        "g",
        "x, w = ctx.saved_tensors\n        inside = (x > -ctx.low) & (x < ctx.high)\n"
        "        return 2 * g * w * x * inside, g * x ** 2, None, None",
        "x=nm w=nm low=0.6 high=0.9",
    ),
    "two outputs exchanged": (
        "r, a",
        POLAR,
        "g, h",
        "r, a = ctx.saved_tensors\n        return h * a.cos() + g * a.sin(), r * (h * a.cos() - g * a.sin())",
        "r=n a=n",
    ),
    "an output kept on ctx": (
        "x",
        KEPT,
        "g",
        "(x,), y = ctx.saved_tensors, ctx.y\n        return 2 * x * y * g",
        "x=nm",
    ),
    "a product for a step": ("x", GROWN, "g", GROWN_BACK.format(step="total + x[t]"), "x=n"),
}
LINES = {
    "a root of a size": "q.shape[1] ** 0.5, ",
    "a sign behind a border": "return torch.where(x > ctx.edge, -g, g), None",
    "a slope that is held": "return g * x.clamp(-ctx.d, ctx.d), None",
    "a value that is held between numbers of ctx": "g * x.clamp(-ctx.low, ctx.high) ** 2, None",
    "two outputs exchanged": "return g * a.cos() + h * a.sin(), r *",
    "an output kept on ctx": "ctx.save_for_backward(x, y)",
    "a product for a step": "total = total * x[t]",
}


def specimen_of(name):
    given, forward, grads, backward, inputs = CASES[name]
    text = TEXT.format(given=given, forward=forward, grads=grads, backward=backward)
    return Specimen("own", "", "engine", "Own", text, text, frozenset(), inputs=inputs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_the_patch_is_found_and_keeps_second_derivatives(name, tmp_path):
    result, _ = patched(specimen_of(name), tmp_path)
    assert result.patch is not None, result.reason
    assert LINES[name] in result.patch.after
    assert "orders 1 and 2" in result.patch.proven[0]


def test_sizes_that_are_equal_in_the_case_are_told_apart(tmp_path):
    text = TEXT.format(
        given="x",
        forward="ctx.save_for_backward(x)\n        return (x * x).mean((1, 2))",
        grads="g",
        backward="(x,) = ctx.saved_tensors\n        n = x.shape[1]\n        return 2 * x * g[:, None, None] / n",
    )
    specimen = Specimen("own", "", "engine", "Own", text, text, frozenset(), inputs="x=nkk")
    patch = patched(specimen, tmp_path)[0].patch
    assert patch is not None
    assert "x.shape[2]" in patch.after


@pytest.mark.parametrize(("body", "can"), [("g * 3 * x ** 2", True), ("g * float(x.sum()) * 3", False)])
def test_whether_backward_can_be_differentiated_is_seen(body, can, tmp_path):
    text = TEXT.format(
        given="x",
        forward="ctx.save_for_backward(x)\n        return x ** 3",
        grads="g",
        backward=f"(x,) = ctx.saved_tensors\n        if not {can} and torch.is_grad_enabled():\n"
        f"            raise RuntimeError('once')\n        return {body}",
    )
    case, target = case_of(Specimen("own", "", "engine", "Own", text, text, frozenset(), inputs="x=nm"), tmp_path)
    assert is_differentiable(prepared(target, case), target, 0) is can


@pytest.mark.parametrize("kind", ["counts", "counts.to(x.dtype)"])
def test_a_count_divides_as_it_does_in_forward(kind, tmp_path):
    text = TEXT.format(
        given="x, groups",
        forward="counts = torch.bincount(groups, minlength=3).clamp(min=1)\n"
        f"        counts = {kind}\n        ctx.save_for_backward(groups, counts)\n"
        "        return x.new_zeros((3, x.shape[1])).index_add(0, groups, x) / counts[:, None]",
        grads="g",
        backward="groups, counts = ctx.saved_tensors\n        return g.index_select(0, groups), None",
    )
    (tmp_path / "own.py").write_text(text)
    inputs = ["-i", "x=5x4", "-i", "groups=5,domain=indices,high=3"]
    done = warm.run_for_text(["fix", "own.py:Own", *inputs, "--diff"], tmp_path)
    assert "+        return (g / counts[:, None]).index_select(0, groups), None" in done.stdout


def test_fewer_indices_than_rows_say_nothing_of_a_patch(tmp_path):
    text = TEXT.format(
        given="x, labels",
        forward="p = torch.log_softmax(x, -1)\n        t = torch.zeros_like(p)\n"
        "        t.scatter_(1, labels.unsqueeze(1), 1)\n        ctx.save_for_backward(x, t)\n"
        "        return -(t * p).sum(-1)",
        grads="g",
        backward="x, t = ctx.saved_tensors\n        return (torch.softmax(x, 0) - t) * g.unsqueeze(-1), None",
    )
    (tmp_path / "own.py").write_text(text)
    inputs = ["-i", "x=3x4", "-i", "labels=3,domain=indices,high=4"]
    done = warm.run_for_text(["fix", "own.py:Own", *inputs, "--diff"], tmp_path)
    assert "+        return (torch.softmax(x, -1) - t) * g.unsqueeze(-1), None" in done.stdout
