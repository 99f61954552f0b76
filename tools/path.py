"""Measure the path that a person follows in a debugger: `python -m tools.path`, or `--list` for every step.

Three figures, on the README's Function with its mistake corrected, on the embedded engine: the frames from the command
to `verify`; and the calls of gradcli's own functions for one cotangent, through the map that the numerics see and
through the pass that the checks make. The engine and the user's code are left out of these.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = str(ROOT / "gradcli") + os.sep
Step = tuple[str, str]
"""A function, as file and name."""


def target() -> str:
    """The README's file, corrected, on the engine."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = text.partition("<!-- file: mymodule.py -->\n```python\n")[2].partition("```")[0]
    return code.replace("from torch.autograd", "from gradcli.engine.autograd").replace(
        "grad_input = grad_output.t()", "grad_weight = grad_output.t()"
    )


@contextmanager
def at_target() -> Iterator[None]:
    """The working directory, with the file in it, for as long as it takes."""
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        (Path(folder) / "mymodule.py").write_text(target(), encoding="utf-8")
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _place(frame: FrameType) -> Step | None:
    """The function of a frame, None where it is not gradcli's own, or a comprehension in one that is.

    Initializers of dataclasses are left out: where the standard library generates them, a debugger does not stop there.
    """
    file = frame.f_code.co_filename
    if not file.startswith(PACKAGE) or frame.f_code.co_name[0] == "<":
        return None
    if file.startswith((PACKAGE + "engine" + os.sep, PACKAGE + "frozen.py")):
        return None
    return file.removeprefix(PACKAGE), frame.f_code.co_name


def _profiled(run: Callable[[], object], called: Callable[[FrameType], None]) -> None:
    """Run, with `called` for every call of a Python function."""
    sys.setprofile(lambda frame, event, _argument: called(frame) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)


def to_verify() -> list[Step]:
    """gradcli's frames on the stack when `verify` is called first, from the command on."""
    from gradcli.__main__ import main as command

    found: list[Step] = []

    def called(frame: FrameType) -> None:
        if found or _place(frame) != ("numerics/verify.py", "verify"):
            return
        here: FrameType | None = frame
        while here is not None:
            place = _place(here)
            found.extend([] if place is None else [place])
            here = here.f_back

    sys.argv = ["gradcli", "check", "mymodule:LinearFunction", "--in-process"]
    _profiled(command, called)
    found.reverse()
    return found


def of_a_cotangent(*, through_map: bool) -> list[Step]:
    """Every call of gradcli's own for one cotangent."""
    import numpy as np

    from gradcli.backends.registry import backend_named
    from gradcli.cases import Argument
    from gradcli.spec.resolve import resolve

    rng = np.random.default_rng(0)
    arguments = [
        Argument(name=name, value=rng.standard_normal(shape), is_tensor=True, requires_grad=True)
        for name, shape in (("input", (3, 4)), ("weight", (5, 4)), ("bias", (5,)))
    ]
    subject = backend_named("engine").bind(resolve("mymodule:LinearFunction").object, arguments)
    map_, cotangent = subject.derivative_map(1), rng.standard_normal((3, 5))
    found: list[Step] = []

    def called(frame: FrameType) -> None:
        place = _place(frame)
        found.extend([] if place is None else [place])

    point = subject.point
    with subject.session(lazy=True):
        map_.vjp(point, cotangent.ravel())
        if through_map:
            _profiled(lambda: map_.vjp(point, cotangent.ravel()), called)
        else:
            _profiled(lambda: subject.backward([cotangent]), called)
    return found


def main(arguments: list[str]) -> int:
    """Print the figures."""
    sys.path.insert(0, "")
    with os.fdopen(os.dup(1), "w") as out, at_target():  # a check sends everything that is printed to standard error
        found = {
            "frames from the command to verify": to_verify(),
            "calls for a cotangent, through the map": of_a_cotangent(through_map=True),
            "calls for a cotangent, through a pass": of_a_cotangent(through_map=False),
        }
        for name, steps in found.items():
            switches = sum(first[0] != second[0] for first, second in pairwise(steps))
            print(
                f"{name}: {len(steps)} in {len({file for file, _ in steps})} files, {switches} switches of file",
                file=out,
            )
            if "--list" in arguments:
                print(*(f"    {file}: {function}" for file, function in steps), sep="\n", file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
