"""Inputs that nobody chose: a gradient that is wrong at other ordinary values fails; conventions and limits do not."""

import ast
import re
import shlex

import numpy as np
import pytest

import gradcli
from gradcli.cases import CheckSpec, InputsFrom
from gradcli.findings import FindingKind
from gradcli.inputs.flags import parse_input
from gradcli.numerics.regularity import iteration
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.runner.store.failures import load
from gradcli.runner.store.replay import replay
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.checks.other_points.planted import PLANTED, function_of
from tests.pairs import FRAMEWORKS, each_pair
from tests.programs.iterations import NEWTON, bisected, damped, of_damped, of_root

FAR = (
    "softplus, threshold",
    "sinc at zero",
    "quotient at zero",
    "beyond a hundred",
    "series near zero",
    "logarithm, small branch",
    "saturation, large branch",
    "one and a half at one",
)
"""Wrong where no normal draw of a few numbers falls."""
FLAG = re.compile(r"if such values cannot occur in your program, run again with (?P<flag>-i .+)$")


def drawn(target, flag, **options):
    """The result for inputs drawn as a flag says."""
    spec = CheckSpec(target="planted:Planted", inputs=(parse_input(flag),), inputs_from=InputsFrom.FLAGS)
    return check_object(target, case_of(spec, Settings(order=1, **options)))


def planted(ns, name):
    return function_of(ns, PLANTED[name].forward, PLANTED[name].backward)


@pytest.mark.sampled(4)
@each_pair(["backend"], backend=FRAMEWORKS, shape=("4", "3x4"), name=FAR)
def test_what_is_wrong_at_other_ordinary_values_fails_with_its_place(backend, ns, name, shape):
    result = drawn(planted(ns, name), f"x={shape}", samples=1)
    assert result.verdict is Verdict.FAILED
    assert [e.check for e in result.evidence if e.verdict is Verdict.FAILED] == ["other-inputs"]
    (finding,) = result.findings
    assert finding.input == "x"
    assert finding.location is not None
    assert "a value that gradcli tried in addition to the random inputs" in finding.message
    assert not any("not as a failure" in note or "in addition to the random inputs" in note for note in result.notes)
    (smallest,) = result.smallest
    values = np.array(ast.literal_eval(smallest.removeprefix("x = ")))
    assert any(PLANTED[name].wrong(float(v)) for v in values.ravel())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["softplus, threshold", "beyond a hundred", "saturation, large branch"])
def test_the_domain_in_the_message_excuses_it(ns, name):
    (finding,) = drawn(planted(ns, name), "x=4", samples=1).findings
    option, flag = shlex.split(FLAG.search(finding.message)["flag"])
    assert option == "-i"
    assert drawn(planted(ns, name), flag).verdict is Verdict.PASSED


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["ELU, negative branch", "magnitude, sign forgotten", "leaky relu, slope ignored"])
@pytest.mark.usefixtures("unexplained")
def test_positive_inputs_are_not_asked_about_negative_ones(ns, name):
    assert drawn(planted(ns, name), "x=4,domain=positive", shrink=False).verdict is Verdict.PASSED
    assert drawn(planted(ns, name), "x=4", shrink=False).verdict is Verdict.FAILED


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FAR)
def test_where_the_user_gave_the_values_it_is_a_note(backend, ns, name):
    given = ns.tensor(list(PLANTED[name].given), dtype=ns.float64, requires_grad=True)
    (result,) = gradcli.check(planted(ns, name), (given,), order=1, shrink=False).cases
    assert result.verdict is Verdict.PASSED
    assert any("not as a failure" in note for note in result.notes)


def test_inferred_inputs_were_chosen_by_nobody(ns):
    (result,) = gradcli.check(planted(ns, "beyond a hundred"), order=1, shrink=False).cases
    assert result.verdict is Verdict.FAILED
    assert "in addition to the random inputs" in result.findings[0].message


@pytest.mark.sampled(1)
def test_of_two_inputs_the_one_whose_values_were_given_keeps_them(ns):
    class Gated(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, gate):
            ctx.save_for_backward(x, gate)
            return x * ns.where(gate > 50, 2 * gate, gate)

        @staticmethod
        def backward(ctx, g):
            x, gate = ctx.saved_tensors
            return g * ns.where(gate > 50, 2 * gate, gate), g * x

    for given, verdict in (("gate=4,value=[1.0,2.0,3.0,4.0]", Verdict.PASSED), ("gate=4", Verdict.FAILED)):
        inputs = (parse_input("x=4"), parse_input(given))
        spec = CheckSpec(target="planted:Gated", inputs=inputs, inputs_from=InputsFrom.FLAGS)
        result = check_object(Gated, case_of(spec, Settings(order=1)))
        assert result.verdict is verdict
        assert any("not as a failure" in note for note in result.notes) is (verdict is Verdict.PASSED)


def test_a_saved_failure_shows_the_same_again(tmp_path, monkeypatch):
    (tmp_path / "doubled.py").write_text(
        "import gradcli.engine as ns\n"
        "class Doubled(ns.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n"
        "        return ns.where(ns.abs(x) > 9, 2 * x, x * x)\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return 2 * ctx.saved_tensors[0] * g\n"
    )
    monkeypatch.chdir(tmp_path)  # the target's name decides the seed
    target = "doubled.py:Doubled"
    spec = CheckSpec(target=target, inputs=(parse_input("x=3"),), inputs_from=InputsFrom.FLAGS)
    result = check_object(gradcli.runner.case.resolve(target).object, case_of(spec, Settings()), failures=tmp_path)
    assert result.verdict is Verdict.FAILED
    again = replay(load(tmp_path / result.replay.rpartition("/")[2]))
    assert again.verdict is Verdict.FAILED
    # of the one entry that the smallest input has, none is right
    assert result.findings[0].kind is FindingKind.WRONG_ENTRIES
    assert again.findings[0].kind in (FindingKind.WRONG_ENTRIES, FindingKind.WRONG_GRADIENT)
    assert again.findings[0].location.line == result.findings[0].location.line == 9


RIGHT = {
    "relu, zero at zero": (lambda ns, x: ns.clamp(x, min=0.0), lambda ns, x, g: ns.where(x > 0, g, 0.0 * g)),
    "relu, one at zero": (lambda ns, x: ns.clamp(x, min=0.0), lambda ns, x, g: ns.where(x >= 0, g, 0.0 * g)),
    "leaky relu, zero at zero": (
        lambda ns, x: ns.where(x > 0, x, 0.1 * x),
        lambda ns, x, g: ns.where(x > 0, g, 0.0 * g) + ns.where(x < 0, 0.1 * g, 0.0 * g),
    ),
    "magnitude, one at zero": (lambda ns, x: ns.abs(x), lambda ns, x, g: ns.where(x >= 0, g, -g)),
    "magnitude, two at zero": (
        lambda ns, x: ns.abs(x),
        lambda ns, x, g: ns.where(x > 0, g, 0.0 * g) - ns.where(x < 0, g, 0.0 * g) + ns.where(x == 0, 2 * g, 0.0 * g),
    ),
    "norm, not a number at zero": (lambda ns, x: (x * x).sum() ** 0.5, lambda ns, x, g: g * x / (x * x).sum() ** 0.5),
    "norms of entries, guarded": (
        lambda ns, x: (x * x) ** 0.5,
        lambda ns, x, g: g * x / ((x * x) ** 0.5 + (x == 0).to(x.dtype)),
    ),
    "maximum, all ties": (lambda ns, x: x.max(), lambda ns, x, g: g * (x == x.max()).to(x.dtype)),
    "clamp, closed": (
        lambda ns, x: ns.clamp(x, -1.0, 2.0),
        lambda ns, x, g: ns.where((x >= -1) & (x <= 2), g, 0.0 * g),
    ),
    "clamp, open": (lambda ns, x: ns.clamp(x, -1.0, 2.0), lambda ns, x, g: ns.where((x > -1) & (x < 2), g, 0.0 * g)),
    "sigmoid, overflowing": (
        lambda ns, x: 1 / (1 + ns.exp(-x)),
        lambda ns, x, g: g * ns.exp(-x) / (1 + ns.exp(-x)) ** 2,
    ),
    "log of cosh, overflowing": (
        lambda ns, x: ns.log((ns.exp(x) + ns.exp(-x)) / 2),
        lambda ns, x, g: g * ns.tanh(x),
    ),
    "saturated tangent": (lambda ns, x: ns.tanh(x), lambda ns, x, g: g * (1 - ns.tanh(x) ** 2)),
    "saturated tangent, by its formula": (
        lambda ns, x: ns.tanh(x),
        lambda ns, x, g: g * 4 / (ns.exp(x) + ns.exp(-x)) ** 2,
    ),
    "softplus, cut": (
        lambda ns, x: ns.where(x > 20, x, ns.log(1 + ns.exp(ns.clamp(x, max=20.0)))),
        lambda ns, x, g: ns.where(x > 20, g, g * ns.sigmoid(x)),
    ),
    "logarithm": (lambda ns, x: ns.log(x), lambda ns, x, g: g / x),
    "cube root, infinite slope at zero": (
        lambda ns, x: ns.sign(x) * ns.abs(x) ** (1 / 3),
        lambda ns, x, g: g / (3 * ns.abs(x) ** (2 / 3)),
    ),
    "magnitude by a quotient": (lambda ns, x: ns.abs(x), lambda ns, x, g: g * x / ns.abs(x)),
    "root": (lambda ns, x: ns.sqrt(x), lambda ns, x, g: g / (2 * ns.sqrt(x))),
    "softmax": (
        lambda ns, x: ns.softmax(x, -1),
        lambda ns, x, g: ns.softmax(x, -1) * (g - (g * ns.softmax(x, -1)).sum(-1, keepdim=True)),
    ),
    "floor": (lambda ns, x: ns.floor(x) * x, lambda ns, x, g: g * ns.floor(x)),
    "a root in nine steps": (NEWTON, of_root(NEWTON)),
    "a root between ten and minus ten": (bisected, of_root(bisected)),
    "a fixed point": (damped, of_damped),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("forward", [NEWTON, bisected], ids=["Newton", "bisection"])
@pytest.mark.usefixtures("unexplained")
def test_an_iteration_written_in_another_folder_is_no_licence_for_a_wrong_gradient(backend, ns, forward):
    wrong = function_of(ns, forward, lambda ns, x, g: 1.01 * of_root(forward)(ns, x, g))
    result = drawn(wrong, "x=5", samples=1, shrink=False)
    assert result.verdict is Verdict.FAILED


@pytest.mark.sampled(11)
@each_pair(["backend"], backend=FRAMEWORKS, shape=("1", "5", "3x7"), name=RIGHT)
def test_conventions_limits_and_rounding_fail_nothing(backend, ns, name, shape):
    forward, backward = RIGHT[name]
    domain = ",domain=positive" if name in ("logarithm", "root") else ""
    result = drawn(function_of(ns, forward, backward), f"x={shape}{domain}", samples=2)
    assert result.verdict in (Verdict.PASSED, Verdict.INCONCLUSIVE), result.findings
    assert not any(e.check == "other-inputs" and e.verdict is not Verdict.PASSED for e in result.evidence)


@pytest.mark.sampled(1)
def test_a_fixed_number_of_steps_that_does_not_converge_is_told_in_a_note(ns):
    forward, backward = RIGHT["a root between ten and minus ten"]
    result = drawn(function_of(ns, forward, backward), "x=5", samples=1)
    assert result.verdict is Verdict.PASSED
    notes = [note for note in result.notes if "at inputs that gradcli chose, " in note]
    assert all("may not have converged" in note for note in notes)


@pytest.mark.sampled(1)
def test_a_loop_over_entries_is_no_iteration(ns):
    def forward(ns, x):
        return ns.stack([ns.where(x[i] > 60, 3 * x[i], x[i] * x[i]) for i in range(x.shape[0])])

    result = drawn(function_of(ns, forward, lambda ns, x, g: 2 * x * g), "x=6", samples=1, shrink=False)
    assert result.verdict is Verdict.FAILED
    assert result.findings[0].kind in (FindingKind.WRONG_ENTRIES, FindingKind.WRONG_GRADIENT)


OVERFLOWING = {
    "nan": (
        lambda ns, x: ns.sigmoid(x),
        lambda ns, x, g: g * ns.exp(-x) / (1 + ns.exp(-x)) ** 2,
        lambda ns, x, g: g * ns.sigmoid(x) * ns.sigmoid(-x),
    ),
    "nan, as that of autodiff": (
        lambda ns, x: 2 / (1 + ns.exp(-2 * x)) - 1,
        lambda ns, x, g: 4 * g / (1 + ns.exp(-2 * x)) ** 2 * ns.exp(-2 * x),
        lambda ns, x, g: g * (1 - ns.tanh(x) ** 2),
    ),
    "inf": (
        lambda ns, x: ns.abs(x) + ns.exp(-ns.abs(x)),
        lambda ns, x, g: ns.sign(x) * (g - g / ns.exp(ns.abs(x)) + 0 * ns.exp(ns.abs(x))),
        lambda ns, x, g: ns.sign(x) * (g - g * ns.exp(-ns.abs(x))),
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OVERFLOWING)
def test_a_backward_that_overflows_at_large_numbers_is_told_in_a_note(ns, name):
    forward, overflowing, stable = OVERFLOWING[name]
    result = drawn(function_of(ns, forward, overflowing), "x=3x4", samples=1)
    assert result.verdict is Verdict.PASSED
    (note,) = (note for note in result.notes if "probably because of overflow" in note)
    flags = shlex.split(note.rpartition("run with ")[2])
    given = CheckSpec(target="a:B", inputs=(parse_input(flags[1]),), inputs_from=InputsFrom.FLAGS)
    failing = check_object(function_of(ns, forward, overflowing), case_of(given, Settings(order=1, samples=1)))
    assert [found.kind for found in failing.findings][:1] == [FindingKind.NON_FINITE_GRADIENT]
    calm = drawn(function_of(ns, forward, stable), "x=3x4", samples=1)
    assert calm.verdict is Verdict.PASSED
    assert not any("overflow" in note for note in calm.notes)


def shrunk_by_a_limit(ns, *, is_right):
    """x as it is within the limit, halfway beyond it, and zero where the limit is below minus the norm of x."""

    class Shrunk(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, limit):
            ctx.save_for_backward(x, limit)
            norm = (x * x).sum().sqrt()
            inside = ns.where(norm <= limit, x, 0.5 * (x + limit * x / norm))
            return ns.where(norm <= -limit, 0 * x, inside)

        @staticmethod
        def backward(ctx, g):
            x, limit = ctx.saved_tensors
            norm = (x * x).sum().sqrt()
            unit, along = x / norm, (g * x).sum() / norm
            of_x = ns.where(norm <= limit, g, 0.5 * (g + limit / norm * (g - along * unit)))
            of_limit = ns.where(norm <= limit, 0 * along, 0.5 * along)
            if is_right:
                of_x, of_limit = (ns.where(norm <= -limit, 0 * each, each) for each in (of_x, of_limit))
            return of_x, of_limit

    return Shrunk


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.usefixtures("unexplained")
def test_one_input_alone_is_large_and_negative(backend, ns, is_right):
    inputs = (parse_input("x=9"), parse_input("limit=scalar"))
    spec = CheckSpec(target="planted:Planted", inputs=inputs, inputs_from=InputsFrom.FLAGS)
    settings = Settings(order=1, shrink=False, only=("gradient", "other-inputs"))
    result = check_object(shrunk_by_a_limit(ns, is_right=is_right), case_of(spec, settings))
    wrong = {e.check for e in result.evidence if e.verdict is Verdict.FAILED}
    assert wrong == (set() if is_right else {"other-inputs"})
    assert result.verdict is (Verdict.PASSED if is_right else Verdict.FAILED)


def beyond_a_cuboid(ns, *, is_right):
    """How far a point is outside a cuboid; within it, minus the product of how far it is from each face."""

    class Beyond(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, halves):
            ctx.save_for_backward(x, halves)
            q = ns.abs(x) - halves
            outside = ns.where(q > 0, q, 0 * q)
            within = (q < 0).all(-1)
            return (outside * outside).sum(-1) + ns.where(within, q[:, 0] * q[:, 1] * q[:, 2], 0 * q[:, 0])

        @staticmethod
        def backward(ctx, g):
            x, halves = ctx.saved_tensors
            q = ns.abs(x) - halves
            of_q = 2 * ns.where(q > 0, q, 0 * q)
            if is_right:
                product = ns.stack([q[:, 1] * q[:, 2], q[:, 0] * q[:, 2], q[:, 0] * q[:, 1]], -1)
                of_q = of_q + ns.where((q < 0).all(-1)[:, None], product, 0 * q)
            of_q = g[:, None] * of_q
            return of_q * ns.sign(x), -of_q.sum(0)

    return Beyond


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.usefixtures("unexplained")
def test_all_entries_of_one_input_alone_are_large_and_positive(backend, ns, is_right):
    inputs = (parse_input("x=4x3"), parse_input("halves=3"))
    spec = CheckSpec(target="planted:Planted", inputs=inputs, inputs_from=InputsFrom.FLAGS)
    settings = Settings(order=1, shrink=False, samples=1, only=("gradient", "other-inputs"))
    result = check_object(beyond_a_cuboid(ns, is_right=is_right), case_of(spec, settings))
    wrong = {e.check for e in result.evidence if e.verdict is Verdict.FAILED}
    assert wrong == (set() if is_right else {"other-inputs"})


def folded(ns, factor):
    """x times |x| folded into [0, 1], in as many steps as that takes."""

    def fold(y):
        while bool((y > 1).any()):
            y = ns.where(y > 1, 2 - y, y).abs()
        return y

    class Folded(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (fold(x.clone()) * x).sum()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with ns.enable_grad():
                z = x.detach().requires_grad_()
                (d,) = ns.autograd.grad((fold(z) * z).sum(), z)
            return g * d * factor

    return Folded


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.001, Verdict.FAILED)])
def test_no_domain_is_advised_whose_values_were_not_decided(ns, factor, verdict, monkeypatch):
    monkeypatch.setattr(iteration, "_is_exact", lambda _: False)
    result = drawn(folded(ns, factor), "x=3")
    assert result.verdict is verdict
    for finding in result.findings:
        assert "for which the comparison was inconclusive" in finding.message
        assert "cannot occur" not in finding.message
