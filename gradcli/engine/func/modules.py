"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine.nn.base.module import Module
from gradcli.engine.ops.joining import stack
from gradcli.engine.tensor import Tensor

_NOTHING = object()


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    Args:
        module: the module.
        parameter_and_buffer_dicts: tensors by dotted names, or a sequence of such dicts; the others stay the module's
            own.
        args: an argument, or a tuple of arguments.
        kwargs: named arguments.
        tie_weights: give what has several names in the module the same tensor under each.
        strict: refuse names that the module does not have, and those of its own that are missing.

    Raises:
        AttributeError: the module has no submodule of that name.
        RuntimeError: names are missing or unexpected, with `strict`.
        TypeError: something that is not a tensor is given for one.
        ValueError: a name is given twice, or two tensors for what is tied.
    """
    given = _merged(parameter_and_buffer_dicts)
    if tie_weights:
        given = _tied(module, given)
    if strict:
        _require_all(module, given)
    places: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in given.items():
            store, last = _place(module, name)
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{value} is not an instance of torch.Tensor")
            places.append((store, last, store.get(last, _NOTHING)))
            store[last] = value
        passed = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*passed, **(kwargs or {}))
    finally:
        for store, last, before in reversed(places):
            store[last] = before
            if before is _NOTHING:
                del store[last]


def _place(module: Module, name: str) -> tuple[dict[str, Any], str]:
    """Return the dict that holds a parameter or buffer, or else the attributes of its module, and its name there.

    Raises:
        TypeError: an attribute of that name is not a tensor.
    """
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    stores: tuple[dict[str, Any], ...] = (owner._parameters, owner._buffers)
    found = next((store for store in stores if last in store), None)
    if found is not None:
        return found, last
    present = getattr(owner, last, None)
    if present is not None and not isinstance(present, Tensor):
        raise TypeError(f"attribute `{last}`: {present} is not an instance of torch.Tensor")
    return vars(owner), last


def _merged(dicts: Any) -> dict[str, Any]:
    """Return one dict of all names.

    Raises:
        ValueError: they are not dicts, or a name is in two of them.
    """
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(entry, dict) for entry in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for entry in dicts for name in entry]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for entry in dicts for name, value in entry.items()}


def _own(module: Module) -> dict[str, Tensor]:
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _tied(module: Module, given: dict[str, Any]) -> dict[str, Any]:
    """Return the given tensors under all names of what they replace.

    Raises:
        ValueError: two tensors are given for the names of one.
    """
    names: dict[int, list[str]] = {}
    for name, tensor in _own(module).items():
        names.setdefault(id(tensor), []).append(name)
    full = dict(given)
    for together in names.values():
        values = [given[name] for name in together if name in given]
        if len(together) < 2 or not values:
            continue
        if any(value is not values[0] for value in values):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(together)}, which are tied. Consider using "
                "tie_weights=False"
            )
        full.update(dict.fromkeys(together, values[0]))
    return full


def _require_all(module: Module, given: dict[str, Any]) -> None:
    """Raise RuntimeError unless exactly the module's own names are given."""
    own = _own(module)
    unexpected = [repr(name) for name in given if name not in own]
    missing = [repr(name) for name in own if name not in given]
    lines = [f"Unexpected key(s): {', '.join(unexpected)}."] if unexpected else []
    lines += [f"Missing key(s): {', '.join(missing)}."] if missing else []
    if lines:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(lines))


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters, and the buffers, of several modules of one class, stacked by name.

    Args:
        models: the modules, a list or a ModuleList.

    Raises:
        RuntimeError: there are none, or they differ in class, mode or what requires a gradient.
    """
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    stacked = [
        {name: _leaf([each[name] for each in entries], name) for name in entries[0]}
        for entries in (parameters, buffers)
    ]
    return stacked[0], stacked[1]


def _leaf(tensors: list[Tensor], name: str) -> Tensor:
    flags = {tensor.requires_grad for tensor in tensors}
    if len(flags) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = stack(tensors)
    return result.detach().requires_grad_() if flags == {True} else result
