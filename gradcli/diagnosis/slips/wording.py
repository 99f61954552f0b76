"""A slip in words: what a line has, what should be there, and the name of such a mistake."""

import ast
from collections.abc import Mapping
from typing import Any

from gradcli.diagnosis.slips.slip import Role, Slip
from gradcli.edits.draft import Draft
from gradcli.edits.flow import carrying, differ_in_numbers, names_in, only_indexes
from gradcli.findings import FindingKind
from gradcli.results import Location

_SHOWN, _TOO_SHORT = 56, 8
"""The most characters of an expression shown with its context, and the fewest with which it may stand alone."""
_PRODUCTS = ("mm", "matmul", "bmm", "mul", "div", "dot", "mv", "einsum", "solve", "outer", "where", "multiply")
_REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "logsumexp", "norm", "cumsum", "cumprod", "softmax", "squeeze")
_CONVOLUTIONS = tuple(f"conv{kind}{axes}d" for kind in ("", "_transpose") for axes in (1, 2, 3))
_TURNS = ("t", "transpose", "permute", "swapaxes", "T", "mT", "mH", "H")
_SHIFTS = ("flip", "roll", "flipud", "fliplr", "repeat", "repeat_interleave", "argsort")
_CASTS = ("half", "bfloat16", "float", "to", "type", "astype")
CORRECTED = "with this corrected, the returned gradient is right"
"""What ends the sentence on a change of backward that was tried."""
AT_THESE_RANKS = " for inputs with as many axes as these, but not for others that forward accepts"
_FIRST_ALONE = ", but its own derivative is not: the mistake may be in the Function that backward applies"
_PLACED = ("tril", "triu", "narrow", "pad", "diag", "arange")


def sentence_of(slip: Slip, draft: Draft, name: str) -> str:
    """The sentence: what is wrong, and the change with which the gradient of the input called `name` is right."""
    old, around = ast.unparse(slip.old), _around(slip.old, draft)
    limits = AT_THESE_RANKS * slip.at_these_ranks + _FIRST_ALONE * slip.first_alone
    corrected = f"{CORRECTED}{limits}{_to_be_saved(slip, draft)}"
    while not all(draft.tree.is_inside(change.old, around) for change in slip.changes):
        around = draft.tree.parent(around) or draft.tree.file.tree
    if slip.drops:
        return f"{name}: line {slip.line}, `{' '.join(old.split())}`, should not be there; {corrected}"
    inside = "" if around is slip.old else f" in `{ast.unparse(around)}`"
    if slip.role is Role.FACTOR and slip.part == "-1":
        what = "has the wrong sign"
    elif slip.role is not Role.OTHER:
        what = f"lacks the {'factor' if slip.role is Role.FACTOR else 'term'} `{slip.part}`"
    else:
        shown = ast.unparse(around)
        if slip.borrowed and isinstance(slip.new, ast.Name):
            uses, instead = ("be", "") if shown == old else ("use", f", not `{old}`")
            return (
                f"{name}: `{shown}` in backward (line {slip.line}) should {uses} the value that `{slip.new.id}` has in "
                f"forward{instead}; {corrected}"
            )
        taken = {change.old: change.new for change in slip.changes if isinstance(change.new, ast.AST)}
        return (
            f"{name}: line {slip.line} has `{shown}` where `{ast.unparse(_exchanged(around, taken))}` belongs; "
            f"{corrected}"
        )
    return f"{name}: `{old}` {what}{inside} (line {slip.line}); {corrected}"


def _to_be_saved(slip: Slip, draft: Draft) -> str:
    """That the edit reads local names of forward's, which have to be saved for backward; empty if it reads none."""
    if not slip.borrowed or not draft.has("forward"):
        return ""
    forward = draft.part("forward").node
    local = {n.id for n in ast.walk(forward) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    local |= {n.arg for n in ast.walk(forward) if isinstance(n, ast.arg)}
    names = sorted((names_in(slip.new) & local) - names_in(draft.edited.node))
    return f"; forward has to save {' and '.join(f'`{name}`' for name in names)} for this" if names else ""


def location_of(slip: Slip, draft: Draft) -> Location:
    """The line of the slip."""
    return Location(file=draft.file.path, line=slip.line)


def kind_of(slip: Slip, draft: Draft, cotangents: set[str], *, in_part: bool) -> FindingKind:
    """The finding's name: by what the edit changes, and whether that is a factor or a term of the gradient.

    `in_part` says that the gradient is wrong in some entries and right in others.
    """
    if _is_calculated_in_forward(slip) or (slip.drops and not in_part):
        return FindingKind.WRONG_GRADIENT
    is_masked = isinstance(slip.old, ast.Compare) or _combines_masks(slip.old) or _inverts(slip.new)
    if is_masked or slip.drops or _chooses(slip):
        return FindingKind.WRONG_ENTRIES
    is_index = _is_index(slip.old, draft) and not _is_of_shape(slip.old, draft)
    if isinstance(slip.old, ast.Slice) or is_index or only_indexes(slip.old, draft.edited.node):
        return FindingKind.WRONG_SHIFT
    if isinstance(slip.old, ast.stmt) or slip.role is Role.TERM or _exchanges_sign(slip) or _adds_operand(slip):
        return FindingKind.MISSING_TERM
    if _are_transposes(slip, draft):
        return FindingKind.TRANSPOSED
    return _kind_of_expression(slip, draft, cotangents, in_part=in_part)


def _kind_of_expression(slip: Slip, draft: Draft, cotangents: set[str], *, in_part: bool) -> FindingKind:
    """The name of a slip that `kind_of` could not name from the kind of expression alone."""
    if _turns_sign(slip) and (in_part or _is_in_sum(slip.old, draft)):
        return FindingKind.MISSING_TERM
    if _turns_sums(slip) or (_turns_sign(slip) and _is_returned_factor(slip.old, draft)):
        return FindingKind.WRONG_SIGN
    if slip.role is Role.OTHER:
        named = _by_functions(slip) or _by_argument(slip, draft)
        if named is not None:
            return named
    if slip.role is Role.FACTOR and slip.part != "-1":
        return FindingKind.WRONG_FACTOR
    if slip.role is Role.OTHER and (_is_term(slip.old, draft) or _adds_term(slip, draft)):
        return FindingKind.MISSING_TERM
    carried = carrying(draft.edited.node, cotangents) | cotangents
    return _by_place(slip, draft, carried)


def _is_calculated_in_forward(slip: Slip) -> bool:
    """Whether backward calculates what forward has under a name, and gets another value: any term may be wrong."""
    return slip.borrowed and isinstance(slip.new, ast.Name) and isinstance(slip.old, ast.BinOp | ast.Call)


def _drops_cast(slip: Slip) -> bool:
    """Whether an expression stands in the place of itself in another format, as `x` in that of `x.half()`."""
    old = slip.old
    if not isinstance(old, ast.Call) or not isinstance(old.func, ast.Attribute) or old.func.attr not in _CASTS:
        return False
    return ast.dump(old.func.value) == ast.dump(slip.new)


def _turns_sums(slip: Slip) -> bool:
    """Whether a list is replaced, or a tuple of sums; one of names or numbers is put in another order."""
    return isinstance(slip.old, ast.List) or (
        isinstance(slip.old, ast.Tuple) and any(isinstance(n, ast.BinOp) for n in slip.old.elts)
    )


def _are_transposes(slip: Slip, draft: Draft) -> bool:
    """Whether a name stands in the place of another, and one is assigned as the other transposed."""
    if not isinstance(slip.old, ast.Name) or not isinstance(slip.new, ast.Name):
        return False
    names = {slip.old.id, slip.new.id}
    assigned = [n for n in ast.walk(draft.edited.node) if isinstance(n, ast.Assign)]
    turned = [n for n in assigned if _calls(n.value) and _calls(n.value) <= {*_TURNS}]
    return any(names_in(n.value) | names_in(n.targets[0]) == names for n in turned)


def _is_term(node: ast.AST, draft: Draft) -> bool:
    """Whether an expression is itself a term of a sum, of which no term is a number."""
    above = draft.tree.parent(node)
    if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Add | ast.Sub):
        return False
    return not isinstance(above.left, ast.Constant) and not isinstance(above.right, ast.Constant)


def _adds_term(slip: Slip, draft: Draft) -> bool:
    """Whether something is added to an expression or taken from it, beside grad_output and not in a divisor."""
    new = slip.new
    if not isinstance(new, ast.BinOp) or not isinstance(new.op, ast.Add | ast.Sub) or new.left is not slip.old:
        return False
    return not _divides(slip.old, draft)


def _divides(node: ast.AST, draft: Draft) -> bool:
    """Whether an expression is, or is part of, a divisor."""
    above = draft.tree.parent(node)
    while isinstance(above, ast.expr):
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div) and above.right is node:
            return True
        node, above = above, draft.tree.parent(above)
    return False


def _combines_masks(node: ast.AST) -> bool:
    """Whether an expression combines masks, or inverts one."""
    operation = node.op if isinstance(node, ast.BinOp) else None
    return isinstance(operation, ast.BitAnd | ast.BitOr | ast.BitXor) or _inverts(node)


def _inverts(node: object) -> bool:
    """Whether an expression is the opposite of a mask."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)


def _chooses(slip: Slip) -> bool:
    """Whether the edit changes which entries a function picks."""
    return bool((_calls(slip.old) ^ _calls(slip.new)) & {"argmax", "argmin"})


def _exchanges_sign(slip: Slip) -> bool:
    """Whether two terms are added instead of subtracted, or the reverse."""
    if not isinstance(slip.old, ast.BinOp) or not isinstance(slip.new, ast.BinOp):
        return False
    both = isinstance(slip.old.op, ast.Add | ast.Sub) and isinstance(slip.new.op, ast.Add | ast.Sub)
    parts = (slip.old.left, slip.old.right)
    return both and parts == (slip.new.left, slip.new.right) and not any(isinstance(p, ast.Constant) for p in parts)


def _adds_operand(slip: Slip) -> bool:
    """Whether an operand of a matrix product becomes a sum, as of a matrix and its transpose."""
    old, new = slip.old, slip.new
    if not isinstance(old, ast.BinOp) or not isinstance(new, ast.BinOp) or not isinstance(new.op, ast.MatMult):
        return False
    return any(
        kept is before and isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add) and part.left is grown
        for part, grown, kept, before in (
            (new.left, old.left, new.right, old.right),
            (new.right, old.right, new.left, old.left),
        )
    )


def _turns_sign(slip: Slip) -> bool:
    """Whether the edit only changes the sign of an expression: a factor -1, -x to x, or a - b to b - a."""
    old, new = slip.old, slip.new
    if slip.role is Role.FACTOR:
        return slip.part == "-1"
    if isinstance(old, ast.UnaryOp) and isinstance(old.op, ast.USub):
        return old.operand is new
    if not isinstance(old, ast.BinOp) or not isinstance(new, ast.BinOp):
        return False
    both = isinstance(old.op, ast.Sub) and isinstance(new.op, ast.Sub)
    return both and (old.left, old.right) == (new.right, new.left)


def _is_in_sum(node: ast.AST, draft: Draft) -> bool:
    """Whether an expression is part of a term of a sum, of which no term is a number."""
    above = draft.tree.parent(node)
    while isinstance(above, ast.expr) and not isinstance(above, ast.Compare | ast.Subscript):
        adds = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add | ast.Sub)
        if adds and not any(isinstance(part, ast.Constant) for part in ast.iter_child_nodes(above)):
            return True
        above = draft.tree.parent(above)
    return False


def _is_returned_factor(node: ast.AST, draft: Draft) -> bool:
    """Whether an expression is a factor of what the return statement returns."""
    above = draft.tree.parent(node)
    while isinstance(above, ast.Tuple | ast.UnaryOp) or (
        isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult | ast.Div)
    ):
        above = draft.tree.parent(above)
    return isinstance(above, ast.Return)


def _by_functions(slip: Slip) -> FindingKind | None:
    """A name from the functions that the edit adds or removes: a cast, a transposition, a shift, a reduction."""
    if _drops_cast(slip):
        return FindingKind.LOW_PRECISION
    old, new = slip.old, slip.new
    more = _calls(new) ^ _calls(old)
    for known, kind in (
        ({*_TURNS, *_CONVOLUTIONS}, FindingKind.TRANSPOSED),
        ({"conj", "conjugate"}, FindingKind.MISSING_CONJUGATE),
        ({"real"}, FindingKind.MISSING_TERM),
        ({"imag"}, FindingKind.MISSING_TERM),
    ):
        if more and more <= known:
            return kind
    if more & {*_SHIFTS}:
        return FindingKind.WRONG_SHIFT
    if more and more <= {*_REDUCTIONS, "keepdim", "keepdims", "axis", "dim"}:
        is_term = any(
            not _calls(one) & {*_REDUCTIONS} and _adds_reduced(other) for one, other in ((old, new), (new, old))
        )
        return FindingKind.MISSING_TERM if is_term else FindingKind.WRONG_REDUCTION
    same = sorted(_leaves(old)) == sorted(_leaves(new)) and ast.dump(old) != ast.dump(new)
    return FindingKind.TRANSPOSED if same and _multiplies(old) else None


def _adds_reduced(node: ast.AST) -> bool:
    """Whether an expression adds something reduced to something that is not, or takes it away."""
    sums = [n for n in ast.walk(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add | ast.Sub)]
    return any(bool(_calls(n.left) & {*_REDUCTIONS}) != bool(_calls(n.right) & {*_REDUCTIONS}) for n in sums)


def _by_argument(slip: Slip, draft: Draft) -> FindingKind | None:
    """A name for a wrong number: an argument of a call, such as an axis, or the index in x.shape[...]."""
    whole = differ_in_numbers(slip.old, slip.new)
    call = slip.old if whole and isinstance(slip.old, ast.Call) else _call_round(slip.old, draft)
    if call is not None and (whole or _is_written_out(slip.old)):
        for known, kind in (
            (_REDUCTIONS, FindingKind.WRONG_REDUCTION),
            (_TURNS, FindingKind.TRANSPOSED),
            ((*_SHIFTS, *_PLACED), FindingKind.WRONG_SHIFT),
            (("range",), FindingKind.WRONG_GRADIENT),  # the number of steps of a loop is not a factor
        ):
            if _called(call) in known:
                return kind
    return FindingKind.WRONG_REDUCTION if _is_of_shape(slip.old, draft) else None


def _is_written_out(node: ast.AST) -> bool:
    """Whether an expression is a number with a sign or without, or a tuple of such numbers: `-1` is, `-x` is not."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_written_out, node.elts))
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _is_of_shape(node: ast.AST, draft: Draft) -> bool:
    """Whether an expression is the index in x.shape[...]."""
    above = draft.tree.parent(node)
    while isinstance(above, ast.UnaryOp):
        node, above = above, draft.tree.parent(above)
    if not isinstance(above, ast.Subscript) or above.slice is not node:
        return False
    return isinstance(above.value, ast.Attribute) and above.value.attr == "shape"


def _by_place(slip: Slip, draft: Draft, carried: set[str]) -> FindingKind:
    """A term if both operands of the nearest enclosing sum contain grad_output, else a factor."""
    if _adds(slip.old, carried):
        return FindingKind.MISSING_TERM
    above = draft.tree.parent(slip.old)
    while above is not None and not isinstance(above, ast.stmt):
        if _adds(above, carried):
            return FindingKind.MISSING_TERM
        if isinstance(above, ast.BinOp) and not isinstance(above.op, ast.Add | ast.Sub):
            return FindingKind.WRONG_FACTOR
        if isinstance(above, ast.Call) and _called(above) in _PRODUCTS:
            return FindingKind.WRONG_FACTOR
        above = draft.tree.parent(above)
    return FindingKind.WRONG_FACTOR


def _adds(node: ast.AST, carried: set[str]) -> bool:
    """Whether an expression is a sum of two parts with grad_output in them."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return False
    return bool(names_in(node.left) & carried and names_in(node.right) & carried)


def _around(node: ast.AST, draft: Draft) -> ast.AST:
    """The expression with as much of its context as can be shown; for what is not an expression, the statement."""
    found = node
    above = draft.tree.parent(node)
    is_whole = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    while above is not None and not isinstance(above, ast.FunctionDef | ast.For | ast.While | ast.If | ast.With):
        enough = isinstance(above, ast.stmt) and len(ast.unparse(found)) >= _TOO_SHORT
        if is_whole and (enough or len(ast.unparse(above)) > _SHOWN):
            break
        if isinstance(above, ast.expr | ast.stmt) and not isinstance(above, ast.Tuple | ast.Slice | ast.Starred):
            found = above
        above = draft.tree.parent(above)
    return found


def _exchanged(node: Any, taken: Mapping[ast.AST, ast.AST]) -> Any:
    """A copy of a tree with some nodes exchanged."""
    if isinstance(node, list):
        return [_exchanged(item, taken) for item in node]
    if not isinstance(node, ast.AST):
        return node
    if node in taken:
        return taken[node]
    made = type(node)(**{name: _exchanged(value, taken) for name, value in ast.iter_fields(node)})
    return ast.copy_location(made, node)


def _calls(node: ast.AST) -> frozenset[str]:
    """The attributes in an expression, functions such as torch.sum among them, and the names of keyword arguments.

    What is kept on `ctx` or `self`, as a number `ctx.T`, is none of these.
    """
    attributes = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    found = {n.attr for n in attributes if not (isinstance(n.value, ast.Name) and n.value.id in ("ctx", "self"))}
    found |= {n.arg for n in ast.walk(node) if isinstance(n, ast.keyword) and n.arg}
    return frozenset(found)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _call_round(node: ast.AST, draft: Draft) -> ast.Call | None:
    """The call that an expression is an argument of, where nothing but signs, tuples and keywords lies between."""
    above = draft.tree.parent(node)
    while isinstance(above, ast.UnaryOp | ast.keyword | ast.Tuple):
        above = draft.tree.parent(above)
    return above if isinstance(above, ast.Call) and above.func is not node else None


def _is_index(node: ast.AST, draft: Draft) -> bool:
    """Whether a number or a name is, or is part of, an index."""
    if not isinstance(node, ast.Constant | ast.UnaryOp | ast.Name | ast.BinOp):
        return False
    above = draft.tree.parent(node)
    while isinstance(above, ast.UnaryOp | ast.Tuple | ast.Slice | ast.BinOp):
        if isinstance(above, ast.BinOp) and not isinstance(above.op, ast.Add | ast.Sub):
            return False
        node, above = above, draft.tree.parent(above)
    return isinstance(above, ast.Subscript) and above.slice is node


def _leaves(node: ast.AST) -> list[str]:
    return [ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Constant)]


def _multiplies(node: ast.AST) -> bool:
    """Whether an expression is a matrix product."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    return isinstance(node, ast.Call) and _called(node) in ("mm", "matmul", "bmm", "outer")
