"""A derivative that is cut off because forward saves a result of its own is named so, and nothing else is."""

import pytest

from tests import warm

HEADS = {
    "torch": "import torch\nfrom torch import nn\nfrom torch.autograd import Function\n",
    "engine": "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n",
}
SWISH = """

class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        SAVE
        return x * s

    @staticmethod
    def backward(ctx, g):
        TAKE
        return g * (s + x * s * (1 - s))


def on_rows(x):
    return Swish.apply(Sine.apply(x)).sum(0)


class Sine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.cos(x) * g
"""
WRONG = SWISH.replace("SAVE", "ctx.save_for_backward(x, s)").replace("TAKE", "x, s = ctx.saved_tensors")
RIGHT = SWISH.replace("SAVE", "ctx.save_for_backward(x)").replace(
    "TAKE", "(x,) = ctx.saved_tensors\n        s = torch.sigmoid(x)"
)
NET = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 3))

    def forward(self, x):
        return Swish.apply(x @ self.weight)
"""
SAID = "saves the intermediate result `s`, which backward treats as a constant"
OTHER_CAUSE = """

class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        size = x.abs()
        ctx.save_for_backward(x, size)
        return x**3

    @staticmethod
    def backward(ctx, g):
        x, size = ctx.saved_tensors
        return 3 * x.detach() ** 2 * g + 0 * size
"""


def run(folder, framework, text, *arguments):
    pytest.importorskip(framework if framework == "torch" else "numpy")
    (folder / "own.py").write_text(HEADS[framework] + text)
    return warm.run_for_text(arguments, folder, imports="torch" if framework == "torch" else None)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", HEADS)
@pytest.mark.parametrize(("target", "owner"), [("Swish", "because forward"), ("on_rows", "because Swish.forward")])
def test_the_saved_result_is_named_with_its_line_and_a_patch(framework, target, owner, tmp_path):
    done = run(tmp_path, framework, WRONG, "check", f"own.py:{target}")
    assert done.returncode == 1
    assert f"{owner} {SAID}" in done.stdout
    assert "[not-twice-differentiable]" in done.stdout
    assert "▸" in done.stdout
    (marked,) = [line for line in done.stdout.splitlines() if "▸" in line]
    assert "ctx.save_for_backward(x, s)" in marked
    assert f"fix available: gradcli fix own.py:{target}" in done.stdout
    assert run(tmp_path, framework, RIGHT, "check", f"own.py:{target}").returncode == 0


def test_it_is_named_in_a_module_and_patched_there(tmp_path):
    done = run(tmp_path, "torch", WRONG + NET, "fix", "own.py:Net", "--write", "--force")
    assert done.returncode == 0, done.stdout
    assert f"because Swish.forward {SAID}" in done.stdout
    assert "        s = torch.sigmoid(x)\n        return g * (s" in (tmp_path / "own.py").read_text()
    assert (
        run(
            tmp_path, "torch", (tmp_path / "own.py").read_text().removeprefix(HEADS["torch"]), "check", "own.py:Net"
        ).returncode
        == 0
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", HEADS)
def test_a_saved_result_that_is_not_the_cause_is_not_blamed(framework, tmp_path):
    done = run(tmp_path, framework, OTHER_CAUSE, "check", "own.py:Cube")
    assert done.returncode == 1
    assert "because backward detaches at line" in done.stdout
    assert "size" not in done.stdout.partition("[not-twice")[0]


HINGE = """

class Hinge(Function):
    @staticmethod
    def forward(ctx, a, b):
        far = (a - b).pow(2).sum(-1).sqrt()
        over = far - 1
        SAVE
        return over.clamp_min(0).mean()

    @staticmethod
    def backward(ctx, g):
        TAKE
        w = (active.to(a.dtype) * g / a.shape[0]).unsqueeze(-1)
        ga = w * (a - b) / far.unsqueeze(-1)
        return ga, -ga
"""
ATTENTION = """

class Attention(Function):
    @staticmethod
    def forward(ctx, q, k):
        scale = q.shape[-1] ** -0.5
        place = torch.arange(q.shape[-2], dtype=q.dtype)
        dist = (place[None, :] - place[:, None]).abs()
        p = (q @ k.transpose(-1, -2) * scale - dist).softmax(-1)
        SAVE
        ctx.scale = scale
        return p * dist

    @staticmethod
    def backward(ctx, g):
        TAKE
        dp = g * dist
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
        return ds @ k, ds.transpose(-1, -2) @ q
"""
HINGE_TAKEN = "a, b = ctx.saved_tensors\n        far = (a - b).pow(2).sum(-1).sqrt()\n        active = far - 1 > 0"
ATTENTION_TAKEN = "q, k, dist = ctx.saved_tensors\n        p = (q @ k.transpose(-1, -2) * ctx.scale - dist).softmax(-1)"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", HEADS)
def test_a_saved_comparison_hides_no_other_saved_result(framework, tmp_path):
    wrong = HINGE.replace("SAVE", "ctx.save_for_backward(a, b, far, over > 0)")
    wrong = wrong.replace("TAKE", "a, b, far, active = ctx.saved_tensors")
    done = run(tmp_path, framework, wrong, "check", "own.py:Hinge", "-i", "a=4x3", "-i", "b=4x3")
    assert done.returncode == 1
    assert "forward saves the intermediate result `far`, which backward treats as a constant" in done.stdout
    assert "fix available: gradcli fix own.py:Hinge" in done.stdout
    right = HINGE.replace("SAVE", "ctx.save_for_backward(a, b)").replace("TAKE", HINGE_TAKEN)
    assert run(tmp_path, framework, right, "check", "own.py:Hinge", "-i", "a=4x3", "-i", "b=4x3").returncode == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", HEADS)
def test_what_depends_on_no_input_is_not_blamed(framework, tmp_path):
    inputs = ("-i", "q=4x3", "-i", "k=4x3")
    wrong = ATTENTION.replace("SAVE", "ctx.save_for_backward(q, k, p, dist)")
    wrong = wrong.replace("TAKE", "q, k, p, dist = ctx.saved_tensors")
    done = run(tmp_path, framework, wrong, "check", "own.py:Attention", *inputs)
    assert done.returncode == 1
    assert "saves the intermediate result `p`, which backward treats as a constant" in done.stdout
    (marked,) = [line for line in done.stdout.splitlines() if "▸" in line]
    assert "ctx.save_for_backward(q, k, p, dist)" in marked
    right = ATTENTION.replace("SAVE", "ctx.save_for_backward(q, k, dist)").replace("TAKE", ATTENTION_TAKEN)
    assert run(tmp_path, framework, right, "check", "own.py:Attention", *inputs).returncode == 0
