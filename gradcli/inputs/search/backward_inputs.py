"""Inputs that fit backward too, if forward accepts more than backward: equal sizes, a longer axis, a smaller tensor.

Forward alone is often laxer than the whole Function: scores of queries against more keys than queries still have a
diagonal. What a backward returned and the framework refuses is a mistake that the check must show: the inputs stay.
"""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import final

from gradcli.frozen import dataclass
from gradcli.inputs.search.candidates import Skeleton, Slot
from gradcli.inputs.search.error_messages import (
    broadcasts,
    is_flattened,
    refused_complex,
    refused_gradient,
    refused_position,
)
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.inputs.search.unification import Solution, Unifier
from gradcli.targets import Trial

PARTS_TRIES, PARTS_STEPS = 600, 12
"""Where backward raises: tries of sizes where forward cuts an axis, each in so many steps."""
FIXED_STEPS = 60
"""Tries of sizes around one that forward and backward have in common."""
Change = Callable[[Guess, Sequence[Slot], str], Guess | None]


def exchanges(guess: Guess, error: BaseException | None) -> bool:
    """Whether the framework refused a gradient that has the shape of another input: a mistake at any inputs.

    The gradient of an earlier input was accepted: if it has another number of axes, the two were not exchanged. One
    that broadcasting would make as large as its input may be a sum over too many axes, as for an input of fewer axes. A
    flattened one has the shape of another input by chance. None of these says anything against other inputs.
    """
    refusal, position = refused_gradient(str(error)), refused_position(str(error))
    if refusal is None or (position is not None and position not in guess.shapes):
        return False
    got, wanted = refusal
    is_anothers = len(got) == len(wanted) and got in guess.shapes.values()
    if broadcasts(got, wanted) or is_flattened(got, wanted):
        return False
    return is_anothers or _is_of_a_later_input(guess, got, position)


def _is_of_a_later_input(guess: Guess, shape: tuple[int, ...], position: int | None) -> bool:
    """Whether an input behind the one at a position, or any if that is not known, has a shape."""
    return any(each == shape for slot, each in guess.shapes.items() if position is None or slot > position)


def as_returned(guess: Guess, message: str) -> Guess | None:
    """The guess with one axis as long as in the gradient that the framework rejected; None if that makes no sense.

    An LSTM's gates are cut into four, and broadcast where each part has one column. Nothing is done where the
    gradient was merely not summed down, or has the shape of a later input: those are mistakes to be seen. The shape of
    an earlier input, whose own gradient was accepted, shows that forward leaves a part of the longer input unused.
    """
    refusal = refused_gradient(message)
    if refusal is None or len(refusal[0]) != len(refusal[1]):
        return None
    if _is_of_a_later_input(guess, refusal[0], refused_position(message)):
        return None
    changed = [(one, other) for one, other in zip(*refusal, strict=True) if one != other]
    slots = [slot for slot, shape in guess.shapes.items() if shape == refusal[1] and guess.skeleton[slot].is_free]
    position = refused_position(message)
    own = [position] if position in slots and refusal[0] in guess.shapes.values() else slots
    if len(changed) != 1 or 1 in changed[0] or len(own) != 1:
        return None
    return replace(guess, shapes={**guess.shapes, own[0]: refusal[0]})


def with_complex(guess: Guess, slots: Sequence[Slot], message: str) -> Iterator[Guess]:
    """The guess with one real tensor complex, where the framework rejected a complex gradient of a real input."""
    for slot in _floats(guess) if refused_complex(message) else ():
        choice = replace(guess.skeleton[slot], kind="complex")
        if choice not in [known for _, known in slots[slot].choices]:  # no complex images, say
            continue
        yield replace(guess, skeleton=(*guess.skeleton[:slot], choice, *guess.skeleton[slot + 1 :]))


def with_tensor(guess: Guess, slots: Sequence[Slot], message: str) -> Guess | None:
    """The guess with a tensor for the number whose gradient was rejected because it is an array, and of its shape."""
    refusal, position = refused_gradient(message), refused_position(message)
    if refusal is not None and position is None and refusal[1] == ():  # of a leaf: the only number, if there is one
        numbers = [slot for slot, choice in enumerate(guess.skeleton) if choice.kind == "value"]
        position = numbers[0] if len(numbers) == 1 else None
    if refusal is None or position is None or position in guess.shapes or position >= len(slots):
        return None
    fitting = [c for _, c in slots[position].choices if c.kind == "float" and c.rank == len(refusal[0])]
    if not fitting or not refusal[0]:
        return None
    skeleton = (*guess.skeleton[:position], fitting[0], *guess.skeleton[position + 1 :])
    return replace(guess, skeleton=skeleton, shapes={**guess.shapes, position: refusal[0]})


def as_vector(guess: Guess, slots: Sequence[Slot], message: str) -> Guess | None:
    """The guess with a vector for a tensor whose gradient was rejected because it is a vector of as many entries.

    `scale.view(1, c, 1)` and `jnp.cumsum(x)` take a matrix of c entries, where a vector is meant.
    """
    refusal, position = refused_gradient(message), refused_position(message)
    if refusal is None or position is None or guess.shapes.get(position) != refusal[1]:
        return None
    got, wanted = refusal
    if not is_flattened(got, wanted) or not guess.skeleton[position].is_free:
        return None
    vectors = [c for _, c in slots[position].choices if c.kind == guess.skeleton[position].kind and c.rank == 1]
    if not vectors:
        return None
    skeleton = (*guess.skeleton[:position], vectors[0], *guess.skeleton[position + 1 :])
    return replace(guess, skeleton=skeleton, shapes={**guess.shapes, position: got})


def of_another_rank(guess: Guess, slots: Sequence[Slot], message: str) -> Guess | None:
    """The guess with a tensor of the rank that its gradient has, of sizes that other tensors have.

    `torch.diag(upper[:-1], 1)` takes a matrix too, where a vector is meant. Where one of the two shapes lacks axes of
    the other, or a gradient was flattened, a sum or a rearrangement is wrong: a mistake to be seen.
    """
    refusal, position = refused_gradient(message), refused_position(message)
    if refusal is None or position is None or guess.shapes.get(position) != refusal[1]:
        return None
    got, wanted = refusal
    others = {size for slot, shape in guess.shapes.items() if slot != position for size in shape}
    if len(got) == len(wanted) or 1 in got or not others.issuperset(got):
        return None
    if math.prod(got) == math.prod(wanted) and len(wanted) > 1:
        return None
    if not got or not guess.skeleton[position].is_free or _lacks_axes(got, wanted) or _lacks_axes(wanted, got):
        return None
    fitting = [c for _, c in slots[position].choices if c == replace(guess.skeleton[position], rank=len(got))]
    if not fitting:
        return None
    skeleton = (*guess.skeleton[:position], fitting[0], *guess.skeleton[position + 1 :])
    return replace(guess, skeleton=skeleton, shapes={**guess.shapes, position: got})


def with_axes_less(guess: Guess, slots: Sequence[Slot]) -> Iterator[Guess]:
    """The guess with vectors for matrices: without an axis that several tensors have, or without one of every tensor.

    `A @ x - b` takes columns x and b beside each other too, where vectors are meant. Of every tensor that has several
    axes the last one is left out, then the first one. Sizes of which one has to exceed a multiple of another are those
    of the guess, which a search for them may miss.
    """
    long = {s: guess.shapes[s] for s in _floats(guess) if len(guess.shapes[s]) > 1 and s not in guess.domains}
    sizes = dict.fromkeys(itertools.chain(*long.values()))
    common = [{s: shape for s, shape in long.items() if size in shape} for size in sizes]
    shorter = [
        {s: tuple(n for n in shape if n != size) for s, shape in each.items()}
        for size, each in zip(sizes, common, strict=True)
        if len(each) > 1 and all(shape.count(size) == 1 for shape in each.values())
    ]
    shorter += [{s: shape[kept] for s, shape in long.items()} for kept in (slice(None, -1), slice(1, None)) if long]
    for shapes in shorter:
        choices = {s: replace(guess.skeleton[s], rank=len(shape)) for s, shape in shapes.items()}
        if all(choice in [known for _, known in slots[s].choices] for s, choice in choices.items()):
            skeleton = tuple(choices.get(slot, choice) for slot, choice in enumerate(guess.skeleton))
            yield replace(guess, skeleton=skeleton, shapes={**guess.shapes, **shapes})


def as_matrices(guess: Guess) -> Iterator[Skeleton]:
    """The skeletons with matrices for vectors: for all of them first, then for fewer, and last for none."""
    vectors = [slot for slot in _floats(guess) if len(guess.shapes[slot]) == 1]
    for count in range(len(vectors), -1, -1):
        for slots in itertools.combinations(vectors, count):
            yield tuple(replace(c, rank=2) if slot in slots else c for slot, c in enumerate(guess.skeleton))


def enlarged(guess: Guess, sizes: Collection[int]) -> Guess:
    """The guess with other sizes, each the same wherever it occurs, in place of these."""
    free = itertools.count(1 + max(size for shape in guess.shapes.values() for size in shape))
    new = {size: next(free) for size in sizes}
    shapes = {slot: tuple(new.get(size, size) for size in shape) for slot, shape in guess.shapes.items()}
    return replace(guess, shapes=shapes)


def squared(guess: Guess, attempted: Callable[[Guess], Trial], judge: Callable[[Guess], object | None]) -> Guess | None:
    """The guess with equal sizes, where the framework refused a gradient that has as many axes as its input.

    `grad.t()` is refused where the sizes differ; of a square matrix it is a wrong gradient without an error. So is
    `grad.sum(-1)` for a bias along the last axis. A size of 1 is that of a sum that keeps its axis, which stays apart.

    Args:
        guess: inputs that forward accepts.
        attempted: runs forward and backward on a guess.
        judge: what forward has against a guess, None where it accepts it.

    Returns:
        None where the gradient has another number of axes, and where forward or backward refuses equal sizes.
    """
    refusal = refused_gradient(str(attempted(guess).backward_error))
    if refusal is None or len(refusal[0]) != len(refusal[1]):
        return None
    sizes = {size for pair in zip(*refusal, strict=True) if len(set(pair)) > 1 for size in pair}
    if not sizes or 1 in sizes:
        return None
    equal = min(sizes)
    shapes = {slot: tuple(equal if n in sizes else n for n in shape) for slot, shape in guess.shapes.items()}
    square = replace(guess, shapes=shapes)
    return square if judge(square) is None and attempted(square).backward_error is None else None


def narrowed(guess: Guess, attempted: Callable[[Guess], Trial], accepts: Callable[[Guess], bool]) -> Guess | None:
    """The guess with tensors of the shapes in which gradients are returned, where that makes all of them fit.

    Forward often broadcasts more than the whole Function is made for: a scale that should be one number, or one for
    each row, may be a matrix. The outputs keep their shapes, so that the smaller tensor is broadcast, and a mistake in
    the sum of its gradient shows; but they lose axes that only tensors with more axes than the first one gave them. One
    tensor keeps its shape; the first one if all outputs are single numbers. Where forward adds an axis, as for the
    rotation by an angle, all may be single numbers: the outputs are none, so a sum may be right.

    Args:
        guess: inputs that forward accepts.
        attempted: runs forward and backward on a guess.
        accepts: whether forward accepts a guess.
    """
    before, first = attempted(guess), min(_floats(guess, "fixed-tensor"), default=0)
    adds_axis = max(map(len, _shapes(before)), default=0) > max(map(len, guess.shapes.values()), default=0)

    def search(found: Guess, trial: Trial, seen: frozenset[int]) -> Guess | None:
        if trial.gradients is not None:
            return found if seen else None
        for slot, step in _steps(found, str(trial.backward_error)):
            are_numbers = adds_axis and not any(step.shapes.values())
            if slot in seen or not (are_numbers or _is_whole(step, before)) or not accepts(step):
                continue
            following = attempted(step)
            exceeds = first not in (*seen, slot) and len(guess.shapes[slot]) > len(guess.shapes[first]) > 0
            is_alike = exceeds or _shapes(following) == _shapes(trial) or (are_numbers and all(_shapes(following)))
            if is_alike and (fitting := search(step, following, seen | {slot})) is not None:
                return fitting
        return None

    return search(guess, before, frozenset())


def _shapes(trial: Trial) -> list[tuple[int, ...]]:
    return [output.shape for output in trial.outputs]


def _steps(guess: Guess, message: str) -> Iterator[tuple[int, Guess]]:
    """Each tensor that the message may speak of, with the guess in which it has its gradient's shape."""
    refusal = refused_gradient(message)
    if refusal is None or not broadcasts(*refusal):
        return
    position = refused_position(message)
    slots = [slot for slot in _floats(guess) if guess.shapes[slot] == refusal[1]]
    for slot in sorted(slots, key=lambda slot: slot != position):
        choice = replace(guess.skeleton[slot], rank=len(refusal[0]))
        skeleton = (*guess.skeleton[:slot], choice, *guess.skeleton[slot + 1 :])
        yield slot, replace(guess, skeleton=skeleton, shapes={**guess.shapes, slot: refusal[0]})


def _lacks_axes(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a shape is that of another one without some of its axes."""
    sizes = iter(other)
    return all(size in sizes for size in one)


def _is_whole(guess: Guess, before: Trial) -> bool:
    """Whether a tensor without sizes of 1 is left; the first one, where no output has more than one entry."""
    shapes = [guess.shapes[slot] for slot in _floats(guess, "fixed-tensor")]
    whole = [bool(shape) and 1 not in shape for shape in shapes]
    return whole[0] if all(output.size == 1 for output in before.outputs) else any(whole)


def _floats(guess: Guess, *further: str) -> list[int]:
    return [slot for slot, choice in enumerate(guess.skeleton) if choice.kind in ("float", *further)]


def settled(unifier: Unifier, guess: Guess) -> Solution:
    """A guess as a solution whose sizes are all settled; `unifier` is that of its skeleton."""
    return Solution(guess=guess, state=unifier.settled_at(guess.shapes))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """Changes of what one search has found until backward fits.

    `attempted` runs forward and backward on a guess, `penalty` is what a failing backward costs, and `unifier` finds
    sizes for a skeleton.
    """

    trials: Trials
    attempted: Callable[[Guess], Trial]
    penalty: Callable[[Guess], float]
    runs: Callable[[Guess], bool]
    unifier: Callable[[Skeleton], Unifier]

    def as_returned(self, solution: Solution) -> Solution | None:
        """The guess with axes as long as backward's gradients have them, where forward and backward agree on that."""
        fitting = self.changed_by(lambda each, _, message: as_returned(each, message), solution.guess, exactly=False)
        return self._of_outputs_size(solution) if fitting is None else replace(solution, guess=fitting.guess)

    def _of_outputs_size(self, solution: Solution) -> Solution | None:
        """Sizes that fit, where a gradient has a size that an output has too, and no input: forward sets it as well.

        Forward of points in the plane, `q[:, :2]`, takes points of any number of coordinates.
        """
        guess, trial = solution.guess, self.attempted(solution.guess)
        changed = as_returned(guess, str(trial.backward_error))
        if changed is None:
            return None
        (slot,) = (slot for slot, shape in changed.shapes.items() if shape != guess.shapes[slot])
        pairs = enumerate(zip(changed.shapes[slot], guess.shapes[slot], strict=True))
        axis, size = next((axis, size) for axis, (size, old) in pairs if size != old)
        inputs, outputs = (set(itertools.chain(*each)) for each in (guess.shapes.values(), _shapes(trial)))
        if size not in outputs - inputs:
            return None
        unifier = self.unifier(guess.skeleton)
        start = unifier.resized(solution.state, slot, axis, size)
        outcome = unifier.solve(FIXED_STEPS, start, self._refusal)
        return outcome if isinstance(outcome, Solution) else None

    def _refusal(self, guess: Guess) -> BaseException | None:
        """The error of backward on a guess, unless it is a mistake to be seen there."""
        return None if self.runs(guess) else self.attempted(guess).backward_error

    def in_equal_parts(self, solution: Solution) -> Solution | None:
        """Sizes for which backward runs too, where forward cuts an axis: that axis is a multiple of another."""
        unifier = self.unifier(solution.guess.skeleton)
        for state in (solution.state, unifier.start()):  # forward may have made equal what is none, and broadcast
            with self.trials.budget.aside(PARTS_TRIES):
                for start in unifier.in_equal_parts(state):
                    outcome = unifier.solve(PARTS_STEPS, start, self._refusal)
                    if isinstance(outcome, Solution):
                        return outcome
        return None

    def in_another_order(self, solution: Solution) -> Solution | None:
        """The same with sizes that fall where they rose, if backward runs then: rows of it go by places of columns.

        A backward that is written for fewer axes raises at either.
        """
        state = replace(solution.state, descending=not solution.state.descending)
        outcome = self.unifier(solution.guess.skeleton).solve(1, state)
        fits = isinstance(outcome, Solution) and self.attempted(outcome.guess).backward_error is None
        return outcome if isinstance(outcome, Solution) and fits else None

    def complex(self, guess: Guess) -> Solution | None:
        """The guess with one tensor complex, where backward returns a complex gradient for a real one and fits then."""
        for each in with_complex(guess, self.trials.slots, str(self.attempted(guess).backward_error)):
            if self.trials.judge(each) is None and self.penalty(each) == 0:
                return settled(self.unifier(each.skeleton), each)
        return None

    def of_other_ranks(self, guess: Guess) -> Solution | None:
        """The guess with tensors of the ranks of their gradients, where backward fits, at these sizes and at larger.

        Where forward refuses larger ones, as of parameters that it reads one by one, the other sizes are enlarged.
        """
        whole = self.changed_by(of_another_rank, guess)
        if whole is None:
            return None
        shapes = whole.guess.shapes.items()
        changed = {size for slot, shape in shapes if shape != guess.shapes.get(slot) for size in shape}
        others = {size for _, shape in shapes for size in shape} - changed
        for sizes in (changed, others):
            larger = enlarged(whole.guess, sizes)
            if sizes and self.trials.judge(larger) is None:
                return whole if self.attempted(larger).backward_error is None else None
        return None

    def changed_by(self, change: Change, guess: Guess, *, exactly: bool = True) -> Solution | None:
        """The guess changed as often as backward's error asks for it, where backward fits then.

        Unless `exactly`, it may return None for some inputs.
        """
        for _ in guess.skeleton:
            found = change(guess, self.trials.slots, str(self.attempted(guess).backward_error))
            if found is None or self.trials.judge(found) is not None:
                return None
            guess = found
            if self.attempted(guess).backward_error is None and not (exactly and self.penalty(guess)):
                return settled(self.unifier(guess.skeleton), guess)
        return None

    def with_axes_less(self, guesses: Sequence[Guess]) -> Iterator[Solution]:
        """The guesses with an axis less in several tensors, where forward accepts that."""
        for each in itertools.chain.from_iterable(with_axes_less(guess, self.trials.slots) for guess in guesses):
            if self.trials.judge(each) is None:
                yield settled(self.unifier(each.skeleton), each)

    def narrowed(self, solution: Solution) -> Solution | None:
        """The guess with tensors of the shapes of their gradients, where that makes all of them fit."""
        guess = narrowed(solution.guess, self.attempted, lambda each: self.trials.judge(each) is None)
        return None if guess is None else settled(self.unifier(guess.skeleton), guess)

    def can_be_smaller(self, solution: Solution) -> bool:
        """Whether backward fits where tensors have the shapes of their gradients, or are vectors of as many entries."""
        return self.narrowed(solution) is not None or self.changed_by(as_vector, solution.guess) is not None
