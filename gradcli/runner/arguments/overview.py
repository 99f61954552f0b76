"""A target as it would be checked: its backend, its signature and its inputs."""

from collections.abc import Callable
from dataclasses import replace

from gradcli.backends.registry import backend_for
from gradcli.cases import InputsFrom, InputSpec
from gradcli.errors import InputsNotFoundError, UserCodeError
from gradcli.frozen import dataclass
from gradcli.runner.arguments.prepare import prepared
from gradcli.runner.planning.plan import CheckCase, claimed
from gradcli.spec.resolve import resolve
from gradcli.targets import Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A target as `gradcli list` shows it: forward's parameters by name, and as they are written, ctx left out.

    `problem` says why no inputs were found.
    """

    case_id: str
    backend: str
    names: tuple[str, ...]
    signature: str
    inputs: tuple[InputSpec, ...] = ()
    inputs_from: InputsFrom | None = None
    alternatives: tuple[tuple[InputSpec, ...], ...] = ()
    problem: str | None = None

    def line(self) -> str:
        """The case on one line: its name, backend and signature, and its inputs or why there are none."""
        if self.problem is not None:
            inputs = f"no inputs: {self.problem}"
        else:
            flags = " ".join(spec.as_flag() for spec in self.inputs)
            inputs = f"{'' if self.inputs_from is None else self.inputs_from.value}: {flags}"
        return f"{self.case_id}   {self.backend}   {self.signature}   {inputs}"


def survey(case: CheckCase, begun: Callable[[], None] = lambda: None) -> Survey:
    """Look at the target of `case`, and find its inputs as a check would; `begun` is called once it is imported.

    Raises:
        UsageError: the target or an input of it is not as the case says.
    """
    found = resolve(case.spec.target).object
    begun()
    target = claimed(found, case.spec)
    backend = backend_for(target)
    parameters = backend.describe(target).parameters
    seen = Survey(
        case_id=case.spec.case_id,
        backend=backend.name,
        names=tuple(parameter.name for parameter in parameters),
        signature=f"({', '.join(_written(parameter) for parameter in parameters)})",
    )
    try:
        ready = prepared(found, case)
    except (InputsNotFoundError, UserCodeError) as error:
        return replace(seen, problem=str(error).splitlines()[0])
    supply = ready.supply
    seen = replace(seen, backend=ready.backend.name)
    return replace(seen, inputs=supply.specs, inputs_from=supply.source, alternatives=supply.alternatives)


def _written(parameter: Parameter) -> str:
    star = "*" if parameter.variadic else ""
    default = f"={parameter.default!r}" if parameter.has_default else ""
    return f"{star}{parameter.name}{default}"
