"""The constants that an argument's name or annotation suggests, likeliest first."""

import re
from collections.abc import Sequence
from typing import Any

from gradcli.inputs.hints import argument_names
from gradcli.inputs.hints.argument_names import excludes_tensors, types_named
from gradcli.targets import Parameter


def suggested(word: str, gradient: bool | None, names: Sequence[str]) -> tuple[Sequence[Any], float, float]:
    """The constants that a name suggests, what they cost, and what a tensor costs more because of them."""
    if argument_names.COMPANIONS.get(word, frozenset()) & {name.lower() for name in names}:
        return (), 0.0, 0.0
    sure = 3.0 if len(word) > 1 else 1.6
    for values, offset in (
        (argument_names.WHOLE_NUMBERS.get(word), sure),
        (argument_names.REAL_NUMBERS.get(word), sure),
        (argument_names.WORDS.get(word), 4.0),
        ((True, False) if word in argument_names.FLAGS else None, 3.0),
    ):
        if values is not None:
            return values, 0.0, offset
    if word in argument_names.PERHAPS_NUMBERS:
        paired = {"gamma", "beta"} <= {name.lower() for name in names}
        likely = gradient is False or not (paired or word in ("gamma", "beta", "scale", "s", "t", "T", "c"))
        return argument_names.PERHAPS_NUMBERS[word], 0.1 if likely else 0.3, 0.8 if likely else 0.0
    for pattern, values, offset in argument_names.ENDINGS:
        if re.search(pattern, word):
            return values, 0.0, offset
    return (), 0.0, 0.0


def sure_constants(parameter: Parameter) -> Sequence[Any]:
    """The constants of an argument whose annotation or name says that it is not a tensor; else none."""
    word = parameter.name.lower().strip("_")
    if parameter.annotation and types_named(parameter.annotation):
        return annotated_values(word, parameter.annotation) or ()
    if word in argument_names.FLAGS:
        return (True, False)
    known = (argument_names.WHOLE_NUMBERS, argument_names.REAL_NUMBERS, argument_names.WORDS)
    return next((values[word] for values in known if word in values and len(word) > 1), ())


def annotated_values(word: str, annotation: str) -> Sequence[Any] | None:
    """The constants of an annotation's types; None where it names no type of constants, or a tensor as well."""
    if not excludes_tensors(annotation):
        return None
    found: list[Any] = []
    for named in types_named(annotation):
        if named == "int":
            found += argument_names.WHOLE_NUMBERS.get(word, (2, 3, 1, -1, 4, 0))
        elif named == "float":
            found += argument_names.REAL_NUMBERS.get(word, argument_names.PERHAPS_NUMBERS.get(word, (2.5, 0.7, 0.1)))
        elif named == "bool":
            found += (True, False)
        elif named == "str":
            found += argument_names.WORDS.get(word, ("mean", "sum", "none"))
        elif named in ("tuple", "list", "sequence", "size"):
            known = [value for value in argument_names.WHOLE_NUMBERS.get(word, ()) if isinstance(value, tuple)]
            found += known or ((2, 2), (3, 4), (1, 1), (12,), (0, 1))
    return found or None
