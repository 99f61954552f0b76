"""Standard output holds the results and nothing else, whatever the target prints."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run

LOUD = [
    b"printed at import", b"through the original stream", b"written to descriptor 1 at import",
    b"from a child process", b"printed in forward", b"printed at exit", b"written to descriptor 1 at exit",
]  # fmt: skip


@pytest.mark.parametrize("workers", [[], ["-j", "2"]], ids=["in process", "in workers"])
def test_json_is_one_document_and_nothing_else_whatever_the_target_prints(gradcli: Run, workers: list[str]) -> None:
    ended = gradcli("check", "noisy:Loud", "--format", "json", *workers, environment={"PYTHONUNBUFFERED": ""})
    document = json.loads(ended.stdout)
    assert document["schema"] == "gradcli.report/1"
    assert document["cases"][0]["verdict"] == "passed"
    assert ended.stdout.startswith(b"{")
    assert ended.stdout.endswith(b"}\n")
    assert ended.stdout.isascii()
    for text in LOUD:
        assert text in ended.stderr, text


@pytest.mark.parametrize("form", ["plain", "table", "ndjson"])
def test_no_print_of_the_target_reaches_the_other_formats_either(gradcli: Run, form: str) -> None:
    ended = gradcli("check", "noisy:Loud", "--format", form, capture_output=True)
    assert not any(text in ended.stdout for text in [*LOUD, b"printed", b"written"])
    assert b"noisy:Loud" in ended.stdout


def test_ndjson_is_one_case_a_line_and_then_the_summary(gradcli: Run) -> None:
    lines = gradcli("check", "functions:Square", "functions:Forgets", "--format", "ndjson").stdout.splitlines()
    cases = [json.loads(line) for line in lines[:-1]]
    assert [case["verdict"] for case in cases] == ["passed", "failed"]
    assert json.loads(lines[-1])["summary"]["failed"] == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ["plain", "table", "json", "ndjson"])
def test_a_reader_that_leaves_early_is_met_with_silence(folder: Path, form: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run(
        [sys.executable, "-m", "gradcli", "check", "functions:Forgets", "--format", form],
        cwd=folder, env=environment, stdout=writing, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(writing)
    assert ended.returncode == 1
    # A slow machine may say which case has run for 5 s.
    assert [line for line in ended.stderr.splitlines() if b"functions:Forgets has run for" not in line] == []


def test_without_a_standard_output_the_exit_code_still_tells(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = f"{sys.executable} -m gradcli check functions:Forgets >&-"
    ended = subprocess.run(["/bin/sh", "-c", command], cwd=folder, env=environment, capture_output=True, check=False)
    assert ended.returncode == 1, ended.stderr.decode()
    assert b"Traceback" not in ended.stderr


def test_off_a_terminal_nothing_is_coloured_or_cut_however_narrow(gradcli: Run) -> None:
    for form in ("plain", "table"):
        ended = gradcli(
            "check", "functions:Forgets", "--format", form,
            environment={"COLUMNS": "20", "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"},
        )  # fmt: skip
        text = ended.stdout.decode()
        assert "\x1b" not in text
        assert "functions:Forgets" in text
        assert "[wrong-factor]" in text.splitlines()[1]


def test_where_the_encoding_has_no_glyphs_the_text_is_ascii(gradcli: Run) -> None:
    for form in ("plain", "table"):
        ended = gradcli("check", "functions:Forgets", "--format", form, environment={"PYTHONIOENCODING": "ascii"})
        assert ended.returncode == 1
        assert ended.stdout.isascii()
        assert b"+-" in ended.stdout


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_the_table_in_colour_unless_it_is_not_wanted(
    folder: Path, environment: dict[str, str], coloured: bool
) -> None:
    text = _on_a_terminal(folder, ["check", "functions:Square"], {"TERM": "xterm", "COLUMNS": "100", **environment})
    assert "✓ " in text
    assert "second order" in text
    assert ("\x1b[" in text) is coloured


def _wandering(folder: Path, base: str) -> None:
    """A module whose Function changes the working directory in forward."""
    (folder / "elsewhere").mkdir()
    (folder / "wanders.py").write_text(
        f"import os\nfrom functions import {base}\n"
        f"class Wandering({base}):\n"
        "    @staticmethod\n    def forward(ctx, x):\n"
        f"        os.chdir({str(folder / 'elsewhere')!r})\n"
        f"        return {base}.forward(ctx, x)\n"
    )


def test_a_report_is_written_where_it_was_asked_for_though_the_target_changes_the_folder(
    gradcli: Run, folder: Path
) -> None:
    _wandering(folder, "Square")
    assert gradcli("check", "wanders:Wandering", "--report", "r.json").returncode == 0
    assert (folder / "r.json").is_file()


@pytest.mark.parametrize("workers", [[], ["-j", "2"]], ids=["in process", "in workers"])
def test_a_failure_is_saved_where_the_run_started_though_the_target_changes_the_folder(
    gradcli: Run, folder: Path, workers: list[str]
) -> None:
    _wandering(folder, "Forgets")
    ended = gradcli("check", "wanders:Wandering", "functions:Forgets", "--format", "json", *workers)
    replays = [case["replay"] for case in json.loads(ended.stdout)["cases"]]
    assert [Path(replay).parent for replay in replays] == [Path(".gradcli/failures")] * 2
    assert all((folder / replay).is_file() for replay in replays)
    assert not any((folder / "elsewhere").iterdir())
    places = [case["findings"][0]["location"]["file"] for case in json.loads(ended.stdout)["cases"]]
    assert places == ["functions.py"] * 2
    assert gradcli("replay", replays[0]).returncode == 1


@pytest.mark.parametrize("extra", [[], ["--in-process"]], ids=["in a worker", "in process"])
def test_a_place_is_seen_from_where_the_run_started_though_forward_goes_to_the_root(
    gradcli: Run, folder: Path, extra: list[str]
) -> None:
    (folder / "rooted.py").write_text(
        "import os\nfrom functions import Forgets\nclass Rooted(Forgets):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        os.chdir('/')\n        return Forgets.forward(ctx, x)\n"
    )
    ended = gradcli("check", "rooted.py", "-i", "x=3", *extra)
    assert b" at=functions.py:" in ended.stdout, ended.stdout
    assert folder.name.encode() not in ended.stdout


NOISY = """import atexit, sys
import functions
def tell(when):
    print(f"::error::injected {when}", file=sys.stderr, flush=True)
tell("while imported")
atexit.register(tell, "at the exit")
class Noisy(functions.Forgets):
    @staticmethod
    def forward(ctx, x):
        tell("by forward")
        return functions.Forgets.forward(ctx, x)
"""


def test_nothing_that_a_target_prints_is_a_command_for_github(folder: Path) -> None:
    (folder / "noisy.py").write_text(NOISY)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    log = folder / "log"

    def commands(*arguments: str) -> list[str]:
        with log.open("w") as both:
            subprocess.run(
                [sys.executable, "-m", "gradcli", *arguments, "--format", "github"],
                cwd=folder, env=environment, stdout=both, stderr=both, timeout=120, check=False,
            )  # fmt: skip
        whole = log.read_text()
        told = re.sub(r"(?s)::stop-commands::(\w+)\n.*?\n::\1::\n", "", whole)
        assert "injected" not in told
        assert "stop-commands" not in told
        return [line for line in told.splitlines() if line.startswith("::")]

    (one,) = commands("check", "noisy.py", "-i", "x=3")
    assert one.startswith("::error file=functions.py,line=")
    for when in ("while imported", "by forward", "at the exit"):
        assert f"::error::injected {when}" in log.read_text()
    (saved,) = (folder / ".gradcli/failures").glob("*.json")
    assert commands("replay", str(saved))[0].startswith("::error file=functions.py,line=")
    (missing,) = commands("check", "nosuch.py")
    assert missing.startswith("::error title=error%3A nosuch.py::no file nosuch.py")


def _on_a_terminal(folder: Path, arguments: list[str], extra: dict[str, str]) -> str:
    mine, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[2]), **extra}
    with subprocess.Popen(
        [sys.executable, "-m", "gradcli", *arguments],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL,
    ):  # fmt: skip
        os.close(theirs)
        parts = []
        while part := _read(mine):
            parts.append(part)
    os.close(mine)
    return b"".join(parts).decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side of the terminal has gone
        return b""
