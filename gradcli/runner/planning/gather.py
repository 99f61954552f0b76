"""From targets as they are typed to the specs of cases."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gradcli.cases import CheckSpec, InputsFrom, InputSpec, Problem
from gradcli.errors import NothingToCheckError, UsageError
from gradcli.runner.jobs import Done, Lost, NamesJob, Outcome
from gradcli.runner.planning.functions import listed_in
from gradcli.runner.pool import Pool
from gradcli.spec.resolve import beside, require_text

_SPEC_SUFFIXES = (".yaml", ".yml")
_NAMED = re.compile(r":(?![\\/])")  # not the colon of a drive, C:\\


def gather_all(
    targets: Sequence[str],
    inputs: Sequence[InputSpec] = (),
    grad: str | None = None,
    saved: Sequence[str] = (),
    *,
    pool: Pool,
) -> tuple[CheckSpec, ...]:
    """The cases that `targets` stand for: named Functions, all those of a module or file, specs, folders of specs.

    A target that has a problem (a spec is wrong, a module cannot be imported) becomes one case with that problem; the
    other targets are checked.

    Args:
        targets: each `module:Name`, `path.py:Name`, a module or file alone, a spec, or a folder of specs.
        inputs: the inputs given by flags; they replace those of specs.
        grad: `module:attr` of a hand-written gradient for callables, or `attr` in the target's module, if any.
        saved: names of what that gradient needs beside the gradients of the results.
        pool: imports modules to see what they define.

    Raises:
        UsageError: an input is given twice.
        NothingToCheckError: the targets contain no case.
    """
    _refuse_doubled(inputs)
    wholes = [target for target in targets if _is_whole(target)]
    names = dict(zip(wholes, pool.outcomes([NamesJob(target=target) for target in wholes]), strict=True))
    found: list[CheckSpec] = []
    for target in targets:
        listed = _listed(target, names[target]) if target in names else _read(target)
        found += [_with_flags(spec, inputs, grad, saved) for spec in listed]
    return _without_repeats(found, targets)


def gather(
    targets: Sequence[str], inputs: Sequence[InputSpec] = (), grad: str | None = None, saved: Sequence[str] = ()
) -> tuple[CheckSpec, ...]:
    """As `gather_all`, modules imported in this process, and the first problem raised.

    Raises:
        UsageError: an input is given twice.
        SpecError: specs are wrong, with every problem in a file or folder of them.
        TargetError: a module alone cannot be found or imported, or a target is empty.
        NothingToCheckError: there is no case.
    """
    _refuse_doubled(inputs)
    found: list[CheckSpec] = []
    for target in targets:
        named = _of_module(listed_in(target)) if _is_whole(target) else _specs_of(target)
        found += [_with_flags(spec, inputs, grad, saved) for spec in named]
    distinct = _without_repeats(found, targets)
    for spec in distinct:
        if spec.problem is not None and spec.problem.exit_code != 0:
            raise UsageError(spec.problem.message)
    return distinct


def is_named(target: str) -> bool:
    """Whether `target` names an object, after a colon, rather than a module, file or spec as a whole."""
    return _NAMED.search(target) is not None


def _is_whole(target: str) -> bool:
    """Whether `target` is a module or file alone, to be imported before it is known what it stands for."""
    return bool(target.strip()) and not is_named(target) and not _is_spec(target)


def _is_spec(target: str) -> bool:
    """Whether `target` is a spec, or a folder of specs; a package without specs is a module, by its name."""
    path = Path(target)
    if path.suffix in _SPEC_SUFFIXES or not os.path.isdir(target):  # which a name that is too long is not
        return path.suffix in _SPEC_SUFFIXES
    is_package = target.isidentifier() and (path / "__init__.py").is_file()
    return not is_package or any(file.suffix in _SPEC_SUFFIXES for file in path.iterdir())


def _specs_of(target: str) -> tuple[CheckSpec, ...]:
    require_text(target)
    if not _is_spec(target):
        return (CheckSpec(target=target),)
    from gradcli.spec.load import load_specs

    return load_specs(Path(target))


def _read(target: str) -> list[CheckSpec]:
    """The cases of a named target, a spec or a folder of specs, a problem in place of those of each wrong file."""
    found: list[CheckSpec] = []
    try:
        require_text(target)
        parts = _parts(target)
    except UsageError as error:
        return [_problem(target, str(error), error.exit_code)]
    for part in parts:
        try:
            found += _specs_of(part)
        except UsageError as error:
            found.append(_problem(part, str(error), error.exit_code))
    return found


def _parts(target: str) -> list[str]:
    """The files of a spec or of a folder of specs; the target itself where it is neither."""
    if not _is_spec(target):
        return [target]
    from gradcli.spec.load import spec_files

    return [str(file) for file in spec_files(Path(target))]


def _listed(target: str, outcome: Outcome) -> list[CheckSpec]:
    """A case for each Function of a module that was imported, or one with the problem that this had."""
    if isinstance(outcome, Done):
        return _of_module(outcome.value)
    crashed = isinstance(outcome, Lost)
    return [_problem(target, outcome.message_for(target), outcome.exit_code, crashed=crashed)]


def _of_module(listed: Sequence[tuple[str, str | None]]) -> list[CheckSpec]:
    """A case for each Function of a module, to be skipped where it has nothing to check."""
    return [CheckSpec(target=name) if why is None else _problem(name, why, 0) for name, why in listed]


def _problem(target: str, message: str, exit_code: int, *, crashed: bool = False) -> CheckSpec:
    return CheckSpec(target=target, problem=Problem(message=message, exit_code=exit_code, crashed=crashed))


def _without_repeats(found: Sequence[CheckSpec], targets: Sequence[str]) -> tuple[CheckSpec, ...]:
    if not found:
        raise NothingToCheckError(
            f"nothing to check: no case in {', '.join(targets)}; a folder stands for the specs (.yaml) directly in it, "
            "and Functions are checked by the names of modules or files"
        )
    distinct: list[CheckSpec] = []
    first: dict[str, CheckSpec] = {}
    for spec in {repr(spec): spec for spec in found}.values():
        before = spec if spec.origin is None else first.setdefault(spec.case_id, spec)
        if before is spec:
            distinct.append(spec)
        elif os.path.realpath(str(before.origin)) != os.path.realpath(str(spec.origin)):
            distinct.append(replace(spec, in_id=spec.origin))  # reports tell cases apart by their ids
    return tuple(distinct)


def _refuse_doubled(inputs: Sequence[InputSpec]) -> None:
    doubled = sorted({i.name for i in inputs if sum(i.name == other.name for other in inputs) > 1})
    if doubled:
        raise UsageError(f"input {doubled[0]!r} is given more than once; give each input one -i or -a")


def _with_flags(spec: CheckSpec, inputs: Sequence[InputSpec], grad: str | None, saved: Sequence[str]) -> CheckSpec:
    if grad is not None:
        spec = replace(spec, grad=beside(grad, spec.target))
    if saved:
        spec = replace(spec, saved=tuple(saved))
    return spec.with_inputs(tuple(inputs), InputsFrom.FLAGS) if inputs else spec
