"""A target prepared: its backend found, an instance made of a module class, and inputs supplied."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.backends.base import Backend
from gradcli.backends.registry import backend_named, backends_for, only_a_run_tells
from gradcli.cases import Argument, CheckSpec
from gradcli.errors import (
    GradcliError,
    InputsNotFoundError,
    OtherFrameworkError,
    UsageError,
    UserCodeError,
    WithoutDerivativeError,
)
from gradcli.frozen import dataclass
from gradcli.inputs.search.construction import constructions
from gradcli.runner.arguments.module_parameters import with_held
from gradcli.runner.arguments.supply import Supply, supply_inputs
from gradcli.runner.planning.plan import CheckCase, claimed
from gradcli.targets import Parameter, TargetInfo

_INSTANCES = 4
"""How many instances are tried where the inputs of the first cannot be found: each search may take seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A target that can be bound: its backend, the object to run, its parameters and source, its inputs, its case."""

    backend: Backend
    target: object
    info: TargetInfo
    supply: Supply
    case: CheckCase


def prepared(
    target: object,
    case: CheckCase,
    supply: Supply | None = None,
    backends: Sequence[Backend] = (),
    info: TargetInfo | None = None,
) -> Prepared:
    """The target of `case` with `supply`, or with the inputs that the case gives or inference finds.

    `backends` are those that the target may belong to; without them they are found from the target. The first one with
    which it runs is taken. `info` is what the first one's `describe` returned, if it was called before.

    Raises:
        UsageError: an input or a constructor's argument is named that the target does not have.
        UserCodeError: the constructor or sample_inputs raised.
        InputsNotFoundError: no inputs, or nothing to make an instance with, could be found.
    """
    given, target = target, claimed(target, case.spec)
    waiting = list(backends or backends_for(target))
    known = info if target is given else None
    found: list[Prepared] = []
    refusals: list[GradcliError] = []
    while waiting:
        backend = waiting.pop(0)
        try:
            ready = _on(backend, target, case, supply, known)
            found.append(ready)
            if not (waiting or only_a_run_tells(backend, target)) or _runs(ready, among=waiting):
                return ready
        except OtherFrameworkError as error:
            waiting = [backend_named(error.framework)]
            found.clear()
        except (WithoutDerivativeError, InputsNotFoundError, UserCodeError) as error:
            refusals.append(error)
        known = None
    if found:
        return found[0]
    raise refusals[0]


def _on(backend: Backend, target: object, case: CheckCase, supply: Supply | None, info: TargetInfo | None) -> Prepared:
    """The target prepared for one backend."""
    backend = backend.on(case.settings.device)
    takes = backend.constructor(target)
    if takes is None:
        if case.spec.construct:
            raise UsageError(f"{case.spec.target} is not a module class: there is nothing to construct")
        return _supplied(backend, target, case, supply, info)
    spec, keywords = _routed(case.spec, takes, backend.describe(target))
    return _instance(backend, target, takes, keywords, replace(case, spec=spec), supply)


def _runs(ready: Prepared, among: Sequence[Backend]) -> bool:
    """Whether the target runs at its first sample, and none of the others reads it as NumPy's (value, gradient).

    A function that only does arithmetic runs on the arrays of any framework. If it returns a number and an array of its
    input's shape for NumPy arrays, these are taken for its value and gradient.
    """
    arguments = ready.supply.samples[0]()
    if not ready.backend.attempt(ready.target, arguments).ok:
        return False
    plain = [backend for backend in among if only_a_run_tells(backend, ready.target)]
    return not any(_returns_gradient(backend, ready.target, arguments) for backend in plain)


def _returns_gradient(backend: Backend, target: object, arguments: Sequence[Argument]) -> bool:
    try:
        trial = backend.attempt(target, arguments, gradients=True)
    except UsageError:
        return False
    entries = [np.size(gradient) for gradient in trial.gradients or () if gradient is not None]
    return trial.ok and trial.backward_error is None and max(entries, default=0) > 1


def _instance(
    backend: Backend,
    target: object,
    takes: TargetInfo,
    given: Mapping[str, Any],
    case: CheckCase,
    supply: Supply | None,
) -> Prepared:
    """The first instance that can be made and supplied with inputs."""
    refusals: list[UserCodeError] = []
    without: list[InputsNotFoundError] = []
    for keywords in constructions(takes.parameters, given):
        try:
            made = backend.construct(target, keywords)
        except UserCodeError as error:
            refusals.append(error)
            continue
        chosen = replace(case, spec=replace(case.spec, construct=tuple(keywords.items())))
        try:
            return _noted(_supplied(backend, made, chosen, supply), takes, keywords, given)
        except InputsNotFoundError as error:
            without.append(error)
        if len(without) >= _INSTANCES:
            break
    if without:
        raise without[0]
    names = [p.name for p in _inferred(takes.parameters, given)]
    if not names:
        raise refusals[0]
    raise InputsNotFoundError(
        f"found no values for {', '.join(names)} that {takes.name} can be constructed with; give them, as in -a "
        f"{names[0]}=4 ({refusals[0]})"
    ) from refusals[0]


def _noted(ready: Prepared, takes: TargetInfo, keywords: Mapping[str, Any], given: Mapping[str, Any]) -> Prepared:
    inferred = [p.name for p in _inferred(takes.parameters, given)]
    if not inferred:
        return ready
    made = ", ".join(f"{name}={keywords[name]!r}" for name in inferred)
    note = (
        f"the module was constructed as {takes.name}({made}): give other values with -a, or under construct in a spec"
    )
    return replace(ready, supply=replace(ready.supply, notes=(note, *ready.supply.notes)))


def _inferred(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> list[Parameter]:
    return [p for p in parameters if not (p.has_default or p.variadic or p.name in given)]


def _routed(spec: CheckSpec, takes: TargetInfo, info: TargetInfo) -> tuple[CheckSpec, dict[str, Any]]:
    """The spec and the constructor's values: inputs named like its parameters, and not like forward's, belong to it."""
    known = [p.name for p in takes.parameters]
    given = dict(spec.construct)
    for name in given:
        if name not in known and not any(p.variadic for p in takes.parameters):
            raise UsageError(f"{takes.name}: __init__ has no argument {name!r}; it has {', '.join(known) or 'none'}")
    forward = {p.name for p in info.parameters}
    mine = [i for i in spec.inputs or () if i.kind == "value" and i.name in set(known) - forward]
    given |= {each.name: each.value for each in mine}
    rest = tuple(i for i in spec.inputs or () if i not in mine)
    return replace(spec, inputs=rest or (None if mine else spec.inputs)), given


def _supplied(
    backend: Backend, target: object, case: CheckCase, supply: Supply | None, known: TargetInfo | None = None
) -> Prepared:
    info = known or backend.describe(target)
    found = supply or supply_inputs(backend, target, info, case)
    return Prepared(
        backend=backend, target=target, info=info, supply=with_held(found, backend, target, info, case.seed), case=case
    )
