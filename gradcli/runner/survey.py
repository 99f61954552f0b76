"""What is known of a target before it is checked: its backend, its signature and the inputs that would be used."""

from dataclasses import dataclass, replace

from gradcli.backends.registry import backend_for
from gradcli.cases import InputsFrom, InputSpec
from gradcli.errors import InputsNotFoundError, UserCodeError
from gradcli.runner.plan import CheckCase, claimed
from gradcli.runner.prepare import prepared
from gradcli.spec.resolve import resolve
from gradcli.targets import Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A target as `gradcli list` shows it; `problem` says why no inputs were found."""

    case_id: str
    backend: str
    parameters: tuple[Parameter, ...]
    inputs: tuple[InputSpec, ...] = ()
    inputs_from: InputsFrom | None = None
    alternatives: tuple[tuple[InputSpec, ...], ...] = ()
    problem: str | None = None

    @property
    def signature(self) -> str:
        """forward's parameters as they are written, ctx left out."""
        return f"({', '.join(_written(parameter) for parameter in self.parameters)})"


def survey(case: CheckCase) -> Survey:
    """Look at the target of `case`, and find its inputs as a check would.

    Raises:
        UsageError: the target or an input of it is not as the case says.
    """
    found = resolve(case.spec.target).object
    target = claimed(found, case.spec)
    backend = backend_for(target)
    parameters = backend.describe(target).parameters
    seen = Survey(case_id=case.spec.case_id, backend=backend.name, parameters=parameters)
    try:
        supply = prepared(found, case).supply
    except (InputsNotFoundError, UserCodeError) as error:
        return replace(seen, problem=str(error).splitlines()[0])
    return replace(seen, inputs=supply.specs, inputs_from=supply.source, alternatives=supply.alternatives)


def _written(parameter: Parameter) -> str:
    star = "*" if parameter.variadic else ""
    default = f"={parameter.default!r}" if parameter.has_default else ""
    return f"{star}{parameter.name}{default}"
