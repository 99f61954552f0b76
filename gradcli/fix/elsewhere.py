"""What is known of a target before it is fixed: probes at other sizes, its orders, and the precisions it runs in."""

from dataclasses import replace

import numpy as np

from gradcli.backends.base import Subject
from gradcli.cases import InputsFrom
from gradcli.checks.reached import compared_dtypes
from gradcli.errors import GradcliError
from gradcli.fix.probes import Probes, probes_of
from gradcli.runner.arguments.buffers import as_supplied
from gradcli.runner.arguments.prepare import Prepared, prepared
from gradcli.runner.outcome.proof import other_inputs


def probes_at_other_sizes(ready: Prepared, target: object, seed: int) -> Probes | None:
    """Probes at the first other input sizes that forward takes: they tell a size from a number. None without any."""
    for inputs in other_inputs(ready):
        case = replace(ready.case, spec=ready.case.spec.with_inputs(tuple(inputs), InputsFrom.SPEC))
        try:
            found = probes_of([_first_subject(prepared(target, case), target)], seed)
        except GradcliError:
            continue
        if found.each:
            return found
    return None


def is_differentiable(ready: Prepared, target: object, seed: int) -> bool:
    """Whether backward can be differentiated at the first sample, right or wrong, and a check does so.

    Where backward is marked once_differentiable, a map of second derivatives may still give zeros.
    """
    try:
        with ready.backend.session():
            subject = _first_subject(ready, target)
            if subject.first_order_only is not None:
                return False
            map_ = subject.derivative_map(2)
            map_.vjp(subject.base_point(2, seed), np.ones(map_.codomain.size))
    except GradcliError:
        return False
    return True


def compared_precisions(ready: Prepared, target: object) -> frozenset[str]:
    """The lower precisions with which the source compares a dtype and in which backward runs without an exception."""
    found = set[str]()
    for dtype in compared_dtypes(ready.info):
        try:
            with ready.backend.session():
                low = _first_subject(ready, target).in_given_precision(dtype)
                if low is not None:
                    low.backward([np.ones(block.shape) for block in low.codomain.blocks])
                    found.add(dtype)
        except GradcliError:  # no such precision, or a derivative that is given apart from its function
            continue
    return frozenset(found)


def _first_subject(ready: Prepared, target: object) -> Subject:
    with ready.backend.session():
        return ready.backend.bind(target, as_supplied(ready.supply.samples[0](), ready.supply), info=ready.info)
