"""`python -m gradcli` in a process of its own that does not have to start: a copy of one that has imported it.

Each command is a child of a server that imported all of gradcli once. It has the arguments, the working directory and
the streams that are asked for, and ends with the code of a command; the workers are its own. What a new interpreter
does on its way there (bytecode, the encoding of the streams, what is imported when) and at its end is tested with new
interpreters, elsewhere.

The server may import a framework as well (`imports`): importing PyTorch takes four times as long as a small check.
With `module="pytest"` the copies run pytest in place of the command.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, final

ROOT = Path(__file__).parents[1]


@final
class Server:
    """The process that commands are copied from; it ends when its standard input does."""

    def __init__(self, environment: dict[str, str], imports: str | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm", *([] if imports is None else [imports])],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(
        self, arguments: tuple[str, ...], folder: Path, timeout: float, module: str
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run a command to its end. Raises TimeoutExpired."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as place:
            streams = [str(Path(place) / name) for name in ("out", "error")]
            request = {"module": module, "arguments": arguments, "folder": str(folder), "streams": streams}
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], timeout)[0]:
                self._process.kill()
                server.cache_clear()
                raise subprocess.TimeoutExpired(arguments, timeout)
            code = int(self._process.stdout.readline())
            out, error = (Path(stream).read_bytes() for stream in streams)
        return subprocess.CompletedProcess(arguments, code, out, error)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def run(
    arguments: tuple[str, ...], folder: Path, timeout: float = 120.0, imports: str | None = None,
    module: str = "gradcli", **environment: str,
) -> "subprocess.CompletedProcess[bytes]":  # fmt: skip
    """Run a command to its end, in an environment with these variables beside those of the tests.

    Args:
        arguments: the command's.
        folder: its working directory.
        timeout: in seconds.
        imports: a module that is imported already.
        module: what `python -m` would run, gradcli or pytest.
        environment: variables.

    Raises:
        TimeoutExpired: it takes longer than `timeout` seconds.
    """
    known = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **environment}
    for name in ("PYTHONWARNINGS", "PYTEST_CURRENT_TEST"):
        known.pop(name, None)
    return server(os.getpid(), frozenset(known.items()), imports).run(arguments, folder, timeout, module)


def run_for_text(
    arguments: tuple[str, ...], folder: Path, imports: str | None = None, module: str = "gradcli", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """As `run`, with both streams as text."""
    ended = run(arguments, folder, imports=imports, module=module, **environment)
    return subprocess.CompletedProcess(
        ended.args, ended.returncode, ended.stdout.decode("utf-8"), ended.stderr.decode("utf-8")
    )


@cache
def server(process: int, environment: frozenset[tuple[str, str]], imports: str | None) -> Server:
    """The server of a process of pytest, of an environment and of an imported module."""
    found = Server(dict(environment), imports)
    atexit.register(found.close)
    return found


def _serve() -> None:
    """In the server until nothing more can be asked for; each copy of it ends with the exit code of its command."""
    del sys.path[0]  # where this file is looked for: no command has that
    import gradcli

    for module in pkgutil.walk_packages(gradcli.__path__, "gradcli."):
        if module.name != "gradcli.pytest_plugin":  # no command has pytest
            importlib.import_module(module.name)
    with contextlib.suppress(ImportError):  # what Typer imports to read arguments, in its newer versions
        importlib.import_module("typer._adapters")
    for imports in sys.argv[1:]:
        importlib.import_module(imports)
    gc.collect()
    gc.freeze()
    for line in sys.stdin.buffer:
        pid = os.fork()
        if pid == 0:
            _command(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _command(request: dict[str, Any]) -> NoReturn:
    os.chdir(request["folder"])
    paths = [(os.devnull, os.O_RDONLY), *((path, os.O_WRONLY | os.O_CREAT) for path in request["streams"])]
    for number, (path, mode) in enumerate(paths):
        opened = os.open(path, mode)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = [request["module"], *request["arguments"]]
    if request["module"] == "pytest":
        import pytest

        sys.path.insert(0, request["folder"])  # as `python -m` does
        code = int(pytest.main())
    else:
        from gradcli.__main__ import main

        code = main()
    # Taking the interpreter down costs as much as the check of a small Function, and touches all that was shared.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
