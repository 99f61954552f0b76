"""Targets resolved to objects: `package.module:Name` and `path/to/file.py:Name`."""

import hashlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import site
import sys
import sysconfig
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType
from typing import Any

from gradcli.errors import TargetError, TargetImportError, is_interrupt, message_of, presentable
from gradcli.frozen import dataclass
from gradcli.spec.hints import closest, did_you_mean, explain_exception
from gradcli.spec.listing import commented_definition

_PACKAGE_FOLDER = str(Path(__file__).resolve().parent.parent)
_EXAMPLES_FOLDER = os.path.join(_PACKAGE_FOLDER, "examples")
_YOUNG = 2.0
"""Seconds. Python compares whole seconds: one for the rounding, one for the time between the import and this check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A target that was found: the object, the module it was looked up in, and that module's file."""

    object: Any
    module: ModuleType
    name: str
    module_name: str
    file: str | None


def resolve(target: str) -> Resolved:
    """The object that `target` names.

    Args:
        target: `package.module:Name` or `path/to/file.py:Name`; `Name` may be dotted.

    Returns:
        The object with where it was found.

    Raises:
        TargetError: there is no such file, module or attribute; says what was looked for, where, and close names.
        TargetImportError: the user's module raised while it was imported.
    """
    require_text(target)
    place, name = _split(target)
    if not name:
        raise TargetError(f"{target}: expected a name after a colon, as in {place or 'module'}:Name")
    module = import_module_or_file(place)
    found: Any = module
    walked = place
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise TargetError(_missing_attribute(module, found, part, walked)) from None
        except BaseException as error:
            if is_interrupt(error):
                raise
            said = f"{type(error).__name__}: {message_of(error)}"
            raise TargetError(f"{walked}: reading {part!r} raised {said}") from error
        walked = f"{walked}:{part}" if walked == place else f"{walked}.{part}"
    return Resolved(object=found, module=module, name=name, module_name=module.__name__, file=_file(module))


def beside(name: str, target: str) -> str:
    """`name` as an attribute of the module that `target` is in, unless it names a module or a file itself."""
    place, _ = _split(target)
    if ":" in name or name.endswith(".py") or os.sep in name or not name.strip():
        return name
    return f"{place}:{name}"


def require_text(target: str) -> None:
    """Raises TargetError for a target of no characters, which would otherwise be the working directory, or of bytes."""
    try:
        target.encode()
    except UnicodeEncodeError:
        raise TargetError(
            f"the name of the target {target!r} is not valid UTF-8, so reports cannot show it: rename it"
        ) from None
    if not target.strip():
        raise TargetError(
            f"the target {target!r} is empty: expected package.module:Name, path/to/file.py:Name, a module, a .py "
            "file, a spec (.yaml) or a folder of specs"
        )


def names_in(module_or_path: str) -> list[str]:
    """The names that a module or file defines itself, private ones among them, imported ones left out, in its order.

    A class in one of its classes has a dotted name.

    Raises:
        TargetError: as `resolve`, and where the file defines nothing because its definitions stand in a comment.
        TargetImportError: the module raised while it was imported.
    """
    module = import_module_or_file(module_or_path)
    own = [(name, value) for name, value in vars(module).items() if _is_own(name, value, module)]
    names = [name for outer, value in own for name in (outer, *_classes_in(value, outer))]
    file = _file(module)
    if not names and file is not None and (why := commented_definition(Path(file))):
        raise TargetError(f"{_shown(file)} defines nothing: {why}")
    return names


def import_module_or_file(place: str) -> ModuleType:
    """The module called `place`, or that of the file `place`; raises as `resolve`."""
    place = place.removesuffix(":")
    with _no_bytecode_of_young_sources():
        if place.endswith(".py") or os.sep in place:
            return _import_file(place)
        return _import_module(place)


def _split(target: str) -> tuple[str, str]:
    if target.endswith(".py") or ":" not in target:
        return target, ""
    place, _, name = target.rpartition(":")
    return place, name.strip()


def _import_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise TargetError(f"{name!r} is not a target; expected package.module:Name or path/to/file.py:Name")
    _see_working_directory()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise TargetError(_missing_module(name, error.name)) from None
        raise _import_error(name, error) from error
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise _import_error(name, error) from error


def _see_working_directory() -> None:
    # As `python -m`, but behind the standard library: a random.py in the working directory must not replace random.
    try:
        here = os.getcwd()
    except FileNotFoundError:
        raise TargetError("the working directory no longer exists: change to one that does") from None
    if here in sys.path or "" in sys.path:
        return
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()}
    first = next((index for index, path in enumerate(sys.path) if path in installed), len(sys.path))
    sys.path.insert(first, here)
    importlib.invalidate_caches()


def _import_file(place: str) -> ModuleType:
    path = Path(place)
    if os.path.isdir(place):
        raise TargetError(f"{place} is a directory; expected a Python file, as in {place.rstrip(os.sep)}/file.py:Name")
    if not os.path.isfile(place):
        raise TargetError(_missing_file(path))
    if path.suffix != ".py":
        raise TargetError(f"{place}: expected a file that ends in .py")
    path = path.resolve()
    packaged = _packaged_name(path)
    if packaged is not None:
        return _import_module(packaged)
    return _load(path, place)


def _packaged_name(path: Path) -> str | None:
    """The dotted name of a file inside a package, if importing that name gives this very file."""
    parts, folder = [] if path.name == "__init__.py" else [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        parts, folder = [folder.name, *parts], folder.parent
    name = ".".join(parts)
    if folder == path.parent or not all(part.isidentifier() for part in parts):
        return None
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    top = importlib.util.find_spec(parts[0])
    inside = folder / parts[0] / "__init__.py"
    return name if top is not None and top.origin is not None and Path(top.origin).resolve() == inside else None


def _load(path: Path, place: str) -> ModuleType:
    # A name of its own: the file may be called random.py, and two files may share a name.
    name = f"{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    for known in (name, path.stem):
        if known in sys.modules and _file(sys.modules[known]) == str(path):
            return sys.modules[known]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{place}: cannot be loaded as a Python file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if is_interrupt(error):
            raise
        raise _import_error(place, error) from error
    return module


def _import_error(place: str, error: BaseException) -> TargetImportError:
    error = presentable(error)
    said = message_of(error).strip() or "without a message"
    message = f"{place} raised {type(error).__name__} while it was imported: {said}"
    hint = explain_exception(error)
    return TargetImportError(f"{message}\n  hint: {hint}" if hint else message, user_traceback(error))


def user_traceback(error: BaseException) -> str:
    """The traceback of `error` without the frames of gradcli and of the import machinery."""
    shown = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = shown
    while link is not None:
        link.stack = traceback.StackSummary.from_list([frame for frame in link.stack if _is_users(frame.filename)])
        link = link.__cause__ or link.__context__
    return "".join(shown.format())


def _is_users(filename: str) -> bool:
    if filename.startswith("<frozen importlib") or os.sep + "importlib" + os.sep in filename:
        return False
    return not filename.startswith(_PACKAGE_FOLDER + os.sep) or filename.startswith(_EXAMPLES_FOLDER)


def _missing_module(name: str, missing: str) -> str:
    parent, _, last = missing.rpartition(".")
    if parent:
        package = importlib.import_module(parent)
        folders = list(getattr(package, "__path__", []))
        where = f"in the package {parent}" if folders else f"in {parent}, which is a module and not a package"
    else:
        folders = [os.getcwd()]
        where = f"in {os.getcwd()} and among the installed packages"
    beside = [found.name for found in pkgutil.iter_modules(folders)]
    known = beside if parent else [*beside, *_installed_names()]
    close = closest(last, known)
    hint = f" (did you mean {f'{parent}.{close}' if parent else close}?)" if close else ""
    file = Path(name.replace(".", os.sep))
    advice = f"; for the file write {file}.py:Name" if not parent and file.with_suffix(".py").is_file() else ""
    return f"no module named {missing!r}: looked {where}{hint}{advice}"


def _installed_names() -> list[str]:
    return [name for name in (*sys.modules, *sys.stdlib_module_names) if "." not in name and name[0] != "_"]


def _missing_file(path: Path) -> str:
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    if folder != path.parent:
        return f"no file {path}: there is no folder {path.parent} (looked from {Path.cwd()})"
    beside = [entry.name for entry in folder.iterdir() if entry.suffix == ".py"]
    return f"no file {path}: looked in {folder.resolve()}{did_you_mean(path.name, beside)}"


def _missing_attribute(module: ModuleType, owner: object, name: str, walked: str) -> str:
    file = _file(module)
    if owner is module and file is not None and (why := commented_definition(Path(file), name)):
        nothing = not any(_is_own(each, value, module) for each, value in vars(module).items())
        return f"{_shown(file)} defines {'nothing' if nothing else f'no {name!r}'}: {why}"
    unsaid = "__" if name.startswith("_") else "_"
    known = [each for each in dir(owner) if not each.startswith(unsaid)]
    hint = did_you_mean(name, known)
    listable = vars(module).items() if owner is module else ()
    own = [each for each, value in listable if not each.startswith(unsaid) and _is_own(each, value, module)]
    listed = f"; it defines {', '.join(own[:12])}" if own and not hint else ""
    nothing_there = "; it defines nothing" if owner is module and not own and not hint else ""
    where = f" ({_shown(file)})" if file and _shown(file) not in walked else ""
    return f"{walked}{where} has no attribute {name!r}{hint}{listed}{nothing_there}"


def _is_own(name: str, value: object, module: ModuleType) -> bool:
    if name.startswith("__"):
        return False
    # A descriptor or lazy proxy may raise anything when it is asked for an attribute; it is then no definition.
    try:
        return bool(getattr(value, "__module__", None) == module.__name__) or _comes_from(value, module)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return False


def _classes_in(value: Any, name: str) -> Iterator[str]:
    """The dotted names of the classes whose definitions stand in the body of a class."""
    if not issubclass(type(value), type):  # `isinstance` asks a proxy for its class, which may raise
        return
    for inner, each in list(vars(value).items()):
        if issubclass(type(each), type) and each.__qualname__ == f"{value.__qualname__}.{inner}":
            yield f"{name}.{inner}"
            yield from _classes_in(each, f"{name}.{inner}")


def _comes_from(value: object, module: ModuleType) -> bool:
    """Whether a callable object of a library's class keeps a function of the module, as a registered operator does."""
    if inspect.isclass(value) or inspect.isroutine(value) or not callable(value):
        return False
    kept: dict[str, object] = getattr(value, "__dict__", {})
    return any(inspect.isfunction(each) and each.__module__ == module.__name__ for each in kept.values())


def _file(module: ModuleType) -> str | None:
    return getattr(module, "__file__", None)


def _shown(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


@contextmanager
def _no_bytecode_of_young_sources() -> Iterator[None]:
    """Remove the compiled files of the modules imported in the body whose source is younger than two seconds.

    Python takes a compiled file for current if the size of the source and its modification time in whole seconds are
    those recorded (PEP 552): a source changed twice in a second, from `+` to `-`, would be checked as it was before.
    """
    known = set(sys.modules)
    try:
        yield
    finally:
        oldest = time.time() - _YOUNG
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None)
            if isinstance(file, str) and file.endswith(".py"):
                with suppress(OSError, NotImplementedError):
                    if os.stat(file).st_mtime > oldest:
                        Path(cache_from_source(file)).unlink(missing_ok=True)
