"""The search for inputs, with containers seen in several ways."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Backend
from gradcli.backends.tensor.framework import all_same, double_precision
from gradcli.cases import OWN_DTYPE, Argument, InputSpec
from gradcli.errors import InputsNotFoundError, OverrunError
from gradcli.frozen import dataclass
from gradcli.inputs.builders import build, known_dtype, rounded
from gradcli.inputs.search.budget import SEARCH_TRIES
from gradcli.inputs.search.inference import Inference, infer
from gradcli.inputs.search.replies import Attempt
from gradcli.runner.arguments.binding import placed
from gradcli.runner.arguments.nested import Unfolded, unfolded
from gradcli.runner.planning.plan import CheckCase
from gradcli.targets import TargetInfo, Trial

_UNSTEADY = (
    "in the search for inputs, the first call of backward returned another gradient than a later one at the same "
    "inputs and outputs; the gradient depends on earlier calls, and is checked as it is after a few of them"
)

_TRIES_BEFORE_NUMBERS = 400
"""What a search is allowed before the parts of containers are tried as single numbers."""


def found_inputs(
    backend: Backend, target: object, info: TargetInfo, case: CheckCase, fixed: tuple[InputSpec, ...], dtype: str
) -> Inference:
    """What the search finds; where lists or tuples may be meant, the first kind that backward runs with.

    Where the parts of a container may be single numbers, each way gets a few tries before one gets all.
    """
    ways = unfolded(info, fixed)
    likely = [way for way in ways if not way.are_numbers]
    rounds = [(ways, _TRIES_BEFORE_NUMBERS)] if len(likely) < len(ways) else []
    refusal: InputsNotFoundError | None = None
    for tried, tries in (*rounds, (likely, SEARCH_TRIES)):
        first, refusal = None, None
        for way in tried:
            try:
                whole, is_right = _found_in(_Attempts(backend, target, info, way, dtype), case, fixed, tries)
            except InputsNotFoundError as error:
                refusal = refusal or _with_names_of(way, error)
                if error.is_lasting:
                    raise _with_names_of(way, error) from error.__cause__
                continue
            if is_right:
                return whole
            first = first or whole
        if first is not None:
            return first
    assert refusal is not None  # noqa: S101 - each way was found or refused; for the type checker
    raise refusal


def _with_names_of(way: Unfolded, error: InputsNotFoundError) -> InputsNotFoundError:
    renamed = InputsNotFoundError(way.text(str(error)))
    renamed.__cause__, renamed.refuses_double = error.__cause__, error.refuses_double
    return renamed


def _found_in(
    attempts: "_Attempts", case: CheckCase, fixed: tuple[InputSpec, ...], tries: int
) -> tuple[Inference, bool]:
    """What the search finds in one way, and whether backward runs there."""
    try:
        found = _found_by(attempts, case, fixed, tries)
    except _KeyLackingError as error:
        return _found_in(replace(attempts, way=error.way), case, fixed, tries)
    way, drawn = attempts.way, build(found.specs, seed=case.seed)
    trial = attempts.backward(drawn)
    notes = [*map(way.text, found.notes), *([_UNSTEADY] if attempts.began_with_others(drawn, trial) else [])]
    notes += [f"a call with {way.text(given)} did not return in time" for given in attempts.endless[:1]]
    others = tuple(map(way.specs, found.alternatives))
    whole = replace(found, specs=way.specs(found.specs), alternatives=others, notes=tuple(notes))
    return whole, trial.backward_error is None


def _found_by(attempts: "_Attempts", case: CheckCase, fixed: tuple[InputSpec, ...], tries: int) -> Inference:
    way, backward = attempts.way, attempts.backward
    search = partial(
        infer,
        way.info,
        seed=case.seed,
        fixed=fixed,
        attempt_backward=backward,
        budget_tries=tries,
        dtype=attempts.dtype,
    )
    if attempts.backend.name == "numpy":
        return _found_by_both(search, attempts.both, attempts.forward, case.seed)
    return search(attempts.forward)


class _KeyLackingError(Exception):
    """Forward looked into a dict by a key that it was not known to have; `way` has it."""

    def __init__(self, way: Unfolded) -> None:
        super().__init__()
        self.way = way


@dataclass(frozen=True, slots=True, kw_only=False)
class _Attempts:
    """Runs of a target for the search, which sees its arguments in one way."""

    backend: Backend
    target: object
    info: TargetInfo
    way: Unfolded
    dtype: str
    earlier: dict[bytes, Trial] = field(default_factory=dict)
    endless: list[str] = field(default_factory=list)
    """The inputs of calls that did not return in time, as flags."""

    def forward(self, arguments: Sequence[Argument]) -> Trial:
        """Forward alone."""
        return self._noted(arguments, self.backend.attempt(self.target, self._placed(arguments)))

    def backward(self, arguments: Sequence[Argument]) -> Trial:
        """Forward and backward."""
        trial = self._noted(arguments, self.backend.attempt(self.target, self._placed(arguments), gradients=True))
        self.earlier.setdefault(_key(arguments), trial)
        return trial

    def began_with_others(self, arguments: Sequence[Argument], trial: Trial) -> bool:
        """Whether the first trial at these arguments had the same outputs as this one and other gradients."""
        first = self.earlier[_key(arguments)]
        if not all_same(first.outputs, trial.outputs) or first.gradients is None or trial.gradients is None:
            return False
        pairs = zip(first.gradients, trial.gradients, strict=True)
        return any(a is not None and b is not None and not _are_close(a, b) for a, b in pairs)

    def both(self, arguments: Sequence[Argument]) -> Trial:
        """Forward and backward, where an error of either counts."""
        trial = self.backward(arguments)
        if any(gradient is None for gradient in trial.gradients or ()):
            return Trial(error=ValueError("the derivative's shape is neither that of a gradient nor of a Jacobian"))
        return trial if trial.backward_error is None else Trial(error=trial.backward_error)

    def _noted(self, arguments: Sequence[Argument], trial: Trial) -> Trial:
        if isinstance(trial.error or trial.backward_error, OverrunError):
            self.endless.append(" ".join(map(_flag, arguments)))
        way = self.way.with_lacking(trial.error)
        if way is not None:
            raise _KeyLackingError(way)
        return trial

    def _placed(self, arguments: Sequence[Argument]) -> tuple[Argument, ...]:
        return in_precision(placed(self.way.arguments(arguments), self.info), self.dtype)


def _flag(argument: Argument) -> str:
    """The shape or the value of an argument as a flag gives it."""
    kind = "tensor" if argument.is_tensor else "value"
    shape, value = (argument.value.shape, None) if argument.is_tensor else (None, argument.value)
    return InputSpec(name=argument.name, kind=kind, shape=shape, value=value).as_flag()


def _key(arguments: Sequence[Argument]) -> bytes:
    """What tells arguments apart: the same for the same values that require a gradient alike."""
    parts = [
        (a.name, a.requires_grad, a.value.shape, a.value.tobytes()) if a.is_tensor else (a.name, a.value)
        for a in arguments
    ]
    return repr(parts).encode()


def _are_close(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two results of the same code on the same numbers differ by a reordering of sums at most."""
    size = float(np.max(np.abs(one), initial=0.0, where=np.isfinite(one)))
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0.0, atol=1e-6 * size, equal_nan=True))


def takes_dtype(spec: InputSpec) -> bool:
    """Whether a spec stands for a floating tensor of the run's precision."""
    return spec.kind == "tensor" and spec.dtype is None and spec.domain not in {*OWN_DTYPE, "npz"}


def in_precision(arguments: Sequence[Argument], dtype: str) -> tuple[Argument, ...]:
    """The arguments with 64-bit real tensors rounded to the run's dtype, where that is a lower one."""
    if double_precision(dtype) == dtype or dtype.startswith("complex"):
        return tuple(arguments)
    return tuple(_rounded(a, dtype) if a.is_tensor and a.dtype_name == "float64" else a for a in arguments)


def _rounded(argument: Argument, dtype: str) -> Argument:
    value = rounded(argument.value.astype(known_dtype(dtype)), dtype)
    return replace(argument, value=value, dtype="bfloat16" if dtype == "bfloat16" else None)


def _found_by_both(search: Callable[[Attempt], Inference], strict: Attempt, lax: Attempt, seed: int) -> Inference:
    """The inputs found for the function; or, if its derivative does not fit them, the inputs found for both.

    NumPy broadcasts almost any shapes, so that an error of the derivative says more than a function that runs. A note
    names the inputs that were found for the function alone. They are kept if the derivative fits only single entries,
    constants in place of tensors, or shapes other than the documented ones: its shape is then wrong.
    """
    plain = search(lax)
    if strict(build(plain.specs, seed=seed)).ok:
        return plain
    try:
        found = search(strict)
    except InputsNotFoundError:
        return plain
    avoids = found.is_degenerate and not plain.is_degenerate
    avoids = avoids or not found.documented >= plain.documented
    if plain.specs == found.specs or avoids or _tensors(found) < _tensors(plain):
        return plain
    note = (
        f"the function also accepts {plain.as_flags()}, but the derivative has the wrong shape for these inputs, so "
        "they are not checked"
    )
    return replace(found, notes=(*found.notes, note))


def _tensors(found: Inference) -> int:
    return sum(takes_dtype(spec) for spec in found.specs)
