"""The folder in which a target's modules are looked up; targets with different import folders never share a process."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

_NAMED = re.compile(r":(?![\\/])")  # not the colon of a drive, C:\\


def module_or_file_of(target: str) -> str:
    """The module or file of `target`, without the name after the colon."""
    return _NAMED.split(target)[0]


def import_folder_of(target: str, start: Path) -> str:
    """The folder from which the imports of `target` start, seen from the working directory `start`.

    That of a file is its own folder or, inside a package, the one that holds the package; that of a module is `start`.
    """
    place = module_or_file_of(target)
    if not place.endswith(".py") and os.sep not in place:
        return str(start)
    folder = Path(os.path.realpath(start / place)).parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return str(folder)


@contextmanager
def apart(place: str, other: str, start: Path) -> Iterator[None]:
    """A context in which `place` is imported as if `other` had not been; their import folders share no modules.

    Modules of the other's import folder are hidden meanwhile, and restored at the end in place of namesakes. What
    `place` imports later, when a function of it runs, is looked up as always.
    """
    own, others = import_folder_of(place, start), import_folder_of(other, start)
    if own == others:
        yield
        return
    hidden = {
        name: module
        for name, module in tuple(sys.modules.items())
        if _lies_in(module, name, others) and not _lies_in(module, name, own)
    }
    path = list(sys.path)
    for name in hidden:
        del sys.modules[name]
    sys.path[:] = [entry for entry in path if os.path.realpath(entry) != others]
    try:
        yield
    finally:
        sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]
        sys.modules.update(hidden)


def _lies_in(module: object, name: str, folder: str) -> bool:
    """Whether a module is one of the user's below a folder, where packages may be installed too."""
    file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
    if not isinstance(file, str) or name.partition(".")[0] in ("__main__", "gradcli"):
        return False
    path = Path(os.path.realpath(file))
    return path.is_relative_to(folder) and not {"site-packages", "dist-packages"} & set(path.parts)
