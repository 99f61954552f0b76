"""Memory: the graph of a call goes away with its result, unless somebody keeps it."""

import functools
import gc
import inspect
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import gradcli
from gradcli.checks.battery import run_battery
from gradcli.findings import FindingKind
from gradcli.settings import Settings
from gradcli.tolerance import gradcheck
from gradcli.verdict import Verdict
from tests.checks.frameworks import examined, tensor
from tests.programs.functions import TABLE, arguments

X = tensor("x", [0.5, -1.25, 0.75])


@dataclass
class Record:
    """Something that holds a tensor."""

    value: object


def exponential(ns, keep):
    class Exponential(ns.autograd.Function):
        calls: ClassVar = []
        latest: ClassVar = {}

        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            kept = keep(ctx, x, y)
            return y if kept is None else kept

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    return Exponential


def setting(of):
    def keep(ctx, x, y):
        ctx.result = of(x, y)

    return keep


ON_CTX = {
    "itself": lambda x, y: y,
    "in a tuple": lambda x, y: (x, y),
    "in a dict of lists": lambda x, y: {"outputs": [y]},
    "in a closure": lambda x, y: lambda g: g * y,
    "in a partial": lambda x, y: functools.partial(max, y),
    "in a record": lambda x, y: Record(y),
    "in a method": lambda x, y: Record(y).__eq__,
    "as a default": lambda x, y: lambda g, y=y: g * y,
}


@pytest.mark.parametrize("of", ON_CTX.values(), ids=ON_CTX.keys())
def test_an_output_kept_on_ctx_leaks(backend, ns, of):
    verdict, evidence, findings = examined(backend, exponential(ns, setting(of)), X)
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [FindingKind.LEAKS_MEMORY]
    assert findings[0].message.startswith("ctx.result holds an output of forward")
    assert [e.check for e in evidence if e.verdict is Verdict.FAILED] == ["memory"]


def test_the_line_is_the_one_that_keeps_it(backend, ns):
    class Exponential(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.result = y  # here
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.result.detach()

    _, _, findings = examined(backend, Exponential, X, only=("memory",))
    lines, first = inspect.getsourcelines(Exponential)
    wanted = first + next(number for number, line in enumerate(lines) if line.endswith("# here\n"))
    assert [finding.location.line for finding in findings] == [wanted]


def on_class(ctx, x, y):
    type(ctx)._forward_cls.calls.append(y)


def by_shape(ctx, x, y):
    type(ctx)._forward_cls.latest[y.shape] = y


def context_itself(ctx, x, y):
    type(ctx)._forward_cls.calls[:] = [ctx]


OUTSIDE = {"a list on the class": on_class, "a dict keyed by shape": by_shape, "ctx itself": context_itself}


@pytest.mark.parametrize("keep", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_what_outlives_the_call_and_keeps_its_graph_leaks(backend, ns, keep):
    verdict, _, findings = examined(backend, exponential(ns, keep), X)
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [FindingKind.LEAKS_MEMORY]
    assert "another object that outlives the call" in findings[0].message


KEPT_OUTPUTS = {}


def test_a_module_level_dict_of_last_outputs_leaks(backend, ns):
    def keep(ctx, x, y):
        KEPT_OUTPUTS[tuple(y.shape)] = y

    verdict, _, findings = examined(backend, exponential(ns, keep), X)
    KEPT_OUTPUTS.clear()
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [FindingKind.LEAKS_MEMORY]


def detached_on_class(ctx, x, y):
    type(ctx)._forward_cls.latest["last"] = y.detach()


def table_on_class(ctx, x, y):
    type(ctx)._forward_cls.latest.setdefault("table", [1.0, 2.0, 3.0])


def recursive(ctx, x, y):
    def depth(n):
        return y if n == 0 else depth(n - 1)

    ctx.depth = 3
    depth(ctx.depth)


def another_tensor(ctx, x, y):
    ctx.other = y.clone()
    ctx.x = x


HARMLESS = {
    "nothing": lambda ctx, x, y: None,
    "a detached output on the class": detached_on_class,
    "a table on the class": table_on_class,
    "a function that calls itself": recursive,
    "the input and a copy on ctx": another_tensor,
    "a copy is returned": lambda ctx, x, y: setattr(ctx, "y", y) or y.clone(),
}


@pytest.mark.parametrize("keep", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_keeps_no_graph_is_no_leak(backend, ns, keep):
    verdict, evidence, _ = examined(backend, exponential(ns, keep), X, order=1)
    assert verdict is Verdict.PASSED
    assert [e.verdict for e in evidence if e.check == "memory"] == [Verdict.PASSED]


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_right_functions_leave_nothing(backend, ns, row):
    subject = backend.bind(row.build(ns), arguments(row))
    assert subject.leaked_graph() is None


def test_a_callable_may_keep_what_it_computed_and_its_function_may_not_keep_its_output(backend, ns):
    kept = []
    right, wrong = exponential(ns, lambda ctx, x, y: None), exponential(ns, setting(lambda x, y: y))

    def keeping(x):
        kept.append(right.apply(x))
        return kept[-1] * 2

    def leaking(x):
        return wrong.apply(x) * 2

    assert backend.bind(keeping, [X]).leaked_graph() is None
    assert backend.bind(leaking, [X]).leaked_graph().attribute == "result"


def test_the_collector_is_left_as_it_was(backend, ns):
    subject = backend.bind(exponential(ns, setting(lambda x, y: y)), [X])
    for turn in (gc.disable, gc.enable):
        turn()
        before = gc.isenabled()
        assert subject.leaked_graph() is not None
        assert gc.isenabled() is before


def test_no_graph_no_leak_and_the_reason_is_told():
    report = gradcli.check(lambda x: (float(np.sum(x**3)), 3 * x**2), (np.array([1.0, 2.0]),), shrink=False)
    shown = [e for e in report.cases[0].evidence if e.check == "memory"]
    assert [e.verdict for e in shown] == [Verdict.SKIPPED]
    assert "numpy keeps no graph" in shown[0].note


def test_it_can_be_left_out(backend, ns):
    leaking = exponential(ns, setting(lambda x, y: y))
    subject = backend.bind(leaking, [X])
    evidence = run_battery(subject, Settings(skip=("memory",)), seed=0)
    assert all(e.verdict is not Verdict.FAILED for e in evidence)


def test_gradcheck_answers_for_the_gradient_alone(ns):
    x = ns.tensor([0.5, -1.25], dtype=ns.float64, requires_grad=True)
    assert gradcheck(exponential(ns, setting(lambda x, y: y)).apply, (x,))
