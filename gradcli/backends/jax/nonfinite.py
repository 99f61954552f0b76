"""Where NaN and Inf of a JAX function came from: each value carries the equation that made its first bad entry."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.backends.jax.values import Value, is_inexact, wide
from gradcli.traces import NonFinite, SourceSite

_WRITTEN = {"add": "+", "sub": "-", "mul": "·", "div": "/", "pow": "**"}


def is_finite(value: Any) -> bool:
    """Whether no entry is NaN or infinite; True for whole numbers."""
    return not is_inexact(value) or bool(np.isfinite(np.asarray(value, dtype=wide(value))).all())


def first_bad_entry(values: Any) -> tuple[int, ...]:
    """The first entry that is NaN, or else the first infinite one."""
    wrong = np.isnan(values) if np.isnan(values).any() else ~np.isfinite(values)
    return tuple(int(place) for place in np.unravel_index(int(np.argmax(wrong)), values.shape))


def shown_at(value: Any, entry: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """A number of an array, at an entry of one of the same shape."""
    array = np.asarray(value)
    if array.shape not in (shape, ()) or math.prod(array.shape) == 0:
        return f"an array of shape {list(array.shape)}"
    return f"{array[entry] if array.shape else array[()]:.6g}"


def origin(
    name: str, site: SourceSite | None, operands: Sequence[Value], made: Any, name_of: Callable[[int], str]
) -> NonFinite | None:
    """What made the first bad entry of `made`, which an equation computed of `operands`; None where all are finite."""
    if is_finite(made):
        return None
    array = np.asarray(made, dtype=wide(made))
    entry = first_bad_entry(array)
    value = float(np.real(array[entry]))
    here = NonFinite(
        phase="forward", kind="operation", name=name, site=site, entry=entry, value=value,
        text=_formula(name, [shown_at(v.held, entry, array.shape) for v in operands], value), dtype=str(array.dtype),
    )  # fmt: skip
    bad = [operand for operand in operands if not is_finite(operand.held)]
    given = next((operand for operand in bad if _has_nan(operand.held)), None)
    if given is not None:
        return given.bad or _data(given, name, site, name_of)
    if not bad:
        return here
    came = bad[0].bad
    if not math.isnan(value):
        return came or replace(here, kind="data")
    if came is None or came.kind == "data":  # an infinity that was wanted, of which this equation makes NaN
        return replace(here, cause=came)
    return came if came.became is not None else replace(came, became=here)


def _has_nan(value: Any) -> bool:
    return bool(np.isnan(np.asarray(value, dtype=wide(value))).any())


def _data(operand: Value, name: str, site: SourceSite | None, name_of: Callable[[int], str]) -> NonFinite:
    """An input, or a constant of the function, that holds NaN."""
    entry = first_bad_entry(np.asarray(operand.held, dtype=wide(operand.held)))
    where = "" if site is None else f" at {site}"
    shown = f"a constant of {name}{where}" if operand.leaf is None else name_of(operand.leaf)
    return NonFinite(phase="forward", kind="data", name=shown, entry=entry, value=math.nan)


def _formula(name: str, values: Sequence[str], value: float) -> str:
    sign = _WRITTEN.get(name)
    if sign is None or len(values) != 2 or any(" " in each for each in values):
        return f"{name}({', '.join(values)}) = {value:g}"
    first = f"({values[0]})" if sign == "**" and values[0].startswith("-") else values[0]
    second = f"({values[1]})" if values[1].startswith("-") else values[1]
    return f"{first} {sign} {second} = {value:g}"


def bad_gradient(
    name: str, site: SourceSite | None, operands: Sequence[Value], outputs: Sequence[Value], taken: Any, given: Any
) -> NonFinite | None:
    """The first bad entry of what an equation's vjp gives, where all that came in is finite."""
    if not all(gradient is None or is_finite(gradient) for gradient in taken):
        return None
    bad = next((np.asarray(g, dtype=wide(g)) for g in given if not is_finite(g)), None)
    if bad is None:
        return None
    entry = first_bad_entry(bad)
    came = None if taken[0] is None else np.asarray(taken[0])
    incoming = float(np.real(came[entry])) if came is not None and came.shape == bad.shape else None
    return NonFinite(
        phase="backward", kind="node", name=name, site=site, entry=entry, value=float(np.real(bad[entry])),
        incoming=incoming, saved=tuple(("operand", shown_at(v.held, entry, bad.shape)) for v in operands),
        cause=next((v.bad for v in (*outputs, *operands) if v.bad is not None), None),
    )  # fmt: skip
