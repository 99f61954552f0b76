"""Names for what explains a returned gradient as a whole: missing, exchanged, scaled, transposed, rolled."""

import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.code.followed import described, varies_elsewhere
from gradcli.diagnosis.code.sized_factor import of_sizes
from gradcli.diagnosis.contrast import factor_elsewhere
from gradcli.diagnosis.entries import indices_of
from gradcli.diagnosis.factor import constant_factor, nearly_constant_factor, number_of, times
from gradcli.diagnosis.facts import REAL_ROWS
from gradcli.diagnosis.slips.elsewhere import far_away
from gradcli.diagnosis.suspect import Named, Suspect, each, name_of
from gradcli.diagnosis.table import SIGNIFICANCE, Gradient
from gradcli.errors import UserCodeError
from gradcli.findings import SURROGATE_ADVICE, FindingKind
from gradcli.numerics.wording import of_largest

_REARRANGED = 3
"""At so many inputs with permuted entries a gradient of zeros is looked at again."""
LEAST_ROLLED = 3
"""Along an axis with fewer entries, a roll cannot be distinguished from an exchange."""
_LOWER = (("bfloat16", 8, 2.0**-6), ("float16", 11, 2.0**-9), ("float32", 24, 1e-4))
"""Precisions, the bits of their numbers, and the largest error, as a part of the gradient's largest entry, that a
backward computed in them has: four roundings of bfloat16 and float16, a sum of many terms in float32."""
_ROUNDED = 1e-5
"""How far a factor is from 1 that a rounded number may have caused; a power or an exponential multiplies its error."""
_DRIFT = 3.0
"""A factor may change by so many times what it is off by, since an early stop is off in one direction."""
_ZERO = 0.1
"""A derivative within its error bound of zero is called zero if three bounds are at most this part of the gradient."""


def _is_zero(gradients: Sequence[Gradient]) -> bool:
    return all(g is None or not np.any(g) for g in gradients)


def missing(suspect: Suspect) -> Named | None:
    """No gradient is returned although the derivative is not zero."""
    if not _is_zero(suspect.gradients):
        return None
    facts, name = suspect.facts, suspect.name
    if any(g is not None for g in suspect.gradients) and _is_felt_elsewhere(suspect):
        return None
    some = " from some of the outputs" if suspect.mismatch is not None and suspect.mismatch.small_rows else ""
    what = "None" if all(g is None for g in suspect.gradients) else "zeros"
    for position, argument in enumerate(facts.subject.arguments):
        if position != facts.subject.active[suspect.block] and _belongs(suspect, suspect.block, position):
            tracked = position in facts.subject.active
            untracked = "" if tracked else f", although {argument.name} requires none"
            return (
                FindingKind.SWAPPED_GRADIENTS if tracked else FindingKind.MISSING_GRADIENT,
                f"{name} gets no gradient: backward returns {what} for it although it requires one and its numerical "
                f"gradient is not zero; its gradient is returned at the position of {argument.name}{untracked}",
                {"stray": argument.name},
            )
    return (
        FindingKind.MISSING_GRADIENT,
        f"{name} gets no gradient{some}: backward returns {what} for it although it requires one and its numerical "
        "gradient is not zero",
        {},
    )


def _is_felt_elsewhere(suspect: Suspect) -> bool:
    """Whether backward returns more than zeros at other values, as where only entries beyond a bound get none."""
    facts = suspect.facts
    others = itertools.chain(map(facts.rearranged, range(_REARRANGED)), (there for there, _ in far_away(facts)))
    return any(there is not None and not _is_zero(there.of(facts.subject.active[suspect.block])) for there in others)


def non_finite(suspect: Suspect) -> Named | None:
    """NaN or infinity is returned where the derivative is finite."""
    bad = next((g for g in suspect.gradients if g is not None and not np.isfinite(g).all()), None)
    if bad is None:
        return None
    count = int((~np.isfinite(bad)).sum())
    first = indices_of(~np.isfinite(bad), 1)[0]
    return (
        FindingKind.NON_FINITE_GRADIENT,
        f"{suspect.name}: the returned gradient is not finite in {count} of {bad.size} entries (first {list(first)}: "
        f"{bad[first]}), although the derivative is finite there",
        {},
    )


def swapped(suspect: Suspect) -> Named | None:
    """What is returned here is the gradient of another input."""
    for other in range(len(suspect.facts.subject.active)):
        if other == suspect.block or not _belongs(suspect, other, suspect.facts.subject.active[suspect.block]):
            continue
        lost = suspect.facts.of(suspect.facts.subject.active[other])
        if suspect.facts.explains(other, lost):
            continue
        name, owner = suspect.name, name_of(suspect.facts, other)
        shape = list(suspect.facts.subject.domain.blocks[suspect.block].shape)
        got = list(np.shape(next(g for g in suspect.gradients if g is not None)))
        lacks = f", and {owner} gets None" if all(g is None for g in lost) else ""
        form = ""
        if got != shape:
            form = f" (shape {got}, where {name} has {shape})"
            if _sums_down(tuple(shape), tuple(got)):
                lacks += f"; the framework silently sums {got} to {shape}"
        return (
            FindingKind.SWAPPED_GRADIENTS,
            f"{name}: backward returns the gradient of {owner}{form} at the position of {name}{lacks}",
            {"stray": name},
        )
    return None


def _belongs(suspect: Suspect, place: int, position: int) -> bool:
    """Whether what is returned for one argument is the gradient of the active input number `place`, here and nearby.

    If inputs happen to be equal, the gradients of different ones may be equal too.
    """
    facts = suspect.facts
    if not facts.explains(place, facts.of(position)):
        return False
    other = facts.elsewhere
    return other is None or other.judged(place, other.of(position)) is not False


def _sums_down(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    padded = (1,) * (len(large) - len(small)) + small
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(padded, large, strict=True))


def conjugate(suspect: Suspect) -> Named | None:
    """The conjugate of the right gradient."""
    if not suspect.facts.subject.domain.blocks[suspect.block].complex or suspect.is_beyond_slopes:
        return None
    if suspect.proves(lambda s: each(s, np.conj), rows=REAL_ROWS):
        return (
            FindingKind.MISSING_CONJUGATE,
            f"{suspect.name}: the returned gradient is the conjugate of the right one",
            {},
        )
    return None


def factor(suspect: Suspect) -> Named | None:
    """One constant times the right gradient, also at other values, and at other sizes as far as those can be tried."""
    if varies_elsewhere(suspect) or (c := _constant(suspect)) is None:
        return None
    if not suspect.proves(partial(_divided, factor=c)):
        return _varying_factor(suspect, suspect.elsewhere, c)
    other = factor_elsewhere(suspect, c)
    return _factor(suspect, c, "everywhere") if other is None else _varying_factor(suspect, other, c)


def factor_here(suspect: Suspect) -> Named | None:
    """One constant times the right gradient here, but not at inputs of other sizes, or of other values."""
    c = _constant(suspect)
    if c is None or not suspect.proves(partial(_divided, factor=c)):
        return None
    if varies_elsewhere(suspect):
        return _factor(suspect, c, "in every entry here, though not at other sizes", is_caused=False)
    subject = suspect.facts.subject
    if subject.domain.blocks[suspect.block].size == subject.codomain.size == 1:
        return None  # any two numbers have a quotient
    return _factor(suspect, c, "in every entry here, though not at other values", is_caused=False)


def _constant(suspect: Suspect) -> float | None:
    """The factor by which the gradient is wrong along every slope."""
    c = constant_factor(suspect.facts, suspect.block, suspect.gradients)
    return None if c is None or abs(c - 1) <= SIGNIFICANCE else c


def _factor(suspect: Suspect, c: float, where: str, *, is_caused: bool = True) -> Named | None:
    facts, name = suspect.facts, suspect.name
    if abs(c + 1) <= SIGNIFICANCE:
        return (
            FindingKind.WRONG_SIGN,
            f"{name}: the returned gradient is -1 times the right one {where}{_advice(suspect)}",
            {"factor": "-1"},
        )
    found = described(suspect, c) if is_caused else number_of(c)
    alone = facts.subject.domain.blocks[suspect.block].size == facts.subject.codomain.size == 1
    if alone and suspect.elsewhere is None and not found.is_recognised:
        return None  # any two numbers have a quotient
    because = (f"; {found.because}" if found.because else of_sizes(suspect, c) if is_caused else "") + _advice(suspect)
    of_some = suspect.mismatch is not None and suspect.mismatch.small_rows  # which outputs these are is said behind it
    rounded = "; so close to 1, it may come from a number that was rounded to float32" * (abs(c - 1) <= _ROUNDED)
    return (
        FindingKind.WRONG_FACTOR,
        f"{name}: the returned gradient is {times(c, found.text)} the right one{'' if of_some else f' {where}'}"
        f"{rounded}{because}",
        {"factor": found.text},
    )


def _advice(suspect: Suspect) -> str:
    """What to do if the gradient is meant so: a forward that returns its input is written for its backward alone."""
    return f"; {SURROGATE_ADVICE}" if suspect.facts.returns_input(suspect.block) and _is_identity(suspect) else ""


def _is_identity(suspect: Suspect) -> bool:
    """Whether forward returns its input close by too: 1 is its own square."""
    subject = suspect.facts.subject
    map_, here, point = subject.derivative_map(1), subject.domain.slices[suspect.block], subject.point.copy()
    point[here] += 2.0**-8 - 2.0**-6 * point[here]
    try:
        return np.array_equal(map_.value(point), point[here])
    except UserCodeError:
        return True


def approximate_factor(suspect: Suspect) -> Named | None:
    """One constant times the right gradient, to the accuracy of an iteration that stops early."""
    facts, other = suspect.facts, suspect.elsewhere
    here = nearly_constant_factor(facts, suspect.block, suspect.gradients)
    alone = facts.subject.domain.blocks[suspect.block].size == facts.subject.codomain.size == 1
    if here is None or other is None or alone:
        return None
    there = nearly_constant_factor(other.facts, other.block, other.gradients)
    if there is None or abs(there[0] - here[0]) > _DRIFT * (here[1] + there[1]):
        return None
    c, off = here[0], max(here[1], there[1], abs(there[0] - here[0]))
    rounded = next(r for digits in range(1, 18) if abs((r := float(f"{c:.{digits}g}")) - c) <= _DRIFT * off)
    text = f"{rounded:.9g}"
    return (
        FindingKind.WRONG_SIGN if rounded == -1 else FindingKind.WRONG_FACTOR,
        f"{suspect.name}: the returned gradient is {times(rounded, text)} the right one everywhere, to within "
        f"{of_largest(off + abs(rounded - c))}",
        {"factor": text},
    )


def _varying_factor(suspect: Suspect, other: Suspect | None, c: float) -> Named | None:
    """The right gradient times a factor that changes with the inputs; any gradient of one entry has this form.

    The factor is then not a number, and none is given for it: the sentence has it here and at other inputs.
    """
    if other is None or suspect.facts.subject.domain.blocks[suspect.block].entries < LEAST_ROLLED:
        return None
    if max(np.count_nonzero(g) for g in suspect.gradients if g is not None) < 2:
        return None
    there = constant_factor(other.facts, other.block, other.gradients)
    if there is None:
        return None
    return (
        FindingKind.WRONG_FACTOR,
        f"{suspect.name}: the returned gradient is the right one times a factor that is the same in every entry and "
        f"changes with the inputs: {number_of(c).text} here, {number_of(there).text} at others",
        {},
    )


def transposed(suspect: Suspect) -> Named | None:
    """The right gradient with its axes exchanged."""
    ranks = {g.ndim for g in suspect.gradients if g is not None}
    if len(ranks) != 1 or (rank := ranks.pop()) < 2 or rank > 4 or suspect.is_beyond_slopes:
        return None
    for axes in itertools.permutations(range(rank)):
        if axes == tuple(range(rank)):
            continue
        if suspect.proves(partial(_with_axes, axes=axes), orders=True):
            how = "transposed" if rank == 2 else f"with its axes exchanged (its transpose {list(axes)} is right)"
            return FindingKind.TRANSPOSED, f"{suspect.name}: the returned gradient is the right one, {how}", {}
    return None


def shifted(suspect: Suspect) -> Named | None:
    """The right gradient, rolled along an axis."""
    shape = suspect.shape
    if suspect.is_beyond_slopes or any(g is None or g.shape != shape for g in suspect.gradients):
        return None
    for axis, size in enumerate(shape):
        for shift in (1, -1, 2, -2, 3, -3):
            if size < LEAST_ROLLED or abs(shift) >= size:
                continue
            if suspect.proves(partial(_rolled, shift=-shift, axis=axis), orders=True):
                return (
                    FindingKind.WRONG_SHIFT,
                    f"{suspect.name}: the returned gradient is the right one, rolled by {shift} along axis {axis}",
                    {},
                )
    return None


def _rolled(suspect: Suspect, *, shift: int, axis: int) -> Sequence[Gradient]:
    return each(suspect, lambda g: np.roll(g, shift, axis))


def _with_axes(suspect: Suspect, *, axes: tuple[int, ...]) -> Sequence[Gradient]:
    return each(suspect, lambda g: np.transpose(g, axes))


def _divided(suspect: Suspect, *, factor: float) -> Sequence[Gradient]:
    return each(suspect, lambda g: g / factor)


def surrogate(suspect: Suspect) -> Named | None:
    """A gradient for outputs that do not change around the inputs."""
    mismatch = suspect.mismatch
    if mismatch is None or not mismatch.complete or not np.isfinite(mismatch.claimed).all():
        return None
    uncertainty = 3 * mismatch.bound
    if (np.abs(mismatch.numeric) > uncertainty).any() or not np.abs(mismatch.claimed).max(initial=0.0) > 0:
        return None
    if not uncertainty.max(initial=0.0) <= _ZERO * np.abs(mismatch.claimed).max():
        return None
    size, wrong = mismatch.numeric.size, int((np.abs(mismatch.claimed) > uncertainty).sum())
    where = f"in all {size}" if wrong == size else f"in {wrong} of the {size}"
    return (
        FindingKind.WRONG_GRADIENT,
        f"{suspect.name}: backward returns a gradient where forward's derivative is zero, {where} entries of the "
        f"Jacobian; {SURROGATE_ADVICE}",
        {},
    )


_FIRST = 1000
"""Values that are looked at before all are: most gradients are not of low precision, and have millions of entries."""


def _are_held(values: FloatArray, bits: int) -> bool:
    """Whether all values are finite and have at most so many binary digits."""
    digits = np.frexp(values.astype(np.float64, copy=False))[0] * 2.0**bits
    return bool(np.isfinite(values).all() and (digits == np.rint(digits)).all())


def low_precision(suspect: Suspect) -> Named | None:
    """Values that a lower precision holds exactly, with errors of its size."""
    errors = [e.max_rel_error for e in suspect.evidence if e.max_rel_error is not None]
    arrays = [g for g in suspect.gradients if g is not None and np.any(g) and g.dtype.kind in "fc"]
    if not errors or not arrays:
        return None
    parts = [g.real.reshape(-1) for g in arrays] + [g.imag.reshape(-1) for g in arrays if g.dtype.kind == "c"]
    for name, bits, most in _LOWER:
        if max(errors) <= most and all(_are_held(p, bits) for p in (parts[0][:_FIRST], *parts)):
            return (
                FindingKind.LOW_PRECISION,
                f"{suspect.name}: every entry of the returned gradient is exactly a {name} value, with errors of up to "
                f"{of_largest(max(errors))}: backward computes in {name}",
                {},
            )
    return None
