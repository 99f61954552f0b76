"""The calls of custom rules in a traced function, also in the bodies of loops, branches and checkpoints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from gradcli.backends.jax.custom_rules import (
    function_of,
    function_with_rule,
    is_users_rule,
    kind_of_rule,
    name_of_rule,
)
from gradcli.backends.jax.vjp_graph import Call, Value, VjpGraph, is_inexact, site_of_rule
from gradcli.backends.traced import TracedCall
from gradcli.traces import SourceSite

_BODIES = frozenset({"scan", "cond", "remat2", "checkpoint"})


@final
@dataclass(slots=True)
class Calls:
    """What is told of each equation that is run; `found` has the calls to check, each with its step."""

    every: bool
    found: list[tuple[TracedCall, int]] = field(default_factory=list)

    def note(self, call: Call) -> None:
        """Keep a call that is to be checked: of a rule of the user's, or of `every` equation that has a gradient."""
        places = [place for place, value in enumerate(call.operands) if value.is_tracked and is_inexact(value.held)]
        if not places:
            return
        held, equation = [value.held for value in call.operands], call.equation
        if is_users_rule(equation) or (self.every and kind_of_rule(equation) is not None):
            target = function_with_rule(equation, call.variables, held, places, call.run)
        elif equation.primitive.name in _BODIES:
            for body in _bodies(call):
                self.found += [(found, call.step) for found, _ in _calls_of(body, call.site, every=self.every)]
            return
        elif self.every and any(is_inexact(v.held) for v in call.made):
            target = function_of(held, places, call.run)
        else:
            return
        kept = TracedCall(
            name=name_of_rule(equation) or str(equation.primitive.name),
            target=target,
            values=tuple(held[place] for place in places),
            site=call.site,
            rule=site_of_rule(equation),
        )
        self.found.append((kept, call.step))


@final
@dataclass(frozen=True, slots=True)
class _Body:
    """A jaxpr inside an equation at its first operands; of a loop, `carried` of them come from its results."""

    jaxpr: Any
    consts: Sequence[Any]
    given: list[Value]
    first_carried: int = 0
    carried: int = 0


def _calls_of(body: _Body, site: SourceSite | None, *, every: bool) -> list[tuple[TracedCall, int]]:
    """The calls in a body: of a loop those of its second turn, in which what was constant at first may vary."""
    given = list(body.given)
    if body.carried:
        made = VjpGraph().run(body.jaxpr, body.consts, given, site)
        given[body.first_carried : body.first_carried + body.carried] = map(_as_input, made[: body.carried])
    inner = Calls(every)
    VjpGraph(seen=inner.note).run(body.jaxpr, body.consts, given, site)
    return inner.found


def _bodies(call: Call) -> Iterator[_Body]:
    equation, read = call.equation, dict(zip(call.variables, call.operands, strict=True))
    operands = [_as_input(Value(v.val) if hasattr(v, "val") else read[v]) for v in equation.invars]
    params, name = equation.params, equation.primitive.name
    if name == "cond":
        branch = params["branches"][int(operands[0].held)]
        yield _Body(branch.jaxpr, branch.consts, operands[1:])
    elif name == "scan" and params["length"]:
        fixed, carried = params["num_consts"], params["num_carry"]
        turn = -1 if params["reverse"] else 0
        parts = [Value(v.held[turn], leaf=v.leaf) for v in operands[fixed + carried :]]
        loops = carried if params["length"] > 1 else 0
        yield _Body(params["jaxpr"].jaxpr, params["jaxpr"].consts, [*operands[: fixed + carried], *parts], fixed, loops)
    elif name in ("remat2", "checkpoint"):
        yield _Body(params["jaxpr"], (), operands)


def _as_input(value: Value) -> Value:
    return Value(value.held, leaf=0 if value.is_tracked else None)
