"""A bench: inputs and a cotangent at which candidates are tried, with the slopes of forward that are right there."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.facts import DIRECTIONS, ROUNDING, Facts
from gradcli.diagnosis.slips.hooks import Hooks, compiled_expression, running
from gradcli.diagnosis.slips.slip import Slip
from gradcli.diagnosis.slips.standing import applies_another
from gradcli.diagnosis.suspect import Suspect
from gradcli.diagnosis.table import Gradient
from gradcli.edits.draft import Draft
from gradcli.edits.render import Change
from gradcli.errors import OverrunError, UserCodeError

_CLOSE = 1e-7
_MARGIN = 3.0


@final
@dataclass(slots=True)
class Bench:
    """Facts for the cotangent number `row`; what candidates return is compared along the facts' directions only.

    `wanted` are forward's slopes, DIRECTIONS for each active input, and `slack` their allowed error. `seen` are the
    values at the hooked places, with the local names at that time; `beside` forward's local names. `repeats` says that
    backward returns the same again for what one call of forward saved; `runs` counts its runs. `shapes` are those of
    the gradients as backward is: no candidate may bring another one than that or the input's own.
    """

    facts: Facts
    hooks: Hooks
    row: int
    wanted: FloatArray = field(init=False)
    slack: FloatArray = field(init=False)
    seen: dict[int, list[tuple[Any, dict[str, Any]]]] = field(init=False, default_factory=dict)
    beside: dict[str, Any] = field(init=False, default_factory=dict)
    repeats: bool = field(init=False, default=False)
    shapes: list[tuple[int, ...] | None] | None = field(init=False, default=None)
    runs: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Collect the slopes and their bounds."""
        slopes = [self.facts.slopes(place) for place in range(len(self.facts.subject.active))]
        self.wanted = np.array([s.values[self.row] for of_place in slopes for s in of_place])
        bounds = np.array([s.bounds[self.row] for of_place in slopes for s in of_place])
        sizes = np.repeat(np.abs(self.wanted).reshape(-1, DIRECTIONS).max(axis=1, initial=0.0), DIRECTIONS)
        self.slack = _MARGIN * bounds + _CLOSE * sizes

    def record(self, forward: Hooks | None, *, calls_forward: bool = False) -> None:
        """Run backward once and record the values of hooked expressions, and forward's names.

        With `calls_forward`, every run has its own call of forward.
        """
        self.facts.returned_for(self.facts.cotangents[self.row])  # a call kept from before may have run without hooks
        with self.hooks.recording() as seen:
            self.facts.returned_for(self.facts.cotangents[self.row])
        self.seen = seen
        frame: FrameType | None = None if forward is None else forward.frame
        self.beside = {} if frame is None else dict(frame.f_locals)
        first = self.projected()
        if not calls_forward:
            self.repeats = True
            self.repeats = all(_same(first, self.projected()) for _ in range(2))

    def is_changed(self, present: FloatArray) -> bool:
        """Whether backward now returns something else than at first: something wrote into what forward saved."""
        return self.repeats and not _same(present, self.projected())

    @contextmanager
    def calling_forward(self) -> Iterator[None]:
        """A context in which every run of backward has its own call of forward; runs after it get a new call."""
        self.repeats = False
        try:
            yield
        finally:
            self.facts.returned_for(self.facts.cotangents[self.row])
            self.repeats = True

    def projected(self) -> FloatArray | None:
        """What backward returns now, projected on the directions; None if it fails or returns other shapes."""
        self.runs += 1
        try:
            with np.errstate(all="ignore"):
                returned = self._returned()
        except OverrunError:
            raise
        except UserCodeError:
            return None
        if returned is None:
            return None
        found: list[float] = []
        subject = self.facts.subject
        gradients = [returned[p] if p < len(returned) else None for p in subject.active]
        if self.shapes is None:
            self.shapes = [None if g is None else g.shape for g in gradients]
        for place, (gradient, before) in enumerate(zip(gradients, self.shapes, strict=True)):
            shape = subject.domain.blocks[place].shape
            values = np.zeros(shape) if gradient is None else gradient
            if values.shape == before:
                values = summed_down(values, shape)
            along = self.facts.projections(place, [values])
            found += [np.nan] * DIRECTIONS if along is None else [float(a[0]) for a in along]
        return np.array(found)

    def _returned(self) -> tuple[Gradient, ...] | None:
        cotangent = self.facts.cotangents[self.row]
        return self.facts.returned_again(cotangent) if self.repeats else self.facts.returned_for(cotangent)

    def right(self, projected: FloatArray) -> NDArray[np.bool_]:
        """For each active input, whether its gradient is right as far as the slopes tell."""
        outside = (np.abs(projected - self.wanted) > self.slack) | np.isnan(projected)
        return np.asarray(~outside.reshape(-1, DIRECTIONS).any(axis=1))


def _same(one: FloatArray | None, other: FloatArray | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)


def summed_down(value: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A gradient that is larger by broadcasting, summed to its input's shape as frameworks do; any other unchanged."""
    try:
        if value.shape == shape or np.broadcast_shapes(shape, value.shape) != value.shape:
            return value
    except ValueError:
        return value
    extra = value.ndim - len(shape)
    axes = (*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1))
    return np.asarray(value.sum(axis=axes)).reshape(shape)


def growths(bench: Bench, number: int, twice: int, framework: Any) -> list[tuple[int, float]]:
    """The entries of each tensor of backward, and by what factor they are more with `twice` the number at a place.

    The number may be the length of tensors, which are still small in this run.
    """
    with bench.hooks.giving(number, lambda: twice), bench.hooks.recording() as seen, suppress(OverrunError):
        bench.projected()
    before, after = (
        {place: int(np.prod(v.shape)) for place, ((v, _), *_) in found.items() if framework.is_tensor(v)}
        for found in (bench.seen, seen)
    )
    return [(n, after[place] / n) for place, n in before.items() if n and place in after]


def is_right_with(suspect: Suspect, draft: Draft, changes: Sequence[Change], elsewhere: Facts | None) -> bool:
    """Whether the changed code returns the right gradient, here and at other inputs where these are known."""
    codes, facts = draft.codes_with(changes), suspect.facts
    if codes is None:
        return False
    position = facts.subject.active[suspect.block]
    try:
        with running(codes):
            for there in [facts] if elsewhere is None else [facts, elsewhere]:
                changed = there.over(there.subject.rebind(there.subject.arguments))
                if not there.explains(suspect.block, changed.of(position)):
                    return False
    except OverrunError:
        raise
    except UserCodeError:  # the changed code fails
        return False
    return True


def _is_transposed_again(facts: Facts) -> bool:
    """Whether the derivative of the gradient by grad_output is right, which is linear in it; so where it has none.

    Two values of the gradient give that derivative with rounding errors alone.
    """
    subject = facts.subject
    gradient, generator = subject.derivative_map(2), np.random.default_rng(53)
    at, further = (np.concatenate([subject.point, generator.normal(size=subject.codomain.size)]) for _ in range(2))
    weights = generator.normal(size=subject.domain.size)
    try:
        change = gradient.value(further) - gradient.value(at)
        claimed = gradient.vjp(at, weights) * (further - at)
    except OverrunError:
        raise
    except UserCodeError:
        return True
    size = float(np.abs(weights) @ np.abs(change) + np.abs(claimed).sum())
    return bool(abs(weights @ change - claimed.sum()) <= ROUNDING * size)


def holds_again(slip: Slip, draft: Draft, facts: Facts) -> bool:
    """Whether a corrected backward has the right derivative by grad_output, where it applies a Function for that."""
    edited = None if slip.borrowed or draft.role != "backward" else draft.codes_with(slip.changes)
    if edited is None or not applies_another(draft):
        return True
    with running(edited):
        return _is_transposed_again(facts)


def keeps_outputs(facts: Facts, role: str) -> bool:
    """Whether a rule of which the function of this role has changed still computes forward's outputs, if it does that.

    In JAX, a rule of forward mode returns them beside their tangents, and `fwd` beside what it saves.
    """
    if role == "backward" and not facts.subject.info.is_pushed:
        return True
    try:
        facts.subject.rebind(facts.subject.arguments)
    except OverrunError:
        raise
    except UserCodeError:
        return False
    return True


def fit(facts: Facts, place: int, rows: Sequence[Sequence[Gradient]]) -> bool:
    """Whether the gradients of an active input have its shape, or one that is summed down to it.

    Where they have not, backward is not written for the sizes of these inputs.
    """
    position, shape = facts.subject.active[place], facts.subject.domain.blocks[place].shape
    found = [row[position] if position < len(row) else None for row in rows]
    return all(g is not None and summed_down(g, shape).shape == shape for g in found)


def are_finite(rows: Sequence[Sequence[Gradient]], position: int) -> bool:
    """Whether the gradients that rows have for one argument are finite numbers, as far as there are any."""
    found = [row[position] for row in rows if position < len(row)]
    return all(g is None or (g.dtype.kind in "biufc" and bool(np.isfinite(g).all())) for g in found)


def shapes_of(rows: Sequence[Sequence[Gradient]], position: int) -> set[tuple[int, ...]]:
    """The shapes of the gradients that rows have for one argument."""
    found = [row[position] for row in rows if position < len(row)]
    return {np.shape(g) for g in found if g is not None}


def are_equal(row: Sequence[Gradient], other: Sequence[Gradient], position: int) -> bool:
    """Whether two rows have the same gradient for one argument."""
    one, two = (each[position] if position < len(each) else None for each in (row, other))
    return (one is None) == (two is None) and (one is None or two is None or np.array_equal(one, two, equal_nan=True))


def untracked(row: Sequence[Gradient], facts: Facts) -> tuple[bool, ...]:
    """For each input that needs no gradient whether one is returned for it."""
    return tuple(value is not None for position, value in enumerate(row) if position not in facts.subject.active)


def judged(facts: Facts, place: int, rows: Sequence[Sequence[Gradient]], relative: float = ROUNDING) -> bool | None:
    """Whether rows have the right gradients of an active input; None if its slopes do not tell: all is zero."""
    position = facts.subject.active[place]
    shape = facts.subject.domain.blocks[place].shape
    gradients = [row[position] if position < len(row) else None for row in rows]
    if not any(g is None or g.any() for g in gradients) and not facts.is_felt(place):
        return None
    return facts.judged(place, [None if g is None else summed_down(g, shape) for g in gradients], relative=relative)


def is_wider(shape: tuple[int, ...], than: tuple[int, ...]) -> bool:
    """Whether a product of tensors of these shapes has more entries than the second."""
    try:
        return bool(np.prod(np.broadcast_shapes(shape, than)) > np.prod(than))
    except ValueError:
        return False


class putting:  # noqa: N801 - used as a function
    """Applies a slip that uses names of forward's by a hook; does nothing for one that is in the code."""

    def __init__(self, slip: Slip, hooks: Hooks, ahead: Hooks | None, facts: Facts) -> None:
        self._context: Any = None
        if ahead is not None:
            facts.returned_for(facts.cotangents[1])
            facts.returned_for(facts.cotangents[1])
            names = {} if ahead.frame is None else dict(ahead.frame.f_locals)
            self._context = hooks.computing(slip.number or 0, compiled_expression(slip.new), names)

    def __enter__(self) -> None:
        if self._context is not None:
            self._context.__enter__()

    def __exit__(self, *_: object) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)


def is_no_longer_finite(
    facts: Facts, places: Iterable[int], before: Sequence[Sequence[Gradient]], rows: Sequence[Sequence[Gradient]]
) -> bool:
    """Whether a corrected gradient is not finite where the one `before` and differences of forward are.

    These may be of a kink, where they bound no error.
    """
    return any(
        not are_finite(rows, facts.subject.active[place])
        and are_finite(before, facts.subject.active[place])
        and all(np.isfinite(slope.values).all() for slope in facts.compared(place))
        for place in places
    )
