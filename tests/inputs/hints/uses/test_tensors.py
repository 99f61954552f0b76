"""The arguments that have to be tensors, as forward's source shows."""

import ast

import pytest

from gradcli.inputs.hints.uses.tensors import used_as_tensors


@pytest.mark.parametrize(
    ("line", "is_tensor"),
    [
        ("t = s.view(1, -1)", True),
        ("t = torch.zeros_like(s)", True),
        ("t = torch.full_like(s, 2.0)", True),
        ("t = np.zeros_like(s)", False),
        ("t = jnp.ones_like(s)", False),
        ("t = torch.exp(s)", False),
        ("s = torch.tensor(s)\n    t = torch.zeros_like(s)", False),
        ("t = torch.zeros_like(s) if isinstance(s, torch.Tensor) else 0", False),
    ],
)
def test_what_is_used_as_a_tensor(line, is_tensor):
    tree = ast.parse(f"def forward(ctx, x, s):\n    {line}\n    return x * t")
    assert ("s" in used_as_tensors([tree], ["x", "s"])) is is_tensor
