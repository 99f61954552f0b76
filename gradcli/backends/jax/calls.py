"""The calls of custom rules in a traced function, also in the bodies of loops."""

from dataclasses import dataclass, field
from typing import final

from gradcli.backends.jax.custom_rules import (
    function_of,
    function_with_rule,
    is_users_rule,
    kind_of_rule,
    name_of_rule,
)
from gradcli.backends.jax.steps import scan_counts
from gradcli.backends.jax.values import Value, is_inexact
from gradcli.backends.jax.vjp_graph import Call, VjpGraph, site_of_rule
from gradcli.backends.traced import TracedCall


@final
@dataclass(slots=True)
class Calls:
    """Collects the calls to check, each with its step, in `found`; called for each equation that runs."""

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
        elif equation.primitive.name == "scan":
            if equation.params["length"]:
                self.found += [(found, call.step) for found, _ in _calls_of(call, every=self.every)]
            return
        elif self.every and any(is_inexact(v.held) for v in call.results):
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


def _calls_of(call: Call, *, every: bool) -> list[tuple[TracedCall, int]]:
    """The calls in a loop's body at its second turn, in which what was constant at first may vary."""
    read, params = dict(zip(call.variables, call.operands, strict=True)), call.equation.params
    operands = [_as_input(Value(v.val) if hasattr(v, "val") else read[v]) for v in call.equation.invars]
    body, (fixed, carried) = params["jaxpr"], scan_counts(params)
    parts = operands[fixed + carried :]
    turns = range(params["length"])[:: -1 if params["reverse"] else 1][:2]
    noted = Calls(every)
    for turn in turns:
        noted = Calls(every)
        given = [*operands[: fixed + carried], *(Value(v.held[turn], leaf=v.leaf) for v in parts)]
        made = VjpGraph(on_call=noted.note).run(body.jaxpr, body.consts, given, call.site)
        operands[fixed : fixed + carried] = map(_as_input, made[:carried])
    return noted.found


def _as_input(value: Value) -> Value:
    return Value(value.held, leaf=0 if value.is_tracked else None)
