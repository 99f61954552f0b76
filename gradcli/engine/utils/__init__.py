"""The namespace that programs import `hooks` from."""

from typing import Any

from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.utils import _pytree as _pytree
from gradcli.engine.utils import hooks as hooks


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here."""
    raise refusal(".utils", name, globals())
