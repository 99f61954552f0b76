"""What `gradcli check` checks when no target is given: the project's configuration, else the folder specs."""

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gradcli.errors import NothingToCheckError, UsageError

KEYS = ("specs",)


def default_targets(folder: Path) -> tuple[str, ...]:
    """The targets of `[tool.gradcli] specs` in pyproject.toml of `folder` or the nearest parent, else `./specs`.

    Raises:
        UsageError: pyproject.toml cannot be read, or its table holds something else than a list of paths.
        NothingToCheckError: there is neither.
    """
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            configured = _specs_in(file)
            if configured is not None:
                return tuple(_shown(place / path, folder) for path in configured)
            break
    if (folder / "specs").is_dir():
        return ("specs",)
    raise NothingToCheckError(
        "nothing to check: no target was given, pyproject.toml has no specs under [tool.gradcli], and there is no "
        "folder ./specs. Give a target, for example gradcli check mymodule:MyFunction."
    )


def _specs_in(file: Path) -> tuple[str, ...] | None:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    table: Any = document.get("tool", {}).get("gradcli")
    if table is None:
        return None
    if not isinstance(table, dict):
        raise UsageError(f"{file}: expected a table [tool.gradcli], got {type(table).__name__}")
    for key in table:
        if key not in KEYS:
            close = get_close_matches(key, KEYS, 1)
            hint = f" (did you mean {close[0]!r}?)" if close else f"; known: {', '.join(KEYS)}"
            raise UsageError(f"{file}: [tool.gradcli]: unknown key {key!r}{hint}")
    specs = table.get("specs")
    if specs is None:
        return None
    if not isinstance(specs, list) or not all(isinstance(path, str) for path in specs):
        raise UsageError(f"{file}: [tool.gradcli]: expected specs to be a list of paths, got specs={specs!r}")
    return tuple(specs)


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
