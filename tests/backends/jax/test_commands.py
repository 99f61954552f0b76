"""`gradcli check` on JAX's functions, and that nothing imports JAX for targets that are not JAX's."""

import json
import subprocess

import pytest

from gradcli import check
from gradcli.verdict import Verdict
from tests import warm

pytest.importorskip("jax", reason="the jax backend needs JAX")

MODULE = """\
import jax
import jax.numpy as jnp


@jax.custom_vjp
def linear(x, w, b):
    return x @ w.T + b


def forward(x, w, b):
    return linear(x, w, b), (x, w)


def backward(residuals, g):
    x, w = residuals
    return g @ w, g.T @ x, g.sum(0)


linear.defvjp(forward, backward)


@jax.custom_vjp
def halved(x):
    return x**2


def halved_backward(x, g):
    slope = x
    return (slope * g,)


halved.defvjp(lambda x: (x**2, x), halved_backward)


@jax.custom_jvp
def softplus(x):
    return jnp.log1p(jnp.exp(x))


@softplus.defjvp
def softplus_rule(primals, tangents):
    (x,), (v,) = primals, tangents
    return softplus(x), jax.nn.sigmoid(x) * v


def loss(x):
    return jnp.sum(halved(x))


def energy(params, x):
    return jnp.sum(jnp.tanh(x * params["w"][0] + params["b"]))
"""
PROBE = """\
import atexit
import sys

import numpy as np

atexit.register(lambda: print("JAX" if "jax" in sys.modules else "none", file=sys.stderr))


def squares(x):
    return np.sum(x * x)


def slopes(x):
    return 2 * x
"""
ENGINE = """\
import atexit
import sys

from gradcli.engine.autograd import Function

atexit.register(lambda: print("JAX" if "jax" in sys.modules else "none", file=sys.stderr))


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g
"""
GRADIENT = ("--samples", "1", "--order", "1", "--only", "gradient")
"""What the command does with a result; what the checks find is tested elsewhere."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder of JAX's in which each command finds what the others have compiled."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


@pytest.fixture
def gradcli(tmp_path, compiled):
    for name, text in (("mine", MODULE), ("arrays", PROBE), ("functions", ENGINE)):
        (tmp_path / f"{name}.py").write_text(text)

    def run(*arguments: str, imports: str | None = "jax") -> subprocess.CompletedProcess[str]:
        return warm.run_for_text(arguments, tmp_path, imports=imports, JAX_PLATFORMS="cpu", **compiled)

    return run


def test_every_function_with_a_rule_in_a_module_is_checked(gradcli):
    ended = gradcli("check", "mine", *GRADIENT, "--format", "json")
    assert ended.returncode == 1, ended.stderr
    document = json.loads(ended.stdout)
    assert document["schema"] == "gradcli.report/1"
    assert {case["id"]: case["verdict"] for case in document["cases"]} == {
        "mine:linear": "passed",
        "mine:halved": "failed",
        "mine:softplus": "passed",
    }
    assert {case["backend"] for case in document["cases"]} == {"jax"}
    halved = document["cases"][1]
    (finding,) = halved["findings"]
    assert (finding["name"], finding["input"], finding["factor"]) == ("wrong-factor", "x", "1/2")
    lines = MODULE.splitlines()
    assert finding["location"]["file"] == "mine.py"
    assert lines[finding["location"]["line"] - 1] == "    slope = x"


def test_a_failure_is_replayed(gradcli):
    ended = gradcli("check", "mine:halved", *GRADIENT, "--format", "json")
    (case,) = json.loads(ended.stdout)["cases"]
    again = gradcli("replay", case["replay"])
    assert again.returncode == 1
    assert "wrong-factor" in again.stdout


def test_a_plain_function_and_a_pytree_by_flags(gradcli):
    ended = gradcli("check", "mine:loss", *GRADIENT)
    assert ended.returncode == 1
    assert "wrong-factor" in ended.stdout
    flags = ("-a", "params={'w': [0.5], 'b': 0.25}", "-i", "x=3")
    ended = gradcli("check", "mine:energy", *flags, "--format", "json", *GRADIENT)
    assert ended.returncode == 0, ended.stderr
    (case,) = json.loads(ended.stdout)["cases"]
    names = {check["input"] for check in case["checks"] if check["check"] == "gradient"}
    assert names == {"params['b']", "params['w'][0]", "x"}


def test_list_and_init_know_the_functions(gradcli):
    ended = gradcli("list", "mine:linear")
    assert ended.stdout.split()[:2] == ["mine:linear", "jax"]
    assert "-i x=3x4 -i w=5x4 -i b=5" in ended.stdout
    assert gradcli("init", "mine:linear").returncode == 0
    assert gradcli("check", "specs/linear.yaml", *GRADIENT).returncode == 0


def test_worker_processes_run_them_too(gradcli):
    ended = gradcli("check", "mine:linear", "mine:softplus", "-j", "2", *GRADIENT)
    assert ended.returncode == 0, ended.stderr


def test_a_hand_written_gradient_is_refused_beside_a_rule(gradcli):
    ended = gradcli("check", "mine:linear", "--grad", "arrays:slopes")
    assert ended.returncode == 2
    assert "leave out --grad" in ended.stderr
    assert "Traceback" not in ended.stderr
    ended = gradcli("check", "mine:loss", "--grad", "arrays:slopes")
    assert ended.returncode == 2
    assert "expected the gradient of loss's output, such as grad_output" in ended.stderr


def test_jax_is_imported_for_no_other_target(gradcli):
    for arguments in (("arrays:squares", "--grad", "arrays:slopes"), ("functions:Square",)):
        ended = gradcli("check", *arguments, imports=None)
        assert ended.returncode == 0, ended.stderr
        assert "none" in ended.stderr.split()
        assert "JAX" not in ended.stderr.split()


def test_an_absent_extra_is_one_sentence_with_the_command(monkeypatch):
    import importlib.util

    from gradcli.backends.registry import backend_named
    from gradcli.errors import MissingExtraError

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in ("jax", "torch"):
        with pytest.raises(MissingExtraError, match=rf"pip install 'gradcli\[{name}\]'"):
            backend_named(name)
    assert backend_named("numpy").name == "numpy"


NORMALISED = """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def scaled(x, g, b):
    return x * g + b


def forward(x, g, b):
    return scaled(x, g, b), (x, g)


def backward(residuals, ct):
    x, g = residuals
    return ct * g, {gradient}, ct.sum(0)


scaled.defvjp(forward, backward)
"""


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(
    ("gradient", "verdict"), [("(ct * x).sum(0)", Verdict.PASSED), ("2 * (ct * x).sum(0)", Verdict.FAILED)]
)
def test_inputs_have_the_axes_that_the_rule_sums_down_to(tmp_path, gradient, verdict):
    path = tmp_path / "normalised.py"
    path.write_text(NORMALISED.format(gradient=gradient))
    (case,) = check(f"{path}:scaled", order=1, samples=1, shrink=False, only=["gradient"]).cases
    assert case.verdict is verdict, case.error
    assert [spec.shape for spec in case.inputs] == [(3, 4), (4,), (4,)]
