"""Saved failures: the exact arguments of a failing case in a file that `gradcli replay` runs again."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli._version import __version__
from gradcli.cases import Argument, FrameworkObject, Sparsity
from gradcli.errors import UsageError
from gradcli.frozen import dataclass
from gradcli.results import Finding
from gradcli.runner.store.saved import FOLDER, document_in
from gradcli.sources import literal

SCHEMA = "gradcli.failure/1"
_LISTED_ENTRIES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failing case with everything that decides it: target, seed, order, precision and exact arguments."""

    target: str
    name: str | None
    seed: int
    order: int
    dtype: str
    arguments: tuple[Argument, ...]
    finding: str | None = None
    input: str | None = None
    grad: str | None = None
    saved: tuple[str, ...] = ()
    construct: tuple[tuple[str, Any], ...] = ()
    nondeterminism: float = 0.0
    device: str | None = None
    order_asked: bool = False
    allow: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The document of a failure file, schema gradcli.failure/1; what differs from the defaults comes last."""
        asked: dict[str, Any] = {"order_asked": True} if self.order_asked else {}
        asked |= {"saved": list(self.saved)} if self.saved else {}
        asked |= {"allow": dict(self.allow)} if self.allow else {}
        return {
            "schema": SCHEMA,
            "gradcli": __version__,
            "target": self.target,
            "name": self.name,
            "grad": self.grad,
            "nondeterminism": self.nondeterminism,
            "device": self.device,
            "construct": {name: _text(name, value) for name, value in self.construct},
            "seed": self.seed,
            "order": self.order,
            "dtype": self.dtype,
            "finding": self.finding,
            "input": self.input,
            "arguments": [_encoded(argument) for argument in self.arguments],
            **asked,
        }


def failure_of(
    target: str,
    name: str | None,
    seed: int,
    order: int,
    dtype: str,
    arguments: Sequence[Argument],
    finding: Finding,
    *,
    grad: str | None = None,
    saved: Sequence[str] = (),
    construct: Sequence[tuple[str, Any]] = (),
    nondeterminism: float = 0.0,
    device: str | None = None,
    order_asked: bool = False,
    allow: Sequence[tuple[str, str]] = (),
) -> Failure:
    """The failure that `finding` is, at these arguments."""
    return Failure(
        target=target,
        name=name,
        seed=seed,
        order=order,
        dtype=dtype,
        arguments=tuple(arguments),
        finding=finding.kind.value,
        input=finding.input,
        grad=grad,
        saved=tuple(saved),
        construct=tuple(construct),
        nondeterminism=nondeterminism,
        device=device,
        order_asked=order_asked,
        allow=tuple(allow),
    )


def save(failure: Failure, folder: Path = FOLDER) -> Path:
    """Write `failure` under a name made of its target and content, and return the path.

    Raises:
        OSError: the folder cannot be written.
        ValueError: an argument has no exact text, such as a function.
    """
    text = json.dumps(failure.to_dict(), indent=1) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:4]
    label = re.sub(r"[^A-Za-z0-9_.]+", "-", re.split(r":(?![\\/])", failure.target)[-1]).strip("-.") or "failure"
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    path = folder / f"{label}-{digest}.json"
    path.write_text(text, encoding="utf-8")
    return path


def load(path: Path) -> Failure:
    """The failure saved in `path`.

    Raises:
        UsageError: the file is missing, or is no failure that this version can read.
    """
    document = document_in(path, SCHEMA)
    try:
        return Failure(
            target=str(document["target"]),
            name=document["name"],
            seed=int(document["seed"]),
            order=int(document["order"]),
            dtype=str(document["dtype"]),
            arguments=tuple(_decoded(entry) for entry in document["arguments"]),
            finding=document["finding"],
            input=document["input"],
            grad=document.get("grad"),
            saved=tuple(str(name) for name in document.get("saved", ())),
            nondeterminism=float(document.get("nondeterminism", 0.0)),
            device=document.get("device"),
            order_asked=bool(document.get("order_asked", False)),
            allow=tuple((str(name), str(why)) for name, why in document.get("allow", {}).items()),
            construct=tuple((name, literal(text)) for name, text in document.get("construct", {}).items()),
        )
    except (AttributeError, KeyError, TypeError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path}: is damaged: {type(error).__name__}: {error}") from error


def _encoded(argument: Argument) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": argument.name, "keyword": argument.keyword}
    if not argument.is_tensor:
        fixed = {"fixed": True} if argument.fixed else {}
        return {**entry, **fixed, "literal": _text(f"input {argument.name!r}", argument.value)}
    array = np.asarray(argument.value)
    entry |= {"dtype": str(array.dtype), "shape": list(array.shape), "requires_grad": argument.requires_grad}
    entry["domain"] = argument.domain
    entry["stands_for"] = argument.dtype
    if (sparsity := argument.sparsity) is not None:
        entry["sparsity"] = {"layout": sparsity.layout, "shape": sparsity.shape, "indices": sparsity.indices}
    if array.size > _LISTED_ENTRIES:
        return {**entry, "base64": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")}
    return {**entry, "values": [_exact(value) for value in array.ravel().tolist()]}


def _decoded(entry: dict[str, Any]) -> Argument:
    if "literal" in entry:
        value: Any = FrameworkObject.read(entry["literal"]) or literal(entry["literal"])
        return Argument(
            name=entry["name"],
            value=value,
            is_tensor=False,
            keyword=entry["keyword"],
            fixed=entry.get("fixed", False),
        )
    return Argument(
        name=entry["name"],
        value=_array(entry),
        is_tensor=True,
        requires_grad=entry["requires_grad"],
        domain=entry["domain"],
        keyword=entry["keyword"],
        dtype=entry.get("stands_for"),
        sparsity=_sparsity(entry.get("sparsity")),
    )


def _sparsity(entry: dict[str, Any] | None) -> Sparsity | None:
    if entry is None:
        return None
    indices = tuple(tuple(place) for place in entry["indices"])
    return Sparsity(layout=entry["layout"], shape=tuple(entry["shape"]), indices=indices)


def _array(entry: dict[str, Any]) -> NDArray[Any]:
    shape = tuple(entry["shape"])
    if "base64" in entry:
        return np.frombuffer(base64.b64decode(entry["base64"]), dtype=entry["dtype"]).reshape(shape).copy()
    values = [
        complex(*map(float, v)) if isinstance(v, list) else float(v) if isinstance(v, str) else v
        for v in entry["values"]
    ]
    return np.array(values, dtype=entry["dtype"]).reshape(shape)


def _exact(value: Any) -> Any:
    """A number as JSON, which Python writes in the shortest digits that read back exactly; NaN and Inf as text."""
    if isinstance(value, complex):
        return [_exact(value.real), _exact(value.imag)]
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    return value


def _text(what: str, value: object) -> str:
    """The Python literal that reads back as `value`. Raises ValueError where there is none."""
    text = repr(value)
    if isinstance(value, FrameworkObject):
        return text
    try:
        literal(text)
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{what} cannot be written as a Python literal: {' '.join(text.split()):.60}") from error
    return text
