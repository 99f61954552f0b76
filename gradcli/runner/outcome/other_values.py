"""What a failed sample has as flags, strings and other constants where the first sample has the defaults."""

import ast
from dataclasses import replace
from typing import Any

from gradcli.backends.base import Subject
from gradcli.cases import Argument, InputSpec
from gradcli.results import CheckResult, Finding
from gradcli.runner.arguments.supply import described
from gradcli.runner.outcome.recheck import Recheck


def inputs_of(result: CheckResult, subject: Subject) -> tuple[InputSpec, ...]:
    """The inputs of the case with the constants and the shapes of the sample that failed."""
    own = {argument.name: argument for argument in subject.arguments}
    specs = {spec.name: _as_in(spec, own.get(spec.name)) for spec in result.inputs}
    taken = {p.name for p in subject.info.parameters}
    tensors = [a for a in subject.arguments if a.is_tensor and a.name in taken]
    for argument in (*tensors, *(argument for argument, _ in _changed(result, subject))):
        specs.setdefault(argument.name, described(argument))
    return tuple(specs.values())


def named_values(result: CheckResult, subject: Subject, recheck: Recheck) -> tuple[Finding, ...]:
    """The findings with the constants at which the error appears, where it does not with those of the first sample.

    Args:
        result: the failed case, with the inputs of its first sample.
        subject: the target at the sample that failed.
        recheck: runs the check that failed again.
    """
    changed = _changed(result, subject)
    if not changed:
        return result.findings
    before = {argument.name: value for argument, value in changed}
    first = [replace(a, value=before[a.name]) if a.name in before else a for a in subject.arguments]
    if not recheck.passes(first):
        return result.findings
    given = {spec.name for spec in result.inputs if spec.kind == "value"}
    parts = [
        f"{argument.name}={argument.value!r} ({'given' if argument.name in given else 'default'}: {value!r})"
        for argument, value in changed
    ]
    label = f"; the error appears with {' and '.join(parts)}"
    return tuple(
        finding
        if finding.input is None or finding.order != result.findings[0].order
        else replace(finding, message=finding.message + label)
        for finding in result.findings
    )


def _changed(result: CheckResult, subject: Subject) -> list[tuple[Argument, Any]]:
    """The constants of the sample that are others than in the first one, each with its value there."""
    values = {p.name: p.default for p in subject.info.parameters if p.has_default}
    values.update({spec.name: spec.value for spec in result.inputs if spec.kind == "value"})
    return [
        (argument, values[argument.name])
        for argument in subject.arguments
        if not argument.is_tensor
        and argument.name in values
        and _is_literal(argument.value)
        and _is_literal(values[argument.name])
        and repr(argument.value) != repr(values[argument.name])
    ]


def _is_literal(value: object) -> bool:
    """Whether a flag can give the value."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _as_in(spec: InputSpec, argument: Argument | None) -> InputSpec:
    if argument is None or (spec.kind == "value") is argument.is_tensor:
        return spec
    if spec.kind == "value":
        return replace(spec, value=argument.value) if _is_literal(argument.value) else spec
    return spec if spec.shape is None else replace(spec, shape=argument.shape)
