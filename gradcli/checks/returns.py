"""What backward returns, before the framework checks it: the number of values, None or not, and their shapes."""

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from gradcli.backends.attribution import user_code_error
from gradcli.backends.base import RawBackward, RawGradient
from gradcli.backends.tensor.refusals import refusal_of
from gradcli.cases import Argument
from gradcli.checks.base import Check, Situation
from gradcli.errors import UserCodeError, counted
from gradcli.findings import FindingKind
from gradcli.results import Evidence

_TAKEN_AS_COMPLEX = {"jax": "and JAX passes it on as it is"}


@final
class ReturnsCheck(Check):
    """backward returns one gradient for each argument, of the argument's shape."""

    name = "returns"
    sentence = "backward returns one value for each argument of forward: None, or a gradient of its shape"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Call backward directly and look at what it returns."""
        raw = situation.raw_backward()
        if not raw.available:
            yield from self._refused(situation)
            return
        if raw.error is not None:
            raise user_code_error(raw.error, "backward") from raw.error
        problems = [*self._arity(situation, raw), *self._positions(situation, raw)]
        yield from problems
        if not problems:
            yield self.passed("; ".join([*self._summed(situation, raw), *self._left_out(situation, raw)]) or None)

    def _refused(self, situation: Situation) -> Iterator[Evidence]:
        """Errors of the framework about the gradients that a rule inside the target returns."""
        if not situation.subject.active or not situation.subject.output_numbers:
            return
        try:
            situation.passes()
        except UserCodeError as error:
            info = situation.subject.info
            refusal = refusal_of(error, info.name, has_rule=info.differentiates_numbers)
            if refusal is None:
                raise
            yield self.failed(refusal.kind, refusal.message)

    def _arity(self, situation: Situation, raw: RawBackward) -> Iterator[Evidence]:
        if raw.nested_unlike is not None:
            argument = raw.nested_unlike
            message = f"backward returns for {argument} a gradient whose pytree structure is not that of {argument}"
            yield self.failed(FindingKind.WRONG_ARITY, message, input=argument)
            return
        if raw.container is not None:
            yield self.failed(
                FindingKind.WRONG_ARITY,
                f"backward returns {raw.container} where {_wanted(situation)} is expected"
                f"{'' if raw.advice is None else f'; {raw.advice}'}",
            )
            return
        expected, got = len(situation.subject.arguments), len(raw.gradients)
        extra = raw.gradients[expected:]
        if got < expected or any(not gradient.is_none for gradient in extra):
            message = f"backward returns {counted(got, 'value')}, but forward {self._has(situation, extra)}"
            yield self.failed(FindingKind.WRONG_ARITY, message)

    def _has(self, situation: Situation, extra: Sequence[RawGradient]) -> str:
        """What forward was called with, or all that it has, and which parameters were left out."""
        given = [argument.name for argument in situation.subject.arguments]
        positional = [p.name for p in situation.subject.info.parameters if not (p.keyword_only or p.variadic)]
        absent = positional[len(given) :]
        filled = [name for name, gradient in zip(absent, extra, strict=False) if not gradient.is_none]
        if filled and len(extra) <= len(absent):
            whose = "its gradient" if len(filled) == 1 else "their gradients"
            return f"was called with {_listed(given)}; {_left_at_default(filled)}: return None as {whose}"
        return "; ".join([f"has {_listed([*given, *absent])}", *([_left_at_default(absent)] if absent else [])])

    def _left_out(self, situation: Situation, raw: RawBackward) -> Iterator[str]:
        """A note if backward returns no value for parameters that were left out: a call that passes them will fail."""
        info, got = situation.subject.info, len(raw.gradients)
        positional = [p for p in info.parameters if not p.keyword_only]
        if info.backend not in ("torch", "engine") or any(p.variadic for p in positional):
            return
        if got < len(positional):
            yield (
                f"backward returns {got} value{'s' * (got != 1)} for {len(positional)} parameters: a call that "
                f"passes {positional[-1].name} will fail, unless backward returns more then; return one value for each "
                "parameter"
            )

    def _positions(self, situation: Situation, raw: RawBackward) -> Iterator[Evidence]:
        arguments = situation.subject.arguments
        for position, (argument, gradient) in enumerate(zip(arguments, raw.gradients, strict=False)):
            if gradient.is_none:
                continue
            if not argument.is_tensor:
                yield self.failed(
                    FindingKind.UNNEEDED_GRADIENT,
                    f"{argument.name} has type {type(argument.value).__name__} and is not a tensor, but backward "
                    f"returns a value of type {gradient.type_name} for it instead of None",
                    input=argument.name,
                )
            elif not gradient.is_tensor:
                yield self.failed(
                    FindingKind.WRONG_SHAPE,
                    f"{argument.name}: backward returns a value of type {gradient.type_name} where a tensor or None is "
                    "expected",
                    input=argument.name,
                )
            elif position in situation.subject.active:
                yield from self._shape(argument.name, np.shape(argument.value), gradient, raw)
                yield from self._realness(situation, argument, gradient)

    def _shape(self, name: str, shape: tuple[int, ...], gradient: RawGradient, raw: RawBackward) -> Iterator[Evidence]:
        got = gradient.shape or ()
        if not (expands_to(shape, got) if raw.sums_down else got == shape):
            yield self.failed(
                FindingKind.WRONG_SHAPE,
                f"{name} has shape {list(shape)}, but the gradient returned for it has shape {list(got)}",
                input=name,
            )

    def _realness(self, situation: Situation, argument: Argument, gradient: RawGradient) -> Iterator[Evidence]:
        """A complex gradient of a real input; not with NumPy, where the real part is taken."""
        backend = situation.subject.info.backend
        if backend == "numpy" or gradient.value is None:
            return
        if gradient.value.dtype.kind == "c" and np.asarray(argument.value).dtype.kind != "c":
            yield self.failed(
                FindingKind.WRONG_DTYPE,
                f"{argument.name} is real ({argument.dtype_name}), but the gradient returned for it is complex "
                f"({gradient.dtype}), {_TAKEN_AS_COMPLEX.get(backend, 'which the framework refuses')}: return its real "
                "part",
                input=argument.name,
            )

    def _summed(self, situation: Situation, raw: RawBackward) -> Iterator[str]:
        for position in situation.subject.active:
            gradient = raw.gradients[position] if position < len(raw.gradients) else None
            shape = np.shape(situation.subject.arguments[position].value)
            if gradient is not None and gradient.is_tensor and gradient.shape != shape:
                yield (
                    f"backward returns a gradient of shape {list(gradient.shape or ())} for "
                    f"{situation.input_name(position)} of shape {list(shape)}: accepted, because the framework sums "
                    "it to the input's shape"
                )


def _listed(names: Sequence[str]) -> str:
    return f"{counted(len(names), 'argument')}: {', '.join(names)}"


def _left_at_default(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} left at the default"


def _wanted(situation: Situation) -> str:
    """What backward is to return for the arguments."""
    alone = situation.subject.info.backend in ("torch", "engine") and len(situation.subject.arguments) == 1
    return "a tensor or a tuple of one" if alone else "a tuple with one gradient for each argument"


def expands_to(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether broadcasting `small` gives `large`: frameworks sum such a gradient to `small`."""
    if len(small) > len(large):
        return False
    padded = (1,) * (len(large) - len(small)) + small
    return all(a in (1, b) for a, b in zip(padded, large, strict=True))
