"""The base class of all checks, and what a check is given."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Gradients, Pass, RawBackward, Subject
from gradcli.backends.captured_sizes import captured_sizes
from gradcli.backends.tensor.call_records import OtherCalls
from gradcli.checks.nondeterminism import VaryingMap, determined
from gradcli.checks.other_points.bounds import any_given, bounds_of_map
from gradcli.checks.other_points.calls import disturbing_calls, few_disturbing_calls
from gradcli.checks.shared_passes import Together, passed_together
from gradcli.errors import OverrunError, UserCodeError
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.numerics.differences.formats import stored_roundoff
from gradcli.numerics.maps.pieces import pieces
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import entry_scales
from gradcli.results import Evidence, Finding, Location
from gradcli.settings import Settings
from gradcli.verdict import Verdict

LARGE = 1e4
LONG = 10_000
"""Cotangents with more entries take one random number for each entry, not two: a third of the time."""
CANCELLED = 2.0**-42
"""Below this part of the largest cotangent, a gradient may be only the rounding error of terms that cancel."""
FACTORS = (-3.0, 2.0)
"""Factors of the cotangents u and v in their combination (`combined`), of different signs."""
REPEAT_TOLERANCE = 1e-9
"""Relative; the same code on the same numbers differs by a reordering of sums at most."""
FIRST_ORDER_ERRORS = "errors-of-order-1"
"""The name under which a situation keeps how far each gradient is from its reference, once that is measured."""
_VARIATION = 4.0
"""Times the declared nondeterminism. Two results that vary by it, one up and one down, are two of it apart; this is
doubled, because the reference varies too."""
_ROUNDINGS_INSIDE = 32.0
"""A rule of JAX that takes the step of a float32 table from two of its 30 places is off by 22 roundings of float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A Function at its inputs, with the run's settings and the case's own seed.

    `sweep` asks for the checks at other inputs as well, which run once for each case. `sizes_given` says that the user
    chose the sizes of the inputs.
    """

    subject: Subject
    settings: Settings
    seed: int
    sweep: bool = False
    sizes_given: bool = False
    _runs: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """The result of `make`, computed once for all checks that use this name."""
        if name not in self._runs:
            self._runs[name] = make()
        return self._runs[name]

    def reference(self) -> Gradients:
        """The gradients for `cotangents()`, from one backward pass for all checks. Raises UserCodeError."""
        return self.passes()[0]

    def together(self) -> Together | None:
        """The gradients that most checks need, from one graph; None if each check has to run its own passes."""
        if "together" not in self._runs:
            u, v = self.cotangents(), self.constant_cotangents()
            run = partial(
                passed_together,
                self.subject,
                self.raw_backward(),
                (u, v, combined(u, v)),
                (FACTORS[0], FACTORS[1] / LARGE),
                tolerance=self.tolerance(REPEAT_TOLERANCE),
                laid_out=self.settings.wants("layout"),
            )
            sets = self._disturbing_once() if self.subject.has_graph and self.settings.wants("repeat") else []
            found = run(between=sets) if sets else None
            self._runs["together"] = run(between=()) if found is None else found
        kept: Together | None = self._runs["together"]
        return kept

    def disturbing(self) -> list[OtherCalls]:
        """Other calls of forward, to be made between forward and backward."""
        return list(disturbing_calls(self.subject, self._kept_sizes()))

    def _kept_sizes(self) -> frozenset[int]:
        """The sizes that stay in calls at other sizes."""
        forward = self.subject.info.forward
        found: frozenset[int] = self.once("captured sizes", lambda: captured_sizes(forward) if forward else frozenset())
        return found

    def _disturbing_once(self) -> Sequence[OtherCalls]:
        """The same for passes that are compared with each other; fewer sets where a call takes long."""
        subject = self.subject
        few = subject.domain.size > LONG and not subject.compiles_shapes
        return few_disturbing_calls(subject, self._kept_sizes()) if few else self.disturbing()

    def constant_cotangents(self) -> list[NDArray[Any]]:
        """Cotangents whose entries are all equal, as those of a sum are; large, so that a clip shows."""
        if "constants" not in self._runs:
            self._runs["constants"] = [np.full(u.shape, LARGE * 0.75, u.dtype) for u in self.cotangents()]
        return list(self._runs["constants"])

    def of_constant(self) -> Gradients:
        """The gradients for `constant_cotangents()`, from one backward pass for all checks. Raises UserCodeError."""
        together = self.together()
        if together is not None:
            return together.of_v
        if "constant" not in self._runs:
            self._runs["constant"] = self.subject.backward(self.constant_cotangents())
        found: Gradients = self._runs["constant"]
        return found

    def passes(self) -> tuple[Gradients, Gradients | UserCodeError]:
        """The gradients for `cotangents()`, and those of a second pass through the same graph or what that pass raised.

        Raises:
            UserCodeError: forward or the first pass raised.
        """
        together = self.together()
        if together is not None:
            return together.of_u, together.of_u
        if "passes" not in self._runs:
            subject, cotangents = self.subject, self.cotangents()
            try:
                self._runs["passes"] = subject.backward_twice(cotangents)
            except UserCodeError as error:
                self._runs["passes"] = subject.backward(cotangents), error
        found: tuple[Gradients, Gradients | UserCodeError] = self._runs["passes"]
        return found

    def raw_backward(self) -> RawBackward:
        """What backward itself returns for `cotangents()`, from one direct call for all checks."""
        if "raw backward" not in self._runs:
            raw = self._runs["raw backward"] = self.subject.raw_backward(self.cotangents())
            writes = {FindingKind.MUTATES_INPUT: raw.changed_inputs, FindingKind.MUTATES_SAVED: raw.changed_saved}
            if any(changed and kind.value in dict(self.settings.allow) for kind, changed in writes.items()):
                self.subject.protect_saved()
        found: RawBackward = self._runs["raw backward"]
        return found

    def cotangents(self, number: int = 0) -> list[NDArray[Any]]:
        """Seeded signed cotangents, one array for each differentiable output; another set for each `number`."""
        name = f"cotangents {number}"
        if name not in self._runs:
            space = self.subject.codomain
            generator = np.random.default_rng([self.seed, 17, number])
            if space.size > LONG:
                flat: FloatArray = generator.random(space.size)
                flat -= 0.5
                flat += np.copysign(0.5, flat)
            else:
                signs = 2.0 * generator.integers(0, 2, space.size) - 1.0
                flat = signs * (0.5 + 0.5 * generator.random(space.size))
            self._runs[name] = space.views(flat)
        return list(self._runs[name])

    def rounding_floor(self, cotangents: Sequence[NDArray[Any]]) -> list[NDArray[np.float64]]:
        """A bound on the rounding error of the gradient of each active input, entry by entry.

        It is the error from rounding forward's values, plus eight times the measured rounding error of backward
        itself, in which terms may cancel that are larger than any value of forward.
        """
        noise = self._backward_noise(cotangents)
        return [part + 8 * own for part, own in zip(self.value_floor(cotangents), noise, strict=True)]

    def coarse_floor(self, cotangents: Sequence[NDArray[Any]]) -> list[NDArray[np.float64]]:
        """A bound on the rounding error of the gradient of each active input, if forward computes in a low precision.

        The error is measured by changing the cotangents by about 1 %, which half precision resolves; changes in the
        last bits of float64 would not show it. If forward's values are float64 numbers, the low-precision tolerance
        does not apply, except for what is left of terms that cancel.
        """
        noise = [8 * own for own in self._backward_noise(cotangents, (2.0**-9, 2.0**-7))]
        if self.roundoff_of_values > 2.0**-53:
            return noise
        left = CANCELLED * max((float(np.max(np.abs(u), initial=0.0)) for u in cotangents), default=0.0)
        fine = self.rounding_floor(cotangents)
        return [part + np.minimum(own, left) for part, own in zip(fine, noise, strict=True)]

    @property
    def roundoff_of_values(self) -> float:
        """The unit roundoff of the format in which forward's values are stored, at the point and close by."""
        if "values" not in self._runs:
            map_, point = self.subject.derivative_map(1), self.subject.point
            generator = np.random.default_rng([self.seed, 37])
            values = [np.zeros(0)]
            for _ in range(_REPEATS):
                with suppress(UserCodeError):  # outside the domain, where nothing is known
                    values.append(map_.value(point * (1 + generator.uniform(-(2.0**-6), 2.0**-6, point.size))))
            self._runs["values"] = stored_roundoff(np.concatenate(values))
        found: float = self._runs["values"]
        return found

    def value_floor(self, cotangents: Sequence[NDArray[Any]]) -> list[NDArray[np.float64]]:
        """A bound on the error of each gradient that comes from rounding forward's values, entry by entry.

        64 eps sum_j |u_j f_j| / s_i, with eps the unit roundoff of the lowest precision inside, and s_i the power of
        two above |x_i|, at most 1: the rounding error of <u, f> over the scale of x. The terms of a smaller gradient
        (that of a saturated softmax) cancel, so that adding them in another order changes it.
        """
        subject = self.subject
        outputs = [subject.first_call.outputs[number] for number in subject.output_numbers]
        with np.errstate(all="ignore"):
            sizes = [np.abs(u) * np.abs(f) for u, f in zip(cotangents, outputs, strict=True)]
            total = sum(float(np.where(np.isfinite(size), size, 0.0).sum()) for size in sizes)
        scales = np.minimum(entry_scales(subject.domain, subject.point), 1.0)
        floors = 64 * subject.roundoff_inside * total / scales
        return [np.abs(part) for part in subject.domain.unflatten(floors)]

    def _backward_noise(
        self, cotangents: Sequence[NDArray[Any]], sizes: tuple[float, float] = (2.0**-28, 2.0**-26)
    ) -> list[NDArray[np.float64]]:
        """The measured rounding error of each gradient: how much it changes with tiny changes of the cotangent.

        Two kinds of change: backward((1 + d) u) / (1 + d) for several tiny d, which is equal for all d up to rounding
        (if backward is not linear, the difference is about d times the gradient, below every tolerance that this is
        added to); and every entry of u changed by a few units of rounding, which shows the error of terms that cancel.
        """
        subject = self.subject
        generator = np.random.default_rng([self.seed, 19])
        noise = [np.zeros(np.shape(subject.arguments[position].value)) for position in subject.active]
        factors = [*(1 + generator.uniform(*sizes, _REPEATS)), *[1.0] * _REPEATS]
        changed = []
        for factor in factors:
            units = [generator.integers(-2, 3, np.shape(c)) * 2.0**-52 * (factor == 1.0) for c in cotangents]
            changed.append([np.asarray(c * factor * (1 + u)) for c, u in zip(cotangents, units, strict=True)])
        first, *others = self._one_after_another([cotangents, *changed])
        for factor, again in zip(factors, others, strict=True):
            for place, (one, other) in enumerate(zip(first, again, strict=True)):
                if one is None or other is None:
                    continue
                with np.errstate(all="ignore"):
                    gap = np.abs(other / factor - one)
                noise[place] = np.maximum(noise[place], np.where(np.isfinite(gap), gap, 0.0))
        return [np.maximum(part, np.sqrt(np.mean(part**2))) if part.size else part for part in noise]

    def _one_after_another(self, sets: Sequence[Sequence[NDArray[Any]]]) -> Sequence[Gradients]:
        """The gradients for each of the cotangents, through one graph if a second pass gives the same gradients.

        If it does not, the difference is a mistake of backward, and must not be measured as rounding.
        """
        first, second = self.passes()
        found = None
        if not isinstance(second, UserCodeError) and all(
            relative_gap(one, two) <= REPEAT_TOLERANCE for one, two in zip(first, second, strict=True)
        ):
            found = self.subject.backward_further([Pass(cotangents=each) for each in sets])
        return found or [self.subject.backward(each) for each in sets]

    def tolerance(self, relative: float) -> float:
        """A tolerance for what must agree up to rounding, no finer than the precision of the check."""
        return max(relative, 32 * self.subject.rounding, _VARIATION * self.settings.nondeterminism)

    @property
    def significance(self) -> float:
        """The smallest relative error that counts: the run's, or what nondeterminism or float32 inside explain."""
        inside = _ROUNDINGS_INSIDE * min(self.subject.roundoff_inside, 2.0**-24)
        return max(self.settings.significance, inside, _VARIATION * self.settings.nondeterminism)

    def map_of(self, subject: Subject, order: int) -> VectorMap:
        """The map of `order`, with the domains of its inputs, and the declared nondeterminism as its noise."""
        map_ = determined(subject, order)
        map_.bounds = bounds_of_map(map_, subject.arguments, subject.active)
        map_.given = any_given(subject)
        return VaryingMap(map_, varies) if (varies := self.settings.nondeterminism) else map_

    def input_name(self, position: int) -> str:
        """The name of forward's argument at `position`."""
        return self.subject.arguments[position].name


def combined(u: Sequence[NDArray[Any]], v: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The cotangents u and v, the second one large, combined with `FACTORS`."""
    return [FACTORS[0] * p + FACTORS[1] / LARGE * q for p, q in zip(u, v, strict=True)]


class Check(ABC):
    """One property that every right Function has."""

    name: str
    sentence: str
    optional: bool = False
    """Whether it is left out where time or calls of a slow forward have to be saved."""

    @abstractmethod
    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Yield what was found; nothing where the check does not apply."""

    def passed(self, note: str | None = None) -> Evidence:
        """The property holds."""
        return Evidence(check=self.name, verdict=Verdict.PASSED, reference="algebra", note=note)

    def failed(
        self,
        kind: FindingKind,
        message: str,
        *,
        input: str | None = None,
        output: int | None = None,
        order: int = 1,
        hint: str | None = None,
        raised: UserCodeError | None = None,
    ) -> Evidence:
        """The property does not hold, and the evidence proves the finding `kind`; `raised` gives the line, if known.

        Raises:
            OverrunError: `raised` is one, which says nothing about the property.
        """
        if isinstance(raised, OverrunError):
            raise raised
        place = None
        if raised is not None and raised.file is not None and raised.line is not None:
            place = Location(file=raised.file, line=raised.line)
        finding = Finding(
            kind=kind, message=message, order=order, input=input, output=output, hint=hint, location=place
        )
        return Evidence(
            check=self.name,
            verdict=Verdict.FAILED,
            order=order,
            input=input,
            output=output,
            reference="algebra",
            finding=finding,
        )


_REPEATS = 8


def relative_gap(first: NDArray[Any] | None, second: NDArray[Any] | None, floor: NDArray[Any] | float = 0.0) -> float:
    """The largest difference of two gradients beyond `floor`, relative to their largest entry.

    None counts as zeros, NaN equals NaN; infinite where shapes differ, or one side only is not finite.
    """
    if first is second:
        return 0.0
    left = np.zeros_like(second) if first is None else first
    right = np.zeros_like(left) if second is None else second
    if left.shape != right.shape:
        return float("inf")
    gap = _largest_gap(left, right, floor)
    if np.isfinite(gap):
        scale = max(float(np.max(np.abs(part), initial=0.0)) for part in (left, right)) if gap else 1.0
        return gap / scale if scale > 0 else float("inf")
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    if bool(np.all(same)):
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.max(np.where(same, 0.0, np.maximum(np.abs(left - right) - floor, 0.0)))
        scale = max(float(np.max(np.abs(left), initial=0.0)), float(np.max(np.abs(right), initial=0.0)))
    if gap == 0.0:
        return 0.0
    return float(gap / scale) if np.isfinite(gap) and scale > 0 else float("inf")


def _largest_gap(left: NDArray[Any], right: NDArray[Any], floor: NDArray[Any] | float) -> float:
    """The largest difference beyond `floor`, in pieces; not finite if a value is not, NaN unless both are floats."""
    if left.dtype.kind not in "fc" or right.dtype.kind not in "fc":
        return float("nan")
    with np.errstate(all="ignore"):
        if np.any(floor):
            return float(np.max(np.abs(left - right) - floor, initial=0.0))
        one, other, most = left.reshape(-1), right.reshape(-1), np.float64(0.0)
        for piece in pieces(slice(0, one.size)):
            most = np.maximum(most, np.abs(one[piece] - other[piece]).max())
    return float(most)


def differs(
    situation: Situation,
    place: int,
    first: NDArray[Any] | None,
    second: NDArray[Any] | None,
    tolerance: float,
    cotangents: Sequence[NDArray[Any]] | None = None,
) -> bool:
    """Whether two gradients of active input `place` differ beyond rounding.

    They are for `situation.cotangents()` unless others are given.
    """
    tolerance = situation.tolerance(tolerance)
    if relative_gap(first, second) <= tolerance:
        return False
    cotangents = situation.cotangents() if cotangents is None else cotangents
    floors = (situation.value_floor, situation.rounding_floor)
    return all(relative_gap(first, second, floor(cotangents)[place]) > tolerance for floor in floors)
