"""The message if no inputs were found: the closest attempt, and how to give inputs."""

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.cases import InputSpec
from gradcli.errors import OverrunError, raised_on_host
from gradcli.inputs.hints.argument_names import types_named
from gradcli.inputs.hints.buffers import arrays_written_into
from gradcli.inputs.hints.conjugates import own_function, surroundings
from gradcli.inputs.hints.documented_order import documented_order
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.prose.formulas import names_in, size_of
from gradcli.inputs.hints.reading import convolved, read_hints
from gradcli.inputs.hints.suggested_constants import sure_constants
from gradcli.inputs.search.budget import Budget
from gradcli.inputs.search.error_messages import Failure
from gradcli.inputs.search.named_axes import SIZES
from gradcli.inputs.search.trials import Trials
from gradcli.sources import source_of, tree_of
from gradcli.targets import Parameter, TargetInfo

if TYPE_CHECKING:
    from gradcli.inputs.search.unsolved.lasting_errors import Place

_LIST_WANTED = re.compile(r"Expected a value of type '(?:List|Tuple)\[[^']*Tensor[^']*' for argument '(\w+)'")
"""How PyTorch refuses a tensor in the place of a list of them."""
_CALLABLE = frozenset(("callable", "module", "function", "functiontype"))
_DEFINITE = re.compile(r"\b(?:SPD|PSD)\b|\bpositive[- ](?:semi-?)?definite", re.IGNORECASE)
_DEEPEST = 2
"""Calls of further functions that an argument is followed into."""
_TENSORS_WANTED = re.compile(r"must be (?:tuple|list) of Tensors, not Tensor")


def farthest(searched: Sequence[Trials]) -> Failure | None:
    """The failure of the trial in which forward got furthest."""
    return max((trials.best for trials in searched if trials.best), key=lambda each: each.progress, default=None)


def failure_text(
    info: TargetInfo, best: Failure | None, budget: Budget, dtype: str, place: "Place | None" = None
) -> str:
    """What was tried, the error of the attempt that got furthest into forward, and how inputs can be given.

    Args:
        info: the target.
        best: the failure of the attempt that got furthest, if there was any.
        budget: what the search has used.
        dtype: of the tensors that were tried.
        place: the line that raised whatever the inputs were, if the search ended because of one.
    """
    names = [parameter.name for parameter in info.parameters]
    if not names:
        return (
            f"{info.name} takes no arguments, so it has no gradient: give a target that takes tensors; if "
            f"{info.name} returns such a target, assign it to a name in the module and give that name"
        )
    if best is not None and best.whole:
        return (
            f"{info.name} returns only whole numbers or booleans (tried {budget.count:,} sets of inputs), which have "
            "no gradient, so there is nothing to check; give a target that returns real numbers"
        )
    if best is not None and place is not None and place.is_certain:
        raised = f"{type(best.error).__name__}: {best.message}"
        return f"{info.name} accepts no inputs: {place} raises {raised}, whatever the inputs are"
    lines = [
        f"no inputs found that {info.name} accepts: tried {budget.count:,} sets "
        f"(arguments {', '.join(names)}; tensors of rank 0 to 4, indices, masks, constants)"
    ]
    if best is not None and best.error is not None:
        lines += [f"  {line}" for line in _what_was_raised(best.error, best.message)]
    elif best is not None:
        unusable = "an empty output, or an output that does not depend on some argument"
        what = "NaN or infinity" if best.non_finite else unusable
        what = "a result that holds no tensor: does forward return one?" if best.no_tensor else what
        lines.append(f"  closest attempt gave {what}")
    if budget.ran_late is not None:
        lines.append(f"  {budget.ran_late}")
    if place is not None:
        lines.append(
            f"  {place} raises this whenever it is reached, and every argument was varied: if a branch of forward "
            "avoids it, give inputs that take this branch"
        )
    required = [parameter for parameter in info.parameters if not parameter.has_default] or list(info.parameters)
    lines.append(f"  {_how_to_give(info, required, best, dtype)}")
    return "\n".join(lines)


def _what_was_raised(error: BaseException, message: str) -> list[str]:
    """How the closest attempt failed, and what is to be done about an attempt that took too long."""
    if isinstance(error, OverrunError):
        return [
            f"closest attempt: forward was {message}",
            "if forward takes that long, give the inputs: at inputs that you give, no call of it is stopped",
        ]
    host = raised_on_host(message)
    if host is not None:
        return [
            f"closest attempt: forward called a Python function from compiled code (a callback), which raised {host}"
        ]
    return [f"closest attempt failed with: {type(error).__name__}: {message}"]


def _how_to_give(info: TargetInfo, parameters: Sequence[Parameter], best: Failure | None, dtype: str) -> str:
    names = [parameter.name for parameter in parameters]
    called = functions_called(info, names)
    if called:
        return (
            f"forward calls {' and '.join(called)}, and no flag gives a function or a module: add a static method "
            "sample_inputs that returns a tuple of forward's arguments, or call "
            f"gradcli.check(target, ({_tuple_of(names)})) in Python"
        )
    containers = _containers(info, names, best)
    if not containers:
        shapes = _with_definite(_documented(info), names, "" if best is None else best.message)
        hints = read_hints(info, [parameter.name for parameter in info.parameters])
        arrays, tensors = arrays_written_into(tree_of(source_of(info.forward)), names), hints.read
        kind = "" if dtype == "float64" else f",dtype={dtype}"
        flags = " ".join(
            f"-i {each.name}={shapes.get(each.name, '3x4')}{kind}"
            if each.name in tensors - arrays
            else _flag(
                each,
                shapes.get(each.name, "3x4") + kind,
                hints.objects.get(each.name, ()),
                is_array=each.name in arrays,
            )
            for each in parameters
        )
        return f"give the inputs: {flags} (a tensor by -i NAME=SHAPE, a constant by -a NAME=VALUE)"
    given = _tuple_of([containers.get(name, name) for name in names])
    return (
        f"forward expects a list, tuple or dict for {' and '.join(containers)}: if it holds tensors, call "
        f"gradcli.check(target, ({given})) in Python; if it holds constants, use -a NAME=VALUE"
    )


def _tuple_of(names: Sequence[str]) -> str:
    return ", ".join(names) + ("," if len(names) == 1 else "")


def _documented(info: TargetInfo) -> dict[str, str]:
    """Examples of the shapes that documentation gives, as flags have them."""
    source = source_of(info.forward)
    arguments = [parameter.name for parameter in info.parameters]
    shapes = documented_shapes(arguments, source, info.documentation)
    from gradcli.inputs.hints.prose.equations import with_equations

    shapes = {**convolved((source,), arguments), **with_equations(shapes, arguments, source, info.documentation)}
    axes = [axis for shape in shapes.values() for axis in shape]
    names = dict.fromkeys(name for axis in axes if isinstance(axis, str) for name in names_in(axis))
    sizes = dict(zip(names, (size for size in SIZES if size not in axes), strict=False))
    for larger, smaller in documented_order(shapes, source, info.documentation):
        if sizes.get(larger, 0) < sizes.get(smaller, 0):
            sizes[larger], sizes[smaller] = sizes[smaller], sizes[larger]
    found = {name: [a if isinstance(a, int) else size_of(a, sizes) for a in shape] for name, shape in shapes.items()}
    return {name: "x".join(map(str, shape)) or "scalar" for name, shape in found.items() if None not in shape}


def _with_definite(shapes: dict[str, str], names: Sequence[str], message: str) -> dict[str, str]:
    """The shapes with the domain of the arguments that a message says to be no positive definite matrices.

    Forward's message has its own name for an argument, as `Q` for `Q_`.
    """
    if _DEFINITE.search(message) is None:
        return shapes
    words = set(re.findall(r"\w+", message))
    named = [name for name in names if not words.isdisjoint((name, name.strip("_")))] or list(names)
    return {**shapes, **{name: f"{shapes.get(name, '3x3')},domain=spd" for name in named if len(named) == 1}}


def _flag(parameter: Parameter, shape: str, objects: Sequence[Any] = (), *, is_array: bool = False) -> str:
    """An example of the flag for an argument; by -a where its annotation or name says that it is not a tensor.

    What forward writes into is a tensor whatever its name, and probably has no gradient.
    """
    if parameter.variadic:
        return f"-i '{parameter.name}[0]={shape}'"
    if is_array:
        return f"-i {parameter.name}={shape},grad=false"
    values = objects or sure_constants(parameter)
    if values and "domain=" not in shape:
        return InputSpec(name=parameter.name, kind="value", value=values[0]).as_flag()
    return f"-i {parameter.name}={shape}"


def _containers(info: TargetInfo, names: list[str], best: Failure | None) -> dict[str, str]:
    """A Python example of each argument that forward uses as a container of tensors."""
    found = {
        name: "{" + ", ".join(f'"{key}": {_variable(key)}' for key in keys) + "}"
        for name, keys in keys_read(info, names).items()
    }
    message = "" if best is None else best.message
    listed = _LIST_WANTED.findall(message) or (names if _TENSORS_WANTED.search(message) and len(names) == 1 else [])
    return found | {name: "[x, y]" for name in listed if name in names}


def _variable(key: str) -> str:
    return key if key.isidentifier() else "x"


def functions_called(info: TargetInfo, names: Sequence[str]) -> list[str]:
    """Those of forward's arguments that it calls as they are, itself or in a function that it passes them on to.

    Those whose elements it calls are among them. A module is called by its `forward` as well. What is annotated as one
    of these is called somewhere.
    """
    kinds = {each.name: types_named(each.annotation or "") for each in info.parameters}
    said = {name for name, types in kinds.items() if types and _CALLABLE.issuperset(types)}
    called = said | _called_in(info.forward, _DEEPEST)
    return [name for name in names if name in called]


def _called_in(function: Callable[..., Any] | None, deepest: int) -> set[str]:
    """The names in a function that it calls and does not assign to."""
    nodes = list(ast.walk(tree)) if (tree := tree_of(source_of(function))) is not None else []
    found: set[str] = set()
    known = surroundings(function)
    loops = _looped_over(nodes)
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        match call.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name), attr="forward"):
                found |= {name, *(loops.get(name, ()))}
            case ast.Subscript(value=ast.Name(id=name)):
                found.add(name)
        if deepest and (helper := own_function(call.func, known)) is not None:
            inner = _called_in(helper, deepest - 1)
            passed = dict(zip(inspect.signature(helper).parameters, call.args, strict=False))
            passed |= {each.arg: each.value for each in call.keywords if each.arg is not None}
            found |= {each.id for name, each in passed.items() if name in inner and isinstance(each, ast.Name)}
    return found - {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _looped_over(nodes: Sequence[ast.AST]) -> dict[str, set[str]]:
    """What each variable of a loop is an element of, as `block` is of `blocks` in `for block, n in zip(blocks, ns)`."""
    found: dict[str, set[str]] = {}
    for loop in (node for node in nodes if isinstance(node, ast.For | ast.comprehension)):
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        over = loop.iter.args if isinstance(loop.iter, ast.Call) else [loop.iter]
        if len(over) < len(targets):  # as of enumerate
            targets = targets[-len(over) :] if over else []
        for target, each in zip(targets, over, strict=False):
            if isinstance(target, ast.Name) and isinstance(each, ast.Name):
                found.setdefault(target.id, set()).add(each.id)
    return found


def keys_read(info: TargetInfo, names: Sequence[str]) -> dict[str, list[str]]:
    """The strings by which forward looks into each of its arguments."""
    keys: dict[str, list[str]] = {}
    tree = tree_of(source_of(info.forward))
    for node in [] if tree is None else ast.walk(tree):
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            continue
        if node.value.id in names and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            held = keys.setdefault(node.value.id, [])
            held += [] if node.slice.value in held else [node.slice.value]
    return keys
