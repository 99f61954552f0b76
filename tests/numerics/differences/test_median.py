"""The median is NumPy's, to the last bit, also of an even number of values, infinities and NaN."""

import numpy as np
import pytest

from gradcli.numerics.maps.floats import median


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 10, 31])
@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("among", [0.0, np.inf, -np.inf, np.nan, 1e300])
def test_it_is_numpys(count: int, columns: tuple[int, ...], among: float) -> None:
    values = np.random.default_rng(count).standard_normal((count, *columns)) * 1e300
    values[count // 2] = among
    with np.errstate(all="ignore"):
        assert np.array_equal(median(values), np.median(values, axis=0), equal_nan=True)
