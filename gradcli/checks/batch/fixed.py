"""The sizes of a Function's inputs that stay where others are tried."""

from collections.abc import Sequence

from gradcli.cases import Argument
from gradcli.checks.base import Situation
from gradcli.inputs.hints.fixed_sizes import departures, fixed_sizes
from gradcli.inputs.hints.reading import read_hints
from gradcli.inputs.hints.source_hints import SourceHints


def hints_of(situation: Situation) -> SourceHints:
    """What source and documentation say of the arguments, read once."""
    subject = situation.subject
    found: SourceHints = situation.once("hints", lambda: read_hints(subject.info, [a.name for a in subject.arguments]))
    return found


def fixed_sizes_of(situation: Situation) -> frozenset[int]:
    """The sizes of axes that documentation or the source fixes, such as the 3 of `points: (N, 3)`."""
    shapes = _shapes_of(situation.subject.arguments)
    found: frozenset[int] = situation.once("fixed sizes", lambda: fixed_sizes(hints_of(situation), shapes))
    return found


def is_allowed(situation: Situation, arguments: Sequence[Argument]) -> bool:
    """Whether the sizes of other arguments keep what documentation says of sizes, where the Function's own do."""
    hints, given = hints_of(situation), situation.subject.arguments
    own, others = (departures(hints, _shapes_of(each), numbers_among(each)) for each in (given, arguments))
    return others <= own


def numbers_among(arguments: Sequence[Argument]) -> dict[str, int]:
    """The positive whole numbers among some arguments, which documentation may say that sizes are multiples of."""
    return {a.name: a.value for a in arguments if type(a.value) is int and a.value > 0}


def _shapes_of(arguments: Sequence[Argument]) -> dict[str, tuple[int, ...]]:
    return {a.name: a.shape for a in arguments if a.is_tensor}
