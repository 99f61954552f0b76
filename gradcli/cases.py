"""What is to be checked, as plain frozen values: inputs, specs and the cases made of them."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from gradcli.frozen import dataclass
from gradcli.targets import TargetInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray

HELD = "parameter"
"""The domain of what a module itself holds: it cannot be asked for, and is not shown as a flag."""

DTYPES = (
    "float64", "float32", "float16", "bfloat16", "complex128", "complex64",
    "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip
OWN_DTYPE = frozenset(("indices", "permutation", "pointers", "boolean", "key", "typed-key"))
"""The domains whose draws have a dtype of their own, whatever the dtype of the case."""
LAYOUTS = ("coo", "csr")
MAX_ELEMENTS = 50_000_000
MAX_AXES = 64
"""The most axes of an array in NumPy 2 and of a tensor in PyTorch."""


def shape_problem(shape: Sequence[int]) -> str | None:
    """Why no input of this shape is drawn; None where it is."""
    if len(shape) > MAX_AXES:
        return f"a shape of {len(shape)} axes; at most {MAX_AXES} are possible"
    if math.prod(shape) > MAX_ELEMENTS:
        return f"shape {list(shape)} has {math.prod(shape):,} elements; gradcli draws at most {MAX_ELEMENTS:,}"
    return None


def layout_problem(layout: str, shape: Sequence[int]) -> str | None:
    """Why no sparse tensor of this shape has this layout; None where one has."""
    if shape and (layout != "csr" or len(shape) == 2):
        return None
    return f"layout {layout} needs {'a matrix' if layout == 'csr' else 'at least one axis'}, got shape {list(shape)}"


def drawing_problem(domain: str, shape: Sequence[int], parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """The key at fault and why nothing of this shape is drawn from a domain with these parameters; None where it is.

    Parameters of a wrong type are left to the drawing.
    """
    last = shape[-1] if shape else 0
    needed = _shape_needed(domain, shape, last)
    if needed is not None:
        return "shape", f"domain {domain} needs {needed}, got shape {list(shape)}"
    if domain == "npz" and not parameters.get("path"):
        return "domain", "domain npz needs a file, as in npz:data.npz"
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in parameters.values()):
        return None
    return _interval_problem(domain, last, parameters) or _bounds_problem(domain, last, parameters)


def _shape_needed(domain: str, shape: Sequence[int], last: int) -> str | None:
    """What a domain needs that a shape does not have; None where it has it."""
    if domain in _SQUARE and (len(shape) < 2 or last != shape[-2]):
        return "a square matrix (two equal sizes at the end)"
    if domain == "orthogonal" and len(shape) < 2:
        return "a matrix (two sizes or more)"
    if domain == "permutation" and not shape:
        return "a last axis"
    if domain == "key" and last != 2:
        return "a last axis of 2"
    least, words = _LEAST_LAST_SIZE.get(domain, (0, ""))
    return f"a last axis of {words}" if last < least else None


_SQUARE = ("spd", "triangular", "diagonally-dominant")
_LEAST_LAST_SIZE = {
    "one-hot": (1, "at least one class"),
    "simplex": (1, "at least one class"),
    "unit-vectors": (1, "at least one entry"),
    "unit-ball": (1, "at least one entry"),
    "pointers": (2, "at least two numbers"),
}
_FARTHEST = 1e300
"""Beyond it the length of an interval may overflow."""


def reach_of(domain: str, count: int) -> float:
    """The default of `hi`, and of `-lo`, for `count` entries along the last axis."""
    return max(2.0, 0.005 * count) if domain in ("ascending", "descending") else 1.0


def _interval_problem(domain: str, count: int, parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    reach = reach_of(domain, count)
    ends = {"lo": -reach, "hi": reach} | {key: parameters[key] for key in ("lo", "hi") if key in parameters}
    if not parameters.keys() & ends.keys():
        return None
    told = [f"{key}={_shown(end)}{'' if key in parameters else ' (the default)'}" for key, end in ends.items()]
    fault, got = "hi" if "hi" in parameters else "lo", f"got {', '.join(told)}"
    if not ends["lo"] < ends["hi"]:
        return fault, f"domain {domain} needs lo < hi, {got}"
    if all(math.isinf(end) for end in ends.values()):
        return fault, f"domain {domain} needs a finite lo or hi, {got}"
    if domain == "uniform" and any(math.isinf(end) for end in ends.values()):
        return fault, f"domain uniform needs a finite lo and hi, {got}"
    if any(math.isfinite(end) and abs(end) > _FARTHEST for end in ends.values()):
        return fault, f"domain {domain} needs lo and hi of at most {_FARTHEST:g} in size, {got}"
    return None


def _shown(number: float) -> str:
    return str(int(number)) if isinstance(number, float) and number.is_integer() and abs(number) < 1e15 else str(number)


def _bounds_problem(domain: str, count: int, parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    if domain == "indices":
        low, high = parameters.get("low", 0), parameters.get("high", 2)
        if low < high:
            return None
        fault = "high" if "high" in parameters else "low"
        return fault, f"domain indices needs low < high (high itself is not drawn), got low={low}, high={high}"
    high = parameters.get("high", count)
    if domain == "permutation" and high < count:
        return "high", f"domain permutation needs high of at least its last size {count}, got high={high}"
    if domain == "pointers" and high < 0:
        return "high", f"domain pointers needs high of at least 0, got high={high}"
    return None


class InputsFrom(Enum):
    """Where the inputs of a case came from; the value is what the report shows."""

    FLAGS = "flags"
    SPEC = "spec"
    SAMPLE_INPUTS = "sample_inputs"
    GIVEN = "given"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """One argument of forward: a tensor to be drawn at random, or a value given as it is.

    `kind` is "tensor" or "value". For a tensor: `shape`, `dtype` (None: the run's), `domain` with its `parameters`
    (for example high=4 for indices, or lo and hi for open-interval), `layout` ("coo" or "csr" for a sparse tensor), and
    `requires_grad` (None: yes for floats).
    For a value: `value`, any Python literal or a `FrameworkObject`, or nested lists of numbers for tensors whose domain
    is "literal".
    """

    name: str
    kind: str = "tensor"
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    domain: str = "normal"
    layout: str | None = None
    parameters: tuple[tuple[str, Any], ...] = ()
    requires_grad: bool | None = None
    value: Any = None

    def parameter(self, key: str, default: Any = None) -> Any:
        """The domain's parameter `key`, or `default`."""
        return dict(self.parameters).get(key, default)

    def as_flag(self) -> str:
        """The command-line flag that gives this input, such as `-i x=3x4` or `-a dim=-1`."""
        if self.kind == "value":
            return f"-a {_quoted(f'{self.name}={self.value!r}')}"
        shape = "scalar" if not self.shape else "x".join(str(size) for size in self.shape)
        extras = [f"dtype={self.dtype}"] if self.dtype not in (None, "float64") else []
        extras += [f"domain={self.domain}"] if self.domain != "normal" else []
        extras += [f"layout={self.layout}"] if self.layout is not None else []
        extras += [f"{key}={value}" for key, value in self.parameters]
        extras += [f"grad={str(self.requires_grad).lower()}"] if self.requires_grad is not None else []
        return "-i " + _quoted(f"{self.name}=" + ",".join([shape, *extras]))


def _quoted(text: str) -> str:
    """A word for the shell; in double quotes where it has single ones and nothing that is special in double quotes."""
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


_OBJECT = re.compile(r"torch\.(?P<name>[a-z]\w*)(?:\('(?P<argument>[\w:]+)'\))?")


@dataclass(frozen=True, slots=True)
class FrameworkObject:
    """A number format, a device or the like of the framework, by the text that makes it, such as `torch.float64`."""

    text: str

    @staticmethod
    def read(text: str) -> "FrameworkObject | None":
        """The object that a text names; None for any other text."""
        return FrameworkObject(text) if _OBJECT.fullmatch(text) else None

    def of(self, namespace: object) -> Any:
        """The object itself; `namespace` is the framework's top module. Raises AttributeError where it lacks one."""
        found = _OBJECT.fullmatch(self.text)
        if found is None:
            raise AttributeError(self.text)
        value = getattr(namespace, found["name"])
        return value if found["argument"] is None else value(found["argument"])

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a case must come to: "passed", "failed" (with the findings named) or "surrogate"."""

    verdict: str = "passed"
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a target is not checked: a complete message, the exit code, and whether its import ended the process.

    The code is 0 for a Function that has nothing to check: its case is skipped.
    """

    message: str
    exit_code: int
    crashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a command was given for a case: a spec's file or a target, and the inputs and gradient given by flags."""

    name: str
    inputs: tuple[InputSpec, ...] = ()
    grad: str | None = None
    saved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpec:
    """One target with one set of inputs, as a spec or the command line gives it.

    `inputs` is None where they are to be inferred. `grad` names a hand-written gradient for a callable,
    and `saved` what it needs beside the gradients of the results.
    `construct` are keywords for a target that is a class of modules.
    `nondeterminism` is what results may vary by from call to call, for the `reason` given; `device` where tensors lie.
    `order`, `seed`, `samples` and `budget` override the run's settings. `allow` names findings that are notes, with
    their reasons. `origin` is `file:line` of a spec, or None; `column` goes with it, `in_id` is its place where a
    case of another spec has the same target and name. `problem` says why there is
    nothing to run: the case is reported with it.
    """

    target: str
    name: str | None = None
    inputs: tuple[InputSpec, ...] | None = None
    inputs_from: InputsFrom = InputsFrom.INFERRED
    grad: str | None = None
    saved: tuple[str, ...] = ()
    construct: tuple[tuple[str, Any], ...] = ()
    nondeterminism: float | None = None
    reason: str | None = None
    device: str | None = None
    order: int | None = None
    seed: int | None = None
    samples: int | None = None
    budget: float | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    allow: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    expect: Expectation = field(default_factory=Expectation)
    origin: str | None = None
    column: int = 1
    in_id: str | None = None
    problem: Problem | None = None

    @property
    def case_id(self) -> str:
        """The target, with the case's name in brackets where it has one, and `in_id`."""
        parts = [part for part in (self.name, self.in_id) if part is not None]
        return f"{self.target}[{', '.join(parts)}]" if parts else self.target

    @property
    def asked(self) -> Asked:
        """What to give to a command for this case again; of a spec its file, which has more such cases."""
        given = (self.inputs or ()) if self.inputs_from is InputsFrom.FLAGS else ()
        if self.origin is not None:
            return Asked(name=self.origin.rpartition(":")[0], inputs=given)
        return Asked(name=self.target, inputs=given, grad=self.grad, saved=self.saved)

    def with_inputs(self, inputs: tuple[InputSpec, ...], source: InputsFrom) -> "CheckSpec":
        """The same case with these inputs."""
        return replace(self, inputs=inputs, inputs_from=source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparsity:
    """Which entries a sparse tensor of `shape` has: `indices` of shape (entries, axes), rows first; "coo" or "csr"."""

    layout: str
    shape: tuple[int, ...]
    indices: tuple[tuple[int, ...], ...]

    def entries_of(self, dense: "NDArray[Any]") -> "NDArray[Any]":
        """The entries of an array of `shape`, in the order of `indices`."""
        import numpy as np

        return dense[tuple(np.array(self.indices, dtype=np.int64).reshape(-1, len(self.shape)).T)]

    def dense(self, values: "NDArray[Any]") -> "NDArray[Any]":
        """The array of `shape` with these entries, and zeros elsewhere."""
        import numpy as np

        whole = np.zeros(self.shape, dtype=values.dtype)
        whole[tuple(np.array(self.indices, dtype=np.int64).reshape(-1, len(self.shape)).T)] = values
        return whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of forward with its value: a NumPy array for a tensor, any Python object otherwise.

    `dtype` is that of the tensor where NumPy has none like it (bfloat16, held in a float32 array). Of a sparse tensor
    the value is the vector of its entries, and `sparsity` says where they stand. `fixed` says that the user gave this
    very value; `own` is the caller's own tensor that it was copied from.
    """

    name: str
    value: Any
    is_tensor: bool
    requires_grad: bool = False
    domain: str | None = None
    keyword: bool = False
    dtype: str | None = None
    sparsity: Sparsity | None = None
    fixed: bool = False
    own: object | None = field(default=None, repr=False, compare=False)

    @property
    def dtype_name(self) -> str:
        """The dtype of the tensor that this stands for."""
        return self.dtype or str(self.value.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor that this stands for; a typed random key hides the last axis of its numbers."""
        if self.sparsity is not None:
            return self.sparsity.shape
        return tuple(self.value.shape[: -1 if self.domain == "typed-key" else None])


def with_defaults(arguments: Sequence[Argument], info: TargetInfo) -> list[Argument]:
    """The arguments, and the defaults of those left out, by keyword if forward takes them only so."""
    names = {argument.name for argument in arguments}
    left = [p for p in info.parameters if p.has_default and p.name not in names]
    made = [Argument(name=p.name, value=p.default, is_tensor=False, keyword=p.keyword_only) for p in left]
    return [*arguments, *made]


def with_its_source(argument: Argument, info: TargetInfo) -> str:
    """A value for messages, with where it comes from: the default, unless the user gave it."""
    default = next((p for p in info.parameters if p.has_default and p.name == argument.name), None)
    same = default is not None and (default.default is argument.value or repr(default.default) == repr(argument.value))
    return f"{'default' if same and not argument.fixed else 'given'}: {argument.value!r}"
