"""The proof of a patch: the whole check at the case's inputs, and at other sizes, before it is offered."""

import contextlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

from gradcli.backends.jax.rules import rule_of
from gradcli.cases import Expectation, InputsFrom, InputSpec
from gradcli.diagnosis.slips.hooks import running
from gradcli.diagnosis.table import SIGNIFICANCE
from gradcli.edits.captured import captured_in
from gradcli.edits.draft import Draft
from gradcli.errors import GradcliError
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.inputs.domains import INTEGRAL
from gradcli.inputs.search.budget import at_most
from gradcli.results import CheckResult, Evidence
from gradcli.runner.arguments.prepare import Prepared, prepared
from gradcli.runner.outcome.modes import other_modes
from gradcli.runner.planning.plan import CheckCase
from gradcli.verdict import Verdict
from gradcli.watchdog.case import Watchdog
from gradcli.watchdog.limit import TimeLimit

CaseCheck = Callable[..., CheckResult]
"""`check_object`: it looks for a patch after a failure itself, and can therefore not be imported here."""
USUAL_RESOLUTION = 1e-6
"""A check without a note catches a relative error of this size in float64; a patch is not proven by a coarser one."""
_LEAST_SECONDS = 0.1
_FEW_TRIES = 200
"""Where inputs were given, no more are made to find others: inference finds those of 86 % of the right
Functions of the benchmarks in fewer."""
_OTHERS = 4
"""Sets of other inputs that are tried in addition to the case's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a patched target passed, a sentence each, at which orders, and whether other sizes could be tried.

    `unproven` says what is not proven of other Functions that run the edited code.
    """

    sentences: tuple[str, ...]
    orders: tuple[int, ...]
    sizes_tried: bool
    unproven: tuple[str, ...] = ()


def proof_of(
    ready: Prepared,
    target: object,
    codes: Mapping[FunctionType, CodeType],
    *,
    check: CaseCheck,
    limit: TimeLimit | None = None,
    failed: list[CheckResult] | None = None,
) -> Proof | None:
    """The proof of new code for some of the target's functions; None where the check does not pass within the limit.

    The checks that the new code fails are added to `failed`.
    """
    proof = _proof(within(ready, limit), target, codes, check, limit, [] if failed is None else failed)
    return None if limit is not None and limit.is_over else proof


def within(ready: Prepared, limit: TimeLimit | None) -> Prepared:
    """The case with as much time for each check as is left of the limit."""
    if limit is None:
        return ready
    settings = replace(ready.case.settings, budget=max(_LEAST_SECONDS, limit.left), limited=True)
    return replace(ready, case=replace(ready.case, settings=settings))


def _proof(
    ready: Prepared,
    target: object,
    codes: Mapping[FunctionType, CodeType],
    check: CaseCheck,
    limit: TimeLimit | None,
    failed: list[CheckResult],
) -> Proof | None:
    def noted(target: object, case: CheckCase, **options: Any) -> CheckResult:
        result = check(target, case, **options)
        failed.extend([result] if result.verdict is Verdict.FAILED else [])
        return result

    with running(codes):
        own = checked(noted, ready, rebuilt(ready, target, codes), None)
        if own is None or own.verdict is not Verdict.PASSED:
            return None
        if own.resolution is not None and own.resolution > USUAL_RESOLUTION:
            return None
        there = _inferred_anew(noted, ready, rebuilt(ready, target, codes), own)
        if _has_failed(there) or (there is None and ready.supply.source is InputsFrom.INFERRED):
            return None
        elsewhere = _elsewhere(ready, target, codes, noted, limit)
        if elsewhere is None:
            return None
        modes = {text: checked(check, ready, rebuilt(ready, target, codes), each) for text, each in other_modes(ready)}
    spoilt = any(
        _has_failed(modes[text]) and not _has_failed(checked(check, ready, target, inputs))
        for text, inputs in other_modes(ready)
    )
    if spoilt or any(_wrong_shapes_of(check, ready, target, inputs) != names for inputs, names in elsewhere.refused):
        return None
    kept = [text for text, result in modes.items() if result is not None and result.verdict is Verdict.PASSED]
    sentences = tuple(_sentences(own, elsewhere.passed, kept))
    return Proof(sentences=sentences, orders=own.orders, sizes_tried=elsewhere.tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Elsewhere:
    """At how many other sets of sizes a patched target passed, and whether there were any that it takes.

    `refused` are those where gradients have wrong shapes, with the inputs' names: forward may take sizes that backward
    is not written for, such as more than two columns. Such sizes count against a patch
    unless the same gradients have wrong shapes there without it.
    """

    passed: int
    tried: bool
    refused: tuple[tuple[tuple[InputSpec, ...], frozenset[str | None]], ...]


def _elsewhere(
    ready: Prepared,
    target: object,
    codes: Mapping[FunctionType, CodeType],
    check: CaseCheck,
    limit: TimeLimit | None,
) -> _Elsewhere | None:
    """The patched target at other sizes; None where it fails at one, or time runs out."""
    passed, refused, tried = 0, [], list(other_inputs(ready))
    for inputs in tried:
        if limit is not None and limit.is_over:
            return None
        there = checked(check, ready, rebuilt(ready, target, codes), inputs)
        if there is not None and there.verdict is Verdict.FAILED:
            if not all(of_shape(e) for e in failures_of(there)):
                return None
            refused.append((inputs, _shapes_among(there)))
        passed += there is not None and there.verdict is Verdict.PASSED
    return _Elsewhere(passed=passed, tried=len(tried) > len(refused), refused=tuple(refused))


def _wrong_shapes_of(
    check: CaseCheck, ready: Prepared, target: object, inputs: tuple[InputSpec, ...]
) -> frozenset[str | None]:
    """The inputs for which the target as it is returns gradients of wrong shapes."""
    before = checked(check, ready, target, inputs)
    return frozenset() if before is None else _shapes_among(before)


def _shapes_among(result: CheckResult) -> frozenset[str | None]:
    return frozenset(input_of(e) for e in failures_of(result) if of_shape(e))


def failures_of(result: CheckResult) -> tuple[Evidence, ...]:
    """The evidence that fails a result, without first-order errors that are as small as one that does not count.

    A check judges each cotangent for itself: where a constant of forward is in float32, a gradient may fail at one
    size of the input and pass at another with the same error.
    """
    return tuple(e for e in result.evidence if e.verdict is Verdict.FAILED and not _is_rounding(e))


def _is_rounding(evidence: Evidence) -> bool:
    error = evidence.max_rel_error
    return evidence.finding is None and evidence.order == 1 and error is not None and error <= SIGNIFICANCE


def input_of(evidence: Evidence) -> str | None:
    """The input whose gradient is wrong."""
    return evidence.input if evidence.finding is None else evidence.finding.input


def of_shape(evidence: Evidence) -> bool:
    """Whether a gradient has a wrong shape: backward need not be written for inputs of other sizes."""
    return evidence.finding is not None and evidence.finding.kind is FindingKind.WRONG_SHAPE


def tells_numbers(ready: Prepared, target: object, draft: Draft, made: Draft, *, check: CaseCheck) -> bool:
    """Whether an edit holds at other values of the numbers that the functions take from around them.

    `* scale` and `* 3` are the same while `scale` is 3. Where forward does not take another value, that says nothing.
    """
    case = plain(ready.case)
    case = replace(case, settings=replace(case.settings, samples=1, order=1))
    for number in captured_in(draft):
        with running(made.codes), number.varied(), contextlib.suppress(GradcliError):
            made_anew = rebuilt(ready, target, made.codes)
            result = check(made_anew, case, supply=ready.supply, backends=(ready.backend,), named=False)
            if result.verdict is Verdict.FAILED:
                return False
    return True


def _has_failed(result: CheckResult | None) -> bool:
    return result is not None and result.verdict is Verdict.FAILED


def _sentences(own: CheckResult, others: int, modes: Sequence[str]) -> Iterator[str]:
    orders = " and ".join(map(str, own.orders))
    samples = f"{own.samples} sample{'s' if own.samples != 1 else ''}"
    caught = "" if own.resolution is None else f"; a relative error of {own.resolution:.0e} would have been caught"
    yield f"the patched Function passes the whole check: {samples}, order{'s' * ('and' in orders)} {orders}{caught}"
    if others:
        yield f"it passes at {others} other set{'s' * (others > 1)} of input sizes"
    if modes:
        yield f"it passes with {', with '.join(modes)}"


def checked(
    check: CaseCheck, ready: Prepared, target: object, inputs: Sequence[InputSpec] | None
) -> CheckResult | None:
    """The result at the case's own inputs, or at others; None if none are found."""
    case = plain(ready.case)
    settings = case.settings
    try:
        if inputs is None:
            return check(target, case, supply=ready.supply, backends=(ready.backend,), named=False)
        spec = case.spec.with_inputs(tuple(inputs), InputsFrom.SPEC)
        return check(target, replace(case, spec=spec, settings=replace(settings, samples=1)), named=False)
    except GradcliError:
        return None


def _inferred_anew(check: CaseCheck, ready: Prepared, target: object, own: CheckResult) -> CheckResult | None:
    """The result at the inputs that are inferred for the patched target; `own` where they are the case's own."""
    case = plain(ready.case)
    spec = replace(case.spec, inputs=None, inputs_from=InputsFrom.INFERRED)
    case = replace(case, spec=spec, settings=replace(case.settings, samples=1))
    limited = ready.supply.source is not InputsFrom.INFERRED
    try:
        with (
            at_most(_FEW_TRIES) if limited else contextlib.nullcontext(),
            Watchdog(budget=case.settings.budget).watching() as watchdog,
            watchdog.during("inference of inputs", searching=True),
        ):
            there = prepared(target, case)
        if there.supply.specs == ready.supply.specs:
            return own
        return check(target, case, supply=there.supply, backends=(there.backend,), named=False)
    except GradcliError:
        return None


def plain(case: CheckCase) -> CheckCase:
    """The case without what only a report needs, and expected to pass even if its spec expects a failure."""
    settings = replace(case.settings, shrink=False, figures=False, tables=False)
    return replace(case, settings=settings, spec=replace(case.spec, expect=Expectation()))


def other_inputs(ready: Prepared) -> Iterator[tuple[InputSpec, ...]]:
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


def tells_sizes(
    ready: Prepared,
    target: object,
    codes: Mapping[FunctionType, CodeType],
    *,
    check: CaseCheck,
    limit: TimeLimit | None = None,
) -> bool:
    """Whether new code passes where sizes that are equal in the case differ, as far as forward takes such inputs.

    `x.shape[2] ** 2` and `x.shape[2] * x.shape[3]` are the same where both axes have one size. False also if the limit
    ends before that is known.
    """
    with running(codes):
        for inputs in _unequal_inputs(ready):
            if limit is not None and limit.is_over:
                return False
            if _has_failed(checked(check, within(ready, limit), rebuilt(ready, target, codes), inputs)):
                return False
    return limit is None or not limit.is_over


def _unequal_inputs(ready: Prepared) -> Iterator[tuple[InputSpec, ...]]:
    """Inputs with one axis longer whose size another axis has too; forward refuses many of them.

    Of indices there is one for each entry or row that they choose in: a right gradient is wrong where some are missing.
    """
    specs = ready.supply.specs
    free = [s for s in specs if s.kind != "value" and s.value is None and s.domain not in INTEGRAL]
    sizes = Counter(n for s in free for n in s.shape or ())
    for number, spec in enumerate(specs):
        for axis, size in enumerate(spec.shape or () if spec in free else ()):
            if size > 1 and sizes[size] > 1 and spec.shape is not None:
                shape = (*spec.shape[:axis], size + 1, *spec.shape[axis + 1 :])
                yield (*specs[:number], replace(spec, shape=shape), *specs[number + 1 :])


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


def brings_sizes(ready: Prepared, before: str, after: str) -> bool:
    """Whether an edit brings in a size, or a number that may be one, which a proof at fixed sizes cannot tell."""
    shapes = [s.shape for s in ready.supply.specs if s.shape]
    sizes = {str(n) for shape in shapes for n in (*shape, math.prod(shape)) if n > 1}
    brought = Counter(_words(after)) - Counter(_words(before))
    return any(word in sizes or word in ("shape", "numel", "size") for word in brought)


def _words(text: str) -> list[str]:
    """The names and numbers in a text."""
    return re.findall(r"\w+", text)
