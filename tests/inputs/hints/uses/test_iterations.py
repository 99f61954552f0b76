"""A loop that runs as often as a number says runs until it has converged, where backward does not know the number."""

from pathlib import Path

import pytest

from gradcli.inputs.hints.uses.iterations import counts_of
from gradcli.sources import tree_of
from gradcli.verdict import Verdict
from tests.inputs.hints.uses.written import checked

FIXED_POINT = """
class FixedPoint(Function):
    @staticmethod
    def forward(ctx, x, num_rounds):
        z = torch.zeros_like(x)
        for _ in range(num_rounds):
            z = torch.tanh(z / 2 + x)
        ctx.save_for_backward(z)
        return z

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        slope = 1 - z * z
        return FACTOR * g * slope / (1 - slope / 2), None
"""
BALANCED = """
class Balanced(Function):
    @staticmethod
    def forward(ctx, x, passes):
        s = x * x + 1
        for _ in range(passes):
            s = (s + (x * x + 1) / s) / 2
        ctx.save_for_backward(x, s)
        return s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return FACTOR * g * x / s, None
"""
EULER = """
class Euler(Function):
    @staticmethod
    def forward(ctx, x, num_rounds):
        y = x * x + 1
        for _ in range(num_rounds):
            y = y - 0.1 * y * y
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x, None
"""
HALVED = """
class Halved(Function):
    @staticmethod
    def forward(ctx, x, num_rounds):
        for _ in range(num_rounds):
            x = x / 2
        return x

    @staticmethod
    def backward(ctx, g):
        return torch.zeros_like(g), None
"""


@pytest.mark.parametrize("factor", ["1", "1.001"])
@pytest.mark.parametrize(("text", "name"), [(FIXED_POINT, "FixedPoint"), (BALANCED, "Balanced")])
def test_an_iteration_takes_as_many_steps_as_it_needs(
    text: str, name: str, factor: str, tmp_path: Path, unexplained: None
) -> None:
    case = checked(tmp_path, text.replace("FACTOR", factor), name)
    assert case.verdict is (Verdict.PASSED if factor == "1" else Verdict.FAILED)


@pytest.mark.parametrize(("text", "name"), [(EULER, "Euler"), (HALVED, "Halved")])
def test_a_scheme_and_a_loop_that_ends_at_a_constant_keep_their_steps(
    text: str, name: str, tmp_path: Path, unexplained: None
) -> None:
    case = checked(tmp_path, text, name)
    assert case.verdict is Verdict.FAILED
    assert next(spec.value for spec in case.inputs if spec.name == "num_rounds") < 16


@pytest.mark.parametrize(
    ("forward", "backward", "counts"),
    [
        ("for _ in range(n): x = x / 2", "return g", True),
        ("ctx.n = n; x = sum(x for _ in range(n))", "return g", False),
        ("for _ in range(n): x = x / n", "return g", False),
        ("ctx.n = n\n    for _ in range(n): x = x / 2", "return g * ctx.n", False),
    ],
)
def test_what_only_counts_steps(forward: str, backward: str, counts: bool) -> None:
    first = tree_of(f"def forward(ctx, x, n):\n    {forward}\n    return x\n")
    second = tree_of(f"def backward(ctx, g):\n    {backward}\n")
    assert counts_of(first, first, second, {"n": "n"}) == (frozenset("n") if counts else frozenset())
