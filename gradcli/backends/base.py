"""What a backend must supply: recognising a target, calling it, and binding it to inputs as a Subject."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.executed_lines import Counted
from gradcli.backends.guard import Session
from gradcli.backends.tensor.call_records import CallResult, LeakedGraph, OtherCalls, Seeds, Values
from gradcli.backends.tensor.framework import unit_roundoff
from gradcli.backends.tensor.pairs import Pair
from gradcli.cases import Argument
from gradcli.errors import TargetError, UsageError
from gradcli.frozen import dataclass
from gradcli.numerics.maps.space import Space
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.results import Stage
from gradcli.targets import TargetInfo, Trial

FloatArray = NDArray[np.float64]
Gradients = tuple[NDArray[Any] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawGradient:
    """One value that backward returned, before the framework checks or casts it."""

    is_none: bool
    is_tensor: bool
    shape: tuple[int, ...] | None
    dtype: str | None
    value: NDArray[Any] | None
    type_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBackward:
    """A direct call of the user's backward, around the framework: what it returned, raised and changed in place.

    `container` names what was returned where a tuple belongs, `advice` what else may be meant, `nested_unlike` the
    argument whose gradient is nested in another way; `sums_down` says whether the framework sums larger gradients down.
    """

    gradients: tuple[RawGradient, ...] = ()
    error: BaseException | None = None
    changed_cotangents: tuple[int, ...] = ()
    changed_inputs: tuple[int, ...] = ()
    changed_saved: tuple[int, ...] = ()
    available: bool = True
    container: str | None = None
    advice: str | None = None
    nested_unlike: str | None = None
    sums_down: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardCall:
    """One call through the Function: outputs, and inputs that changed although they were not marked dirty.

    `unit_roundoff` is that of the coarsest differentiable output, to which cotangents are rounded as well.
    """

    outputs: tuple[NDArray[Any], ...]
    differentiable: tuple[bool, ...]
    changed_inputs: tuple[int, ...] = ()
    saved_strangers: tuple[int, ...] = ()
    context_tensors: tuple[str, ...] = ()
    unit_roundoff: float = 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class Batched:
    """What a function gave for a whole batch: outputs stacked along axis 0, gradients where the inputs were."""

    outputs: tuple[NDArray[Any], ...]
    gradients: tuple[NDArray[Any] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A call in the other mode: compiled if the target is not, else plain; `roundoff` is of its coarsest numbers."""

    outputs: tuple[NDArray[Any], ...]
    gradients: tuple[NDArray[Any] | None, ...]
    roundoff: float


class Layout(Enum):
    """The memory layouts in which tensors of equal values are tried."""

    CONTIGUOUS = "contiguous"
    STRIDED = "strided"
    TRANSPOSED = "transposed"
    EXPANDED = "expanded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A backward pass to run: cotangents, their memory layout, and another call of forward to make before it."""

    cotangents: Sequence[NDArray[Any] | None]
    layout: Layout = Layout.CONTIGUOUS
    after: OtherCalls | None = None


@dataclass(slots=True)
class Counters:
    """How often the user's code was run."""

    forward: int = 0
    backward: int = 0
    stages: dict[str, Stage] = field(default_factory=dict)

    def book(self, stage: str, before: "Counters", seconds: float) -> None:
        """Add the calls since `before`, a copy of the counters, to those of `stage`."""
        spent = Stage(forward=self.forward - before.forward, backward=self.backward - before.backward, seconds=seconds)
        self.stages[stage] = self.stages.get(stage, Stage()) + spent


class Backend(ABC):
    """A framework: recognises its targets, runs them, and binds them to inputs."""

    name: str
    lacks: tuple[str, ...] = ()  # dtypes that the framework does not have

    @abstractmethod
    def claims(self, target: object) -> bool:
        """Whether `target` is a Function (or callable) of this framework. Must not import the framework."""

    def joined(self, pair: Pair) -> object:
        """One target of both functions. Raises UsageError where the backend has no such targets."""
        raise UsageError(f"the {self.name} backend cannot check {pair.name} with a separate backward function (--grad)")

    @abstractmethod
    def is_complete(self, target: object) -> bool:
        """Whether a claimed Function class has a forward and a backward of its own: a base for others may not."""

    @abstractmethod
    def describe(self, target: object) -> TargetInfo:
        """Parameters and source functions of `target`."""

    @abstractmethod
    def attempt(self, target: object, arguments: Sequence[Argument], *, gradients: bool = False) -> Trial:
        """Run forward once (and backward, if asked) under a guard; exceptions are returned, not raised."""

    @abstractmethod
    def bind(self, target: object, arguments: Sequence[Argument], *, info: TargetInfo | None = None) -> "Subject":
        """`target` at these arguments; `info` is what `describe` said. Raises UserCodeError where forward raises."""

    def session(self, *, lazy: bool = True) -> AbstractContextManager[object]:  # noqa: ARG002 - for those that override
        """A context around many calls, such as a battery: random generators are restored once, at its end."""
        return nullcontext()

    def on(self, device: str | None) -> "Backend":
        """The backend with its tensors on `device`; itself for None. Raises UsageError if there is no such device."""
        if device in (None, "cpu"):
            return self
        raise UsageError(f"device {device}: the {self.name} backend computes on the CPU only")

    def constructor(self, target: object) -> TargetInfo | None:  # noqa: ARG002 - for those that override it
        """What the constructor of a class takes that has to be instantiated before it can be run; else None."""
        return None

    def construct(self, target: object, keywords: Mapping[str, Any]) -> object:  # noqa: ARG002 - as above
        """An instance of such a class. Raises UserCodeError where the constructor raises."""
        raise TargetError(f"the {self.name} backend cannot make an instance of a class: give a function")

    @abstractmethod
    def adopt(self, values: Sequence[object]) -> tuple[Argument, ...]:
        """Arguments from a caller's own positional values: this framework's tensors, arrays, Python objects."""


class Subject(Counted):
    """A Function bound to arguments, with everything that the checks need, as arrays.

    Inputs are numbered by their position among forward's arguments. `active` are the positions that require a
    gradient, in order; the domain of `derivative_map` has one block for each of them, the codomain one for each
    differentiable output.
    """

    info: TargetInfo
    arguments: tuple[Argument, ...]
    active: tuple[int, ...]
    counters: Counters
    has_graph: bool = False  # whether a call leaves a graph that can be kept, with a node that stands for it
    readings: tuple[str, ...] = ()  # how gradcli understood what the user's code returned, where that is not plain
    moved_in_place: tuple[str, ...] = ()
    """Inputs that forward reads from elsewhere than its arguments, so the caller's own tensors are changed in place."""
    compiles_shapes: bool = False  # whether another shape needs a compilation, slower than everything else
    overwritten: Set[int] = frozenset()  # places of active inputs whose gradient a further pass wrote into
    is_wrong_in_64_bits = False  # runs in a lower precision, the only one in which its gradient is right

    @property
    @abstractmethod
    def domain(self) -> Space:
        """One block for each active input, named after it."""

    @property
    @abstractmethod
    def codomain(self) -> Space:
        """One block for each differentiable output."""

    @property
    @abstractmethod
    def output_numbers(self) -> tuple[int, ...]:
        """The position of each block of `codomain` among forward's outputs."""

    @property
    @abstractmethod
    def point(self) -> FloatArray:
        """The active inputs, flat, shape (domain.size,)."""

    @property
    def first_order_only(self) -> str | None:
        """Why higher orders are not offered; None where they are."""
        return "backward is marked once_differentiable" if self.info.once_differentiable else None

    @property
    def insists_on(self) -> str | None:
        """The precision of the whole check where that is not 64 bits; else None."""
        return None

    @property
    def rounding(self) -> float:
        """The unit roundoff of the precision of the check."""
        return 2.0**-53 if self.insists_on is None else unit_roundoff(self.insists_on)

    @property
    def roundoff_inside(self) -> float:
        """The unit roundoff of the lowest precision that the user's code computes in, as far as that is known."""
        return 2.0**-53

    @property
    def low_dtypes(self) -> tuple[str, ...]:
        """The dtypes of tensors that were given in a lower precision than 64 bits."""
        return ()

    def protect_saved(self) -> "Subject":
        """Itself; from now on backward gets copies of the saved tensors, which it is allowed to overwrite."""
        return self

    def in_given_precision(self, dtype: str = "", *, throughout: bool = False) -> "Subject | None":  # noqa: ARG002
        """The same in the arguments' own precision, for all checks if `throughout`; for 64 bits in `dtype`, or None."""
        return None

    @abstractmethod
    def session(self, *, lazy: bool = False) -> AbstractContextManager[Session]:
        """A context for many calls: random generators are restored once, at its end.

        A `lazy` one does not seed them before each call: its user runs again what drew numbers (`Session.attempts`).
        """

    @abstractmethod
    def derivative_map(self, order: int) -> VectorMap:
        """The map whose derivative is checked at this order.

        Order 1 is forward itself: active inputs to differentiable outputs; its vjp is backward. Order 2 maps
        (inputs, cotangent) to the gradients that backward returns; its vjp is backward through backward. And so on.
        """

    @abstractmethod
    def body_map(self, order: int) -> VectorMap | None:
        """`derivative_map(order)` with the framework's own gradient of forward's body in place of backward.

        None if forward has no body that can run without the rule under test, or that body returns other values than
        forward, or no gradient flows through it.
        """

    @abstractmethod
    def base_point(self, order: int, seed: int) -> FloatArray:
        """A point of `derivative_map(order).domain`: the inputs, then seeded signed cotangents."""

    @abstractmethod
    def call(self) -> ForwardCall:
        """Run forward once on the arguments as given. Raises UserCodeError."""

    @property
    def first_call(self) -> ForwardCall:
        """The call that was made when the arguments were bound; a new call if that one was not kept."""
        return self.call()

    def called_again(self) -> tuple[NDArray[Any], ...]:
        """The outputs of another call on the arguments as given. Raises UserCodeError."""
        return self.call().outputs

    def is_alike_while(self, moved: AbstractContextManager[None]) -> bool:  # noqa: ARG002 - for those that override it
        """Whether another call in a context gives bit for bit what the first gives. Raises UserCodeError."""
        return False

    @abstractmethod
    def backward(self, cotangents: Sequence[NDArray[Any] | None]) -> tuple[NDArray[Any] | None, ...]:
        """Gradients of the active inputs through the framework, None where none arrives. Raises UserCodeError."""

    def backward_further(self, passes: Sequence[Pass]) -> tuple[Gradients, ...] | None:  # noqa: ARG002
        """Gradients of one backward pass after another through one graph, that of `raw_backward` if it left one.

        None if no graph can be kept, or forward accepts no call to be made before a pass. Raises UserCodeError.
        """
        return None

    def backward_reseeded(self, cotangents: Sequence[NDArray[Any] | None]) -> tuple[Gradients, Gradients] | None:  # noqa: ARG002
        """Gradients of two passes through one graph, the second with the random generators set to another seed.

        None if no random numbers were drawn so far, or no graph can be kept. Raises UserCodeError if a pass raises.
        """
        return None

    def backward_tracking(self, positions: Sequence[int], cotangents: Sequence[NDArray[Any]]) -> Gradients | None:
        """As `backward`, where only the inputs at `positions` require a gradient; None where other outputs carry it."""
        arguments = [
            replace(a, requires_grad=i in positions) if a.is_tensor else a for i, a in enumerate(self.arguments)
        ]
        other = self.rebind(arguments)
        return other.backward(cotangents) if other.output_numbers == self.output_numbers else None

    @abstractmethod
    def backward_laid_out(
        self, cotangents: Sequence[NDArray[Any] | None], *, inputs: Layout, outputs: Layout
    ) -> tuple[NDArray[Any] | None, ...]:
        """As `backward`, with active inputs and cotangents laid out in memory as asked. Raises UserCodeError."""

    def laid_out(self, inputs: Layout) -> "Subject | None":  # noqa: ARG002 - for those that override it
        """The same Function with active inputs in this memory layout; None if the backend cannot do that."""
        return None

    @abstractmethod
    def call_at(
        self, arguments: Sequence[Argument], seeds: Seeds | None = None, beside: Values | None = None
    ) -> CallResult:
        """One call at other arguments (and values `beside`), and a backward pass for `seeds`. Raises UserCodeError."""

    def call_sharing(
        self,
        arguments: Sequence[Argument],  # noqa: ARG002 - for those that override it
        first: int,  # noqa: ARG002 - as above
        second: int,  # noqa: ARG002 - as above
        seeds: Seeds,  # noqa: ARG002 - as above
    ) -> CallResult | None:
        """As `call_at`, with the tensor at position `first` passed at `second` too, in its place; None where it cannot.

        The input at `second` is not active then: its gradient is part of the gradient of the first.
        """
        return None

    def leaked_graph(self) -> LeakedGraph | None:
        """What is left of a call's graph after its result was deleted; None if nothing is. Raises UserCodeError."""
        return None

    @property
    def is_random(self) -> bool:
        """Whether forward draws random numbers."""
        return False

    def pushed(self, tangents: Sequence[NDArray[Any]]) -> tuple[NDArray[Any] | None, ...] | None:  # noqa: ARG002
        """Tangents of the outputs through the Function's own jvp, None for an output without; None if it has no jvp.

        Raises UserCodeError.
        """
        return None

    def batched(
        self,
        stacked: Sequence[NDArray[Any]],  # noqa: ARG002 - for those that override it
        places: Sequence[int | None],  # noqa: ARG002 - as above
        cotangents: Sequence[NDArray[Any]],  # noqa: ARG002 - as above
    ) -> Batched | None:
        """A call under vmap over the axes `places` of the active inputs; None without a rule. Raises UserCodeError."""
        return None

    def otherwise_compiled(self, cotangents: Sequence[NDArray[Any]]) -> Compiled | None:  # noqa: ARG002
        """A call in the other mode (compiled or plain) than the target's; None if impossible. Raises UserCodeError."""
        return None

    @abstractmethod
    def raw_backward(self, cotangents: Sequence[NDArray[Any] | None], *, again: bool = False) -> RawBackward:
        """Call the user's backward directly, and return what it returns; `again` repeats the last such call faster."""

    @abstractmethod
    def backward_interleaved(
        self, cotangents: Sequence[NDArray[Any] | None], sets: Sequence[OtherCalls]
    ) -> Iterator[Gradients | None]:
        """Gradients after one forward, once for each of `sets`, with another call of forward before each backward pass.

        None where forward accepts no call of the set. All passes go through one graph where there is one. Raises
        UserCodeError where backward raises.
        """

    @abstractmethod
    def backward_twice(self, cotangents: Sequence[NDArray[Any] | None]) -> tuple[Gradients, Gradients]:
        """Gradients of two backward passes through one graph, kept after the first. Raises UserCodeError."""

    @abstractmethod
    def rebind(self, arguments: Sequence[Argument]) -> "Subject":
        """The same Function at other arguments."""
