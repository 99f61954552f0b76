"""The way in: `gradcli` and `python -m gradcli`."""

import os
import sys

from gradcli._version import __version__

TYPE_CHECKING = False  # as type checkers know it; to import it takes as long as the rest of `--version`

if TYPE_CHECKING:
    from gradcli.cli.request import CheckRequest

_WITH_WORKERS = ("check", "list", "trace", "init", "replay")
"""Commands that run the user's code, in worker processes unless `--in-process` is given."""


def main() -> int:
    """Run the command line and return its exit code; the version alone is shown without importing anything."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.stdout.write(f"gradcli {__version__}\n")
        return 0
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("gradcli: interrupted\n")
        return 130


def _run(arguments: list[str]) -> int:
    """Run a command; the nursery of its workers, where it needs one, is begun first, as a copy of this process."""
    import gc

    gc.disable()  # collections would take a tenth of the start, and find nothing: the site enables them again
    if arguments[:1] and arguments[0] in _WITH_WORKERS and "--in-process" not in arguments:
        from gradcli.runner import execute, gather  # noqa: F401 - what both processes use is imported once
        from gradcli.runner.workers import birth, nursery

        descriptor = birth.begin()
        if descriptor is not None:
            nursery.main(descriptor)
        try:
            return _command(arguments)
        finally:
            birth.leave()
            gc.freeze()  # what is left is not looked through once more when the interpreter ends
    return _command(arguments)


def _command(arguments: list[str]) -> int:
    """Run a command; Typer, which takes longer to import than a small Function to check, only where it is needed."""
    from gradcli.cli.ordinary import ordinary_request

    request = ordinary_request(arguments)
    if request is None:
        from gradcli.cli.app import run

        return run(arguments)
    from gradcli.cli.exits import exit_code_of

    return exit_code_of(lambda: _check(request))


def _check(request: "CheckRequest") -> int:
    from gradcli.cli.pipeline import check

    return check(request)


def _own_modules_first() -> None:
    """Forget the working directory, which `python -m` puts before the standard library: a json.py there would run.

    Targets are looked up there all the same, behind the library.
    """
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not getattr(sys.flags, "safe_path", False) and sys.path[0] != beside:
        del sys.path[0]


if __name__ == "__main__":
    _own_modules_first()
    sys.exit(main())
