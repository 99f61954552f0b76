"""JAX functions compiled and not, the lines of forward-mode rules, and the noise of second derivatives."""

import numpy as np
import pytest

import gradcli
from gradcli.backends.registry import backend_named
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

pytest.importorskip("jax", reason="the jax backend needs JAX")

PROGRAM = """
import jax
import jax.numpy as jnp


def plain(x):
    return jnp.tanh(x) * x


jitted = jax.jit(plain)


def asks(x):
    return x * 2 if x.sum() > 0 else x * 3


def knows_tracers(x):
    return 3 * x if isinstance(x, jax.core.Tracer) and not hasattr(x, "primal") else 2 * x


@jax.custom_vjp
def told_apart(x):
    return 2.0 * x


def told_apart_fwd(x):
    return 2.0 * x, x


def told_apart_bwd(x, g):
    return ((3.0 if isinstance(g, jax.core.Tracer) else 2.0) * g,)  # the gradient depends on compilation


told_apart.defvjp(told_apart_fwd, told_apart_bwd)


def half_inside(x):
    return jnp.tanh(x.astype(jnp.float16) * 3).astype(x.dtype)


def told_apart_in_half(x):
    return told_apart(x.astype(jnp.float16)).astype(x.dtype)


def cut_short(x):
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)


@jax.custom_jvp
def scaled(x, w):
    return x * w


@scaled.defjvp
def scaled_jvp(primals, tangents):
    x, w = primals
    dx, dw = tangents
    out = x * w
    return out, dx * w + 2 * x * dw  # the planted mistake


@jax.custom_jvp
def product(x, w):
    return x * w


product.defjvps(
    lambda dx, out, x, w: dx * w,
    lambda dw, out, x, w: 2 * dw * x,  # the second rule
)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "compiled.py"
    path.write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return path


ROUNDED = ("linearity", "compilation")
"""The checks that compare what differs by roundings; to decide a gradient in half precision takes most of a check."""


def case_of(file, name, *inputs):
    shapes = {input: {"shape": [3, 4]} for input in inputs}
    return gradcli.check(f"{file}:{name}", shapes, order=1, shrink=False, only=(*ROUNDED, "gradient")).cases[0]


@pytest.mark.parametrize(("name", "compared"), [("plain", True), ("jitted", True), ("asks", False)])
def test_right_functions_agree_compiled_and_not(file, name, compared):
    case = case_of(file, name, "x")
    assert case.verdict is Verdict.PASSED, case.findings
    assert any(e.check == "compilation" for e in case.evidence) is compared


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [[], [2]])
@pytest.mark.parametrize("name", ["half_inside", "cut_short"])
def test_rounding_in_a_low_precision_is_no_mistake(file, name, shape):
    case = gradcli.check(f"{file}:{name}", {"x": {"shape": shape}}, order=1, shrink=False, only=ROUNDED).cases[0]
    assert not case.findings
    assert {e.check for e in case.evidence if e.verdict is Verdict.PASSED} >= {"compilation", "linearity"}


def test_where_half_precision_saturates_its_rounding_is_no_mistake_either(file):
    """1 - tanh² of a few roundings is another one compiled, and not linear in the cotangent."""
    cases = [
        gradcli.check(f"{file}:half_inside", {"x": {"shape": []}}, order=1, seed=s, shrink=False, only=ROUNDED).cases[0]
        for s in range(3)
    ]
    assert not any(case.findings for case in cases)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["told_apart", "told_apart_in_half"])
def test_a_gradient_that_depends_on_compilation_is_named(file, name):
    case = case_of(file, name, "x")
    assert case.verdict is Verdict.FAILED
    assert {f.kind for f in case.findings} == {FindingKind.JIT_MISMATCH}
    assert case.findings[0].location is not None


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "line"), [("scaled", "the planted mistake"), ("product", "the second rule")])
def test_a_wrong_rule_of_forward_mode_has_its_line(file, name, line):
    (finding,) = case_of(file, name, "x", "w").findings
    assert (finding.kind, finding.input, finding.factor) == (FindingKind.WRONG_FACTOR, "w", "2")
    assert finding.location.line == next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if line in text)


def test_a_gradient_knows_its_noise():
    import jax.numpy as jnp

    backend = backend_named("jax")
    subject = backend.bind(lambda x: jnp.exp(20 * x), backend.adopt([np.array([1.0, 2.0])]))
    point = subject.base_point(2, 0)
    noise = subject.derivative_map(2).value_noise(point)
    assert subject.derivative_map(1).value_noise(subject.point) is None
    eps = np.finfo(float).eps
    values = np.exp(20 * np.array([1.0, 2.0]))
    assert np.all(noise[:2] > eps * values / 8)
    assert np.all(noise[:2] < 1e3 * eps * values)
