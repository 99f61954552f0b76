"""Trials of forward: arguments made from a guess, how far forward got with them, and whether it accepts them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from time import perf_counter
from types import CodeType
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument, InputSpec
from gradcli.errors import OverrunError
from gradcli.frozen import dataclass
from gradcli.inputs.builders import build
from gradcli.inputs.domains import CLASSES
from gradcli.inputs.hints.argument_names import is_state
from gradcli.inputs.search.budget import Budget
from gradcli.inputs.search.candidates import Skeleton, Slot
from gradcli.inputs.search.error_messages import Failure, lacked_by_a_constant, said_of_double
from gradcli.targets import TargetInfo, Trial

if TYPE_CHECKING:
    from gradcli.inputs.search.unsolved.lasting_errors import LastingErrors, Place

Shape = tuple[int, ...]
DomainChoice = tuple[str, tuple[tuple[str, Any], ...]]
NORMAL: DomainChoice = ("normal", ())
MAX_ELEMENTS = 20_000
MORE_SAMPLES = (1, 2, 3)
NUMBER_SAMPLES = range(1, 9)
"""All of these numbers have one sign in 1 of 128 cases."""
LARGEST_HELD = 8
"""Sizes of a module's parameters up to this are not used for inputs, if others fit: so messages tell which is which."""
_SQUARE = frozenset(("spd", "triangular", "diagonally-dominant"))
_WITHOUT_GRADIENT = ("label", "complex-label", "number-tensor")
_GROWTH = 4
"""Of all sizes: an output that is then empty as well is so by design."""
_NEARBY = 1e-3
"""The share of another sample that is added to inputs: a forward that gives the same has no slope."""
SLIPS = 60
"""So many errors of one misspelt attribute or endless recursion, or outputs that are whole numbers, end the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A whole set of inputs: what each argument is, the shapes of tensors by slot, domains, and the index bound."""

    skeleton: Skeleton
    shapes: Mapping[int, Shape]
    domains: Mapping[int, DomainChoice] = field(default_factory=dict)
    high: int = 2

    @property
    def key(self) -> object:
        """Equal for equal guesses, and hashable."""
        return self.skeleton, frozenset(self.shapes.items()), frozenset(self.domains.items()), self.high


@final
class Trials:
    """Runs guesses within a budget, and remembers the most informative error."""

    def __init__(
        self, info: TargetInfo, attempt: Callable[[Sequence[Argument]], Trial], slots: Sequence[Slot], *,
        seed: int, budget: Budget, modes: Callable[[Guess], Iterable[Guess]] = lambda _: (),
        documented: Callable[[Guess], Collection[int]] = lambda _: (),
    ) -> None:  # fmt: skip
        self.slots = tuple(slots)
        self.budget = budget
        self.best: Failure | None = None
        self._attempt, self._forward = attempt, info.forward
        self._code: CodeType | None = getattr(info.forward, "__code__", None)
        self.holds_tensors = bool(info.held)
        self.held_sizes = frozenset(size for _, value in info.held for size in value.shape if size <= LARGEST_HELD)
        self._modes, self._documented = modes, documented
        self._seed = seed
        self._drawn: dict[tuple[Any, ...], Argument] = {}
        self._judged: dict[object, tuple[Failure | None, int]] = {}
        self._slips, self._whole = 0, 0.0
        self._lasting: LastingErrors | None = None
        self.refuses_double = ""
        self.refuses_normal = False
        """Whether forward did not return for some normal numbers: positive ones are tried first then."""

    @property
    def exhausted(self) -> bool:
        """Whether the tries of this stage are used up, or no inputs can help."""
        return max(self._slips, self._whole) >= SLIPS or self.lasting_place is not None or self.budget.exhausted

    @property
    def lasting_place(self) -> "Place | None":
        """The line that raises whatever the inputs are, if there is one."""
        return None if self._lasting is None else self._lasting.final

    @property
    def best_progress(self) -> float:
        """How far forward got at best, less a little for rounding."""
        return self.best.progress - 1e-9 if self.best is not None else 0.0

    def judge(self, guess: Guess) -> Failure | None:
        """None if forward accepts the guess and every tensor in it matters; else the reason.

        Accepted means: every output finite, and not empty unless by design, on four samples; and each tensor's values
        change an output in one of forward's modes. Running statistics need not, since a layer may take its mode from
        elsewhere; nor need what forward writes into, as it does into statistics that it updates. A guess that was
        judged before is not run again, except where forward did not return, as of a first call that compiles.
        """
        if not all(_can_have(guess.shapes[slot], domain) for slot, (domain, _) in guess.domains.items()):
            return Failure(progress=0.0)
        if (known := self._judged.get(guess.key)) is not None:
            failure, tries = known
            self.budget.spend_again(tries)
            return failure if failure is None or failure.idle is not None else self._remembered(failure, guess)
        before = self.budget.count
        failure = self._judgement(guess)
        if failure is None or not isinstance(failure.error, OverrunError):
            self._judged[guess.key] = failure, self.budget.count - before
        return failure

    def _judgement(self, guess: Guess) -> Failure | None:
        if (failure := self._failure_of(guess, 0, first := self.run(guess, 0, forced=True))) is not None:
            return self._remembered(failure, guess)
        for sample in MORE_SAMPLES[:1] if self.budget.is_slow else MORE_SAMPLES:
            failure = self._failure_of(guess, sample, self.run(guess, sample, forced=True))
            if failure is not None:
                return self._remembered(replace(failure, progress=1.5), guess)
        is_same = self.budget.is_slow and all(choice.kind != "index" for choice in guess.skeleton)
        base = first if is_same else self.run(guess, 0)
        for index, choice in enumerate(guess.skeleton):
            if choice.is_free and not is_state(self.slots[index].name) and not self._matters(guess, index, base):
                if self.slots[index].name in base.updated or self._matters_elsewhere(guess, index):
                    continue
                failure = self._idle_in_all_modes(guess, index)
                if failure is not None:
                    return failure
        return None

    def run(
        self, guess: Guess, sample: int, *, forced: bool = False, other: int | None = None, other_sample: int = 5
    ) -> Trial:
        """Forward on the guess's `sample`; slot `other` is drawn from a later one. `forced` makes an index maximal."""
        began = perf_counter()
        trial = self._attempt(self.arguments(guess, sample, forced=forced, other=other, other_sample=other_sample))
        self.budget.spend(perf_counter() - began, accepted=trial.ok)
        return trial

    def repeats(self, guess: Guess, index: int, times: int) -> bool:
        """Whether forward gives the same for a tensor of one entry along its first axis and for that entry repeated.

        The rfft of one number is broadcast by a product as well, but is not that of the number repeated.
        """
        whole = [
            replace(argument, value=np.repeat(argument.value, times, axis=0))
            if argument.name == self.slots[index].name
            else argument
            for argument in self.arguments(guess, 0)
        ]
        return self.run(guess, 0).agrees(self._attempt(whole))

    def ignores(self, guess: Guess, index: int, axis: int, kept: int) -> bool:
        """Whether forward gives the same bits where a tensor is NaN beyond its first `kept` entries along an axis."""
        arguments = self.arguments(guess, 0)
        spoilt = next(argument for argument in arguments if argument.name == self.slots[index].name)
        np.moveaxis(spoilt.value, axis, 0)[kept:] = np.nan
        trial = self._attempt(arguments)
        return trial.ok and trial.equals(self.run(guess, 0))

    def differ(self, guess: Guess, other: Guess) -> bool:
        """Whether two guesses that forward accepts give different outputs."""
        return not self.run(guess, 0).equals(self.run(other, 0))

    def agree(self, guess: Guess, other: Guess) -> bool:
        """Whether two guesses that forward accepts give the same outputs up to rounding, on all samples."""
        return all(self.run(guess, sample).agrees(self.run(other, sample)) for sample in (0, *MORE_SAMPLES))

    def is_flat(self, guess: Guess) -> bool:
        """Whether no output changes where the floating tensors change slightly."""
        moved = [
            replace(argument, value=argument.value + _NEARBY * drawn.value)
            if argument.is_tensor and argument.value.dtype.kind in "fc"
            else argument
            for argument, drawn in zip(self.arguments(guess, 0), self.arguments(guess, 1), strict=True)
        ]
        return self.run(guess, 0).agrees(self._attempt(moved))

    def arguments(
        self, guess: Guess, sample: int, *, forced: bool = False, other: int | None = None, other_sample: int = 5
    ) -> list[Argument]:
        """The guess's arguments: fresh arrays, so that a forward that writes into them spoils nothing."""
        found = []
        for index, choice in enumerate(guess.skeleton):
            if choice.kind == "omitted":
                if self._needs_default(guess.skeleton, index):
                    default = self.slots[index].parameter.default
                    found.append(Argument(name=self.slots[index].name, value=default, is_tensor=False))
                continue
            argument = self._argument(guess, index, other_sample + sample if other == index else sample)
            if forced and choice.kind == "index" and argument.value.size:
                domain, parameters = self._domain(guess, index)
                if domain in ("indices", "permutation") and (high := dict(parameters).get("high")):
                    place = -1 if domain == "indices" else int(argument.value.argmax())
                    argument.value.flat[place] = high - 1
            found.append(argument)
        return found

    def specs(self, guess: Guess) -> tuple[InputSpec, ...]:
        """The guess as input specs, in the order of forward's parameters; what is left out at the end is absent."""
        found = []
        for index, choice in enumerate(guess.skeleton):
            slot = self.slots[index]
            if choice.kind == "omitted":
                if self._needs_default(guess.skeleton, index):
                    found.append(InputSpec(name=slot.name, kind="value", value=slot.parameter.default))
            else:
                found.append(self._spec(guess, index))
        return tuple(found)

    def _needs_default(self, skeleton: Skeleton, index: int) -> bool:
        """Whether a later positional argument is given, so that this one must be given too."""
        later = zip(skeleton[index + 1 :], self.slots[index + 1 :], strict=True)
        keyword = self.slots[index].parameter.keyword_only
        return not keyword and any(
            choice.kind != "omitted" and not slot.parameter.keyword_only for choice, slot in later
        )

    def _spec(self, guess: Guess, index: int) -> InputSpec:
        slot, choice = self.slots[index], guess.skeleton[index]
        if slot.fixed is not None:
            return slot.fixed
        if choice.kind == "value":
            return InputSpec(name=slot.name, kind="value", value=choice.value)
        domain, parameters = self._domain(guess, index)
        shape = guess.shapes[index]
        if choice.kind in ("key", "typed-key"):
            domain, shape = choice.kind, (2,) if choice.kind == "key" else ()
        return InputSpec(
            name=slot.name,
            shape=shape,
            dtype="complex128" if choice.kind in ("complex", "complex-label") else None,
            domain=domain,
            parameters=parameters,
            requires_grad=False if choice.kind in _WITHOUT_GRADIENT or slot.is_buffer else None,
        )

    def _domain(self, guess: Guess, index: int) -> DomainChoice:
        kind = guess.skeleton[index].kind
        if kind == "index" or (kind == "number-tensor" and self.slots[index].is_axis):
            from gradcli.inputs.search.whole_numbers import domain_of_whole_numbers

            return domain_of_whole_numbers(self.slots, guess.skeleton, guess.shapes, guess.high, index)
        if kind == "number-tensor" and (guard := self.slots[index].guard) is not None and not guess.shapes[index]:
            return "literal", (("value", guard),)
        return ("boolean", ()) if kind == "mask" else guess.domains.get(index, NORMAL)

    def _argument(self, guess: Guess, index: int, sample: int) -> Argument:
        slot, choice = self.slots[index], guess.skeleton[index]
        spec = self._spec(guess, index)
        if choice.is_tensor:
            key = (index, choice, () if slot.fixed else (spec.shape, spec.domain, spec.parameters), sample)
            if key not in self._drawn:
                self._drawn[key] = build((spec,), seed=self._seed, sample=sample)[0]
            drawn = self._drawn[key]
            return replace(drawn, value=drawn.value.copy(), keyword=slot.parameter.keyword_only)
        return Argument(name=slot.name, value=spec.value, is_tensor=False, keyword=slot.parameter.keyword_only)

    def _matters_elsewhere(self, guess: Guess, index: int) -> bool:
        """Whether an argument matters at other values of single numbers and of masks, or has its documented shape.

        Below a negative limit, no other does; nor does a softmax of the one entry that a mask leaves. Of two corners of
        a box the rays that are drawn may all miss one.
        """
        masks = {slot for slot, choice in enumerate(guess.skeleton) if choice.kind == "mask"}
        may_help = any(slot != index and (not shape or slot in masks) for slot, shape in guess.shapes.items())
        if self.budget.is_slow or not (may_help or index in self._documented(guess)):
            return False
        bases = ((sample, self.run(guess, sample)) for sample in NUMBER_SAMPLES)
        return any(base.ok and self._matters(guess, index, base, sample) for sample, base in bases)

    def _matters(self, guess: Guess, index: int, base: Trial, own: int = 0) -> bool:
        """Whether other values of an argument change an output of `base`, the trial with sample `own`."""
        for sample in range(4):
            trial = self.run(guess, own, other=index, other_sample=5 + sample)
            if not trial.ok:
                return guess.skeleton[index].kind in ("index", "mask")
            if not trial.equals(base):
                return True
        return False

    def _idle_in_all_modes(self, guess: Guess, index: int) -> Failure | None:
        """None if the argument's values change an output with another flag or word, which is checked as well.

        An argument with a default is left out instead: NumPy's functions read `out` only with another `where`.
        """
        error: BaseException | None = None
        for mode in () if self.slots[index].parameter.has_default else self._modes(guess):
            base = self.run(mode, 0)
            if base.ok and self._matters(mode, index, base):
                return None
            error = error or base.error
        return Failure(progress=1.6, error=error, idle=index)

    def _failure_of(self, guess: Guess, sample: int, trial: Trial) -> Failure | None:
        if isinstance(trial.error, OverrunError | RecursionError):  # other values may be in forward's domain
            self.refuses_normal = True
            return Failure(progress=1.8, error=trial.error, non_finite=True)
        if not trial.ok:
            return Failure(progress=self._progress(trial.error), error=trial.error, no_tensor=trial.error is None)
        real = [output for output in trial.outputs if np.asarray(output).dtype.kind in "fc"]
        if not real or (any(output.size == 0 for output in real) and not self._is_empty_by_design(guess, real)):
            self._whole += not real and any(choice.kind == "float" for choice in guess.skeleton)
            return Failure(progress=1.6, whole=not real)
        self._whole = float("-inf")
        if not all(np.isfinite(output).all() for output in real) and not self._is_infinite_by_design(
            guess, sample, real
        ):
            return Failure(progress=1.8, non_finite=True)
        return None

    def _is_infinite_by_design(self, guess: Guess, sample: int, outputs: Sequence[NDArray[Any]]) -> bool:
        """Whether outputs are minus infinity where no real input decides it, and forward has that number."""
        from gradcli.inputs.hints.infinite_outputs import minus_infinite, same_places, writes_minus_infinity

        places = minus_infinite(outputs)
        if places is None or not writes_minus_infinity(self._forward):
            return False
        floats = [index for index, choice in enumerate(guess.skeleton) if choice.kind in ("float", "complex")]
        others = [self.run(guess, sample, other=index, forced=True) for index in floats]
        return all(each.ok and same_places(minus_infinite(each.outputs), places) for each in others)

    def _is_empty_by_design(self, guess: Guess, outputs: Sequence[NDArray[Any]]) -> bool:
        """Whether an output is empty beside others that are not, and stays so where all sizes are larger.

        One of `x[3:]` does not; the sizes keep their sums, products and ratios to each other.
        """
        grown = {slot: tuple(n * _GROWTH if n > 1 else n for n in shape) for slot, shape in guess.shapes.items()}
        if grown == guess.shapes:
            return False
        larger = [each for each in self.run(replace(guess, shapes=grown), 0).outputs if each.dtype.kind in "fc"]
        empty = [output.size == 0 for output in outputs]
        return not all(empty) and empty == [output.size == 0 for output in larger]

    def _remembered(self, failure: Failure, guess: Guess) -> Failure:
        if self._lasting is None:
            from gradcli.inputs.search.unsolved.lasting_errors import LastingErrors  # only where forward raises

            self._lasting = LastingErrors(self._code, self.slots)
        failure = replace(failure, is_lasting=self._lasting.saw(failure.error, failure.progress, guess.skeleton))
        endless = isinstance(failure.error, RecursionError)
        slip = endless or (isinstance(failure.error, AttributeError) and not lacked_by_a_constant(failure.error))
        slip |= bool(refused := said_of_double(failure.error))
        self.refuses_double = self.refuses_double or refused
        best = None if self.best is None else self.best.error
        same = best is None or str(failure.error) == str(best) or (endless and isinstance(best, RecursionError))
        self._slips = self._slips + 1 if slip and same else 0
        if self.best is None or failure.progress > self.best.progress:
            self.best = failure
        return failure

    def _progress(self, error: BaseException | None) -> float:
        """The fraction of forward's code that ran before the exception, including functions that it calls."""
        traceback, progress, share = (error.__traceback__ if error else None), 0.0, 0.0
        while traceback is not None:
            code = traceback.tb_frame.f_code
            length = max(1, len(code.co_code))
            if code is self._code:
                progress, share = traceback.tb_lasti / length, 1 / length
            elif share and self._code is not None and code.co_filename == self._code.co_filename:
                progress, share = progress + share * traceback.tb_lasti / length, share / length
            traceback = traceback.tb_next
        return min(progress, 1.4)


def _can_have(shape: Shape, domain: str) -> bool:
    """Whether arrays of a shape can be drawn from a domain: a shape may have changed after the domain was chosen."""
    if domain in _SQUARE:
        return len(shape) >= 2 and shape[-1] == shape[-2]
    return len(shape) >= 2 if domain == "orthogonal" else bool(shape) or domain not in CLASSES
