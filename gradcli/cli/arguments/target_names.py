"""Targets that begin as what was typed: files, folders and modules by name, Functions by the text of their file."""

import ast
import importlib.util
import os
import pkgutil
import re
import warnings
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

_FILES = (".py", ".yaml", ".yml")
_LARGEST = 1 << 20
"""Bytes of a file that is parsed while somebody waits for a completion."""
_HARMLESS = re.compile(r"[\w.+@%,/-]+")
"""Names that every shell takes as they are; the completion scripts of some shells evaluate what they get."""


def complete_targets(incomplete: str) -> list[str]:
    """The targets that begin with `incomplete`."""
    place, colon, name = incomplete.rpartition(":")
    found = _named(place, name) if colon else _modules_and_files(incomplete)
    return [target for target in dict.fromkeys(found) if target.startswith(incomplete)]


def complete_functions(incomplete: str) -> list[str]:
    """The targets without specs, for commands that take one Function."""
    return [target for target in complete_targets(incomplete) if not target.endswith(_FILES[1:])]


def _modules_and_files(incomplete: str) -> Iterator[str]:
    """Files, folders and modules. One alone comes with what is in it, lest the shell end the word there."""
    found = [*_files(incomplete), *_modules(incomplete)]
    yield from found
    if len(found) == 1:
        inside = _files(found[0]) if found[0].endswith("/") else _named(found[0], "")
        yield from inside


def _files(incomplete: str) -> Iterator[str]:
    folder, start = os.path.split(incomplete)
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except (OSError, ValueError):
        return
    for entry in entries:
        is_folder = entry.is_dir()
        hidden = entry.name.startswith((".", "__")) and not start
        if hidden or not entry.name.startswith(start) or not (is_folder or entry.name.endswith(_FILES)):
            continue
        if _HARMLESS.fullmatch(entry.name):
            yield os.path.join(folder, entry.name) + ("/" if is_folder else "")


def _modules(incomplete: str) -> Iterator[str]:
    """Modules below the working directory, one level at a time; below a package that was typed, wherever it is."""
    package, dot, start = incomplete.rpartition(".")
    if "/" in incomplete or (dot and not package):
        return
    places: Iterable[str] = [os.getcwd()]
    if dot:
        spec = _spec(package)
        places = spec.submodule_search_locations or () if spec is not None else ()
    for module in pkgutil.iter_modules(places):
        if module.name.startswith(start) and module.name.isidentifier() and not module.name.startswith("__"):
            yield f"{package}{dot}{module.name}"


def _named(place: str, name: str) -> Iterator[str]:
    """`place:Name` for every function and class of a file or module; those within a class once that is typed."""
    file = Path(place) if place.endswith(".py") else _source(place)
    for defined in () if file is None else _definitions(file):
        depth, _, last = defined.rpartition(".")
        if depth == name.rpartition(".")[0] and (not last.startswith("_") or name.rpartition(".")[2]):
            yield f"{place}:{defined}"


def _source(module: str) -> Path | None:
    spec = _spec(module)
    origin = None if spec is None else spec.origin
    return Path(origin) if origin is not None and origin.endswith(".py") else None


def _spec(module: str) -> ModuleSpec | None:
    """Where a module is, found without importing it or the packages that it is in."""
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    try:
        spec = PathFinder.find_spec(parts[0], [os.getcwd()]) or importlib.util.find_spec(parts[0])
    except ValueError:  # it is loaded and does not say from where
        return None
    for length in range(2, len(parts) + 1):
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(".".join(parts[:length]), list(spec.submodule_search_locations))
    return spec


def _definitions(file: Path) -> Iterator[str]:
    """The functions and classes of a file, and classes within classes; none where it cannot be read."""
    try:
        if file.stat().st_size > _LARGEST:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the file's own text is warned of is said when it is imported
            tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from _below(tree, "")


def _below(node: ast.AST, prefix: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield f"{prefix}{child.name}"
            yield from _below(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if not prefix:
                yield child.name
        elif isinstance(child, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _below(child, prefix)
