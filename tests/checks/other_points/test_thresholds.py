"""A branch that is wrong between two constants of the source is found there, where few random numbers fall."""

import linecache

import pytest

from gradcli.cases import CheckSpec, InputsFrom
from gradcli.inputs.flags import parse_input
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.pairs import in_turn

FUNCTIONS = {
    "hard swish": (
        "x * ns.clamp(x + 3, 0, 6) / 6",
        "ns.where(x >= END, ns.ones_like(x), ns.where(x > -3, x / 3 + 0.5, x * 0))",
        (3, 4),
    ),
    "hard sigmoid": ("ns.clamp(0.2 * x + 0.5, 0, 1)", "0.2 * ((x > -2.5) & (x < END)).to(x.dtype)", (2.5, 3)),
    "capped at six": ("ns.clamp(x, 0, 6)", "((x > 0) & (x < END)).to(x.dtype)", (6, 5)),
    "square beyond five": ("ns.where(x > 5, (x - 5) ** 2, x * 0)", "ns.where(x > END, 2 * (x - 5), x * 0)", (5, 7)),
}
SOURCE = """
def value(x):
    return VALUE

def slope(x):
    return SLOPE

class Elementwise(ns.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return value(x)

    @staticmethod
    def backward(ctx, g):
        return g * slope(ctx.saved_tensors[0])
"""


def written(ns, name, end):
    """The Function with an end of its branch in its source."""
    value, slope, _ = FUNCTIONS[name]
    names = {"ns": ns, "__name__": "written"}
    exec(SOURCE.replace("VALUE", value).replace("SLOPE", slope).replace("END", str(end)), names)
    return names["Elementwise"]


def verdict_of(target, shape="9", only=()):
    spec = CheckSpec(target="written", inputs=(parse_input(f"x={shape}"),), inputs_from=InputsFrom.FLAGS)
    return check_object(target, case_of(spec, Settings(order=1, shrink=False, only=only))).verdict


@pytest.mark.sampled(4)
@in_turn("name", FUNCTIONS)
@pytest.mark.parametrize("shape", ["9", "2x4"])
def test_a_threshold_in_the_source_is_crossed(ns, name, shape):
    right, wrong = FUNCTIONS[name][-1]
    assert verdict_of(written(ns, name, right), shape) is Verdict.PASSED
    assert verdict_of(written(ns, name, wrong), shape) is Verdict.FAILED


FAR = {
    "a global": "ns.sigmoid((x - PLACE) / 8)",
    "added": "ns.sigmoid((x + 340) / 8)",
    "in a helper": "rise(x)",
    "an argument": "ns.sigmoid((x - place) / 8)",
}
FAR_SOURCE = """
PLACE = 340

def rise(x):
    return ns.tanh((340.0 - x) / 8)

def value(x, q, place):
    return q * VALUE - 0.2 * x * x

class Far(ns.autograd.Function):
    @staticmethod
    def forward(ctx, x, q, place=340.0):
        ctx.save_for_backward(x, q)
        ctx.place = place
        return value(x, q, place)

    @staticmethod
    def backward(ctx, g):
        x, q = (saved.detach().requires_grad_() for saved in ctx.saved_tensors)
        with ns.enable_grad():
            value(x, q, ctx.place).backward(g)
        return FACTOR, q.grad, None
"""


@pytest.mark.sampled(4)
@in_turn("name", FAR)
def test_a_far_place_at_which_alone_a_function_varies_is_tried(ns, name):
    """Far from it the function is flat to rounding."""
    for factor, verdict in (("x.grad", Verdict.PASSED), ("-0.4 * g * x.detach()", Verdict.FAILED)):
        names = {"ns": ns, "__name__": "written"}
        text = FAR_SOURCE.replace("VALUE", FAR[name]).replace("FACTOR", factor)
        linecache.cache["<far>"] = len(text), None, text.splitlines(keepends=True), "<far>"
        exec(compile(text, "<far>", "exec"), names)
        inputs = (parse_input("x=2x3"), parse_input("q=2x3"))
        spec = CheckSpec(target="written", inputs=inputs, inputs_from=InputsFrom.FLAGS)
        settings = Settings(order=1, shrink=False, samples=1, only=("gradient", "other-inputs"))
        assert check_object(names["Far"], case_of(spec, settings)).verdict is verdict


def in_jax(jax, end):
    jnp = jax.numpy

    @jax.custom_vjp
    def swish(x):
        return x * jnp.clip(x + 3, 0, 6) / 6

    def forward(x):
        return swish(x), x

    def backward(x, g):
        return (g * jnp.where(x >= end, 1.0, jnp.where(x > -3, x / 3 + 0.5, 0.0)),)

    swish.defvjp(forward, backward)
    return swish


def test_the_constants_of_jax_rules_count_too():
    jax = pytest.importorskip("jax")
    verdicts = [verdict_of(in_jax(jax, end), only=("gradient", "other-inputs")) for end in (3.0, 4.0)]
    assert verdicts == [Verdict.PASSED, Verdict.FAILED]
