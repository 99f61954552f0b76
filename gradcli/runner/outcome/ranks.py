"""Whether an edit of backward is right at inputs of other kinds that forward may take as well.

They have another number of axes, or other values of the arguments that are real numbers.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import CodeType, FunctionType
from typing import final

import numpy as np

from gradcli.cases import InputsFrom, InputSpec
from gradcli.diagnosis.slips.elsewhere import ELEMENTWISE, FEWEST, gives_ranks
from gradcli.diagnosis.slips.hooks import running
from gradcli.errors import GradcliError
from gradcli.frozen import dataclass
from gradcli.inputs.domains import INTEGRAL
from gradcli.results import CheckResult
from gradcli.runner.arguments.buffers import as_supplied
from gradcli.runner.arguments.prepare import Prepared, prepared
from gradcli.runner.outcome.modes import other_numbers
from gradcli.runner.outcome.proof import CaseCheck, checked, failures_of, input_of, of_shape, rebuilt
from gradcli.verdict import Verdict

WRONG_THERE = "with another number of axes, which forward takes as well, the patched backward is not right"
_MOST_BROADCAST = 2
"""Inputs that are tried with an axis less than others of their shape."""
WRONG_AT = "with {}, which forward takes as well, the patched backward is not right"
_JUDGED = (Verdict.PASSED, Verdict.FAILED)
_ONLY = ("returns", "gradient")


@final
@dataclass(frozen=True, kw_only=True)
class OtherRanks:
    """A target at inputs with an axis more or less: `x.shape[1]` is `x.shape[-1]` only for a matrix."""

    ready: Prepared
    target: object
    check: CaseCheck

    def hold(self, codes: Mapping[FunctionType, CodeType]) -> bool:
        """Whether new code for some of the target's functions is right wherever backward is meant for the inputs."""
        meant = self._meant  # of the code as it is
        with running(codes):
            for inputs in meant:
                there = _checked(self.check, self.ready, rebuilt(self.ready, self.target, codes), inputs)
                if there is None or there.verdict not in (Verdict.PASSED, Verdict.INCONCLUSIVE):
                    return False
        return True

    @cached_property
    def _meant(self) -> tuple[tuple[InputSpec, ...], ...]:
        """The inputs for which backward is meant as it is."""
        return tuple(_meant(self.check, self.ready, self.target, _of_other_ranks(self.ready)))


@final
@dataclass(frozen=True, kw_only=True)
class OtherNumbers:
    """A target at other values of real numbers: `min(1, c)` is `c` only while `c` is less than 1."""

    ready: Prepared
    target: object
    check: CaseCheck

    def wrong_with(self, codes: Mapping[FunctionType, CodeType]) -> str | None:
        """The value of a number, as `c=1.5`, at which new code is wrong although backward is meant for it, if any."""
        for text, inputs in other_numbers(self.ready, codes):
            with running(codes):
                there = _checked(self.check, self.ready, rebuilt(self.ready, self.target, codes), inputs)
            if there is None or not failures_of(there):
                continue
            meant = any(_meant(self.check, self.ready, self.target, [inputs]))
            if meant and self._outputs(inputs) == self._outputs(self.ready.supply.specs) is not None:
                return text
        return None

    def _outputs(self, inputs: Sequence[InputSpec]) -> tuple[bool, ...] | None:
        """Which outputs are complex, as `(1 - c) ** 0.5` is for `c` above 1; None where some are not finite."""
        spec = self.ready.case.spec.with_inputs(tuple(inputs), InputsFrom.SPEC)
        try:
            made = prepared(self.target, replace(self.ready.case, spec=spec))
            with made.backend.session():
                given = as_supplied(made.supply.samples[0](), made.supply)
                subject = made.backend.bind(self.target, given, info=made.info)
                value = subject.derivative_map(1).value(subject.point)
        except GradcliError:
            return None
        return tuple(b.complex for b in subject.codomain.blocks) if np.isfinite(value).all() else None


def _meant(
    check: CaseCheck, ready: Prepared, target: object, others: Iterable[tuple[InputSpec, ...]]
) -> Iterator[tuple[InputSpec, ...]]:
    """Those of other inputs for which backward is meant as it is.

    It returns gradients of the right shapes there, and those that are right at the case's own inputs are so there.
    """
    there = ((inputs, _checked(check, ready, target, inputs)) for inputs in others)
    judged = [(inputs, found) for inputs, found in there if found is not None and found.verdict in _JUDGED]
    fitting = [(i, _wrong_in(found)) for i, found in judged if not any(of_shape(e) for e in failures_of(found))]
    own = _checked(check, ready, target, None) if any(wrong for _, wrong in fitting) else None
    return (inputs for inputs, wrong in fitting if own is None or wrong <= _wrong_in(own))


def _checked(
    check: CaseCheck, ready: Prepared, target: object, inputs: tuple[InputSpec, ...] | None
) -> CheckResult | None:
    settings = replace(ready.case.settings, order=1, samples=1, only=_ONLY)
    return checked(check, replace(ready, case=replace(ready.case, settings=settings)), target, inputs)


def _wrong_in(result: CheckResult) -> frozenset[str | None]:
    return frozenset(map(input_of, failures_of(result)))


def _of_other_ranks(ready: Prepared) -> Iterator[tuple[InputSpec, ...]]:
    """The inputs where those with the most axes have one more, the first or the last, or lack the first.

    Of inputs of one shape, each one of the first few alone lacks the first axis as well: it is then broadcast. None
    where documentation gives a shape, or such an input has values of its own.
    """
    specs = ready.supply.specs
    rank = max((len(s.shape) for s in specs if s.shape is not None), default=0)
    longest = [s for s in specs if s.shape is not None and len(s.shape) == rank]
    free = all(s.value is None and s.layout is None and s.domain in (*ELEMENTWISE, *INTEGRAL) for s in longest)
    if not rank or not free or gives_ranks(ready.info, [s.name for s in specs]):
        return
    length = next(n for n in itertools.count(FEWEST) if all(n not in (s.shape or ()) for s in specs))
    for first, cut, last in (((length,), 0, ()), ((), 0, (length,)), *((((), 1, ()),) if rank > 1 else ())):
        yield tuple(replace(s, shape=(*first, *(s.shape or ())[cut:], *last)) if s in longest else s for s in specs)
    alike = [s for s in longest if [other.shape for other in longest].count(s.shape) > 1]
    for spec in alike[:_MOST_BROADCAST]:
        yield tuple(replace(s, shape=(s.shape or ())[1:]) if s is spec else s for s in specs)
