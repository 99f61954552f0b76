"""The Functions that a module or file defines."""

from collections.abc import Callable

from gradcli.errors import NothingToCheckError, is_interrupt
from gradcli.spec.resolve import names_in, resolve


def functions_in(target: str, begun: Callable[[], None] = lambda: None) -> tuple[str, ...]:
    """`target:Name` for every Function that the module or file `target` defines itself, each under its first name.

    One with a misspelt forward or backward is among them; one that has no backward, and so nothing to check, is not.
    `begun` is called when the module has been imported.

    Raises:
        TargetError: as `resolve`.
        NothingToCheckError: there is none.
    """
    return tuple(name for name, lack in listed_in(target, begun) if lack is None)


def listed_in(target: str, begun: Callable[[], None] = lambda: None) -> tuple[tuple[str, str | None], ...]:
    """The same with those that have nothing to check: each with the reason, which is None for the others."""
    names = names_in(target)
    begun()
    found: dict[int, tuple[str, str | None]] = {}
    for named in (f"{target}:{name}" for name in names):
        value = resolve(named).object
        lack = None if is_checkable(value) else _lack_of(value)
        if lack is not None or is_checkable(value):
            why, misspelt = lack or ("", True)
            found.setdefault(id(value), (named, None if misspelt else why))
    if not found:
        raise NothingToCheckError(
            f"nothing to check: {target} defines no autograd Function; name a callable as {target}:name"
        )
    return tuple(found.values())


def _lack_of(value: object) -> tuple[str, bool] | None:
    from gradcli.backends.registry import lack_of

    try:
        return lack_of(value)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return None


def is_checkable(value: object) -> bool:
    """Whether a value is a Function; an object that raises when its attributes are read is not."""
    from gradcli.backends.registry import is_function

    try:
        return is_function(value)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return False
