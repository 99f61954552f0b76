"""Planted mistakes in Functions of many fields and backends, written without a look at how gradcli finds mistakes."""

import importlib
import pkgutil

from benchmarks.fix.other_hand.record import Case, Family


def families() -> list[Family]:
    """Every family, by the names of its files."""
    modules = (importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__))
    return [module.PLANT for module in modules if hasattr(module, "PLANT")]


def cases() -> list[Case]:
    """Every case. Raises ValueError where two have the same name."""
    found = [case for family in families() for case in family.cases]
    if len({case.name for case in found}) < len(found):
        raise ValueError("two cases have the same name")
    return found
