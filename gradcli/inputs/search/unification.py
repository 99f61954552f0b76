"""The sizes of axes by most general unification: all distinct at first, made equal only where forward demands it.

Nothing becomes equal that forward did not ask for, so that a transposition or a sum over the wrong axis cannot hide
behind equal sizes.
"""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import final

from gradcli.frozen import dataclass
from gradcli.inputs.domains import CLASSES, MATRICES
from gradcli.inputs.hints.documented_order import Order
from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.inputs.hints.equal_parts import alike, lengthened, multiples, unpacked_parts
from gradcli.inputs.search.candidates import Skeleton
from gradcli.inputs.search.domains import POSITIVE, domain_choice, domain_choices
from gradcli.inputs.search.error_messages import (
    Failure,
    aligned_sizes,
    asks_for_integers,
    complains_of_broadcast,
    complains_of_order,
    complains_of_values,
    exceeded_size,
    is_of_a_wrong_kind,
    size_pairs,
)
from gradcli.inputs.search.named_axes import SIZES, Lazy, NamedAxes, Queued, State, distance, next_new
from gradcli.inputs.search.trials import MAX_ELEMENTS, NORMAL, DomainChoice, Guess, Shape, Trials

Refusal = Callable[[Guess], BaseException | None]
PINNED_SIZES = (4, 2, 6, 3, 8, 12, 9, 1)
_DEPTH_COST, _PROGRESS_GAIN, _MAX_QUEUE = 0.12, 5.0, 400
_TO_ONE = 1.0
"""Added for an axis that becomes one of a single entry, as a settled one is: other sizes are tried before."""
_IDLE_TRIES = 8
"""A tensor that has changed no output for so many sets of sizes will hardly do so for another; nor will one have an
axis that it lacked, or become one of whole numbers."""
_LACKING = -1
_WIDER = 3
"""So many numbers of classes are tried where a tensor changes no output."""
_MOST_OF_TWO = 8
"""So many axes are tried in every arrangement of two sizes: at most 127."""
_MANY = 4
"""So many tensors and more are also tried with axes equal as in broadcasting: one by one it takes too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A guess that forward accepts, with the equalities it took."""

    guess: Guess
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsolved:
    """The failure of the trial that got furthest for a skeleton."""

    failure: Failure


_AS_NUMBERS = {("label", "boolean"): "binary"}
"""What is drawn for a real tensor that documentation calls boolean, where forward takes no booleans."""


@final
class Unifier:
    """Finds sizes and domains for one skeleton."""

    def __init__(
        self, trials: Trials, skeleton: Skeleton, *, square_domain: DomainChoice | None = None,
        axes: Mapping[str, tuple[Axis, ...]] | None = None, parts: Sequence[int] = (),
        meant: Mapping[str, str] | None = None, of_matrices: bool = False, order: Order = (),
        left_out: Sequence[int] = (), alike: Sequence[Collection[str]] = (),
    ) -> None:  # fmt: skip
        self._trials = trials
        self._parts, self._left_out = tuple(parts), tuple(left_out)
        self._groups = [[n for n, slot in enumerate(trials.slots) if slot.name in each] for each in alike]
        self._skeleton, self._domain_rounds = skeleton, 2
        self._square_domain = square_domain
        self._of_matrices = of_matrices
        self.is_done = False  # whether a longer search for sizes than the last one would find no more
        self._axes: list[tuple[int, int]] = []
        self._ranks: dict[int, int] = {}
        self._settled: dict[int, int] = {}
        for slot, choice in enumerate(skeleton):
            if choice.is_tensor:
                self._add(slot, choice.rank)
        kinds = {slot: choice.kind for slot, choice in enumerate(skeleton) if choice.kind in ("float", "label")}
        said = {slot: meant[trials.slots[slot].name] for slot in kinds if meant and trials.slots[slot].name in meant}
        self._meant = {slot: _AS_NUMBERS.get((kinds[slot], domain), domain) for slot, domain in said.items()}
        square = [trials.slots[slot].name for slot, domain in self._meant.items() if domain in MATRICES]
        self._named = NamedAxes(axes or {}, trials.slots, skeleton, self._axes, square, order)

    def _add(self, slot: int, rank: int) -> None:
        shape = self._trials.slots[slot].fixed_shape
        self._ranks[slot] = rank
        for axis in range(rank):
            if shape is not None:
                self._settled[len(self._axes)] = shape[axis]
            self._axes.append((slot, axis))

    @property
    def axis_count(self) -> int:
        """How many axes all tensors have together."""
        return len(self._axes)

    def start(self) -> State:
        """Every axis on its own."""
        return State(partition=tuple(range(len(self._axes))), pinned=tuple(self._settled.items()))

    def continued(self, other: "Unifier", state: State) -> State:
        """`state` of another skeleton carried over to this one: axes of the slots that both have keep their classes."""
        number = {place: index for index, place in enumerate(self._axes)}
        first: dict[int, int] = {}
        partition = list(range(len(self._axes)))
        for index, place in enumerate(other._axes):
            if place in number:
                representative = first.setdefault(state.partition[index], number[place])
                partition[number[place]] = representative
        pinned = {first[axis]: size for axis, size in state.pinned if axis in first}
        return State(partition=tuple(partition), pinned=tuple(sorted({**self._settled, **pinned}.items())))

    def settled_at(self, shapes: Mapping[int, Shape]) -> State:
        """The state that stands for these shapes and no others: equal sizes are one class."""
        first: dict[int, int] = {}
        sizes = [shapes[slot][axis] for slot, axis in self._axes]
        partition = tuple(first.setdefault(size, index) for index, size in enumerate(sizes))
        return State(partition=partition, pinned=tuple(sorted((index, size) for size, index in first.items())))

    def resized(self, state: State, slot: int, axis: int, size: int) -> State:
        """`state` with the size of one axis settled, and of those equal to it."""
        return state.with_size(state.partition[self._axes.index((slot, axis))], size)

    def shapes(self, state: State) -> dict[int, Shape]:
        """The shapes that a state stands for."""
        sizes = self._sizes(state)
        found: dict[int, list[int]] = {slot: [] for slot in self._ranks}
        for (slot, _), representative in zip(self._axes, state.partition, strict=True):
            found[slot].append(sizes[representative])
        return {slot: tuple(shape) for slot, shape in found.items()}

    def _sizes(self, state: State) -> dict[int, int]:
        pinned = dict(state.pinned)
        free = [each for each in dict.fromkeys(state.partition) if each not in pinned]
        taken = self._trials.held_sizes | set(pinned.values())
        further = itertools.count(max(SIZES) + 1)
        unused = (size for size in itertools.chain(SIZES, further) if size not in taken)
        pool = list(itertools.islice(unused, len(free)))
        if state.descending:
            pool.sort(reverse=True)
        return {**pinned, **dict(zip(free, pool, strict=True))}

    def solve(self, budget: int, start: State | None = None, refusal: Refusal | None = None) -> Solution | Unsolved:
        """Sizes (and domains) that forward accepts, within `budget` tries of sizes; else the farthest failure.

        What `refusal` has against inputs that forward accepts, such as backward's error, counts like forward's.
        """
        begin = start or self.start()
        queue = self._first(begin)
        order = itertools.count(3)
        seen: set[State] = set()
        best: tuple[Failure, State] | None = None
        idle: Counter[int | None] = Counter()
        for _ in range(budget):
            depth, state = next_new(queue, seen)
            self.is_done = state is None
            if state is None or self._trials.exhausted:
                break
            seen.add(state)
            outcome = self._tried(state, refusal)
            if isinstance(outcome, Solution):
                return outcome
            if outcome is None:
                continue
            if best is None or outcome.progress > best[0].progress:
                best = (outcome, state)
            useless = _LACKING if outcome.is_lasting or is_of_a_wrong_kind(outcome.error) else outcome.idle
            idle[useless] += 1
            self.is_done = useless is not None and idle[useless] > _IDLE_TRIES
            if self.is_done:
                break
            if len(queue) > _MAX_QUEUE:
                queue = heapq.nsmallest(_MAX_QUEUE // 2, queue)
            for cost, following in self._repairs(state, outcome):
                priority = cost + _DEPTH_COST * depth - _PROGRESS_GAIN * outcome.progress
                heapq.heappush(queue, (priority, next(order), depth + 1, following))
        if best is None or refusal is not None:
            return Unsolved(failure=Failure(progress=0.0) if best is None else best[0])
        if len(self._ranks) >= _MANY:
            from gradcli.inputs.search.alike.axes import equal_as_in_broadcasting

            alike = equal_as_in_broadcasting(begin, self._axes, self._ranks)
            if alike not in seen and isinstance(outcome := self._try(alike), Solution):
                return outcome
        # An argument that changes no output changes none in another domain either, and no float is a whole number.
        cannot_help = best[0].idle is not None or asks_for_integers(best[0].message)
        may_help = not cannot_help and best[0].progress >= self._trials.best_progress
        other = self._other_domains(best[1], best[0], thorough=True) if may_help else None
        return other if isinstance(other, Solution) else Unsolved(failure=other or best[0])

    def _first(self, begin: State) -> list[Queued]:
        named = self._named.applied(begin, self._sizes)
        queue: list[Queued] = [(0.0, 0, 0, lambda: begin), (-0.5, 2, 0, lambda: named)]
        queue += [(0.5, 1, 0, partial(replace, begin, descending=True))] if len(self._axes) > 2 else []
        if self._groups:
            from gradcli.inputs.search.alike.axes import equal_in_groups

            alike = equal_in_groups(begin, self._axes, self._ranks, self._groups)
            queue += [(-0.6, -1, 0, lambda: alike)] if alike != begin else []
        heapq.heapify(queue)
        return queue

    def of_two_sizes(self) -> Iterator[Solution]:
        """What forward accepts where every free axis has one of two sizes, for up to `_MOST_OF_TWO` axes."""
        if self._settled or not 1 < len(self._axes) <= _MOST_OF_TWO:
            return
        for chosen in itertools.product((0, 1), repeat=len(self._axes) - 1):
            first = {0: 0, **{number: index for index, number in reversed(list(enumerate(chosen, 1))) if number}}
            state = State(partition=tuple(first[number] for number in (0, *chosen)))
            if any(chosen) and isinstance(outcome := self._try(state), Solution):
                yield outcome

    def in_equal_parts(self, state: State) -> Iterator[State]:
        """States in which one axis is a multiple, by a number of parts, of the size of another, the likeliest first."""
        sizes, place = self._sizes(state), self._axes
        free = [axis for axis in sizes if axis not in self._settled]
        pairs = [(cut, unit) for cut in free for unit in sizes if unit != cut and sizes[unit] > 1]
        for count in self._parts:
            for cut, unit in sorted(pairs, key=lambda pair: distance(self._ranks, place[pair[0]], place[pair[1]])):
                yield state.with_size(unit, sizes[unit]).with_size(cut, count * sizes[unit])

    def merged_by(self, state: State, message: str) -> Iterator[State]:
        """States in which two of the sizes that a message names are equal."""
        axis_of = {size: axis for axis, size in self._sizes(state).items()}
        for _, one, other in sorted(size_pairs(message)):
            if one in axis_of and other in axis_of and one != other:
                merged = state.with_equal(axis_of[one], axis_of[other])
                yield from () if merged == state else (merged,)

    def _tried(self, state: State, refusal: Refusal | None) -> "Solution | Failure | None":
        outcome = self._try(state)
        error = refusal(outcome.guess) if refusal is not None and isinstance(outcome, Solution) else None
        return outcome if error is None else Failure(progress=2.0, error=error)

    def _try(self, state: State) -> "Solution | Failure | None":
        shapes = self.shapes(state)
        if sum(math.prod(shape) for shape in shapes.values()) > MAX_ELEMENTS:
            return None
        refused = self._trials.refuses_normal
        meant = self._meant_domains(shapes)
        guess = Guess(skeleton=self._skeleton, shapes=shapes, domains={**self._first_domains(shapes), **meant})
        failure = self._trials.judge(guess)
        if failure is not None and meant and failure.may_be_of_values:  # documentation may be wrong
            guess = replace(guess, domains=self._first_domains(shapes))
            failure = self._trials.judge(guess)
        if self._trials.refuses_normal != refused:  # seen just now: the same sizes once more
            guess = replace(guess, domains=self._first_domains(shapes))
            failure = self._trials.judge(guess)
        if failure is None:
            return Solution(guess=guess, state=state)
        if failure.idle is not None and (wider := self._with_wider_indices(guess)) is not None:
            return Solution(guess=wider, state=state)
        if failure.non_finite:
            return self._other_domains(state, failure, thorough=False) or failure
        if self._domain_rounds and complains_of_values(failure.message):
            self._domain_rounds -= 1
            return self._other_domains(state, failure, thorough=True) or failure
        return failure

    def _with_wider_indices(self, guess: Guess) -> Guess | None:
        """The guess with more classes, where forward needs them for each tensor to change an output; else None.

        Steps of a recurrence beyond the first count only where the lengths of sequences are above 1.
        """
        if any(choice.kind == "index" for choice in self._skeleton):
            for high in sorted({size for shape in guess.shapes.values() for size in shape}, reverse=True)[:_WIDER]:
                wider = replace(guess, high=high)
                if high > guess.high and self._trials.judge(wider) is None:
                    return wider
        return None

    def _first_domains(self, shapes: Mapping[int, Shape]) -> dict[int, DomainChoice]:
        if self._square_domain is None:
            floats = [slot for slot in shapes if self._skeleton[slot].kind == "float"]
            return dict.fromkeys(floats, POSITIVE) if self._trials.refuses_normal else {}
        return {
            slot: self._square_domain
            for slot, shape in shapes.items()
            if self._skeleton[slot].kind == "float" and len(shape) >= 2 and shape[-1] == shape[-2]
        }

    def _meant_domains(self, shapes: Mapping[int, Shape]) -> dict[int, DomainChoice]:
        """The domains that documentation gives, of the tensors whose shapes can have them."""
        found: dict[int, DomainChoice] = {}
        for slot, domain in self._meant.items():
            shape = shapes[slot]
            is_square = len(shape) >= 2 and shape[-1] == shape[-2] >= 2
            has_classes = bool(shape) and shape[-1] >= 2
            if (is_square or domain not in MATRICES) and (has_classes or domain not in CLASSES):
                found[slot] = domain_choice(domain)
        return found

    def _other_domains(self, state: State, failure: Failure, *, thorough: bool) -> Solution | Failure | None:
        """What forward accepts in other domains; or the failure of a tensor that changes no output in one of them."""
        if failure.error is not None and isinstance(failure.error, TypeError | NameError | AttributeError):
            return None
        shapes = self.shapes(state)
        free = [slot for slot, choice in enumerate(self._skeleton) if choice.kind in ("float", "label")]
        meant = self._meant_domains(shapes)
        others = [slot for slot in free if slot not in meant]
        choices = partial(domain_choices, shapes=shapes, thorough=thorough, of_matrices=self._of_matrices)
        beside = choices(others) if meant and others else ()
        for domains in itertools.chain(({**meant, **each} for each in beside), choices(free)):
            if self._trials.exhausted:
                break
            guess = Guess(skeleton=self._skeleton, shapes=shapes, domains=domains)
            if any(choice != NORMAL for choice in domains.values()):
                if (refusal := self._trials.judge(guess)) is None:
                    return Solution(guess=guess, state=state)
                if refusal.idle is not None:
                    return refusal
        return None

    def _repairs(self, state: State, failure: Failure) -> Iterator[tuple[float, Lazy]]:
        sizes = self._sizes(state)
        axis_of = {size: axis for axis, size in sizes.items()}
        free = [each for each in sizes if each not in self._settled]
        for cost, one, other in size_pairs(failure.message):
            if one in axis_of and other in axis_of and one != other:
                apart = self._in_different_slots(state, axis_of[one], axis_of[other])
                further = (0.0 if apart else 0.4) + _TO_ONE * (1 in (one, other))
                yield from self._merge(state, axis_of[one], axis_of[other], cost + further)
            for known, wanted in ((one, other), (other, one)):
                if known in axis_of and wanted not in axis_of and 0 < wanted <= 36 and axis_of[known] in free:
                    yield cost + 0.35, partial(state.with_size, axis_of[known], wanted)
        yield from self._as_long(state, axis_of.get(exceeded_size(failure.message) or 0, -1), sizes)
        yield from self._gated(state, failure.message, sizes)
        yield from self._lengthened(state, failure.message, sizes)
        aligned = state
        for one, other in aligned_sizes(failure.message):
            if axis_of.get(one) in state.partition and other in axis_of:
                places_of = aligned.partition[state.partition.index(axis_of[one])]
                aligned = aligned.with_equal(places_of, axis_of[other])
        if aligned != state:
            yield 0.0, lambda: aligned
        reverse = partial(replace, state, descending=not state.descending)
        yield -0.2 if complains_of_order(failure.message) else 0.85, reverse
        places: dict[int, list[tuple[int, int]]] = {}
        for place, representative in zip(self._axes, state.partition, strict=True):
            places.setdefault(representative, []).append(place)
        for one, other in itertools.combinations(places, 2):
            cost = min(distance(self._ranks, a, b) for a in places[one] for b in places[other])
            yield from self._merge(state, one, other, cost + self._named.cost_of_equal(places[one], places[other]))
        if failure.error is not None:
            for axis in (each for each in places if each not in dict(state.pinned)):
                yield from ((1.2, partial(state.with_size, axis, size)) for size in PINNED_SIZES if size != sizes[axis])

    def _as_long(self, state: State, short: int, sizes: Mapping[int, int]) -> Iterator[tuple[float, Lazy]]:
        """States in which an axis whose end was exceeded is as long as a longer one, over which a loop may run."""
        for axis in (each for each in sizes if short in sizes and sizes[each] > sizes[short]):
            if self._in_different_slots(state, short, axis):
                yield from self._merge(state, short, axis, 0.1)

    def _gated(self, state: State, message: str, sizes: Mapping[int, int]) -> Iterator[tuple[float, Lazy]]:
        """States in which the parts of an axis that is cut have the size that they are combined with."""
        parts = tuple(dict.fromkeys((*self._parts, *unpacked_parts(message))))
        elementwise = parts and complains_of_broadcast(message)
        pairs = [(one, other) for _, one, other in size_pairs(message) if one != other] if elementwise else []
        free = {axis: size for axis, size in sizes.items() if axis not in self._settled}
        known = set(sizes.values())
        cost = -0.2 if any(one not in known or other not in known for one, other in pairs) else 0.6
        for axis, size, unit in multiples(pairs, sizes, parts):
            if axis in free:
                fixed = state if unit is None else state.with_size(unit, sizes[unit])
                yield cost, partial(fixed.with_size, axis, size)
        for one, other in alike(pairs, sizes, parts):
            yield from self._merge(state, one, other, cost)

    def _lengthened(self, state: State, message: str, sizes: Mapping[int, int]) -> Iterator[tuple[float, Lazy]]:
        """States in which the rest of an axis, without the entries left out, has the size that it is combined with."""
        pairs = [(one, other) for _, one, other in size_pairs(message) if one != other] if self._left_out else []
        for axis, size in lengthened(pairs, sizes, self._left_out):
            if axis not in self._settled:
                yield 0.1, partial(state.with_size, axis, size)

    def _merge(self, state: State, one: int, other: int, cost: float) -> Iterator[tuple[float, Lazy]]:
        if state.allows_equal(one, other):
            yield cost, partial(state.merged, one, other)

    def _in_different_slots(self, state: State, one: int, other: int) -> bool:
        pairs = list(zip(self._axes, state.partition, strict=True))
        return {slot for (slot, _), n in pairs if n == one}.isdisjoint(slot for (slot, _), n in pairs if n == other)
