"""Where the modules of a target are looked up: targets of one realm share a process, those of two never do."""

import os
import re
from pathlib import Path

_NAMED = re.compile(r":(?![\\/])")  # not the colon of a drive, C:\\


def place_of(target: str) -> str:
    """The module or file of `target`, without the name after the colon."""
    return _NAMED.split(target)[0]


def realm_of(target: str, start: Path) -> str:
    """The folder from which the imports of `target` start, seen from the working directory `start`.

    That of a file is its own folder or, inside a package, the one that holds the package; that of a module is `start`.
    """
    place = place_of(target)
    if not place.endswith(".py") and os.sep not in place:
        return str(start)
    folder = Path(os.path.realpath(start / place)).parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return str(folder)
