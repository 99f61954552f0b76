"""Which input entries lie on a kink, with the slopes to both sides."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.certify import predict
from gradcli.numerics.difference import directional_derivative
from gradcli.numerics.outcome import KinkNote
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector

LARGEST_COUNT = 8
LARGEST_SEARCH = 160
"""Directions measured at most in the search."""
START = 2.0**-12


def kink_notes(site: Site, places: slice) -> tuple[KinkNote, ...]:
    """Find entries of one input block whose change meets a kink at the point.

    Halves of the block are searched as long as changing them together shows a change of slope: a few directions an
    entry on a kink, at most 160 in all; at most 8 entries are named, zeros and small entries first in doubt.
    """
    suspects = _search(site, np.arange(places.start, places.stop))
    notes = []
    for coordinate in suspects[:LARGEST_COUNT]:
        note = _describe(site, coordinate)
        if note is not None:
            notes.append(note)
    return tuple(notes)


def _kinked(site: Site, entries: Vector) -> bool:
    direction = np.zeros(site.x.size)
    signs = site.rng.integers(128, 256, entries.size) / 256.0 * site.rng.choice([-1.0, 1.0], entries.size)
    direction[entries] = signs * site.scales[entries]
    f0 = site.claim.read(site.outputs)
    short = predict(site.read, site.x, direction, f0=f0, rng=site.rng, start=START)
    with np.errstate(all="ignore"):
        return bool((np.abs(short.kink) > 1e-4 * np.abs(short.value) + 100 * short.rounding).any())


def _search(site: Site, entries: Vector) -> list[int]:
    found: list[int] = []
    open_, tried = [entries], 0
    while open_ and tried < LARGEST_SEARCH and len(found) < LARGEST_COUNT:
        group = open_.pop(0)
        tried += 1
        if not _kinked(site, group):
            continue
        if group.size == 1:
            found.append(int(group[0]))
        else:
            open_[:0] = [group[: group.size // 2], group[group.size // 2 :]]
    return sorted(found)


def _describe(site: Site, coordinate: int) -> KinkNote | None:
    direction = np.zeros(site.x.size)
    size = float(site.scales[coordinate])
    direction[coordinate] = size
    estimate = directional_derivative(
        site.read, site.x, direction, rng=site.rng, f0=site.claim.read(site.outputs), start=START
    )
    if not estimate.broken.any():
        return None
    gap = np.where(estimate.broken, np.abs(estimate.right - estimate.left), -1.0)
    row = int(np.argmax(gap))
    output = None if row >= site.map.codomain.size or not (site.claim.full or site.claim.watch) else row
    claimed = float(site.claim.along(direction)[0][row]) / size
    if output is not None and site.claim.watch and not site.claim.jvp_rows:
        unit = np.zeros(site.map.codomain.size)
        unit[output] = 1.0
        claimed = float(site.map.vjp(site.x, unit)[coordinate])
    return KinkNote(
        coordinate=coordinate,
        left=float(estimate.left[row]) / size,
        right=float(estimate.right[row]) / size,
        claimed=claimed,
        output=output,
        slack=float(estimate.bound[row] + estimate.kink_bound[row]) / size,
    )
