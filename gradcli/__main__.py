"""The way in: `gradcli` and `python -m gradcli`."""

import os
import sys

from gradcli._version import __version__

_WITH_WORKERS = ("check", "list", "trace", "init", "replay", "fix")
"""Commands that run the user's code, in worker processes unless `--in-process` is given."""


def main() -> int:
    """Run the command line and return its exit code; the version alone is shown without importing anything."""
    import gc

    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.stdout.write(f"gradcli {__version__}\n")
        return 0
    gc.disable()  # collections would take a tenth of the start, and find nothing: the site enables them again
    with_workers = bool(arguments) and arguments[0] in _WITH_WORKERS and "--in-process" not in arguments
    try:
        if with_workers:
            _begin_workers()
        return _command(arguments, with_workers)
    except KeyboardInterrupt:
        sys.stderr.write("gradcli: interrupted\n")
        return 130


def _begin_workers() -> None:
    """Begin the fork server of the workers, a copy of this process; in that copy this does not return."""
    from gradcli.runner import execute  # noqa: F401 - what both processes use is imported once
    from gradcli.runner.planning import gather  # noqa: F401
    from gradcli.runner.workers import fork_server, fork_server_start

    descriptor = fork_server_start.begin()
    if descriptor is not None:
        fork_server.main(descriptor)


def _leave_workers() -> None:
    """Let the fork server end, and keep the garbage collector from a last pass when the interpreter ends."""
    import gc

    from gradcli.runner.workers import fork_server_start

    fork_server_start.leave()
    gc.freeze()


def _command(arguments: list[str], with_workers: bool) -> int:
    """Run a command. Typer is imported only where it is needed: that takes longer than checking a small Function."""
    try:
        from gradcli.cli.arguments.ordinary import ordinary_request

        request = ordinary_request(arguments)
        if request is None:
            from gradcli.cli.app import run

            return run(arguments)
        from gradcli.cli.exits import Exit

        with Exit() as end:
            from gradcli.cli.pipeline import check

            end.code = check(request)
        return end.code
    finally:
        if with_workers:
            _leave_workers()


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
