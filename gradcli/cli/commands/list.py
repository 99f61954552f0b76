"""`gradcli list`: the Functions found, and how each would be checked."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradcli.cli.arguments.parameters import InProcess, Targets
from gradcli.cli.exits import prefixed, say
from gradcli.cli.output.streams import report_stream
from gradcli.reporters.escaping import one_line

if TYPE_CHECKING:
    from gradcli.cli.pools import Site


def list_command(targets: Targets = None, in_process: InProcess = False) -> int:
    """List the Functions found, with backend, signature and the inputs that would be used."""
    from gradcli.cli.pools import site
    from gradcli.runner.planning.configuration import default_targets

    stream = report_stream()
    codes = {0}
    with site(in_process=in_process) as here:
        for text, code in _lines(targets or list(default_targets(here.start)), here):
            codes.add(code)
            if code:
                say(text)
            else:
                stream.write(f"{one_line(text)}\n")
                stream.flush()
    return next((code for code in (70, 2, 3, 5) if code in codes), 0)


def _lines(targets: list[str], here: "Site") -> Iterator[tuple[str, int]]:
    """For each case its line, or why there is none, and the exit code that it stands for."""
    from gradcli.runner.execute import placed
    from gradcli.runner.jobs import Done, Lost, SurveyJob
    from gradcli.runner.planning.gather import gather_all
    from gradcli.runner.planning.plan import plan
    from gradcli.settings import Settings

    cases = plan(gather_all(targets, pool=here.pool), Settings())
    outcomes = here.pool.outcomes(
        [SurveyJob(target=case.spec.target, case=case) for case in cases if case.spec.problem is None]
    )
    for case in cases:
        if case.spec.problem is not None:
            message, code = case.spec.problem.message, case.spec.problem.exit_code
            yield (prefixed(message) if code else f"{case.spec.target}   not checked: {message}"), code
            continue
        outcome = next(outcomes)
        if isinstance(outcome, Done):
            yield outcome.value.line(), 0
        else:
            message = outcome.message_for(case.spec.target)
            if isinstance(outcome, Lost) and outcome.begun and case.spec.origin is None:
                message = f"{case.spec.target}: {message}"
            yield prefixed(placed(case, message)), outcome.exit_code
