"""A backward or jvp that raises gives nobody a wrong number; one that is silently wrong does."""

import importlib
import json

import numpy as np
import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests import warm
from tests.checks.frameworks import examined, tensor

X = tensor("x", [0.5, -1.5, 2.0])


@pytest.fixture
def cli(tmp_path):
    """Run the command in a process of its own, in a folder of the test's own."""

    def run(*arguments):
        return warm.run(arguments, tmp_path)

    return run


def cubed(ns, slope):
    """x³ with 3x² by `slope` of the framework and x."""

    class Cubed(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * slope(ns, x)

    return Cubed


def refusing(ns, x):
    """3x² by a Function that cannot be differentiated itself."""

    class Slope(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 3 * x * x

        @staticmethod
        def backward(ctx, g):
            raise NotImplementedError("the derivative of the kernel is not implemented")

    return Slope.apply(x)


def misshapen(ns, x):
    """3x² by a Function whose own backward returns the wrong shape, which the framework refuses."""

    class Slope(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 3 * x * x

        @staticmethod
        def backward(ctx, g):
            return g[:2]

    return Slope.apply(x)


def once(ns, x):
    """3x² by a Function that may be differentiated, but not backward's own pass."""
    marked = importlib.import_module(f"{ns.__name__}.autograd.function").once_differentiable

    class Slope(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 3 * x * x

        @staticmethod
        @marked
        def backward(ctx, g):
            raise RuntimeError("called")

    return Slope.apply(x)


LOUD = {
    "NumPy on a tensor that requires a gradient": lambda ns, x: ns.tensor(3 * x.numpy() ** 2),
    "a kernel without a derivative": refusing,
    "an inner gradient of the wrong shape": misshapen,
    "a kernel that is marked once differentiable, and raises": once,
    "an assertion on the graph": lambda ns, x: 3 * x**2 if not x.requires_grad or not ns.is_grad_enabled() else 1 / 0,
    "a write into a leaf's view": lambda ns, x: _written(ns, x),
}
SILENT = {
    "detached": lambda ns, x: 3 * x.detach() ** 2,
    "half detached": lambda ns, x: 3 * x * x.detach(),
    "data": lambda ns, x: 3 * x.data**2,
    "NumPy of a detached tensor": lambda ns, x: ns.tensor(3 * x.detach().numpy() ** 2),
    "Python numbers": lambda ns, x: ns.tensor([3 * v * v for v in x.tolist()], dtype=x.dtype),
    "no grad": lambda ns, x: _without_graph(ns, x),
}


def _written(ns, x):
    if ns.is_grad_enabled():
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    return 3 * x**2


def _without_graph(ns, x):
    with ns.no_grad():
        return 3 * x**2


@pytest.mark.parametrize("slope", LOUD.values(), ids=LOUD.keys())
def test_a_backward_that_raises_when_differentiated_fails_only_where_that_was_asked_for(backend, ns, slope):
    verdict, evidence, findings = examined(backend, cubed(ns, slope), X)
    assert verdict is Verdict.PASSED, findings
    (noted,) = [e for e in evidence if e.check == "higher-order"]
    assert noted.verdict is Verdict.SKIPPED
    assert noted.note.startswith("only order 1 was checked: backward raises when it is differentiated")

    verdict, _, findings = examined(backend, cubed(ns, slope), X, order_asked=True)
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [FindingKind.NOT_TWICE_DIFFERENTIABLE]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("slope", SILENT.values(), ids=SILENT.keys())
@pytest.mark.parametrize("asked", [False, True], ids=["by default", "asked for"])
def test_one_that_is_silently_cut_fails_in_any_case(backend, ns, slope, asked):
    verdict, _, findings = examined(backend, cubed(ns, slope), X, order_asked=asked)
    assert verdict is Verdict.FAILED
    kinds = {FindingKind.NOT_TWICE_DIFFERENTIABLE, FindingKind.WRONG_SECOND_ORDER}
    assert {finding.kind for finding in findings} <= kinds


def test_a_right_second_order_passes_and_a_wrong_first_one_fails_whatever_is_asked_for(backend, ns):
    for asked in (False, True):
        verdict, evidence, _ = examined(backend, cubed(ns, lambda ns, x: 3 * x**2), X, order_asked=asked)
        assert verdict is Verdict.PASSED
        assert 2 in {e.order for e in evidence}
        verdict, _, findings = examined(backend, cubed(ns, lambda ns, x: 2 * refusing(ns, x)), X, order_asked=asked)
        assert verdict is Verdict.FAILED
        assert [finding.kind for finding in findings] == [FindingKind.WRONG_FACTOR]


def test_python_asks_by_giving_an_order(ns):
    loud = cubed(ns, LOUD["a kernel without a derivative"])
    x = (ns.tensor([0.5, -1.5], dtype=ns.float64, requires_grad=True),)
    by_default, asked = gradcli.check(loud, x, shrink=False), gradcli.check(loud, x, order=2, shrink=False)
    assert (by_default.verdict, asked.verdict) == (Verdict.PASSED, Verdict.FAILED)
    assert any("only order 1 was checked" in note for note in by_default.cases[0].notes)
    assert by_default.cases[0].orders == (1,)
    assert gradcli.check(loud, x, order=1, shrink=False).verdict is Verdict.PASSED


PROGRAM = """
from gradcli import engine


class Slope(engine.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 3 * x * x

    @staticmethod
    def backward(ctx, g):
        raise NotImplementedError("later")


class Cube(engine.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * Slope.apply(x)
"""


@pytest.mark.parametrize(
    ("flags", "spec", "expected"),
    [
        ([], "", 0),
        (["--order", "2"], "", 1),
        (["--order", "1"], "", 0),
        ([], "defaults: {order: 2}\n", 1),
        ([], "defaults: {order: 1}\n", 0),
        ([], "cases: [{order: 2, inputs: {x: {shape: [3]}}}]\n", 1),
    ],
)
def test_the_command_and_a_spec_ask_by_giving_an_order(cli, tmp_path, flags, spec, expected):
    (tmp_path / "cube.py").write_text(PROGRAM)
    (tmp_path / "cube.yaml").write_text(f"target: cube.py:Cube\n{spec}")
    assert cli("check", "cube.yaml", *flags, "--format", "json").returncode == expected


def test_a_replay_asks_for_what_the_run_asked_for(cli, tmp_path):
    (tmp_path / "cube.py").write_text(PROGRAM)
    document = json.loads(cli("check", "cube.py:Cube", "--order", "2", "--format", "json").stdout)
    assert cli("replay", document["cases"][0]["replay"]).returncode == 1


def with_jvp(ns, rule, outputs=1):
    class Powers(ns.autograd.Function):
        @staticmethod
        def forward(x, w):
            return (x * w, x * x)[:outputs] if outputs > 1 else x * w

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, *gs):
            x, w = ctx.saved_tensors
            extra = 2 * gs[1] * x if outputs > 1 else 0
            return gs[0] * w + extra, gs[0] * x

        jvp = staticmethod(rule)

    return Powers


def documented(ctx, dx, dw):
    """To be written."""


def passing(ctx, dx, dw):
    pass


def returning_none(ctx, dx, dw):
    return None


def not_implemented(ctx, dx, dw):
    raise NotImplementedError


def raising(ctx, dx, dw):
    raise ValueError("no forward mode here")


def misspelt(ctx, dx, dw):
    return dx * ctx.weights


def zeros(ctx, dx, dw):
    x = ctx.saved_tensors[0]
    return (dx * 0, 2 * x * dx)


def forgetful(ctx, dx, dw):
    x, w = ctx.saved_tensors
    return dx * w, 2 * x * dx


def second_none(ctx, dx, dw):
    x, w = ctx.saved_tensors
    return dx * w + x * dw, None


NO_JVP = [documented, passing, returning_none, not_implemented, raising, misspelt]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("rule", NO_JVP, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_jvp_that_is_none_or_raises_is_a_note(backend, ns, rule, outputs):
    function = with_jvp(ns, rule, outputs)
    verdict, evidence, findings = examined(backend, function, X, tensor("w", [1.5, 0.25, -2.0]), order=1)
    assert verdict is Verdict.PASSED, findings
    (noted,) = [e for e in evidence if e.check == "forward-mode"]
    assert noted.verdict is Verdict.PASSED
    assert noted.note.startswith("forward mode was not checked: jvp")


@pytest.mark.parametrize("rule", [zeros, forgetful, second_none], ids=lambda rule: rule.__name__)
def test_a_jvp_that_gives_wrong_numbers_fails(backend, ns, rule):
    function = with_jvp(ns, rule, 2)
    verdict, _, findings = examined(backend, function, X, tensor("w", [1.5, 0.25, -2.0]), order=1)
    if rule is second_none and backend.name == "torch":  # which raises for a tangent that is None
        assert verdict is Verdict.PASSED
        return
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [FindingKind.JVP_MISMATCH]


def test_a_jvp_that_raises_for_one_input_is_compared_for_the_other(backend, ns):
    def rule(ctx, dx, dw, factor=1.0):
        x = ctx.saved_tensors[0]
        if bool((dx != 0).any()):
            raise ValueError("by x later")
        return factor * x * dw

    w = tensor("w", [1.5, 0.25, -2.0])
    verdict, evidence, _ = examined(backend, with_jvp(ns, rule), X, w, order=1)
    assert verdict is Verdict.PASSED
    assert [e.note for e in evidence if e.check == "forward-mode"] == [
        "forward mode with a tangent for x was not checked: jvp raised ValueError: by x later"
    ]
    wrong = with_jvp(ns, lambda ctx, dx, dw: rule(ctx, dx, dw, 2.0))
    verdict, _, findings = examined(backend, wrong, X, w, order=1)
    assert verdict is Verdict.FAILED
    assert [(finding.kind, finding.input) for finding in findings] == [(FindingKind.JVP_MISMATCH, "w")]


def test_another_subset_or_layout_that_raises_is_an_ordinary_call_and_fails(backend, ns):
    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            if not all(ctx.needs_input_grad):
                raise RuntimeError("both gradients are needed")
            return g * w, g * x

    verdict, _, findings = examined(backend, Product, X, tensor("w", [1.5, 0.25, -2.0]), order=1)
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [FindingKind.NEEDS_INPUT_GRAD]

    class Flat(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return (2 * g.view(-1)).view(g.shape)

    matrix = tensor("x", np.arange(6.0).reshape(2, 3))
    verdict, _, findings = examined(backend, Flat, matrix, order=1)
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [FindingKind.NON_CONTIGUOUS]
