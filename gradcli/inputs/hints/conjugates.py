"""Whether source conjugates what is real at real inputs, which makes sense only if the inputs may be complex.

A convolution by Fourier transforms conjugates a spectrum, which is complex for real signals too, so its inputs need not
be complex. A user's own function called `conj`, such as one for quaternions, does not count either.
"""

import ast
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import CellType, FunctionType, ModuleType
from typing import Any

from gradcli.sources import nodes_of, source_of

_CONJUGATING = frozenset(("conj", "conjugate", "conj_physical", "adjoint"))
FRAMEWORKS = frozenset(("torch", "jax", "numpy", "scipy", "gradcli"))
"""The packages whose functions are not the user's own."""
_MAKE_COMPLEX = frozenset((
    "fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "rfft2", "rfftn", "ihfft", "stft", "complex", "polar",
    "view_as_complex", "eig", "eigvals", "complex64", "complex128", "cfloat", "cdouble",
))  # fmt: skip
_MAKE_REAL = frozenset((
    "irfft", "irfft2", "irfftn", "hfft", "istft", "abs", "angle", "view_as_real", "real", "imag", "shape", "size",
    "dtype", "device", "ndim",
))  # fmt: skip
_PARTS = frozenset(("real", "imag", "angle", "H", "mH"))
_HOLDERS = frozenset(("ctx", "self", "cls"))
"""Names of what holds numbers under such names as H, the height of an image."""
_COMPLEX_SOURCE = re.compile(r"fft|stft|\d[jJ]\b|complex|polar\(")
_CONJUGATING_SOURCE = re.compile(r"\.conj(?:ugate|_physical)?\(|\.mH\b")

Names = Mapping[str, Any]


def conjugates_arguments(forward: ast.Module, arguments: Collection[str], names: Names) -> bool:
    """Whether forward conjugates an argument itself, or takes its imaginary part.

    Args:
        forward: its syntax tree.
        arguments: their names.
        names: the global names that forward uses, with their values.
    """
    for node in nodes_of(forward):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="imag") if name in arguments:
                return True
            case ast.Call(func=ast.Attribute(attr="imag" | "view_as_real"), args=[ast.Name(id=name), *_]):
                if name in arguments:
                    return True
    operands = list(_conjugated(forward, names, adjoints=False))
    return any(isinstance(each, ast.Name) and each.id in arguments for each in operands)


def conjugates_reals(forward: ast.Module | None, backward: ast.Module, names: Names) -> bool:
    """Whether backward conjugates something that is real where the arguments are, or takes the real part of it.

    Args:
        forward: its syntax tree, where what backward reads from ctx is computed.
        backward: its syntax tree.
        names: the global names of both, with their values.
    """
    before = _Complex(names)
    if forward is not None:
        before.follow(forward)
    after = _Complex(names, known=before.found, kept=before.kept, saved=before.saved)
    if before.returned:
        after.found |= _parameters(backward)
    after.follow(backward)
    return any(not after.holds(operand) for operand in (*_conjugated(backward, names), *_real_parts(backward)))


def conjugated_names(tree: ast.Module | None, names: Names) -> frozenset[str]:
    """The variables that a function conjugates themselves, as `x` in `x.conj()`."""
    operands = () if tree is None else _conjugated(tree, names)
    return frozenset(each.id for each in operands if isinstance(each, ast.Name))


def surroundings(function: Callable[..., Any] | None) -> dict[str, Any]:
    """The names outside a function that it may use, with their values."""
    function = inspect.unwrap(function) if callable(function) else None
    if not inspect.isfunction(function):
        return {}
    held = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {**function.__globals__, **{name: cell.cell_contents for name, cell in held if cell != CellType()}}


def complex_among(
    names: Collection[str], shapes: Mapping[str, Sequence[int | str]], trees: Iterable[ast.Module | None]
) -> frozenset[str]:
    """The arguments, of those that documentation calls complex, whose numbers are not kept as pairs of real ones.

    They are pairs where the last axis has two entries, and no complex number is made or conjugated.

    Args:
        names: the arguments that are called complex.
        shapes: those that documentation gives.
        trees: the syntax trees of forward and backward.
    """
    pairs = {name for name in names if tuple(shapes.get(name, ()))[-1:] == (2,)}
    if pairs and any(map(_computes_with_complex, filter(None, trees))):
        pairs = set()
    return frozenset(names) - pairs


def _computes_with_complex(tree: ast.Module) -> bool:
    for node in nodes_of(tree):
        match node:
            case ast.Constant(value=complex()):
                return True
            case ast.Attribute(attr=attr) if attr in _CONJUGATING | _MAKE_COMPLEX | _PARTS:
                return True
    return False


class _Complex:
    """The names in a function whose values are complex though its arguments are real."""

    def __init__(
        self, names: Names, known: Collection[str] = (), kept: Collection[str] = (), saved: Collection[int] = ()
    ) -> None:
        self._names = names
        self.found = set(known)
        self.kept = set(kept)
        self.saved = set(saved)
        self.returned = False

    def follow(self, tree: ast.Module) -> None:
        """Go through the assignments of a function, twice because of loops."""
        for node in (*nodes_of(tree), *nodes_of(tree)):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._assign(target, value)
                case (
                    ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value)
                ):
                    self._assign(target, value)
                case ast.Call(func=ast.Attribute(attr="save_for_backward"), args=saved):
                    self.saved.update(number for number, each in enumerate(saved) if self.holds(each))
                case ast.Return(value=ast.expr() as value):
                    self.returned = self.returned or self.holds(value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                self.found |= {name} if self.holds(value) else set()
            case ast.Attribute(value=ast.Name(), attr=name):
                self.kept |= {name} if self.holds(value) else set()
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(parts) else None
                is_saved = isinstance(value, ast.Attribute) and value.attr == "saved_tensors"
                for number, part in enumerate(parts):
                    if is_saved:
                        self.found |= {part.id} if isinstance(part, ast.Name) and number in self.saved else set()
                    else:
                        self._assign(part, value if values is None else values[number])

    def holds(self, node: ast.expr) -> bool:
        """Whether an expression is complex because of something in it, not because the arguments are."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, complex)
            case ast.Name(id=name):
                return name in self.found
            case ast.Subscript(value=ast.Attribute(attr="saved_tensors"), slice=ast.Constant(value=number)):
                return number in self.saved
            case ast.Call(func=func):
                name = _last(func)
                known = name in _MAKE_COMPLEX or _matches(own_function(func, self._names), _COMPLEX_SOURCE)
                return known or (name not in _MAKE_REAL and self._holds_inside(node))
            case ast.Attribute(attr=attr):
                known = attr in _MAKE_COMPLEX or attr in self.kept
                return known or (attr not in _MAKE_REAL and self._holds_inside(node))
        return not isinstance(node, ast.Compare) and self._holds_inside(node)

    def _holds_inside(self, node: ast.AST) -> bool:
        """Whether a part of an expression is complex."""
        return any(
            self.holds(each) if isinstance(each, ast.expr) else self._holds_inside(each)
            for each in ast.iter_child_nodes(node)
        )


def _conjugated(tree: ast.Module, names: Names, *, adjoints: bool = True) -> Iterator[ast.expr]:
    """What is conjugated in a function: `x` in `x.conj()`, `torch.conj(x)` and `x.mH`; not the number `Planck.H`."""
    own = {node.name for node in nodes_of(tree) if isinstance(node, ast.FunctionDef)}
    for node in nodes_of(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in own:
                continue  # its body is looked at as well
            case ast.Call(func=ast.Attribute(value=operand, attr=attr), args=[]) if attr in _CONJUGATING:
                if adjoints or attr != "adjoint":
                    yield operand
            case ast.Call(func=func, args=[operand, *_]) if _last(func) in _CONJUGATING and _conjugates(func, names):
                yield operand
            case ast.Attribute(value=operand, attr="H" | "mH"):
                if adjoints and _may_be_tensor(operand, names):
                    yield operand


def _real_parts(tree: ast.Module) -> Iterator[ast.expr]:
    """What a function takes the real part of: `x` in `x.real` and `torch.real(x)`."""
    called = {id(node.func) for node in nodes_of(tree) if isinstance(node, ast.Call)}
    for node in nodes_of(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="real" | "view_as_real"), args=[operand]):
                yield operand
            case ast.Attribute(value=operand, attr="real") if id(node) not in called:
                yield operand


def _may_be_tensor(node: ast.expr, names: Names) -> bool:
    """Whether an expression may be a tensor: neither a class, a module or a number, nor what holds settings."""
    match node:
        case ast.Name(id=name):
            return name not in _HOLDERS and _may_have_adjoint(names.get(name))
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return _may_have_adjoint(getattr(names.get(name), attr, None))
    return True


def _may_have_adjoint(value: object) -> bool:
    """Whether something outside a function may be an array; None stands for what is unknown."""
    return value is None or (not isinstance(value, type) and hasattr(value, "shape"))


def _conjugates(func: ast.expr, names: Names) -> bool:
    """Whether a function of such a name is a framework's, or one that calls the framework's."""
    if (own := own_function(func, names)) is not None:
        return _matches(own, _CONJUGATING_SOURCE)
    match func:
        case ast.Name(id=name):
            return name in names or name == "conj"
        case ast.Attribute(value=ast.Name(id=name)):
            known = names.get(name)
            return _is_frameworks(known) if isinstance(known, ModuleType) else known is None and name.islower()
    return isinstance(func, ast.Attribute)


def own_function(func: ast.expr, names: Names) -> FunctionType | None:
    """The function of the user's own that an expression calls; None for those of frameworks and unknown ones."""
    match func:
        case ast.Name(id=name):
            value = names.get(name)
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            value = getattr(names.get(name), attr, None) if name in names else None
        case _:
            return None
    return value if inspect.isfunction(value) and not _is_frameworks(value) else None


def _is_frameworks(value: object) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(home).partition(".")[0] in FRAMEWORKS


def _matches(function: object, pattern: re.Pattern[str]) -> bool:
    return inspect.isfunction(function) and pattern.search(source_of(function)) is not None


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _parameters(tree: ast.Module) -> set[str]:
    """The names of a function's parameters, but for the first, which is ctx."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {each.arg for function in functions for each in (*function.args.posonlyargs, *function.args.args)[1:]}
