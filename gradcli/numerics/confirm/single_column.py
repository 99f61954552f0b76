"""Attributes a difference along a direction through many entries to single entries, where it is significant there."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.compare import Decision, Impression
from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.persistence import confirm, confirm_sparse
from gradcli.numerics.localise.entries import Located, locate
from gradcli.numerics.maps.floats import Indices
from gradcli.numerics.regularity.kinks import LARGEST_COUNT
from gradcli.numerics.sampling.directions import Focus, within


def confirm_column(site: Site, input_: int, output: int, significance: float) -> Decision | None:
    """Decide on a pair whose error along a direction is not significant, by one entry whose error is.

    If the wrong entries of a large block are few, they are confirmed together (`confirm_sparse`).

    Returns:
        The decision; None if no single entry has a significant error.
    """
    focus, located = _telling_column(site, input_, output, significance)
    if focus is None:
        return None
    decision = confirm_sparse(site, input_, output, located, significance)
    if decision is not None:
        return decision
    reading = site.probe(site.map.domain.slices[input_], focus, cheap=False)
    if site.judge(reading, input_, output, significance).impression is not Impression.DIFFERS:
        return None
    return confirm(site, input_, output, reading, significance)


def _telling_column(site: Site, input_: int, output: int, significance: float) -> tuple[Focus | None, Located | None]:
    """Find one entry (column) whose error, measured along that entry alone, is significant.

    The error is compared with the largest claimed entry of the block, both without the scales of the input. Along a
    random direction every entry counts times the scale of its input, so that an error in an entry of small scale looks
    small there, and errors of several entries may cancel. Up to eight entries that `locate` blames are tried, or if it
    finds none, the largest ones.

    Returns:
        A focus on that entry, None if there is none; and the wrong entries that `locate` found, None if it found none.
    """
    places = site.map.domain.slices[input_]
    found = locate(site, input_, output)
    blamed = np.zeros(0, np.intp) if found is None else found.entries[:LARGEST_COUNT]
    for column in (blamed if blamed.size else _largest_columns(site, input_, output)).tolist():
        drawn = within(site.scales, places.start + column)
        focus = Focus(drawn=drawn, judged=np.full(site.x.size, drawn.max()))
        judgement = site.judge(site.probe(places, focus), input_, output, significance)
        if judgement.impression is Impression.DIFFERS:
            return focus, found
    return None, found


def _largest_columns(site: Site, input_: int, output: int) -> Indices:
    """The columns of the largest |claimed entry|, and of the largest |claimed entry| times the scale of its input."""
    places = site.map.domain.slices[input_]
    size = np.abs(site.claim.of_block(output)[:, places]).max(axis=0)
    return np.unique([np.argmax(size), np.argmax(size * site.scales[places])])
