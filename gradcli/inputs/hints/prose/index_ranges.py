"""The whole numbers that documentation gives between a number and a size, as in `targets: (S,) labels in [1, C)`."""

import itertools
import re
from collections.abc import Mapping, Sequence

from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.inputs.hints.prose.closed_ends import said_around
from gradcli.inputs.hints.source_hints import IndexRange

_FIRST = r"(?P<low>\d)"
_SIZE = r"(?P<size>[A-Za-z]\w*)(?:\s*-\s*(?P<less>1))?(?![\w(\[]|\.\w|\s*[-+*/])"
_RANGES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:\bin|\bwithin|∈|\bfrom|\brange)\s*\[\s*{_FIRST}\s*,\s*{_SIZE}\s*(?P<close>[)\]\[])",
        rf"(?:\bin|∈)\s*\{{\s*{_FIRST}\s*,\s*(?:1\s*,\s*)?(?:\.{{2,3}}|…)\s*,?\s*{_SIZE}\s*(?P<close>\}})",
        rf"(?:\bin|\bfrom|\bbetween|\()\s*{_FIRST}\s*(?:\.{{2,3}}|…|to|and)\s*{_SIZE}",
        rf"(?<![\w.]){_FIRST}\s*(?:<=|≤)\s*\w+\s*(?P<sign><=?|≤)\s*{_SIZE}",
    )
)
_SHORT = 8
"""What stands before a name that a range begins with, as in `0 <= y < C`."""


def index_ranges(
    names: Sequence[str], texts: Sequence[str], shapes: Mapping[str, tuple[Axis, ...]]
) -> dict[str, IndexRange]:
    """The ranges of whole numbers that end at a size, or at a number among the arguments, by name.

    Args:
        names: the arguments.
        texts: what is written about them.
        shapes: the documented shapes of arguments, () for those without one.
    """
    owners = {axis: (name, place) for name, shape in shapes.items() for place, axis in enumerate(shape)}
    numbers: dict[str, tuple[str, int | None]] = {name: (name, None) for name, shape in shapes.items() if not shape}
    tensors = [name for name, shape in shapes.items() if shape]
    found: dict[str, IndexRange] = {}
    for name, text in itertools.product(names, texts):
        for before, behind in said_around(name, text, tensors):
            for pattern in _RANGES:
                match = pattern.search(f"{before[-_SHORT:]}{name}{behind}")
                owner = None if match is None else (owners.get(match["size"]) or numbers.get(match["size"]))
                if match is None or owner is None or name in found or owner[0] == name:
                    continue
                ends = match.groupdict()
                is_open = ends.get("close") in (")", "[") or ends.get("sign") == "<"
                # `in [0, C]` is said of C classes too, of which C is none.
                more = -1 if is_open and match["less"] is not None else 0
                found[name] = IndexRange(low=int(match["low"]), owner=owner[0], axis=owner[1], more=more)
    return found
