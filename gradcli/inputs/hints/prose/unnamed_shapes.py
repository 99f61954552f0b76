"""Shapes that stand without names: of each argument, as in `# (B, N, 3), (B, M, 3)`, or of all at once."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence

from gradcli.inputs.hints.documented_shapes import Axis, shapes_in_a_row, texts_of
from gradcli.sources import tree_of

_ARROW = re.compile(r"->|→|=>|↦")
_SCALARS = re.compile(
    r"\b(?:accept|take|expect|support|handle|require)s?\s+(?:only\s+)?(?:an?\s+)?"
    r"(?:scalars?(?:\s+(?:values?|numbers?))?\s+as\s+(?:(?:an?|the|its|all|both)\s+)?(?:inputs?|arguments?)"
    r"|scalar\s+(?:values|numbers|inputs|arguments))(?:\s+only)?(?=\s*(?:[.,;:)]|$))"
    r"|\b(?:all|both)\s+(?:inputs|arguments)\s+(?:are|(?:must|should|have to)\s+be)\s+scalars?\b(?!-)"
    r"|\bscalar\s+(?:inputs|arguments)\s+only\b",
    re.IGNORECASE,
)
"""What says of all arguments that they are single numbers; not `takes a scalar x`, nor `scalar inputs and a vector`."""
_WORD = re.compile(r"[A-Za-z_]\w*")


def unnamed_shapes(tensors: Sequence[str], source: str, documentation: str = "") -> dict[str, tuple[Axis, ...]]:
    """The shapes of tensors that a line gives without their names: as many as there are tensors.

    A comment behind the first statement rather describes what is computed there. So does a single shape without an
    arrow, and a line in which an argument has its name.

    Args:
        tensors: the arguments that may be tensors, in forward's order.
        source: of forward, of which the docstring is read, and the comments before the first statement.
        documentation: a further text, such as the class's docstring.
    """
    texts = texts_of(source, documentation)
    for line in (*texts[0].splitlines(), *_first_comments(source), *texts[-1].splitlines()):
        before, *after = _ARROW.split(line, maxsplit=1)
        prose, shapes = shapes_in_a_row(before, tensors)
        is_alone = len(shapes) > 1 and not prose.strip("# ")
        if len(shapes) == len(tensors) and (is_alone or after) and not {*_WORD.findall(prose)} & {*tensors}:
            return dict(zip(tensors, shapes, strict=True))
    return {}


def says_scalars(text: str) -> bool:
    """Whether source or documentation says that a function takes single numbers, of all arguments without their names.

    That is often said after what is returned, as of an example.
    """
    return _SCALARS.search(text) is not None


def _first_comments(source: str) -> Iterator[str]:
    """The comments before the first statement of a function, but its docstring."""
    tree = tree_of(source)
    function = next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None) if tree else None
    if function is None:
        return
    has_docstring = ast.get_docstring(function) is not None
    first = (function.body[has_docstring:] or function.body)[0].lineno
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.start[0] < first:
            yield token.string
