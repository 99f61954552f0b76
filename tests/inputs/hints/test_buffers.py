"""What forward writes into, read from its source."""

import ast

import pytest

from gradcli.inputs.hints.buffers import arrays_written_into, single_entries, written_into


@pytest.mark.parametrize(
    "statement",
    [
        "old.copy_(x)",
        "old.data.mul_(0.9).add_(x)",
        "old.view(-1)[0] = x",
        "old.data = x",
        "torch.minimum(old, x, out=old)",
        "torch.nn.init.zeros_(old)",
        "np.copyto(old, x)",
        "np.add.at(old, 0, x)",
        "copied(x, out=old)",
    ],
)
def test_what_is_written_into_is_an_array(statement: str) -> None:
    tree = ast.parse(f"def f(x, old):\n    {statement}\n    return x")
    assert arrays_written_into(tree, ["x", "old"]) == written_into(tree, ["x", "old"]) == {"old"}


@pytest.mark.parametrize("statement", ["old.clone().mul_(2)", "x = x.requires_grad_()", "y = old * 2", "y = old.sum()"])
def test_what_is_not(statement: str) -> None:
    assert not written_into(ast.parse(f"def f(x, old):\n    {statement}\n    return x"), ["x", "old"])


def test_a_number_that_is_added_to_may_be_one() -> None:
    tree = ast.parse("def f(x, n):\n    n += 1\n    return x * n")
    assert written_into(tree, ["x", "n"]) == {"n"}
    assert not arrays_written_into(tree, ["x", "n"])


def test_what_has_a_single_entry() -> None:
    tree = ast.parse("def f(x, lo, hi):\n    return x / (hi - 2 * lo).item() * x.max().item()")
    assert single_entries(tree, ["x", "lo", "hi"]) == {"lo", "hi"}
