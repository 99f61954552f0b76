"""Results of cases that passed before, kept as long as nothing that they depend on has changed."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import final

from gradcli._version import __version__
from gradcli.documents import case_from
from gradcli.frozen import dataclass
from gradcli.results import CheckResult
from gradcli.runner.kernels import VARIABLE, kernel_environment
from gradcli.runner.planning.plan import CheckCase
from gradcli.verdict import Verdict

FOLDER = Path(".gradcli") / "cache"
NOTE = "not run again, because nothing that the case depends on has changed since it passed (--cache)"
_FRAMEWORKS = ("numpy", "torch", "jax", "jaxlib", "scipy", "triton", "numba")
_SOURCES = (".py", ".so", ".pyd", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h")
_MOST_FILES = 10_000
"""A package with more files takes longer to read than its cases to run, and is not cached."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A folder with one file for each case that passed, named by what its result depends on.

    That is: the case with its inputs, seed and settings; where Triton kernels run; the sources of the target's package,
    or of the folder of a file or module that is in no package; the files that its inputs are read from; and the
    versions of gradcli, Python and the frameworks. Other packages that the target imports are not looked at. Nothing is
    imported.
    """

    start: Path
    path: Sequence[str]
    _sources: dict[Path, bytes | None] = field(default_factory=dict, repr=False)

    def known(self, case: CheckCase) -> CheckResult | None:
        """The result of a case that passed before, with a note; None where it has to be run."""
        key = self._key(case)
        if key is None:
            return None
        try:
            document = json.loads((self.start / FOLDER / f"{key}.json").read_text(encoding="utf-8"))
            result = case_from(document)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None  # none there, or damaged: the case is run
        return replace(result, notes=(*result.notes, NOTE), seconds=0.0)

    def keep(self, done: Iterable[tuple[CheckCase, CheckResult]]) -> str | None:
        """Keep the results that passed and were not kept before.

        Returns:
            Why one could not be written, None where all were.
        """
        folder = self.start / FOLDER
        for case, result in done:
            key = self._key(case)
            if key is None or result.verdict is not Verdict.PASSED or NOTE in result.notes:
                continue
            file = folder / f"{key}.json"
            part = folder / f"{key}.{os.getpid()}.part"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                part.write_text(json.dumps(result.to_dict()), encoding="utf-8")
                part.replace(file)
            except OSError as error:
                return f"{FOLDER} cannot be written: {error}"
        return None

    def _key(self, case: CheckCase) -> str | None:
        """A digest of all that a result depends on; None where that cannot be known."""
        spec = case.spec
        parts = [self._target(target) for target in (spec.target, spec.grad) if target is not None]
        parts += [_digest_of(self.start / file) for file in _files_of(case)]
        if spec.problem is not None or None in parts:
            return None
        about = repr((replace(spec, origin=None), case.settings, case.seed, _versions(), _kernels(case)))
        digest = hashlib.sha256(about.encode("utf-8", "backslashreplace"))
        for part in parts:
            digest.update(part or b"")
        return digest.hexdigest()

    def _target(self, target: str) -> bytes | None:
        """A digest of the sources that `target` stands in; None where they are not found."""
        module, _, _ = target.rpartition(":")
        place = self.start / module if module.endswith(".py") else self._package(module)
        if place is None or not place.exists():
            return None
        folder = place if place.is_dir() else place.parent
        package = folder
        while (package.parent / "__init__.py").is_file() and (package / "__init__.py").is_file():
            package = package.parent
        if package not in self._sources:
            self._sources[package] = _sources_in(package, deep=(package / "__init__.py").is_file())
        return self._sources[package]

    def _package(self, module: str) -> Path | None:
        """Where the top package of `module` lies, looked up as an import would, without importing it."""
        path = [str(self.start / entry) for entry in self.path]
        found = PathFinder.find_spec(module.partition(".")[0], [str(self.start), *path])
        if found is None:
            return None
        if found.submodule_search_locations:
            return Path(next(iter(found.submodule_search_locations)))
        return None if found.origin is None else Path(found.origin)


def _files_of(case: CheckCase) -> Iterator[str]:
    for spec in case.spec.inputs or ():
        if spec.domain.startswith("npz:"):
            yield spec.domain.removeprefix("npz:")
        if isinstance(path := spec.parameter("path"), str):
            yield path


def _sources_in(folder: Path, *, deep: bool) -> bytes | None:
    """A digest of the names and contents of the sources in a folder, of a package with all below it."""
    digest = hashlib.sha256()
    listed = folder.rglob("*") if deep else folder.iterdir()
    files = sorted(file for file in listed if file.suffix in _SOURCES and file.is_file())
    if len(files) > _MOST_FILES:
        return None
    for file in files:
        content = _digest_of(file)
        if content is None:
            return None
        digest.update(str(file.relative_to(folder)).encode("utf-8", "backslashreplace") + b"\0" + content)
    return digest.digest()


def _digest_of(file: Path) -> bytes | None:
    try:
        return hashlib.sha256(file.read_bytes()).digest() if file.is_file() else None
    except OSError:
        return None


def _kernels(case: CheckCase) -> tuple[str | None, dict[str, str]]:
    """Where Triton kernels run, which are compiled for a GPU or interpreted."""
    return os.environ.get(VARIABLE), kernel_environment(case.settings.triton)


def _versions() -> tuple[tuple[str, str], ...]:
    found = [("gradcli", __version__), ("python", sys.version)]
    for name in _FRAMEWORKS:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, ""))
    return tuple(found)
