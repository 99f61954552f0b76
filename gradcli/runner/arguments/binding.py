"""Inputs bound to forward's parameters as in a Python call: by position, by name, and by default."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from gradcli.cases import Argument, InputSpec
from gradcli.errors import UsageError
from gradcli.runner.arguments.nested import container_named, folded, grouped
from gradcli.targets import Parameter, TargetInfo


def named(arguments: Sequence[Argument], info: TargetInfo) -> tuple[Argument, ...]:
    """Positional arguments under the names of forward's parameters, as a call binds them.

    Those beyond the positional parameters belong to `*args`; keyword-only parameters keep their defaults. A decorator's
    wrapper may take more, or fewer, than what it wraps, and its own parameters count then.

    Raises:
        UsageError: there are more than forward takes by position.
    """
    names = _positional_names(info.parameters, len(arguments))
    if names is None or (info.outer and len(arguments) < _required(info.parameters)):
        names = _positional_names(info.outer, len(arguments)) or names
    if names is None:
        single = [p.name for p in info.parameters if not p.keyword_only]
        by_name = [p.name for p in info.parameters if p.keyword_only]
        hint = f"; {', '.join(by_name)} can be given by name, in a dict" if by_name else ""
        raise UsageError(
            f"{info.name}: expected at most {len(single)} inputs ({', '.join(single)}), got {len(arguments)}{hint}"
        )
    return tuple(replace(argument, name=name) for argument, name in zip(arguments, names, strict=True))


def _positional_names(parameters: Sequence[Parameter], count: int) -> list[str] | None:
    """The names of the first `count` positional arguments; None where so many cannot be given."""
    single = [p.name for p in parameters if not (p.variadic or p.keyword_only)]
    variadic = next((p.name for p in parameters if p.variadic), None)
    if count > len(single) and variadic is None:
        return None
    return [*single[:count], *(f"{variadic}[{n}]" for n in range(count - len(single)))]


def require_enough(count: int, info: TargetInfo) -> None:
    """Raise UsageError where so many arguments, given by position, leave out one that has no default."""
    if info.outer or count >= _required(info.parameters):
        return
    lacking = [p.name for p in info.parameters[count:] if not (p.has_default or p.variadic or p.keyword_only)]
    raise UsageError(f"inputs: {called(info)} also needs {', '.join(lacking)}")


def _required(parameters: Sequence[Parameter]) -> int:
    return sum(not (p.has_default or p.variadic or p.keyword_only) for p in parameters)


def placed(
    arguments: Sequence[Argument], info: TargetInfo, fixed: Collection[str] = (), *, all_fixed: bool = False
) -> tuple[Argument, ...]:
    """The arguments with their containers, marked where they are passed by keyword, and where the user fixed values."""
    by_keyword = {p.name for p in info.parameters if p.keyword_only} | {name for name, _ in info.held}
    known = {p.name for p in info.parameters}
    any_name = info.takes_keywords and not any(p.variadic for p in info.parameters)
    made = []
    for a in folded(arguments, info):
        keyword = a.keyword or a.name in by_keyword or (any_name and a.name not in known and a.name.isidentifier())
        is_fixed = a.fixed or (not a.is_tensor and (all_fixed or a.name in fixed))
        same = (keyword, is_fixed) == (a.keyword, a.fixed)
        made.append(a if same else replace(a, keyword=keyword, fixed=is_fixed))
    return tuple(made)


def require_parameters(specs: Sequence[InputSpec], info: TargetInfo, origin: str | None) -> None:
    """Refuse an input that forward has no parameter for; `origin` says where it was given."""
    if info.takes_keywords or any(p.variadic for p in (*info.parameters, *info.outer)):
        return
    known = [*(p.name for p in info.parameters), *(name for name, _ in info.held)]
    for spec in specs:
        if spec.name not in known and container_named(spec.name, info) is None:
            close = get_close_matches(spec.name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known) or 'none'}"
            where = "" if origin is None else f"{origin}: "
            raise UsageError(f"{where}{called(info)} has no input {spec.name!r}; {hint}")


def called(info: TargetInfo) -> str:
    """What is called with the inputs: forward of a class, or a function itself."""
    is_forward = getattr(info.forward, "__name__", "forward") == "forward"
    return f"{info.name}.forward" if is_forward else info.name


def missing(specs: Sequence[InputSpec], info: TargetInfo) -> list[Parameter]:
    """The parameters that must be given and are not."""
    given = {spec.name for spec in specs} | set(grouped(specs, info))
    return [p for p in info.parameters if not (p.has_default or p.variadic or p.name in given)]


def in_order(specs: Sequence[InputSpec], info: TargetInfo) -> tuple[InputSpec, ...]:
    """The specs in the order of forward's parameters, gaps before the last positional one filled with defaults."""
    leaves = grouped(specs, info)
    by_name = {spec.name: spec for spec in specs if container_named(spec.name, info) is None}
    single = [p for p in info.parameters if not (p.variadic or p.keyword_only)]
    known = {p.name for p in info.parameters}
    further = [spec for spec in by_name.values() if spec.name not in known]
    if any(p.variadic for p in info.parameters):
        last = len(single) if further else _last(single, {**by_name, **leaves})
        further.sort(key=lambda spec: _index(spec.name))
    else:
        last = _last(single, {**by_name, **leaves})
    positional = [
        spec
        for number, p in enumerate(single)
        if p.name in by_name or p.name in leaves or (number < last and p.has_default)
        for spec in _whole(p, by_name, leaves)
    ]
    by_keyword = [spec for p in info.parameters if p.keyword_only for spec in _whole(p, by_name, leaves, given=True)]
    return (*positional, *further, *by_keyword)


def _whole(
    parameter: Parameter,
    by_name: Mapping[str, InputSpec],
    leaves: Mapping[str, list[InputSpec]],
    *,
    given: bool = False,
) -> list[InputSpec]:
    """The spec of an argument, and those of its leaves; the default where neither is there, unless `given`."""
    own = [by_name[parameter.name]] if parameter.name in by_name else []
    found = [*own, *leaves.get(parameter.name, [])]
    return found if found or given else [InputSpec(name=parameter.name, kind="value", value=parameter.default)]


def _last(single: Sequence[Parameter], given: Collection[str]) -> int:
    return max((number for number, p in enumerate(single) if p.name in given), default=-1)


def _index(name: str) -> int:
    """The number of an argument of `*args`, such as `xs[2]`; 0 for one with a name of its own."""
    found = re.fullmatch(r".*\[(\d+)\]", name)
    return int(found[1]) if found else 0
