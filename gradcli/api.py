"""The Python API: check and trace a target from a program."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

from gradcli.backends.recording import graphs_recorded
from gradcli.backends.registry import backends_for, with_gradient
from gradcli.cases import CheckSpec
from gradcli.results import CheckResult, Report
from gradcli.runner.arguments.given import Given, supply_from
from gradcli.runner.case import check_object, run_case
from gradcli.runner.execute import refused
from gradcli.runner.outcome.allow import allowed_by
from gradcli.runner.planning.gather import gather, is_named
from gradcli.runner.planning.limits import require_settings
from gradcli.runner.planning.plan import CheckCase, case_of, plan, require_checks, require_no_saved
from gradcli.settings import DEFAULT_ORDER, Settings
from gradcli.spec.resolve import resolve
from gradcli.traces import TraceGraph


def check(
    target: object,
    inputs: Given | None = None,
    *,
    grad: object = None,
    saved: Sequence[str] = (),
    order: int | None = None,
    seed: int = 0,
    samples: int = 3,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    dtype: str = "float64",
    device: str | None = None,
    require_resolution: float | None = None,
    significance: float = 1e-7,
    allow: Mapping[str, str] | Sequence[str] = (),
    allow_inconclusive: bool = False,
    shrink: bool = True,
    budget: float | None = None,
) -> Report:
    """Check the gradients of a Function or callable, as `gradcli check` does.

    Args:
        target: a Function class, a callable, a module, or what the command line takes, such as "module:Name" or a spec.
        inputs: None to infer them; a tuple of forward's positional arguments, checked as they stand (requires_grad is
            respected, no tensor is changed); a list of them; or a dict from names to arguments or mappings of a spec.
        grad: the hand-written vjp of a callable (for NumPy also its gradient or Jacobian), or its "module:attr".
        saved: the parameters of `grad` besides grad_output: arguments, or values returned after the outputs.
        order: the highest order of derivative, 2 unless given; if given, a backward that raises at it fails.
        seed, samples, only, skip: the seed; the number of random inputs; checks to run; checks to leave out.
        dtype, device: the dtype of random floating inputs, and the device of the tensors, such as "cuda" (PyTorch).
        require_resolution, significance: relative errors: one that a pass must catch, and one too small to matter.
        allow: names of findings that are notes instead of failures, as a dict from names to reasons, or a list without.
        allow_inconclusive, shrink: count an inconclusive report as ok; look for a smaller input after a failure.
        budget: seconds after which optional work is left out; None allows a minute of optional work.

    Returns:
        The report; an exception of the user's forward or backward is a case with verdict ERROR.

    Raises:
        TargetError: the target cannot be found, or cannot be checked.
        UsageError: the inputs do not fit forward's parameters, or an option has an impossible value.
    """
    settings = Settings(
        order=DEFAULT_ORDER if order is None else order,
        order_asked=order is not None,
        seed=seed,
        samples=samples,
        dtype=dtype,
        device=device,
        only=_names(only),
        skip=_names(skip),
        allow=allowed_by(allow),
        require_resolution=require_resolution,
        significance=significance,
        allow_inconclusive=allow_inconclusive,
        shrink=shrink,
        budget=budget,
    )
    return _reported(target, inputs, _Derivative(grad, _names(saved)), require_settings(settings))


class _Derivative(NamedTuple):
    """The hand-written derivative of a callable, and the names of what it needs."""

    grad: object = None
    saved: tuple[str, ...] = ()


def _reported(target: object, inputs: Given | None, derivative: "_Derivative", settings: Settings) -> Report:
    started = perf_counter()
    cases = _run(target, inputs, derivative, settings)
    return Report(
        cases=cases,
        seed=settings.seed,
        seconds=perf_counter() - started,
        allow_inconclusive=settings.allow_inconclusive,
    )


def _names(given: Sequence[str]) -> tuple[str, ...]:
    """The names of several checks, or of one."""
    return (given,) if isinstance(given, str) else tuple(given)


@graphs_recorded()
def trace(
    target: object,
    inputs: Given | None = None,
    *,
    seed: int = 0,
    check: bool = False,
    every_node: bool = False,
    memory: bool = False,
    budget: int | None = None,
) -> TraceGraph:
    """Run forward and backward of `target` once and return what happened, as `gradcli trace` shows it.

    The graph is recorded even if the caller has turned gradients off.

    Args:
        target: as for `check`, or a callable that builds a loss and may call backward itself.
        inputs: as for `check`.
        check: check the backward of each custom Function against the derivative of its own forward.
        every_node: with `check`, check the backward of the framework's own operations as well.
        memory: measure the memory that the backward pass needs; the result has it as `memory`.
        budget: the most bytes that the backward pass may need at one time; measures the memory as well.
        seed: fixes the inputs drawn, the cotangents, and the random generators while the target runs.

    Returns:
        The graph, the hook calls, and why gradients are missing; `to_dict()` has schema gradcli.trace/1.

    Raises:
        TargetError: the target cannot be found, or cannot be traced.
        UserCodeError: forward raised.
    """
    from gradcli.runner.trace import trace_target

    return trace_target(target, inputs, seed=seed, check=check, every_node=every_node, memory=memory, budget=budget)


@graphs_recorded()
def _run(
    target: object, inputs: Given | None, derivative: "_Derivative", settings: Settings
) -> tuple[CheckResult, ...]:
    grad = derivative.grad
    named = grad is None or isinstance(grad, str)
    if isinstance(target, str) and named and (inputs is None or not is_named(target)):
        specs = gather([target], grad=grad if isinstance(grad, str) else None, saved=derivative.saved)
        return tuple(refused(case) if case.spec.problem else run_case(case) for case in plan(specs, settings))
    require_checks((*settings.only, *settings.skip), "only/skip")
    if grad is None:
        require_no_saved(derivative.saved)
    found = _object_of(target)
    spec = CheckSpec(target=_name_of(target), grad=None if grad is None else _name_of(grad), saved=derivative.saved)
    checked = found if grad is None else with_gradient(found, _object_of(grad), saved=derivative.saved, given=inputs)
    return (_check_given(checked, inputs, case_of(spec, settings)),)


def _object_of(target: object) -> object:
    return resolve(target).object if isinstance(target, str) else target


def _check_given(target: object, inputs: Given | None, case: CheckCase) -> CheckResult:
    if inputs is None:
        return check_object(target, case)
    backends = backends_for(target, inputs)
    info = backends[0].describe(target)
    supply = supply_from(inputs, backends[0], info, case)
    return check_object(target, case, supply=supply, backends=backends, info=info)


def _name_of(target: object) -> str:
    """`module:Name` of a class or function, of the class of an object without a name; a text is a name already."""
    if isinstance(target, str):
        return target
    own = getattr(target, "__qualname__", None)
    named = type(target) if own is None else target
    home = getattr(named, "__module__", None) or type(named).__module__  # a method without code has none of its own
    return f"{home}:{own or type(target).__qualname__}"


def _plain(report: Report) -> str:
    """As `gradcli check --format plain` prints it."""
    from gradcli.reporters.plain import plain_report

    return plain_report(report)


def _cases_as_html(report: Report) -> str:
    """The cases of the HTML page."""
    from gradcli.reporters.html.page import fragment

    return fragment(report)


def _tree_as_html(graph: TraceGraph) -> str:
    """The trace as text."""
    from gradcli.reporters.graph.tree import fragment

    return fragment(graph)


Report.shown_by(text=_plain, html=_cases_as_html)
TraceGraph.shown_by(html=_tree_as_html)
