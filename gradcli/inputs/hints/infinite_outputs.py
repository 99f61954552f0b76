"""Whether forward puts minus infinity into its outputs by design, as for the log-probabilities of forbidden actions."""

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.inputs.hints.conjugates import own_function, surroundings
from gradcli.sources import nodes_of, source_of, tree_of

_MINUS_INFINITY = re.compile(
    r"-\s*(?:float\(\s*['\"]inf(?:inity)?['\"]|(?:\w+\.)*inf(?:inity|ty)?\b)|['\"]-inf(?:inity)?['\"]|\bNINF\b",
    re.IGNORECASE,
)


def writes_minus_infinity(forward: Callable[..., Any] | None) -> bool:
    """Whether the source of forward, or of a function of the user's that it calls, has the number."""
    tree, names = tree_of(source_of(forward)), surroundings(forward)
    calls = () if tree is None else (node.func for node in nodes_of(tree) if isinstance(node, ast.Call))
    functions = (forward, *(own_function(each, names) for each in calls))
    return any(_MINUS_INFINITY.search(source_of(each)) is not None for each in functions if each is not None)


def minus_infinite(outputs: Sequence[NDArray[Any]]) -> list[NDArray[np.bool_]] | None:
    """Where outputs are minus infinity; None where one is infinite otherwise, or NaN, or where all are all so."""
    found = [np.isneginf(output) if output.dtype.kind == "f" else np.zeros(output.shape, bool) for output in outputs]
    finite = [np.isfinite(output) for output in outputs]
    is_known = all((one | other).all() for one, other in zip(found, finite, strict=True))
    return found if is_known and any(each.any() for each in finite) else None


def same_places(one: Sequence[NDArray[np.bool_]] | None, other: Sequence[NDArray[np.bool_]]) -> bool:
    """Whether outputs are minus infinity in the same places."""
    if one is None or len(one) != len(other):
        return False
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
