"""Runs a forward and a backward pass once and records what happens, without changing it.

Written for the names that every framework with PyTorch's interface has; the namespace is an argument.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any, final

from gradcli.backends.attribution import users_traceback
from gradcli.errors import is_interrupt, message_of, presentable
from gradcli.garbage import seldom_collecting
from gradcli.traces import HookRegistration, SourceSite, TraceGraph
from gradcli.tracing.attributes import Patches
from gradcli.tracing.captures import Captures
from gradcli.tracing.elsewhere import Elsewhere
from gradcli.tracing.facts import Facts
from gradcli.tracing.gradients import GradientLog
from gradcli.tracing.graph import LEAF_NODE, GraphPass, backward_order
from gradcli.tracing.hooks import HookLog
from gradcli.tracing.interception import OperationWatch
from gradcli.tracing.lines import LineRecorder
from gradcli.tracing.memory.retained import hold
from gradcli.tracing.memory.saved import LedgerWatch
from gradcli.tracing.modules import ModuleWatch
from gradcli.tracing.names import NameTable
from gradcli.tracing.operations import GRADIENTS, OperationLog
from gradcli.tracing.reading import Lens, as_tuple, maker_of
from gradcli.tracing.registration import HookWatch
from gradcli.tracing.sites import of_user, site_of_frame, steps_to, users_frame
from gradcli.tracing.warning_sites import keep_attribution

_DEEPEST = 3
_COMPILED = "compile_wrapper"
Cotangent = Callable[[Any], Any]


def trace_call(
    namespace: ModuleType,
    run: Callable[[], object],
    *,
    named: Mapping[str, Any] | None = None,
    modules: Mapping[str, Any] | None = None,
    target: str,
    backend: str,
    cotangent: Cotangent | None = None,
    captures: Captures | None = None,
    memory: bool = False,
    others: Mapping[str, ModuleType] | None = None,
) -> TraceGraph:
    """Call `run` once, and backward from its result unless `run` called it, and record both.

    Args:
        namespace: the framework's top module.
        run: forward; what it returns may be a tensor, or a tuple, list or dict with tensors.
        named: tensors by the names that the report gives them.
        modules: modules whose parameters are to be named by their path.
        target: what is traced, for the report.
        backend: the framework's name, for the report.
        captures: where to keep the calls whose backward is to be checked; None for nowhere.
        memory: keep the ledger of the last pass.
        others: the top modules of other frameworks that the program may compute with instead, by their names.
        cotangent: makes the cotangents of the outputs, one after the other; ones where it is None. A first output of
            one entry gets none, as `loss.backward()` does.

    Returns:
        The record. What the user's code raised is in `error`, with what had been recorded until then; facts only:
        `gradcli.diagnosis.symptoms.rules` says what they mean.

    Raises:
        OtherFrameworkError: the program computes with another framework, and not with this one.
    """
    tracer = Tracer(Lens(namespace), cotangent, memory, Elsewhere(others or {}))
    tracer.operations.captures = captures
    for name, tensor in (named or {}).items():
        tracer.names.add(name, tensor, "input")
    for name, module in (modules or {}).items():
        tracer.names.add_module(name, module)
    try:
        with seldom_collecting():
            graph = tracer.trace(run, target, backend)
        if not graph.passes and next(tracer.lens.tensors_in(tracer.result), None) is None:
            tracer.elsewhere.require_none(tracer.result)
        return graph
    finally:
        tracer.close()


@final
@dataclass(slots=True)
class Tracer:
    """One trace: what it watches, and what it has recorded."""

    lens: Lens
    cotangent: Cotangent | None
    memory: bool = False
    elsewhere: Elsewhere = field(default_factory=lambda: Elsewhere({}))
    names: NameTable = field(init=False)
    log: HookLog = field(init=False)
    patches: Patches = field(default_factory=Patches)
    modules: ModuleWatch = field(init=False)
    hooks: HookWatch = field(init=False)
    operations: OperationLog = field(init=False)
    gradients: GradientLog = field(init=False)
    lines: LineRecorder = field(init=False)
    graph: GraphPass | None = None
    passes: int = 0
    pass_site: SourceSite | None = None
    fills_grad: bool = False
    keeps_graph: bool = False
    restricted_to: list[Any] | None = None
    compiled_depth: int = 0
    asked: dict[int, tuple[Any, SourceSite | None, bool]] = field(default_factory=dict)
    sought: list[Any] = field(default_factory=list)
    filled_inside: list[Any] = field(default_factory=list)
    phase: str = "forward"
    running_pass: bool = False
    error: tuple[str, str, str] | None = None
    result: Any = None
    roots: list[Any] = field(default_factory=list)
    home: FrameType | None = None

    def __post_init__(self) -> None:
        self.names = NameTable(self.lens)
        self.log = HookLog(self.lens)
        self.modules = ModuleWatch(self.lens, self.log, self.names, self.patches)
        self.hooks = HookWatch(self.lens, self.log, self.modules, self.patches)
        self.operations = OperationLog(self.lens, running_module=self.modules.running_path)
        self.gradients = GradientLog(self.lens, self.operations)
        self.lines = LineRecorder(self.lens.namespace, self.modules.running_path, lambda: self.log.packing > 0)

    def trace(self, run: Callable[[], object], target: str, backend: str) -> TraceGraph:
        """Run, and return what was recorded."""
        watch = OperationWatch(self.lens, self.operations, self.gradients, self.patches)
        with self.patches:
            self._install()
            try:
                with self.lines.recorded(self.patches), watch.installed(), self._locals_noted():
                    self.log.mode = self.operations.mode
                    self.patches.in_users_modules()
                    self.result = run()
                if not self.passes or self._is_untouched():
                    self._backward()
            except BaseException as caught:
                if is_interrupt(caught):
                    raise
                raised = presentable(caught)
                self.error = (f"{type(raised).__name__}: {message_of(raised)}", self.phase, users_traceback(raised))
            returned = self.lens.differentiable(self.result)
            if self.passes and not returned:
                self.result = self.roots
            registrations = self.modules.registrations()
            self._name_results()
        return self._recorded(self._facts(returned), tuple(registrations), target, backend)

    def _recorded(
        self, facts: Facts, registrations: tuple[HookRegistration, ...], target: str, backend: str
    ) -> TraceGraph:
        error, phase, text = self.error or (None, None, None)
        return TraceGraph(
            target=target,
            backend=backend,
            nodes=facts.nodes(),
            hooks=facts.hook_calls(),
            tensors=facts.fates(),
            result=facts.result(self.result),
            root_name=facts.root_name(self.result),
            error=error,
            error_phase=phase,
            error_traceback=text,
            registrations=(*registrations, *facts.registrations()),
            cuts=facts.cuts(self.result),
            earlier=facts.earlier(target, backend),
            passes=self.passes,
            pass_site=self.pass_site,
            pass_root=facts.pass_root(),
            pass_result=facts.pass_result(self.result),
            starts=() if self.graph is None else self.graph.starts,
            result_in_pass=facts.result_in_pass(),
            non_finite=facts.non_finite(self.result),
            version_conflict=facts.version_conflict(error),
            freed_at=None if error is None or self.graph is None else self.graph.freed_at(error),
            unseen_writes=facts.unseen_writes(),
            unregistered=tuple(dict.fromkeys(self.names.stray)),
            fills_grad=self.fills_grad,
            filled_inside=facts.names_of(self.filled_inside),
            result_requires_grad=bool(self.lens.differentiable(self.result)),
            memory=facts.ledger(),
        )

    def _facts(self, returned: list[Any]) -> Facts:
        return Facts(
            lens=self.lens,
            names=self.names,
            log=self.log,
            graph=self.graph,
            hooks=self.hooks,
            operations=self.operations,
            gradients=self.gradients,
            modules=self.modules,
            asked=self.asked,
            sought=self.sought,
            returned=returned,
            roots=self.roots,
            restricted_to=self.restricted_to,
            filled_inside=self.filled_inside,
        )

    def _name_results(self) -> None:
        """Name what the program returned "result", if it has no other name."""
        found = list(self.lens.tensors_in(self.result))
        for place, tensor in enumerate(found):
            self.names.add("result" if len(found) == 1 else f"result[{place}]", tensor, "result")

    def close(self) -> None:
        """Release everything that was watched: the nodes last, when no tensor holds them any more."""
        self.log.close()
        self.hooks.clear()
        self.operations.clear()
        self.gradients.clear()
        self.names.clear()
        self.modules.clear()
        self.result = self.home = None
        self.roots, self.asked, self.sought, self.restricted_to = [], {}, [], None
        self.filled_inside = []
        if self.graph is not None:
            self.graph.release()
            self.graph = None

    def _install(self) -> None:
        for entry in self.names.table():
            self.hooks.stand_in_for(entry.tensor)
        for _, module in list(self.names.modules.values()):
            self.modules.add(module)
        keep_attribution(self.patches)
        self.modules.install()
        self._watch_backward()
        self.hooks.install()

    def _watch_backward(self) -> None:
        autograd = self.lens.namespace.autograd
        self._watch_pass(self.lens.tensor_type, "backward", fills=True)
        self._watch_pass(autograd, "backward", fills=True)
        self._watch_pass(autograd, "grad", fills=False)
        self.elsewhere.install(self.patches, lambda: self.passes > 0)

    def _watch_pass(self, owner: Any, name: str, *, fills: bool) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def watched(roots: Any, *args: Any, **keywords: Any) -> Any:
            if self.running_pass:
                return self._inner_pass(lambda: original(roots, *args, **keywords), roots, keywords, fills=fills)
            recorded = bool(keywords.get("create_graph"))
            self.keeps_graph = bool(keywords.get("retain_graph", recorded))
            only = keywords.get("inputs") if fills else None
            self.restricted_to = None if only is None else list(self.lens.tensors_in(only))
            if not fills:
                self.sought += self.lens.tensors_in(args[0] if args else keywords.get("inputs"))
            caller, noted = sys._getframe(1), self.operations.listening and not fills
            with self._pass(list(self.lens.tensors_in(roots)), caller, fills=fills, recorded=recorded):
                if noted:
                    return self.operations.run(GRADIENTS, original, (roots, *args), keywords, caller)
                return original(roots, *args, **keywords)

        self.patches.everywhere(owner, name, watched)

    def _inner_pass(self, run: Callable[[], Any], roots: Any, keywords: dict[str, Any], *, fills: bool) -> Any:
        """A pass inside the one that is watched, as a reentrant checkpoint runs: only what it fills is noted.

        From the same roots it is the watched call itself: `Tensor.backward` calls `autograd.backward`.
        """
        given = list(self.lens.tensors_in(roots))
        if set(map(id, given)) == set(map(id, self.roots)):
            return run()
        if fills:
            only = keywords.get("inputs")
            made = [node for tensor in given if (node := maker_of(tensor)) is not None]
            leaves = [node.variable for node in backward_order(made) if type(node).__name__ == LEAF_NODE]
            self.filled_inside += leaves if only is None else self.lens.tensors_in(only)
        with self.log.inner_pass():
            return run()

    @contextmanager
    def _pass(self, roots: list[Any], caller: FrameType, *, fills: bool, recorded: bool) -> Iterator[None]:
        """Watch one backward pass; `caller` and the user's frames outside it name tensors.

        Where the pass itself makes nodes, their lines are `recorded`.
        """
        self._note_frames(caller)
        self.pass_site = site_of_frame(users_frame(caller))
        self.passes += 1
        self.fills_grad = self.fills_grad or fills
        self.phase, self.running_pass = "backward", True
        listening, self.operations.listening = self.operations.listening, False
        self.roots = roots
        if self.graph is not None:
            self.graph.release()
        unknown = self.log.has_packed and self.lines.taken_over
        self.graph = GraphPass(self.lens, self.log, self.operations, self.pass_site, self.keeps_graph, packed=unknown)
        if self.memory:
            self.graph.ledger = LedgerWatch(self.lens, retained=self.keeps_graph)
        with nullcontext() if recorded else self.lines.paused():
            try:
                self.graph.begin(roots, self.names.data() if self.memory else ())
                leaves = [record.variable for record in self.graph.records if record.variable is not None]
                if fills:
                    self.gradients.begin(leaves)
                else:
                    self.asked |= {id(leaf): (leaf, self.pass_site, recorded) for leaf in leaves}
                for tensor in [*leaves, *(entry.tensor for entry in self.names.table())]:
                    self.hooks.stand_in_for(tensor)
                yield
                if self.graph.ledger is not None:
                    hold(self.graph.ledger, self.graph.records, self.lens, self._frames(caller))
            finally:
                if fills:
                    self.gradients.filled(r.variable for r in self.graph.records if r.variable is not None)
                self.graph.end()
                self.running_pass = False
                self.operations.listening = listening
        self.phase = "forward"

    def _frames(self, frame: FrameType | None) -> list[FrameType]:
        """The frames of the program from this one outwards."""
        frames = []
        while frame is not None and frame is not self.home:
            frames.append(frame)
            frame = frame.f_back
        return frames

    def _note_frames(self, frame: FrameType | None) -> None:
        for depth, outer in enumerate(reversed(self._frames(frame)), start=1):
            if of_user(outer.f_code.co_filename):
                self.names.add_frame(outer, depth)

    @contextmanager
    def _locals_noted(self) -> Iterator[None]:
        """Note the locals of the traced function, and of the functions that it calls, when they return."""
        self.home = sys._getframe(2)
        if sys.getprofile() is not None:
            yield
            return

        def returned(frame: FrameType, event: str, _argument: object) -> None:
            if frame.f_code.co_name == _COMPILED:
                self._compiled_call(event, frame)
            if event != "return":
                return
            if frame.f_code.co_name == "forward":
                self.modules.forward_returned(frame)
            if of_user(frame.f_code.co_filename) and (depth := steps_to(frame, self.home, _DEEPEST)) <= _DEEPEST:
                self.names.add_frame(frame, depth)

        sys.setprofile(returned)
        try:
            yield
        finally:
            if sys.getprofile() is returned:
                sys.setprofile(None)

    def _compiled_call(self, event: str, frame: FrameType) -> None:
        """Switch the recording mode off in code that torch.compile compiles: it would compile the mode, too."""
        if "_dynamo" not in frame.f_code.co_filename:
            return
        if event == "call":
            self.compiled_depth += 1
            self.operations.leave()
        elif event == "return":
            self.compiled_depth -= 1
            if not self.compiled_depth:
                self.operations.enter()

    def _is_untouched(self) -> bool:
        """Whether only autograd.grad was called, and backward can still run from what the program returned."""
        nodes = {root.grad_fn for root in self.lens.differentiable(self.result) if root.grad_fn is not None}
        if self.fills_grad or not nodes or self.graph is None:
            return False
        ran = {record.node for record in self.graph.records if record.name != LEAF_NODE}
        return self.keeps_graph or ran.isdisjoint(backward_order(nodes))

    def _backward(self) -> None:
        """Run backward from what was computed; a leaf returned beside it would only get its own cotangent added."""
        found = self.lens.differentiable(self.result)
        roots = [tensor for tensor in found if maker_of(tensor) is not None] or found
        if not roots:
            return
        cotangents = [self._cotangent(root) for root in roots]
        if roots[0].numel() == 1 and roots[0].is_floating_point():
            cotangents[0] = None
        self.lens.namespace.autograd.backward(as_tuple(roots), as_tuple(cotangents))

    def _cotangent(self, root: Any) -> Any:
        return self.lens.namespace.ones_like(root) if self.cotangent is None else self.cotangent(root)
