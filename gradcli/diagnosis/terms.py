"""A term that a returned gradient lacks: found among simple forms, and proven on slopes of forward.

A form has one free number, its coefficient. It is fitted to a few slopes, for several cotangents each; that the others
then agree within their error bounds happens by chance with probability zero.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.suspect import Named, Suspect
from gradcli.diagnosis.table import Gradient
from gradcli.findings import FindingKind

_MOST_ENTRIES = 100_000
_NICE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term with its coefficient, in words: `text` as in "2·grad_output·x"."""

    text: str
    coefficient: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """What a term may look like: its values for each cotangent, in the input's shape."""

    text: str
    values: tuple[NDArray[Any], ...]


def missing_term(suspect: Suspect) -> Named | None:
    """Right with one more term of a simple form."""
    term = None if suspect.is_unseen else lacking_term(suspect)
    if term is None:
        return None
    return (
        FindingKind.MISSING_TERM,
        f"{suspect.name}: the returned gradient lacks the term {term.text}; with it, it is right",
        {},
    )


def lacking_term(suspect: Suspect) -> Term | None:
    """The simplest term with which what was returned is right, here and at inputs close by; None without one."""
    facts, place = suspect.facts, suspect.place
    block = facts.subject.domain.blocks[place]
    returned = [g for g in suspect.gradients if g is not None and g.shape == block.shape]
    if block.complex or block.entries > _MOST_ENTRIES or len(returned) != len(suspect.gradients):
        return None
    other = suspect.elsewhere
    if other is None and block.size == facts.subject.codomain.size == 1:
        return None  # any term makes one number right
    if not any(np.any(g) for g in returned):
        return None
    for form in _forms(facts, place):
        c = _coefficient(facts, place, returned, form)
        if c is None or not facts.explains(place, _mended(returned, c, form)):
            continue
        if other is None or _holds(other, form, c):
            return Term(text=f"{_number(c)}{form.text}", coefficient=c)
    return None


def _holds(other: Suspect, form: _Form, c: float) -> bool:
    """Whether the term mends the gradient at other inputs, or cannot be told there."""
    returned = [g for g in other.gradients if g is not None and g.shape == other.shape]
    there = next((f for f in _forms(other.facts, other.place) if f.text == form.text), None)
    if there is None or len(returned) != len(other.gradients):
        return False
    return other.facts.judged(other.place, _mended(returned, c, there)) is not False


def _mended(returned: Sequence[NDArray[Any]], c: float, form: _Form) -> list[Gradient]:
    return [g + c * t for g, t in zip(returned, form.values, strict=True)]


def _coefficient(facts: Facts, place: int, returned: Sequence[NDArray[Any]], form: _Form) -> float | None:
    """The least-squares coefficient of the form in what the slopes lack, None where it is nothing."""
    had, shares = facts.projections(place, returned), facts.projections(place, form.values)
    if had is None or shares is None:
        return None
    lacks = np.concatenate([s.values - h for s, h in zip(facts.slopes(place), had, strict=True)])
    share = np.concatenate(shares)
    square = float(share @ share)
    if not np.isfinite(lacks).all() or not np.isfinite(square) or square == 0.0:
        return None
    return float(lacks @ share) / square or None


def _forms(facts: Facts, place: int) -> Iterator[_Form]:
    """Elementwise terms first, then those that are constant along axes, products of few factors before many."""
    subject = facts.subject
    shape = subject.domain.blocks[place].shape
    outputs = subject.call().outputs
    for number, block in enumerate(subject.codomain.blocks):
        if block.complex:
            continue
        label = "grad_output" if len(subject.codomain.blocks) == 1 else f"grad_output[{number}]"
        seeds = [subject.codomain.unflatten(row)[number] for row in facts.cotangents]
        factors = _factors(facts, place, outputs[subject.output_numbers[number]])
        for text, factor in factors:
            yield from _made(f"{label}{text}", [_product(u, factor) for u in seeds], shape)
        for axes in _axes(block.shape):
            where = "" if len(axes) == len(block.shape) else f", axis {', '.join(map(str, axes))}"
            for (inner, p), (outer, q) in itertools.product(factors[:_INNER], factors[:_INNER]):
                sums = [_sum_along(_product(u, p), axes) for u in seeds]
                text = f"{outer.removeprefix('·')}{'·' if outer else ''}sum({label}{inner}{where})"
                yield from _made(text, [_product(s, q) for s in sums], shape)


_INNER = 6
"""How many of the factors are tried inside and outside of a sum."""


def _factors(facts: Facts, place: int, output: NDArray[Any]) -> list[tuple[str, NDArray[Any]]]:
    """1, the input, the output, the other inputs, then squares and products; each with its text."""
    subject = facts.subject
    own = subject.arguments[subject.active[place]]
    named: list[tuple[str, NDArray[Any]]] = [(own.name, np.asarray(own.value)), ("output", np.asarray(output))]
    named += [
        (a.name, np.asarray(a.value)) for a in subject.arguments if a.is_tensor and a is not own and a.sparsity is None
    ]
    real = [(name, value) for name, value in named if value.dtype.kind == "f"]
    single = [("", np.ones(()))] + [(f"·{name}", value) for name, value in real]
    pairs = [
        (f"·{a}²" if a == b else f"·{a}·{b}", product)
        for (a, one), (b, other) in itertools.combinations_with_replacement(real, 2)
        if (product := _product(one, other)) is not None
    ]
    return [*single, *pairs]


def _made(text: str, values: Sequence[Gradient], shape: tuple[int, ...]) -> Iterator[_Form]:
    """The form, where its values can be brought to the input's shape."""
    fitted = [None if value is None else _to_shape(value, shape) for value in values]
    known = tuple(value for value in fitted if value is not None)
    if len(known) == len(values) and all(np.isfinite(value).all() for value in known):
        yield _Form(text=text, values=known)


def _product(one: Gradient, other: Gradient) -> Gradient:
    """The product by broadcasting, None where shapes do not fit."""
    if one is None or other is None:
        return None
    try:
        shape = np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return None
    if int(np.prod(shape)) > _MOST_ENTRIES:
        return None
    with np.errstate(all="ignore"):
        product: NDArray[Any] = one * other
    return product


def _sum_along(value: Gradient, axes: tuple[int, ...]) -> Gradient:
    if value is None or value.ndim <= max(axes):
        return None
    total: NDArray[Any] = value.sum(axis=axes, keepdims=True)
    return total


def _to_shape(value: NDArray[Any], shape: tuple[int, ...]) -> Gradient:
    """The value broadcast to `shape`, or summed down to it where it is larger."""
    extra = value.ndim - len(shape)
    whole = value.sum(axis=tuple(range(extra))) if extra > 0 else value
    padded = (1,) * (len(shape) - whole.ndim) + whole.shape
    whole = whole.reshape(padded)
    axes = tuple(i for i, (had, wanted) in enumerate(zip(padded, shape, strict=True)) if wanted == 1 and had > 1)
    whole = whole.sum(axis=axes, keepdims=True) if axes else whole
    if any(had not in (1, wanted) for had, wanted in zip(whole.shape, shape, strict=True)):
        return None
    return np.array(np.broadcast_to(whole, shape))


def _axes(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield from ((axis,) for axis in reversed(range(len(shape))))
    if len(shape) > 1:
        yield tuple(range(len(shape)))


def _number(c: float) -> str:
    """The coefficient before a term: nothing for 1, a fraction where it is one."""
    near = Fraction(c).limit_denominator(64)
    if abs(c - near) > _NICE * abs(c):
        return f"{c:.7g}·"
    return {"1": "", "-1": "-"}.get(str(near), f"{near}·")
