"""JAX functions that refuse 64 bits beside arrays of their own: judged in the precision in which they are used."""

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

WEIGHT = 0.3 * jnp.ones((3, 2, 3), jnp.float32)
START = jnp.zeros(4, jnp.float32)


def smoothed(x):
    return jax.lax.conv_general_dilated(x, WEIGHT, (1,), "SAME", dimension_numbers=("NCH", "OIH", "NCH"))


def summed(x):
    return jax.lax.scan(lambda total, row: (total + jnp.sin(row), None), START, x)[0]


@jax.custom_vjp
def right(x):
    return summed(x)


@jax.custom_vjp
def wrong(x):
    return summed(x)


right.defvjp(lambda x: (summed(x), x), lambda x, g: (g * jnp.cos(x),))
wrong.defvjp(lambda x: (summed(x), x), lambda x, g: (1.01 * g * jnp.cos(x),))


def mixed(x):
    raise TypeError("float64 and float32 do not mix")
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "precise.py"
    path.write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return path


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "shape"), [("smoothed", [1, 2, 5]), ("summed", [3, 4]), ("right", [3, 4])])
def test_right_functions_of_float32_pass_and_say_so(file, name, shape):
    given = {"x": {"shape": shape}}
    case = gradcli.check(f"{file.name}:{name}", given, order=1, samples=1, shrink=False).cases[0]
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)
    assert any("checked in float32" in str(e.note) for e in case.evidence)
    assert 1e-8 < case.resolution < 1e-3


def test_inputs_are_inferred_for_them(file):
    (case,) = gradcli.check(f"{file}:right", order=1, shrink=False, only=["gradient"]).cases
    assert case.verdict is Verdict.PASSED


def test_a_wrong_one_fails(file):
    given = {"x": {"shape": [3, 4]}}
    (finding,) = (
        gradcli.check(f"{file}:wrong", given, order=1, samples=1, shrink=False, only=["gradient"]).cases[0].findings
    )
    assert finding.kind is FindingKind.WRONG_FACTOR
    assert finding.input == "x"


def test_what_is_no_matter_of_precision_is_the_users_error(file):
    case = gradcli.check(f"{file}:mixed", {"x": {"shape": [3]}}, shrink=False).cases[0]
    assert case.verdict is Verdict.ERROR
    assert "do not mix" in str(case.error)


def test_the_user_who_asks_for_64_bits_is_told_of_the_mixture(file):
    import jax

    backend = backend_named("jax")
    error = TypeError("got float64, float32")
    assert backend.transforms.refuses_64_bits(error)
    jax.config.update("jax_enable_x64", True)
    try:
        assert not backend.transforms.refuses_64_bits(error)
    finally:
        jax.config.update("jax_enable_x64", False)
    assert np.asarray(jax.numpy.ones(1)).dtype == np.float32


ROUNDING = """
import jax
import jax.numpy as jnp


def single(value):
    return value.astype(jnp.float32)


def computed_in_single(x, scale):
    return (single(x) * scale).astype(x.dtype)


def computed_as_given(x, scale):
    return x * scale


def in_single(of_scale=1.0):
    def backward(kept, g):
        x, scale = kept
        return (single(g) * scale).astype(x.dtype), of_scale * jnp.sum(single(g) * single(x), 0).astype(scale.dtype)

    return backward


def made(forward, backward):
    def kept(x, scale):
        return forward(x, scale), (x, scale)

    function = jax.custom_vjp(forward)
    function.defvjp(kept, backward)
    return function


right = made(computed_in_single, in_single())
wrong = made(computed_in_single, in_single(1.01))
rounded_in_backward = made(computed_as_given, in_single())
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "dtype", "kinds"),
    [
        ("right", "float64", []),
        ("right", "float32", []),
        ("wrong", "float64", [FindingKind.WRONG_FACTOR]),
        ("rounded_in_backward", "float64", [FindingKind.LOW_PRECISION]),
        ("rounded_in_backward", "float32", []),
    ],
)
def test_a_gradient_in_float32_loses_what_forward_and_the_inputs_keep(tmp_path, monkeypatch, name, dtype, kinds):
    (tmp_path / "rounding.py").write_text(ROUNDING)
    monkeypatch.chdir(tmp_path)
    given = {"x": {"shape": [3, 4], "dtype": dtype}, "scale": {"shape": [4], "dtype": dtype}}
    only = ("gradient", "precision")
    case = gradcli.check(f"rounding.py:{name}", given, order=1, samples=1, shrink=False, only=only).cases[0]
    assert [each.kind for each in case.findings if each.input == "scale"] == kinds, (case.findings, case.error)


TABLE = """
import jax
import jax.numpy as jnp

PLACES = jnp.linspace(-4.0, 4.0, 30)
WIDTH = PLACES[-1] - PLACES[-2]
HEIGHTS = jnp.cos(PLACES) + 0.2 * PLACES


def rule(shift):
    def backward(x, g):
        left = jnp.clip(jnp.searchsorted(PLACES, x) - 1 + shift, 0, PLACES.size - 2)
        return (g * (HEIGHTS[left + 1] - HEIGHTS[left]) / WIDTH,)

    function = jax.custom_vjp(lambda x: jnp.interp(x, PLACES, HEIGHTS))
    function.defvjp(lambda x: (jnp.interp(x, PLACES, HEIGHTS), x), backward)
    return function


right, wrong = rule(0), rule(1)
"""


@pytest.mark.usefixtures("unexplained")
def test_slopes_of_a_table_in_float32_may_be_off_by_a_few_of_its_roundings(tmp_path, monkeypatch):
    (tmp_path / "table.py").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    given = {"x": {"shape": [4], "low": -3.0, "high": 3.0}}
    checks = {"order": 1, "samples": 1, "shrink": False, "only": ("gradient",)}
    right, wrong = (gradcli.check(f"table.py:{name}", given, **checks).cases[0] for name in ("right", "wrong"))
    assert right.verdict is Verdict.PASSED, right.findings
    assert right.resolution is not None
    assert 1e-7 < right.resolution < 1e-5, right.resolution
    assert wrong.verdict is Verdict.FAILED
