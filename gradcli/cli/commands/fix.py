"""`gradcli fix`: a patch for a wrong backward, proven by the whole check before it is shown."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from gradcli.cli.arguments.parameters import Arguments, Grad, InProcess, Inputs, Saved, Seed
from gradcli.cli.arguments.target_names import complete_functions
from gradcli.cli.exits import say
from gradcli.errors import RelayedError, UsageError

if TYPE_CHECKING:
    from gradcli.cli.output.streams import ReportStream
    from gradcli.cli.pools import Site
    from gradcli.fix.job import FixJob
    from gradcli.patches import FixResult
    from gradcli.runner.planning.plan import CheckCase

_NONE_FOUND = 1
_Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="module:Name or path.py:Name, a module or file, or a spec.",
        autocompletion=complete_functions,
        show_default=False,
    ),
]


def fix_command(
    target: _Target,
    inputs: Inputs = None,
    arguments: Arguments = None,
    grad: Grad = None,
    saved: Saved = None,
    diff: Annotated[bool, typer.Option("--diff", help="Print only the diff, as git apply reads it.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write the patch into the file.")] = False,
    interactive: Annotated[
        bool,
        typer.Option(
            "--interactive", help="Show each patch and ask whether to write it, to stop, or to look for another."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write even if git could not restore the file as it is now.")
    ] = False,
    budget: Annotated[
        float, typer.Option("--budget", min=0.1, metavar="S", help="CPU seconds that the search for a patch may take.")
    ] = 20.0,
    seed: Seed = 0,
    in_process: InProcess = False,
) -> int:
    """Search for a patch of TARGET's backward that passes the whole check; show it, or write it if you ask for that."""
    require_options(diff=diff, write=write, interactive=interactive, force=force)
    from gradcli.cli.arguments.options import inputs_from
    from gradcli.cli.arguments.request import names_from
    from gradcli.cli.output.streams import report_stream
    from gradcli.cli.pools import site
    from gradcli.fix.job import FixJob
    from gradcli.runner.planning.gather import gather_all
    from gradcli.runner.planning.plan import plan
    from gradcli.settings import Settings

    given = inputs_from(inputs or (), arguments or ())
    stream = report_stream()
    options = {"diff": diff, "write": write, "interactive": interactive, "force": force}
    codes: list[int] = []
    cases: list[CheckCase] | None = None
    # A process that imported a file before a patch was written into it would edit one text and run another.
    while cases is None or cases:
        with site(in_process=in_process) as here:
            if cases is None:
                cases = list(
                    plan(gather_all([target], given, grad, names_from(saved), pool=here.pool), Settings(seed=seed))
                )
            has_written = False
            while cases and not has_written:
                case = cases.pop(0)
                job = FixJob(target=case.spec.target, case=case, seconds=budget)
                code, has_written = _fixed(job, here, stream, options)
                codes.append(code)
        if cases and in_process:
            raise UsageError("a patch was written: run the command again for the other cases")
    return next((code for code in (_NONE_FOUND, 3, 4) if code in codes), 0)


def _fixed(job: "FixJob", here: "Site", stream: "ReportStream", options: dict[str, bool]) -> tuple[int, bool]:
    """The exit code for one case, whose patch is shown, and whether one was written."""
    if (problem := job.case.spec.problem) is not None:
        if problem.exit_code == 0:
            say(problem.message)
            return 0, False
        raise UsageError(problem.message)
    result: FixResult = _done(job, here)
    refused, has_written = _shown(result, stream, **options)
    while refused is not None:
        job = replace(job, refused=job.refused | {refused})
        refused, has_written = _shown(_done(job, here), stream, **options)
    return result.exit_code, has_written


def _done(job: "FixJob", here: "Site") -> "FixResult":
    """What the search came to. Raises RelayedError with the place of the case."""
    from gradcli.runner.execute import placed

    try:
        result: FixResult = here.do(job)
    except RelayedError as error:
        raise RelayedError(placed(job.case, str(error)), error.exit_code) from None
    return result


def _shown(
    result: "FixResult", stream: "ReportStream", *, diff: bool, write: bool, interactive: bool, force: bool
) -> tuple[str | None, bool]:
    """Show a patch, and write it if that was asked for.

    Returned are the text that was refused where another one is wanted, and whether the patch was written.
    """
    from gradcli.fix.writing import diff_bytes
    from gradcli.reporters.patch_text import patch_text

    applied = write and result.patch is not None
    if applied:
        _apply(result, force=force)
    if diff and result.patch is not None and not stream.isatty():
        stream.write_bytes(diff_bytes(result.patch))
    else:
        stream.write(patch_text(result, only_diff=diff, written=applied))
    stream.flush()
    if not interactive or result.patch is None:
        return None, applied
    answer = asked()
    if answer == "y":
        _apply(result, force=force)
    return result.patch.after if answer == "next" else None, answer == "y"


def asked() -> str:
    """What to do with the patch that was shown: "y" to write it, "n" to leave it, "next" for another one."""
    answer = ""
    while answer not in ("y", "n", "next"):
        answer = str(typer.prompt("Apply this patch? [y/n/next]", err=True, default="n", show_default=False)).strip()
    return answer


def require_options(*, diff: bool, write: bool, interactive: bool, force: bool) -> None:
    """Raises UsageError where options do not go together."""
    if diff + write + interactive > 1:
        raise UsageError("expected only one of --diff, --write and --interactive")
    if force and not (write or interactive):
        raise UsageError("--force needs --write or --interactive")
    if interactive and not sys.stdin.isatty():
        raise UsageError("--interactive: expected a terminal on standard input; use --write")


def _apply(result: "FixResult", *, force: bool) -> None:
    from gradcli.fix.writing import write

    if result.patch is not None:
        write(result.patch, force=force)
