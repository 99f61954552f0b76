"""Chooses other points of a map, of other magnitudes and signs, where a gradient that is zero at x may be nonzero."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import Mask, Vector
from gradcli.numerics.maps.sizes import UNBALANCED
from gradcli.numerics.sampling.directions import random_direction


def other_points(site: Site) -> Iterator[tuple[str, Vector]]:
    """Yield other points within the bounds of the map, each with a description.

    With a reference, the first two have other magnitudes than x; without one, the first is -x.
    """
    for where, x in _unbounded(site):
        bounded = _within_bounds(site, x)
        yield (where if bounded is x else f"{where}, within the domains of the inputs"), bounded


def without_large_terms(site: Site, input_: int, output: int) -> Vector | None:
    """x without the terms of a gradient that hide those of one pair by rounding; None if there are none.

    The values of a map that is a gradient are linear in its cotangents. Those with which the output changes more than
    10^4 times as much as with the input become zero, and the other terms of the output are then exact.
    """
    lower = site.map.below
    if lower is None:
        return None
    sizes = np.abs(site.claim.forms[site.claim.block == output]).max(axis=0, initial=0.0) * site.scales
    inside = site.map.domain.slices[input_]
    own = float(sizes[inside].max(initial=0.0))
    hiding = (sizes > UNBALANCED * own) & (np.arange(sizes.size) >= lower.domain.size)
    hiding[inside] = False
    return np.where(hiding, 0.0, site.x) if own > 0 and hiding.any() else None


def paths_away(site: Site) -> Iterator[list[tuple[str, Vector]]]:
    """Yield two paths for each input, which alone moves along a line, in both directions; nearest point first.

    It moves by half of its magnitude, and by twice as much each time, up to 4 times the largest of all inputs.

    What the values of several inputs must obey, such as the order of two limits, holds longest along such a path.
    """
    largest = float(site.scales.max())
    for block, place in zip(site.map.domain.blocks, site.map.domain.slices, strict=True):
        if not block.size:
            continue
        step = np.zeros(site.x.size)
        step[place] = random_direction(site.rng, site.scales[place])
        own = float(site.scales[place].max())
        for signed in (step, -step):
            path, factor = [], 0.5
            while factor * own <= 4 * largest:
                path.append((f"other values of {block.name}", _within_bounds(site, site.x + factor * signed)))
                factor *= 2
            yield path


def _within_bounds(site: Site, x: Vector) -> Vector:
    """The point with every entry outside its interval reflected at its end, or else drawn from it."""
    if site.map.bounds is None:
        return x
    low, high = site.map.bounds
    if _inside(x, low, high).all():
        return x
    with np.errstate(invalid="ignore"):
        reflected = np.where(x <= low, 2 * low - x, np.where(x >= high, 2 * high - x, x))
        drawn = low + (high - low) * site.rng.random(x.size)
    reflected = np.where(_inside(reflected, low, high), reflected, drawn)
    return np.where(_inside(reflected, low, high), reflected, site.x)


def _inside(x: Vector, low: Vector, high: Vector) -> Mask:
    found: Mask = (x > low) & (x < high)
    return found


def _unbounded(site: Site) -> Iterator[tuple[str, Vector]]:
    """The points that are tried where entries may have any value."""
    size = np.abs(random_direction(site.rng, np.ones(site.x.size)))
    signs = np.where(site.x != 0, np.sign(site.x), site.rng.choice([-1.0, 1.0], site.x.size))
    if site.witness_rows is not None:
        yield "inputs of magnitude about 1 with signs opposite to the given ones", -signs * size
        yield "inputs of magnitude about 0.01 with the signs of the given ones", signs * size * 2.0**-7
    yield "the inputs times -1", -site.x
    yield "inputs of magnitude about 1 with the signs of the given ones", signs * size
    for factor in (2.0**-6, 2.0**-12, 2.0**-3, 2.0**-9):
        yield f"the inputs times {factor:g}", site.x * factor
    yield "the inputs times 4", site.x * 4.0
    for _ in range(3):
        drawn = random_direction(site.rng, np.ones(site.x.size))
        yield "random inputs of the same magnitude", drawn * site.scales
        yield "random inputs of magnitude about 1", drawn
