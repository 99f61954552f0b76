"""Numbers that a rule differentiates: made tensors where nobody gave them, and named in a note where the user did.

JAX has no constants among the arguments of a rule but those that `nondiff_argnums` names: a Python float is given a
gradient like any array. Elsewhere a number has no gradient, and a backward that returns one provides for a tensor.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from gradcli.backends.base import Backend
from gradcli.cases import InputSpec
from gradcli.inputs.builders import build
from gradcli.inputs.hints.argument_names import excludes_tensors
from gradcli.inputs.hints.reading import read_hints
from gradcli.runner.arguments.binding import in_order, placed
from gradcli.runner.planning.plan import CheckCase
from gradcli.targets import Parameter, TargetInfo

_LEAST = 1e-3
"""Smaller numbers are what forward adds against a division by zero, or a tolerance: they are constants."""
_NEAR = (0.9, 1.1)
"""The ends of the interval that a tensor in a number's place is drawn from, relative to the number."""


def differentiated(
    backend: Backend, target: object, info: TargetInfo, case: CheckCase, specs: Sequence[InputSpec]
) -> dict[str, float]:
    """The numbers among the inputs and the defaults that backward has a gradient for, with their values.

    A number whose value forward needs in Python, for a branch or a size, is left out. One whose gradient is zero or
    None is taken for a constant, as its author seems to, and so is one at which it is not finite.
    """
    numbers = _numbers(info, specs)
    if not info.differentiates_numbers:
        numbers = _perhaps_tensors(info, case, specs) if info.backward is not None else iter(())
    return {name: value for name, value in numbers if _has_gradient(backend, target, info, case, specs, (name, value))}


def _has_gradient(
    backend: Backend,
    target: object,
    info: TargetInfo,
    case: CheckCase,
    specs: Sequence[InputSpec],
    number: tuple[str, float],
) -> bool:
    arguments = build(as_tensors(specs, dict([number]), info), seed=case.seed, dtype=case.settings.dtype)
    trial = backend.attempt(target, placed(arguments, info), gradients=True)
    if trial.gradients is None or trial.needs_values:
        return False
    static = {p.name for p in info.parameters if p.static}
    tracked = [a.name for a in arguments if a.is_tensor and a.requires_grad and a.name not in static]
    own = dict(zip(tracked, trial.gradients, strict=False)).get(number[0])
    return len(tracked) == len(trial.gradients) and own is not None and bool(np.isfinite(own).all())


def as_tensors(specs: Sequence[InputSpec], numbers: Mapping[str, float], info: TargetInfo) -> tuple[InputSpec, ...]:
    """The inputs with these numbers as tensors without axes; where the inputs have other numbers for them, with those.

    They are drawn near the numbers: no sign changes, and most limits are kept.
    """
    kept = {spec.name: spec for spec in specs}
    return in_order(
        tuple({**kept, **{n: _tensor(n, _value(kept.get(n), v)) for n, v in numbers.items()}}.values()), info
    )


def note_on_constants(numbers: Mapping[str, float], given: Collection[str]) -> tuple[str, ...]:
    """A note for each number that the user gave, although backward has a gradient for it."""
    return tuple(
        f"{name}={value!r} was held constant, so its gradient was not checked: to check it as well, give -i "
        f"{name}=scalar,value={value!r} in place of -a"
        for name, value in numbers.items()
        if name in given
    )


def _numbers(info: TargetInfo, specs: Sequence[InputSpec]) -> Iterator[tuple[str, float]]:
    """The numbers whose size says that they are no tolerance."""
    for parameter, value in _finite(info, specs):
        if isinstance(value, float) and abs(value) >= _LEAST:
            yield parameter.name, value


def _perhaps_tensors(info: TargetInfo, case: CheckCase, specs: Sequence[InputSpec]) -> Iterator[tuple[str, float]]:
    """The numbers that nobody gave, and for which backward may return a gradient: not None in all of its returns."""
    asked = {spec.name for spec in case.spec.inputs or ()}
    names = [parameter.name for parameter in info.parameters]
    hints = read_hints(info, names)
    for parameter, value in _finite(info, specs):
        is_free = parameter.name not in asked and not excludes_tensors(parameter.annotation or "")
        if is_free and hints.gradient_of(names.index(parameter.name)) is not False:
            yield parameter.name, float(value)


def _finite(info: TargetInfo, specs: Sequence[InputSpec]) -> Iterator[tuple[Parameter, float]]:
    given = {spec.name: spec for spec in specs}
    for parameter in info.parameters:
        spec = given.get(parameter.name)
        value = parameter.default if spec is None else spec.value if spec.kind == "value" else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if math.isfinite(value) and not parameter.static:
            yield parameter, value


def _value(spec: InputSpec | None, value: float) -> float:
    return float(spec.value) if spec is not None and isinstance(spec.value, float) else value


def _tensor(name: str, value: float) -> InputSpec:
    if not value:
        return InputSpec(name=name, shape=())
    low, high = sorted(float(f"{part * value:.6g}") for part in _NEAR)
    return InputSpec(name=name, shape=(), domain="open-interval", parameters=(("lo", low), ("hi", high)))
