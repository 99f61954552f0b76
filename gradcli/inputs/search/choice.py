"""Choosing among the inputs that forward accepts: those that the author most likely meant, judged by their shapes.

Forward often broadcasts more than the whole Function is made for, and backward then raises without being wrong. So
inputs for which the returned gradients fit come first. But a gradient of a wrong shape may fit a single number, or an
axis of one entry: such inputs are chosen only if forward rejects all others.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from gradcli.cases import InputSpec
from gradcli.frozen import dataclass
from gradcli.inputs.domains import MATRICES
from gradcli.inputs.hints.argument_names import DATA_NAMES, PARAMETER_NAMES, excludes_tensors, is_state, says_number
from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.inputs.hints.documented_values import Documented
from gradcli.inputs.hints.prose.formulas import size_of
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.hints.summed_gradients import Sum
from gradcli.inputs.search.candidates import Choice, Skeleton, Slot
from gradcli.inputs.search.domains import BELOW_GUARD, SMALL, domain_choice, limit_of
from gradcli.inputs.search.replies import RAISING_BACKWARD, Reply
from gradcli.inputs.search.trials import DomainChoice, Guess, Trials
from gradcli.inputs.search.unification import Solution

DEGENERATE = 100.0
"""Added to inputs with a size of 1: more than all other costs together."""
SQUARE = 1.25
"""Added for each tensor with two axes of one size: more than a vector costs beyond a matrix. Where forward takes both,
as `x @ x` does, the square matrix is the narrower case; it still comes first where backward refuses the vector."""
BROADCAST = 1.5
"""Added for a tensor that forward broadcasts with the first one, where its gradient is a sum over those axes."""
NARROWED, NARROWED_TO_ONE = 0.1, 1.0
"""Added where a tensor became smaller to fit its gradient: sizes of 2 and more come before single entries."""
_FLOATS = ("float", "complex")
_NOT_CHECKED = {
    Reply.RAISES: "backward fails for these inputs, so they are not checked",
    Reply.NONE: "there backward returns None for a tensor, so they are not checked; give these inputs if every tensor "
    "should get a gradient",
    Reply.SUMMED: "there the framework sums a gradient to its input's shape, so they are checked only if you give them",
}
"""What a note says of inputs that were not chosen because of what backward does there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Inputs that forward accepts, with a score for how unlikely they are, and a penalty for a failing backward.

    `documented` are the tensors that have the shapes that documentation gives; `reply` is what backward does there;
    `numbers` are arguments that may be numbers although forward takes tensors. `is_transposed` says that a gradient
    was refused that has its input's axes in another order. `counted` are tensors without axes of which backward counts
    the axes, as in `g.sum() if t.dim() == 0 else g`.
    """

    plain_score: float
    penalty: float
    solution: Solution
    documented: frozenset[int] = frozenset()
    reply: Reply = Reply.FITS
    numbers: frozenset[int] = frozenset()
    is_transposed: bool = False
    counted: frozenset[int] = frozenset()

    @property
    def score(self) -> float:
        """The lower the better."""
        return self.plain_score + self.penalty

    @property
    def is_degenerate(self) -> bool:
        """Whether some size is 1 that is not documented."""
        return self.plain_score >= DEGENERATE / 2

    @property
    def fits(self) -> bool:
        """Whether backward runs, and returns gradients of the inputs' shapes."""
        return self.penalty < RAISING_BACKWARD

    @property
    def fits_exactly(self) -> bool:
        """Whether it does so without a sum by the framework.

        A vector that broadcasts where a matrix was meant, as in `adj + adj.t()`, gets the gradient of a matrix.
        """
        return self.fits and self.reply is Reply.FITS


def fitting(found: Sequence[Accepted]) -> list[Accepted]:
    """The inputs found that backward fits, and in which no gradient of the likeliest ones is avoided."""
    return [each for each in _like_the_likeliest(found) if each.fits]


def chosen_among(found: Sequence[Accepted]) -> Accepted:
    """The inputs to check with: the likeliest, or if backward does not fit there, others with the same tensors.

    Those that it fits exactly come first, then those where the framework sums what it returns. Where it fits none,
    inputs where it returns something are preferred to those where it raises, so that a wrong shape is shown as one.
    """
    likeliest = min(found, key=lambda each: each.plain_score)
    whole = [each for each in _like_the_likeliest(found) if not each.is_degenerate]
    exact = [each for each in whole if each.fits_exactly]
    if likeliest.fits:
        best = _best(_as_documented(found))
        return best if best.fits_exactly or not exact else _best(exact)
    usable = exact or [each for each in whole if each.fits] or [each for each in whole if each.reply is Reply.SUMMED]
    if usable:
        return _best(usable)
    best = _best(_like_the_likeliest(found) if likeliest.reply is Reply.REFUSED else _as_documented(found))
    refused = [each for each in whole if each.reply is Reply.REFUSED]
    returned = [each for each in refused if each.is_transposed] or refused
    if not returned or (best.fits and best.score <= _best(returned).plain_score):
        return best
    return _best(returned)


def _best(found: Sequence[Accepted]) -> Accepted:
    return min(found, key=lambda each: each.score)


def _as_documented(found: Sequence[Accepted]) -> list[Accepted]:
    """The inputs in which all tensors have their documented shapes that have them in the likeliest inputs."""
    likeliest = min(found, key=lambda each: each.plain_score)
    return [each for each in found if each.documented >= likeliest.documented]


def _like_the_likeliest(found: Sequence[Accepted]) -> list[Accepted]:
    """The inputs that have all differentiable tensors of the likeliest ones, and their documented shapes.

    A gradient that is refused for a tensor is not avoided by integers or a number in that tensor's place, nor by
    another shape than the documented one. Nor is it by a tensor without axes where backward is written for others too.
    """
    likeliest = min(found, key=lambda each: each.plain_score)
    alike = [each for each in _as_documented(found) if _differentiable(each) >= _differentiable(likeliest)]
    return [each for each in alike if each.counted <= likeliest.counted]


def overruled_by(chosen: Accepted, found: Sequence[Accepted]) -> Accepted | None:
    """The inputs that would have been chosen but for backward; None where these are the same."""
    likeliest = min(found, key=lambda each: each.plain_score)
    changed = likeliest.plain_score < chosen.plain_score or (chosen.fits and not likeliest.fits)
    return likeliest if changed else None


def of_same_sizes(one: Accepted, other: Accepted) -> bool:
    """Whether what is a tensor in both inputs has one shape."""
    shapes = other.solution.guess.shapes
    return all(shapes.get(slot, shape) == shape for slot, shape in one.solution.guess.shapes.items())


def reply_avoided(likeliest: Accepted, chosen: Accepted) -> Reply:
    """What backward does at inputs that were not chosen because of it: it fails, or else it fits less well."""
    if not likeliest.fits:
        return Reply.RAISES
    return Reply.SUMMED if chosen.fits_exactly and not likeliest.fits_exactly else Reply.NONE


def best_score(found: Sequence[Accepted]) -> float:
    """The score of the best inputs so far; where the framework sums a gradient, others may still fit better."""
    scores = (each.score + RAISING_BACKWARD * (each.fits and not each.fits_exactly) for each in found)
    return min(scores, default=math.inf)


def cost_of_narrowing(guess: Guess) -> float:
    """What is added for a guess in which tensors have the shapes of their gradients."""
    return NARROWED_TO_ONE if any(1 in shape or not shape for shape in guess.shapes.values()) else NARROWED


def cost_of_special(guess: Guess, slots: Sequence[Slot], values: Documented) -> float:
    """What is added for square matrices and for domains, but not for those that documentation names."""
    said = {slot for slot, domain in guess.domains.items() if domain == meant_for(slots[slot].name, values)}
    plain = [
        shape
        for slot, shape in guess.shapes.items()
        if guess.skeleton[slot].kind in _FLOATS and not (slot in said and guess.domains[slot][0] in MATRICES)
    ]
    return SQUARE * sum(len(set(shape)) < len(shape) for shape in plain) + 0.4 * (len(guess.domains) - len(said))


def meant_for(name: str, values: Documented) -> DomainChoice | None:
    """The domain that documentation gives to an argument."""
    text = values.domains.get(name)
    return None if text is None else domain_choice(text)


def cost_of_shapes(solution: Solution, slots: Sequence[Slot], hints: SourceHints) -> float:
    """What is added for shapes that are less likely, and for sizes that forward asked for."""
    guess = solution.guess
    real = [choice for choice in guess.skeleton if choice.kind in _FLOATS]
    total = cost_of_special(guess, slots, hints.values) + cost_of_sums(guess, hints)
    total += 0.7 * len(elementwise_weights(guess, slots))
    total += sum(0.8 * max(0, choice.rank - real[0].rank) for choice in real)
    settled = sum(choice.rank for choice in guess.skeleton if choice.kind == "fixed-tensor")
    return total + 0.7 * max(0, len(solution.state.pinned) - settled)


def as_documented(guess: Guess, slots: Sequence[Slot], documented: Mapping[str, tuple[Axis, ...]]) -> list[int]:
    """The tensors that have axes of one entry only where documentation says so."""
    axes = {slot: documented[slots[slot].name] for slot in guess.shapes if slots[slot].name in documented}
    of_rank = [(slot, guess.shapes[slot]) for slot in axes if len(axes[slot]) == len(guess.shapes[slot])]
    return [s for s, shape in of_rank if all(a == 1 for a, n in zip(axes[s], shape, strict=True) if n == 1)]


def of_documented_shape(
    guess: Guess, slots: Sequence[Slot], documented: Mapping[str, tuple[Axis, ...]]
) -> frozenset[int]:
    """The tensors whose shapes are the documented ones: axes of one name have one size, and constants are kept."""
    sizes: dict[str, int] = {}
    found = set()
    for slot, shape in guess.shapes.items():
        axes = documented.get(slots[slot].name)
        if axes is None:
            continue
        if any(isinstance(axis, str) and axis.startswith(("*", "...")) for axis in axes):
            agrees = len(shape) >= len(axes) - 1
        else:
            agrees = len(shape) == len(axes) and all(_agrees(a, n, sizes) for a, n in zip(axes, shape, strict=True))
        if agrees:
            found.add(slot)
    return frozenset(found)


def names_of_documented_shape(
    guess: Guess, slots: Sequence[Slot], documented: Mapping[str, tuple[Axis, ...]]
) -> frozenset[str]:
    """As `of_documented_shape`, by name."""
    return frozenset(slots[slot].name for slot in of_documented_shape(guess, slots, documented))


def _agrees(axis: Axis, size: int, sizes: dict[str, int]) -> bool:
    """Whether an axis has its documented size, as far as `sizes` gives that; a new name is added to these."""
    if isinstance(axis, str) and axis.isidentifier():
        return sizes.setdefault(axis, size) == size
    known = axis if isinstance(axis, int) else size_of(axis, sizes)
    return known is None or known == size


def is_degenerate(guess: Guess, excepted: Collection[int] = ()) -> bool:
    """Whether a tensor has an axis of one entry, or the first one, which tends to be the input itself, no axis.

    Those `excepted` may have such axes, or none, and so may those that the user gave.
    """
    free = [slot for slot, choice in enumerate(guess.skeleton) if choice.is_free]
    if any(1 in guess.shapes[slot] for slot in free if slot not in excepted):
        return True
    given = [slot for slot in guess.shapes if guess.skeleton[slot].kind == "fixed-tensor"]
    floats = sorted([slot for slot in free if guess.skeleton[slot].kind in _FLOATS] + given)
    if not floats or floats[0] in (*excepted, *given):
        return False
    return not guess.shapes[floats[0]] or all(not guess.shapes[slot] for slot in floats)


def elementwise_weights(guess: Guess, slots: Sequence[Slot]) -> list[int]:
    """The tensors called a weight that have the input's own shape: forward broadcasts, and a vector was meant."""
    first = next((shape for shape in guess.shapes.values() if shape), ())
    named = [slot for slot in guess.shapes if slot > 0 and slots[slot].name.lower() in PARAMETER_NAMES]
    return [slot for slot in named if len(first) > 1 and guess.shapes[slot] == first]


def summed_away(guess: Guess, hints: SourceHints) -> list[int]:
    """The tensors with all axes of the first one, or its last ones, whose gradient backward sums over these axes."""
    first, found = next((shape for shape in guess.shapes.values() if shape), ()), []
    for slot, own in sorted(guess.shapes.items())[1:]:
        total = hints.sum_of(slot)
        if own and (own == first or (total is Sum.ALL and own == first[-len(own) :])) and total is not None:
            found.append(slot)
    return found


def cost_of_sums(guess: Guess, hints: SourceHints) -> float:
    """What is added for tensors that have axes over which backward sums their gradients."""
    return BROADCAST * len(summed_away(guess, hints))


def notes_on_sums(
    found: Sequence[Accepted], guess: Guess, hints: SourceHints, trials: Trials, overruled: Sequence[InputSpec]
) -> list[str]:
    """A note where the likeliest inputs have a tensor with axes that backward sums over, and the guess does not."""
    likeliest = min(found, key=lambda each: each.plain_score - cost_of_sums(each.solution.guess, hints)).solution.guess
    specs, slots = trials.specs(likeliest), summed_away(likeliest, hints)
    names = [trials.slots[slot].name for slot in slots if slot not in summed_away(guess, hints)]
    return [_note_on_sums(specs, name) for name in names if specs != tuple(overruled)]


def _note_on_sums(specs: Sequence[InputSpec], name: str) -> str:
    return (
        f"forward also accepts {' '.join(spec.as_flag() for spec in specs)}, but then {name} has axes over which "
        f"backward sums its gradient, so {name} should probably have fewer axes; these inputs are checked only if you "
        "give them"
    )


def with_tensors(chosen: Accepted, slots: Sequence[Slot]) -> tuple[Skeleton, list[int]]:
    """The skeleton with a tensor without axes for each number that may be a tensor, and where these are.

    Not for one whose name or annotation says that it is a number.
    """
    skeleton, places = list(chosen.solution.guess.skeleton), list[int]()
    for place in sorted(chosen.numbers):
        slot = slots[place]
        says = says_number(slot.name) or excludes_tensors(slot.parameter.annotation or "")
        if skeleton[place].kind == "value" and not says:
            skeleton[place] = Choice(kind="float", rank=0)
            places.append(place)
    return tuple(skeleton), places


def notes_on_numbers(
    chosen: Accepted, found: Sequence[Accepted], slots: Sequence[Slot], taken: Collection[int]
) -> list[str]:
    """A note on each number that is a tensor in the likeliest inputs, where backward returns None for it.

    And on each for which forward has `taken` a tensor too.
    """
    likeliest = min(found, key=lambda each: each.plain_score)
    skeleton = chosen.solution.guess.skeleton
    places = sorted((_tensors(likeliest) & likeliest.numbers) | set(taken))
    return [
        f"{slots[place].name} is taken for a number, because backward returns no gradient for it; if it is a tensor, "
        f"give its shape, as in -i {slots[place].name}=scalar"
        for place in places
        if skeleton[place].kind == "value"
    ]


def notes_on(
    solution: Solution, slots: Sequence[Slot], overruled: Sequence[InputSpec], *, reply: Reply = Reply.RAISES,
    values: Documented | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Notes on the chosen inputs: others that forward accepts, and domains that restrict what is checked.

    Args:
        solution: the chosen inputs.
        slots: the arguments.
        overruled: the inputs that would have been chosen but for backward.
        reply: what backward does for these.
        values: what documentation says of the arguments' values.
    """
    notes = []
    if overruled:
        given = " ".join(spec.as_flag() for spec in overruled)
        equal = _made_equal(solution.guess, slots, overruled) if reply is Reply.RAISES else []
        where = f" (it runs where two axes of {equal[0]} have the same size)" if equal else ""
        notes.append(f"forward also accepts {given}, but {_NOT_CHECKED[reply]}{where}")
    notes += _notes_on_labels(solution.guess, slots)
    for index, (domain, parameters) in sorted(solution.guess.domains.items()):
        if domain != "normal" and not is_state(slots[index].name):
            bounds = "".join(f", {key}={value:g}" for key, value in parameters)
            because = "forward rejected normally distributed numbers"
            if domain in ("ascending", "descending"):
                because = "its documentation says so, or forward searches it for a place"
            elif values is not None and meant_for(slots[index].name, values) == (domain, parameters):
                because = "its documentation says so, or forward asserts it"
            elif domain in ("spd", "triangular", "diagonally-dominant"):
                because = (
                    f"forward calls an operation for matrices of this domain, or {because.removeprefix('forward ')}"
                )
            elif (which := limit_of((domain, parameters))) is not None:
                because = f"forward's source or its argument names suggest that it is the {which} of two limits"
            elif (domain, parameters) == SMALL:
                because = "forward's iteration did not converge at larger numbers within its limit of steps"
            elif (domain, parameters) == BELOW_GUARD:
                because = (
                    "forward holds an intermediate result of larger numbers at a guard, where the gradient changes"
                )
            elif domain == "simplex":
                because = "forward seems to compute a softmax, and the name suggests target probabilities"
            notes.append(f"{slots[index].name} is drawn from domain {domain}{bounds}, because {because}")
    return tuple(notes)


def _made_equal(guess: Guess, slots: Sequence[Slot], overruled: Sequence[InputSpec]) -> list[str]:
    """The tensors with axes of one size in the chosen inputs, and of different sizes in those that backward refuses."""
    others = {spec.name: spec.shape for spec in overruled if spec.shape is not None}
    pairs = [(slots[slot].name, shape, others.get(slots[slot].name, ())) for slot, shape in guess.shapes.items()]
    return [name for name, shape, other in pairs if len(shape) == len(other) and len({*shape}) < len({*other})]


def _notes_on_labels(guess: Guess, slots: Sequence[Slot]) -> list[str]:
    """A note on each real tensor that has no gradient because of its name."""
    names = [
        (slots[index].name, guess.shapes[index])
        for index, choice in enumerate(guess.skeleton)
        if choice.kind == "label"
    ]
    return [
        f"{name} is taken for data without a gradient, because of its name and because backward returns None for it; "
        f"if it should get a gradient, give -i {name}={'x'.join(map(str, shape)) or 'scalar'}"
        for name, shape in names
        if DATA_NAMES.fullmatch(name.lower().strip("_"))
    ]


def _differentiable(accepted: Accepted) -> set[int]:
    return _tensors(accepted) - accepted.numbers


def _tensors(accepted: Accepted) -> set[int]:
    skeleton: Sequence[Choice] = accepted.solution.guess.skeleton
    return {slot for slot, choice in enumerate(skeleton) if choice.kind in _FLOATS}
