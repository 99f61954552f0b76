"""A rule of JAX's that is a lambda: it has no lines of its own, so the line that defines it is shown."""

import pytest

import gradcli
from gradcli.verdict import Verdict

pytest.importorskip("jax", reason="the jax backend needs JAX")

PROGRAM = """import jax
import jax.numpy as jnp


@jax.custom_vjp
def sine(x):
    return jnp.sin(x)


sine.defvjp(
    lambda x: (sine(x), x),
    lambda x, g: ({share}g * jnp.cos(x),),
)
"""


@pytest.mark.parametrize(
    ("share", "verdict"), [("", Verdict.PASSED), ("0.99 * ", Verdict.FAILED), ("-", Verdict.FAILED)]
)
def test_the_line_of_a_wrong_rule_is_shown(share, verdict, tmp_path):
    path = tmp_path / "sine.py"
    path.write_text(PROGRAM.format(share=share))
    (case,) = gradcli.check(f"{path}:sine", {"x": {"shape": [3]}}, order=1, samples=1, shrink=False).cases
    assert case.verdict is verdict
    for finding in case.findings:
        assert finding.location is not None
        assert finding.location.line == 12
