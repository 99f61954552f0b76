"""What the JAX backend promises beside verdicts: witnesses, conventions, inputs, errors, the user's configuration."""

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
jnp = jax.numpy

import gradcli  # noqa: E402 - after the importorskip
from gradcli.backends.registry import backend_for, backend_named, is_function  # noqa: E402
from gradcli.cases import Argument  # noqa: E402
from gradcli.errors import TargetError, UserCodeError  # noqa: E402
from gradcli.inputs.search.inference import infer  # noqa: E402
from gradcli.numerics.verify import Outcome, verify  # noqa: E402
from gradcli.runner.store.failures import failure_of, load, save  # noqa: E402
from gradcli.runner.store.replay import replay  # noqa: E402
from gradcli.verdict import Verdict  # noqa: E402
from tests.backends.jax.test_functions import (  # noqa: E402
    COMPLEX,
    LINEAR,
    PAIR,
    PARAMS,
    arguments,
    cube,
    gather,
    layer,
    linear,
    log1p_exp,
    modulus,
    power,
    product,
    product_jvps,
    square_of_complex,
    with_vjp,
)

BACKEND = backend_named("jax")


def random(size, seed=0):
    return np.random.default_rng(seed).normal(size=size)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", [1, 2])
def test_jit_on_and_off_agree(order):
    plain, jitted = (BACKEND.bind(f, arguments(LINEAR)).derivative_map(order) for f in (linear(), jax.jit(linear())))
    x, u = random(plain.domain.size), random(plain.codomain.size, 1)
    np.testing.assert_allclose(plain.value(x), jitted.value(x), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(plain.vjp(x, u), jitted.vjp(x, u), rtol=1e-13, atol=1e-13)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("build", "inputs"),
    [(linear, LINEAR), (modulus, COMPLEX), (layer, PARAMS), (product_jvps, PAIR)],
    ids=["linear", "complex", "pytree", "custom_jvp"],
)
def test_the_function_under_the_rule_is_a_witness_of_every_order(build, inputs, order):
    subject = BACKEND.bind(build(), arguments(inputs))
    claim, witness = subject.derivative_map(order), subject.body_map(order)
    x, u = subject.base_point(order, 3), random(claim.codomain.size)
    np.testing.assert_allclose(claim.vjp(x, u), witness.vjp(x, u), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(claim.value(x), witness.value(x), rtol=1e-11, atol=1e-11)


def test_a_wrong_rule_does_not_touch_the_witness():
    subject = BACKEND.bind(cube(lambda x, g: (x * g,)), arguments({"x": (3,)}))
    x, u = subject.point, np.ones(3)
    np.testing.assert_allclose(subject.body_map(1).vjp(x, u), 3 * x**2, rtol=1e-13)
    np.testing.assert_allclose(subject.derivative_map(1).vjp(x, u), x, rtol=1e-13)


def test_there_is_no_witness_without_a_rule_or_where_the_function_cannot_be_differentiated():
    def outside(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    hidden = with_vjp(outside, lambda x: (outside(x), x), lambda x, g: (g * jnp.cos(x),))
    assert BACKEND.bind(hidden, arguments({"x": (3,)})).body_map(1) is None
    assert BACKEND.bind(lambda x: jnp.sin(x), arguments({"x": (3,)})).body_map(1) is None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", [1, 2])
def test_the_vjp_of_a_custom_jvp_is_the_transpose_of_its_jvp(order):
    function = log1p_exp()
    subject = BACKEND.bind(function, arguments({"x": (12, 10)}))
    assert subject.info.has_jvp
    map_ = subject.derivative_map(order)
    x, v, u = subject.base_point(order, 0), random(map_.domain.size), random(map_.codomain.size, 1)
    mapped = function if order == 1 else lambda x, w: jax.vjp(function, x)[1](w)
    with jax.enable_x64(True):
        at, along = ([jnp.asarray(part) for part in map_.domain.unflatten(each)] for each in (x, v))
        pushed = np.concatenate([np.ravel(part) for part in jax.tree.leaves(jax.jvp(mapped, at, along)[1])])
    assert pushed @ u == pytest.approx(map_.vjp(x, u) @ v, rel=1e-12)
    assert {block.outcome for block in verify(map_, x, seed=0).blocks} == {Outcome.AGREES}
    wrong = BACKEND.bind(log1p_exp(lambda x: 1.001 * jax.nn.sigmoid(x)), arguments({"x": (12, 10)}))
    assert Outcome.DIFFERS in {block.outcome for block in verify(wrong.derivative_map(1), wrong.point, seed=0).blocks}
    assert not BACKEND.bind(cube(), arguments({"x": (3,)})).info.has_jvp


def test_complex_gradients_are_adjoints_for_the_real_pairing_as_pytorch_has_them():
    torch = pytest.importorskip("torch", reason="compares JAX with PyTorch")
    z = torch.tensor(COMPLEX["z"], requires_grad=True)
    u = np.array([0.5 - 1.0j, 2.0 + 0.25j, -1.0 + 3.0j])
    (wanted,) = torch.autograd.grad(z * z, z, torch.tensor(u))
    subject = BACKEND.bind(square_of_complex(), arguments(COMPLEX))
    np.testing.assert_allclose(subject.backward([u])[0], wanted.numpy(), rtol=1e-14)
    np.testing.assert_allclose(subject.raw_backward([u]).gradients[0].value, wanted.numpy(), rtol=1e-14)


def test_the_users_precision_is_untouched_and_the_check_runs_in_64_bits():
    seen = []
    function = with_vjp(lambda x: seen.append(x.dtype) or x * x, lambda x: (x * x, x), lambda x, g: (2 * x * g,))
    assert gradcli.check(function, (np.ones((2, 3), np.float32),), order=1, shrink=False).ok
    assert {str(dtype) for dtype in seen} == {"float64"}
    assert jnp.zeros(1).dtype == jnp.float32
    assert not jax.config.jax_enable_x64


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("build", "flags"),
    [
        (linear, "-i x=3x4 -i w=5x4 -i b=5"),
        (cube, "-i x=3x4"),
        (lambda: jax.jit(log1p_exp()), "-i x=3x4"),
        (gather, None),
        (power, None),
    ],
    ids=["linear", "cube", "custom_jvp under jit", "indices", "nondiff_argnums"],
)
def test_inputs_are_inferred(build, flags):
    function = build()
    info = BACKEND.describe(function)
    found = infer(
        info,
        lambda given: BACKEND.attempt(function, given),
        attempt_backward=lambda given: BACKEND.attempt(function, given, gradients=True),
    )
    assert flags in (None, found.as_flags())
    assert gradcli.check(function, order=1, samples=1, shrink=False, only=["gradient"]).verdict is Verdict.PASSED


def test_indices_are_not_inferred_beyond_the_end_where_jax_would_clamp_them():
    given = arguments({"x": (4, 2), "index": np.array([0, 4])})
    assert isinstance(BACKEND.attempt(gather(), given).error, IndexError)
    assert BACKEND.attempt(gather(), arguments({"x": (4, 2), "index": np.array([0, 3])})).ok


def test_a_function_that_branches_on_values_is_tried_and_checked():
    def absolute(x):
        return jnp.where(x > 0, x, -x) if float(x.sum()) > 100 else x * x

    function = with_vjp(absolute, lambda x: (absolute(x), x), lambda x, g: (2 * x * g,))
    assert gradcli.check(function, order=1, samples=1, shrink=False).ok


def test_leaves_of_pytrees_are_inputs_under_their_paths():
    subject = BACKEND.bind(layer(), arguments(PARAMS))
    assert [subject.arguments[i].name for i in subject.active] == ["params['b']", "params['w'][0]", "x"]
    assert [block.shape for block in subject.domain.blocks] == [(3,), (2, 3), (4, 2)]
    again = subject.rebind(subject.arguments)
    np.testing.assert_array_equal(again.point, subject.point)


def test_a_failure_in_a_pytree_is_replayed_from_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trees.py").write_text(
        "import jax\n"
        "@jax.custom_vjp\n"
        "def scaled(p, x):\n"
        "    return p['k'] * x + p['c'][1]\n"
        "def fwd(p, x):\n"
        "    return scaled(p, x), (p, x)\n"
        "def bwd(res, g):\n"
        "    p, x = res\n"
        "    return {'k': 2 * (g * x).sum(), 'c': (None, g.sum())}, g * p['k']\n"
        "scaled.defvjp(fwd, bwd)\n"
    )
    given = ({"k": 1.5, "c": (2, 0.5)}, np.ones(3))
    report = gradcli.check("trees.py:scaled", given, order=1, shrink=False, only=["gradient"])
    (case,) = report.cases
    assert [(f.kind.value, f.input) for f in case.findings] == [("wrong-factor", "p['k']")]
    failure = failure_of("trees.py:scaled", None, 0, 1, "float64", case.arguments, case.findings[0])
    again = replay(load(save(failure, tmp_path)))
    assert [(f.kind.value, f.input) for f in again.findings] == [("wrong-factor", "p['k']")]


def test_values_given_as_literals_are_taken_apart_too():
    tree = {"w": [1.0, 2.0], "b": 0.5, "name": 3}
    given = [Argument(name="p", value=tree, is_tensor=False), *arguments({"x": (3,)})]
    subject = BACKEND.bind(lambda p, x: p["w"][0] * x + p["w"][1] * p["b"], given)
    assert [subject.arguments[i].name for i in subject.active] == ["p['b']", "p['w'][0]", "p['w'][1]", "x"]


def test_callers_values_are_adopted():
    adopted = BACKEND.adopt([jnp.ones(2), np.arange(3), 2.5, jax.random.key(0), "text"])
    assert [(a.is_tensor, a.requires_grad) for a in adopted] == [
        (True, True),
        (True, False),
        (False, False),
        (False, False),
        (False, False),
    ]


def test_a_float_is_the_input_where_no_array_is_given():
    (case,) = gradcli.check(cube(lambda x, g: (x * x * g,)), (1.5,), order=1, shrink=False).cases
    assert [(f.kind.value, f.factor) for f in case.findings] == [("wrong-factor", "1/3")]
    assert gradcli.check(cube(), {"x": 1.5}, order=2, shrink=False).ok


def test_a_function_as_a_nondiff_argument_is_passed_through():
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def applied(f, x):
        return f(x)

    applied.defvjp(lambda f, x: (f(x), x), lambda f, x, g: jax.vjp(f, x)[1](g))
    assert gradcli.check(applied, (jnp.tanh, np.linspace(-1, 1, 4)), order=2, shrink=False).ok


def test_keyword_arguments_and_defaults_reach_the_rule():
    def primal(x, scale=2.0):
        return x * scale

    function = with_vjp(primal, lambda x, scale: (x * scale, scale), lambda scale, g: (g * scale, None))
    once = {"order": 1, "samples": 1, "shrink": False, "only": ["gradient"]}
    assert gradcli.check(function, {"x": {"shape": [3]}}, **once).ok
    assert gradcli.check(function, {"x": {"shape": [3]}, "scale": 0.5}, **once).ok


def test_what_is_a_function_with_a_rule_is_told_from_what_is_none():
    assert is_function(cube())
    assert is_function(jax.jit(cube()))
    assert not is_function(jax.jit(lambda x: x))
    assert not is_function(jax.custom_vjp(lambda x: x))
    assert backend_for(cube()) is BACKEND
    assert backend_for(log1p_exp()) is BACKEND
    with pytest.raises(TargetError, match=r"defvjp\(fwd, bwd\)"):
        BACKEND.describe(jax.custom_vjp(lambda x: x))
    with pytest.raises(TargetError, match="defjvp"):
        BACKEND.describe(jax.custom_jvp(lambda x: x))


def test_the_rules_own_forward_must_be_the_function():
    other = with_vjp(lambda x: jnp.sin(x), lambda x: (2 * jnp.sin(x), x), lambda x, g: (2 * jnp.cos(x) * g,))
    with pytest.raises(UserCodeError, match="of the rule's own forward pass"):
        BACKEND.bind(other, arguments({"x": (3,)}))


def test_errors_of_the_users_code_are_told_with_their_phase_and_line():
    def backward(x, g):
        raise ZeroDivisionError("in bwd")

    failing = cube(backward)
    (case,) = gradcli.check(failing, (np.ones(3),), order=1, shrink=False).cases
    assert case.verdict is Verdict.ERROR
    assert "backward raised ZeroDivisionError: in bwd" in case.error
    assert "in backward" in case.error_traceback
    kept = []

    def leaking(x):
        jax.jit(lambda y: kept.append(y) or 2 * y)(x)
        return kept[-1] * x

    (case,) = gradcli.check(leaking, (np.ones(3),), order=1, shrink=False).cases
    assert case.verdict is Verdict.ERROR
    assert "UnexpectedTracerError" in case.error


def test_a_bwd_that_takes_symbolic_zeros_is_checked_without_being_called_by_hand():
    function = jax.custom_vjp(lambda x, y: x * y)
    function.defvjp(
        lambda x, y: (x.value * y.value, (x.value, y.value)),
        lambda r, g: (g * r[1], 2 * g * r[0]),
        symbolic_zeros=True,
    )
    (case,) = gradcli.check(function, (np.ones(3), np.full(3, 2.0)), order=1, shrink=False).cases
    assert [(f.kind.value, f.input) for f in case.findings] == [("wrong-factor", "y")]


def test_swapping_back_a_product_needs_no_framework_state():
    subject = BACKEND.bind(product(), arguments(PAIR))
    first, second = subject.backward_twice([np.ones((2, 3))])
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_users_filter_of_tracebacks_is_as_it_was():
    filters = []

    def square(x):
        filters.append(jax.config.jax_traceback_filtering)
        if x.shape != (3, 3):
            raise ValueError("three by three")
        return x * x

    function = jax.custom_vjp(square)
    function.defvjp(lambda x: (square(x), x), lambda x, g: (2 * x * g,))
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "tracebackhide")
    try:
        assert gradcli.check(function, order=1, samples=1, only=["gradient"]).cases[0].verdict is Verdict.PASSED
        assert jax.config.jax_traceback_filtering == "tracebackhide"
    finally:
        jax.config.update("jax_traceback_filtering", before)
    assert set(filters) == {"off", "tracebackhide"}, "off in the search for inputs alone"


def test_a_file_is_compared_with_jax_own_paths_once(monkeypatch):
    filters = pytest.importorskip("jax._src.traceback_util")
    if not hasattr(filters, "include_filename"):
        pytest.skip("this JAX compares no files")
    compared, decides = [], filters.include_filename

    def counted(name):
        compared.append(name)
        return decides(name)

    monkeypatch.setattr(filters, "include_filename", counted)
    function = jax.custom_vjp(lambda x: x * x)
    function.defvjp(lambda x: (x * x, x), lambda x, g: ((2 * x * g)[:1],))
    for size in (2, 3, 4):
        assert BACKEND.attempt(function, arguments({"x": np.ones(size)}), gradients=True).backward_error is not None
        assert filters.include_filename is counted
    assert len(compared) == len(set(compared)) > 1
