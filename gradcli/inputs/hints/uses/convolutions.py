"""The shapes of a depthwise convolution's input and weight, as of `conv2d(x, w, groups=x.shape[1])`."""

import ast
import re
from collections.abc import Collection, Iterable, Mapping

from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.sources import nodes_of

CONVOLUTION = re.compile(r"conv([123])d")


def depthwise_shapes(trees: Iterable[ast.Module | None], names: Collection[str]) -> Mapping[str, tuple[Axis, ...]]:
    """The axes of arguments that are convolved channel by channel: the weight has one input channel for each.

    Beside a padding of p entries, which a call gives as a number, the weight has 2 p + 1, so that the output is as
    large as the input: the gradient of the input may be the same convolution then.
    """
    found: dict[str, tuple[Axis, ...]] = {}
    for node in (each for tree in trees if tree is not None for each in nodes_of(tree)):
        match node:
            case ast.Call(args=[ast.Name(id=x), ast.Name(id=w), *_], func=function):
                kind = CONVOLUTION.fullmatch(ast.unparse(function).rpartition(".")[2])
                given = {each.arg: each.value for each in node.keywords}
                if kind is None or x == w or not {x, w} <= set(names) or not _are_channels(given.get("groups"), x):
                    continue
                axes, width = range(int(kind[1])), _width(given.get("padding"))
                found.setdefault(x, ("batch", "channels", *(f"length_{axis}" for axis in axes)))
                found.setdefault(w, ("channels", 1, *(f"width_{axis}" if width is None else width for axis in axes)))
    return found


def _width(padding: ast.expr | None) -> int | None:
    """How many entries the weight has beside a padding that is written as a number above zero."""
    match padding:
        case ast.Constant(value=int(entries)) if entries > 0:
            return 2 * entries + 1
    return None


def _are_channels(node: ast.expr | None, name: str) -> bool:
    """Whether an expression is the size of the second axis of a variable."""
    return node is not None and ast.unparse(node) in (f"{name}.shape[1]", f"{name}.size(1)", f"{name}.size()[1]")
