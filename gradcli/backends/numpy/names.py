"""What the names in a function's source say of the values that it returns: which are gradients, and of what."""

import ast
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, final

from gradcli.backends.documentation import documentation_of
from gradcli.frozen import dataclass
from gradcli.sources import returned_by, source_of, tree_of

_OF_A_GRADIENT = (
    r"(?:d(?:[A-Za-z]{1,4}_?(?=d))?_?(?:d_?)?|g_?|nabla_?|partial_?|del_?|der_?|deriv(?:ative)?_?"
    r"|(?:grad(?:ient)?s?|jac(?:obian)?)_?(?:(?:of|wrt)_)?)"
)
_GRADIENT_BEHIND = r"_?(?:grads?|gradients?|bar|jac(?:obian)?)"
_GRADIENT = re.compile(
    r"_?(?:d[A-Z_]\w*|d[a-z]\d?|dd?|\w*grad\w*|jac\w*|\w*_jac|J|der\w*|nabla\w*|hess\w*|slopes?|\w*prime|"
    r"d(?:theta|beta|gamma|alpha|mu|sigma|weights?|bias|params?|input|out|pred|logits|scores)\w*)"
)
_KEPT = re.compile(
    r"_?(?:\w*cache[sd]?|saved\w*|ctx|context|state|aux\w*|info|memory|mem|tape|residuals?|intermediates?)",
    re.IGNORECASE,
)
_NO_GRADIENT = re.compile(
    r"_?(?:mask\w*|probs?|\w*probabilit\w*|acc|accuracy|preds?|predictions?|y_?(?:hat|pred)|scores?|logits|hidden|"
    r"activations?|metrics?|stats?|labels?|indices|idx|argmax|argmin|outputs?|hits)",
    re.IGNORECASE,
)
_OF_NOTHING = frozenset(
    ("g", "grad", "grads", "gradient", "gradients", "jac", "jacobian", "deriv", "derivative", "der")
)
"""Names of gradients that name no argument, whatever letters an argument may have in common with them."""
_COTANGENT = re.compile(
    r"_?(?:d\w*|g|\w*grad\w*|g_?out\w*|upstream\w*|delta\w*|cot\w*|ct|v|seed|\w*bar|bar\w*|adjoint\w*)"
)
_CONVERSIONS = frozenset(
    (
        "reshape",
        "ravel",
        "flatten",
        "squeeze",
        "copy",
        "astype",
        "item",
        "tolist",
        "float",
        "float64",
        "array",
        "asarray",
    )
)
"""Calls that leave a value what it is."""
_SCALARS = re.compile(
    r"((?:\w+\s*(?:,|\band\b)\s*)*\w+)\s*(?:[:(]|\bare\b|\bis\b|[-–—])?\s*(?:both\s+|an?\s+)?(?:real\s+)?scalars?\b",
    re.IGNORECASE,
)
_DATUM = (
    r"(?:(?:class\s+)?labels?|class\s+indices|targets?|counts|observations?|measurements?|data(?:\s?sets?)?|integers?"
    r"|ground[- ]truth)"
)
_DATA = re.compile(rf"_?(?:{_DATUM}|y_?true|observed)", re.IGNORECASE)
"""Names of arguments that a function is fitted to."""
_ENDS = (
    r"(?=(?:\s+(?:values|points|vector|array|matrix))?\s*(?:$|[.,;:()\[\]\n]"
    r"|\b(?:of|for|from|in|per|with|and|at|between|are|is)\b))"
)
_BEFORE_A_KIND = (
    r"(?:(?:np\.)?(?:nd)?arrays?|vector|matrix|\bof\b|\bshape\b|\([^()]*\)|\[[^\[\]]*\]|[:=,–—-]|\b(?:is|are|the)\b)"
)
_KIND = (
    r"(?:(?:observed|measured|known|given|true|training|binary|integer|noisy|class|regression|real|scalar|corresponding"
    r"|their|[-−+±01/{},]+)\s+)*"
)
_SAYS_DATA = re.compile(
    rf"(?P<names>\w+(?:\s*(?:,|\band\b|&)\s*\w+)*)\s*(?:{_BEFORE_A_KIND}\s*)+{_KIND}{_DATUM}{_ENDS}", re.IGNORECASE
)
"""What says that arguments are data: `y: (N,) counts`, `X and y are data`."""
_DATA_BEFORE = re.compile(rf"\b{_DATUM}\s+(?P<names>\w+)\b", re.IGNORECASE)
"""What says so of the name behind it: `likelihood of counts y`."""
_FEATURES = frozenset(("X", "x", "features", "inputs"))
"""What is known along with labels or targets."""
_SAYS_GRADIENT = re.compile(r"grad|derivative|jacobian|_jac\b|\bdf\b|with_d|and_d|slope", re.IGNORECASE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a function returns as its source names it, element by element; None for one without a name of its own."""

    elements: tuple[str | None, ...] = ()

    def of(self, count: int) -> tuple[str | None, ...]:
        """The names of `count` returned values; none where the source returns another number."""
        return self.elements if len(self.elements) == count else (None,) * count


def names_returned(function: Callable[..., Any] | None) -> Names:
    """The names in a function's returns of several values, if all of these agree."""
    found = {tuple(map(_name_of, value.elts)) for value in _returned(function) if isinstance(value, ast.Tuple)}
    if len({len(elements) for elements in found}) != 1:
        return Names()
    merged = [set(column) - {None} for column in zip(*found, strict=True)]
    return Names(elements=tuple(next(iter(names)) if len(names) == 1 else None for names in merged))


def name_returned(function: Callable[..., Any] | None) -> str | None:
    """The name of the one value that a function returns, where it has one."""
    found = {_name_of(value) for value in _returned(function) if not isinstance(value, ast.Tuple)}
    return next(iter(found)) if len(found) == 1 else None


def returns_several(function: Callable[..., Any] | None) -> bool:
    """Whether a function's source returns several values."""
    return any(isinstance(value, ast.Tuple) for value in _returned(function))


def is_offset(name: str) -> bool:
    """Whether an argument of this name is likely added to each row of something: `b`, `bias`, `beta`."""
    return re.fullmatch(r"_?(?:b\d*|b_?[a-z]{1,3}|\w*bias\d*|beta\d*|shift|offset)_?", name) is not None


def speaks_of_gradients(function: Callable[..., Any]) -> bool:
    """Whether the name or the documentation of a function says that it returns a gradient."""
    named = getattr(function, "__name__", ""), getattr(function, "__doc__", None) or ""
    return any(_SAYS_GRADIENT.search(text) for text in named)


def scalars_documented(function: Callable[..., Any]) -> int:
    """How many arguments the documentation of a function calls scalars, as in `mu, log_sigma scalars`."""
    said = re.findall(_SCALARS, getattr(function, "__doc__", None) or "")
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = set() if code is None else set(code.co_varnames[: code.co_argcount])
    return len(names & {name for several in said for name in re.findall(r"\w+", several)})


def data_documented(function: Callable[..., Any], arguments: Collection[str]) -> frozenset[str]:
    """The arguments that are data by their names or the documentation: labels, targets, counts, observations."""
    text = f"{getattr(function, '__doc__', None) or ''}\n\n{documentation_of(inspect.unwrap(function))}"
    return frozenset(name for name in arguments if _DATA.fullmatch(name)) | (_called_data(text) & set(arguments))


@lru_cache(maxsize=16)
def _called_data(text: str) -> frozenset[str]:
    """The words that a text calls data. They are kept, since the search for inputs asks at every try."""
    found = (match["names"] for pattern in (_SAYS_DATA, _DATA_BEFORE) for match in pattern.finditer(text))
    return frozenset(word for names in found for word in re.findall(r"\w+", names))


def may_lack_gradients(left: Collection[str], data: Collection[str], others: Collection[str]) -> bool:
    """Whether a derivative may return no gradients for the arguments that are `left`: for data, and features beside it.

    Args:
        left: the names of floating arrays.
        data: the arguments that are known to be data.
        others: the arguments that cannot have a gradient.
    """
    more = set(left) - set(data)
    return not more or (more <= _FEATURES and not set(data).isdisjoint((*left, *others)))


def seems_gradient(name: str | None) -> bool:
    """Whether a value of this name is likely a gradient: `dW`, `grads`, `jac`."""
    return name is not None and _GRADIENT.fullmatch(name) is not None and not seems_kept(name)


def seems_kept(name: str | None) -> bool:
    """Whether a value of this name is likely what a backward function needs of a forward one: `cache`."""
    return name is not None and _KEPT.fullmatch(name) is not None


def seems_number(name: str) -> bool:
    """Whether a value, or a function, of this name is likely a single number: a loss."""
    return re.search(r"loss|cost|objective|energy|nll|elbo|likelihood|mse", name.lower()) is not None


def seems_cotangent(name: str) -> bool:
    """Whether a parameter of this name likely takes the gradient of an output: `dout`, `grad_output`, `upstream`."""
    return _COTANGENT.fullmatch(name) is not None and not seems_kept(name)


def seems_no_gradient(name: str | None) -> bool:
    """Whether a value of this name is hardly a gradient: `cache`, `mask`, `probs`."""
    return seems_kept(name) or (name is not None and _NO_GRADIENT.fullmatch(name) is not None)


def argument_meant(name: str | None, arguments: Collection[str], *, itself: bool = False) -> str | None:
    """The argument whose gradient a name stands for: W for `dW`, `grad_W`, `W_grad`; None if that is not sure.

    Args:
        name: of a value, or the key of one.
        arguments: the names of what gradients may be of.
        itself: whether the argument's own name stands for its gradient, as a key of a dict does.
    """
    if name is None:
        return None
    if itself and name in arguments:
        return name
    if name.strip("_").lower() in _OF_NOTHING:
        return None
    for flags in (0, re.IGNORECASE):
        meant = {a for a in arguments if _means(name, a, flags) or (itself and flags and name.lower() == a.lower())}
        if meant:
            longest = max(map(len, meant))  # `dL_dw` may mean w, and the longest name is the surest
            surest = [a for a in meant if len(a) == longest]
            return surest[0] if len(surest) == 1 else None
    return None


def arguments_meant(
    names: Sequence[str | None], arguments: Sequence[str], *, itself: bool = False
) -> tuple[str, ...] | None:
    """The arguments that names of gradients stand for, if each stands for one of its own."""
    found = [argument_meant(name, arguments, itself=itself) for name in names]
    known = tuple(name for name in found if name is not None)
    return known if len(set(known)) == len(names) else None


def keys_meant(gradients: Mapping[Any, object], arguments: Collection[str]) -> dict[Any, str]:
    """For the keys of a dict of gradients the arguments that they stand for."""
    found = {key: argument_meant(str(key), arguments, itself=True) for key in gradients}
    return {key: name for key, name in found.items() if name is not None}


def _means(name: str, argument: str, flags: int) -> bool:
    bare = re.escape(argument.strip("_"))
    pattern = rf"_?(?:{_OF_A_GRADIENT}{bare}|{bare}{_GRADIENT_BEHIND})_?"
    return re.fullmatch(pattern, name, flags) is not None


def _returned(function: Callable[..., Any] | None) -> list[ast.expr]:
    """What a function returns in its own body, not that of functions inside it."""
    return [] if function is None else returned_by(tree_of(source_of(inspect.unwrap(function))))


def _name_of(node: ast.expr) -> str | None:
    """The name of a returned value, also if it is converted or added to: `dw.reshape(w.shape)`, `dw + rate * w`."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return node.attr
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            added = {
                addend.id for addend in _addends(node) if isinstance(addend, ast.Name) and seems_gradient(addend.id)
            }
            return next(iter(added)) if len(added) == 1 else None
        called = node.func if isinstance(node, ast.Call) else None
        named = getattr(called, "attr", getattr(called, "id", ""))
        if not isinstance(node, ast.Call) or named not in _CONVERSIONS:
            return None
        if isinstance(called, ast.Attribute) and not _is_module(called.value):
            node = called.value
        elif node.args:
            node = node.args[0]
        else:
            return None


def _addends(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from (*_addends(node.left), *_addends(node.right))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _addends(node.operand)
    else:
        yield node


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "numpy", "scipy", "math")
