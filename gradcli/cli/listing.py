"""`gradcli list`: the Functions found, and how each would be checked."""

from pathlib import Path

from gradcli.cli.parameters import Targets
from gradcli.cli.streams import report_stream


def list_command(targets: Targets = None) -> int:
    """List the Functions found, with backend, signature and the inputs that would be used."""
    from gradcli.runner.configuration import default_targets
    from gradcli.runner.gather import gather
    from gradcli.runner.plan import plan
    from gradcli.runner.survey import Survey, survey
    from gradcli.settings import Settings

    def line(seen: Survey) -> str:
        if seen.problem is not None:
            inputs = f"no inputs: {seen.problem}"
        else:
            flags = " ".join(spec.as_flag() for spec in seen.inputs)
            source = "" if seen.inputs_from is None else seen.inputs_from.value
            inputs = f"{source}: {flags}"
        return f"{seen.case_id}   {seen.backend}   {seen.signature}   {inputs}\n"

    stream = report_stream()
    cases = plan(gather(targets or default_targets(Path.cwd())), Settings())
    for case in cases:
        stream.write(line(survey(case)))
        stream.flush()
    return 0
