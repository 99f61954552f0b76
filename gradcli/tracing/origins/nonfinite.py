"""Where NaN and Inf came from: searched back from the result, or from the first gradient, to the operation."""

import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from gradcli.frozen import dataclass
from gradcli.traces import NonFinite
from gradcli.tracing.graph import BadGradient, GraphPass, NodeRecord
from gradcli.tracing.hooks import HookLog
from gradcli.tracing.operations import Operation, OperationLog
from gradcli.tracing.origins.calculations import Calculation

_SHOWN = {"rdiv": "div", "rsub": "sub", "rpow": "pow", "rmul": "mul", "radd": "add"}
_SELECTING = {"WhereBackward": "where", "MaskedFillBackward": "masked_fill", "MaskedScatterBackward": "masked_scatter"}


@final
@dataclass(frozen=True, slots=True)
class Suspect:
    """An operation and how its result was calculated, or a tensor (`label`) not finite before any operation."""

    calculation: Calculation
    operation: Operation | None
    label: str | None = None

    def described(self, phase: str) -> NonFinite:
        """As a plain value."""
        operation = self.operation
        put_in = self.calculation.given and self.calculation.is_source
        kind = "operation" if operation is not None and operation.inputs and not put_in else "data"
        return NonFinite(
            phase=phase,
            kind=kind,
            name=self.label or ("a tensor" if operation is None else _SHOWN.get(operation.name, operation.name)),
            site=None if operation is None else operation.site,
            entry=self.calculation.entry,
            value=self.calculation.value,
            text=self.calculation.text,
            dtype="" if operation is None else operation.dtype,
        )


@final
class Origins:
    """The operations of a trace with non-finite results, and how these depend on one another."""

    def __init__(self, log: OperationLog, label_of: Callable[[int], str | None]) -> None:
        self.log = log
        self.label_of = label_of
        self.makers = {value: operation for operation in log.operations for value in operation.outputs}
        self.ends = [operation.last_node for operation in log.operations]

    def of_results(self, results: Iterable[Any]) -> NonFinite | None:
        """Why a result is not finite."""
        for result in results:
            maker = self.makers.get(self.log.value(result))
            if maker is not None and maker.calculation is not None:
                return self._origin(maker, "forward")
        return None

    def of_backward(self, graph: GraphPass, hooks: HookLog) -> NonFinite | None:
        """Why a gradient is not finite although the result is."""
        bad = graph.first_bad
        hook = next((n for n, call in enumerate(hooks.calls) if _turned(call.before, call.after)), None)
        if hook is not None and (bad is None or hook < bad.hook_calls):
            call = hooks.calls[hook]
            return NonFinite(phase="backward", kind="hook", name=call.hook.function, site=call.hook.site)
        if bad is None:
            return None
        if bad.given:
            return NonFinite(phase="backward", kind="cotangent", name=graph.records[bad.node].name)
        record = graph.records[bad.node]
        operation = self._operation_of(record.node._sequence_nr())
        found = NonFinite(
            phase="backward",
            kind="node",
            name=record.name,
            site=record.site or record.rule,
            entry=bad.entry,
            value=bad.value,
            incoming=bad.incoming,
            saved=bad.saved,
            operation=_name_of(operation) if operation is not None and operation.site == record.site else None,
        )
        if bad.inside is not None:
            return replace(found, cause=self._origin(bad.inside, "backward"))
        selecting = _selection(graph, bad) if bad.incoming == 0 and _has_a_pole(operation) else None
        if selecting is not None:
            return replace(
                found, selected_at=selecting.site, selected_by=_SELECTING[selecting.name.rstrip("0123456789")]
            )
        return found if operation is None else replace(found, cause=self._cause(operation))

    def _cause(self, operation: Operation) -> NonFinite | None:
        """What was already not finite in forward, at this operation or before it."""
        if operation.calculation is not None:
            return self._origin(operation, "forward")
        makers = [self.makers.get(value) for value in operation.inputs]
        maker = next((m for m in makers if m is not None and m.calculation is not None), None)
        return None if maker is None else self._origin(maker, "forward")

    def _operation_of(self, sequence: int) -> Operation | None:
        place = bisect.bisect_left(self.ends, sequence)
        return self.log.operations[place] if place < len(self.ends) else None

    def _origin(self, last: Operation, phase: str) -> NonFinite | None:
        """The operation that produced the first NaN or Inf leading to `last`, and the one that turned Inf into NaN."""
        turned: Operation | None = None
        operation, seen = last, {id(last)}
        while True:
            calculation = operation.calculation
            if calculation is None:
                return None
            if calculation.value != calculation.value and not calculation.from_nan and calculation.from_inf:
                turned = operation
            before = self._before(operation, calculation)
            if before is None or (before.operation is not None and id(before.operation) in seen):
                source = Suspect(calculation, operation)
                break
            if before.operation is None:
                source = before
                break
            operation = before.operation
            seen.add(id(operation))
        found = source.described(phase)
        if turned is None or turned is source.operation or turned.calculation is None:
            return found
        second = Suspect(turned.calculation, turned).described(phase)
        wanted = source.calculation.given or source.operation is None
        return replace(second, cause=found) if wanted else replace(found, became=second)

    def _before(self, operation: Operation, calculation: Calculation) -> Suspect | None:
        """The non-finite operand of an operation: NaN rather than Inf."""
        found = []
        for value in (*operation.inner, *operation.inputs):
            maker = self.makers.get(value)
            if maker is not None and maker.calculation is not None:
                found.append(Suspect(maker.calculation, maker))
            elif maker is None and value in self.log.data:
                found.append(Suspect(self.log.data[value], None, self.label_of(value)))
        if not found or (calculation.is_source and not operation.inner):
            return None
        nan = [suspect for suspect in found if suspect.calculation.value != suspect.calculation.value]
        return (nan or found)[0]


def _has_a_pole(operation: Operation | None) -> bool:
    """Whether an operation's result was a number or infinite at a finite operand, so that only its derivative fails."""
    made = None if operation is None else operation.calculation
    return made is None or (made.is_source and made.value == made.value)


def _turned(before: Sequence[Any], after: Sequence[Any]) -> bool:
    finite = all(summary is None or not summary.non_finite for summary in before)
    return finite and any(summary is not None and summary.non_finite for summary in after)


def _name_of(operation: Operation) -> str:
    return _SHOWN.get(operation.name, operation.name)


def _selection(graph: GraphPass, bad: BadGradient) -> NodeRecord | None:
    """The node of the where or masked_fill that returned a gradient of 0 at the entry of the bad one."""
    consumers: dict[int, list[int]] = {}
    for number, record in enumerate(graph.records):
        for edge in record.edges:
            if edge.target is not None:
                consumers.setdefault(edge.target, []).append(number)
    waiting, seen = [bad.node], {bad.node}
    while waiting:
        for consumer in consumers.get(waiting.pop(0), ()):
            if _selects(graph.records[consumer], bad):
                return graph.records[consumer]
            if consumer not in seen:
                seen.add(consumer)
                waiting.append(consumer)
    return None


def _selects(record: NodeRecord, bad: BadGradient) -> bool:
    """Whether a node selects entries and returns 0 for the operand that was not selected, as far as values are kept."""
    if record.name.rstrip("0123456789") not in _SELECTING:
        return False
    came = record.gradients_in[0] if record.gradients_in else None
    for left in record.gradients_out:
        if came is None or left is None or came.values is None or left.values is None or came.shape != left.shape:
            continue
        if len(bad.entry) == len(left.shape):
            place = int(np.ravel_multi_index(bad.entry, left.shape)) if left.shape else 0
            if left.values[place] == 0 and came.values[place] != 0:
                return True
    return came is not None and came.values is None
