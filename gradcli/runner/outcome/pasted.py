"""The smallest arguments as code to paste: a container of tensors is one line, with the tensors in it."""

from collections.abc import Sequence

from gradcli.backends.tensor.containers import container_leaves, rebuilt_container
from gradcli.cases import Argument
from gradcli.inputs.shrinking import as_code


class _Code:
    """A value whose repr is its code."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def pasted(arguments: Sequence[Argument]) -> tuple[str, ...]:
    """One line for each argument, such as `params = {'W': [[1.0]], 'b': [0.0]}`.

    A container whose leaves have other names than it tells is followed by them.
    """
    codes = {argument.name: code for argument, code in zip(arguments, as_code(arguments), strict=True)}
    inside: set[str] = set()
    for argument in arguments:
        own = [
            a.name for a in arguments if a.is_tensor and a.name.startswith((f"{argument.name}[", f"{argument.name}."))
        ]
        if argument.is_tensor or not own:
            continue
        names = [argument.name + path for path in _paths(argument.value)]
        if not set(own) <= set(names):
            continue
        leaves = [leaf for _, leaf in container_leaves(argument.value)]
        filled = [
            _Code(codes[name].partition(" = ")[2]) if name in own else leaf
            for name, leaf in zip(names, leaves, strict=True)
        ]
        codes[argument.name] = f"{argument.name} = {rebuilt_container(argument.value, filled)!r}"
        inside |= set(own)
    return tuple(code for name, code in codes.items() if name not in inside)


def _paths(value: object) -> list[str]:
    """The paths of a container's leaves; those of a named tuple by its fields, as JAX has them."""
    fields: tuple[str, ...] = getattr(value, "_fields", ())
    paths = [path for path, _ in container_leaves(value)]
    if len(fields) == len(paths):
        return [f".{field}" for field in fields]
    return paths
