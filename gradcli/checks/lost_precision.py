"""Gradients of 64-bit inputs that are only accurate to a lower precision, although their dtype is float64.

A gradient is linear in the cotangents, whose 53 bits are random: an entry is a float32 number by chance once in 2^29,
and rightly so only if it is zero. A gradient whose factors were rounded to float32 before they were multiplied has all
53 bits, but an error of about 2^-24, and it stays the same when its input takes a step too small for float32.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.tensor.framework import unit_roundoff
from gradcli.checks.base import FIRST_ORDER_ERRORS, Situation
from gradcli.errors import UserCodeError
from gradcli.numerics.maps.vector_map import VectorMap

_SINGLE = 29
"""The bits at the end of a 53-bit significand that are zero in a float32 number."""
_FINEST, _COARSEST = 2.0**-32, 2.0**-20
"""Errors relative to the largest entry between which float32, of roundoff 2^-24, may be the cause."""
_SMALL = 2.0**-30
"""A step, relative to each entry, that changes one float32 number in 64, and every float64 number."""
_UNCHANGED = (
    "its gradient stays the same to the bit where an input changes by 1e-9 of itself, as after rounding to float32 or "
    "where terms cancel in backward"
)
_STEP = 2.0**-27
"""A step, relative to an entry, that is smaller than the spacing of float32 numbers."""
_SMALLER_STEP = 2.0**-31
"""A step, relative to an entry, that changes one float32 number in 128 or fewer."""
_LOW = ("float32", "complex64", "float16", "bfloat16")
_ENTRIES, _ALIKE = 4, 0.25
_SAMPLED = 1_000
"""About so many of the entries are looked at first: one without spare bits settles the question."""


def in_few_bits(situation: Situation) -> Iterator[tuple[int, str, int]]:
    """The places of active inputs whose gradient has lost bits that forward keeps.

    Each comes with a clause that says why, and the number of decimal digits that are lost.
    """
    subject = situation.subject
    if subject.low_dtypes or not (subject.output_numbers and subject.domain.size and subject.codomain.size):
        return
    returned, found = situation.reference(), dict(_by_the_body(situation)) | dict(_by_the_cotangents(situation))
    for place, gradient in enumerate(returned):
        dtype = _dtype_of(situation, subject.active[place])
        if gradient is None or not (_have_spare_bits(gradient, _SINGLE) or _is_off(situation, place, dtype)):
            continue
        if _is_fine(situation, place):
            low = "backward returns its gradient in " + str(dtype)
            found[place] = low if dtype in _LOW else "every entry of its gradient is exactly a float32 value"
    for place, why in sorted(found.items()):
        dtype = next((each for each in _LOW if why.endswith(each)), "float32")
        yield place, why, round(math.log10(unit_roundoff(dtype) / unit_roundoff("float64")))


def _is_off(situation: Situation, place: int, dtype: str | None) -> bool:
    """Whether backward returned this gradient in a lower precision, and its measured error exceeds `_FINEST`."""
    errors: dict[int, float] = situation.once(FIRST_ORDER_ERRORS, dict)
    return dtype in _LOW and errors.get(place, 0.0) > _FINEST


def _by_the_cotangents(situation: Situation) -> Iterator[tuple[int, str]]:
    """Gradients of which most entries stay the same to the bit where all cotangents change by `_SMALL`.

    A gradient is linear in the cotangents, so it changes by as much, unless they were rounded to float32. No pass is
    made where the passes for all checks combine to more digits than float32 has.
    """
    passed = situation.together()
    if passed is not None and all(passed.exact):
        return
    try:
        moved = situation.subject.backward(_near(situation, _SMALL))
    except UserCodeError:
        return
    for place, (here, there) in enumerate(zip(situation.reference(), moved, strict=True)):
        if here is None or there is None or here.shape != there.shape or not np.any(here):
            continue
        same = (here == there) & (here != 0)
        if (
            2 * same.sum() > np.count_nonzero(here)
            and _is_fine(situation, place)
            and _by_float32(situation, place, same)
        ):
            yield place, "grad_output was rounded to float32 in backward"


def _near(situation: Situation, step: float) -> list[NDArray[Any]]:
    """The cotangents with every entry moved up or down by a part `step` of it."""
    rng = np.random.default_rng([situation.seed, 59])
    return [u * (1 + step * rng.choice([-1.0, 1.0], u.shape)) for u in situation.cotangents()]


def _by_float32(situation: Situation, place: int, same: NDArray[np.bool_]) -> bool:
    """Whether rounding to float32 may be why entries of a gradient stay the `same` for a small step of the cotangents.

    They then change for a step of several float32 numbers, and the derivative of forward's body changes for the small
    one. Neither need be so where a gradient does not depend on the cotangents, or where parts as large as 1e8 times it
    cancel: what is added to such a part in float64 keeps as many digits as float32 has.
    """
    subject, body = situation.subject, situation.subject.body_map(1)
    try:
        far = subject.backward(_near(situation, _COARSEST))[place]
        if far is None or float(np.mean((far == situation.reference()[place])[same])) > 0.5:
            return False
        if body is None:
            return True
        rows = [subject.codomain.flatten(us) for us in (situation.cotangents(), _near(situation, _SMALL))]
        before, after = (subject.domain.unflatten(body.vjp(subject.point, row))[place] for row in rows)
    except UserCodeError:
        return False
    return float(np.mean((before != after)[same])) > 0.5


def _by_the_body(situation: Situation) -> Iterator[tuple[int, str]]:
    """Gradients with an error of float32's size that do not change where the derivative of forward's body does.

    The error of an iteration that was stopped early changes with its input; that of rounding to float32 does not, nor
    that of terms which cancel: their difference is a multiple of their own last bit.
    """
    errors: dict[int, float] = situation.once(FIRST_ORDER_ERRORS, dict)
    off = [place for place, error in errors.items() if _FINEST < error < _COARSEST]
    body = situation.subject.body_map(1) if off else None
    if body is None:
        return
    for place in off:
        if any(_stays(situation, body, place, other) for other in range(len(errors))) and _is_fine(situation, place):
            yield place, _UNCHANGED


def _stays(situation: Situation, body: VectorMap, place: int, moved: int) -> bool:
    """Whether a small step of input `moved` changes the body's derivative in input `place`, but not the claim.

    More than half of the claim's entries must stay the same to the bit: of float32 numbers, one in 64 changes. The two
    must be close first: the body of an iteration with a fixed number of steps has a derivative of its own.
    """
    subject = situation.subject
    position, part = subject.active[moved], subject.domain.slices[moved]
    rng = np.random.default_rng([situation.seed, 53])
    value = subject.arguments[position].value
    near = value * (1 + _SMALL * rng.choice([-1.0, 1.0], value.shape))
    arguments = [replace(a, value=near) if n == position else a for n, a in enumerate(subject.arguments)]
    cotangents = situation.cotangents()
    try:
        found = subject.call_at(arguments, lambda _: cotangents).gradients
        point = subject.point.copy()
        point[part] = subject.domain.flatten(
            [near if n == moved else each for n, each in enumerate(subject.domain.unflatten(point))]
        )[part]
        flat = subject.codomain.flatten(cotangents)
        before, after = (subject.domain.unflatten(body.vjp(at, flat))[place] for at in (subject.point, point))
    except UserCodeError:
        return False
    here, there = situation.reference()[place], None if found is None else found[place]
    if here is None or there is None or not _close(here, before):
        return False
    changes = np.abs(after - before) > _SMALL / 16 * np.abs(before)
    return bool(changes.any()) and float(np.mean((here == there)[changes])) > 0.5


def _close(claimed: NDArray[Any], derivative: NDArray[Any]) -> bool:
    """Whether rounding to float32 may be the only difference between two gradients."""
    return bool(np.abs(claimed - derivative).max(initial=0.0) < _COARSEST * np.abs(derivative).max(initial=0.0))


def _have_spare_bits(gradient: NDArray[Any] | None, spare: int) -> bool:
    """Whether all nonzero entries end in `spare` zero bits, and there are too many of them for that to be chance."""
    if gradient is None or not gradient.size or gradient.dtype.kind not in "fc":
        return False
    parts = np.ascontiguousarray(gradient).view(gradient.real.dtype).astype(np.float64, copy=False).reshape(-1)
    sample = parts[:: max(1, parts.size // _SAMPLED)]
    if not np.isfinite(sample).all() or not _end_in_zeros(sample, spare):
        return False
    parts = parts[parts != 0]
    return bool(np.isfinite(parts).all()) and parts.size * spare >= _SINGLE and _end_in_zeros(parts, spare)


def _end_in_zeros(parts: NDArray[np.float64], spare: int) -> bool:
    significands = np.frexp(parts)[0] * 2.0**53
    return bool((np.remainder(significands, 2.0**spare) == 0).all())


def _is_fine(situation: Situation, place: int) -> bool:
    """Whether forward itself keeps more bits: its values follow steps of single entries too small for float32.

    If forward rounds to float32 too, backward cannot return a better gradient. The same holds where forward rounds
    another input: its values, and the gradient of this one, then depend on float32 numbers.
    """
    if situation.roundoff_of_values > 2.0**-53 or situation.reference()[place] is None:
        return False
    try:
        if any(
            not abs(slope - claim) <= _ALIKE * abs(claim) for slope, claim in _small_slopes(situation, place, _STEP)
        ):
            return False
    except UserCodeError:
        return False
    return not any(_is_rounded(situation, other) for other in range(len(situation.reference())) if other != place)


def _is_rounded(situation: Situation, place: int) -> bool:
    """Whether forward rounds this input to float32: small steps mostly change nothing, and yet its gradient is right.

    Without a right gradient, forward may be constant in it: rounded to whole numbers, say, by a straight-through rule.
    """
    errors: dict[int, float] = situation.once(FIRST_ORDER_ERRORS, dict)
    if situation.reference()[place] is None or not errors.get(place, 1.0) < _COARSEST:
        return False
    try:
        slopes = [slope for slope, _ in _small_slopes(situation, place, _SMALLER_STEP)]
    except UserCodeError:
        return False
    return 2 * slopes.count(0.0) > len(slopes)


def _small_slopes(situation: Situation, place: int, step: float) -> Iterator[tuple[float, float]]:
    """Slopes of <cotangents, forward> along a step too small for float32, in single entries, and those claimed.

    Raises UserCodeError.
    """
    subject, map_ = situation.subject, situation.subject.derivative_map(1)
    cotangent = subject.codomain.flatten(situation.cotangents())
    known = situation.reference()[place]
    zeros = [np.zeros(block.shape, block.dtype) for block in subject.domain.blocks]
    claimed = subject.domain.flatten([zero if n != place or known is None else known for n, zero in enumerate(zeros)])
    point, here = subject.point, map_.value(subject.point)
    for entry in _largest(claimed * point):
        moved = point.copy()
        moved[entry] *= 1 + step
        slope = float(cotangent @ (map_.value(moved) - here)) / float(moved[entry] - point[entry])
        yield slope, float(claimed[entry])


def _largest(terms: NDArray[np.float64]) -> Sequence[int]:
    order = np.argsort(-np.abs(terms))[:_ENTRIES]
    return [int(entry) for entry in order if terms[entry] != 0]


def _dtype_of(situation: Situation, position: int) -> str | None:
    """The dtype of what backward itself returned for an argument, before the framework cast it, where it is known."""
    returned = situation.raw_backward().gradients
    return returned[position].dtype if position < len(returned) else None
