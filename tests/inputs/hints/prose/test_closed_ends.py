"""The ends of intervals that documentation counts among an argument's values."""

import pytest

from gradcli.inputs.hints.documented_values import documented_values


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("a (n,), b (n,) non-negative weights", {"b": (0,)}),
        ("a: (n,), b: (n,), b >= 0", {"b": (0,)}),
        ("a: (n,) positive, b: (n,) in [0, 1]", {"b": (0, 1)}),
        ("a > 0, 0 <= b < 1", {"b": (0,)}),
        ("a, b >= 0", {"a": (0,), "b": (0,)}),
        ("0 <= a, b <= 1", {"a": (0, 1), "b": (0, 1)}),
        ("a: (n,) in (0, 1]; b: (n,) between 0 and 1 inclusive", {"a": (1,), "b": (0, 1)}),
        ("b in [-1, 1]", {"b": (-1, 1)}),
        ("b: (n,) in (0, 1), a: (n,) positive", {}),
        ("a (n,), zeros allowed; b (n,)", {"a": (0,)}),
        ("a (n,), b (n,) may contain zeros", {"b": (0,)}),
        ("a (n,) in [0, 1], zeros included, b (n,) possibly zero", {"a": (0, 1), "b": (0,)}),
        ("a (n,), zeros not allowed; b (n,), no zeros allowed", {}),
        ("a (n,) must not be zero, b (n,) may have zero mean", {}),
        ("a (n,), b (n,), zeros allowed in a", {}),
        ("a: (n,) [n, 1]\nb: (n,) positive", {}),
    ],
)
def test_closed_ends_are_read(text, closed):
    assert documented_values(["a", "b"], "", text).closed == closed
