"""Arguments for the constructor of a module class: small sizes, and constants suggested by names."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli.inputs.hints import argument_names
from gradcli.targets import Parameter

SIZES = ((4, 3, 5, 2, 6, 7), (4, 4, 4, 4, 4, 4), (8, 2, 2, 2, 2, 2), (3, 4, 3, 2, 2, 2), (2, 2, 2, 2, 2, 2))
"""For the sizes in a constructor, in its order: distinct ones first, so that an exchange cannot hide."""
MOST = 40


def constructions(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Keywords to try, the likeliest first; only what is given where that is all a constructor needs.

    Args:
        parameters: the constructor's, without self.
        given: the keywords that the user fixed.
    """
    required = [p for p in parameters if not (p.has_default or p.variadic or p.name in given)]
    constants = {p.name: _constants(p) for p in required}
    sizes = [p.name for p in required if not constants[p.name]]
    others = [name for name in constants if constants[name]]
    choices = itertools.islice(itertools.product(*(constants[name] for name in others)), MOST)
    made = (
        {
            **given,
            **dict(zip(others, chosen, strict=True)),
            **dict(zip(sizes, itertools.chain(row, itertools.repeat(3)), strict=False)),
        }
        for chosen in choices
        for row in (SIZES if sizes else ((),))
    )
    seen: list[dict[str, Any]] = []
    for keywords in itertools.islice(made, MOST):
        if keywords not in seen:
            seen.append(keywords)
            yield keywords


def _constants(parameter: Parameter) -> Sequence[Any]:
    """The values that an annotation or a name suggests, none for what is taken to be a size."""
    head = re.split(r"[\[| ]", parameter.annotation or "")[0].rpartition(".")[2]
    word = parameter.name.lower().strip("_")
    if head == "bool" or (not head and argument_names.flag_values(word)):
        return (True, False)
    if head == "str" or (not head and word in argument_names.WORDS):
        return argument_names.WORDS.get(word, ("mean", "sum", "none"))
    if head == "float":
        return argument_names.REAL_NUMBERS.get(word, argument_names.PERHAPS_NUMBERS.get(word, (0.7, 0.1)))
    if word in argument_names.WHOLE_NUMBERS and word not in ("n", "size", "num", "p"):
        return argument_names.WHOLE_NUMBERS[word]
    if head == "int":
        return ()
    return argument_names.REAL_NUMBERS.get(word, argument_names.PERHAPS_NUMBERS.get(word, ()))
