"""The operations of a forward pass in order: their inputs, their outputs, and whether gradients follow them."""

import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from types import FrameType
from typing import Any, final

import numpy as np

from gradcli.frozen import dataclass
from gradcli.traces import SourceSite
from gradcli.tracing.captures import Captures, copied
from gradcli.tracing.modes import Mode, ModeWatch
from gradcli.tracing.origins.calculations import Calculation, calculation
from gradcli.tracing.reading import Lens, dtype_name, maker_of
from gradcli.tracing.sites import site_of_frame, users_frame

ESCAPES = frozenset({"item", "tolist", "numpy", "__array__", "__float__", "__int__", "__complex__"})
"""Methods that give Python's or NumPy's numbers."""
DATA_SET = ".data ="
GRADIENTS = "autograd.grad"
NEW_LEAVES = ("Parameter", "deepcopy")
"""What makes another leaf of a tensor."""
_OPERATORS_IN_PLACE = frozenset({"iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"})
NO_OPERATIONS = frozenset({"requires_grad_", "retain_grad", "register_hook", "backward"})
_MOST = 400_000
_BAD = 4096

Copies = tuple[tuple[Any, ...], dict[str, Any]]


@final
class Unprofiled:
    """A context for the trace's own steps, during which the slow profile function that notes locals is off."""

    __slots__ = ("_profile",)

    def __enter__(self) -> None:
        self._profile = sys.getprofile()
        if callable(self._profile):  # not a profiler in C, which could not be restored from here
            sys.setprofile(None)

    def __exit__(self, *_: object) -> None:
        if callable(self._profile):
            sys.setprofile(self._profile)


@final
@dataclass(slots=True)
class Operation:
    """One call. Values are numbered; the same tensor has a new number after each operation that writes to it.

    Nobody changes it. It is not frozen, because there are thousands, and making a frozen one takes three times as long.

    `tracked` says of each input, `tracked_out` of each output, whether gradients follow it; `dtype` is that of the
    first output ("" for a number). `last_node` numbers the newest graph node when the call ended, `mode`
    what had switched recording off, `version` what an operation in place made the version of its first target, `memory`
    where its targets lie, `function` the
    custom Function that was applied, `calculation` how an output that is not finite came about, `inner` what
    the outputs of a Function were to the operations in its forward, `captured` the values with gradients from
    elsewhere that these were computed from, and that the Function was not given.
    """

    name: str
    site: SourceSite | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tracked: tuple[bool, ...]
    tracked_out: tuple[bool, ...]
    dtype: str
    last_node: int
    mode: Mode | None = None
    version: int | None = None
    memory: tuple[object, ...] = ()
    shape: tuple[int, ...] = ()
    function: Any = None
    calculation: Calculation | None = None
    inner: tuple[int, ...] = ()
    captured: tuple[int, ...] = ()


@final
@dataclass(slots=True)
class _Known:
    """An object with the numbers of the values that it has held, in order."""

    reference: Callable[[], Any]
    numbers: list[int]

    @property
    def latest(self) -> int:
        """The number of its present value."""
        return self.numbers[-1]


@final
@dataclass(slots=True)
class OperationLog:
    """Every operation of the traced program on tensors while `listening`; `mode` is the context that records them."""

    lens: Lens
    operations: list[Operation] = field(default_factory=list)
    listening: bool = False
    mode: Callable[[], AbstractContextManager[Any]] = nullcontext
    captures: Captures | None = None
    running_module: Callable[[], str | None] = lambda: None
    _resumed: AbstractContextManager[Any] | None = None
    _entered: AbstractContextManager[Any] | None = None
    modes: ModeWatch = field(init=False)
    _objects: dict[int, _Known] = field(default_factory=dict)
    _values: int = 0
    _bad: int = 0
    data: dict[int, Calculation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.modes = ModeWatch(self.lens.namespace)

    def run(
        self,
        name: str,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        frame: FrameType | None,
        function: Any = None,
    ) -> Any:
        """Call, and record what it did; it returns or raises what the call does."""
        name = _plain(name)
        if name in NO_OPERATIONS or len(self.operations) >= _MOST:
            return call(*args, **keywords)
        with Unprofiled():
            given, inputs, tracked, kept = self._taken(name, args, keywords, function)
            begin = len(self.operations)
        result = call(*args, **keywords)
        with Unprofiled():
            self._keep(kept, name, call, result, function, frame)
            self._note(name, args, keywords, given, inputs, tracked, result, frame, function, begin)
        return result

    def _taken(
        self, name: str, args: tuple[Any, ...], keywords: dict[str, Any], function: Any
    ) -> tuple[list[Any], tuple[int, ...], tuple[bool, ...], Copies | None]:
        """The inputs of a call: its tensors, their values' numbers, which are tracked, and copies."""
        given = list(_tensors(self.lens, args[:1] if name == "deepcopy" else args, keywords))
        numbers = [value for value in args if type(value) is float and self._known(value) is not None]
        tracked = tuple([tensor.requires_grad for tensor in given] + [False] * len(numbers))
        inputs = tuple(map(self.value, [*given, *numbers]))
        return given, inputs, tracked, self._copies(name, args, keywords, tracked, function)

    def _keep(
        self, kept: Copies | None, name: str, call: Callable[..., Any], result: Any, function: Any, frame: Any
    ) -> None:
        """Keep a call for its check, if it recorded a node."""
        if kept is None or self.captures is None:
            return
        tensors = list(self.lens.tensors_in(result))
        made = next((tensor for tensor in tensors if maker_of(tensor) is not None), None)
        if made is not None:
            where, outputs = self.running_module(), self.lens.summarise_each(tensors)
            self.captures.add(name, call, kept, function, frame, where, _sequence(made), outputs)

    def _copies(
        self, name: str, args: tuple[Any, ...], keywords: dict[str, Any], tracked: tuple[bool, ...], function: Any
    ) -> Copies | None:
        """Copies of the arguments of a call that is to be checked later; None for any other."""
        if self.captures is None or not any(tracked) or not self.lens.namespace.is_grad_enabled():
            return None
        if not self.captures.wants(name, function):
            return None
        return tuple(copied(self.lens, value) for value in args), copied(self.lens, keywords)

    def _note(
        self,
        name: str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        given: list[Any],
        inputs: tuple[int, ...],
        tracked: tuple[bool, ...],
        result: Any,
        frame: FrameType | None,
        function: Any,
        begin: int,
    ) -> None:
        made = list(_results(self.lens, name, args, keywords, result)) if name not in ESCAPES else []
        in_place = _in_place(name, keywords) or (bool(made) and _asked_in_place(args, keywords) and made[0] is given[0])
        inner: tuple[int, ...] = ()
        if name in ESCAPES:
            outputs: tuple[int, ...] = (self._renewed(result),) if type(result) in (float, np.ndarray) else ()
        else:
            known = [self._known(tensor) for tensor in made] if function is not None else []
            inner = tuple([entry.latest for entry in known if entry is not None])
            fresh = [tensor for tensor in made if in_place or function is not None or not _among(tensor, given)]
            if not fresh:
                return
            outputs, made = tuple(map(self._renewed, fresh)), fresh
        finite = None if name in ESCAPES else self._calculated(name, args, keywords, made, inputs, in_place)
        self.operations.append(
            Operation(
                name=name,
                site=site_of_frame(users_frame(frame)),
                inputs=inputs,
                outputs=outputs,
                tracked=tracked,
                tracked_out=() if name == DATA_SET else tuple([maker_of(tensor) is not None for tensor in made]),
                dtype=dtype_name(made[0].dtype) if made else "",
                last_node=max([self._last_node(), *[_sequence(tensor) for tensor in made]]),
                mode=self.modes.now(),
                version=_version(made[0]) if in_place and made else None,
                memory=tuple([self.lens.storage(tensor)[0] for tensor in made]) if in_place else (),
                shape=_shape(made[0]) if made else (),
                function=function,
                calculation=finite,
                inner=inner,
                captured=self._captured(begin, inner, inputs) if inner else (),
            )
        )

    def _captured(self, begin: int, inner: tuple[int, ...], inputs: tuple[int, ...]) -> tuple[int, ...]:
        """The values with gradients that operations since `begin` computed `inner` from, other than these inputs."""
        behind, found = set(inner), dict[int, None]()
        for operation in reversed(self.operations[begin:]):
            if not behind.isdisjoint(operation.outputs):
                behind.update(operation.inputs)
                found |= dict.fromkeys(
                    v for v, tracked in zip(operation.inputs, operation.tracked, strict=True) if tracked
                )
                found |= dict.fromkeys(operation.captured)
        made = {value for operation in self.operations[begin:] for value in operation.outputs}
        return tuple([value for value in found if value not in made and value not in inputs])

    def _last_node(self) -> int:
        return self.operations[-1].last_node if self.operations else -1

    def enter(self) -> None:
        """Enter the mode that the program runs in."""
        self._entered = self.mode()
        self._entered.__enter__()

    def leave(self) -> None:
        """Leave the mode: at the end, or while a compiler runs, which would compile the trace as well."""
        if self._entered is not None:
            self._entered.__exit__(None, None, None)
            self._entered = None

    def resume(self) -> None:
        """Record the operations of a user's own backward, during a pass."""
        self.pause()
        self._resumed = self.mode()
        self._resumed.__enter__()
        self.listening = True

    def pause(self) -> None:
        """Stop recording."""
        self.listening = False
        if self._resumed is not None:
            self._resumed.__exit__(None, None, None)
            self._resumed = None

    def forget_pass(self) -> None:
        """Stop recording after a pass. A mode that a raising node left on was undone with the node's own state."""
        self.listening = False
        self._resumed = None

    # --- values
    def value(self, found: Any) -> int:
        """The number of the value that a tensor (or a number read from one) holds now."""
        known = self._known(found)
        return self._renewed(found) if known is None else known.latest

    def histories(self) -> list[tuple[Any, list[int]]]:
        """Every tensor that an operation used or made, None if it is gone, with the numbers of its values."""
        return [(known.reference(), known.numbers) for known in self._objects.values()]

    def values(self, found: Any) -> tuple[int, ...]:
        """The numbers of all values that a tensor has held since an operation first used it."""
        known = self._known(found)
        return () if known is None else tuple(known.numbers)

    def _known(self, found: Any) -> _Known | None:
        known = self._objects.get(id(found))
        return known if known is not None and known.reference() is found else None

    def _renewed(self, found: Any) -> int:
        number, self._values = self._values, self._values + 1
        known = self._known(found)
        if known is not None:
            known.numbers.append(number)
        else:
            self._objects[id(found)] = _Known(_reference(found), [number])
        return number

    # --- numbers that are not finite
    def _calculated(
        self,
        name: str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        made: Sequence[Any],
        inputs: tuple[int, ...],
        in_place: bool,
    ) -> Calculation | None:
        """How a non-finite output was calculated; None if all outputs are finite, or too many before were not."""
        if self._bad >= _BAD:
            return None
        bad = next((tensor for tensor in made if self.lens.is_not_finite(tensor)), None)
        if bad is None:
            return None
        self._bad += 1
        found = calculation(self.lens, name, args, keywords, bad, made[0] if in_place else None)
        for number, value in zip(inputs, _tensors(self.lens, args, keywords), strict=False):
            if not any(value is tensor for tensor in made) and number not in self.data:
                held = self.lens.non_finite_entry(value)
                if held is not None:
                    self.data[number] = Calculation(name="", entry=held[0], value=held[1], operands=())
        return found

    def clear(self) -> None:
        """Release everything."""
        self.listening = False
        self.operations, self._objects, self.data = [], {}, {}


def _tensors(lens: Lens, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    kind = lens.tensor_type
    for value in args:
        if isinstance(value, kind):
            yield value
        elif type(value) in (tuple, list, dict):
            yield from lens.tensors_in(value, depth=2)
    for value in keywords.values():
        yield from lens.tensors_in(value, depth=2)


def _results(lens: Lens, name: str, args: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> Any:
    """The tensors that an operation returned or wrote to."""
    if name in ("setitem", DATA_SET):
        return [args[0]]
    if name.startswith("_foreach_") and result is None:
        return list(lens.tensors_in(args[0], depth=1)) if args else []
    if keywords.get("out") is not None:
        return list(lens.tensors_in(keywords["out"], depth=1))
    return list(lens.tensors_in(result, depth=2))


def _plain(name: str) -> str:
    """The function's name for an operator's method: __gt__ as gt, __iadd__ as add_."""
    if name in ESCAPES or not (name.startswith("__") and name.endswith("__")):
        return name
    core = name[2:-2]
    core = f"{core[1:]}_" if core in _OPERATORS_IN_PLACE else core
    return core.replace("truediv", "div")


def _in_place(name: str, keywords: dict[str, Any]) -> bool:
    return name in ("setitem", DATA_SET) or name.endswith("_") or keywords.get("out") is not None


def _asked_in_place(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether a call may have the argument `inplace=True`, as `relu` and `dropout` have; it may be given by place."""
    return keywords.get("inplace") is True or any(value is True for value in args)


def _shape(tensor: Any) -> tuple[int, ...]:
    try:
        return tuple(tensor.shape)
    except RuntimeError:  # the parameter of a lazy module has none yet
        return ()


def _version(tensor: Any) -> int | None:
    try:
        return int(tensor._version)
    except RuntimeError:  # tensors made in inference mode have none
        return None


def _among(tensor: Any, given: Sequence[Any]) -> bool:
    return any(tensor is other for other in given)


def _sequence(tensor: Any) -> int:
    node = maker_of(tensor)
    return -1 if node is None else int(node._sequence_nr())


def _reference(found: Any) -> Callable[[], Any]:
    """A weak reference; Python numbers do not support one and are kept."""
    return (lambda: found) if type(found) is float else weakref.ref(found)
