"""What the NumPy backend promises beside verdicts: how a derivative is read, what is refused, the command line."""

import functools
import json
import subprocess

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.backends.numpy.binding import DerivativeBinding
from gradcli.backends.numpy.claims import GradientPair, pulled_back
from gradcli.backends.numpy.placements import placed
from gradcli.backends.numpy.values import ValueReader
from gradcli.backends.registry import backend_for, backend_named, with_gradient
from gradcli.cases import Argument
from gradcli.engine.autograd import Function
from gradcli.errors import TargetError, UsageError, WithoutDerivativeError
from gradcli.inputs.search.inference import infer
from gradcli.verdict import Verdict
from tests import warm

BACKEND = backend_named("numpy")


def squares(x):
    return np.sum(x * x)


def slopes(x):
    return 2 * x


def logistic(w, data, labels, strength=0.1):
    return np.mean(np.log1p(np.exp(-labels * (data @ w)))) + 0.5 * strength * w @ w


def logistic_slopes(w, data, labels, strength=0.1):
    weights = labels / (1 + np.exp(labels * (data @ w)))
    return strength * w - data.T @ weights / len(labels)


def tensor(name, shape, seed=0):
    value = np.asarray(np.random.default_rng(seed).normal(size=shape))
    return Argument(name=name, value=value, is_tensor=True, requires_grad=True)


@pytest.mark.parametrize(
    ("x", "y", "derivative", "wanted"),
    [
        ((3,), (), (3,), "u * d"),
        ((), (), (), "u * d"),
        ((2, 3), (1,), (2, 3), "u[0] * d"),
        ((3,), (2,), (2, 3), "u @ d"),
        ((2, 3), (4,), (4, 2, 3), "np.tensordot(u, d, 1)"),
        ((2, 3), (2, 2), (4, 6), "(u.ravel() @ d).reshape(2, 3)"),
        ((2, 3), (2, 3), (2, 3), "u * d"),
        ((3,), (3,), (3, 3), "u @ d"),
        ((), (3,), (3,), "u @ d"),
    ],
)
def test_a_derivative_is_read_by_its_shape(x, y, derivative, wanted):
    generator = np.random.default_rng(0)
    d, u = np.asarray(generator.normal(size=derivative)), np.asarray(generator.normal(size=y))
    claim = pulled_back(d, np.zeros(x), np.zeros(y), u, is_vjp=False)
    assert claim.fits
    assert claim.value.shape == x
    np.testing.assert_allclose(claim.value, eval(wanted), rtol=1e-14)


@pytest.mark.parametrize(("x", "y", "derivative"), [((3,), (2,), (3, 2)), ((4,), (), (3, 4)), ((2, 3), (), (3, 2))])
def test_a_derivative_of_another_shape_is_kept_as_it_is(x, y, derivative):
    claim = pulled_back(np.ones(derivative), np.zeros(x), np.zeros(y), np.ones(y), is_vjp=False)
    assert not claim.fits
    assert claim.value.shape == derivative


@pytest.mark.parametrize(
    ("function", "gradient", "passed", "is_vjp"),
    [
        (lambda x: x, lambda x: x, 1, False),
        (lambda x: x, lambda a: a, 1, False),
        (lambda x: x, lambda x, u: u, 1, True),
        (lambda x, c=2.0: x, lambda x, c=2.0: x, 1, False),
        (lambda x, c: x, lambda x, c: x, 1, False),
        (lambda x, y: x, lambda a, b, g: a, 2, True),
        (lambda x, y: x, lambda a, b: a, 2, False),
        (lambda x: x, lambda x, eps=1e-3: x, 1, False),
        (lambda x: x, np.cos, 1, False),
        (lambda x, b: x, lambda g, x: g, 2, True),
        (lambda x, w, b: x, lambda g, x, w: g, 3, True),
        (lambda x, w, b: x, lambda x, w: x, 3, False),
    ],
)
def test_a_vjp_is_told_by_a_last_argument_more(function, gradient, passed, is_vjp):
    assert DerivativeBinding(function, gradient, passed, ()).takes_cotangent is is_vjp


def test_what_is_returned_is_placed_by_its_number():
    x, w, c = tensor("x", (3,)), tensor("w", (3,)), Argument(name="c", value=2.0, is_tensor=False)
    g = np.ones(3)
    assert set(placed(g, [x, w, c])) == {0}
    assert set(placed((g, g), [x, w, c])) == {0, 1}
    assert set(placed((g, g, None), [x, w, c])) == {0, 1, 2}
    assert placed((g,), [x, w, c]) == 1
    assert set(placed([1.0, 2.0, 3.0], [x])) == {0}
    assert set(placed((g,), [c, x])) == {1}


def test_the_convention_of_scipy_is_told_from_several_outputs():
    reader = ValueReader(squares, "f")
    for returned in ((np.ones(3), np.ones(2)), np.ones(2), (1.0, np.ones(3), None)):
        with pytest.raises((WithoutDerivativeError, TypeError)):
            reader.read(returned, ["x"])


def test_targets_are_told_by_what_they_use():
    assert backend_for(squares) is BACKEND
    assert backend_for(GradientPair(function=squares, gradient=slopes)) is BACKEND
    assert backend_for(functools.partial(logistic, strength=0.5)) is BACKEND
    assert backend_for(np.sin) is not None
    with pytest.raises(UsageError, match="has a backward of its own"):
        with_gradient(Function, slopes)
    with pytest.raises(UsageError, match="to be callable"):
        with_gradient(squares, 3)
    with pytest.raises(TargetError, match="expected a Function class or a callable"):
        backend_for(3)


class Summing:
    def __call__(self, x):
        return np.sum(x)

    def method(self, x):
        return np.sum(x)


def test_objects_methods_and_partials_belong_where_their_code_does():
    for target in (Summing(), Summing().method, functools.partial(squares), np.sin, lambda x: np.sum(x)):
        assert backend_for(target) is BACKEND
    assert backend_for(engine.nn.Linear(2, 3)).name == "engine"
    assert backend_for(lambda x: engine.sin(x) * np.pi).name == "engine"


def test_a_module_of_pytorch_belongs_to_pytorch():
    torch = pytest.importorskip("torch", reason="asks for the backend of a PyTorch module")
    assert backend_for(torch.nn.Linear(2, 3)).name == "torch"
    assert backend_for(lambda x: torch.sin(x) * np.pi).name == "torch"


def test_a_backward_pass_of_nodes_is_not_there_to_trace():
    with pytest.raises(TargetError, match="which the numpy backend does not have"):
        gradcli.trace(squares, (np.ones(3),))


def test_a_function_without_a_derivative_is_told_to_give_one():
    for inputs in (None, (np.ones(3),)):
        with pytest.raises(UsageError, match="--grad module:attr"):
            gradcli.check(squares, inputs, shrink=False)


def test_inputs_are_those_at_which_the_derivative_fits():
    (case,) = gradcli.check(logistic, grad=logistic_slopes, shrink=False).cases
    assert case.verdict is Verdict.PASSED
    assert [spec.shape for spec in case.inputs] == [(3,), (4, 3), (4,)]
    assert any("the function also accepts" in note for note in case.notes)
    assert any("gradient was not checked" in note for note in case.notes)


def test_inference_works_on_attempts_alone():
    pair = GradientPair(function=squares, gradient=slopes)
    found = infer(
        BACKEND.describe(pair),
        lambda given: BACKEND.attempt(pair, given),
        attempt_backward=lambda given: BACKEND.attempt(pair, given, gradients=True),
    )
    assert found.as_flags() == "-i x=3x4"


def test_a_derivative_that_fits_nowhere_is_a_finding_and_no_search_without_end():
    (case,) = gradcli.check(squares, grad=lambda x: np.ones((7, 7, 7)), shrink=False).cases
    assert [f.kind.value for f in case.findings] == ["wrong-shape"]
    (case,) = gradcli.check(squares, grad=lambda x: (x, x), shrink=False).cases
    assert [f.kind.value for f in case.findings] == ["wrong-arity"]


def test_errors_of_the_derivative_are_the_users():
    def failing(x):
        raise ZeroDivisionError("in the derivative")

    (case,) = gradcli.check(squares, (np.ones(3),), grad=failing, shrink=False).cases
    assert case.verdict is Verdict.ERROR
    assert "backward raised ZeroDivisionError: in the derivative" in case.error
    (case,) = gradcli.check(lambda x: None, (np.ones(3),), grad=slopes, shrink=False).cases
    assert "returned NoneType, expected numbers" in case.error


def test_methods_partials_and_callable_objects_can_be_pairs():
    class Model:
        def __init__(self):
            self.matrix = np.arange(12.0).reshape(3, 4)

        def __call__(self, x):
            return self.matrix @ np.tanh(x)

        def jacobian(self, x):
            return self.matrix * (1 - np.tanh(x) ** 2)

    model = Model()
    assert gradcli.check(model, (np.linspace(-1, 1, 4),), grad=model.jacobian, samples=1, shrink=False).ok
    inputs = (np.ones(3), np.random.default_rng(0).normal(size=(5, 3)), np.array([1.0, -1, 1, 1, -1]))
    pair = (functools.partial(logistic, strength=0.5), functools.partial(logistic_slopes, strength=0.5))
    assert gradcli.check(pair[0], inputs, grad=pair[1], samples=1, shrink=False).ok
    assert not gradcli.check(pair[0], inputs, grad=logistic_slopes, samples=1, shrink=False).ok


def test_the_callers_arrays_and_the_generators_are_untouched():
    x = np.ones(3)
    state = np.random.get_state()[1].copy()

    def writing(x):
        np.random.random()
        x *= 2
        return x

    (case,) = gradcli.check(squares, (x,), grad=writing, shrink=False).cases
    assert [f.kind.value for f in case.findings] == ["mutates-input"]
    np.testing.assert_array_equal(x, np.ones(3))
    np.testing.assert_array_equal(np.random.get_state()[1], state)


def test_single_precision_is_judged_in_double():
    (case,) = gradcli.check(squares, (np.ones(3, np.float32),), grad=lambda x: (2 + 1e-5) * x, shrink=False).cases
    assert [f.kind.value for f in case.findings] == ["wrong-factor"]


MODULE = """\
import numpy as np


def squares(x):
    return np.sum(x * x)


def slopes(x):
    return 2 * x


def thirds(x):
    return 3 * x


def both(x):
    return np.sum(np.exp(x)), np.exp(x)


def sine(x):
    return np.sin(x)
"""
SPEC = """\
target: arrays:squares
grad: arrays:slopes
cases:
  - name: right
    inputs: {x: {shape: [3]}}
  - name: wrong
    grad: arrays:thirds
    inputs: {x: {shape: [3]}}
    expect: failed
    findings: [wrong-factor]
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "arrays.py").write_text(MODULE)
    (tmp_path / "arrays.yaml").write_text(SPEC)

    def ended(*arguments: str) -> subprocess.CompletedProcess[str]:
        return warm.run_for_text(arguments, tmp_path)

    return ended


def test_the_gradient_is_named_on_the_command_line(run):
    assert run("check", "arrays:squares", "--grad", "arrays:slopes").returncode == 0
    ended = run("check", "arrays:squares", "--grad", "arrays:thirds", "--format", "json")
    assert ended.returncode == 1
    document = json.loads(ended.stdout)
    (case,) = document["cases"]
    assert case["backend"] == "numpy"
    assert {"id", "verdict", "inputs", "checks", "findings", "evaluations", "replay"} <= set(case)
    (finding,) = case["findings"]
    assert (finding["name"], finding["input"], finding["factor"]) == ("wrong-factor", "x", "3/2")
    assert MODULE.splitlines()[finding["location"]["line"] - 1] == "    return 3 * x"
    assert [check["verdict"] for check in case["checks"] if check["check"] == "higher-order"] == []
    again = run("replay", case["replay"])
    assert again.returncode == 1
    assert "wrong-factor" in again.stdout


def test_higher_orders_are_shown_as_not_offered(run):
    ended = run("check", "arrays:squares", "--grad", "arrays:slopes", "--format", "json", "--order", "3")
    (case,) = json.loads(ended.stdout)["cases"]
    higher = [check for check in case["checks"] if check["check"] == "higher-order"]
    assert {check["verdict"] for check in higher} == {"skipped"}
    assert {check["note"] for check in higher} == {
        "NumPy cannot differentiate the derivative, so higher derivatives are not checked"
    }


def test_a_function_that_returns_its_gradient_needs_no_other(run):
    assert run("check", "arrays:both").returncode == 0
    assert run("check", "arrays:both", "-i", "x=3").returncode == 0


def test_a_spec_names_the_gradient(run):
    ended = run("check", "arrays.yaml", "-j", "2")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_bare_name_is_looked_up_in_the_targets_module(run, tmp_path):
    assert run("check", "arrays:squares", "--grad", "slopes").returncode == 0
    ended = run("check", "arrays.py:squares", "--grad", "thirds")
    assert (ended.returncode, "[wrong-factor]" in ended.stdout) == (1, True)
    (tmp_path / "bare.yaml").write_text("target: arrays:squares\ncases:\n  - {name: own, grad: slopes}\n")
    assert run("check", "bare.yaml").returncode == 0
    (tmp_path / "bare.yaml").write_text("target: arrays:squares\ngrad: thirds\n")
    assert run("check", "bare.yaml").returncode == 1


FEWER = """
def affine(x, gain, bias):
    return x * gain + bias

def right(g, x, gain):
    return g * gain, (g * x).sum(0), g.sum()

def wrong(g, x, gain):
    return g * gain, (g * x).sum(0), 2 * g.sum()

def unfit(g, x, gains):
    return g * gains, (g * x).sum(0), g.sum()

def more(g, x, gain, bias, rate):
    return g * gain, (g * x).sum(0), g.sum()

def scaled(x, w, b, s):
    return (x @ w + b) * s

def scaled_right(g, x, w, b, s):
    return g @ w.T * s, x.T @ g * s, g.sum() * s, (g * (x @ w + b)).sum()

def scaled_wrong(g, x, w, b, s):
    return g @ w.T * s, x.T @ g * s, g.sum() * s, (g * (x @ w)).sum()
"""


@pytest.mark.parametrize(
    ("pair", "code", "text"),
    [
        ("affine right", 0, "-i x=3x4 -i gain=4 -i bias=scalar"),
        ("affine wrong", 1, "bias: the returned gradient is 2 times the right one"),
        ("affine unfit", 2, "the gradient of the output; g, gains are not parameters of affine"),
        ("affine more", 2, "g, rate are not parameters of affine"),
        ("scaled scaled_right", 0, "-i b=scalar -i s=scalar"),
        ("scaled scaled_wrong", 1, "input=s "),
    ],
)
def test_a_derivative_may_leave_out_parameters_and_sum_over_all_axes(run, tmp_path, pair, code, text):
    (tmp_path / "fewer.py").write_text(FEWER)
    target, gradient = pair.split()
    ended = run("check", f"fewer:{target}", "--grad", gradient)
    assert (ended.returncode, text in ended.stdout + ended.stderr) == (code, True), ended.stdout + ended.stderr


def test_slips_are_told_in_a_sentence(run):
    for arguments, text in (
        (("arrays:sine",), "--grad module:attr"),
        (("arrays:squares", "--grad", "arrays:slops"), "did you mean 'slopes'"),
        (("arrays:squares", "--grad", "slops"), "did you mean 'slopes'"),
        (("arrays:squares", "--grad", "arrays:"), "expected a name after a colon"),
    ):
        ended = run("check", *arguments)
        assert ended.returncode == 2
        assert text in ended.stderr
        assert "Traceback" not in ended.stderr


def test_sizes_that_a_vjp_does_not_fit_are_not_the_ones_that_are_meant(run, tmp_path):
    (tmp_path / "two.py").write_text(
        "import numpy as np\n\n\n"
        "def pair(x):\n    return np.array([x[0] * x[1], np.sin(x[0]), x[1] ** 2])\n\n\n"
        "def pair_vjp(x, v):\n"
        "    return np.array([[x[1], x[0]], [np.cos(x[0]), 0], [0, 2 * x[1]]]).T @ v\n"
    )
    ended = run("check", "two:pair", "--grad", "two:pair_vjp")
    assert ended.returncode == 0, ended.stdout
    assert "-i x=2" in ended.stdout
