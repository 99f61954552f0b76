"""What a job changed in its process, so that the process cannot be used for another job."""

import contextlib
import gc
import locale
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, final

from gradcli.backends.attribution import is_users_file
from gradcli.backends.guard import lost_devices
from gradcli.runner.process.interference import Own, names_of_spaces, replaced_since, spaces
from gradcli.watchdog.alarm import handler_of

_STANDARD_DESCRIPTORS = (0, 1, 2)
_CONTAINERS = (dict, list, set)


@final
@dataclass(slots=True, kw_only=True)
class Footprint:
    """The state of this process when a job came; `import_folder` is the folder of the user's modules.

    `imported` is called when the target has been imported: the state of the user's own modules counts from then on.
    `lost_modules` are those of gradcli's that the import removed or replaced: put back, they stand beside others that
    were imported anew with classes of their own.
    """

    import_folder: str
    lost_modules: tuple[str, ...] = ()
    _own: Own = field(init=False)
    _known: frozenset[int] = field(init=False)
    _state: Mapping[str, object] = field(init=False)
    _users: Mapping[str, object] = field(init=False)

    def __post_init__(self) -> None:
        self._own, self._state = names_of_spaces(), _state()
        self._known = frozenset(id(space) for space, _ in self._own)
        self._users = self._users_values()

    def imported(self) -> None:
        """Take the user's modules, and frameworks that came with them, as they are now for what they were."""
        self._own += tuple(each for each in names_of_spaces() if id(each[0]) not in self._known)
        self._users = {**self._users_values(), **self._users}

    def left(self) -> tuple[str, ...]:
        """What is not as it was, in a few words each."""
        changed = [*self.lost_modules, *replaced_since(self._own, restore=False)]
        changed += self._patched_when_imported()
        changed += [f"the device of {name}" for name in lost_devices]
        for before, now in ((self._state, _state()), (self._users, self._users_values())):
            changed += [name for name, value in before.items() if name not in now or now[name] != value]
        return tuple(changed)

    def _patched_when_imported(self) -> list[str]:
        """Functions of the user's in a framework that was not there before."""
        return [
            f"{space.__name__}.{name}"
            for space in spaces()
            if id(space) not in self._known
            for name, value in tuple(vars(space).items())
            if isinstance(value, FunctionType) and value.__code__.co_filename.startswith(self.import_folder + os.sep)
        ]

    def _users_values(self) -> dict[str, object]:
        """The modules in the import folder and the classes that they define, by name, with what shows a change."""
        found: dict[str, object] = {}
        for module in tuple(sys.modules.values()):
            file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
            if not isinstance(file, str) or not file.startswith(self.import_folder + os.sep) or not is_users_file(file):
                continue
            for name, value in tuple(vars(module).items()):
                found[f"{module.__name__}.{name}"] = _mark(value)
                own = _names_of(value) if issubclass(type(value), type) else {}
                if own.get("__module__") == module.__name__:
                    found |= {f"{module.__name__}.{name}.{key}": _mark(v) for key, v in tuple(own.items())}
        return found


def _names_of(cls: type) -> Mapping[str, object]:
    """The names in a class, whatever its metaclass does when it is asked."""
    names: Mapping[str, object] = type.__dict__["__dict__"].__get__(cls)
    return names


def _mark(value: object) -> tuple[int, int]:
    """What differs once a name has another value, or its list, dict or set another length."""
    return id(value), len(value) if type(value) in _CONTAINERS else 0  # type: ignore[arg-type]  # sized, as just seen


def _state() -> dict[str, object]:
    """What a program can set for its whole process, by name."""
    state: dict[str, object] = {
        "the environment": dict(os.environ),
        "the threads": frozenset(threading.enumerate()),
        "a child process": _has_children(),
        "the signal handlers": _handlers(),
        "a timer": signal.getitimer(signal.ITIMER_REAL),
        "the recursion limit": sys.getrecursionlimit(),
        "the trace function": (sys.gettrace(), sys.getprofile()),
        "the garbage collector": (gc.isenabled(), gc.get_threshold(), tuple(map(id, gc.callbacks))),
        "the exception hook": id(sys.excepthook),
        "the signal mask": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "the resource limits": _limits(),
        "the umask": _mask(),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the standard streams": (id(sys.stdout), id(sys.stderr), id(sys.stdin)),
        "the path": tuple(sys.path[:1]),
        **{f"descriptor {number}": _file_behind(number) for number in _STANDARD_DESCRIPTORS},
    }
    state["entries of sys.modules that are None"] = frozenset(name for name, module in _modules() if module is None)
    state |= {f"sys.modules[{name!r}]": id(module) for name, module in _modules()}
    for framework, settings in _SETTINGS.items():
        module: Any = sys.modules.get(framework)
        for name, default in settings:
            getter: Callable[[], object] | None = getattr(module, name, None)
            state[f"{framework}.{name}"] = default if getter is None else str(getter())
    return state


_SETTINGS = {
    "torch": (
        ("get_default_dtype", "torch.float32"),
        ("get_default_device", "cpu"),
        ("is_grad_enabled", "True"),
        ("is_inference_mode_enabled", "False"),
        ("are_deterministic_algorithms_enabled", "False"),
    ),
    "numpy": (("geterr", None), ("get_printoptions", None)),
    "gradcli.engine": (("get_default_dtype", "torch.float32"), ("is_grad_enabled", "True")),
}
"""Functions that tell a framework's settings, and what those of one that has just been imported were."""


def _has_children() -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None or True
    return False


def _modules() -> tuple[tuple[str, object], ...]:
    return tuple(sys.modules.items())


def _limits() -> tuple[tuple[int, int], ...]:
    return tuple(
        resource.getrlimit(getattr(resource, name)) for name in sorted(vars(resource)) if name[:7] == "RLIMIT_"
    )


def _mask() -> int:
    mask = os.umask(0)  # there is no other way to read it
    os.umask(mask)
    return mask


def _handlers() -> tuple[int, ...]:
    return tuple(id(handler_of(number)) for number in sorted(signal.valid_signals()))


def _file_behind(descriptor: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
