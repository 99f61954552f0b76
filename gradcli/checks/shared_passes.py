"""The backward passes that several checks need, run through one graph if their results are consistent."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Gradients, Layout, Pass, RawBackward, Subject
from gradcli.backends.tensor.call_records import OtherCalls
from gradcli.errors import UserCodeError
from gradcli.frozen import dataclass
from gradcli.numerics.maps.pieces import pieces

Cotangents = Sequence[NDArray[Any]]
_EXACT, _MOST, _SAMPLED = 2.0**-44, 0.75, 1_000
"""An entry is exact if it misses the combination by less than the first, relative to its terms: one whose grad_output
was rounded to float32 does so by chance once in 2^18. A gradient is exact if the second part of its entries is, or of
the third number of random ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Gradients for two sets of cotangents.

    `laid_out` says that the cotangents of two passes were not contiguous, `interleaved` that forward was called at
    other inputs before each pass but the first, and `exact`, for each gradient, that it combines to nearly all of its
    digits, as it would not if backward rounded grad_output.
    """

    of_u: Gradients
    of_v: Gradients
    laid_out: bool
    interleaved: bool
    exact: tuple[bool, ...]


def passed_together(
    subject: Subject,
    raw: RawBackward,
    cotangents: tuple[Cotangents, Cotangents, Cotangents],
    factors: tuple[float, float],
    *,
    tolerance: float,
    laid_out: bool,
    between: Sequence[OtherCalls],
) -> Together | None:
    """The gradients for u by a direct call, and for v and a u + b v by more passes; None if they are inconsistent.

    If the third is a times the first plus b times the second, then backward is linear in grad_output, gives the same
    result again through a retained graph, and does not depend on the memory layout of grad_output, or on the calls of
    forward at other inputs that were made before the later passes. A mistake in one of these would go unseen only if it
    were the same linear map in every pass, the direct call included. If the gradients do not fit, or a pass raises,
    each check runs passes of its own to find out why.

    Args:
        subject: the Function.
        raw: what a direct call returned for u; if the framework would change that, a pass is run for u as well.
        cotangents: u, v (whose entries are all equal) and a u + b v.
        factors: a and b.
        tolerance: the error allowed in the combination, relative to the largest entries of its two terms.
        laid_out: make grad_output one number expanded for v, and strided for the combination.
        between: calls of forward to make before the passes; before a further one for u where there are three.
    """
    u, v, combination = cotangents
    own = passed_on(subject, raw)
    if own is None and raw.available and between:
        return None  # the direct call may have changed what further passes through its graph would be compared with
    layouts = (Layout.EXPANDED, Layout.STRIDED) if laid_out else (Layout.CONTIGUOUS, Layout.CONTIGUOUS)
    made = [*zip((v, combination), layouts, strict=True), *[(u, Layout.CONTIGUOUS)] * (len(between) - 2)]
    passes = [Pass(cotangents=each, layout=layout, after=c) for (each, layout), c in zip_longest(made, between)]
    try:
        found = subject.backward_further(passes if own is not None else [Pass(cotangents=u), *passes])
    except UserCodeError:
        return None
    if found is None:
        return None
    of_u, of_v, of_combination, *of_u_again = found if own is None else (own, *found)
    if not all(_fits(*each, factors, tolerance) for each in zip(of_u, of_v, of_combination, strict=True)):
        return None
    if not all(_are_equal(of_u, again, tolerance) for again in of_u_again):
        return None
    exact = tuple(_is_exact(*each, factors) for each in zip(of_u, of_v, of_combination, strict=True))
    return Together(of_u=of_u, of_v=of_v, laid_out=laid_out, interleaved=bool(between), exact=exact)


def passed_on(subject: Subject, raw: RawBackward) -> Gradients | None:
    """What backward returned for the active inputs; None if it wrote into a tensor or the framework would change it."""
    changed = raw.changed_cotangents or raw.changed_inputs or raw.changed_saved
    if not raw.available or raw.error is not None or raw.container is not None or raw.nested_unlike or changed:
        return None
    found: list[NDArray[Any] | None] = []
    for position in subject.active:
        if position >= len(raw.gradients):
            return None
        gradient, argument = raw.gradients[position], subject.arguments[position]
        whole = gradient.value is not None and (gradient.shape, gradient.value.dtype) == (
            argument.value.shape,
            argument.value.dtype,
        )
        if not (whole or gradient.is_none) or argument.sparsity is not None:
            return None
        found.append(gradient.value)
    return tuple(found)


def _fits(
    of_u: NDArray[Any] | None,
    of_v: NDArray[Any] | None,
    of_combination: NDArray[Any] | None,
    factors: tuple[float, float],
    tolerance: float,
) -> bool:
    """Whether the gradient for the combination is the combination of the gradients, and all of them are finite."""
    if of_u is None or of_v is None or of_combination is None:
        return of_u is None and of_v is None and of_combination is None
    if not of_u.size:
        return True
    us, vs, combinations = of_u.reshape(-1), of_v.reshape(-1), of_combination.reshape(-1)
    gap = one = two = np.float64(0.0)
    with np.errstate(all="ignore"):
        for piece in pieces(slice(0, us.size)):
            first, second = factors[0] * us[piece], factors[1] * vs[piece]
            one, two = np.maximum(one, np.abs(first).max()), np.maximum(two, np.abs(second).max())
            gap = np.maximum(gap, np.abs(combinations[piece] - (first + second)).max())
    return bool(gap <= tolerance * (one + two)) and bool(np.isfinite(one + two))


def _is_exact(
    of_u: NDArray[Any] | None,
    of_v: NDArray[Any] | None,
    of_combination: NDArray[Any] | None,
    factors: tuple[float, float],
) -> bool:
    """Whether most entries that are not zero are the combination of their terms in nearly all digits."""
    if of_u is None or of_v is None or of_combination is None or not of_u.size:
        return False
    us, vs, combinations = of_u.reshape(-1), of_v.reshape(-1), of_combination.reshape(-1)
    if us.size > 2 * _SAMPLED:
        chosen = np.random.default_rng(us.size).integers(0, us.size, _SAMPLED)
        us, vs, combinations = us[chosen], vs[chosen], combinations[chosen]
    with np.errstate(all="ignore"):
        first, second = factors[0] * us, factors[1] * vs
        exact = np.abs(combinations - (first + second)) <= _EXACT * (np.abs(first) + np.abs(second))
    nonzero = us != 0
    telling = int(np.count_nonzero(nonzero))
    return telling >= min(of_u.size, _SAMPLED // 10) and float(np.mean(exact[nonzero])) > _MOST


def _are_equal(one: Gradients, other: Gradients, tolerance: float) -> bool:
    """Whether two passes give the same gradients, up to the order of sums."""
    return all(_fits(a, a, b, (0.5, 0.5), tolerance) for a, b in zip(one, other, strict=True))
