"""The backward pass of a JAX function as a graph: one node for each equation of its jaxpr, with its own vjp."""

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from gradcli.backends.guard import is_users_file
from gradcli.backends.jax.custom_rules import rule_of_equation, shown_name
from gradcli.traces import ArraySummary, Edge, GraphCut, NonFinite, SourceSite, TensorFate, TraceGraph, TraceNode
from gradcli.traces.arrays import summary_of

LEAF = "input"
_INLINED = frozenset({"jit", "pjit", "closed_call", "core_call"})


@final
@dataclass(slots=True)
class Value:
    """A value while the function runs: the step that made it, or the input that it is; neither for a constant.

    `sources` has a bit for each input that it was computed from.
    """

    held: Any
    step: int | None = None
    slot: int = 0
    leaf: int | None = None
    sources: int = 0

    @property
    def is_tracked(self) -> bool:
        """Whether it comes from an input by operations on numbers with a fraction."""
        return self.step is not None or self.leaf is not None


@final
@dataclass(frozen=True, slots=True)
class Call:
    """An equation as it was run: what it takes, each variable once, with the values, and `run` of those alone.

    `step` is the newest step: that of the equation, where a gradient goes to one of its operands.
    """

    equation: Any
    variables: Sequence[Any]
    operands: Sequence[Value]
    made: Sequence[Value]
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
    """Runs a function equation by equation, and the vjp of each in the opposite order; `seen` is told each call.

    `nodes` gives the number of a step's node.
    """

    seen: Callable[[Call], None] | None = None
    steps: list[_Step] = field(default_factory=list)
    leaves: dict[int, Any] = field(default_factory=dict)
    first_bad: NonFinite | None = None
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
            inner = equation.params.get("jaxpr") if equation.primitive.name in _INLINED else None
            if inner is not None:
                made = self.run(inner.jaxpr, inner.consts, list(map(read, equation.invars)), site)
            else:
                variables, run = _alone(jaxpr, equation)
                operands = list(map(read, variables))
                made = self._step(equation, site, operands, run)
                if self.seen is not None and self.steps:
                    self.seen(Call(equation, variables, operands, made, run, site, len(self.steps) - 1))
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

        if not places:
            sources = functools.reduce(operator.or_, (v.sources for v in operands), 0)
            return [Value(value, sources=sources) for value in call()]
        made, pull = jax.vjp(call, *[operands[place].held for place in places])
        has_gradient = any(map(is_inexact, made))
        number = len(self.steps)
        sources = functools.reduce(operator.or_, (v.sources for v in operands))
        outputs = [
            Value(v, step=number, slot=slot, sources=sources) if is_inexact(v) else Value(v, sources=sources)
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
        self._note_bad(step, operands, made)
        return outputs

    def _note_bad(self, step: _Step, operands: Sequence[Value], made: Sequence[Any]) -> None:
        """The first equation whose result is not finite although all it was given is."""
        if self.first_bad is not None or not all(_finite(v.held) for v in operands):
            return
        bad = next((np.asarray(v) for v in made if is_inexact(v) and not _finite(v)), None)
        if bad is None:
            return
        entry = _first_bad_entry(bad)
        values = ", ".join(_at(v.held, entry, bad.shape) for v in operands)
        self.first_bad = NonFinite(
            phase="forward", kind="operation", name=step.name, site=step.site, entry=entry,
            value=float(np.real(bad[entry])), text=f"{step.name}({values}) = {np.real(bad[entry]):g}",
            dtype=str(bad.dtype),
        )  # fmt: skip

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
            self._note_bad_gradient(step)
            for operand, gradient in zip(step.operands, step.given, strict=True):
                send(operand, gradient)

    def _note_bad_gradient(self, step: _Step) -> None:
        """The first equation whose vjp gives NaN or Inf although all that came in is finite."""
        if self.first_bad is not None or not all(g is None or _finite(g) for g in step.taken):
            return
        bad = next((np.asarray(g) for g in step.given if not _finite(g)), None)
        if bad is None:
            return
        entry = _first_bad_entry(bad)
        came = None if step.taken[0] is None else np.asarray(step.taken[0])
        incoming = float(np.real(came[entry])) if came is not None and came.shape == bad.shape else None
        self.first_bad = NonFinite(
            phase="backward", kind="node", name=step.name, site=step.site, entry=entry,
            value=float(np.real(bad[entry])),
            incoming=incoming, selected_at=self._selection(step, entry) if incoming == 0 else None,
            saved=tuple(("operand", _at(v.held, entry, bad.shape)) for v in step.operands),
        )  # fmt: skip

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

    def _cuts(self, names: Sequence[str]) -> tuple[GraphCut, ...]:
        """The equations whose results have no gradient, with the inputs that they were given."""
        return tuple(
            GraphCut(
                how=step.name,
                site=step.site,
                leaves=tuple(n for place, n in enumerate(names) if any(v.sources >> place & 1 for v in step.operands)),
                gives=str(np.asarray(step.outputs[0].held).dtype),
            )
            for step in self.steps
            if step.pull is None
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
            non_finite=self.first_bad, cuts=self._cuts(names),
        )  # fmt: skip

    def _uses(self, leaf: int) -> Iterator[SourceSite]:
        for step in self.steps:
            if step.site is not None and any(operand.leaf == leaf for operand in step.operands):
                yield step.site

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


def is_inexact(value: Any) -> bool:
    """Whether a value has a gradient: real or complex numbers."""
    import jax.numpy as jnp

    return bool(jnp.issubdtype(jnp.result_type(value), jnp.inexact))


def _finite(value: Any) -> bool:
    return not is_inexact(value) or bool(np.isfinite(np.asarray(value, dtype=_wide(value))).all())


def _wide(value: Any) -> Any:
    array = np.asarray(value)
    return np.float32 if array.dtype.kind == "V" else array.dtype


def _first_bad_entry(values: Any) -> tuple[int, ...]:
    wrong = np.isnan(values) if np.isnan(values).any() else ~np.isfinite(values)
    return tuple(int(place) for place in np.unravel_index(int(np.argmax(wrong)), values.shape))


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
    return summary_of(np.asarray(array, dtype=_wide(array)), str(array.dtype))


def _at(value: Any, entry: tuple[int, ...], shape: tuple[int, ...]) -> str:
    array = np.asarray(value)
    if array.shape not in (shape, ()) or math.prod(array.shape) == 0:
        return f"an array of shape {list(array.shape)}"
    return f"{array[entry] if array.shape else array[()]:.6g}"


def site_of_rule(equation: Any) -> SourceSite | None:
    """Where the user's own bwd, or jvp, is written."""
    rule = rule_of_equation(equation)
    if rule is None:
        return None
    code = rule.__code__
    return SourceSite(file=_shown(code.co_filename), line=code.co_firstlineno, function=code.co_name)


def _site(equation: Any) -> SourceSite | None:
    trace = equation.source_info.traceback
    for frame in () if trace is None else trace.frames:
        if is_users_file(frame.file_name):
            return SourceSite(file=_shown(frame.file_name), line=frame.line_num, function=frame.function_name)
    return None


def _shown(file: str) -> str:
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
