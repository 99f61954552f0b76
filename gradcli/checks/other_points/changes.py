"""The ways in which inputs are changed: by which numbers, and how that is said."""

from collections.abc import Mapping, Sequence
from enum import Enum

from gradcli.cases import Argument, with_its_source
from gradcli.targets import TargetInfo

Values = tuple[float, ...]
_NAMED = {
    "scaled": ((-1.0, 0.125, 16.0), (0.125, 4.0)),
    "special": ((0.0, 1.0, -1.0, 2.0, 0.5), (1.0, 2.0, 0.5)),
    "large": ((30.0, -800.0, -30.0, 800.0), (30.0, -30.0), (800.0, 30.0), (30.0, 12.0)),
    "thirties": ((30.0, -30.0), (30.0, 12.0)),
    "hundreds": ((-800.0, 800.0), (800.0, 100.0)),
    "small": ((1e-3, -1e-3), (1e-3,)),
    "between": (),
    "alone": ((12.0, -12.0), (5.0, -5.0)),
    "ascending": ((),),
    "descending": ((),),
}


class Change(Enum):
    """How inputs are changed."""

    SCALED = "scaled"
    SPECIAL = "special"
    LARGE = "large"
    THIRTIES = "thirties"
    HUNDREDS = "hundreds"
    SMALL = "small"
    BETWEEN = "between"
    ALONE = "alone"
    ASCENDING = "ascending"
    DESCENDING = "descending"

    @property
    def sentence(self) -> str:
        """How the entries are changed, in words."""
        return _SENTENCES[self]

    @property
    def values(self) -> tuple[Values, ...]:
        """The numbers used, the most extreme set first; the later ones are for a forward that rejects it."""
        return _NAMED[self.value]


_SENTENCES = {
    Change.SCALED: (
        "Every entry is multiplied by its own factor; the sizes then range from 1/8 to 16 times the median, with "
        "either sign."
    ),
    Change.SPECIAL: "Some entries become 0, 1, -1, 2 or 1/2, and some others equal to each other.",
    Change.LARGE: "A third of the entries (half in a small input) become 30, -30, 800 or -800.",
    Change.THIRTIES: "Half of the entries of a small input become 30 or -30.",
    Change.HUNDREDS: "Half of the entries of a small input become 800 or -800.",
    Change.SMALL: (
        "Every entry becomes about 0.001 or -0.001, or, in a bounded domain, lies that close to one of its bounds."
    ),
    Change.BETWEEN: "Every entry becomes a number between two constants of the source, or close to one.",
    Change.ALONE: (
        "Every entry of one input becomes about 12 or -12, of both signs or of one, while the other inputs stay as "
        "they are."
    ),
    Change.ASCENDING: "The entries are put in ascending order, so every row and every column ascends.",
    Change.DESCENDING: "The entries are put in descending order.",
}


def label_of(changes: Mapping[int, object], given: Sequence[Argument], info: TargetInfo) -> str:
    """What was changed, as messages say it."""
    parts = [f"{given[n].name}={value!r} ({with_its_source(given[n], info)})" for n, value in changes.items()]
    return f"with {' and '.join([*([', '.join(parts[:-1])] if parts[:-1] else []), parts[-1]])}"
