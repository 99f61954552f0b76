"""The arguments that get no gradient because a text lists those that do: `gradients w.r.t. mu and s only`.

What stands beside the code of backward counts too, as `# no gradient for y` above its return statement.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from gradcli.inputs.hints.documented_constants import GRADIENT, constants_named, constants_together
from gradcli.inputs.hints.documented_shapes import texts_of
from gradcli.inputs.hints.prose.descriptions import descriptions
from gradcli.inputs.hints.prose.sentences import CASES, sentence_around

_ITEM = r"(?:the\s+)?[`'\"*]*\w+[`'\"*]*"
_ITEMS = rf"(?P<items>{_ITEM}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){_ITEM})*)"
_OF = r"(?:for|of|in|to|w\.?r\.?t\.?|with respect to)"
_DERIVATIVE = rf"(?:{GRADIENT}|\bderivatives?|\bdifferentia(?:ble|ted))"
_NOT_SOME = r"(?!\w|\s*(?:[<>=≤≥∈!]|\b(?:in|at|if|when|where|for|on|near|inside|outside|within|between)\b))"
"""What follows a list of arguments, unlike `differentiable only for x > 0` and `a gradient for x only where m > 0`."""
_ONLY = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bonly\s+{_ITEMS}\s+(?:gets?|receives?|has|have|needs?|requires?)\s+(?:any\s+)?{GRADIENT}{_NOT_SOME}",
        rf"\bonly\s+{_ITEMS}\s+(?:is|are)\s+(?:differentia(?:ted|ble)|train(?:ed|able)|learn(?:ed|t|able)|fitted"
        rf"|optimi[sz]ed)\b{_NOT_SOME}",
        rf"\bonly\s+(?:fit|train|learn|optimi[sz]e|differentiate)s?\s+(?:{_OF}\s+)?{_ITEMS}{_NOT_SOME}",
        rf"{_DERIVATIVE}\s+(?:(?:is|are)\s+)?(?:\w+ed\s+)?only\s+(?:\w+ed\s+)?{_OF}\s+{_ITEMS}{_NOT_SOME}",
        rf"\bonly\s+(?:the\s+)?{_DERIVATIVE}\s+{_OF}\s+{_ITEMS}{_NOT_SOME}",
        rf"{_DERIVATIVE}\s+{_OF}\s+{_ITEMS}\s+(?:only|alone)\b{_NOT_SOME}",
    )
)
_SENTENCE = re.compile(
    rf"(?:^|[.;\n])[-*\s]*(?:(?:the|an?|analytic(?:al)?|exact|implicit|hand-?written)\s+)*(?P<sampled>pathwise\s+)?"
    rf"{_DERIVATIVE}\s+(?:w\.?r\.?t\.?|with respect to)\s+{_ITEMS}\s*"
    r"(?:[(;,]\s*(?:[^().;]*\s)?(?:fixed|constants?|frozen|data|given|detached|known)\s*(?=$|[).;\n])"
    r"|(?(sampled)(?=[.;]|\n\s*\n|\s*$)|(?!)))",
    re.IGNORECASE,
)
"""A sentence that says nothing else than why the others have none: noise of a sample has no pathwise derivative.

A list alone, as `Gradients with respect to x and w.`, may have forgotten one as backward has.
"""
_WORDS = r"\b(?P<noun>(?!(?:of|in|for|to|is|are)\b)[A-Za-z]\w*(?:[ \t]+(?!(?:of|in|for|to|is|are)\b)\w+){0,2})"
_FROZEN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bthe\s+{_WORDS}\s+(?:is|are)\s+(?:(?:always|kept|held|all)\s+)*"
        r"(?:fixed|frozen|constants?|detached|not\s+(?:trained|updated))\b(?!\s+(?:at|to|by|in|along|over|on|up)\b|-)",
        rf"\bthe\s+{_WORDS}\s+(?:gets?|receives?|has|have|needs?|requires?)\s+no\s+{GRADIENT}",
        rf"\bfrozen\s+{_WORDS}",
    )
)
"""What calls a noun frozen: `the teacher is frozen`, `frozen base weight`."""


def undifferentiated(
    names: Sequence[str],
    source: str,
    documentation: str,
    backward: str,
    *,
    numbers: Collection[str] = (),
    none: Collection[str] = (),
) -> frozenset[str]:
    """The arguments of which a text or a comment in backward says so, and those that a list of the others leaves out.

    Args:
        names: the arguments.
        source: of forward, of which docstring and comments are read.
        documentation: a further text, such as the class's docstring.
        backward: its source. A comment `gradient with respect to x` says there what the next line computes.
        numbers: arguments that may be numbers, of which a list of those with gradients says nothing.
        none: those for which backward returns None, as for all that have one description.
    """
    comments, texts = texts_of(backward, ""), texts_of(source, documentation)
    said = {name for text in comments for name in constants_named(names, text)}
    together = [each for text in texts for each in constants_together(names, text) if each <= {*none}]
    said.update({name for each in together for name in each}.difference(numbers))
    said.update(name for text in texts for name in _frozen_nouns({*none}.difference(numbers), names, text))
    lists = [match["items"] for text in (*texts, *comments) for only in _ONLY for match in only.finditer(text)]
    lists += [match["items"] for text in texts for match in _SENTENCE.finditer(text)]
    words = [word for each in lists for word in re.findall(r"\w+", each) if word.lower() not in ("the", "and")]
    listed = [[word] if word in names else [*_meant(word, names, texts, source)] for word in words]
    if listed and all(listed):
        said.update(set(names).difference(numbers, *listed))
    return frozenset(said)


def _meant(noun: str, names: Sequence[str], texts: Sequence[str], source: str) -> Iterator[str]:
    """The arguments that texts describe by a noun: those of `a, b: () parameters` are the parameters."""
    for text in texts:
        for name, description, _ in descriptions(names, text, source):
            if re.match(rf"[^.;,]*?\b{re.escape(noun)}\b", description, re.IGNORECASE) is not None:
                yield name


def _frozen_nouns(none: Collection[str], names: Sequence[str], text: str) -> Iterator[str]:
    """Of the arguments without a gradient, those that a text calls frozen by a noun.

    The noun is a part of the name, as the teacher of teacher_logits, or the name is its first letter, as the weight W.
    """
    parts = {name: set(name.lower().split("_")) for name in names}
    for pattern in _FROZEN:
        for match in pattern.finditer(text):
            if CASES.search(sentence_around(text, match.start())) is not None:
                continue
            words = [{word.lower(), word.lower().removesuffix("s")} for word in match["noun"].split()]
            known = [word for word in words if any(not word.isdisjoint(each) for each in parts.values())]
            letters = {letter[0] for word in words for letter in word}
            of_parts = {name for name in names if known and all(not word.isdisjoint(parts[name]) for word in known)}
            of_letter = {name for name in none if name.lower() in letters and not known}
            if of_parts <= {*none} and len(of_letter) <= 1:
                yield from of_parts | of_letter
