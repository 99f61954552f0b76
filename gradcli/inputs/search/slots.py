"""The arguments of a target as slots of the search: `*args` as several slots, and the user's inputs as fixed ones."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

from gradcli.cases import InputSpec
from gradcli.errors import UsageError
from gradcli.inputs.builders import build
from gradcli.inputs.hints.argument_names import PERHAPS_NUMBERS, excludes_tensors, says_number
from gradcli.inputs.hints.reading import read_hints
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.hints.suggested_constants import in_order, suggested
from gradcli.inputs.search.candidates import DIFFERENT, Slot, fixed_slot, seems_a_number, slot_for, word_of
from gradcli.sources import tree_of
from gradcli.targets import Parameter, TargetInfo

_VARIADIC_COUNTS = (2, 1, 3)
"""None at all is tried last, where there are other arguments."""
_VAGUE = (None, "indices")
"""Domains that leave open whether whole numbers may be equal."""
_ASSIGNED = re.compile(r"\]\s*=(?!=)|\.(?:index_copy|scatter)_?\(|\.at\[")


def slots_of(info: TargetInfo, fixed: Sequence[InputSpec]) -> Iterator[tuple[Slot, ...]]:
    """The slots of the target's arguments, once for each number of arguments that `*args` may stand for.

    Raises:
        UsageError: an input in `fixed` belongs to no parameter, with a close match.
    """
    variadic = any(parameter.variadic for parameter in info.parameters)
    given = {spec.name: spec for spec in fixed}
    alone = len(info.parameters) == 1
    counts: Sequence[int] = (*_VARIADIC_COUNTS, *(() if alone else (0,))) if variadic else (0,)
    named = [parameter.name for parameter in info.parameters if not parameter.variadic]
    extra = [spec for spec in fixed if spec.name not in named]
    if variadic and extra:
        counts = (len(extra),)
    elif extra:
        name = extra[0].name
        close = get_close_matches(name, named, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise UsageError(f"{info.name} has no argument {name!r}{hint}; it has {', '.join(named) or 'none'}")
    for count in counts:
        yield _slots(info, given, extra, count)


def _slots(info: TargetInfo, given: dict[str, InputSpec], extra: Sequence[InputSpec], count: int) -> tuple[Slot, ...]:
    places: list[tuple[str, Parameter]] = []
    for parameter in info.parameters:
        if not parameter.variadic:
            places.append((parameter.name, parameter))
            continue
        names = [spec.name for spec in extra] or [f"{parameter.name}[{index}]" for index in range(count)]
        places += [(name, replace(parameter, name=name)) for name in names]
    names = [name for name, _ in places]
    hints = read_hints(info, names)
    numbers = _numbers(places, given, hints)
    different = _different(info, names, hints)
    found = []
    for position, (name, parameter) in enumerate(places):
        if name in given:
            found.append(fixed_slot(name, parameter, given[name], _shape(given[name])))
        else:
            slot = slot_for(name, parameter, position, names, hints, numbers.get(name, ()))
            slot = replace(slot, guard=hints.guards.get(name))
            found.append(replace(slot, said=DIFFERENT) if name in different and slot.said in _VAGUE else slot)
    return tuple(found)


def _different(info: TargetInfo, names: Sequence[str], hints: SourceHints) -> frozenset[str]:
    """The arguments of which equal whole numbers have no defined result: those that forward assigns by.

    In NumPy the last of the values assigned remains, and a gradient has to be right there.
    """
    if info.backend not in ("torch", "jax") or _ASSIGNED.search(hints.used) is None:
        return frozenset()
    from gradcli.inputs.hints.uses.assigned import assigned_by

    return assigned_by(map(tree_of, (hints.forward, hints.helpers)), names)


def _numbers(
    places: Sequence[tuple[str, Parameter]], given: dict[str, InputSpec], hints: SourceHints
) -> dict[str, tuple[float, ...]]:
    """The numbers to try first for arguments that seem to be numbers and whose names suggest none."""
    known: dict[str, float | None] = {}
    sure = False
    for name, parameter in places:
        value, word = given[name].value if name in given else parameter.default, word_of(name)
        if name not in hints.numbers or name in hints.values.types or excludes_tensors(parameter.annotation or ""):
            continue
        if type(value) in (int, float) and not says_number(name):
            known[name] = value
        elif name not in given and not parameter.has_default and seems_a_number(name, hints):
            is_new = not suggested(word, False, list(hints.numbers))[0]
            sure = sure or is_new
            known |= {name: None} if is_new or word in PERHAPS_NUMBERS else {}
    return dict(zip(known, in_order(list(known.values())), strict=True)) if sure else {}


def _shape(spec: InputSpec) -> tuple[int, ...]:
    if spec.kind == "value":
        return ()
    return spec.shape if spec.shape is not None else tuple(build((spec,), seed=0)[0].shape)
