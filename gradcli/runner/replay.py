"""A saved failure, run again."""

from collections.abc import Callable
from dataclasses import replace

from gradcli.cases import CheckSpec, InputsFrom
from gradcli.inputs.shrinking import as_code
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.failures import Failure
from gradcli.runner.plan import CheckCase
from gradcli.runner.supply import supply_of
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve


def replay(failure: Failure, begun: Callable[[], None] = lambda: None, *, tables: bool = False) -> CheckResult:
    """Check the target of `failure` at exactly its arguments, with its seed; `begun` is called once it is imported.

    With `tables`, the result holds what `-v` shows.

    Raises:
        TargetError: the target is no longer there.
    """
    case = CheckCase(
        spec=CheckSpec(target=failure.target, name=failure.name, grad=failure.grad, construct=failure.construct),
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
    result = check_object(target, case, supply=supply)
    return replace(result, smallest=tuple(as_code(failure.arguments)))
