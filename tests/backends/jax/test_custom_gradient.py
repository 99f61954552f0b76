"""Functions of jax.custom_gradient, which JAX wraps: names, documentation and lines are those of what was wrapped."""

import pytest

import gradcli
from gradcli.verdict import Verdict

pytest.importorskip("jax", reason="the jax backend needs JAX")

PROGRAM = """import jax
import jax.numpy as jnp


@jax.custom_gradient
def survival(rate, died):
    \"\"\"rate: (N,) positive; died: (N,) binary labels.\"\"\"
    total = jnp.sum(died * jnp.log(rate) - rate)

    def pull(g):
        share = died / rate
        return g * ({slope}), None

    return total, pull


@jax.jit
@jax.custom_gradient
def logit(level):
    # level in (0, 1)
    return jnp.log(level) - jnp.log1p(-level), lambda g: g / (level * (1 {sign} level))
"""


@pytest.mark.parametrize(
    ("name", "right", "line", "inputs"),
    [
        ("survival", True, None, {"rate": "positive", "died": "binary"}),
        ("survival", False, 12, {"rate": "positive", "died": "binary"}),
        ("logit", True, None, {"level": "unit"}),
        ("logit", False, 21, {"level": "unit"}),
    ],
)
def test_what_the_user_wrote_is_read_and_shown(name, right, line, inputs, tmp_path):
    path = tmp_path / "wrapped.py"
    path.write_text(PROGRAM.format(slope="share - 1" if right else "share + 1", sign="-" if right else "+"))
    options = {"samples": 1, "order": 1, "shrink": False, "only": ("returns", "gradient")}
    (case,) = gradcli.check(f"{path}:{name}", **options).cases
    assert {spec.name: spec.domain for spec in case.inputs} == inputs
    assert case.verdict is (Verdict.PASSED if right else Verdict.FAILED), case
    for finding in case.findings:
        assert (finding.input, finding.location.file, finding.location.line) == (next(iter(inputs)), str(path), line)
