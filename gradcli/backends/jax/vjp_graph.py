"""The backward pass of a JAX function as a graph: one node for each equation of its jaxpr, with its own vjp."""

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from gradcli.backends.attribution import is_users_file, shown_path
from gradcli.backends.jax.custom_rules import rule_of_equation, shown_name
from gradcli.backends.jax.nonfinite import bad_gradient, origin
from gradcli.backends.jax.values import Value, is_inexact, wide
from gradcli.traces import ArraySummary, Edge, GraphCut, NonFinite, SourceSite, TensorFate, TraceGraph, TraceNode
from gradcli.traces.arrays import summary_of

LEAF = "input"
_INLINED = frozenset({"jit", "pjit", "closed_call", "core_call"})
_CHECKPOINTS = frozenset({"remat2", "checkpoint"})


@final
@dataclass(frozen=True, slots=True)
class Call:
    """An equation as it was run: what it takes, each variable once, with the values, and `run` of those alone.

    `step` is the newest step: that of the equation, where a gradient goes to one of its operands.
    """

    equation: Any
    variables: Sequence[Any]
    operands: Sequence[Value]
    results: Sequence[Value]
    run: Callable[..., Any]
    site: SourceSite | None
    step: int


@final
@dataclass(slots=True, kw_only=True)
class _Step:
    """One equation that used a tracked value; `pull` is None where nothing that it gives has a gradient."""

    name: str
    site: SourceSite | None
    rule: SourceSite | None
    operands: list[Value]
    outputs: list[Value]
    pull: Callable[..., Any] | None
    taken: list[Any] = field(default_factory=list)
    given: tuple[Any, ...] = ()


@final
@dataclass(slots=True)
class VjpGraph:
    """Runs a function equation by equation, and the vjp of each in reverse; calls `on_call` for each.

    `nodes` gives the number of a step's node; `handed` are the inputs that a branch was given, used there or not.
    """

    on_call: Callable[[Call], None] | None = None
    steps: list[_Step] = field(default_factory=list)
    leaves: dict[int, Any] = field(default_factory=dict)
    bad_gradient: NonFinite | None = None
    cutting: list[_Step] = field(default_factory=list)
    names: Sequence[str] = ()
    handed: list[tuple[int, SourceSite | None]] = field(default_factory=list)
    nodes: dict[int, int] = field(default_factory=dict)

    def trace(
        self,
        function: Callable[..., Any],
        names: Sequence[str],
        inputs: Sequence[Any],
        cotangent: Callable[[Any], Any],
    ) -> TraceGraph:
        """Run `function` at `inputs`, arrays of numbers with a fraction, and back from its results.

        The gradients of inputs are those that jax.vjp of the whole function gives.
        """
        import jax

        self.names = names
        closed = jax.make_jaxpr(function)(*inputs)
        given = [Value(value, leaf=place, sources=1 << place) for place, value in enumerate(inputs)]
        results = self.run(closed.jaxpr, closed.consts, given)
        cotangents = [cotangent(value.held) if is_inexact(value.held) else None for value in results]
        self._pull_back(results, cotangents)
        whole, pull = jax.vjp(lambda *values: jax.tree_util.tree_leaves(function(*values)), *inputs)
        gradients = pull([_as_cotangent(v, c) for v, c in zip(whole, cotangents, strict=True)])
        return self._frozen(names, inputs, gradients, results)

    # --- forward
    def run(
        self, jaxpr: Any, consts: Sequence[Any], given: Sequence[Value], caller: SourceSite | None = None
    ) -> list[Value]:
        """The results of a jaxpr; `caller` is the line that calls it, for equations that have none of the user's."""
        known: dict[Any, Value] = dict(zip(jaxpr.constvars, map(Value, consts), strict=True))
        known.update(zip(jaxpr.invars, given, strict=True))

        def read(variable: Any) -> Value:
            return Value(variable.val) if hasattr(variable, "val") else known[variable]

        for equation in jaxpr.eqns:
            site = _site(equation) or caller
            taken = list(map(read, equation.invars))
            inlined = _inlined(equation, taken)
            if inlined is not None:
                inner, constants, operands, chooser = inlined
                self.handed += [(v.leaf, site) for v in operands if v.leaf is not None and chooser is not None]
                made = [_chosen_by(chooser, v) for v in self.run(inner, constants, operands, site)]
            else:
                variables, run = _alone(jaxpr, equation)
                operands = list(map(read, variables))
                made = self._step(equation, site, operands, run)
                for value in made:
                    value.bad = origin(shown_name(equation), site, taken, value.held, self._name_of)
                if self.on_call is not None and self.steps:
                    self.on_call(Call(equation, variables, operands, made, run, site, len(self.steps) - 1))
            known.update(zip(equation.outvars, made, strict=True))
        return [read(variable) for variable in jaxpr.outvars]

    def _step(
        self, equation: Any, site: SourceSite | None, operands: list[Value], run: Callable[..., Any]
    ) -> list[Value]:
        import jax

        places = [n for n, v in enumerate(operands) if v.is_tracked and is_inexact(v.held)]

        def call(*values: Any) -> list[Any]:
            held = [v.held for v in operands]
            for place, value in zip(places, values, strict=True):
                held[place] = value
            return list(run(*held))

        sources = functools.reduce(operator.or_, (v.sources for v in operands), 0)
        cuts = functools.reduce(operator.or_, (v.cuts for v in operands), 0)
        if not places:
            return [Value(value, sources=sources, cuts=cuts) for value in call()]
        made, pull = jax.vjp(call, *[operands[place].held for place in places])
        has_gradient = any(map(is_inexact, made))
        number = len(self.steps)
        cut = cuts | 1 << len(self.cutting)
        outputs = [
            Value(v, step=number, slot=slot, sources=sources, cuts=cuts)
            if is_inexact(v)
            else Value(v, sources=sources, cuts=cut)
            for slot, v in enumerate(made)
        ]
        step = _Step(
            name=shown_name(equation),
            site=site,
            rule=site_of_rule(equation),
            operands=[operands[place] for place in places],
            outputs=outputs,
            pull=pull if has_gradient else None,
        )
        self.steps.append(step)
        if not all(map(is_inexact, made)):
            self.cutting.append(step)
        return outputs

    def _name_of(self, leaf: int) -> str:
        return self.names[leaf] if leaf < len(self.names) else "an input"

    # --- backward
    def _pull_back(self, results: Sequence[Value], cotangents: Sequence[Any]) -> None:
        waiting: dict[tuple[int, int], Any] = {}

        def send(value: Value, gradient: Any) -> None:
            if value.leaf is not None:
                self.leaves[value.leaf] = _sum(self.leaves.get(value.leaf), gradient)
            elif value.step is not None:
                key = value.step, value.slot
                waiting[key] = _sum(waiting.get(key), gradient)

        for value, cotangent in zip(results, cotangents, strict=True):
            if cotangent is not None:
                send(value, cotangent)
        for number in range(len(self.steps) - 1, -1, -1):
            step = self.steps[number]
            step.taken = [waiting.pop((number, slot), None) for slot in range(len(step.outputs))]
            if step.pull is None or all(gradient is None for gradient in step.taken):
                continue
            step.given = step.pull([_as_cotangent(v.held, g) for v, g in zip(step.outputs, step.taken, strict=True)])
            if self.bad_gradient is None:
                self.bad_gradient = self._bad_gradient(step)
            for operand, gradient in zip(step.operands, step.given, strict=True):
                send(operand, gradient)

    def _bad_gradient(self, step: _Step) -> NonFinite | None:
        found = bad_gradient(step.name, step.rule or step.site, step.operands, step.outputs, step.taken, step.given)
        if found is None or found.entry is None or found.incoming != 0 or not _has_a_pole(step):
            return found
        selected = self._selection(step, found.entry)
        return found if selected is None else replace(found, selected_at=selected, cause=None)

    def _selection(self, step: _Step, entry: tuple[int, ...]) -> SourceSite | None:
        """The line of the where whose other branch is taken at an entry, if what `step` gives leads to one."""
        above = {id(step)}
        for other in self.steps:
            if not any(v.step is not None and id(self.steps[v.step]) in above for v in other.operands):
                continue
            came = None if not other.taken or other.taken[0] is None else np.asarray(other.taken[0])
            if other.name == "select_n" and came is not None and len(entry) == came.ndim and came[entry] != 0:
                return other.site
            above.add(id(other))
        return None

    def _cuts(self, names: Sequence[str], results: Sequence[Value]) -> tuple[GraphCut, ...]:
        """The equations on the way to a result that gave numbers without a gradient, with the inputs behind them."""
        leading = functools.reduce(operator.or_, (value.cuts for value in results), 0)
        return tuple(
            GraphCut(
                how=step.name,
                site=step.site,
                leaves=tuple(n for place, n in enumerate(names) if any(v.sources >> place & 1 for v in step.operands)),
                gives=next(str(np.asarray(v.held).dtype) for v in step.outputs if not is_inexact(v.held)),
                other_result=any(is_inexact(v.held) for v in step.outputs),
            )
            for place, step in enumerate(self.cutting)
            if leading >> place & 1
        )

    # --- afterwards
    def _frozen(
        self, names: Sequence[str], inputs: Sequence[Any], gradients: Sequence[Any], results: Sequence[Value]
    ) -> TraceGraph:
        ran = [number for number in range(len(self.steps) - 1, -1, -1) if self.steps[number].given]
        ids = self.nodes = {number: place for place, number in enumerate(ran)}
        leaves = {leaf: len(ran) + place for place, leaf in enumerate(sorted(self.leaves))}
        nodes = [self._node(ids[number], self.steps[number], ids, leaves) for number in ran]
        nodes += [
            TraceNode(
                id=place, name=LEAF, edges=(), variable=names[leaf], output=_summary(inputs[leaf]), executed=True,
                gradients_in=(_summary(self.leaves[leaf]),),
            )
            for leaf, place in leaves.items()
        ]  # fmt: skip
        fates = tuple(
            TensorFate(
                name=name, is_leaf=True, requires_grad=True, grad=_summary(gradients[place]), node=leaves.get(place),
                used_at=next(self._uses(place), None),
            )
            for place, name in enumerate(names)
        )  # fmt: skip
        return TraceGraph(
            target="", backend="jax", nodes=tuple(nodes), tensors=fates, fills_grad=False, passes=1,
            result=_summary(results[0].held) if results else None, result_requires_grad=bool(leaves),
            non_finite=next((v.bad for v in results if v.bad is not None), self.bad_gradient),
            cuts=self._cuts(names, results),
        )  # fmt: skip

    def _uses(self, leaf: int) -> Iterator[SourceSite]:
        for step in self.steps:
            if step.site is not None and any(operand.leaf == leaf for operand in step.operands):
                yield step.site
        yield from (site for given, site in self.handed if given == leaf and site is not None)

    def _node(self, place: int, step: _Step, ids: dict[int, int], leaves: dict[int, int]) -> TraceNode:
        edges = [
            Edge(target=leaves[v.leaf] if v.leaf is not None else ids.get(v.step or 0), slot=v.slot)
            for v in step.operands
        ]
        return TraceNode(
            id=place,
            name=step.name,
            edges=tuple(edges),
            site=step.site,
            rule=step.rule,
            output=_summary(step.outputs[0].held),
            gradients_in=tuple(None if g is None else _summary(g) for g in step.taken),
            gradients_out=tuple(map(_summary, step.given)),
            executed=True,
        )


def _inlined(equation: Any, given: Sequence[Value]) -> tuple[Any, Sequence[Any], Sequence[Value], Value | None] | None:
    """The jaxpr that an equation stands for, its constants and operands, and what chose it; None for any other."""
    name, inner = equation.primitive.name, equation.params.get("jaxpr")
    if name in _INLINED:
        return inner.jaxpr, inner.consts, given, None
    if name in _CHECKPOINTS:
        return inner, (), given, None
    if name == "cond":
        branch = equation.params["branches"][int(given[0].held)]
        return branch.jaxpr, branch.consts, given[1:], given[0]
    return None


def _chosen_by(chooser: Value | None, value: Value) -> Value:
    """A result of a branch, which comes from what decided for the branch, too."""
    if chooser is None:
        return value
    return replace(value, sources=value.sources | chooser.sources, cuts=value.cuts | chooser.cuts)


def _has_a_pole(step: _Step) -> bool:
    """Whether an equation gave a number, or an infinity at finite operands, so that only its derivative fails."""
    made = step.outputs[0].bad
    return made is None or (made.value == made.value and all(v.bad is None for v in step.operands))


def _alone(jaxpr: Any, equation: Any) -> tuple[list[Any], Callable[..., Any]]:
    """The variables that an equation takes, each once, and a function of their values that runs it alone."""
    from jax.extend import core

    variables = list(dict.fromkeys(v for v in equation.invars if not hasattr(v, "val")))
    whole = jaxpr.replace(
        constvars=[],
        invars=variables,
        outvars=equation.outvars,
        eqns=[equation],
        effects=equation.effects,
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return variables, core.jaxpr_as_fun(core.ClosedJaxpr(whole, ()))


def _sum(known: Any, gradient: Any) -> Any:
    return gradient if known is None else known + gradient


def _as_cotangent(value: Any, gradient: Any) -> Any:
    """A gradient as jax.vjp takes it: zeros where there is none, of the type without values for whole numbers."""
    import jax

    if gradient is not None:
        return gradient
    return jax.numpy.zeros_like(value) if is_inexact(value) else np.zeros(np.shape(value), jax.dtypes.float0)


def _summary(value: Any) -> ArraySummary:
    array = np.asarray(value)
    return summary_of(np.asarray(array, dtype=wide(array)), str(array.dtype))


def site_of_rule(equation: Any) -> SourceSite | None:
    """Where the user's own bwd, or jvp, is written."""
    rule = rule_of_equation(equation)
    if rule is None:
        return None
    code = rule.__code__
    return SourceSite(file=shown_path(code.co_filename), line=code.co_firstlineno, function=code.co_name)


def _site(equation: Any) -> SourceSite | None:
    trace = equation.source_info.traceback
    for frame in () if trace is None else trace.frames:
        if is_users_file(frame.file_name):
            return SourceSite(file=shown_path(frame.file_name), line=frame.line_num, function=frame.function_name)
    return None
