"""Whether forward is an iteration that was stopped before it converged, which makes an implicit derivative wrong."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradcli.backends.base import Subject
from gradcli.cases import Argument, with_defaults, with_its_source
from gradcli.errors import UserCodeError
from gradcli.inputs.hints.argument_names import limits_iterations
from gradcli.numerics.wording import of_largest
from gradcli.results import Evidence
from gradcli.verdict import Verdict

_ROUNDING = 1e-10
"""Relative. More iterations change the outputs of one that has converged by less."""


def unconverged_note(subject: Subject, evidence: Sequence[Evidence]) -> str | None:
    """The note on a wrong gradient if more iterations change the outputs; None if not, or if no gradient is wrong.

    The limit becomes odd and about twice as large: an iteration may go back and forth between two values.
    """
    if not any(e.verdict is Verdict.FAILED and e.check == "gradient" and e.order == 1 for e in evidence):
        return None
    given = with_defaults(subject.arguments, subject.info)
    for position, argument in enumerate(given):
        if type(argument.value) is not int or not limits_iterations(argument.name):
            continue
        more = 2 * argument.value + 1
        changed = _change(subject, [*given[:position], replace(argument, value=more), *given[position + 1 :]])
        if changed > _ROUNDING:
            return (
                f"forward has not converged at these inputs: with {argument.name}={more} "
                f"({with_its_source(argument, subject.info)}) its outputs change by up to "
                f"{of_largest(changed, 'output')}. If backward is right only after convergence (an implicit "
                f"derivative), raise {argument.name} or give inputs at which forward converges"
            )
    return None


def _change(subject: Subject, arguments: Sequence[Argument]) -> float:
    """By how much outputs differ at other arguments, relative to their largest entries; 0 if forward refuses these."""
    try:
        outputs = subject.rebind(list(arguments)).first_call.outputs
    except UserCodeError:
        return 0.0
    own = subject.first_call.outputs
    pairs = [(own[n], outputs[n]) for n in subject.output_numbers if n < len(outputs)]
    sized = [(one, two) for one, two in pairs if one.shape == two.shape and one.size and np.abs(one).max() > 0]
    changes = [float(np.abs(one - two).max() / np.abs(one).max()) for one, two in sized]
    return max((change for change in changes if np.isfinite(change)), default=0.0)
