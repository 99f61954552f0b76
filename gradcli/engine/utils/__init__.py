"""The namespace that programs import `hooks` from."""

from importlib import import_module
from typing import Any

from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.utils import hooks as hooks


def __getattr__(name: str) -> Any:
    """`_pytree`, which is imported when it is used; refuse a name that is not here."""
    if name == "_pytree":
        return import_module("gradcli.engine.utils._pytree")
    raise refusal(".utils", name, globals())
