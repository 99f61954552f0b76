"""Measure the numerics as someone who changes them meets them: `python -m tools.core [CHECKOUT]`.

Lines (all, and of code), named constants and numbers inside functions, the longest chain of imports, and four paths
through `verify` on tanh of a 3 by 4 array: a right gradient and one times 1.01, both with a reference; one times 1.001
without; and a right one of a forward in float16. A path is given as functions, files, calls and switches of file. With
another checkout, the same is measured there too and shown beside it.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import subprocess
import sys
import tokenize
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent.parent
SHAPE = (3, 4)
SEED = 1
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
Figures = dict[str, list[int]]


def files_of(root: Path) -> list[Path]:
    """The modules of the numerics."""
    return sorted((root / "gradcli" / "numerics").rglob("*.py"))


def lines_of_code(text: str) -> int:
    """Lines that hold something else than a comment or a text between statements."""
    texts: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    used: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            used |= set(range(token.start[0], token.end[0] + 1))
    return len(used - texts)


def size(root: Path) -> Figures:
    """Lines of all files, and the length of the longest chain of imports among them."""
    texts = {file: file.read_text(encoding="utf-8") for file in files_of(root)}
    return {
        "files": [len(texts)],
        "lines": [sum(len(text.splitlines()) for text in texts.values())],
        "lines of code": [sum(map(lines_of_code, texts.values()))],
        "floors of imports": [_floors(root, texts)],
    }


def _floors(root: Path, texts: dict[Path, str]) -> int:
    """The length of the longest chain of imports within the numerics."""
    graph = {_module(root, file): _imports(text) for file, text in texts.items()}

    @cache
    def floor(module: str) -> int:
        return 1 + max((floor(other) for other in graph[module] if other in graph and other != module), default=0)

    return max(map(floor, graph))


def _module(root: Path, file: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def numbers(root: Path) -> Figures:
    """Named constants, those without a reason beside them, and numbers inside functions."""
    from tools import constants

    constants.NUMERICS = root / "gradcli" / "numerics"
    known = constants.constants()
    return {
        "named constants": [len(known)],
        "without a reason": [sum(not constant.why for constant in known)],
        "numbers inside functions": [sum(map(constants.inline, constants.files()))],
    }


def _found(*places: str) -> Any:
    """The first of some modules that exists, for checkouts that hold it elsewhere."""
    for place in places:
        try:
            return importlib.import_module(place)
        except ImportError:
            continue
    raise ImportError(f"expected one of {places}, found none")


def tanh(factor: float, kind: str) -> Any:
    """The tanh of an array as a map, computed in a format; its gradient is wrong by a factor."""
    maps = _found("gradcli.numerics.maps.vector_map", "gradcli.numerics.vector_map")
    spaces = _found("gradcli.numerics.maps.space", "gradcli.numerics.space")

    class Tanh(maps.VectorMap):  # type: ignore[misc]  # its class is only known once the checkout is
        domain = codomain = spaces.Space((spaces.Block("x", SHAPE, "float64"),))

        def value(self, x: Any) -> Any:
            return np.tanh(x.astype(kind)).astype(float)

        def vjp(self, x: Any, cotangent: Any) -> Any:
            return factor * cotangent * (1 - np.tanh(x) ** 2)

    return Tanh()


def path(run: Callable[[], object], root: Path) -> list[int]:
    """Functions, files, calls, and switches of file of the numerics' own functions in one run."""
    inside = str(root / "gradcli" / "numerics")
    steps: list[tuple[str, str]] = []

    def called(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(inside) and not code.co_name.startswith("<"):
            steps.append((code.co_filename, code.co_qualname))

    sys.setprofile(called)
    try:
        run()
    finally:
        sys.setprofile(None)
    switches = sum(first[0] != second[0] for first, second in pairwise(steps))
    return [len(set(steps)), len({file for file, _ in steps}), len(steps), switches]


def paths(root: Path) -> Figures:
    """The four paths, each with the outcome that it must have, so that no figure is that of another path."""
    verifier: Any = importlib.import_module("gradcli.numerics.verify")
    x = np.random.default_rng(SEED).standard_normal(np.prod(SHAPE))
    cases = {
        "right, reference": (tanh(1, "float64"), tanh(1, "float64"), "agrees"),
        "times 1.01, reference": (tanh(1.01, "float64"), tanh(1, "float64"), "differs"),
        "times 1.001, no reference": (tanh(1.001, "float64"), None, "differs"),
        "right, float16, no reference": (tanh(1, "float16"), None, "agrees"),
    }
    found: Figures = {}
    for name, (map_, witness, expected) in cases.items():
        outcomes: list[str] = []

        def run(map_: Any = map_, witness: Any = witness, outcomes: list[str] = outcomes) -> None:
            verified = verifier.verify(map_, x, seed=SEED, witness=witness)
            outcomes.extend(block.outcome.value for block in verified.blocks)

        found[name] = path(run, root)
        if outcomes != [expected]:
            found[f"{name} (not {expected})"] = found.pop(name)
    return found


def figures(root: Path) -> Figures:
    """All figures of the checkout that is imported."""
    return size(root) | numbers(root) | paths(root)


def measured(root: Path) -> Figures:
    """All figures of another checkout, in a process of its own."""
    code = (
        f"import sys; sys.path[:0] = [{str(root)!r}]; import gradcli; sys.path[:1] = [{str(HERE)!r}]\n"
        f"import json; from pathlib import Path; from tools.core import figures\n"
        f"print(json.dumps(figures(Path({str(root)!r}))))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: Figures = json.loads(run.stdout.splitlines()[-1])
    return found


def main(arguments: list[str]) -> int:
    """Print the figures of the checkouts, this one last."""
    columns = [measured(Path(root).resolve()) for root in (*arguments, str(HERE))]
    for name in dict.fromkeys(name for column in columns for name in column):
        print(f"{name + ':':<36}", *(" ".join(map(str, column.get(name, "-"))).rjust(24) for column in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
