"""The table `[tool.gradcli]` of pyproject.toml: the settings of a run that no option gives."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gradcli.errors import NothingToCheckError, UsageError
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.runner.planning.limits import as_option, require_settings
from gradcli.settings import Settings


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) and part for part in value)


def _number(value: Any) -> bool:
    return _whole(value) or isinstance(value, float)


def _reasons(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(why, str) and why.strip() for why in value.values())


_TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "specs": (_texts, "a list of paths"),
    "order": (_whole, "a whole number"),
    "samples": (_whole, "a whole number"),
    "seed": (_whole, "a whole number"),
    "significance": (_number, "a number"),
    "jobs": (_whole, "a whole number"),
    "timeout": (_number, "a number of seconds"),
    "budget": (_number, "a number of seconds"),
    "skip": (_texts, "a list of checks"),
    "allow": (_reasons, "a table from findings to the reasons for which they are allowed"),
    "report": (_texts, "a list of paths"),
}
KEYS = tuple(_TYPES)
_FINDINGS = tuple(kind.value for kind in FindingKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The table of one project; empty where there is none.

    `settings` are those that it gives, by their names in `Settings`; `specs` and `reports` are paths, None where the
    table has none. `location_of` says in which file and line a key stands.
    """

    specs: tuple[str, ...] | None = None
    reports: tuple[str, ...] = ()
    settings: Mapping[str, Any] | None = None
    file: Path | None = None
    lines: Mapping[str, int] | None = None

    def location_of(self, key: str) -> str:
        """`file:line: [tool.gradcli] key`, for an error about the value of `key`."""
        return f"{self.file}:{(self.lines or {}).get(key, 1)}: [tool.gradcli] {key}"


def configuration(folder: Path) -> Configuration:
    """The table in pyproject.toml of `folder` or its nearest parent that has such a file.

    Paths of specs are as seen from `folder`, those of reports absolute; both are relative to the file in the table.

    Raises:
        UsageError: the file cannot be read, or a key is unknown or has a value of another type.
    """
    for place in (folder, *folder.parents):
        if (place / "pyproject.toml").is_file():
            return _read(place / "pyproject.toml", folder)
    return Configuration()


def default_targets(folder: Path, configured: Configuration | None = None) -> tuple[str, ...]:
    """The specs of the configuration, by default that which holds in `folder`; where it has none, `./specs`.

    Raises:
        UsageError: as `configuration`.
        NothingToCheckError: there is neither.
    """
    configured = configuration(folder) if configured is None else configured
    for path in configured.specs or ():
        if not (folder / path).exists():
            raise UsageError(f"{configured.location_of('specs')}: there is no file or folder {path}")
    if configured.specs == ():
        raise NothingToCheckError(f"nothing to check: {configured.location_of('specs')} lists no file or folder")
    if configured.specs is not None:
        return configured.specs
    if (folder / "specs").is_dir():
        return ("specs",)
    raise NothingToCheckError(
        "nothing to check: no target was given, no pyproject.toml here or above lists specs under [tool.gradcli], and "
        "there is no folder ./specs. Give a target, for example gradcli check mymodule:MyFunction."
    )


def settings_from(options: Mapping[str, Any], configured: Configuration) -> Settings:
    """The settings of a run: what the options say, else what the configuration says, else the defaults.

    Raises:
        UsageError: a value is none that a run can have; names the option, or the line of pyproject.toml.
    """
    given = {name: value for name, value in options.items() if value is not None}
    table = configured.settings or {}
    chosen = {**table, **given}
    settings = Settings(order_asked="order" in chosen, **chosen)
    return require_settings(
        settings, lambda n: configured.location_of(n) if n in table and n not in given else as_option(n)
    )


def _read(file: Path, folder: Path) -> Configuration:
    import tomllib

    try:
        text = file.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    tools = document.get("tool", {})
    table: Any = tools.get("gradcli") if isinstance(tools, dict) else None
    if table is None:
        return Configuration()
    if not isinstance(table, dict):
        raise UsageError(f"{file}: expected a table [tool.gradcli], got {type(table).__name__}")
    lines = _lines(text, table)
    for key, value in table.items():
        _require(f"{file}:{lines.get(key, 1)}", key, value)
    settings = {key: value for key, value in table.items() if key not in ("specs", "report")}
    settings |= {"skip": tuple(table["skip"])} if "skip" in table else {}
    settings |= {"allow": tuple(table["allow"].items())} if "allow" in table else {}
    return Configuration(
        specs=tuple(_shown(file.parent / path, folder) for path in table["specs"]) if "specs" in table else None,
        reports=tuple(str(file.parent.absolute() / path) for path in table.get("report", ())),
        settings=settings,
        file=file,
        lines=lines,
    )


def _require(where: str, key: str, value: Any) -> None:
    """Refuse a key that is unknown, a value of another type, and the name of a finding that there is not."""
    if key not in _TYPES:
        raise UsageError(f"{where}: [tool.gradcli]: unknown key {key!r}{_close(key, KEYS)}")
    fits, expected = _TYPES[key]
    if not fits(value):
        raise UsageError(f"{where}: [tool.gradcli]: expected {key} to be {expected}, got {key}={value!r}")
    for name in value if key == "allow" else ():
        if name not in _FINDINGS:
            raise UsageError(f"{where}: [tool.gradcli]: allow: unknown finding {name!r}{_close(name, _FINDINGS)}")


def _close(word: str, known: tuple[str, ...]) -> str:
    matches = get_close_matches(word, known, 1)
    if matches:
        return f" (did you mean {matches[0]!r}?)"
    return f"; known: {', '.join(known)}" if len(known) <= len(KEYS) else "; gradcli explain lists them"


def _lines(text: str, table: Mapping[str, Any]) -> dict[str, int]:
    """The line of each key, found in the text of the table and of those below it; tomllib does not tell."""
    found: dict[str, int] = {}
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if header:
            inside = re.sub(r"[\"'\s]", "", header[1])
        if header and inside.startswith("tool.gradcli."):
            found.setdefault(inside.removeprefix("tool.gradcli.").split(".")[0], number)
        key = re.match(r"\s*[\"']?([\w-]+)[\"']?\s*[.=]", line)
        if key and inside == "tool.gradcli" and key[1] in table:
            found.setdefault(key[1], number)
    return found


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
