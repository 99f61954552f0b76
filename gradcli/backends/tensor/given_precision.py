"""Functions whose backward refuses 64 bits, as kernels do that have code only for float32 and below."""

from collections.abc import Callable

import numpy as np

from gradcli.backends.tensor.bound import BoundFunction
from gradcli.errors import OverrunError, UserCodeError

Bound = Callable[..., BoundFunction]


def taking_backward(subject: BoundFunction, bound: Bound) -> BoundFunction:
    """The subject; in the lower precision of its inputs where backward refuses 64 bits and takes that.

    `bound` makes it anew with other options.
    """
    if not subject.low or subject.insists_on is not None or not subject.info.backward or _backward_runs(subject):
        return subject
    lower = bound(casts=subject.low, insists=True)
    return lower if _backward_runs(lower) else subject


def _backward_runs(subject: BoundFunction) -> bool:
    try:
        subject.backward(subject.codomain.unflatten(np.ones(subject.codomain.size)))
    except OverrunError:
        return True  # it was not refused; the checks say what takes so long
    except UserCodeError:
        return False
    return True
