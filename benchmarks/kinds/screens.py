"""Kind 22: the table of entries that `-v` shows for a pass, and the hooks that fire while a case runs."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from benchmarks.kinds.member import Case, member
from gradcli.results import FindingKind

ROW = re.compile(r"^ +\[[\d, ]*\] +(\S+) +(\S+) ± (\S+) +(\S+)$", re.MULTILINE)
"""An entry: what backward returned, the finite difference, its error bound, and the error divided by that bound."""


def screen(ns: Any, program: str, *arguments: str) -> tuple[int, str]:
    """The exit code and the screen of `gradcli check mine.py:TARGET ... -v`."""
    package = "torch" if ns.__name__ == "torch" else "gradcli.engine"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "mine.py").write_text(f"import {package} as torch\n\n{dedent(program)}", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "gradcli", "check", *arguments, "-v"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
    return done.returncode, done.stdout


def shown(ns: Any, program: str, *arguments: str, words: tuple[str, ...], rows: int = 0) -> Case:
    """What the screen says, if it has all words and at least so many entries, each within its error bound."""

    def ask() -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        code, text = screen(ns, program, *arguments)
        entries = ROW.findall(text)
        within = all(abs(float(a) - float(b)) <= float(c) + 1e-8 * abs(float(b)) for a, b, c, _ in entries)
        missing = [word for word in words if word not in text]
        names = tuple(kind.value for kind in FindingKind if kind.value in text.split())
        complete = len(entries) >= rows and (within or code == 1) and not missing
        verdict = {0: "passed", 1: "failed"}.get(code, f"exit code {code}") if complete else "incomplete"
        return verdict, names, (f"{len(entries)} entries, missing {missing}", text)

    return Case(target=None, options={"ask": ask})


def function(forward: str, backward: str, *, arguments: str = "x", grads: str = "g", name: str = "Mine") -> str:
    """The source of a Function."""
    head = f"class {name}(torch.autograd.Function):\n"
    parts = ((f"forward(ctx, {arguments})", forward), (f"backward(ctx, {grads})", backward))
    return head + "\n".join(
        f"    @staticmethod\n    def {line}:\n{indent(dedent(body), ' ' * 8)}" for line, body in parts
    )


CUBE = "ctx.save_for_backward(x, w)\nreturn x**3 @ w\n"
PRODUCT = "x, w = ctx.saved_tensors\nreturn {factor} * x * x * (g @ w.T), (x**3).T @ g\n"


@member("22", wrong="failed wrong-factor wrong-gradient")
def two_matrices(ns: Any, spoilt: bool) -> Any:
    program = function(CUBE, PRODUCT.format(factor="3.003" if spoilt else "3"), arguments="x, w")
    words = (
        "x 2×3",
        "numeric",
        *(("1.001",) if spoilt else ("returned", "error / bound", "w 3×2", "second derivative")),
    )
    return shown(ns, program, "mine.py:Mine", "-i", "x=2x3", "-i", "w=3x2", words=words, rows=0 if spoilt else 9)


SOFTMAX = "y = torch.softmax(x, -1)\nctx.save_for_backward(y)\nreturn y\n"
SOFTMAX_BACK = "(y,) = ctx.saved_tensors\nreturn y * (g - (g * y).sum(-1, keepdim=True))\n"
SOFTMAX_SPOILT = "(y,) = ctx.saved_tensors\nreturn y * g - (g * y).sum(-1, keepdim=True)\n"


@member("22")
def a_gradient_of_zero_for_ones(ns: Any, spoilt: bool) -> Any:
    """The heading says that grad_output is random."""
    words = ("grad_output of random numbers", "x 2×3", "6 entries, one mark each")
    program = function(SOFTMAX, SOFTMAX_SPOILT if spoilt else SOFTMAX_BACK)
    words = ("numeric", "returned") if spoilt else words
    return shown(ns, program, "mine.py:Mine", "-i", "x=2x3", words=words, rows=0 if spoilt else 6)


@member("22", wrong=None)
def many_entries_as_a_map(ns: Any, spoilt: bool) -> Any:
    words = ("x 300", "300 entries, 5 per mark", "each mark shows an error divided by its error bound")
    return shown(ns, function(SOFTMAX, SOFTMAX_BACK), "mine.py:Mine", "-i", "x=300", words=words, rows=6)


@member("22")
def two_outputs(ns: Any, spoilt: bool) -> Any:
    program = function(
        "ctx.save_for_backward(x)\nreturn x**2, x**3\n",
        f"(x,) = ctx.saved_tensors\nreturn 2 * g * x {'-' if spoilt else '+'} 3 * h * x * x\n",
        grads="g, h",
    )
    words = ("x 2 ", "grad_output 2", "grad_output1 2", "grad_output of ones")
    words = ("numeric", "returned") if spoilt else words
    return shown(ns, program, "mine.py:Mine", "-i", "x=2", words=words, rows=0 if spoilt else 8)


@member("22")
def a_scalar_input(ns: Any, spoilt: bool) -> Any:
    program = function(
        "ctx.save_for_backward(x, a)\nreturn a * torch.sin(x)\n",
        f"x, a = ctx.saved_tensors\nreturn g * a * torch.cos(x), (g * torch.{'cos' if spoilt else 'sin'}(x)).sum()\n",
        arguments="x, a",
    )
    words = ("numeric", "returned") if spoilt else ("x 3 ", "a scalar", "returned")
    return shown(ns, program, "mine.py:Mine", "-i", "x=3", "-i", "a=scalar", words=words, rows=0 if spoilt else 4)


@member("22", wrong=None)
def first_order_alone(ns: Any, spoilt: bool) -> Any:
    program = function(SOFTMAX, SOFTMAX_BACK)
    return shown(ns, program, "mine.py:Mine", "-i", "x=4", "--order", "1", words=("x 4",), rows=3)


@member("22", wrong="failed")
def hooks_of_a_module(ns: Any, spoilt: bool) -> Any:
    program = """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(3, 2, dtype=torch.float64)
                self.layer.register_forward_hook(self.seen)
                self.layer.register_full_backward_hook(self.halved)

            def seen(self, module, inputs, output):
                return None

            def halved(self, module, grad_input, grad_output):
                return RETURNED

            def forward(self, x):
                return torch.tanh(self.layer(x))

        net = Net()
        """.replace("RETURNED", "(grad_input[0] / 2,)" if spoilt else "None")
    words = ("hooks, in the order they fired", "module-forward", "seen", "module-full", "halved", "mine.py:")
    return shown(ns, program, "mine.py:net", "-i", "x=2x3", words=words, rows=0 if spoilt else 5)


@member("22")
def a_hook_on_a_tensor(ns: Any, spoilt: bool) -> Any:
    program = """
        def passed_on(grad):
            return grad * FACTOR

        def target(x):
            y = x * 2
            y.register_hook(passed_on)
            return torch.sin(y)
        """.replace("FACTOR", "1.01" if spoilt else "1.0")
    words = ("hooks, in the order they fired", "passed_on", "on y", "mine.py:")
    return shown(ns, program, "mine.py:target", "-i", "x=3", words=words, rows=0 if spoilt else 3)
