"""Names for a wrong first-order gradient, the most specific first; each is held against slopes of forward."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.entries import indices_of, pulled_back, worst_entries, wrong_mask
from gradcli.diagnosis.factor import constant_factor, describe_factor, factor_on, fit_factor
from gradcli.diagnosis.facts import REAL_ROWS, Facts, Gradient
from gradcli.diagnosis.predicate import fitting_rule
from gradcli.diagnosis.terms import lacking_term
from gradcli.findings import FindingKind
from gradcli.results import Entry, Evidence, Finding, Mismatch

Named = tuple[FindingKind, str, dict[str, Any]]
_SIGNIFICANCE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A wrong gradient: the active input number `place`, what was returned for it, and the evidence against it."""

    facts: Facts
    place: int
    gradients: tuple[Gradient, ...]
    mismatch: Mismatch | None
    evidence: tuple[Evidence, ...]

    @property
    def name(self) -> str:
        """The input's name."""
        return _name(self.facts, self.place)

    @property
    def is_unseen(self) -> bool:
        """Whether the slopes do not show the error, as that of one entry in ten thousand: they then prove nothing."""
        return self.facts.explains(self.place, self.gradients)


def name_gradient(
    facts: Facts, name: str, mismatch: Mismatch | None, evidence: Sequence[Evidence] = ()
) -> Finding | None:
    """The finding for the input called `name`; None where nothing is wrong with it that can be told."""
    places = {facts.subject.arguments[p].name: i for i, p in enumerate(facts.subject.active)}
    if name not in places:
        return None
    place = places[name]
    position = facts.subject.active[place]
    gradients = facts.of(position)
    shape = facts.subject.domain.blocks[place].shape
    suspect = Suspect(facts=facts, place=place, gradients=gradients, mismatch=mismatch, evidence=tuple(evidence))
    kind, message, extra = next(named for rule in _RULES if (named := rule(suspect)) is not None)
    entries = extra.pop("entries", None) or worst_entries(facts, place, mismatch, shape=shape)
    return Finding(
        kind=kind,
        message=message,
        input=name,
        output=None if mismatch is None else _output(facts, mismatch),
        entries=entries,
        entries_total=facts.subject.domain.blocks[place].entries,
        **extra,
    )


def _output(facts: Facts, mismatch: Mismatch) -> int:
    return facts.subject.output_numbers[mismatch.output]


def _name(facts: Facts, place: int) -> str:
    return facts.subject.arguments[facts.subject.active[place]].name


def _is_zero(gradients: Sequence[Gradient]) -> bool:
    return all(g is None or not np.any(g) for g in gradients)


def _missing(suspect: Suspect) -> Named | None:
    if not _is_zero(suspect.gradients):
        return None
    facts, name = suspect.facts, suspect.name
    what = "None" if all(g is None for g in suspect.gradients) else "zeros"
    for position, argument in enumerate(facts.subject.arguments):
        if position != facts.subject.active[suspect.place] and facts.explains(suspect.place, facts.of(position)):
            tracked = position in facts.subject.active
            untracked = "" if tracked else f", and {argument.name} requires none"
            return (
                FindingKind.SWAPPED_GRADIENTS if tracked else FindingKind.MISSING_GRADIENT,
                f"{name} gets no gradient: backward returns {what} for it although it requires one and its numerical "
                f"gradient is not zero; the gradient of {name} was returned in {argument.name}'s place{untracked}",
                {"stray": argument.name},
            )
    return (
        FindingKind.MISSING_GRADIENT,
        f"{name} gets no gradient: backward returns {what} for it although it requires one and its numerical gradient "
        "is not zero",
        {},
    )


def _non_finite(suspect: Suspect) -> Named | None:
    bad = next((g for g in suspect.gradients if g is not None and not np.isfinite(g).all()), None)
    if bad is None:
        return None
    count = int((~np.isfinite(bad)).sum())
    first = indices_of(~np.isfinite(bad), 1)[0]
    return (
        FindingKind.NON_FINITE_GRADIENT,
        f"{suspect.name}: the returned gradient is not finite in {count} of {bad.size} entries "
        f"(first {list(first)}: {bad[first]}), where the derivative is finite",
        {},
    )


def _swapped(suspect: Suspect) -> Named | None:
    """What is returned here is the gradient of another input."""
    for other in range(len(suspect.facts.subject.active)):
        if other == suspect.place or not suspect.facts.explains(other, suspect.gradients):
            continue
        lost = suspect.facts.of(suspect.facts.subject.active[other])
        if suspect.facts.explains(other, lost):
            continue
        name, owner = suspect.name, _name(suspect.facts, other)
        shape = list(suspect.facts.subject.domain.blocks[suspect.place].shape)
        got = list(np.shape(next(g for g in suspect.gradients if g is not None)))
        lacks = f", and {owner} gets None" if all(g is None for g in lost) else ""
        form = ""
        if got != shape:
            form = f" (shape {got}, where {name} has {shape})"
            if _sums_down(tuple(shape), tuple(got)):
                lacks += f"; the framework silently sums {got} to {shape}"
        return (
            FindingKind.SWAPPED_GRADIENTS,
            f"{name}: the gradient of {owner}{form} was returned in {name}'s place{lacks}",
            {"stray": name},
        )
    return None


def _sums_down(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    padded = (1,) * (len(large) - len(small)) + small
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(padded, large, strict=True))


def _conjugate(suspect: Suspect) -> Named | None:
    if not suspect.facts.subject.domain.blocks[suspect.place].complex or suspect.is_unseen:
        return None
    conjugated = [None if g is None else np.conj(g) for g in suspect.gradients]
    if suspect.facts.explains(suspect.place, conjugated, rows=REAL_ROWS):
        return (
            FindingKind.MISSING_CONJUGATE,
            f"{suspect.name}: the returned gradient is the conjugate of the right one",
            {},
        )
    return None


def _factor(suspect: Suspect) -> Named | None:
    c = constant_factor(suspect.facts, suspect.place, suspect.gradients)
    if c is None or abs(c - 1) <= _SIGNIFICANCE:
        return None
    name = suspect.name
    if abs(c + 1) <= 1e-7:
        return (
            FindingKind.WRONG_SIGN,
            f"{name}: the returned gradient is -1 times the right one everywhere",
            {"factor": "-1"},
        )
    factor = describe_factor(c, suspect.facts.subject)
    domain, codomain = suspect.facts.subject.domain, suspect.facts.subject.codomain
    if domain.blocks[suspect.place].size == codomain.size == 1 and not factor.is_told:
        return None  # any two numbers have a quotient
    because = f"; {factor.because}" if factor.because else ""
    return (
        FindingKind.WRONG_FACTOR,
        f"{name}: the returned gradient is {factor.text} of the right one everywhere{because}"
        if abs(c) < 1
        else f"{name}: the returned gradient is {factor.text} times the right one everywhere{because}",
        {"factor": factor.text},
    )


def _transposed(suspect: Suspect) -> Named | None:
    ranks = {g.ndim for g in suspect.gradients if g is not None}
    if len(ranks) != 1 or (rank := ranks.pop()) < 2 or rank > 4 or suspect.is_unseen:
        return None
    for axes in itertools.permutations(range(rank)):
        if axes == tuple(range(rank)):
            continue
        if suspect.facts.explains(
            suspect.place, [None if g is None else np.transpose(g, axes) for g in suspect.gradients]
        ):
            how = "transposed" if rank == 2 else f"with its axes exchanged (its transpose {list(axes)} is right)"
            return FindingKind.TRANSPOSED, f"{suspect.name}: the returned gradient is the right one, {how}", {}
    return None


def _unreduced(suspect: Suspect) -> Named | None:
    """Right after a sum over some axes."""
    block = suspect.facts.subject.domain.blocks[suspect.place]
    arrays = [g for g in suspect.gradients if g is not None]
    if len(arrays) != len(suspect.gradients) or arrays[0].ndim > 5:
        return None
    rank = arrays[0].ndim
    for count in range(1, rank + 1):
        for axes in itertools.combinations(range(rank), count):
            summed = [_summed_to(g, axes, block.shape) for g in arrays]
            if suspect.facts.explains(suspect.place, summed):
                return (
                    FindingKind.MISSING_REDUCTION,
                    f"{suspect.name} has shape {list(block.shape)}: the returned gradient of shape "
                    f"{list(arrays[0].shape)} was not summed over "
                    f"ax{'es' if count > 1 else 'is'} {', '.join(map(str, axes))}",
                    {},
                )
    return None


def _summed_to(gradient: NDArray[Any], axes: tuple[int, ...], shape: tuple[int, ...]) -> Gradient:
    total: NDArray[Any] = gradient.sum(axis=axes)
    return total.reshape(shape) if total.size == int(np.prod(shape)) else None


def _shifted(suspect: Suspect) -> Named | None:
    shape = suspect.facts.subject.domain.blocks[suspect.place].shape
    if suspect.is_unseen:
        return None
    for axis, size in enumerate(shape):
        for shift in (1, -1, 2, -2, 3, -3):
            if abs(shift) >= size:
                continue
            rolled = [None if g is None or g.shape != shape else np.roll(g, -shift, axis) for g in suspect.gradients]
            if suspect.facts.explains(suspect.place, rolled):
                return (
                    FindingKind.WRONG_SHIFT,
                    f"{suspect.name}: the returned gradient is the right one, rolled by {shift} along axis {axis}",
                    {},
                )
    return None


def _surrogate(suspect: Suspect) -> Named | None:
    """A gradient for outputs that stay as they are round the inputs."""
    mismatch = suspect.mismatch
    if mismatch is None or not mismatch.complete or not np.isfinite(mismatch.claimed).all():
        return None
    if (np.abs(mismatch.numeric) > 3 * mismatch.bound).any() or not np.abs(mismatch.claimed).max(initial=0.0) > 0:
        return None
    return (
        FindingKind.WRONG_GRADIENT,
        f"{suspect.name}: backward returns a gradient where forward's derivative is zero, in all "
        f"{mismatch.numeric.size} entries of its Jacobian; a straight-through or surrogate gradient is declared in a "
        "spec by `expect: surrogate`",
        {},
    )


def _mixed_up(suspect: Suspect) -> Named | None:
    """Right for a grad_output of equal entries alone, so that those of another are exchanged or lost."""
    facts, place, gradients = suspect.facts, suspect.place, suspect.gradients
    if suspect.facts.subject.codomain.size < 2 or not facts.explains(place, gradients, rows=(0,)):
        return None
    if any(facts.explains(place, gradients, rows=(row,)) for row in range(1, len(gradients))):
        return None
    _, message, extra = _wrong(suspect)
    return (
        FindingKind.WRONG_GRADIENT,
        f"{message} for a grad_output of different entries, and right for one of ones: backward mixes up or averages "
        "the entries of grad_output",
        extra,
    )


def _some_entries(suspect: Suspect) -> Named | None:
    """Wrong in some entries, right in the others."""
    block = suspect.facts.subject.domain.blocks[suspect.place]
    parts = 2 if block.complex else 1
    if suspect.mismatch is None:
        return None
    mask = wrong_mask(suspect.mismatch, block.shape, parts, _SIGNIFICANCE)
    if mask is None or mask.all() or not mask.any():
        return None
    name = suspect.name
    rule = fitting_rule(mask, np.asarray(suspect.mismatch.input_value), name)
    count = int(mask.sum())
    c = _factor_there(suspect, suspect.mismatch, mask, parts)
    where = f"wrong only where {rule}" if rule and rule.startswith(("|", name)) else f"wrong only in {rule}"
    if rule is None:
        listed = ", ".join(str(list(i)) for i in indices_of(mask, 4)) + (", ..." if count > 4 else "")
        where = f"wrong only in entr{'y' if count == 1 else 'ies'} {listed}"
    there = _there(c)
    extra = {"predicate": rule, "wrong_total": count, "factor": None if c is None or c == 0 else f"{c:.9g}"}
    kind = FindingKind.WRONG_SIGN if c is not None and abs(c + 1) < 1e-7 else FindingKind.WRONG_ENTRIES
    size = _relative_size(suspect.mismatch)
    return (
        kind,
        f"{name}: {where} ({count} of {mask.size} entries){there or f', by {size:.1e} of the largest entry'}; "
        "the others are right",
        extra,
    )


def _relative_size(mismatch: Mismatch) -> float:
    scale = float(np.max(np.abs(mismatch.numeric), initial=0.0))
    return float(np.max(np.abs(mismatch.claimed - mismatch.numeric))) / scale if scale else float("inf")


def _there(c: float | None) -> str:
    if c is None:
        return ""
    if c == 0:
        return "; there the returned gradient is 0"
    return f"; there the returned gradient is {c:.7g} times the right one"


def _factor_there(suspect: Suspect, mismatch: Mismatch, mask: NDArray[np.bool_], parts: int) -> float | None:
    """The constant factor on the wrong entries: 0 where zeros are returned, None where there is none."""
    if not mismatch.complete:
        return factor_on(suspect.facts, suspect.place, suspect.gradients, mask) if parts == 1 else None
    facts = suspect.facts
    chosen = mask.reshape(-1)[np.asarray(mismatch.columns) // parts]
    rows = facts.subject.codomain.slices[mismatch.output]
    claimed, numeric, bound = pulled_back(mismatch, facts.cotangents[1][rows])
    if not np.any(mismatch.claimed[:, chosen]):
        return 0.0
    return fit_factor(claimed[chosen], numeric[chosen], bound[chosen]) if chosen.sum() > 1 else None


def _low_precision(suspect: Suspect) -> Named | None:
    """Values that float32 holds exactly, with errors of float32's size."""
    errors = [e.max_rel_error for e in suspect.evidence if e.max_rel_error is not None]
    arrays = [g for g in suspect.gradients if g is not None and np.any(g) and g.dtype.kind in "fc"]
    if not errors or max(errors) > 1e-4 or not arrays:
        return None
    low = [np.complex64 if g.dtype.kind == "c" else np.float32 for g in arrays]
    if all(np.array_equal(g, g.astype(kind).astype(g.dtype)) for g, kind in zip(arrays, low, strict=True)):
        return (
            FindingKind.LOW_PRECISION,
            f"{suspect.name}: every entry of the returned gradient is a float32 number, and wrong by "
            f"{max(errors):.1e} of the largest entry: backward computes in float32",
            {},
        )
    return None


def _term(suspect: Suspect) -> Named | None:
    """Right with one more term of a simple form."""
    if suspect.is_unseen:
        return None
    term = lacking_term(suspect.facts, suspect.place, suspect.gradients)
    if term is None:
        return None
    return (
        FindingKind.MISSING_TERM,
        f"{suspect.name}: the returned gradient lacks the term {term.text}; with it, it is right",
        {},
    )


def _wrong(suspect: Suspect) -> Named:
    errors = [e.max_rel_error for e in suspect.evidence if e.max_rel_error is not None and np.isfinite(e.max_rel_error)]
    size = f" by {max(errors):.2g} of its largest entry" if errors else ""
    return FindingKind.WRONG_GRADIENT, f"{suspect.name}: the returned gradient is wrong{size}", {}


_RULES: tuple[Callable[..., Named | None], ...] = (
    _missing,
    _non_finite,
    _swapped,
    _conjugate,
    _factor,
    _transposed,
    _unreduced,
    _shifted,
    _low_precision,
    _surrogate,
    _mixed_up,
    _some_entries,
    _term,
    _wrong,
)


def entries_text(entries: Sequence[Entry]) -> Iterator[str]:
    """One line an entry, for logs."""
    for entry in entries:
        yield f"{list(entry.index)} returned {entry.analytic} numeric {entry.numeric} ± {entry.bound:.1e}"
