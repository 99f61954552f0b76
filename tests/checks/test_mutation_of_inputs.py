"""Inputs that forward updates in place: buffers are noted, others fail unless that is allowed, with a reason."""

import importlib
import json
from dataclasses import replace

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.errors import UsageError
from gradcli.findings import FindingKind
from gradcli.runner.case import run_case
from gradcli.runner.planning.gather import gather
from gradcli.runner.planning.plan import plan
from gradcli.runner.store.failures import load
from gradcli.runner.store.replay import replay
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.checks.frameworks import examined, tensor

REASON = "the kernel hands its logits over"
ALLOWED = {"mutates-input": REASON}
X = tensor("x", [[0.5, -1.5, 2.0], [0.25, 1.0, -0.75]])


def updating(ns, update, factor=1.0):
    """x² by a forward that updates another input."""

    class Updating(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, state):
            ctx.save_for_backward(x)
            with ns.no_grad():
                update(ns, x, state)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return factor * 2 * g * x, None

    return Updating


def _set(state, value):
    state[...] = value


BUFFERS = {
    "running mean": lambda ns, x, state: state.mul_(0.9).add_(0.1 * x.mean(0)),
    "running variance": lambda ns, x, state: state.mul_(0.9).add_(0.1 * x.var(0)),
    "largest seen": lambda ns, x, state: state.copy_(ns.maximum(state, x.abs().amax(0))),
    "a counter": lambda ns, x, state: state.add_(1.0),
    "a workspace": lambda ns, x, state: _set(state, x[0] * 3),
    "one entry": lambda ns, x, state: state[0].add_(x.sum()),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("update", BUFFERS.values(), ids=BUFFERS.keys())
def test_a_buffer_is_noted_and_the_gradient_is_judged(backend, ns, update):
    state = tensor("state", [1.0, 2.0, 0.5], grad=False)
    verdict, evidence, findings = examined(backend, updating(ns, update), X, state)
    assert verdict is Verdict.PASSED, findings
    note = next(e.note for e in evidence if e.check == "forward")
    assert note.startswith(
        "state is changed in place by forward; this is reported only as a note, not as a failure, because "
        "state requires no gradient"
    )

    verdict, _, findings = examined(backend, updating(ns, update, 1.5), X, state)
    assert verdict is Verdict.FAILED
    assert [(f.kind, f.input) for f in findings] == [(FindingKind.WRONG_FACTOR, "x")]


@pytest.mark.parametrize("update", BUFFERS.values(), ids=BUFFERS.keys())
def test_one_that_requires_a_gradient_fails(backend, ns, update):
    verdict, _, findings = examined(backend, updating(ns, update), X, tensor("state", [1.0, 2.0, 0.5]))
    assert verdict is Verdict.FAILED
    assert [(f.kind, f.input) for f in findings] == [(FindingKind.MUTATES_INPUT, "state")]


@pytest.mark.parametrize(
    ("domain", "flag"),
    [
        ("normal", "-i state=3,grad=false"),
        ("positive", "-i state=3,domain=positive,grad=false"),
        ("open-interval(0.5, 2.5)", "-i state=3,domain=open-interval,lo=0.5,hi=2.5,grad=false"),
        (None, "give it without requires_grad"),
    ],
)
def test_the_flag_that_excuses_it_is_offered(backend, ns, domain, flag):
    state = replace(tensor("state", [1.0, 2.0, 0.5]), domain=domain)
    _, _, findings = examined(backend, updating(ns, BUFFERS["a counter"]), X, state)
    assert "backward returns None for state: if it is a buffer without a gradient" in findings[0].hint
    assert flag in findings[0].hint


def test_no_flag_is_offered_for_what_gets_a_gradient(backend, ns):
    class Both(updating(ns, BUFFERS["a counter"])):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x, g.sum(0) * 0

    verdict, _, findings = examined(backend, Both, X, tensor("state", [1.0, 2.0, 0.5]))
    assert verdict is Verdict.FAILED
    assert findings[0].hint is None


def test_a_buffer_that_backward_writes_into_is_noted(backend, ns):
    class Counting(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, count):
            ctx.count = count
            return x * 2

        @staticmethod
        def backward(ctx, g):
            with ns.no_grad():
                ctx.count.add_(1.0)
            return 2 * g, None

    verdict, evidence, _ = examined(backend, Counting, X, tensor("count", [0.0], grad=False), order=1)
    assert verdict is Verdict.PASSED
    notes = [e.note for e in evidence if e.check == "mutation"]
    assert notes[0].startswith(
        "count is changed in place by backward; this is reported only as a note, not as a failure, because "
        "count requires no gradient"
    )
    verdict, _, findings = examined(backend, Counting, X, tensor("count", [0.0]), order=1)
    assert verdict is Verdict.FAILED
    assert FindingKind.MUTATES_INPUT in {f.kind for f in findings}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("update", BUFFERS.values(), ids=BUFFERS.keys())
def test_an_inferred_buffer_takes_no_gradient(ns, update):
    class Layer(updating(ns, update)):
        @staticmethod
        def forward(ctx, x, running_mean):
            ctx.save_for_backward(x)
            with ns.no_grad():
                update(ns, x, running_mean)
            return x * x

    case = gradcli.check(Layer, shrink=False).cases[0]
    assert case.verdict is Verdict.PASSED, case.findings
    assert [(spec.name, spec.requires_grad) for spec in case.inputs] == [("x", None), ("running_mean", False)]


def test_an_inferred_input_that_forward_doubles_in_place_is_no_buffer(ns):
    class Doubling(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x)
            with ns.no_grad():
                w.mul_(2)
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    case = gradcli.check(Doubling, shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED


def handed_over(ns, overwrite, forward, backward):
    """A loss of one input whose kernel leaves what backward needs in the input's memory."""
    once = importlib.import_module(f"{ns.__name__}.autograd.function").once_differentiable

    class HandedOver(ns.autograd.Function):
        @staticmethod
        def forward(ctx, logits):
            loss = forward(ns, logits)
            with ns.no_grad():
                logits.copy_(overwrite(ns, logits))
            ctx.save_for_backward(logits)
            return loss

        @staticmethod
        @once
        def backward(ctx, g):
            return backward(ns, ctx.saved_tensors[0], g)

    return HandedOver


HANDED = {
    "softmax": (
        lambda ns, x: ns.softmax(x, -1),
        lambda ns, x: ns.logsumexp(x, -1).sum(),
        lambda ns, kept, g: g * kept,
    ),
    "sigmoid": (
        lambda ns, x: ns.sigmoid(x),
        lambda ns, x: ns.sigmoid(x) * 2,
        lambda ns, kept, g: 2 * g * kept * (1 - kept),
    ),
    "square": (lambda ns, x: 2 * x, lambda ns, x: x * x, lambda ns, kept, g: g * kept),
    "exp": (lambda ns, x: x.exp(), lambda ns, x: x.exp() + 1, lambda ns, kept, g: g * kept),
    "tanh": (lambda ns, x: x.tanh(), lambda ns, x: x.tanh().sum(0), lambda ns, kept, g: g * (1 - kept * kept)),
    "cosine": (lambda ns, x: x.cos(), lambda ns, x: x.sin(), lambda ns, kept, g: g * kept),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("parts", HANDED.values(), ids=HANDED.keys())
def test_logits_handed_over_fail_unless_that_is_allowed(ns, parts):
    overwrite, forward, backward = parts
    given = ns.tensor([[0.5, -1.5, 2.0], [0.25, 1.0, -0.75]], dtype=ns.float64, requires_grad=True)
    function = handed_over(ns, overwrite, forward, backward)
    case = gradcli.check(function, (given,), shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED
    assert [(f.kind, f.input) for f in case.findings] == [(FindingKind.MUTATES_INPUT, case.inputs[0].name)]

    case = gradcli.check(function, (given,), allow=ALLOWED, shrink=False).cases[0]
    assert case.verdict is Verdict.PASSED, case.findings
    assert any(f"[mutates-input, allowed: {REASON}]" in note for note in case.notes)

    wrong = handed_over(ns, overwrite, forward, lambda ns, kept, g: 1.01 * backward(ns, kept, g))
    case = gradcli.check(wrong, (given,), allow=ALLOWED, shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED
    assert [f.kind for f in case.findings] == [FindingKind.WRONG_FACTOR]


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(("scale", "of_total"), [(1.0, 1.0), (1.01, 1.0), (1.0, 1.01)])
def test_what_is_added_to_an_input_marked_dirty_has_its_gradient_in_any_layout(ns, scale, of_total, hidden):
    class Accumulate(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, total):
            ctx.save_for_backward(x)
            ctx.mark_dirty(total)
            total.add_((x.detach() if hidden else x).sin())
            return total

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return scale * g * x.cos(), of_total * g

    given = tuple(ns.tensor(0.25 * np.arange(1.0, 7).reshape(2, 3) - k, requires_grad=True) for k in (0, 1))
    case = gradcli.check(Accumulate, given, order=1, shrink=False).cases[0]
    wrong = [name for name, factor in (("x", scale), ("total", of_total)) if factor != 1]
    assert [f.input for f in case.findings] == wrong
    assert {f.kind for f in case.findings} <= {FindingKind.WRONG_FACTOR}
    assert case.verdict is (Verdict.FAILED if wrong else Verdict.PASSED)


ANY = {
    "wrong-factor": lambda x, g: 1.5 * g * x,
    "wrong-sign": lambda x, g: -2 * g * x,
    "missing-gradient": lambda x, g: None,
    "ignores-grad-output": lambda x, g: 2 * x,
    "nonlinear-backward": lambda x, g: 2 * g.clamp(-0.6, 0.6) * x,
    "mutates-grad-output": lambda x, g: g.mul_(2 * x),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "backward"), ANY.items(), ids=ANY.keys())
def test_any_finding_may_be_allowed_and_only_that_one(ns, name, backward):
    class Square(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return backward(ctx.saved_tensors[0], g)

    given = (ns.tensor([0.5, -1.5, 2.0], dtype=ns.float64, requires_grad=True),)
    names = {f.kind.value for f in gradcli.check(Square, given, order=1, shrink=False).cases[0].findings}
    assert name in names
    allowed = dict.fromkeys([name], "by design")
    while True:
        case = gradcli.check(Square, given, order=1, allow=allowed, shrink=False).cases[0]
        more = {f.kind.value for f in case.findings} - set(allowed)
        if case.verdict is not Verdict.FAILED:
            break
        assert more, case.findings
        allowed |= dict.fromkeys(more, "by design")
    assert any(f"[{name}, allowed: by design]" in note for note in case.notes)
    other = "transposed"
    assert gradcli.check(Square, given, order=1, allow={other: "by design"}, shrink=False).verdict is Verdict.FAILED


def test_names_and_reasons_from_python_are_held_to_account():
    function = updating(engine, BUFFERS["a counter"])
    with pytest.raises(UsageError, match=r"allow: there is no finding 'mutate-input'; did you mean 'mutates-input'\?"):
        gradcli.check(function, allow=["mutate-input"], shrink=False)
    with pytest.raises(UsageError, match="expected the reason for which 'stateful' is allowed"):
        gradcli.check(function, allow={"stateful": ""}, shrink=False)
    given = tuple(engine.tensor(v, requires_grad=True) for v in (np.ones((2, 3)) * 0.5, np.ones(3)))
    report = gradcli.check(function, given, allow=["mutates-input"], shrink=False)
    assert report.verdict is Verdict.PASSED
    assert any("[mutates-input, allowed: as the caller asked]" in note for note in report.cases[0].notes)


PROGRAM = """
from gradcli import engine


class Kernel(engine.autograd.Function):
    @staticmethod
    def forward(ctx, logits):
        loss = engine.logsumexp(logits, -1).sum()
        with engine.no_grad():
            logits.copy_(engine.softmax(logits, -1))
        ctx.save_for_backward(logits)
        return loss

    @staticmethod
    @engine.autograd.function.once_differentiable
    def backward(ctx, g):
        return FACTOR * g * ctx.saved_tensors[0]
"""


def test_a_spec_allows_and_a_failure_beside_it_is_replayed_with_that(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(PROGRAM.replace("FACTOR", "1"))
    (tmp_path / "wrong.py").write_text(PROGRAM.replace("FACTOR", "3"))
    inputs = "cases: [{inputs: {logits: {shape: [2, 3]}}}]\n"
    for name, allow, expected in (
        ("kernel", "", "failed"),
        ("kernel", f"allow: {{mutates-input: {REASON}}}\n", "passed"),
        ("kernel", f"allow: [mutates-input]\nreason: {REASON}\n", "passed"),
        ("kernel", "allow: {mutates-saved: another}\n", "failed"),
        ("wrong", f"allow: {{mutates-input: {REASON}}}\n", "failed"),
    ):
        (tmp_path / "spec.yaml").write_text(f"target: {name}.py:Kernel\n{allow}{inputs}")
        report = gradcli.check("spec.yaml")
        assert report.verdict.value == expected, (name, allow)
        document = json.loads(json.dumps(report.to_dict()))
        assert (REASON in str(document["cases"][0]["notes"])) == ("mutates-input" in allow)


def test_what_is_allowed_is_saved_with_a_failure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong_kernel.py").write_text(PROGRAM.replace("FACTOR", "3"))
    (tmp_path / "spec.yaml").write_text(f"target: wrong_kernel.py:Kernel\nallow: {{mutates-input: {REASON}}}\n")
    (planned,) = plan(gather(["spec.yaml"]), Settings())
    case = run_case(planned, failures=tmp_path / "failures")
    assert [f.kind for f in case.findings] == [FindingKind.WRONG_FACTOR]
    failure = load(tmp_path / case.replay)
    assert failure.allow == (("mutates-input", REASON),)
    assert [f.kind for f in replay(failure).findings] == [FindingKind.WRONG_FACTOR]
