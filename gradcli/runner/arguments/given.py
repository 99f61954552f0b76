"""Inputs given from Python: positional values, several sets of them, or a dict from names to values or specs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from gradcli.backends.base import Backend
from gradcli.backends.registry import require_own_tensors
from gradcli.backends.tensor.containers import container_leaves
from gradcli.cases import Argument, InputsFrom, InputSpec
from gradcli.errors import UsageError
from gradcli.inputs.builders import build
from gradcli.runner.arguments.binding import in_order, missing, placed, require_enough, require_parameters
from gradcli.runner.arguments.supply import Supply, described, given_supply
from gradcli.runner.planning.plan import CheckCase
from gradcli.targets import TargetInfo

Given = tuple[object, ...] | Sequence[tuple[object, ...]] | Mapping[str, object]
_OWN_KEYS = ("shape", "dtype", "domain", "layout", "grad", "requires_grad", "value")
_DOMAIN_KEYS = ("lo", "hi", "low", "high", "path", "key")


def supply_from(given: Given, backend: Backend, info: TargetInfo, case: CheckCase) -> Supply:
    """The supply of a case whose inputs a caller gave; the caller's own tensors are copied, never changed.

    Raises:
        UsageError: they are neither a tuple, nor a list of tuples, nor a dict, or do not fit forward's parameters.
        TargetError: a tensor of another framework is among them.
    """
    require_own_tensors(backend, info.name, given)
    if isinstance(given, Mapping):
        return _by_name(given, backend, info, case)
    samples = [given] if isinstance(given, tuple) else given
    if isinstance(samples, list) and samples and all(isinstance(sample, tuple) for sample in samples):
        for sample in samples:
            require_enough(len(sample), info)
        return given_supply(backend, info, samples, InputsFrom.GIVEN)
    raise UsageError(
        "inputs: expected a tuple of forward's arguments, a list of such tuples, or a dict from names to arguments; "
        f"got {type(given).__name__}. A single argument x is given as (x,)."
    )


def _by_name(given: Mapping[str, object], backend: Backend, info: TargetInfo, case: CheckCase) -> Supply:
    specs = tuple(_spec(str(name), value) for name, value in given.items())
    require_parameters(specs, info, "inputs")
    absent = missing(specs, info)
    if absent and not info.outer:
        raise UsageError(f"inputs: {info.name}.forward also needs {', '.join(p.name for p in absent)}")
    ordered = in_order(specs, info)
    drawn = [spec.name for spec in ordered if spec.kind == "tensor"]
    adopted = {spec.name: backend.adopt([spec.value])[0] for spec in ordered if spec.kind == "value"}

    def sample(number: int) -> tuple[Argument, ...]:
        built = [
            build([spec], seed=case.seed, dtype=case.settings.dtype, sample=number)[0]
            if spec.name in drawn
            else replace(adopted[spec.name], name=spec.name)
            for spec in ordered
        ]
        return placed(built, info, given)

    count = case.settings.samples if drawn else 1
    samples: list[Callable[[], tuple[Argument, ...]]] = [partial(sample, number) for number in range(count)]
    shown = tuple(
        spec if spec.name in drawn else described(replace(adopted[spec.name], name=spec.name)) for spec in ordered
    )
    return Supply(specs=shown, source=InputsFrom.GIVEN, samples=tuple(samples))


def _spec(name: str, value: object) -> InputSpec:
    """A tensor to be drawn where `value` is a spec, as a mapping or an InputSpec; else the value itself."""
    if isinstance(value, InputSpec):
        return replace(value, name=name)
    known = (*_OWN_KEYS, *_DOMAIN_KEYS)
    if not isinstance(value, Mapping) or (_holds_data(value) and not any(key in known for key in value)):
        return InputSpec(name=name, kind="value", value=value)
    for key in value:
        if key not in known:
            close = get_close_matches(str(key), known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            raise UsageError(f"inputs[{name!r}]: unknown key {key!r}; {hint}")
    return _tensor_spec(name, value)


def _holds_data(value: Mapping[str, object]) -> bool:
    """Whether a dict holds tensors or arrays, so that it is an argument itself and no description of one."""
    plain = (str, int, float, complex, type(None))
    return any(not isinstance(leaf, plain) for _, leaf in container_leaves(dict(value)))


def _tensor_spec(name: str, value: Mapping[str, Any]) -> InputSpec:
    shape = () if value.get("shape") == "scalar" else value.get("shape")
    if shape is not None and not (isinstance(shape, list | tuple) and all(isinstance(size, int) for size in shape)):
        raise UsageError(f"inputs[{name!r}]: expected shape to be a list of sizes, or 'scalar', got shape={shape!r}")
    natural = "literal" if "value" in value else "npz" if "path" in value else "normal"
    return InputSpec(
        name=name,
        shape=None if shape is None else tuple(shape),
        dtype=value.get("dtype"),
        domain=value.get("domain", natural),
        layout=value.get("layout"),
        parameters=tuple((key, value[key]) for key in _DOMAIN_KEYS if key in value),
        requires_grad=value.get("grad", value.get("requires_grad")),
        value=value.get("value"),
    )
