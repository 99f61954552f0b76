"""Which node of a traced graph has a wrong backward: each is checked against the derivative of its own forward."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, final

from gradcli.backends.registry import backends_for
from gradcli.backends.tensor.function_backend import FunctionBackend
from gradcli.backends.traced import TracedCalls
from gradcli.cases import CheckSpec
from gradcli.errors import GradcliError
from gradcli.frozen import dataclass
from gradcli.results import CheckResult, Finding
from gradcli.runner.arguments.given import supply_from
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.runner.trace_replay import stale_nodes
from gradcli.settings import Settings
from gradcli.traces import NodeCheck, SourceSite, TraceGraph, WrongNode
from gradcli.tracing.captures import Capture, Captures
from gradcli.verdict import Verdict

_CHECKS = ("returns", "gradient", "linearity")


@final
@dataclass(frozen=True, slots=True)
class _Checked:
    """A call and the result of its check, None where it could not be had."""

    name: str
    site: SourceSite | None
    module: str | None
    node: int | None
    rule: SourceSite | None
    result: CheckResult | None


def nodes_checked(graph: TraceGraph, captures: Captures, backend: FunctionBackend, seed: int) -> TraceGraph:
    """The graph with the nodes whose backward is wrong, in the order of the calls, and how many were checked."""
    numbers = {node.sequence: node.id for node in graph.nodes if node.sequence is not None}
    checked = (
        _Checked(c.name, c.site, c.module, numbers.get(c.sequence), None, _result(c, backend, seed))
        for c in captures.found
    )
    stale = tuple(stale_nodes(graph, captures, backend.framework))
    return _concluded(graph, checked, captures.left_out, stale)


def calls_checked(graph: TraceGraph, calls: TracedCalls, seed: int) -> TraceGraph:
    """The same for the calls in a function that is transformed as a whole."""
    checked = (
        _Checked(c.name, c.site, None, c.node, c.rule, _checked(c.name, c.target, c.values, seed)) for c in calls.found
    )
    return _concluded(graph, checked, calls.left_out)


def _concluded(
    graph: TraceGraph, checked: Iterable[_Checked], left_out: int, stale: tuple[str, ...] = ()
) -> TraceGraph:
    wrong, passed = [], 0
    undecided: dict[str, str] = {}
    for each in checked:
        if each.result is not None and each.result.verdict is Verdict.FAILED and each.result.findings:
            wrong.append(_wrong(each, each.result.findings[0]))
        elif each.result is not None and each.result.verdict is Verdict.PASSED:
            passed += 1
        else:
            undecided.setdefault(each.name, _why_undecided(each.result))
    counts = NodeCheck(
        passed=passed,
        undecided=tuple(undecided),
        reasons=tuple(undecided.values()),
        left_out=left_out,
        stale=tuple(dict.fromkeys(stale)),
    )
    return replace(graph, wrong_nodes=tuple(wrong), node_check=counts)


def _why_undecided(result: CheckResult | None) -> str:
    """The error or the reason in a line; "" where neither is known."""
    if result is None:
        return ""
    if result.error is not None:
        return result.error.strip().split("\n", 1)[0]
    return "" if result.reason is None else result.reason.sentence.rstrip(".")


def _wrong(each: _Checked, finding: Finding) -> WrongNode:
    location = finding.location if each.rule is None else each.rule
    return WrongNode(
        name=each.name,
        site=each.site,
        module=each.module,
        node=each.node,
        finding=finding.kind.value,
        message=finding.message,
        at=None if location is None else f"{location.file}:{location.line}",
    )


def _result(capture: Capture, backend: FunctionBackend, seed: int) -> CheckResult | None:
    """The check in double precision, or as it was called where that is refused."""
    result = None
    for dtype in (backend.framework.namespace.float64, None):
        target, values = _target(capture, partial(_converted, dtype))
        result = _checked(capture.name, target, values, seed)
        if result is not None and result.verdict is not Verdict.ERROR:
            break
    return result


def _checked(name: str, target: Any, values: tuple[Any, ...], seed: int) -> CheckResult | None:
    settings = Settings(order=1, order_asked=True, samples=1, seed=seed, only=_CHECKS, shrink=False)
    case = case_of(CheckSpec(target=name), settings)
    try:
        backends = backends_for(target, values)
        info = backends[0].describe(target)
        return check_object(
            target, case, supply=supply_from(values, backends[0], info, case), backends=backends, info=info
        )
    except GradcliError:  # arguments that no check takes: the node stays undecided, and is named so
        return None


def _target(capture: Capture, convert: Callable[[Any], Any]) -> tuple[Any, tuple[Any, ...]]:
    """What to check and at which arguments: a Function as it is, an operation as a callable of its tensors."""
    if capture.function is not None:
        return capture.function, tuple(convert(value) for value in capture.args)
    tensors: list[Any] = []
    template = [_held(convert, value, tensors) for value in capture.args]
    keywords = {key: _held(convert, value, tensors) for key, value in capture.keywords.items()}

    def operation(*given: Any) -> Any:
        return capture.call(
            *(_filled(v, given) for v in template), **{k: _filled(v, given) for k, v in keywords.items()}
        )

    return operation, tuple(tensors)


class _Place(int):
    """The number of a tensor among those that an operation is given."""


def _held(convert: Callable[[Any], Any], value: Any, tensors: list[Any]) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_held(convert, each, tensors) for each in value)
    converted = convert(value)
    if getattr(converted, "requires_grad", False):
        tensors.append(converted)
        return _Place(len(tensors) - 1)
    return converted


def _filled(value: Any, given: Sequence[Any]) -> Any:
    if isinstance(value, _Place):
        return given[value]
    return type(value)(_filled(each, given) for each in value) if type(value) in (tuple, list) else value


def _converted(dtype: Any, value: Any) -> Any:
    """A floating tensor in this precision, still a leaf; anything else as it is."""
    floating = getattr(value, "is_floating_point", None)
    if dtype is None or floating is None or not floating():
        return value
    return value.detach().to(dtype).requires_grad_(value.requires_grad)
