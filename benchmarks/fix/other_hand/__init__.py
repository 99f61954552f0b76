"""Planted mistakes in Functions of many fields and backends, written without a look at how gradcli finds mistakes."""

import importlib
import pkgutil
from collections.abc import Iterable

from benchmarks.fix.other_hand.record import Case, Family


def families() -> list[Family]:
    """Every family, by the names of its files."""
    return families_in(__name__, __path__)


def families_in(package: str, folders: Iterable[str]) -> list[Family]:
    """The families in the files of a package."""
    modules = (importlib.import_module(f"{package}.{m.name}") for m in pkgutil.iter_modules(folders))
    return [module.PLANT for module in modules if hasattr(module, "PLANT")]


def cases() -> list[Case]:
    """Every case. Raises ValueError where two have the same name."""
    found = [case for family in families() for case in family.cases]
    if len({case.name for case in found}) < len(found):
        raise ValueError("two cases have the same name")
    return found
