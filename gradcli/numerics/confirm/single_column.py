"""A difference that shows along a direction through many entries, laid at the door of single ones."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.compare import Decision, Impression
from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.persistence import confirm, confirm_sparse
from gradcli.numerics.localise.entries import Located, locate
from gradcli.numerics.maps.floats import Indices
from gradcli.numerics.sampling.directions import Focus

SUSPECTS = 8


def confirm_column(site: Site, input_: int, output: int, significance: float) -> Decision | None:
    """The decision on a block that is off by less than matters along a direction, from one entry whose error matters.

    None where no single entry is to blame. Where the wrong entries of a large block are few, they decide together.
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
    """A focus on one entry whose error matters beside the largest entry of the block, in units of the derivative.

    Along a random direction the entries count by their size times that of their input; an error in the largest entry
    may look small there if its input is small, and many errors may cancel.

    Returns:
        None where no single entry is to blame; and the wrong entries, where they are few.
    """
    places = site.map.domain.slices[input_]
    found = locate(site, input_, output)
    blamed = np.zeros(0, np.intp) if found is None else found.entries[:SUSPECTS]
    for column in (blamed if blamed.size else _largest_columns(site, input_, output)).tolist():
        drawn = np.zeros(site.x.size)
        drawn[places.start + column] = site.scales[places.start + column]
        focus = Focus(drawn=drawn, judged=np.full(site.x.size, drawn.max()))
        judgement = site.judge(site.probe(places, focus), input_, output, significance)
        if judgement.impression is Impression.DIFFERS:
            return focus, found
    return None, found


def _largest_columns(site: Site, input_: int, output: int) -> Indices:
    """The column of the largest claimed entry in units of the derivative, and of the one that counts most."""
    places = site.map.domain.slices[input_]
    size = np.abs(site.claim.of_block(output)[:, places]).max(axis=0)
    return np.unique([np.argmax(size), np.argmax(size * site.scales[places])])
