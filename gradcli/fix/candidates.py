"""The edits that are tried, in stages: the shorter and commoner first."""

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.edits.captured import captured_by
from gradcli.edits.constants import merged
from gradcli.edits.deciding import decides
from gradcli.edits.draft import Draft
from gradcli.edits.expressions import (
    Candidate,
    centred,
    derived_factors,
    expressions_of,
    number,
    of_function,
    reversed_runs,
    scaled,
    shifted,
    simple_factors,
    size_factors,
    swaps,
    wraps,
)
from gradcli.edits.flow import carrying, names_in, relevant
from gradcli.edits.forward_values import clipped, masked, of_forward
from gradcli.edits.idiom import Idiom
from gradcli.edits.products import symmetrised, turned
from gradcli.edits.recomputing import recomputations
from gradcli.edits.regrouping import (
    deconvolved,
    interleaved,
    inverted,
    of_other_methods,
    regrouped,
    reordered,
    solved,
    with_cotangents_exchanged,
    with_whole_cotangent,
)
from gradcli.edits.render import Change
from gradcli.edits.saving import materialised, saved_arguments, saved_attributes, saved_inputs
from gradcli.edits.scope import Scope
from gradcli.edits.statements import (
    accumulated,
    assigned,
    filled,
    multiplied_by_cotangent,
    of_statements,
    out_of_place,
    rearranged,
    returned_values,
    unpacked,
)
from gradcli.fix.fitting import Fit, Library
from gradcli.frozen import dataclass

Array = NDArray[Any]
_LONGEST = 120
"""Expressions that edits are tried on; a longer backward is edited near its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A draft with what its backward can use: scopes at the probes, and the idiom.

    `parameters` is how many gradients the framework asks for, `positions` are the wrong ones of the `count` returned,
    `plain` the names of the arguments that are no tensors.
    """

    draft: Draft
    scopes: tuple[Scope, ...]
    idiom: Idiom
    parameters: int
    positions: tuple[int, ...]
    count: int
    is_complex: bool
    plain: tuple[str, ...]
    to_array: Any

    @property
    def scope(self) -> Scope:
        """The scope at the first probe."""
        return self.scopes[0]

    @property
    def body(self) -> list[ast.stmt]:
        """The statements of backward."""
        node = self.draft.backward.node
        return [ast.Return(value=node.body)] if isinstance(node, ast.Lambda) else node.body

    @property
    def expressions(self) -> list[ast.expr]:
        """The expressions from which the wrong gradients are computed, the last ones first."""
        node = self.draft.backward.node
        found = expressions_of(self.body, self.draft.tree)
        only = relevant(node, self.positions, self.count)
        return [n for n in found if only is None or n in only][-_LONGEST:]

    @property
    def carriers(self) -> set[str]:
        """The names that depend on the gradients of the outputs."""
        return carrying(self.draft.backward.node, [a.text.split("[")[0] for a in self.scope.cotangents])


def slots(setting: Setting) -> list[ast.expr]:
    """The expressions whose values backward returns: in the return statement, or assigned to a name there."""
    definition = setting.draft.backward.node
    found: dict[ast.expr, None] = {}
    for _, value in returned_values(definition):
        for element in value.elts if isinstance(value, ast.Tuple) else [value]:
            made = []
            if isinstance(element, ast.Name):
                made = [
                    n.value
                    for n in ast.walk(definition)
                    if isinstance(n, ast.Assign)
                    and any(isinstance(t, ast.Name) and t.id == element.id for t in n.targets)
                ]
            found.update(dict.fromkeys([*made, element]))
    return list(found)


def fits(setting: Setting, lacks: Sequence[tuple[Sequence[Array], Sequence[Array | None]]]) -> Iterator[Candidate]:
    """Factors, terms and whole gradients with which the wrong gradients become right.

    `lacks` has, for each wrong input, the right gradients at the probes and those returned.
    """
    known = setting.draft.backward.function.__globals__
    library = Library(setting.scopes, setting.idiom, known, setting.to_array, setting.carriers)
    places = slots(setting)
    factors, terms = list(library.factors()), list(library.terms())
    for right, returned in lacks:
        had = [r for r in returned if r is not None and np.isfinite(r).all()]
        shaped = len(had) == len(right) and all(a.shape == b.shape for a, b in zip(had, right, strict=True))
        if shaped and all(np.any(a) for a in had):
            for form in factors:
                for fit in library.fitted(form, right, beside=had):
                    yield from _at(places, fit, ast.Mult, setting)
        residual = [b - a for a, b in zip(had, right, strict=True)] if shaped else None
        for form in terms:
            if residual is not None:
                for fit in library.fitted(form, residual):
                    yield from _at(places, fit, ast.Add, setting)
            for fit in library.fitted(form, right, whole=True):
                yield from _whole(places, fit)


def _at(places: Sequence[ast.expr], fit: Fit, operation: type[ast.operator], setting: Setting) -> Iterator[Candidate]:
    """The fit applied to every slot: times a factor, plus or minus a term."""
    for place in places:
        node: ast.expr
        if operation is ast.Mult:
            node = _multiplied(place, fit.node)
            node = ast.UnaryOp(op=ast.USub(), operand=node) if fit.negative else node
        else:
            node = ast.BinOp(left=place, op=ast.Sub() if fit.negative else ast.Add(), right=fit.node)
        yield Candidate(fit.cost + 1, merged(Change(place, node), setting.draft.tree))


def _multiplied(place: ast.expr, factor: ast.expr) -> ast.expr:
    if isinstance(factor, ast.Constant) and factor.value == 1:
        return place
    if isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Div):
        left = factor.left
        inner = place if isinstance(left, ast.Constant) and left.value == 1 else _multiplied(place, left)
        return ast.BinOp(left=inner, op=ast.Div(), right=factor.right)
    return ast.BinOp(left=place, op=ast.Mult(), right=factor)


def _whole(places: Sequence[ast.expr], fit: Fit) -> Iterator[Candidate]:
    """The fit in place of the whole of every slot; the size of what it replaces adds to the cost."""
    for place in places:
        node = ast.UnaryOp(op=ast.USub(), operand=fit.node) if fit.negative else fit.node
        lost = sum(isinstance(n, ast.expr) for n in ast.walk(place)) / 3
        yield Candidate(fit.cost + 0.5 + lost, (Change(place, node),))


def near(setting: Setting) -> Iterator[Candidate]:
    """One thing changed: another order of the results, operator, name, number, function, sign or reduction."""
    definition = setting.draft.backward.node
    yield from rearranged(definition, setting.parameters, setting.scope)
    yield from filled(definition, setting.scope)
    yield from assigned(definition)
    yield from unpacked(definition)
    yield from of_statements(definition, setting.scope, setting.idiom)
    for node in setting.expressions:
        yield from swaps(node, setting.scope, setting.idiom)
        yield from reversed_runs(node, setting.idiom)
        yield from regrouped(node)
        yield from with_whole_cotangent(node, setting.scope)
        yield from of_other_methods(node)
        yield from reordered(node)
        yield from inverted(node)
        yield from solved(node, setting.idiom)
        yield from interleaved(node)
        yield from deconvolved(node)
        if _computes(setting, node) and not _decides(setting, node):
            yield from turned(node, setting.idiom)
            yield from symmetrised(node, setting.idiom, _rank(setting))
            yield from wraps(node, setting.idiom, _rank(setting), is_complex=setting.is_complex)
    carriers = setting.carriers
    for place in slots(setting):
        yield from with_cotangents_exchanged(place, setting.scope)
        if not names_in(place) & carriers:
            for part in ast.walk(place):
                if isinstance(part, ast.expr) and (part is place or _computes(setting, part)):
                    yield from multiplied_by_cotangent(part, setting.scope)
    yield from out_of_place(definition, setting.idiom)
    yield from accumulated(definition, setting.idiom)


def in_place(setting: Setting) -> Iterator[Candidate]:
    """In-place writes of backward and forward, made on a copy or replaced by out-of-place operations."""
    for part in setting.draft.parts:
        yield from out_of_place(part.node, setting.idiom)


def needed(setting: Setting, inputs: Collection[str | None]) -> Iterator[Candidate]:
    """A condition on `needs_input_grad` asked of another input, one of `inputs` by name."""
    role = "forward" if setting.draft.has("forward") else "setup_context"
    names = [a.arg for a in setting.draft.part(role).node.args.args][role == "forward" :]
    wanted = [number for number, name in enumerate(names) if name in inputs]
    for node in setting.expressions:
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("needs_input_grad"):
            for place in wanted:
                if ast.unparse(node.slice) != str(place):
                    cost = 1 if place in _guarded(setting, node) else 1.5
                    yield Candidate(cost, (Change(node.slice, ast.Constant(value=place)),))


def _guarded(setting: Setting, condition: ast.expr) -> set[int]:
    """The places of the gradients that are assigned where a condition holds."""
    above: ast.AST | None = condition
    while above is not None and not isinstance(above, ast.stmt):
        above = setting.draft.tree.parent(above)
    bound = {n.id for n in ast.walk(above or condition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    rows = [v.elts for _, v in returned_values(setting.draft.backward.node) if isinstance(v, ast.Tuple)]
    return {place for row in rows for place, each in enumerate(row) if isinstance(each, ast.Name) and each.id in bound}


def cut_graphs(setting: Setting) -> Iterator[Candidate]:
    """`detach` and `.data` left out; saved intermediate values computed again by backward."""
    for node in setting.expressions:
        if any(word in ast.unparse(node) for word in ("detach", "data")):
            yield from swaps(node, setting.scope, setting.idiom)
    for role in ("forward", "setup_context"):
        if setting.draft.has(role):
            yield from saved_inputs(setting.draft.part(role).node)
            yield from _recomputed(setting, role)


def forward_edits(setting: Setting) -> Iterator[Candidate]:
    """Other values saved by forward, and zeros instead of None for unused outputs."""
    for role in ("forward", "setup_context"):
        if setting.draft.has(role):
            yield from saved_inputs(setting.draft.part(role).node)
            yield from materialised(setting.draft.part(role).node)
            yield from saved_attributes(setting.draft.part(role).node, setting.draft.backward.node)
            if setting.idiom.by_methods and not setting.draft.has("setup_context"):
                forward, backward = setting.draft.part(role), setting.draft.backward
                captured = captured_by(forward.function).keys() - captured_by(backward.function).keys()
                yield from saved_arguments(
                    forward.node, backward.node, slots(setting), sorted(n for n in captured if "." not in n)
                )
            yield from _recomputed(setting, role)


def _recomputed(setting: Setting, role: str) -> Iterator[Candidate]:
    """What forward saves, computed again by backward."""
    for each in recomputations(setting.draft.part(role).node, setting.draft.backward.node, setting.plain):
        yield each.candidate


def farther(setting: Setting) -> Iterator[Candidate]:
    """A factor or a summand put in anywhere; the summand is a grad_output only where the expression depends on one."""
    simple = simple_factors(setting.scope)
    numbers, masks = _of_forward(setting)
    sizes = [*size_factors(setting.scope, setting.idiom), *((2.0, each) for each in numbers)]
    bounds = [atom.node for atom in setting.scope.numbers]
    own = [(1.0, atom.node) for atom in setting.scope.cotangents]
    ones = [(0.9, number(1)), *(s for s in simple if not names_in(s[1]) & setting.carriers)]
    for node in setting.expressions:
        if _computes(setting, node):
            carries = bool(names_in(node) & setting.carriers)
            if not _is_scaled_above(setting, node):
                yield from scaled(node, [*simple, *sizes])
            yield from shifted(node, own if carries else ones)
            if carries and not _is_scaled_above(setting, node):
                yield from masked(node, masks, setting.idiom)
            if not carries and not isinstance(node, ast.Constant) and not _decides(setting, node):
                yield from of_function(node, setting.idiom)
                yield from clipped(node, bounds, setting.idiom)


def _of_forward(setting: Setting) -> tuple[list[ast.expr], list[ast.expr]]:
    """Numbers and masks of forward, in the names of backward."""
    if not setting.draft.has("forward"):
        return [], []
    known = setting.draft.backward.function.__globals__
    return of_forward(setting.draft.part("forward").node, setting.draft.backward.node, setting.scope, known)


def farthest(setting: Setting) -> Iterator[Candidate]:
    """In what depends on grad_output: the derivative of a common function as a factor, and a mean or sum subtracted."""
    derived = derived_factors(setting.scope, setting.idiom)
    for node in setting.expressions:
        if _computes(setting, node) and names_in(node) & setting.carriers:
            yield from centred(node, setting.scope, setting.idiom, _rank(setting))
            if not _is_scaled_above(setting, node):
                yield from scaled(node, derived)


def _decides(setting: Setting, node: ast.expr) -> bool:
    return decides(node, setting.draft.backward.node, setting.draft.tree)


def _is_scaled_above(setting: Setting, node: ast.expr) -> bool:
    """Whether the same factor is also tried at the node above: a product, a quotient or a negation of this one."""
    parent = setting.draft.tree.parent(node)
    if isinstance(parent, ast.UnaryOp):
        return True
    if not isinstance(parent, ast.BinOp):
        return isinstance(node, ast.Constant)
    return isinstance(parent.op, ast.Mult) or (isinstance(parent.op, ast.Div) and parent.left is node)


def _rank(setting: Setting) -> int:
    return max((len(a.shape) for a in setting.scope.atoms if a.is_tensor), default=0)


def _computes(setting: Setting, node: ast.expr) -> bool:
    """Whether an expression may be a tensor: no constant of an index or keyword, no tuple, no part of an attribute."""
    parent = setting.draft.tree.parent(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | str | type(None)):
        return False
    if isinstance(node, ast.Tuple | ast.List | ast.Slice | ast.Compare | ast.Starred):
        return False
    if isinstance(parent, ast.keyword | ast.Slice):
        return False
    if isinstance(parent, ast.Attribute) and isinstance(node, ast.Name):
        return any(atom.text == node.id and atom.is_tensor for atom in setting.scope.atoms)
    if isinstance(parent, ast.Subscript) and parent.slice is node:
        return False
    return not (isinstance(node, ast.Attribute) and node.attr in ("saved_tensors", "needs_input_grad", "shape"))
