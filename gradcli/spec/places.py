"""Where the files that a spec names are: the same ones from whatever folder a command is started in."""

import os
from pathlib import Path

from gradcli.spec.hints import did_you_mean


def located(path: str, folder: Path) -> str:
    """The path relative to the working directory, or unchanged if there is no such file."""
    if os.path.isabs(path):
        return path
    return next((os.path.relpath(base / path) for base in _bases(folder) if (base / path).is_file()), path)


def target_located(target: str, folder: Path) -> str:
    """A target with its file located, if it names one."""
    file, colon, name = _split(target)
    return f"{located(file, folder)}{colon}{name}" if file.endswith(".py") else target


def target_missing(target: str, folder: Path) -> str | None:
    """Why the file of a target cannot be found; None where it is there, or the target names a module."""
    file = _split(target)[0]
    if not file.endswith(".py") or os.path.isabs(file):
        return None
    bases = _bases(folder)
    if any((base / file).exists() for base in bases):
        return None
    beside = [entry.name for base in bases for entry in (base / file).parent.glob("*.py")]
    places = [f"{base} ({what})" for base, what in bases.items()]
    looked = places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"
    return f"no file {file}: looked in {looked}{did_you_mean(Path(file).name, beside)}"


def _bases(folder: Path) -> dict[Path, str]:
    """The folders that a relative path may start from, the first one first, each with what it is."""
    own = folder.resolve()
    project = next((place for place in (own, *own.parents) if (place / "pyproject.toml").is_file()), own)
    found = {own: "the spec's folder"}
    found.setdefault(project, "the folder of pyproject.toml")
    found.setdefault(Path.cwd().resolve(), "the working directory")
    return found


def _split(target: str) -> tuple[str, str, str]:
    return target.rpartition(":") if ":" in target else (target, "", "")
