"""A number of a closure or a module: an edit must hold at other values of it, and may use it by its name."""

import pytest

from gradcli.edits.captured import Captured
from tests import warm

HEAD = {
    "torch": "import torch\nfrom torch.autograd import Function\n",
    "engine": "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n",
}
GLOBAL = """

SCALE = 2.0


class Own(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return FORWARD

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return BACKWARD
"""
DEPENDENT = """

ROOT = 1.4142135623730951
DENSITY = 0.3989422804014327


class Own(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + torch.erf(x / ROOT))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        pdf = torch.exp(-0.5 * x * x)
        return g * (0.5 * (1 + torch.erf(x / ROOT)) + x * pdf)
"""
OF_CLASS = """

class Own(Function):
    slope = 0.25

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, x * Own.slope)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, g, g * 0.5)
"""
CLOSURE = """

def made(temperature):
    class Own(Function):
        @staticmethod
        def forward(ctx, x):
            p = torch.softmax(x / temperature, -1)
            ctx.save_for_backward(p)
            return p

        @staticmethod
        def backward(ctx, g):
            (p,) = ctx.saved_tensors
            return p * (g - (g * p).sum(-1, keepdim=True))

    return Own


Own = made(0.5)
"""
OF_HELPERS = """

DEFINITION


class Own(Base):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x * CALL)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.cos(x * CALL)
"""
HELPERS = {
    "Base.rate": (
        "class Base(Function):\n    rate = 1.5\n\n    @classmethod\n    def factor(cls):\n        return cls.rate\n",
        "Own.factor()",
    ),
    "SETTINGS.rate": (
        "from types import SimpleNamespace\n\nBase, SETTINGS = Function, SimpleNamespace(rate=1.5)\n\n\n"
        "def factor():\n    return SETTINGS.rate\n",
        "factor()",
    ),
}


def added(text: str, folder) -> list[str]:
    (folder / "own.py").write_text(text)
    done = warm.run_for_text(
        ["fix", "own.py:Own", "-i", "x=3x4"], folder, imports="torch" if "import torch" in text else None
    )
    assert done.returncode == 0, done.stdout
    return [line[1:].strip() for line in done.stdout.splitlines() if line[:1] == "+" and line[:2] != "++"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", HEAD)
@pytest.mark.parametrize(
    ("forward", "backward", "patched"),
    [
        ("torch.sin(x * SCALE)", "g * torch.cos(x * SCALE)", "return g * torch.cos(x * SCALE) * SCALE"),
        ("SCALE * x * x", "g * SCALE * x", "return g * SCALE * x * 2"),
    ],
)
def test_a_number_of_the_module_is_told_from_its_value(framework, forward, backward, patched, tmp_path):
    pytest.importorskip("torch")
    text = HEAD[framework] + GLOBAL.replace("FORWARD", forward).replace("BACKWARD", backward)
    assert added(text, tmp_path) == [patched]


def test_numbers_that_depend_on_each_other_do_not_prevent_a_patch(tmp_path):
    assert added(HEAD["engine"] + DEPENDENT, tmp_path) == ["pdf = torch.exp(-0.5 * x * x) * DENSITY"]


@pytest.mark.parametrize("framework", ["engine"])  # an edit of the text, alike in both
def test_a_number_of_the_class_is_told_from_its_value(framework, tmp_path):
    pytest.importorskip("torch")
    assert added(HEAD[framework] + OF_CLASS, tmp_path) == ["return torch.where(x > 0, g, g * Own.slope)"]


@pytest.mark.parametrize("name", HELPERS)
def test_a_number_that_a_helper_reads_is_told_from_its_value(name, tmp_path):
    definition, call = HELPERS[name]
    text = HEAD["engine"] + OF_HELPERS.replace("DEFINITION", definition).replace("CALL", call)
    assert added(text, tmp_path) == [f"return g * torch.cos(x * {call}) * {name}"]


@pytest.mark.parametrize("framework", ["torch"])
def test_a_number_of_the_closure_that_backward_lacks_is_kept_on_ctx(framework, tmp_path):
    pytest.importorskip("torch")
    assert added(HEAD[framework] + CLOSURE, tmp_path) == [
        "ctx.temperature = temperature",
        "return p * (g - (g * p).sum(-1, keepdim=True)) / ctx.temperature",
    ]


@pytest.mark.parametrize("value", [0.0, 0, 3, -0.5, 1e-300])
def test_every_number_has_another_value_for_a_while(value):
    home = {"number": value}
    with Captured(name="number", value=value, home=home).varied():
        assert home["number"] != value
    assert home["number"] == value
