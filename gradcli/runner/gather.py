"""From targets as they are typed to the specs of cases."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gradcli.backends.registry import is_function
from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.errors import NothingToCheckError, SpecError, UsageError
from gradcli.spec.load import load_specs
from gradcli.spec.resolve import names_in, require_text, resolve

_SPEC_SUFFIXES = (".yaml", ".yml")
_NAMED = re.compile(r":(?![\\/])")  # not the colon of a drive, C:\\


def gather(targets: Sequence[str], inputs: Sequence[InputSpec] = (), grad: str | None = None) -> tuple[CheckSpec, ...]:
    """The cases that `targets` stand for: named Functions, all those of a module or file, specs, folders of specs.

    Args:
        targets: each `module:Name`, `path.py:Name`, a module or file alone, a spec, or a folder of specs.
        inputs: the inputs given by flags; they replace those of specs.
        grad: `module:attr` of a hand-written gradient for plain NumPy callables, if any.

    Raises:
        SpecError: specs are wrong, with every problem in all of them.
        TargetError: a module alone cannot be found or imported, or a target is empty.
        NothingToCheckError: the targets contain no case.
    """
    found: list[CheckSpec] = []
    problems: list[str] = []
    for target in targets:
        try:
            found += [_with_flags(spec, inputs, grad) for spec in _specs_of(target)]
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(tuple(problems))
    if not found:
        raise NothingToCheckError(f"nothing to check: no case in {', '.join(targets)}")
    return tuple({repr(spec): spec for spec in found}.values())


def is_named(target: str) -> bool:
    """Whether `target` names an object, after a colon, rather than a module, file or spec as a whole."""
    return _NAMED.search(target) is not None


def functions_in(target: str) -> tuple[str, ...]:
    """`target:Name` for every Function that the module or file `target` defines itself, each under its first name."""
    found: dict[int, str] = {}
    for named in (f"{target}:{name}" for name in names_in(target)):
        value = resolve(named).object
        if is_function(value):
            found.setdefault(id(value), named)
    return tuple(found.values())


def _specs_of(target: str) -> tuple[CheckSpec, ...]:
    require_text(target)
    path = Path(target)
    if path.suffix in _SPEC_SUFFIXES or path.is_dir():
        return load_specs(path)
    if is_named(target):
        return (CheckSpec(target=target),)
    functions = functions_in(target)
    if not functions:
        raise NothingToCheckError(
            f"nothing to check: {target} defines no autograd Function; name a callable as {target}:name"
        )
    return tuple(CheckSpec(target=name) for name in functions)


def _with_flags(spec: CheckSpec, inputs: Sequence[InputSpec], grad: str | None) -> CheckSpec:
    if grad is not None:
        spec = replace(spec, grad=grad)
    if not inputs:
        return spec
    doubled = sorted({i.name for i in inputs if sum(i.name == other.name for other in inputs) > 1})
    if doubled:
        raise UsageError(f"input {doubled[0]!r} is given more than once; give each input one -i or -a")
    return spec.with_inputs(tuple(inputs), InputsFrom.FLAGS)
