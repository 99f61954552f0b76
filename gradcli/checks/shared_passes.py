"""The backward passes that several checks need, run through one graph if their results are consistent."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Gradients, Layout, Pass, RawBackward, Subject
from gradcli.errors import UserCodeError
from gradcli.frozen import dataclass

Cotangents = Sequence[NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Gradients for two sets of cotangents; `laid_out` says that those after the first were not contiguous."""

    of_u: Gradients
    of_v: Gradients
    laid_out: bool


def passed_together(
    subject: Subject,
    raw: RawBackward,
    cotangents: tuple[Cotangents, Cotangents, Cotangents],
    factors: tuple[float, float],
    *,
    tolerance: float,
    laid_out: bool,
) -> Together | None:
    """The gradients for u by a direct call, and for v and a u + b v by two more passes; None if they are inconsistent.

    If the third is a times the first plus b times the second, then backward is linear in grad_output, gives the same
    result again through a retained graph, and does not depend on the memory layout of grad_output. A mistake in one of
    these would go unseen only if it were the same linear map in every pass, the direct call included. If the gradients
    do not fit, or a pass raises, each check runs passes of its own to find out why.

    Args:
        subject: the Function.
        raw: what a direct call returned for u; if the framework would change that, a pass is run for u as well.
        cotangents: u, v (whose entries are all equal) and a u + b v.
        factors: a and b.
        tolerance: the error allowed in the combination, relative to the largest entries of its two terms.
        laid_out: make grad_output one number expanded for v, and strided for the combination.
    """
    u, v, combination = cotangents
    own = _passed_on(subject, raw)
    layouts = (Layout.EXPANDED, Layout.STRIDED) if laid_out else (Layout.CONTIGUOUS, Layout.CONTIGUOUS)
    passes = [Pass(cotangents=each, layout=layout) for each, layout in zip((v, combination), layouts, strict=True)]
    try:
        found = subject.backward_further(passes if own is not None else [Pass(cotangents=u), *passes])
    except UserCodeError:
        return None
    if found is None:
        return None
    of_u, of_v, of_combination = found if own is None else (own, *found)
    if not all(_fits(*each, factors, tolerance) for each in zip(of_u, of_v, of_combination, strict=True)):
        return None
    return Together(of_u=of_u, of_v=of_v, laid_out=laid_out)


def _passed_on(subject: Subject, raw: RawBackward) -> Gradients | None:
    """What backward returned for the active inputs; None if it wrote into a tensor or the framework would change it."""
    changed = raw.changed_cotangents or raw.changed_inputs or raw.changed_saved
    if not raw.available or raw.error is not None or raw.container is not None or changed:
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
    with np.errstate(all="ignore"):
        first, second = factors[0] * of_u, factors[1] * of_v
        scale = np.abs(first).max() + np.abs(second).max()
        gap = np.abs(of_combination - (first + second)).max()
    return bool(gap <= tolerance * scale) and bool(np.isfinite(scale))
