"""The proof of a patch: the whole check at the case's inputs, and at other sizes, before it is offered."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from gradcli.backends.jax_rules import rule_of
from gradcli.cases import Expectation, InputsFrom, InputSpec
from gradcli.errors import GradcliError
from gradcli.fix.probes import running
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.plan import CheckCase
from gradcli.runner.prepare import Prepared
from gradcli.verdict import Verdict

USUAL_RESOLUTION = 1e-6
"""A check promises to catch a relative error of this size; a pass that could not have is no proof."""
_OTHERS = 4
"""Sets of other inputs that are tried beside the case's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a patched target passed, a sentence each; and whether other sizes could be tried."""

    sentences: tuple[str, ...]
    sizes_tried: bool


def proof_of(ready: Prepared, target: object, codes: Mapping[FunctionType, CodeType]) -> Proof | None:
    """The proof of new code for some of the target's functions; None where the check does not pass."""
    with running(codes):
        own = _checked(ready, rebuilt(ready, target, codes), None)
        if own is None or own.verdict is not Verdict.PASSED:
            return None
        if own.resolution is not None and own.resolution > USUAL_RESOLUTION:
            return None
        others = 0
        if ready.supply.source is InputsFrom.INFERRED:
            there = _inferred_anew(ready, rebuilt(ready, target, codes))
            if there is None or there.verdict is Verdict.FAILED:
                return None
        tried = list(_other_inputs(ready))
        for inputs in tried:
            there = _checked(ready, rebuilt(ready, target, codes), inputs)
            if there is not None and there.verdict is Verdict.FAILED:
                return None
            others += there is not None and there.verdict is Verdict.PASSED
    return Proof(sentences=tuple(_sentences(own, others)), sizes_tried=bool(tried))


def _sentences(own: CheckResult, others: int) -> Iterator[str]:
    orders = " and ".join(map(str, own.orders))
    samples = f"{own.samples} sample{'s' if own.samples != 1 else ''}"
    caught = "" if own.resolution is None else f"; a relative error of {own.resolution:.0e} would have been caught"
    yield f"the patched Function passes the whole check: {samples}, order{'s' * ('and' in orders)} {orders}{caught}"
    if others:
        yield f"it passes at {others} other set{'s' * (others > 1)} of input sizes"


def _checked(ready: Prepared, target: object, inputs: Sequence[InputSpec] | None) -> CheckResult | None:
    """The result at the case's own inputs, or at others; None where these cannot be had."""
    case = _plain(ready.case)
    settings = case.settings
    try:
        if inputs is None:
            return check_object(target, case, supply=ready.supply, backends=(ready.backend,))
        spec = case.spec.with_inputs(tuple(inputs), InputsFrom.SPEC)
        return check_object(target, replace(case, spec=spec, settings=replace(settings, samples=1)))
    except GradcliError:
        return None


def _inferred_anew(ready: Prepared, target: object) -> CheckResult | None:
    """The result at the inputs that are inferred for the patched target, which may be others than for the wrong one."""
    case = _plain(ready.case)
    case = replace(case, settings=replace(case.settings, samples=1))
    try:
        return check_object(target, case)
    except GradcliError:
        return None


def _plain(case: CheckCase) -> CheckCase:
    """The case without what only a report needs, and held to pass: a spec may say that the target has to fail."""
    settings = replace(case.settings, shrink=False, figures=False, tables=False)
    return replace(case, settings=settings, spec=replace(case.spec, expect=Expectation()))


def _other_inputs(ready: Prepared) -> Iterator[tuple[InputSpec, ...]]:
    """Inputs of other sizes: each size exchanged for another everywhere, then those that inference found as well."""
    known: list[tuple[InputSpec, ...]] = []
    specs = ready.supply.specs
    if all(s.kind == "value" or (s.shape is not None and s.value is None) for s in specs):
        known += [_resized(specs, lambda n, number: n + 2 + number), _resized(specs, lambda n, _: 2 * n)]
        known.append(_resized(specs, lambda n, number: n + 2 * number + 2))  # odd sizes stay odd
    known += ready.supply.alternatives
    for each in known[:_OTHERS]:
        if each != specs:
            yield each


def _resized(specs: Sequence[InputSpec], other: Callable[[int, int], int]) -> tuple[InputSpec, ...]:
    """Each size, but 1, exchanged for another one, the same everywhere; `other` gives it for a size and its rank."""
    sizes = sorted({n for s in specs for n in s.shape or () if n > 1})
    new = {n: other(n, number) for number, n in enumerate(sizes)}
    return tuple(
        replace(s, shape=tuple(new.get(n, n) for n in s.shape)) if s.kind != "value" and s.shape is not None else s
        for s in specs
    )


def rebuilt(ready: Prepared, target: object, codes: Mapping[FunctionType, CodeType]) -> object:
    """The target with the new code, where it is not enough that its functions run it.

    JAX keeps what it compiled by the function objects: its rule is made anew, of new functions.
    """
    del codes
    rule: Any = rule_of(target) if ready.backend.name == "jax" else None
    if rule is None or not hasattr(rule, "defvjp"):
        return target
    made: Any = type(rule)(_copy(rule.fun), nondiff_argnums=rule.nondiff_argnums)
    made.defvjp(_copy(rule.fwd), _copy(rule.bwd))
    return made


def _copy(function: Any) -> Any:
    if not isinstance(function, FunctionType):
        return function
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made
