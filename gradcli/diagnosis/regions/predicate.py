"""Rules that say which entries are wrong: by value, by place, or neither.

A rule may fit a few wrong entries by accident. If forward can also be called at inputs whose values are permuted, a
rule has to fit there as well: entries that stay wrong whatever their values are wrong by place, and those that move
with the values are wrong by value. Otherwise the diagonal is tried before any value: a positive definite matrix has its
largest entries there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from math import exp, lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.regions.positions import by_indices, by_position
from gradcli.frozen import dataclass

Mask = NDArray[np.bool_]
_ACCIDENT = 1e-2
"""How probable it may be that some rule fits by accident."""
_HALVINGS = 10
"""Bisections of an edge: it is then known to a thousandth of the gap between the two values next to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The `wrong` entries of an input at one point, among the `known` ones (all for None), and what rules may use.

    That is the `values` of the input itself, `others` that were broadcast to its shape, the inputs of whole numbers
    (`indices`) and the number arguments, by name, and whether backward assigns to entries, as far as is known.
    """

    wrong: Mask
    values: NDArray[Any]
    known: Mask | None = None
    others: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    indices: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    assigns: bool = True

    def fits(self, mask: Mask) -> bool:
        """Whether a rule's entries are exactly the wrong ones, among the known ones."""
        return np.array_equal(mask[self.decided], self.wrong[self.decided])

    @property
    def decided(self) -> Mask:
        """Which entries are known, wrong or right."""
        return np.ones(self.wrong.shape, bool) if self.known is None else self.known

    @property
    def accident(self) -> float:
        """The probability that as many entries, taken at random, are the wrong ones."""
        return _accident(int(self.decided.sum()), int(self.wrong.sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule in words, and whether it depends on values ("x < 0") or on places ("the last row")."""

    text: str
    by_value: bool


def _accident(count: int, chosen: int) -> float:
    """One over the number of ways to choose some of a count."""
    return exp(lgamma(chosen + 1) + lgamma(count - chosen + 1) - lgamma(count + 1))


Probe = Callable[[float, bool], float | None]
"""The error of an entry at another value (with True, at that magnitude with its own sign), 1 for the smallest that
counts as wrong and 0 if it is within its bound; None if unknown."""


def _without_probe(_value: float, _magnitude: bool) -> None:
    return None


def fitting_rule(samples: Sequence[Sample], name: str, probe: Probe = _without_probe) -> Rule | None:
    """The first rule that holds exactly for the wrong entries of all samples, None where none is proven.

    Args:
        samples: some, but not all, entries of the first one have to be wrong.
        name: the input's name, for the sentence.
        probe: asked to find the edge between wrong and right values.
    """
    first = samples[0]
    if first.wrong.all() or not first.wrong.any() or first.wrong.ndim == 0:
        return None
    single = len(samples) == 1
    stays = all(sample.fits(first.wrong) for sample in samples)
    place = (
        next((text for text, mask in by_position(first.wrong, first.decided) if first.fits(mask)), None)
        if stays
        else None
    )
    if place is not None and place.startswith(("up to", "from")):
        place = _by_indices(samples) or place  # drawn indices seldom select just the first rows, unless few were drawn
    if place is not None and (not single or first.wrong.sum() == 1 or "diagonal" in place):
        return Rule(text=place, by_value=False)
    if not stays or (single and first.wrong.sum() > 1):
        value = _by_value(samples, name, probe)
        if value is not None:
            return Rule(text=value, by_value=True)
    place = place or _by_indices(samples)
    if place is not None:
        return Rule(text=place, by_value=False)
    value = _by_threshold(samples, name, probe) if single else None
    return None if value is None else Rule(text=value, by_value=True)


def _by_indices(samples: Sequence[Sample]) -> str | None:
    """The entries that a mask, or indices, select in every sample."""
    picked = [dict(by_indices(s.wrong.shape, s.indices, _masks(s), assigns=s.assigns)) for s in samples]
    return next(
        (text for text in picked[0] if all(s.fits(p[text]) for s, p in zip(samples, picked, strict=True))), None
    )


def _masks(sample: Sample) -> dict[str, NDArray[Any]]:
    return {name: value for name, value in sample.others.items() if value.dtype.kind == "b"}


_Test = tuple[str, Callable[[Sample], Mask]]


def _by_value(samples: Sequence[Sample], name: str, probe: Probe) -> str | None:
    if samples[0].values.dtype.kind == "c":
        return None
    rules = list(_value_rules(samples[0], name))
    accident = len(rules) * float(np.prod([sample.accident for sample in samples]))
    if len(samples) > 1 and accident > _ACCIDENT:
        return None
    fitting = (text for text, rule in rules if all(sample.fits(rule(sample)) for sample in samples))
    return next(fitting, None) or (_by_threshold(samples, name, probe) if len(samples) > 1 else None)


def _value_rules(sample: Sample, name: str) -> Iterator[_Test]:
    yield f"{name} < 0", lambda s: s.values < 0
    yield f"{name} > 0", lambda s: s.values > 0
    yield f"{name} = 0", lambda s: s.values == 0
    yield from _by_numbers(sample.numbers, name)
    yield f"|{name}| > 1", lambda s: np.abs(s.values) > 1
    yield f"|{name}| < 1", lambda s: np.abs(s.values) < 1
    yield f"{name} is largest", lambda s: s.values == s.values.max()
    yield f"{name} is not largest", lambda s: s.values != s.values.max()
    yield f"{name} is smallest", lambda s: s.values == s.values.min()
    yield f"{name} is not smallest", lambda s: s.values != s.values.min()
    for axis in range(sample.values.ndim if sample.values.ndim > 1 else 0):
        yield f"{name} is largest along axis {axis}", partial(_largest, axis=axis)
        yield f"{name} is not largest along axis {axis}", partial(_largest, axis=axis, turned=True)
    for other, value in sample.others.items():
        if value.dtype.kind == "f":
            yield from _by_other(other, name)


def _largest(sample: Sample, *, axis: int, turned: bool = False) -> Mask:
    largest: Mask = sample.values == sample.values.max(axis=axis, keepdims=True)
    return ~largest if turned else largest


def _by_other(other: str, name: str) -> Iterator[_Test]:
    """Rules that compare values with those of another input of the same shape."""
    yield f"{name} < {other}", lambda s: s.values < s.others[other]
    yield f"{name} > {other}", lambda s: s.values > s.others[other]
    yield f"{other} < 0", lambda s: s.others[other] < 0
    yield f"{other} > 0", lambda s: s.others[other] > 0


def _by_numbers(numbers: Mapping[str, float], name: str) -> Iterator[_Test]:
    """A threshold at one of forward's number arguments, such as a clipping bound."""
    for text, c in numbers.items():
        values_shown = f"{text} = {c:g}"
        yield f"{name} > {text} ({values_shown})", partial(_inside, low=c, high=np.inf)
        yield f"{name} < {text} ({values_shown})", partial(_inside, low=-np.inf, high=c)
        size = text if c >= 0 else f"|{text}|"
        yield f"|{name}| < {size} ({values_shown})", partial(_inside, low=-abs(c), high=abs(c))
        yield f"|{name}| > {size} ({values_shown})", partial(_inside, low=-abs(c), high=abs(c), turned=True)
        yield f"{name} lies between 0 and {text} ({values_shown})", partial(_inside, low=min(c, 0.0), high=max(c, 0.0))
        for other, d in numbers.items():
            if c < d:
                both = f"{text} and {other} ({values_shown}, {other} = {d:g})"
                yield f"{name} lies between {both}", partial(_inside, low=c, high=d)
                yield f"{name} does not lie between {both}", partial(_inside, low=c, high=d, turned=True)


def _inside(sample: Sample, *, low: float, high: float, turned: bool = False) -> Mask:
    """Which values lie between two numbers, or, with `turned`, outside of them."""
    inside: Mask = (sample.values > low) & (sample.values < high)
    return ~inside if turned else inside


def _by_threshold(samples: Sequence[Sample], name: str, probe: Probe) -> str | None:
    """A threshold on the value or its magnitude, or an interval, that all samples agree on."""
    wrong = np.concatenate([s.wrong.reshape(-1) for s in samples])
    known = np.concatenate([s.decided.reshape(-1) for s in samples])
    values = np.concatenate([s.values.reshape(-1) for s in samples])
    if values.dtype.kind == "c" or wrong.sum() < 2 or (known & ~wrong).sum() < 2:
        return None
    for text, measure, magnitude in ((name, values, False), (f"|{name}|", np.abs(values), True)):
        bad, good = measure[wrong], measure[known & ~wrong]
        if bad.min() > good.max():
            edge = _edge(good.max(), bad.min(), True, probe, magnitude)
            return None if edge is None else f"{text} > {edge:.4g}"
        if bad.max() < good.min():
            edge = _edge(bad.max(), good.min(), False, probe, magnitude)
            return None if edge is None else f"{text} < {edge:.4g}"
    if 3 * known.sum() * _accident(int(known.sum()), int(wrong.sum())) > _ACCIDENT / 10:
        return None
    for text, measure, magnitude in ((name, values, False), (f"|{name}|", np.abs(values), True)):
        bad, good = measure[wrong], measure[known & ~wrong]
        below, above = good[good < bad.min()], good[good > bad.max()]
        if below.size and above.size and below.size + above.size == good.size:
            low = _edge(below.max(), bad.min(), True, probe, magnitude)
            high = _edge(bad.max(), above.min(), False, probe, magnitude)
            return None if low is None or high is None else f"{text} lies between {low:.4g} and {high:.4g}"
    return None


def _edge(low: float, high: float, wrong_above: bool, probe: Probe, magnitude: bool) -> float | None:
    """The boundary between wrong and right values: bisected as far as the probe decides; the roundest number there.

    None if the error only becomes too small to count there, as that of a wrong term does where the term is small.
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        error = probe(middle, magnitude)
        if error is None:
            break
        low, high = (low, middle) if (error >= 1) == wrong_above else (middle, high)
    return None if probe(low if wrong_above else high, magnitude) else _between(low, high)


def _between(low: float, high: float) -> float:
    """The roundest number between two: a threshold in code is rarely 0.7313."""
    if low < 0 < high:
        return 0.0
    for digits in range(-1, 6):
        candidate = round((low + high) / 2, digits)
        if low <= candidate <= high:
            return float(candidate)
    return float((low + high) / 2)
