"""Locates the outputs whose claimed rows are wrong: by backward for groups of outputs, or each beside its own entry."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.three_pairs import BOUNDED_STEP, measure_pairs
from gradcli.numerics.maps.floats import Indices, Matrix, Vector
from gradcli.numerics.maps.sizes import CERTIFIED, MEASURABLE, NOTHING, WANTED
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import halved, random_direction

LARGEST_COUNT = 64
"""At most this many wrong entries, or outputs, are located."""
LARGEST_SEARCH = 400
"""A search tries at most this many directions, or cotangents."""


def wrong_rows(
    site: Site,
    input_: int,
    output: int,
    reading: Reading | None = None,
    least: float = 0.0,
    tries: int = LARGEST_SEARCH,
) -> Indices:
    """Locate up to `LARGEST_COUNT` outputs of one block whose claimed rows are wrong.

    One measured direction gives the slope of every output. The claimed slope of a group of outputs is computed by one
    run of backward with a random cotangent; a group that is wrong is divided into halves.

    Args:
        site: the point, and the weights of the outputs (`_of_group`).
        reading: a direction through the input block that has been measured with error bounds, if there is one.
        least: a group is wrong if it is off by more than this part of its largest term, and by more than the bounds.
        tries: so many groups are tried at most.

    Returns:
        Their numbers in the block; empty if the outputs are not measured one by one.
    """
    claim, outside = site.claim, site.map.codomain.slices[output]
    if not (claim.full or claim.watch):
        return np.zeros(0, np.intp)
    reading = site.probe(site.map.domain.slices[input_], cheap=False) if reading is None else reading
    direction = reading.direction
    numeric, bound = (values[: site.map.codomain.size] for values in (reading.numeric, reading.bound))

    def wrong(start: int, stop: int) -> bool:
        cotangent = _of_group(site, outside, start, stop)
        form = np.asarray(site.map.vjp(site.x, cotangent), dtype=np.float64)
        group = slice(outside.start + start, outside.start + stop)
        with np.errstate(all="ignore"):
            terms = cotangent[group] * numeric[group]
            gap = abs(float(form @ direction) - float(terms.sum()))
            tolerance = float(np.abs(cotangent[group]) @ bound[group]) + 1e-15 * float(np.abs(form) @ np.abs(direction))
        return gap > max(FAIL_FACTOR * tolerance, least * float(np.abs(terms).max()))

    found = halved(outside.stop - outside.start, wrong, most=LARGEST_COUNT, tries=tries)
    return np.array(found, dtype=np.intp)


def wrong_pairs(site: Site, input_: int, output: int, direction: Vector) -> Indices:
    """The entries of an input block whose claim differs from a slope, if every output depends on one entry alone.

    A claim for a random cotangent then holds every entry of the gradient once, and one direction measures all of them,
    each without the rounding of the others. Whether outputs depend on one entry alone is not tested: the entries found
    have to be proven.

    Args:
        direction: a direction that moves every entry of the input block, and nothing else.

    Returns:
        Their numbers in the block; empty if the blocks cannot be paired, or if no claim or slope is known.
    """
    inside, outside = site.map.domain.slices[input_], site.map.codomain.slices[output]
    block, claims = site.map.domain.blocks[input_], np.flatnonzero(site.claim.block == output)
    paired = inside.stop - inside.start == outside.stop - outside.start and not block.complex
    if site.claim.cotangents is None or not paired or not claims.size:
        return np.zeros(0, np.intp)
    claimed = site.claim.forms[claims[0], inside] / site.claim.cotangents[claims[0], outside] * direction[inside]
    slopes = measure_pairs(site.map.value, site.x, direction, f0=site.outputs, rng=site.rng, start=BOUNDED_STEP)
    with np.errstate(all="ignore"):
        allowed = MEASURABLE * np.abs(site.outputs[outside]) + CERTIFIED * np.abs(slopes.value[outside])
        apart = np.abs(claimed - slopes.value[outside]) > FAIL_FACTOR * (slopes.rounding[outside] + allowed)
    return np.flatnonzero(apart)


def differing_outputs(site: Site, inside: slice, outside: slice, most: int, tries: int) -> Indices:
    """Up to `most` outputs of a block: those in which claim and reference are found to differ, and some others.

    Groups are compared entry by entry, so that nothing has to be measured; a group that differs is divided into halves.
    """
    if most == 1 and (decoded := _decoded_output(site, inside, outside)) is not None:
        return np.array([decoded])

    def differ(start: int, stop: int) -> bool:
        cotangent = _of_group(site, outside, start, stop)
        claimed, reference = site.map.vjp(site.x, cotangent)[inside], witness_of(site).vjp(site.x, cotangent)[inside]
        return not np.abs(claimed - reference).max() <= WANTED * np.abs(reference).max() + NOTHING  # NaN differs

    found = halved(outside.stop - outside.start, differ, most=most // 2 + 1, tries=tries)
    others = np.setdiff1d(site.rng.permutation(outside.stop - outside.start)[:most], found)[: most - len(found)]
    return np.sort(np.concatenate([np.array(found, dtype=np.intp), others]).astype(np.intp))


def _of_group(site: Site, outside: slice, start: int, stop: int) -> Vector:
    """A random cotangent of some consecutive outputs of a block, zero for all others.

    The outputs are weighted as in the claim, so that those of small slope count where the claim makes them count.
    """
    cotangent, group = np.zeros(site.map.codomain.size), slice(outside.start + start, outside.start + stop)
    weights = np.ones(stop - start)
    if site.claim.cotangents is not None:
        weights = np.abs(site.claim.cotangents[:, group]).max(axis=0)
    cotangent[group] = random_direction(site.rng, weights)
    return cotangent


def _decoded_output(site: Site, inside: slice, outside: slice) -> int | None:
    """The output that causes the largest difference of claim and reference, if it is one output alone; otherwise None.

    Weighting the outputs by 1 + number / count then multiplies that difference by the same factor, from which the
    number follows. The output alone must cause at least half of the difference.
    """
    size = outside.stop - outside.start
    cotangents = np.zeros((2, site.map.codomain.size))
    cotangents[0] = _of_group(site, outside, 0, size)
    cotangents[1, outside] = cotangents[0, outside] * (1 + np.arange(size) / size)
    plain, weighted = _gaps(site, cotangents, inside)
    entry = int(np.argmax(np.abs(plain)))
    with np.errstate(all="ignore"):
        number = float((weighted[entry] / plain[entry] - 1) * size)
    if not (np.isfinite(number) and -0.5 <= number < size - 0.5):
        return None
    output = round(number)
    unit = np.zeros((1, site.map.codomain.size))
    unit[0, outside.start + output] = cotangents[0, outside.start + output]
    alone = float(_gaps(site, unit, inside)[0, entry])
    return output if abs(plain[entry]) <= 2 * abs(alone) else None


def _gaps(site: Site, cotangents: Matrix, inside: slice) -> Matrix:
    """Claim minus reference for some cotangents, in the entries of one input block."""
    claimed, reference = (map_.vjp_many(site.x, cotangents) for map_ in (site.map, witness_of(site)))
    return np.asarray(claimed[:, inside] - reference[:, inside], dtype=np.float64)


def witness_of(site: Site) -> VectorMap:
    """The reference of a site that has one."""
    if site.witness is None:
        raise ValueError("this step needs autodiff of forward's body, which is not available at these inputs")
    return site.witness
