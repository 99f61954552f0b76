"""Names for a wrong derivative of backward."""

import ast
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradcli.backends.base import Subject
from gradcli.diagnosis.code.leaving import graph_left
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.saved_constant import saved_constant
from gradcli.edits.source import written
from gradcli.errors import OverrunError, UserCodeError
from gradcli.findings import FindingKind
from gradcli.numerics.maps.sizes import COARSE
from gradcli.numerics.wording import of_largest
from gradcli.results import Evidence, Finding, Location


def name_higher_order(failed: Sequence[Evidence], subject: Subject, *, first_is_wrong: bool = False) -> Finding:
    """The finding for a derivative of order 2 or more that is wrong, as the first one may be at other inputs."""
    order = min(e.order for e in failed)
    worst = [e for e in failed if e.order == order]
    inputs = ", ".join(dict.fromkeys(str(e.input) for e in worst))
    if any(e.mismatch is not None and not np.isfinite(e.mismatch.claimed).all() for e in worst):
        return Finding(
            kind=FindingKind.NON_FINITE_GRADIENT,
            message=f"the derivative of order {order} with respect to {inputs} is NaN or infinite, although finite "
            "differences of backward are finite there",
            order=order,
            input=worst[0].input,
            output=worst[0].output,
        )
    if uncovered := _without_graph(worst, subject):
        return _never_recorded(uncovered, worst[0], subject)
    kept, tried = saved_constant(worst, subject)
    cause, location = _cause(subject, tried=tried) if kept is None else (kept.said, kept.location)
    missing = all(_claims_nothing(e) for e in worst)
    result = "zero" if missing else "an incomplete result"
    if cause is not None or missing:
        because = f", because {cause}" if cause else ""
        return Finding(
            kind=FindingKind.NOT_TWICE_DIFFERENTIABLE,
            message=f"the derivative of order {order} with respect to {inputs} is cut off: differentiating backward "
            f"gives {result}{because}",
            order=order,
            input=worst[0].input,
            output=worst[0].output,
            location=location,
            corrected=None if kept is None else kept.corrected,
        )
    errors = [e.max_rel_error for e in worst if e.max_rel_error is not None]
    size = f" by up to {of_largest(max(errors), 'derivative')}" if errors else ""
    return Finding(
        kind=FindingKind.WRONG_SECOND_ORDER,
        message=_of_lower(
            worst,
            subject,
            f"the derivative of order {order} with respect to {inputs} is wrong{size}",
            first_is_wrong=first_is_wrong,
        ),
        order=order,
        input=worst[0].input,
        output=worst[0].output,
        location=location,
    )


def _without_graph(worst: Sequence[Evidence], subject: Subject) -> list[str]:
    """The inputs whose gradients carry no graph, of those that differ: not even one to grad_output, through which a
    derivative flows whatever forward saves."""
    order, points = worst[0].order, [e.mismatch.point for e in worst if e.mismatch is not None]
    map_ = subject.derivative_map(order)
    if not points or points[0].shape != (map_.domain.size,):
        return []
    try:
        connected = map_.depends(points[0])
    except OverrunError:
        raise
    except UserCodeError:
        return []
    places = dict.fromkeys(e.output for e in worst if e.output is not None)
    return [map_.codomain.blocks[place].name for place in places if not connected[place].any()]


def _never_recorded(names: Sequence[str], evidence: Evidence, subject: Subject) -> Finding:
    """The finding for gradients that carry no graph; what forward saves has no part in that."""
    left = next(graph_left(subject.info.backward), None)
    of_what = "gradient" if len(names) == 1 else "gradients"
    because = "" if left is None else f", because backward {left.said}"
    return Finding(
        kind=FindingKind.NOT_TWICE_DIFFERENTIABLE,
        message=f"the derivative of order {evidence.order} is cut off: the {of_what} of {', '.join(names)} that "
        f"backward returns {'carries' if len(names) == 1 else 'carry'} no graph, and differentiating "
        f"{'it' if len(names) == 1 else 'them'} gives zero with respect to every input{because}",
        order=evidence.order,
        input=evidence.input,
        output=evidence.output,
        location=None if left is None else left.location,
    )


def _of_lower(worst: Sequence[Evidence], subject: Subject, wrong: str, *, first_is_wrong: bool) -> str:
    """The sentence for a wrong derivative, with what is known of the first one at the inputs where that was measured.

    Where forward does not change at the case's inputs, the first derivative passed there, and tells nothing of others.
    """
    states = [_first_is_right(e, subject) for e in worst]
    if False in states:
        return (
            f"{wrong}, at inputs where the first derivative is wrong as well: correct that first. It was right, or "
            "zero, at the inputs of the case"
        )
    if None not in states:
        right = "the first derivative is right at these inputs, but "
        wrong = f"{wrong}, also where the first derivative is right" if first_is_wrong else right + wrong
    call = subject.call()
    if call.saved_strangers or call.context_tensors:
        return f"{wrong}: no derivative flows through what forward saves besides inputs and outputs"
    return f"{wrong}: if backward calls other Functions, check their backward too"


def _first_is_right(e: Evidence, subject: Subject) -> bool | None:
    """Whether all first derivatives are right where a higher one is wrong; None if nothing is seen of them there.

    Some must be seen to be right and not zero: zeros say nothing of the branch whose derivative is wrong.
    """
    if e.mismatch is None:
        return None
    arguments = list(subject.arguments)
    point = subject.domain.unflatten(e.mismatch.point[: subject.domain.size])
    for position, value in zip(subject.active, point, strict=True):
        arguments[position] = replace(arguments[position], value=value)
    try:
        facts = Facts(subject.rebind(arguments), 0)
        felt = [place for place in range(len(subject.active)) if facts.is_felt(place)]
        claims = {place: facts.of(subject.active[place]) for place in felt}
        if any(facts.judged(place, claims[place], relative=COARSE) is False for place in felt):
            return False
        return True if felt and all(facts.explains(place, claims[place]) for place in felt) else None
    except OverrunError:
        raise
    except UserCodeError:
        return None


def _claims_nothing(evidence: Evidence) -> bool:
    return evidence.mismatch is not None and not np.any(evidence.mismatch.claimed)


def _cause(subject: Subject, *, tried: bool) -> tuple[str | None, Location | None]:
    """How the graph is cut in backward: by a saved intermediate, or by a call that detaches.

    Intermediates that were `tried` in vain are not blamed.
    """
    leaving = next(graph_left(subject.info.backward), None)
    strangers = () if tried else subject.call().saved_strangers
    if strangers:
        return (
            f"ctx.saved_tensors[{strangers[0]}] is neither an input nor a differentiable output of forward, so no "
            "gradient flows through it; save such inputs or outputs, and compute this tensor from them in backward",
            _saving_line(subject, strangers[0]),
        )
    if leaving is not None:
        return f"backward {leaving.said}", leaving.location
    attributes = () if tried else subject.call().context_tensors
    if attributes:
        stored = f"ctx.{attributes[0]} is a tensor computed inside forward, so no gradient flows through it"
        where = _storing_line(subject, attributes[0])
        return f"{stored}; save inputs or differentiable outputs, and compute this tensor from them in backward", where
    return None, None


def _saving_line(subject: Subject, number: int) -> Location | None:
    """The line of forward that saves the tensor of a number; None where its source does not tell."""
    for function in (subject.info.setup_context, subject.info.forward):
        own = written(function)
        for node in ast.walk(own.node) if own is not None else ():
            saves = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "save_for_backward"
            if own is not None and saves and isinstance(node, ast.Call) and number < len(node.args):
                return Location(file=own.file.path, line=node.args[number].lineno)
    return None


def _storing_line(subject: Subject, attribute: str) -> Location | None:
    """The line of forward that sets an attribute of ctx."""
    for function in (subject.info.setup_context, subject.info.forward):
        own = written(function)
        for node in ast.walk(own.node) if own is not None else ():
            stores = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == attribute
            if own is not None and stores and isinstance(node, ast.Attribute):
                return Location(file=own.file.path, line=node.lineno)
    return None
