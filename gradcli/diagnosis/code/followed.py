"""Whether a factor follows the argument or the size that it equals: at one value of that, it may do so by chance."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gradcli.cases import with_defaults
from gradcli.diagnosis.factor import Factor, causes_of, constant_factor, describe_factor, number_of
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips.elsewhere import at_other_sizes
from gradcli.diagnosis.suspect import Suspect
from gradcli.errors import UserCodeError


def described(suspect: Suspect, c: float) -> Factor:
    """The factor with its cause, if it changes with that: written as a number otherwise.

    What cannot be tried in a short time, as sizes of a function that is compiled for them, is taken as it is.
    """
    subject = suspect.facts.subject
    if suspect.facts.is_costly or subject.compiles_shapes:
        return describe_factor(c, subject)
    return next((each for each in causes_of(c, subject) if _follows(suspect, each)), number_of(c))


def varies_elsewhere(suspect: Suspect) -> bool:
    """Whether the gradient is seen to be no constant times the right one at inputs of other sizes."""
    facts = suspect.facts
    if facts.is_costly or facts.subject.compiles_shapes:
        return False
    there = suspect.at(at_other_sizes(facts))
    if there is None or any(g is None or g.shape != there.shape for g in there.gradients):
        return False
    return (
        there.facts.judged(there.block, there.gradients) is False
        and constant_factor(there.facts, there.block, there.gradients) is None
    )


def _follows(suspect: Suspect, cause: Factor) -> bool:
    """Whether the factor has the same cause at other inputs, where what it is named after has another value."""
    name = cause.of[0] if cause.of is not None else ""
    is_argument = any(a.name == name and not a.is_tensor for a in _arguments(suspect.facts))
    others = _with_argument(suspect.facts, name) if is_argument else [at_other_sizes(suspect.facts)]
    for there in (suspect.at(other) for other in others):
        c = None if there is None else constant_factor(there.facts, there.block, there.gradients)
        if there is not None and c is not None:
            return any(each.of == cause.of for each in causes_of(c, there.facts.subject))
    return False


def _arguments(facts: Facts) -> list[Any]:
    return with_defaults(facts.subject.arguments, facts.subject.info)


def _with_argument(facts: Facts, name: str) -> Iterator[Facts | None]:
    """The facts with other values of a number argument, where forward takes them."""
    given = _arguments(facts)
    value = next(a.value for a in given if a.name == name)
    for other in (value + 1, value + 2) if isinstance(value, int) else (0.75 * value, 1.25 * value):
        try:
            there = facts.subject.rebind(tuple(replace(a, value=other) if a.name == name else a for a in given))
        except UserCodeError:  # a value that gradcli chose, which forward need not accept
            continue
        if there.active == facts.subject.active and there.output_numbers == facts.subject.output_numbers:
            yield facts.over(there).bound_anew()
