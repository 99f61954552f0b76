"""How operations are recorded: by PyTorch's function mode, or by functions put in place of an engine's."""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, final

from gradcli.tracing.attributes import Patches
from gradcli.tracing.gradients import FLAG, GradientLog
from gradcli.tracing.operations import DATA_SET, NO_OPERATIONS, OperationLog
from gradcli.tracing.reading import Lens
from gradcli.tracing.sites import OWN_FOLDER

_PROPERTIES = frozenset({"data", "T", "mT", "H", "mH", "real", "imag"})
_SHIM = compile("def call(_f, _a, _k): return _f(*_a, **_k)", "<operation>", "exec").co_consts[0]
_NO_METHODS = frozenset(
    {"__init__", "__new__", "__class__", "__repr__", "__str__", "__format__", "__hash__", "__len__", "__bool__",
     "__dir__", "__getattribute__", "__getattr__", "__setattr__", "__delattr__", "__init_subclass__", "__sizeof__",
     "__subclasshook__", "__reduce__", "__reduce_ex__", "__setstate__", "__getstate__", "__deepcopy__", "__copy__",
     "__index__", "__contains__", "__iter__", "__array_function__", "__array_ufunc__", "__array_wrap__",
     "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "backward", "dim", "size", "numel",
     "is_floating_point", "is_complex", "element_size", "requires_grad_", "is_contiguous", "stride", "storage_offset",
     "data_ptr", "is_inference", "get_device", "nelement", "ndimension"}
)  # fmt: skip
_NO_FUNCTIONS = frozenset({"manual_seed", "seed", "is_tensor", "is_grad_enabled", "numel", "is_floating_point",
                           "is_complex", "set_default_dtype", "get_rng_state", "set_rng_state"})  # fmt: skip


@final
@dataclass(slots=True)
class OperationWatch:
    """Passes each operation of the traced program to the log, and what it sets `.grad` to."""

    lens: Lens
    log: OperationLog
    gradients: GradientLog
    patches: Patches
    _inside: bool = field(default=False)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """A context in which operations are recorded."""
        space = self.lens.namespace
        self._watch_functions_of_the_user(space.autograd.Function)
        self.log.modes.install(self.patches)
        self._watch_new_leaves(self.lens.parameter_type, self.lens.tensor_type)
        if "overrides" in vars(space):
            self.log.mode = self._function_mode(space.overrides.TorchFunctionMode)
        else:
            self._replace_functions(space)
        self.log.enter()
        self.log.listening = True
        try:
            yield
        finally:
            self.log.listening = False
            self.log.leave()

    # --- PyTorch: a mode that every public function passes
    def _function_mode(self, kind: type) -> Callable[[], AbstractContextManager[Any]]:
        log, is_tracing = self.log, self.lens.namespace.jit.is_tracing

        def through(_mode: Any, function: Any, _types: Any, args: Any = (), keywords: Any = None) -> Any:
            frame = sys._getframe(1)
            call, keywords = _as_called_from(frame, function), keywords or {}
            own = frame.f_code.co_filename.startswith(OWN_FOLDER)
            if not own and _sets_grad(function):
                self.gradients.assigned(args[0], args[1], frame)
            if self._inside or not log.listening or own or is_tracing():  # looking at values would enter that trace
                return call(*args, **keywords)
            name = getattr(function, "__name__", "")
            if name in ("__get__", "__set__"):
                attribute = getattr(getattr(function, "__self__", None), "__name__", "")
                if (name, attribute) == ("__set__", FLAG):
                    self.gradients.flagged(*args, frame=frame)
                if (name, attribute) == ("__set__", "data"):
                    name = DATA_SET
                elif name == "__get__" and attribute in _PROPERTIES:
                    name = attribute
                else:
                    return call(*args, **keywords)
            if name in NO_OPERATIONS:
                if name == "requires_grad_":
                    self.gradients.flagged(*args[:2], frame=frame, **keywords)
                return call(*args, **keywords)
            self._inside = True
            try:
                return log.run(name, call, args, keywords, frame)
            finally:
                self._inside = False

        return type("OperationMode", (kind,), {"__torch_function__": through})

    # --- the engine: its functions and methods, replaced
    def _replace_functions(self, space: ModuleType) -> None:
        kind = self.lens.tensor_type
        for name, function in list(vars(kind).items()):
            if isinstance(function, FunctionType) and name not in _NO_METHODS and not _is_private(name):
                self.patches.attribute(kind, name, self._watched(name, function))
        for name in _PROPERTIES & {key for key, value in vars(kind).items() if isinstance(value, property)}:
            plain = vars(kind)[name]
            if plain.fget is not None:
                put = None if plain.fset is None else self._watched(DATA_SET, plain.fset)
                self.patches.attribute(kind, name, property(self._watched(name, plain.fget), put, plain.fdel))
        self._watch_grad(kind)
        replaced: dict[Callable[..., Any], Callable[..., Any]] = {}
        for home in (space, space.nn.functional, space.linalg, space.special):
            for name in dir(home):  # not what its dict has: some names are imported when they are asked for
                function = getattr(home, name)
                if isinstance(function, FunctionType) and name not in _NO_FUNCTIONS and not _is_private(name):
                    watched = replaced.setdefault(function, self._watched(name, function))
                    self.patches.attribute(home, name, watched)
        self.patches.imported(replaced)

    def _watch_grad(self, kind: Any) -> None:
        plain, gradients = vars(kind)["grad"], self.gradients

        def put(tensor: Any, gradient: Any) -> None:
            gradients.assigned(tensor, gradient, sys._getframe(1))
            plain.fset(tensor, gradient)

        self.patches.attribute(kind, "grad", property(plain.fget, put, plain.fdel))
        switch = vars(kind)["requires_grad_"]

        @functools.wraps(switch)
        def switched(tensor: Any, *args: Any, **keywords: Any) -> Any:
            gradients.flagged(tensor, *args, frame=sys._getframe(1), **keywords)
            return switch(tensor, *args, **keywords)

        self.patches.attribute(kind, "requires_grad_", switched)

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        log = self.log

        @functools.wraps(function)
        def watched(*args: Any, **keywords: Any) -> Any:
            if self._inside or not log.listening:
                return function(*args, **keywords)
            frame = sys._getframe(1)
            if frame.f_code.co_filename.startswith(OWN_FOLDER):
                return function(*args, **keywords)
            self._inside = True
            try:
                return log.run(name, function, args, keywords, frame)
            finally:
                self._inside = False

        return watched

    # --- both
    def _watch_functions_of_the_user(self, kind: Any) -> None:
        """Record each `apply` of a custom Function, and the operations of its forward."""
        plain = vars(kind)["apply"].__func__
        log = self.log

        @functools.wraps(plain)
        def apply(owner: Any, *args: Any, **keywords: Any) -> Any:
            call = functools.partial(plain, owner)
            frame = sys._getframe(1)
            if not log.listening or self._inside:
                return call(*args, **keywords)
            return log.run(owner.__name__, call, args, keywords, frame, function=owner)

        self.patches.attribute(kind, "apply", classmethod(apply))

    def _watch_new_leaves(self, parameter: Any, tensor: Any) -> None:
        """Record what creates a new leaf from a tensor: nn.Parameter, and copies."""
        if "__new__" in vars(parameter):
            new = parameter.__new__

            @functools.wraps(new)
            def made(kind: Any, data: Any = None, *args: Any, **keywords: Any) -> Any:
                return self._noted("Parameter", lambda values: new(kind, values, *args, **keywords), data)

            self.patches.attribute(parameter, "__new__", staticmethod(made))
        else:
            fill = parameter.__init__

            @functools.wraps(fill)
            def filled(made: Any, data: Any = None, *args: Any, **keywords: Any) -> None:
                def call(values: Any) -> Any:
                    fill(made, values, *args, **keywords)
                    return made

                self._noted("Parameter", call, data)

            self.patches.attribute(parameter, "__init__", filled)
        copier = parameter if "__deepcopy__" in vars(parameter) else tensor
        copy = copier.__deepcopy__

        @functools.wraps(copy)
        def copied(held: Any, memo: Any) -> Any:
            return self._noted("deepcopy", lambda values: copy(values, memo), held)

        self.patches.attribute(copier, "__deepcopy__", copied)

    def _noted(self, name: str, call: Callable[..., Any], data: Any) -> Any:
        frame = sys._getframe(2)
        if self._inside or not self.log.listening or frame.f_code.co_filename.startswith(OWN_FOLDER):
            return call(data)
        self._inside = True
        try:
            return self.log.run(name, call, (data,), {}, frame)
        finally:
            self._inside = False


def _sets_grad(function: Any) -> bool:
    """Whether a function is what `tensor.grad = ...` calls."""
    owner = getattr(function, "__self__", None)
    return getattr(function, "__name__", "") == "__set__" and getattr(owner, "__name__", "") == "grad"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


@functools.lru_cache(maxsize=4096)
def _code_at(file: str, line: int, name: str) -> CodeType:
    return _SHIM.replace(co_filename=file, co_firstlineno=line, co_name=name)  # type: ignore[no-any-return]


def _as_called_from(frame: FrameType, function: Any) -> Callable[..., Any]:
    """A function that calls `function` from a frame like that of its caller: what it warns of has the caller's line.

    A warning of compiled code belongs to the frame that called it, with its file, its line and its globals.
    """
    if isinstance(function, FunctionType):
        return function
    code = frame.f_code
    stand_in = FunctionType(_code_at(code.co_filename, frame.f_lineno, code.co_name), frame.f_globals)

    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return stand_in(function, args, keywords)
        except BaseException as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                error.__traceback__.tb_next = error.__traceback__.tb_next.tb_next  # the caller's line stands there once
            raise

    return call
