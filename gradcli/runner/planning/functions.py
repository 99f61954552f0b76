"""The Functions that a module or file defines."""

from collections.abc import Callable

from gradcli.errors import NothingToCheckError, is_interrupt
from gradcli.spec.resolve import names_in, resolve


def functions_in(target: str, begun: Callable[[], None] = lambda: None) -> tuple[str, ...]:
    """`target:Name` for every Function that the module or file `target` defines itself, each under its first name.

    `begun` is called when the module has been imported.

    Raises:
        TargetError: as `resolve`.
        NothingToCheckError: there is none.
    """
    names = names_in(target)
    begun()
    found: dict[int, str] = {}
    for named in (f"{target}:{name}" for name in names):
        value = resolve(named).object
        if is_checkable(value):
            found.setdefault(id(value), named)
    if not found:
        raise NothingToCheckError(
            f"nothing to check: {target} defines no autograd Function; name a callable as {target}:name"
        )
    return tuple(found.values())


def is_checkable(value: object) -> bool:
    """Whether a value is a Function; an object that raises when its attributes are read is not."""
    from gradcli.backends.registry import is_function

    try:
        return is_function(value)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return False
