"""The forms that a missing term may have: grad_output times known quantities, sums of these, and matrix products."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.table import Gradient
from gradcli.frozen import dataclass

MOST_ENTRIES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a term may look like: its values for each cotangent, in the input's shape."""

    text: str
    values: tuple[NDArray[Any], ...]


def forms(facts: Facts, place: int) -> Iterator[Form]:
    """Elementwise terms first, then those that are constant along axes, products of few factors before many."""
    subject = facts.subject
    shape = subject.domain.blocks[place].shape
    outputs = subject.call().outputs
    for number, block in enumerate(subject.codomain.blocks):
        if block.complex:
            continue
        label = "grad_output" if len(subject.codomain.blocks) == 1 else f"grad_output[{number}]"
        seeds = [subject.codomain.unflatten(row)[number] for row in facts.cotangents]
        named = _named(facts, place, outputs[subject.output_numbers[number]])
        factors = _factors(named)
        for text, factor in (*factors, *_of_functions(named)):
            yield from _forms_of(f"{label}{text}", [_product(u, factor) for u in seeds], shape)
        yield from _sums(label, seeds, factors[:_INNER], shape)
        yield from _matrix_products(label, seeds, named, shape)


_Named = tuple[str, NDArray[Any]]


def _sums(
    label: str, seeds: Sequence[NDArray[Any]], factors: Sequence[_Named], shape: tuple[int, ...]
) -> Iterator[Form]:
    for axes in _axes(seeds[0].shape):
        where = "" if len(axes) == seeds[0].ndim else f", axis {', '.join(map(str, axes))}"
        for (inner, p), (outer, q) in itertools.product(factors, factors):
            sums = [_sum_along(_product(u, p), axes) for u in seeds]
            text = f"{outer.removeprefix('·')}{'·' if outer else ''}sum({label}{inner}{where})"
            yield from _forms_of(text, [_product(s, q) for s in sums], shape)


def _matrix_products(
    label: str, seeds: Sequence[NDArray[Any]], named: Sequence[_Named], shape: tuple[int, ...]
) -> Iterator[Form]:
    """grad_output times a matrix from either side, each as it is or transposed; matrix times vector for a number."""
    if seeds[0].ndim == 0:
        for (a, one), (b, other) in itertools.product(_turned(named), named):
            if one.ndim == 2 and other.ndim == 1 and one.shape[1] == other.shape[0]:
                yield from _forms_of(f"{label}·{a} @ {b}", [u * (one @ other) for u in seeds], shape)
        return
    for turned in (False, True):
        u_text = f"{label}ᵀ" if turned else label
        given = [u.swapaxes(-1, -2) if turned else u for u in seeds] if seeds[0].ndim == 2 else list(seeds)
        for text, matrix in _turned(named) if seeds[0].ndim == 2 or not turned else ():
            for words, pair in ((f"{u_text} @ {text}", (0, 1)), (f"{text} @ {u_text}", (1, 0))):
                made = [_matmul((u, matrix)[pair[0]], (u, matrix)[pair[1]]) for u in given]
                yield from _forms_of(words, [m if m is not None and m.shape == shape else None for m in made], shape)


def _turned(named: Sequence[_Named]) -> Iterator[_Named]:
    for text, value in named:
        if value.ndim == 2:
            yield text, value
            yield f"{text}ᵀ", value.T


def _matmul(one: NDArray[Any], other: NDArray[Any]) -> Gradient:
    if one.shape[-1] != other.shape[max(0, other.ndim - 2)]:
        return None
    product: NDArray[Any] = one @ other
    return product


_INNER = 6
"""How many of the factors are tried inside and outside of a sum."""

_FUNCTIONS: tuple[tuple[str, Callable[[NDArray[Any]], NDArray[Any]]], ...] = (
    ("sin({})", np.sin),
    ("cos({})", np.cos),
    ("exp({})", np.exp),
    ("exp(-{})", lambda x: np.exp(-x)),
    ("log({})", np.log),
    ("sigmoid({})", lambda x: 1 / (1 + np.exp(-x))),
    ("sigmoid({0})·(1 - sigmoid({0}))", lambda x: 1 / (2 + np.exp(x) + np.exp(-x))),
    ("tanh({})", np.tanh),
    ("(1 - tanh({})²)", lambda x: 1 - np.tanh(x) ** 2),
    ("exp(-{}²/2)", lambda x: np.exp(-x * x / 2)),
    ("1/{}", lambda x: 1 / x),
)
"""Functions of the input that a product rule leaves behind."""


def _of_functions(named: Sequence[_Named]) -> Iterator[_Named]:
    """Functions of the input, alone and times each of the known quantities."""
    own, value = named[0]
    for text, function in _FUNCTIONS:
        with np.errstate(all="ignore"):
            made = function(value)
        word = text.format(own)
        yield f"·{word}", made
        for name, other in named:
            product = _product(other, made)
            if product is not None:
                yield f"·{name}·{word}", product


def _named(facts: Facts, place: int, output: NDArray[Any]) -> list[_Named]:
    """The input itself, the output, and the other inputs, real ones only."""
    subject = facts.subject
    own = subject.arguments[subject.active[place]]
    named = [(own.name, np.asarray(own.value)), ("output", np.asarray(output))]
    named += [
        (a.name, np.asarray(a.value)) for a in subject.arguments if a.is_tensor and a is not own and a.sparsity is None
    ]
    return [(name, value) for name, value in named if value.dtype.kind == "f"]


def _factors(named: Sequence[_Named]) -> list[_Named]:
    """1, the known quantities, then their squares and products; each with its text."""
    single = [("", np.ones(()))] + [(f"·{name}", value) for name, value in named]
    pairs = [
        (f"·{a}²" if a == b else f"·{a}·{b}", product)
        for (a, one), (b, other) in itertools.combinations_with_replacement(named, 2)
        if (product := _product(one, other)) is not None
    ]
    return [*single, *pairs]


def _forms_of(text: str, values: Sequence[Gradient], shape: tuple[int, ...]) -> Iterator[Form]:
    """The form, where its values can be brought to the input's shape."""
    fitted = [None if value is None else _to_shape(value, shape) for value in values]
    known = tuple(value for value in fitted if value is not None)
    if len(known) == len(values) and all(np.isfinite(value).all() for value in known):
        yield Form(text=text, values=known)


def _product(one: Gradient, other: Gradient) -> Gradient:
    """The product by broadcasting, None where shapes do not fit."""
    if one is None or other is None:
        return None
    try:
        shape = np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return None
    if int(np.prod(shape)) > MOST_ENTRIES:
        return None
    with np.errstate(all="ignore"):
        product: NDArray[Any] = one * other
    return product


def _sum_along(value: Gradient, axes: tuple[int, ...]) -> Gradient:
    if value is None or value.ndim <= max(axes):
        return None
    with np.errstate(all="ignore"):
        total: NDArray[Any] = value.sum(axis=axes, keepdims=True)
    return total


def _to_shape(value: NDArray[Any], shape: tuple[int, ...]) -> Gradient:
    """The value broadcast to `shape`, or summed to it if it is larger."""
    extra = value.ndim - len(shape)
    with np.errstate(all="ignore"):
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
