"""Constant factors by which a gradient may be wrong, and how to write them."""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Subject
from gradcli.diagnosis.added_terms import divisors
from gradcli.diagnosis.facts import Facts, Slope
from gradcli.diagnosis.table import Gradient
from gradcli.frozen import dataclass
from gradcli.verdict import tells_apart

_ONCE = ((-1, "was left out as a factor"), (1, "is an extra factor"))
_DIVIDED = ((-1, "was divided by once too often"), _ONCE[1])
"""As `_ONCE`, for an argument that backward divides by."""
_SQUARED = ((-2, "squared was left out as a factor"), (2, "squared is an extra factor"))
_LARGEST = 1e150
"""Arguments beyond it, whose squares overflow, are not named; every number is near infinity relative to that."""
_COMMON = 3
"""Sizes up to this are not named: such a factor has many causes. Arguments up to one more are named as a question."""

_EXACT = 1e-9
"""The digits with which a factor is written tell it to this part."""
_LONG = 10**9
"""From here on every float64 is near a whole number, which says nothing."""
_LOOSEST = 1e-4
"""A factor that gradient and slopes agree on to this part of the largest is named, with this accuracy."""
_MEASURED = 6
"""Entries of a large gradient that are measured for the factor that they are wrong by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """returned = value × right; `text` is how to write it, `because` a clause that says where it may come from.

    `is_recognised` says that it is a fraction, an argument or a size; few numbers are that by chance. `of` is the
    argument or the size with its power and sign: a factor of the same cause is the same of it at other inputs.
    """

    value: float
    text: str
    because: str
    is_recognised: bool = True
    of: tuple[str, int, int] | None = None


def constant_factor(facts: Facts, place: int, gradients: Sequence[Gradient]) -> float | None:
    """The one c with returned = c × numerical along every direction and cotangent, None where there is none."""
    projected = facts.projections(place, gradients)
    if projected is None:
        return None
    slopes = facts.slopes(place)
    claimed = np.concatenate(projected)
    numeric = np.concatenate([s.values for s in slopes])
    bounds = np.concatenate([s.bounds for s in slopes])
    return fit_factor(claimed, numeric, bounds)


def fit_factor(claimed: FloatArray, numeric: FloatArray, bounds: FloatArray) -> float | None:
    """c with claimed = c × numeric within the bounds, from the best-determined pair; None if no c fits.

    A pair whose numerical value is not well above its bound does not determine c; c only has to be consistent with it.
    """
    with np.errstate(all="ignore"):
        quality = np.where(bounds > 0, np.abs(numeric) / bounds, np.where(numeric != 0, np.inf, 0.0))
    known = np.isfinite(bounds)
    if not known.any() or np.max(quality[known], initial=0.0) < 1e4:
        return None
    best = int(np.argmax(np.where(known, np.minimum(quality, 1e18) * np.abs(numeric), -1.0)))
    c = float(claimed[best] / numeric[best])
    if not np.isfinite(c) or c == 0:
        return None
    spread = abs(c) * (3 * bounds + 3 * bounds[best] * np.abs(numeric / numeric[best])) + 1e-9 * np.abs(c * numeric)
    scale = np.max(np.abs(numeric[known]))
    inside = np.abs(claimed - c * numeric) <= spread + 1e-10 * abs(c) * scale
    usable = known & (bounds <= 1e-2 * scale)
    return c if usable.sum() > 1 and bool(inside[usable].all()) else None


def nearly_constant_factor(facts: Facts, place: int, gradients: Sequence[Gradient]) -> tuple[float, float] | None:
    """The c with returned ≈ c × numerical, and how far they differ relative to the largest; None if that is not small.

    An iteration that stops early gives values, and a gradient, that are off by more than the slopes are.
    """
    projected = facts.projections(place, gradients)
    if projected is None:
        return None
    slopes = facts.slopes(place)
    claimed, numeric = np.concatenate(projected), np.concatenate([s.values for s in slopes])
    bounds = np.concatenate([s.bounds for s in slopes])
    scale = np.abs(numeric).max(initial=0.0)
    if not scale > 0 or not np.isfinite(claimed).all() or not bounds.max(initial=0.0) <= _LOOSEST * scale:
        return None
    c = float(claimed @ numeric / (numeric @ numeric))
    off = float(np.abs(claimed - c * numeric).max()) / scale
    return (c, off) if c != 0 and off <= _LOOSEST * abs(c) and tells_apart(abs(c - 1), off) else None


def factor_on(facts: Facts, place: int, gradients: Sequence[Gradient], wrong: NDArray[np.bool_]) -> float | None:
    """The factor that `wrong` entries of a large gradient are off by, if that is all that is wrong; 0 if zeros."""
    returned = [g for g in gradients if g is not None and g.shape == wrong.shape]
    if len(returned) != len(gradients):
        return None
    if not any(np.any(g[wrong]) for g in returned):
        return 0.0
    columns = np.flatnonzero(wrong)[:_MEASURED]
    slopes = np.array([facts.entry_slope(place, int(column), 1) for column in columns])
    c = fit_factor(returned[1].reshape(-1)[columns], slopes[:, 0], slopes[:, 1]) if columns.size > 1 else None
    return c if c and facts.explains(place, [np.where(wrong, g / c, g) for g in returned]) else None


def describe_factor(c: float, subject: Subject, precision: float = 1e-7) -> Factor:
    """Write a factor as a fraction, and say which argument or size it may be.

    Small whole numbers equal many quantities by chance: a cause that they suggest is worded as a question.
    """
    return next(causes_of(c, subject, precision), None) or number_of(c, precision)


def number_of(c: float, precision: float = 1e-7) -> Factor:
    """Write a factor as a fraction, or with its digits."""
    fraction = Fraction(c).limit_denominator(64)
    if fraction != 0 and abs(fraction) < _LONG and _near(c, float(fraction), precision):
        return Factor(value=c, text=str(fraction), because="")
    return Factor(value=c, text=f"{c:.9g}", because="", is_recognised=False)


def as_fraction(text: str) -> str:
    """A factor as all reports write it: a simple fraction if it is one, such as 3/2, and otherwise a decimal number."""
    if "." not in text and "e" not in text:
        return text
    above, _, below = text.partition("/")
    return number_of(float(above) / float(below or 1), _EXACT).text


def causes_of(c: float, subject: Subject, precision: float = 1e-7) -> Iterator[Factor]:
    """The arguments and sizes that a factor may come from; an argument squared after sizes of the same number."""
    arguments = _numbers(subject)
    below = divisors(subject)
    divided, others = [a for a in arguments if a[0] in below], [a for a in arguments if a[0] not in below]
    guesses = [_from_arguments(c, divided, precision, _DIVIDED), _from_arguments(c, others, precision, _ONCE)]
    guesses.append(_from_sizes(c, subject, precision))
    guesses.append(_from_arguments(c, arguments, precision, _SQUARED))
    yield from itertools.chain(*guesses)


def times(c: float, text: str) -> str:
    """A factor before "the right one": half of it, or 2 times it."""
    return f"{text} of" if abs(c) < 1 else f"{text} times"


def _numbers(subject: Subject) -> list[tuple[str, float]]:
    """The numbers among the arguments, and those that forward's other parameters default to."""
    given = {a.name for a in subject.arguments}
    numbers = [(a.name, a.value) for a in subject.arguments if not a.is_tensor]
    numbers += [(p.name, p.default) for p in subject.info.parameters if p.name not in given]
    plain = [(name, n) for name, n in numbers if isinstance(n, int | float) and not isinstance(n, bool)]
    return [(name, float(n)) for name, n in plain if 1 / _LARGEST < abs(n) < _LARGEST]


def _from_sizes(c: float, subject: Subject, precision: float) -> Iterator[Factor]:
    """Ways to write c with the size of an axis or of a whole tensor."""
    for size, what in _sizes(subject):
        for power in (-1, 1):
            if size > _COMMON and _near(c, float(size) ** power, precision):
                text = f"1/{size}" if power == -1 else str(size)
                slip = "a mean where a sum is meant" if power == -1 else "a sum where a mean is meant"
                because = f"{size} is the size of {what}: {slip}?"
                yield Factor(value=c, text=text, because=because, of=(what, power, 1))


def _from_arguments(
    c: float, arguments: list[tuple[str, float]], precision: float, powers: Sequence[tuple[int, str]]
) -> Iterator[Factor]:
    """Ways to write c with an argument's value: a power left out or one too many, perhaps with the wrong sign."""
    for name, value in arguments:
        if value in (0.0, 1.0, -1.0):
            continue
        common = any(n.is_integer() and abs(n) <= _COMMON + 1 for n in (value, 1 / value))
        asked = "?" if common else ""
        for power, clause in powers:
            for sign in (1, -1):
                if not _near(c, sign * value**power, precision):
                    continue
                text = f"1/{value:.10g}" if power == -1 else f"{value**power:.10g}"
                slip = f"{name} {clause}" + ("" if sign == 1 else ", and the sign is wrong")
                yield Factor(
                    value=c,
                    text=text if sign == 1 else f"-{text}",
                    because=f"{value:.10g} is the value of the argument {name}: {slip}{asked}",
                    of=(name, power, sign),
                )


def _near(c: float, value: float, precision: float) -> bool:
    return abs(c - value) <= precision * abs(value)


def _sizes(subject: Subject) -> list[tuple[int, str]]:
    sizes = []
    for space in (subject.codomain, subject.domain):
        for block in space.blocks:
            sizes.append((block.entries, block.name))
            sizes += [(size, f"axis {axis} of {block.name}") for axis, size in enumerate(block.shape)]
    return sizes


__all__ = [
    "Factor", "Slope", "as_fraction", "causes_of", "constant_factor", "describe_factor", "fit_factor",
    "nearly_constant_factor", "number_of", "times",
]  # fmt: skip
