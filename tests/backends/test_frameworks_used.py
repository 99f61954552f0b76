"""Callables that use a framework through other modules alone: their own names, and their inputs, are NumPy's."""

import sys

import numpy as np
import pytest

import gradcli
from gradcli.backends.registry import backends_for
from gradcli.errors import UsageError
from gradcli.spec.resolve import resolve
from gradcli.verdict import Verdict

pytest.importorskip("jax", reason="this module imports every framework")
pytest.importorskip("torch", reason="this module imports every framework")

SIDE = """
def {prefix}_with(slope):
{rule}


class Solver:
    def __init__(self, curve):
        self.curve = curve

    def run(self, x):
        return self.curve(x)


right, wrong = {prefix}_with(1.0), {prefix}_with(0.5)
"""
JAX_RULE = """
    @jax.custom_vjp
    def curve(x):
        return jnp.tanh(x)

    curve.defvjp(lambda x: (jnp.tanh(x), x), lambda x, g: (slope * g * (1 - jnp.tanh(x) ** 2),))
    return curve
"""
TORCH_RULE = """
    class Curve(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.tanh()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return slope * g * (1 - x.tanh() ** 2)

    return Curve.apply
"""
ENGINE_RULE = TORCH_RULE.replace("torch.autograd.Function", "autograd.Function")
IMPORTS = {
    "jax": "import jax\nimport jax.numpy as jnp\n",
    "torch": "import torch\n",
    "engine": "from gradcli.engine import autograd\n",
}
RULES = {"jax": JAX_RULE, "torch": TORCH_RULE, "engine": ENGINE_RULE}

MEMBERS = """
import functools
import importlib
import numpy as np
import {side}
from {side} import {twin}, Solver

WEIGHTS = np.array([1.0, -2.0, 0.5])
CURVES = {{"tanh": {twin}}}


def of_a_module(x):
    return {side}.{twin}(x)


def beside_a_constant(x):
    return {side}.{twin}(x * np.pi)


def helped(x):
    return of_a_module(x) * 2.0


def from_a_table(x):
    return CURVES["tanh"](x)


def by_a_solver(x):
    return Solver({twin}).run(x)


def by_default(x, curve={twin}):
    return curve(x)


def imported_inside(x):
    from {side} import {twin} as curve

    return curve(x)


def loaded_by_name(x):
    return getattr(importlib.import_module(np.str_("{side}")), "{twin}")(x)


def enclosed():
    curve = {twin}
    return lambda x: curve(x) + np.pi


class Layer:
    def __init__(self, curve):
        self.curve = curve
        self.scale = np.pi

    def __call__(self, x):
        return self.curve(x) * self.scale

    def method(self, x):
        return self.curve(x)


def counted(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments)

    return call


in_a_closure = enclosed()
an_object = Layer({twin})
a_method = an_object.method
partly = functools.partial(by_default, curve={twin})
decorated = counted(of_a_module)
"""
NAMES = (
    *("of_a_module", "beside_a_constant", "helped", "from_a_table", "by_a_solver", "by_default", "imported_inside"),
    *("in_a_closure", "an_object", "a_method", "partly", "decorated"),
)
POLYMORPHIC = """
import numpy as np
import jax
import torch

from neither_side import shown


def energy(x):
    return np.sum(x**2), 2 * x


def wrong_energy(x):
    return np.sum(x**2), 3 * x


def nameless(x):
    return (x**2).sum(), 2 * x


def wrong_nameless(x):
    return (x**2).sum(), 3 * x


def shown_energy(x):
    shown(x)
    return np.sum(x**2), 2 * x


def wrong_shown_energy(x):
    shown(x)
    return np.sum(x**2), 3 * x


def moments(x):
    return x.mean(), (x * x).mean()


def doubled(x):
    return (x * x).sum(), x.sum()


def without(x):
    return np.sum(x**2)


def plain(x):
    return (x * x).sum()


def plain_gradient(x):
    return 2 * x
"""
NEITHER = """
import jax


def shown(x):
    if x is None:
        jax.debug.print("nothing")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder on the path of modules, with one that uses each framework, and those that use it by way of that one."""
    folder = tmp_path_factory.mktemp("out_of_sight")
    for name, rule in RULES.items():
        text = IMPORTS[name] + SIDE.format(prefix=name, rule=rule)
        (folder / f"{name}_side.py").write_text(text)
        for twin in ("right", "wrong"):
            (folder / f"{name}_{twin}.py").write_text(MEMBERS.format(side=f"{name}_side", twin=twin))
    (folder / "polymorphic.py").write_text(POLYMORPHIC)
    (folder / "neither_side.py").write_text(NEITHER)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


def case_of(target, *inputs):
    return gradcli.check(target, inputs or None, order=1, samples=1, only=["gradient"], shrink=False).cases[0]


X = np.array([0.5, -1.25, 2.0])


@pytest.mark.parametrize("framework", RULES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("folder")
def test_what_a_callable_reaches_is_tried(framework, name):
    tried = [backend.name for backend in backends_for(resolve(f"{framework}_right:{name}").object)]
    assert tried[-1] == framework
    assert set(tried) <= {"numpy", framework}


CHECKED = [(f, name) for f in ("torch", "engine") for name in NAMES] + [("jax", "beside_a_constant")]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("framework", "name"), CHECKED)
@pytest.mark.usefixtures("folder")
def test_what_a_callable_uses_out_of_sight_is_its_framework(framework, name):
    right, wrong = (case_of(f"{framework}_{twin}:{name}", X) for twin in ("right", "wrong"))
    assert (right.backend, right.verdict) == (framework, Verdict.PASSED), right.error
    assert (wrong.backend, wrong.verdict) == (framework, Verdict.FAILED), wrong.error


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", ["torch", "engine"])
@pytest.mark.usefixtures("folder")
def test_inputs_are_inferred_for_it(framework):
    assert case_of(f"{framework}_right:beside_a_constant").verdict is Verdict.PASSED
    assert case_of(f"{framework}_wrong:beside_a_constant").verdict is Verdict.FAILED


@pytest.mark.usefixtures("folder")
def test_what_no_name_tells_the_result_does():
    assert [backend.name for backend in backends_for(resolve("jax_right:loaded_by_name").object)] == ["numpy"]
    for twin, verdict, inputs in (("right", Verdict.PASSED, ()), ("wrong", Verdict.FAILED, (X,))):
        case = case_of(f"jax_{twin}:loaded_by_name", *inputs)
        assert (case.backend, case.verdict) == ("jax", verdict), case.error


@pytest.mark.parametrize("name", ["energy", "nameless", "shown_energy"])
@pytest.mark.parametrize("inputs", [(X,), ()], ids=["given", "inferred"])
@pytest.mark.usefixtures("folder")
def test_a_value_and_gradient_of_numpy_stays_numpys_beside_other_frameworks(name, inputs):
    for twin, verdict in ((name, Verdict.PASSED), (f"wrong_{name}", Verdict.FAILED)):
        case = case_of(f"polymorphic:{twin}", *inputs)
        assert (case.backend, case.verdict) == ("numpy", verdict), case.error


@pytest.mark.parametrize("name", ["moments", "doubled", "plain"])
@pytest.mark.parametrize("inputs", [(X,), ()], ids=["given", "inferred"])
@pytest.mark.usefixtures("folder")
def test_several_numbers_are_the_outputs_of_the_framework_beside(name, inputs):
    case = case_of(f"polymorphic:{name}", *inputs)
    assert (case.backend, case.verdict) == ("torch", Verdict.PASSED), case.error


@pytest.mark.usefixtures("folder")
def test_a_function_of_numpy_without_a_derivative_is_refused_beside_other_frameworks():
    with pytest.raises(UsageError, match="plain NumPy function without a derivative"):
        case_of("polymorphic:without", X)


@pytest.mark.usefixtures("folder")
def test_a_hand_written_gradient_is_checked_where_the_module_alone_has_a_framework():
    case = gradcli.check("polymorphic:plain", (X,), grad="polymorphic:plain_gradient", shrink=False).cases[0]
    assert (case.backend, case.verdict) == ("numpy", Verdict.PASSED), case.error


ATTRIBUTES = """
import jax
import torch
from jax import numpy as jnp
from torch import nn

from gradcli import engine as E


class Cube(E.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


class WrongCube(Cube):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x**2 * g


def times(function, x):
    return function.apply(x)


def cubes(x):
    return Cube.apply(E.nn.functional.elu(x))


def wrong_cubes(x):
    return WrongCube.apply(E.nn.functional.elu(x))


def shifted(x):
    return times(Cube, x) + torch.ones(3).tolist()[0]


def wrong_shifted(x):
    return times(WrongCube, x) + torch.ones(3).tolist()[0]


@jax.custom_vjp
def ruled(x):
    return jnp.tanh(x)


ruled.defvjp(lambda x: (jnp.tanh(x), x), lambda x, g: (g * (1 - jnp.tanh(x) ** 2),))


def curve(x):
    return jnp.sum(ruled(x)) * torch.ones(1).item()


def enclosing():
    def inner(x):
        class Own:
            nn = E.nn

            def run(self, x):
                return nn_of(self).functional.elu(x)

            nn_of = nn

        return Own().run(x)

    return inner


def nn_of(own):
    return own.nn


inner = enclosing()
"""


@pytest.fixture(scope="module")
def attributes(folder):
    (folder / "attributes.py").write_text(ATTRIBUTES)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cubes", ["engine"]), ("shifted", ["engine", "torch"]), ("curve", ["jax", "torch"]), ("inner", ["engine"])],
)
@pytest.mark.usefixtures("attributes")
def test_an_attribute_is_no_global(name, expected):
    assert [backend.name for backend in backends_for(resolve(f"attributes:{name}").object)] == expected


@pytest.mark.parametrize("name", ["cubes", "shifted"])
@pytest.mark.usefixtures("attributes")
def test_a_function_of_the_engine_is_checked_beside_torch(name):
    for twin, verdict in ((name, Verdict.PASSED), (f"wrong_{name}", Verdict.FAILED)):
        case = case_of(f"attributes:{twin}", X)
        assert (case.backend, case.verdict) == ("engine", verdict), case.error
