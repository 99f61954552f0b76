"""Numbers that only guard a quotient of backward are tiny: its gradient is that of forward in the limit alone."""

from pathlib import Path

import pytest

from gradcli.inputs.hints.uses.guards import ACCURACY, ADDED, guards_of
from gradcli.sources import tree_of
from gradcli.verdict import Verdict
from tests.inputs.hints.uses.written import checked

ROOTS = """
def safe_inverse(x, margin):
    return x / (x * x + margin)


class Roots(Function):
    @staticmethod
    def forward(ctx, x, root_reg):
        roots = (x * x + 1).sqrt()
        ctx.save_for_backward(x, roots, root_reg)
        return roots

    @staticmethod
    def backward(ctx, g):
        x, roots, small = ctx.saved_tensors
        largest = roots.max()
        return FACTOR * g * x * safe_inverse(roots, largest * small), None
"""
SOLVED = """
class Solved(Function):
    @staticmethod
    def forward(ctx, a, b, damping):
        x = torch.linalg.solve(a, b)
        ctx.save_for_backward(a, x)
        ctx.damping = damping
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        damped = a.mT + ctx.damping * torch.eye(a.shape[0], dtype=a.dtype)
        gb = torch.linalg.solve(damped, g)
        return FACTOR * -gb @ x.mT, gb, None
"""
ITERATED = """
class Halved(Function):
    @staticmethod
    def forward(ctx, x, delta):
        ctx.delta = delta
        return x * 2

    @staticmethod
    def backward(ctx, g):
        grad, term = g, g
        while term.abs().max() > ctx.delta:
            term = term / 2
            grad = grad + term
        return FACTOR * grad, None
"""


ROOT = """
class Root(Function):
    @staticmethod
    def forward(ctx, x, small, steps):
        y = x * x + 1
        root = y
        for _ in range(steps):
            step = (root - y / root) / 2
            root = root - step
            is_left = step.abs() > small
            if is_left.sum() == 0:
                break
        ctx.save_for_backward(x, root)
        return root

    @staticmethod
    def backward(ctx, g):
        x, root = ctx.saved_tensors
        return FACTOR * g * x / root, None, None
"""


@pytest.mark.parametrize("factor", ["1", "1.001"])
@pytest.mark.parametrize(
    ("text", "name", "number"),
    [
        (ROOTS, "Roots", "root_reg"),
        (SOLVED, "Solved", "damping"),
        (ITERATED, "Halved", "delta"),
        (ROOT, "Root", "small"),
    ],
)
def test_a_guard_is_tiny(text: str, name: str, number: str, factor: str, tmp_path: Path, unexplained: None) -> None:
    case = checked(tmp_path, text.replace("FACTOR", factor), name)
    given = next(spec for spec in case.inputs if spec.name == number)
    value = given.value if given.kind == "value" else dict(given.parameters)["value"]
    assert value == (ACCURACY if name in ("Halved", "Root") else ADDED)
    assert case.verdict is (Verdict.PASSED if factor == "1" else Verdict.FAILED)


WIDTH = """
class Sign(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x)
        ctx.width = width
        return x.sign() + 0 * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() < ctx.width), None
"""


def test_the_width_of_a_surrogate_gradient_is_no_guard(tmp_path: Path, unexplained: None) -> None:
    case = checked(tmp_path, WIDTH, "Sign")
    assert case.verdict is Verdict.FAILED
    assert next(spec.value for spec in case.inputs if spec.name == "width") > ACCURACY


STEPS = "i, ctx.r = 0, r\n    "


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        ("ctx.r = r; return x", "return g / (g * g + ctx.r)", {"r": ADDED}),
        ("ctx.r = r; return x", "d = g * g + ctx.r; return g * d ** -1", {"r": ADDED}),
        ("ctx.r = r; return x", "return g / torch.clamp(g, min=ctx.r)", {"r": ADDED}),
        ("ctx.r = r; return x", "return g / torch.clamp(g, ctx.r, 1.0)", {}),
        ("ctx.r = r; return x", "return torch.allclose(g, g, atol=ctx.r)", {"r": ACCURACY}),
        ("ctx.r = r; return x / (x + r)", "return g / (g * g + ctx.r)", {}),
        ("ctx.r = r; return x", "return g + ctx.r * g", {}),
        ("ctx.r = r; return x", "return g / ctx.r", {}),
        ("ctx.r = r; return x", "return ctx.r / (g + ctx.r)", {}),
        ("ctx.r = r; return x", "return g if ctx.r > 0 else -g", {}),
        (f"{STEPS}while x > r: x = x / 2", "return g", {"r": ACCURACY}),
        (f"{STEPS}while i < r: i += 1", "return g", {}),
        (f"{STEPS}while True:\n        if x < r: break", "return g", {"r": ACCURACY}),
        (f"{STEPS}while True:\n        if i > r: break", "return g", {}),
        (f"{STEPS}while True:\n        ok = x < r\n        if ok: break", "return g + ctx.r", {}),
        (f"{STEPS}if x < r: return x", "return g", {}),
    ],
)
def test_what_is_a_guard(forward: str, backward: str, expected: dict[str, float]) -> None:
    first = tree_of(f"def forward(ctx, x, r):\n    {forward}\n")
    second = tree_of(f"def backward(ctx, g):\n    {backward}\n")
    assert guards_of(first, first, second, {"r": "r"}, {}) == expected
