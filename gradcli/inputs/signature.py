"""Arguments put in the order of forward's signature, with what is missing filled in or complained of."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from gradcli.cases import Argument
from gradcli.errors import UsageError
from gradcli.targets import TargetInfo


def arrange(arguments: Sequence[Argument], info: TargetInfo) -> tuple[Argument, ...]:
    """The arguments in the order of forward's parameters, whatever order they were given in.

    A parameter left out before one that is given takes its default; keyword-only ones are marked so. Arguments
    whose names forward does not have go to `*args`, in their order.

    Args:
        arguments: one for each input given.
        info: the target, for its parameters.

    Returns:
        Positional arguments first, without gaps, then keyword-only ones.

    Raises:
        UsageError: an argument that forward does not have, or one that it needs is missing.
    """
    named = [parameter.name for parameter in info.parameters if not parameter.variadic]
    by_name = {argument.name: argument for argument in arguments}
    extra = [argument for argument in arguments if argument.name not in named]
    if extra and len(named) == len(info.parameters):
        name = extra[0].name
        has = f"it has {', '.join(named)}" if named else "it has none"
        raise UsageError(f"{info.name} has no argument {name!r}{close_name(name, named)}; {has}")
    missing = [
        parameter.name
        for parameter in info.parameters
        if not (parameter.variadic or parameter.has_default or parameter.name in by_name)
    ]
    if missing:
        flags = " ".join(f"-i {name}=3x4" for name in missing)
        raise UsageError(f"{info.name} needs {', '.join(missing)}: give {flags} (or -a NAME=VALUE)")
    positional: list[Argument] = []
    waiting: list[Argument] = []
    keywords: list[Argument] = []
    for parameter in info.parameters:
        if parameter.variadic:
            given = extra
        elif parameter.name in by_name:
            given = [by_name[parameter.name]]
        else:
            given = []
        if parameter.keyword_only:
            keywords += [replace(argument, keyword=True) for argument in given]
        elif given:
            positional += [*waiting, *given]
            waiting = []
        elif not parameter.variadic:
            waiting.append(Argument(name=parameter.name, value=parameter.default, is_tensor=False))
    return (*positional, *keywords)


def close_name(name: str, known: Sequence[str]) -> str:
    """` (did you mean 'x'?)` for the closest of `known`, or nothing."""
    close = get_close_matches(name, known, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""
