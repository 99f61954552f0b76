"""Recording that is off: what switched it off and where, also if that was code at import, or the target itself."""

import pytest

from gradcli.tracing.modes import ModeWatch, _switched_by
from tests import warm
from tests.tracing.tracing import fate, traced

FRAMEWORKS = {"torch": "import torch", "engine": "from gradcli import engine as torch"}
LOSS = """
def loss():
    x = torch.ones(2, requires_grad=True)
    return (x * 2).sum()
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.exp()
    @staticmethod
    def backward(ctx, g):
        return g
"""
AT_IMPORT = [
    ("torch.set_grad_enabled(False)", "set_grad_enabled(False), which off.py:2 turned on at import"),
    ("torch.set_grad_enabled(mode=False)", "set_grad_enabled(False), which off.py:2 turned on at import"),
    ("held = torch.no_grad(); held.__enter__()", "set_grad_enabled(False), which was on before the target was called"),
    ("torch.no_grad().__enter__()", "no_grad, which off.py:2 turned on at import"),
    ("held = torch.inference_mode()\nheld.__enter__()", "inference_mode, which was on before the target was called"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", ["loss", "Exp"])
@pytest.mark.parametrize(("statement", "said"), AT_IMPORT)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_recording_that_was_switched_off_at_import(tmp_path, name, statement, said, target):
    if name == "torch":
        pytest.importorskip("torch")
    (tmp_path / "off.py").write_text(f"{FRAMEWORKS[name]}\n{statement}\n{LOSS}")
    inputs = ["-i", "x=2"] if target == "Exp" else []
    command = ("trace", f"off.py:{target}", *inputs)
    done = warm.run_for_text(command, tmp_path, imports="torch" if name == "torch" else None)
    assert said in done.stdout, done.stderr
    assert "None computes" not in done.stdout
    assert ("the target itself computes under" in done.stdout) == (target == "Exp")


def test_blocks_and_functions_of_a_module_are_not_taken_for_its_import(tmp_path):
    lines = ["with torch.no_grad():", "    pass", "def f():", "    torch.set_grad_enabled(False)"]
    (tmp_path / "m.py").write_text("\n".join([*lines, "torch.set_grad_enabled(True)", ""]))
    assert list(_switched_by(str(tmp_path / "m.py"))) == []


def test_a_block_of_a_call_ends_with_it(framework):
    def program():
        x = framework.ones(2, requires_grad=True)
        w = framework.ones(2, requires_grad=True)
        framework.set_grad_enabled(False)
        with framework.set_grad_enabled(False):
            _ = x + 1
        y = x * 2
        framework.set_grad_enabled(True)
        return (y * w).sum()

    why = fate(traced(framework, program), "x").why
    lines = [int(word.split(":")[1].rstrip(",")) for word in why.split() if ".py:" in word]
    assert lines == [program.__code__.co_firstlineno + 6, program.__code__.co_firstlineno + 3]


def test_the_mode_is_known_only_while_recording_is_off(framework):
    watch = ModeWatch(framework)
    assert watch.now() is None
    with framework.no_grad():
        assert watch.now().name == "no_grad"
