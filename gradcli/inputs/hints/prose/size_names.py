"""Which words are the names of sizes: usual ones, and those of variables that a Function reads a size into."""

import ast
import re
from collections.abc import Iterator

from gradcli.sources import nodes_of, tree_of

USUAL = frozenset({
    "batch", "batch_size", "bsz", "channels", "channel", "height", "width", "depth", "length", "seq", "seq_len", "time",
    "heads", "num_heads", "n_heads", "dim", "hidden", "features", "in_features", "out_features", "classes",
    "num_classes", "points", "tokens", "steps", "rows", "cols", "nodes", "edges",
})  # fmt: skip
"""Names of sizes that are words: other words in brackets are rather prose, as in `(mean, variance)`."""
_PARTS = re.compile(r"(?:n|num)_[a-z]\w*|[a-z]\w*?_?(?:len|dim|size)s?\d?")
"""How names of sizes begin or end: `n_experts`, `seqlen`, `headdim`, `vocab_size`."""


def is_usual(word: str) -> bool:
    """Whether a word is a usual name of a size, such as `batch`, `num_experts` or `head_dim`."""
    return word in USUAL or _PARTS.fullmatch(word) is not None


def sizes_in_source(source: str) -> frozenset[str]:
    """The names of a function's variables that are sizes: `rows, cols = x.shape`."""
    tree = tree_of(source)
    return frozenset() if tree is None else frozenset(lengths_in(tree))


def is_length(node: ast.expr, lengths: set[str]) -> bool:
    """Whether an expression is the size of an axis, or a shape; the number of axes, `len(x.shape)`, is none."""
    match node:
        case ast.Name(id=name):
            return name in lengths
        case ast.Subscript(value=value):
            return is_length(value, set())
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size")):
            return True
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name()]):
            return True
    return False


def lengths_in(tree: ast.Module) -> Iterator[str]:
    """The names of variables that are sizes: `n, c = x.shape`, `c = x.size(-1)`."""
    for node in nodes_of(tree):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=value) if is_length(value, set()):
                yield from (part.id for part in parts if isinstance(part, ast.Name))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_length(value, set()):
                yield name
