"""The floating-point format in which values were stored, determined from their digits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import EPS, Vector
from gradcli.numerics.maps.sizes import ROUGHLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A floating-point format of fewer than float64's 53 digits.

    Attributes:
        name: its name.
        digits: its binary digits.
        smallest: its smallest positive number.
        resolution: the coarsest resolution at which a gradient may agree, with a note, if the values are stored in this
            format; without one, `PASS_RESOLUTION` holds. Over steps as long as x, the slope of float16 and bfloat16
            values is known to some dozen unit roundoffs. The values of float32 that hide more than 1 % are a hundred
            thousand times as large as their change, and show no more than that they are rounded.
    """

    name: str
    digits: int
    smallest: float
    resolution: float

    @property
    def roundoff(self) -> float:
        """The largest relative error of rounding to the format."""
        return float(2.0**-self.digits)

    @property
    def half(self) -> bool:
        """Whether it is float16 or bfloat16."""
        return self.digits < FLOAT32.digits


BFLOAT16 = Format(name="bfloat16", digits=8, smallest=2.0**-133, resolution=0.3)
FLOAT16 = Format(name="float16", digits=11, smallest=2.0**-24, resolution=0.1)
FLOAT32 = Format(name="float32", digits=24, smallest=2.0**-149, resolution=ROUGHLY)
FORMATS = (BFLOAT16, FLOAT16, FLOAT32)
DIGITS = 53
"""The binary digits of a float64 number."""
SAMPLED = 1_000
"""Of a long array, about this many values are examined first: for a format, one that needs more digits decides. This
affects only the cost."""


def format_of(values: Vector) -> Format | None:
    """The coarsest format that holds all values; None for float64 numbers, and if the values do not determine it.

    Whole numbers, zeros and a single number do not determine a format. Neither do values that all need at most two
    thirds of its digits: a number rounded to 8 digits ends in three zeros only once in eight times, so that several of
    them are rather constants that somebody wrote.
    """
    values = np.asarray(values).reshape(-1)
    if values.size > SAMPLED and not fit(values[:: values.size // SAMPLED], FLOAT32.digits).all():
        return None
    known = values[np.isfinite(values)]
    telling = known[known != np.round(known)]
    if (telling == telling[:1]).all():
        return None
    for format_ in FORMATS:
        if fit(telling, format_.digits).all():
            return None if fit(telling, _few(format_)).all() else format_
    return None


def stored_roundoff(values: Vector) -> float:
    """The unit roundoff of the format that `format_of` gives, or that of float64, 2^-53, if it gives none."""
    found = format_of(values)
    return EPS if found is None else found.roundoff


def single_precision(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Whether the values of each output (a column) are float32 numbers, some with more than 16 significant bits.

    A float64 value fits into float32 by chance once in 2^29 times, and all nine values of a cluster never do.
    """
    single = fit(values, FLOAT32.digits).all(axis=0) & ~fit(values, _few(FLOAT32)).all(axis=0)
    return np.asarray(single, bool)


def may_be_half(values: Vector) -> bool:
    """Whether all values fit into 11 digits, as float16 and bfloat16 numbers do, and are not all whole numbers."""
    if values.size > SAMPLED and not fit(values[:: values.size // SAMPLED], FLOAT16.digits).all():
        return False
    if not np.isfinite(values).all() or (values == np.round(values)).all():
        return False
    return bool(fit(values, FLOAT16.digits).all())


def fit(values: npt.NDArray[np.float64], digits: int) -> npt.NDArray[np.bool_]:
    """Which values need at most this number of binary digits. Infinity and NaN always fit."""
    finite = np.isfinite(values)
    mantissas = np.frexp(np.where(finite, values, 0.0))[0]
    short: npt.NDArray[np.bool_] = np.ldexp(mantissas, digits) % 1 == 0
    return short


def _few(format_: Format) -> int:
    """Two thirds of a format's digits."""
    return 2 * format_.digits // 3
