"""A saved failure, run again."""

from collections.abc import Callable
from dataclasses import replace

from gradcli.backends.registry import backend_for
from gradcli.cases import CheckSpec, InputsFrom
from gradcli.errors import UsageError
from gradcli.results import CheckResult
from gradcli.runner.arguments.supply import supply_of
from gradcli.runner.case import check_object
from gradcli.runner.outcome.pasted import pasted
from gradcli.runner.planning.plan import CheckCase, claimed
from gradcli.runner.store.failures import Failure
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve


def replay(failure: Failure, begun: Callable[[], None] = lambda: None, *, tables: bool = False) -> CheckResult:
    """Check the target of `failure` at exactly its arguments, with its seed; `begun` is called once it is imported.

    With `tables`, the result holds what `-v` shows.

    Raises:
        TargetError: the target is no longer there.
    """
    case = CheckCase(
        spec=CheckSpec(
            target=failure.target,
            name=failure.name,
            grad=failure.grad,
            saved=failure.saved,
            construct=failure.construct,
        ),
        settings=Settings(
            order=failure.order,
            order_asked=failure.order_asked,
            allow=failure.allow,
            dtype=failure.dtype,
            samples=1,
            shrink=False,
            tables=tables,
            nondeterminism=failure.nondeterminism,
            device=failure.device,
        ),
        seed=failure.seed,
    )
    supply = supply_of([failure.arguments], InputsFrom.GIVEN)
    target = resolve(failure.target).object
    begun()
    _require_names(failure, target, case)
    result = check_object(target, case, supply=supply)
    return replace(result, smallest=tuple(pasted(failure.arguments)))


def _require_names(failure: Failure, target: object, case: CheckCase) -> None:
    """Refuse a file whose arguments are not forward's: it was written for another target, or changed."""
    checked = claimed(target, case.spec)
    info = backend_for(checked).describe(checked)
    known = {parameter.name for parameter in info.parameters} | {name for name, _ in info.held}
    if info.takes_keywords or any(parameter.variadic for parameter in info.parameters):
        return
    module = isinstance(checked, type) and (info.backward is None or info.inner)
    for argument in failure.arguments:
        if module and "." in argument.name:  # a parameter: known only when the module has been made
            continue
        own = argument.name.partition("[")[0].partition(".")[0]
        if argument.name not in known and own not in known and not failure.construct:
            raise UsageError(
                f"the saved failure has an argument {argument.name!r}, which {info.name}.forward does not have (it has "
                f"{', '.join(sorted(known)) or 'none'}): the target or this file was changed after the failure was "
                "saved"
            )
