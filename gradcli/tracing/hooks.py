"""The user's hooks, each called through a stand-in that records what it received, returned and changed."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from gradcli.errors import counted, message_of
from gradcli.traces import ArraySummary, SourceSite
from gradcli.tracing.memory.history import History
from gradcli.tracing.reading import Lens, Snapshot, as_tuple, common_factor, dtype_name, requires_grad
from gradcli.tracing.sites import is_users_function, name_of_function, site_of_function

Snapshots = tuple[Snapshot | None, ...]

# Which argument holds what the hook may change, and which the gradients it only sees.
_SUBJECT = {
    "tensor": 0,
    "post-accumulate": 0,
    "node-pre": 0,
    "node-post": 0,
    "multi-grad": 0,
    "module-forward-pre": 1,
    "module-forward": -1,
    "module-backward-pre": 1,
    "module-full": 1,
    "module-legacy": 1,
    "pack": 0,
    "unpack": 0,
}
_GRAD_OUTPUT = {"node-post": 1, "module-full": 2, "module-legacy": 2}
_AT_THE_RUNNING_NODE = frozenset({"node-post", "module-full", "module-legacy", "module-backward-pre"})
_OF_FORWARD = ("module-forward-pre", "module-forward")
_REPLIES_IN_TUPLE = frozenset({"node-pre", "node-post", "module-legacy"})
_REPLIES_BY_NUMBER = frozenset({"module-full", "module-backward-pre"})


@final
@dataclass(slots=True, kw_only=True)
class RawCall:
    """One call of a hook while the trace runs; owners are still objects, and get names at the end."""

    hook: "HookStandIn"
    before: tuple[ArraySummary | None, ...]
    after: tuple[ArraySummary | None, ...]
    grad_output: tuple[ArraySummary | None, ...]
    node: int | None
    last_node: str | None
    pass_number: int
    inside: int | None = None
    returned: bool = False
    effect: str = "unchanged"
    factor: float | None = None
    changed_slots: tuple[int, ...] = ()
    problem: str | None = None


@final
class HookStandIn:
    """Called in place of a user's hook: calls it, and records the call in the log while there is one.

    It has slots because `functools.update_wrapper` copies a `__dict__` into the wrapper of a wrapper.
    """

    __slots__ = (
        "__name__",
        "__weakref__",
        "born_after",
        "born_during",
        "calls",
        "function",
        "hook",
        "kind",
        "last_node",
        "log",
        "node_name",
        "output",
        "owner_class",
        "owner_reference",
        "place",
        "registered_at",
        "removed",
        "removed_at",
        "sequence",
        "site",
    )

    def __init__(self, hook: Callable[..., Any], log: "HookLog | None", kind: str, owner: object) -> None:
        self.hook = hook
        self.log = log
        self.kind = kind
        self.owner_reference = _reference(owner)
        self.owner_class = type(owner).__name__
        self.sequence: int | None = None
        self.node_name: str | None = None
        self.output = 0
        self.last_node: str | None = None
        self.site: SourceSite | None = site_of_function(hook)
        self.function = name_of_function(hook)
        self.calls = 0
        self.born_after = 0
        self.born_during = False
        self.place: tuple[Any, int] | None = None
        self.removed = False
        self.registered_at: SourceSite | None = None
        self.removed_at: SourceSite | None = None
        name = getattr(hook, "__name__", None)
        if name is not None:
            self.__name__ = name  # frameworks name the hook in their messages

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """What the hook itself returns or raises."""
        if self.log is None:
            return self.hook(*args, **keywords)
        return self.log.call(self, args, keywords)

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[[Any], Any], tuple[Any]]:
        """Copies and pickles the hook itself."""
        return _itself, (self.hook,)

    @property
    def owner(self) -> Any:
        """The tensor, module or node it was registered on, or None when that is gone."""
        return self.owner_reference()

    def note_absence(self) -> None:
        """Note it if the hook was removed from its dict without its handle."""
        if self.place is not None and self.place[1] not in self.place[0]:
            self.removed = True


@final
@dataclass(slots=True)
class HookLog:
    """All stand-ins of a trace and their calls in order; `current` is the graph node that is being run.

    `inner_passes` counts the passes under way inside the recorded one,
    `packing` the contexts entered in which tensors are saved through hooks, the user's or a library's; `mode` is
    what shows that a hook sets `.grad` during a pass, from which a framework takes its modes.
    """

    lens: Lens
    calls: list[RawCall] = field(default_factory=list)
    stand_ins: list[HookStandIn] = field(default_factory=list)
    by_sequence: dict[int, int] = field(default_factory=dict)
    leaf_nodes: dict[int, int] = field(default_factory=dict)
    by_handle: dict[int, HookStandIn] = field(default_factory=dict)
    current: int | None = None
    pass_number: int = 0
    running: bool = False
    inner_passes: int = 0
    packing: int = 0
    has_packed: bool = False
    history: History = field(default_factory=History)
    mode: Callable[[], AbstractContextManager[Any]] = nullcontext

    def changed_in(self, number: int) -> bool:
        """Whether a hook changed a gradient in a pass."""
        return any(raw.changed_slots and raw.pass_number == number for raw in reversed(self.calls))

    @contextmanager
    def inner_pass(self) -> Iterator[None]:
        """A pass inside the recorded one."""
        self.inner_passes += 1
        try:
            yield
        finally:
            self.inner_passes -= 1

    def stand_in(self, hook: object, kind: str, owner: object, site: SourceSite | None = None) -> HookStandIn | None:
        """A stand-in for a user's hook; None for a framework's own, and for what is not a function."""
        if not callable(hook) or isinstance(hook, HookStandIn) or not is_users_function(hook):
            return None
        made = HookStandIn(hook, self, kind, owner)
        made.site, made.registered_at = made.site or site, site
        self.stand_ins.append(made)
        return made

    def registered(self, made: HookStandIn) -> None:
        """Note when the user registered a hook: after how many passes, and whether during one."""
        made.born_after, made.born_during = self.pass_number, self.running

    def close(self) -> None:
        """Stop recording: stand-ins that a graph still holds only pass calls through."""
        for stand_in in self.stand_ins:
            stand_in.log = None
            stand_in.place = None
        self.stand_ins = []
        self.calls, self.by_handle, self.history = [], {}, History()

    def removing(self, handle: Any, site: SourceSite | None) -> bool:
        """Note that a handle's hook is being removed; False if the hook is not known.

        If a backward pass ran before the removal and the hook did not fire in it, the removal is not why it did not
        fire.
        """
        entries = handle.hooks_dict_ref() if hasattr(handle, "hooks_dict_ref") else None
        entry = None if entries is None else entries.get(handle.id)
        made = entry if isinstance(entry, HookStandIn) else self.by_handle.get(getattr(handle, "id", -1))
        if made is not None and not made.removed:
            made.removed_at = site
            made.removed = made.born_after == self.pass_number or made.kind.startswith("module")
        return made is not None

    def is_in_graph(self, hook: HookStandIn) -> bool:
        """Whether the last pass ran through a graph that the hook's owner is part of."""
        if hook.kind not in ("tensor", "post-accumulate"):
            return True
        if hook.sequence is not None:
            return hook.sequence in self.by_sequence
        return id(hook.owner) in self.leaf_nodes

    def call(self, hook: HookStandIn, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call the user's hook and record what it received and did."""
        hook.calls += 1
        subject = _argument(args, _SUBJECT[hook.kind])
        before = self._snapshots(hook.kind, subject)
        tracked = self._tracked(hook.kind, subject)
        held = subject.grad if hook.kind == "post-accumulate" else None
        grads = _argument(args, _GRAD_OUTPUT[hook.kind]) if hook.kind in _GRAD_OUTPUT else ()
        record = RawCall(
            hook=hook,
            before=_summaries(before),
            after=_summaries(before),
            grad_output=_summaries(self._snapshots("", grads)),
            node=None if self.inner_passes else self._node_of(hook),
            inside=self._around(hook),
            last_node=hook.last_node,
            pass_number=self.pass_number,
        )
        self.calls.append(record)
        try:
            with self.mode() if self.running else nullcontext():
                reply = hook.hook(*args, **keywords)
        except Exception as error:
            if hook.kind == "post-accumulate":
                self._conclude(record, before, subject, None, held)
            record.problem = f"raised {type(error).__name__}: {message_of(error)}"
            record.effect = _with_problem(record)
            raise
        self._conclude(record, before, subject, reply, held)
        after = self._tracked(hook.kind, subject if reply is None else reply)
        if any(before and not now for before, now in zip(tracked, after, strict=False)):
            record.effect = "cut the graph" if record.effect == "unchanged" else f"{record.effect}; cut the graph"
        record.effect = _with_problem(record)
        return reply

    def _tracked(self, kind: str, value: Any) -> tuple[bool, ...]:
        """Through which tensors of a hook of forward gradients flow, if gradients are recorded there."""
        if kind not in _OF_FORWARD or not self.lens.namespace.is_grad_enabled():
            return ()
        if kind == "module-forward-pre":
            value = _positional(value)
        return tuple(self.lens.is_tensor(held) and requires_grad(held) for held in as_tuple(value))

    def _node_of(self, hook: HookStandIn) -> int | None:
        if hook.sequence is not None:
            return self.by_sequence.get(hook.sequence)
        if hook.kind in ("tensor", "post-accumulate"):
            return self.leaf_nodes.get(id(hook.owner))
        return self.current if hook.kind in _AT_THE_RUNNING_NODE else None

    def _around(self, hook: HookStandIn) -> int | None:
        """The node during which a pass inside the recorded one calls a hook that may change what that node returns."""
        is_of_a_leaf = hook.kind in ("tensor", "post-accumulate") and hook.sequence is None
        return self.current if self.inner_passes and not is_of_a_leaf else None

    def _snapshots(self, kind: str, value: Any) -> Snapshots:
        if kind == "post-accumulate":
            value = value.grad
        return tuple(self.lens.snapshot(v) if self.lens.is_tensor(v) else None for v in as_tuple(value))

    def _conclude(self, record: RawCall, before: Snapshots, subject: Any, reply: Any, held: Any) -> None:
        """Record what a hook did: to its arguments in place, to the `.grad` that was `held`, or by its return value."""
        kind = record.hook.kind
        record.returned = reply is not None
        if kind == "module-forward-pre":
            reply = _positional(reply)
        replaces = record.returned and kind not in ("multi-grad", "post-accumulate")
        after = self._snapshots("" if replaces else kind, reply if replaces else subject)
        record.after = _summaries(after)
        record.problem = _problem(self.lens, kind, before, reply)
        if kind in ("pack", "unpack"):
            record.effect = f"returned {type(reply).__name__}"
        if (record.problem is not None and kind != "post-accumulate") or kind in ("pack", "unpack"):
            return
        record.changed_slots = tuple(
            slot for slot, pair in enumerate(zip(before, after, strict=False)) if _differ(*pair)
        )
        record.factor = _factor(before, after, record.changed_slots)
        if record.changed_slots or len(before) != len(after):
            same = all(r is s for r, s in zip(as_tuple(reply), as_tuple(subject), strict=False))
            record.effect = "changed the gradient in place" if same or not replaces else "returned a new value"
            record.effect += "" if record.factor is None else f": {factor_text(record.factor)}"
        if kind == "post-accumulate" and subject.grad is not held:
            put = "another tensor" if record.factor is None else f"another tensor: {factor_text(record.factor)}"
            record.effect = f"set .grad to {'None' if subject.grad is None else put}"


def _with_problem(record: RawCall) -> str:
    """The effect, then the problem: `.grad` stays as a post-accumulate hook left it, whatever that returned."""
    if record.problem is None:
        return record.effect
    return record.problem if record.effect == "unchanged" else f"{record.effect}; {record.problem}"


def _positional(reply: Any) -> Any:
    """The arguments that a forward pre-hook returned; one with keywords returns (args, kwargs)."""
    return reply[0] if isinstance(reply, tuple) and len(reply) == 2 and isinstance(reply[1], dict) else reply


def _argument(args: tuple[Any, ...], place: int) -> Any:
    return args[place] if -len(args) <= place < len(args) else ()


def _summaries(snapshots: Snapshots) -> tuple[ArraySummary | None, ...]:
    return tuple(None if snapshot is None else snapshot.summary for snapshot in snapshots)


def factor_text(factor: float) -> str:
    """A factor as shown in reports: `10x`, `0.5x`."""
    return f"{factor:.6g}x"


def _differ(before: Snapshot | None, after: Snapshot | None) -> bool:
    if before is None or after is None:
        return before is not after
    if before.array is None or after.array is None:
        return before.summary != after.summary
    same = before.array.dtype == after.array.dtype and before.array.shape == after.array.shape
    return not (same and before.array.tobytes() == after.array.tobytes())


def _factor(before: Snapshots, after: Snapshots, changed: tuple[int, ...]) -> float | None:
    """The one number by which all changed gradients were multiplied."""
    factors = set()
    for old, new in ((before[slot], after[slot]) for slot in changed):
        if old is None or new is None or old.array is None or new.array is None:
            return None
        factors.add(common_factor(old.array, new.array))
    return next(iter(factors)) if len(factors) == 1 else _close(factors)


def _close(factors: set[float | None]) -> float | None:
    known = [f for f in factors if f is not None]
    if not known or len(known) != len(factors):
        return None
    return known[0] if np.allclose(known, known[0], rtol=1e-12, atol=0) else None


def _problem(lens: Lens, kind: str, before: Snapshots, reply: Any) -> str | None:
    """What is wrong with a hook's return value, before the framework raises for it."""
    if reply is None or kind in ("module-forward", "module-forward-pre", "multi-grad", "pack", "unpack"):
        return None
    expected = _expected(lens, kind, len(before), reply)
    if expected is not None:
        return f"returned {type(reply).__name__}; {expected} was expected"
    return _problem_of_gradients(lens, before, as_tuple(reply))


def _expected(lens: Lens, kind: str, count: int, reply: Any) -> str | None:
    """What a return value of the wrong type should have been."""
    if kind == "post-accumulate":
        return "None (a post-accumulate hook changes .grad in place)"
    if kind == "tensor" and not lens.is_tensor(reply):
        return "a tensor, or None,"
    bare = lens.is_tensor(reply) and list(reply.shape[:1]) != [count]
    if (kind in _REPLIES_IN_TUPLE and not isinstance(reply, tuple)) or (kind in _REPLIES_BY_NUMBER and bare):
        return f"a tuple of {counted(count, 'gradient')}, or None,"
    return None


def _problem_of_gradients(lens: Lens, before: Snapshots, replies: tuple[Any, ...]) -> str | None:
    if len(replies) != len(before):
        return f"returned {counted(len(replies), 'gradient')}, expected {len(before)}"
    for slot, (old, new) in enumerate(zip(before, replies, strict=True)):
        if old is None or not lens.is_tensor(new):
            continue
        gradient = f"returned a gradient{'' if len(before) == 1 else f' number {slot}'} of"
        if tuple(new.shape) != old.summary.shape:
            return f"{gradient} shape {list(new.shape)} where {list(old.summary.shape)} was expected"
        if dtype_name(new.dtype) != old.summary.dtype:
            return f"{gradient} dtype {dtype_name(new.dtype)} where {old.summary.dtype} was expected"
    return None


def _reference(owner: object) -> Callable[[], Any]:
    try:
        return weakref.ref(owner)
    except TypeError:  # a graph node of a compiled framework has no weak references
        return lambda: None


def _itself(hook: Any) -> Any:
    return hook
