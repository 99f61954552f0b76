"""The constants that an argument's name or annotation suggests, likeliest first; and which arguments are numbers."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from gradcli.inputs.hints import argument_names
from gradcli.inputs.hints.argument_names import (
    excludes_tensors,
    is_layers_parameter,
    named_as_bias,
    names_tensors,
    types_named,
)
from gradcli.sources import nodes_of
from gradcli.targets import Parameter

_SAVES = "save_for_backward"
_POWERS = (
    r"(?<![\w.]){0} (?:\*\*|\* {0}(?!\w))|/ {0}(?![\w(])"
    r"|(?<![\w.]){0}\.(?:square|pow)\(|\.(?:square|pow)\({0}[,)]"
    r"|\b(?:fill_?|full|full_like|new_full|masked_fill_?|range)\((?:[^()]|\([^()]*\))*?(?<![\w.]){0}[,)]"
)
"""Powers, quotients and fills as `ast.unparse` writes them: `b ** 2`, `b * b`, `x / b`, `b.square()`, `y.fill_(b)`."""
_FIRST, _STEP = 0.3, 0.6
"""Of numbers in ascending order, such as limits: normal numbers lie below, between and above them."""


def numbers_among(
    saving: ast.Module | None, names: Sequence[str], gradients: Sequence[bool | None], tensors: Collection[str],
    forward: ast.Module | None = None,
) -> frozenset[str]:  # fmt: skip
    """The arguments that may be numbers: backward returns None for them, and they are not saved as tensors are.

    A name such as `weight` is that of a layer's parameter, which may lack its gradient. One such as `b` or `scale` is
    so too, unless another argument of the same Function may be a number, or forward squares `b`, divides by it or fills
    a tensor with it, as it does with no bias, or a letter is kept as an attribute, as in `ctx.w = w`. Where tensors are
    kept as attributes of ctx, nothing tells what else is kept so.

    Args:
        saving: the syntax tree of what saves them, forward or `setup_context`; None without source.
        names: of forward's arguments.
        gradients: whether backward has a gradient for each.
        tensors: what is annotated or documented as a tensor, or used as one.
        forward: its syntax tree.
    """
    known = None if saving is None else names_where_saved(saving, names)
    if saving is None or known is None:
        return frozenset()
    calls = [node for node in nodes_of(saving) if isinstance(node, ast.Call)]
    saved = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == _SAVES]
    inside = {node.id for call in saved for node in ast.walk(call) if isinstance(node, ast.Name)}
    kept = set(_kept_by_hand(saving))
    if any(own in kept for own, gradient in zip(known, gradients, strict=True) if gradient is not False):
        kept = set()
        if not saved:
            return frozenset()
    if not saved:
        inside = {name for name in names if _is_of_series(names[0], name)}
    found = {
        name
        for name, own, gradient in zip(names, known, gradients, strict=True)
        if gradient is False and inside.isdisjoint((name, own)) and name not in tensors
    }
    unlike_biases = {name for name in found if _is_no_bias(name, names[0], forward)}
    others = {name for name in found if not is_layers_parameter(name)} | unlike_biases
    is_sure = not all(means_tensor(name) for name in others)
    by_hand = {name for name, own in zip(names, known, strict=True) if own in kept and len(name) == 1}
    return frozenset(others | (found & by_hand) | {name for name in found if is_sure and _may_be_either(name)})


def means_tensor(name: str) -> bool:
    """Whether a name is a usual one of indices, a mask, labels, targets or running statistics."""
    word = name.lower().strip("_")
    named = argument_names.INDEX_NAMES | argument_names.MASK_NAMES
    patterns = (argument_names.PROBABILITY_NAMES, argument_names.STATE_NAMES)
    return word in named or any(pattern.fullmatch(word) for pattern in patterns)


def names_where_saved(saving: ast.Module, names: Sequence[str]) -> Sequence[str] | None:
    """The names that arguments have in forward, or in a `setup_context` that takes them apart; None if it does not."""
    function = next((node for node in nodes_of(saving) if isinstance(node, ast.FunctionDef)), None)
    parameters = [each.arg for each in function.args.args] if function is not None else []
    if set(names) <= set(parameters) or (function is not None and function.args.vararg is not None):
        return names
    for node in nodes_of(saving):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Name(id=name)) if name in parameters:
                found = [each.id for each in parts if isinstance(each, ast.Name)]
                if len(found) == len(parts) == len(names):
                    return found
    return None


def _kept_by_hand(saving: ast.Module) -> Iterator[str]:
    """The variables that are kept as attributes themselves, as in `ctx.x, ctx.y = x, y` and `ctx.saved = [x, y]`."""
    for node in nodes_of(saving):
        if isinstance(node, ast.Assign):
            attributes = [
                each for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Attribute)
            ]
            values = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]
            yield from (each.id for each in values if attributes and isinstance(each, ast.Name))


def _is_of_series(first: str, name: str) -> bool:
    """Whether two names are of one series, as x and y, a and b, or x1 and x2: what the first one is, the other is."""
    if len(first) == len(name) == 1:
        return 0 < ord(name) - ord(first) <= 2
    return first != name and first.rstrip("0123456789") == name.rstrip("0123456789")


def _is_no_bias(name: str, first: str, forward: ast.Module | None) -> bool:
    """Whether an argument called as a bias is none: forward takes a power of it, divides by it or fills with it.

    Beside a first argument `a`, the second one is `b` whatever it is.
    """
    if forward is None or not named_as_bias(name) or _is_of_series(first, name):
        return False
    return re.search(_POWERS.format(re.escape(name)), ast.unparse(forward)) is not None


def _may_be_either(name: str) -> bool:
    """Whether a name of a layer's parameter is as often that of a number, as `b` and `scale` are."""
    word = name.lower()
    known = (argument_names.REAL_NUMBERS, argument_names.WHOLE_NUMBERS, argument_names.PERHAPS_NUMBERS)
    return (len(word) == 1 and word != "w") or any(word in numbers for numbers in known)


def suggested(word: str, gradient: bool | None, names: Sequence[str]) -> tuple[Sequence[Any], float, float]:
    """The constants that a name suggests, what they cost, and what a tensor costs more because of them."""
    if argument_names.COMPANIONS.get(word, frozenset()) & {name.lower() for name in names}:
        return (), 0.0, 0.0
    sure = 3.0 if len(word) > 1 else 1.6
    for values, offset in (
        (argument_names.WHOLE_NUMBERS.get(word), sure),
        (argument_names.REAL_NUMBERS.get(word), sure),
        (argument_names.WORDS.get(word), 4.0),
        (argument_names.flag_values(word) or None, 3.0),
    ):
        if values is not None:
            return values, 0.0, offset
    if gradient is not True and argument_names.PART_NAMES.fullmatch(word):
        return ((1, 2), (2, 1)), 0.3, 0.0
    if word in argument_names.PERHAPS_NUMBERS:
        paired = {"gamma", "beta"} <= {name.lower() for name in names}
        likely = gradient is False or not (paired or word in ("gamma", "beta", "scale", "s", "t", "T", "c"))
        return argument_names.PERHAPS_NUMBERS[word], 0.1 if likely else 0.3, 0.8 if likely else 0.0
    for pattern, values, offset in argument_names.ENDINGS:
        if re.search(pattern, word):
            return values, 0.0, offset
    return (), 0.0, 0.0


def widens(tree: ast.Module | None, name: str) -> bool:
    """Whether a function divides a whole expression by a number, as `eps * logsumexp(x / eps)`, and does nothing else
    with it than to multiply and keep it: it is a width or a temperature, and no guard as in `x / (norm + eps)`.
    """
    divided, used, fitting = False, 0, 0
    for node in () if tree is None else nodes_of(tree):
        match node:
            case ast.BinOp(left=left, op=ast.Div(), right=ast.Name(id=right)) if right == name:
                divided, fitting = divided or not isinstance(left, ast.Constant), fitting + 1
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                fitting += sum(isinstance(each, ast.Name) and each.id == name for each in (left, right))
            case ast.Assign(targets=[ast.Attribute()], value=value):
                kept = value.elts if isinstance(value, ast.Tuple) else [value]
                fitting += sum(isinstance(each, ast.Name) and each.id == name for each in kept)
            case ast.Name(id=used_name) if used_name == name:
                used += 1
    return divided and used == fitting


def in_order(known: Sequence[float | None]) -> list[tuple[float, ...]]:
    """Values for the numbers of a Function that are not known, a real one and a whole one, in order with the others.

    Edges, limits and corners come in ascending order, and a Function may be meant for those alone. One number without
    others needs none.

    Args:
        known: the numbers in the order of the arguments, None where one is to be chosen.
    """
    places = [place for place, value in enumerate(known) if value is not None]
    found: list[tuple[float, ...]] = []
    for place, value in enumerate(known):
        before = max((n for n in places if n < place), default=None)
        after = min((n for n in places if n > place), default=None)
        low, high = (None if n is None else known[n] for n in (before, after))
        if value is not None or len(known) < 2:
            found.append(())
        elif before is not None and after is not None and low is not None and high is not None:
            found.append((low + (high - low) * (place - before) / (after - before),))
        elif before is not None and low is not None:
            found.append((low + _STEP * (place - before), low + place - before))
        elif after is not None and high is not None:
            found.append((high - _STEP * (after - place), high - (after - place)))
        else:
            found.append((_FIRST + _STEP * place, 2 + place))
    return [tuple(n if isinstance(n, int) else float(f"{n:.6g}") for n in values) for values in found]


def sure_constants(parameter: Parameter) -> Sequence[Any]:
    """The constants of an argument whose annotation or name says that it is not a tensor; else none."""
    word = parameter.name.lower().strip("_")
    if parameter.annotation and (excludes_tensors(parameter.annotation) or names_tensors(parameter.annotation)):
        return annotated_values(word, parameter.annotation) or ()
    if flags := argument_names.flag_values(word):
        return flags
    known = (argument_names.WHOLE_NUMBERS, argument_names.REAL_NUMBERS, argument_names.WORDS)
    named = next((values[word] for values in known if word in values and len(word) > 1), ())
    endings = (values for pattern, values, offset in argument_names.ENDINGS if offset > 1 and re.search(pattern, word))
    return named or next(endings, ())


def annotated_values(word: str, annotation: str) -> Sequence[Any] | None:
    """The constants of an annotation's types; None where it names no type of constants, or a tensor as well."""
    if not excludes_tensors(annotation):
        return None
    found: list[Any] = []
    for named in types_named(annotation):
        if named == "int":
            found += argument_names.WHOLE_NUMBERS.get(word, (2, 3, 1, -1, 4, 0))
        elif named == "float":
            found += argument_names.REAL_NUMBERS.get(word, argument_names.PERHAPS_NUMBERS.get(word, (2.5, 0.7, 0.1)))
        elif named == "bool":
            found += (True, False)
        elif named == "str":
            found += argument_names.WORDS.get(word, ("mean", "sum", "none"))
        elif named in ("tuple", "list", "sequence", "size"):
            known = [value for value in argument_names.WHOLE_NUMBERS.get(word, ()) if isinstance(value, tuple)]
            found += known or ((2, 2), (3, 4), (1, 1), (12,), (0, 1))
    return found or None
