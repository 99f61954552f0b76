"""Which arguments a text calls complex, and which real: `z: (N,), complex`, `a complex field z times a real gain b`."""

import re
from collections.abc import Iterable, Iterator, Sequence

from gradcli.inputs.hints.documented_shapes import mentions
from gradcli.inputs.hints.prose.descriptions import AFTER_A_NAME, BEFORE_A_KIND, PARTS
from gradcli.inputs.hints.prose.sentences import CASES, MARKS, sentence_around

FILLERS = (
    r"\s*(?:(?:and|all|each|its|entries|elements|labels|targets|values?|numbers?|rows|columns|an?|the|real|square|float|array|tensor"
    r"|vector|matrix|matrices|assumed|batch|batched|strictly|dtype|type|optional|both|always|\d+-?[dD]|@unit|@between\w+|@signs|@bits)\s+)*"
)
"""What may stand before the word that tells what an argument is."""
_NOT_NUMBERS = (
    r"conjugat\w+|or|and|only|functions?|planes?|structures?|systems?|steps?|parts?|components?|axis|axes|lines?|phases?|angles?"
    r"|modul\w+|magnitudes?|exponentials?|logarithms?|times|plus|minus|of|for|in|on|to|at|by|from|with|as|is|are|if|when"
)
"""What is not a complex or real number, though the word stands before it."""
_SYSTEM = r"(?:(?P<complex>complex(?:[- ]valued)?|complex(?:64|128)|c(?:float|double))|real(?:[- ]valued)?)"
_SAID = re.compile(rf"(?:{FILLERS})??{_SYSTEM}(?!\s+(?:{_NOT_NUMBERS})\b)(?:\s+\w+){{0,2}}", re.IGNORECASE)


def system_said(description: str, clauses: Iterable[tuple[int, str, bool]]) -> str | None:
    """`complex` or `real` where a description says at its begin that an argument is so; not that it may be.

    Args:
        description: of an argument.
        clauses: its phrases, numbered.
    """
    if not _may_say(description) or PARTS.search(description) is not None:
        return None
    found = (_SAID.fullmatch(clause.strip()) for number, clause, _ in clauses if number < 2)
    return next((_system(each) for each in found if each is not None), None)


def systems_named(names: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
    """The arguments in front of which a text says that they are complex or real, as in `a real gain b`."""
    if not _may_say(text) or not mentions(text, names):
        return
    one = rf"[{MARKS}]*(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})[{MARKS}]*"
    pattern = (
        rf"{BEFORE_A_KIND}(?:(?:an?|the|given|fixed)\s+)*{_SYSTEM}(?:\s+(?!(?:{_NOT_NUMBERS})\b)[a-z-]+){{0,2}}"
        rf"[ \t]+(?P<names>{one})(?!\w){AFTER_A_NAME}"
    )
    for match in re.finditer(pattern, text, re.IGNORECASE):
        sentence = sentence_around(text, match.start())
        if CASES.search(sentence) is None and PARTS.search(sentence) is None:
            yield match["names"].strip(MARKS), _system(match)


def _may_say(text: str) -> bool:
    return re.search(r"complex|real|\bc(?:float|double)", text, re.IGNORECASE) is not None


def _system(match: re.Match[str]) -> str:
    return "real" if match["complex"] is None else "complex"
