"""Python floats that JAX's rules differentiate: checked as tensors where nobody gave them."""

import pytest

from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.runner.case import run_case
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict

pytest.importorskip("jax", reason="the jax backend needs JAX")

PROGRAM = """
import jax
import jax.numpy as jnp


def leaky(x, alpha=0.25):
    return jnp.where(x >= 0, x, alpha * x)


def kept(x, alpha):
    return leaky(x, alpha), (x, alpha)


def rule(of_alpha):
    def backward(kept, g):
        x, alpha = kept
        return jnp.where(x >= 0, g, alpha * g), of_alpha(x, g)

    made = jax.custom_vjp(leaky)
    made.defvjp(kept, backward)
    return made


right = rule(lambda x, g: jnp.sum(jnp.where(x >= 0, 0.0, g * x)))
wrong = rule(lambda x, g: jnp.sum(jnp.where(x >= 0, 0.0, g)))
constant = rule(lambda x, g: None)


def branching(x, alpha=0.25):
    return alpha * x if alpha > 0 else x


needs_the_number = jax.custom_vjp(branching)
needs_the_number.defvjp(
    lambda x, alpha: (branching(x, alpha), (x, alpha)),
    lambda kept, g: (kept[1] * g if kept[1] > 0 else g, jnp.sum(g * kept[0])),
)


def huber(x, delta: float):
    near = jnp.minimum(jnp.abs(x), delta)
    return 0.5 * near**2 + delta * (jnp.abs(x) - near)


def pushed(excess):
    made = jax.custom_jvp(huber)

    @made.defjvp
    def jvp(primals, tangents):
        (x, delta), (dx, ddelta) = primals, tangents
        return huber(x, delta), jnp.clip(x, -delta, delta) * dx + excess(jnp.abs(x), delta) * ddelta

    return made


right_forward_mode = pushed(lambda size, delta: jnp.maximum(size - delta, 0.0))
wrong_forward_mode = pushed(lambda size, delta: jnp.maximum(delta - size, 0.0))
"""


@pytest.fixture
def checked(tmp_path, monkeypatch):
    (tmp_path / "numbers_given.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)

    def run(name, *given, only=("gradient", "constants")):
        spec = CheckSpec(target=f"numbers_given.py:{name}", inputs=given or None, inputs_from=InputsFrom.FLAGS)
        return run_case(case_of(spec, Settings(order=1, samples=1, shrink=False, only=only)))

    return run


X = InputSpec(name="x", shape=(3, 4))


@pytest.mark.parametrize("given", [(), (X,)], ids=["inferred", "by default"])
@pytest.mark.parametrize(("name", "wrong"), [("right", []), ("wrong", ["alpha"])])
@pytest.mark.usefixtures("unexplained")
def test_a_default_is_checked_where_the_rule_has_a_gradient_for_it(checked, name, wrong, given):
    case = checked(name, *given)
    assert [e.input for e in case.evidence if e.verdict is Verdict.FAILED] == wrong, case.error
    assert [spec.shape for spec in case.inputs if spec.name == "alpha"] == [()]


@pytest.mark.parametrize(("name", "wrong"), [("right_forward_mode", []), ("wrong_forward_mode", ["delta"])])
@pytest.mark.usefixtures("unexplained")
def test_a_number_that_inference_chose_is_checked(checked, name, wrong):
    case = checked(name, only=("gradient", "forward-mode"))
    assert [e.input for e in case.evidence if e.verdict is Verdict.FAILED] == wrong, case.error


@pytest.mark.parametrize("name", ["constant", "needs_the_number"])
def test_a_number_without_a_gradient_or_needed_in_python_stays_one(checked, name):
    case = checked(name)
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)
    assert [spec.name for spec in case.inputs if spec.kind == "tensor"] == ["x"]


def test_a_number_that_the_user_gave_is_held_and_a_note_says_so(checked):
    alpha = InputSpec(name="alpha", kind="value", value=0.7)
    noted = checked("wrong", X, alpha)
    assert noted.verdict is Verdict.PASSED
    assert any("alpha=0.7 was held constant" in note and "alpha=scalar,value=0.7" in note for note in noted.notes)
    assert not any("held constant" in note for note in checked("constant", X, alpha).notes)
