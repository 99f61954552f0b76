"""Completion: what a shell is offered for a line begun, through the protocol of its script, and what that imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.checks.names import CHECK_NAMES
from gradcli.checks.registry import CHECKS
from gradcli.cli.arguments.completion import complete_names
from gradcli.cli.arguments.target_names import complete_targets
from gradcli.cli.commands.explain import _entries

MODULE = """
raise SystemExit("this file must not be run")
class Linear:
    class Inner: pass
    def forward(): pass
def loss(): pass
def _private(): pass
try:
    class Guarded: pass
except ImportError:
    async def later(): pass
"""
NAMES = ("Linear", "loss", "Guarded", "later")
"""What MODULE offers, in its order."""
SPEC = "target: mymodule:Linear\ndefaults: {tags: slow}\ncases: [{name: a, tags: [gpu, fast]}, {name: b}]\n"
BREAKS = ":="
HEAVY = {"numpy", "torch", "jax", "rich", "distributed", "mymodule", "package"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {
        "mymodule.py": MODULE,
        "broken.py": "class Half(\n",
        "package/__init__.py": "raise SystemExit('this file must not be run')\n",
        "package/part.py": MODULE,
        "specs/a.yaml": SPEC,
        "specs/wrong.yaml": "cases: [",
        "notes.txt": "",
        "$(touch harmful).py": "",
        "two words.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def words_of(line: str, breaks: str) -> list[str]:
    """The words of a line as bash divides it."""
    for mark in breaks:
        line = line.replace(mark, f" {mark} ")
    return [*line.split(), *([""] if line.endswith(" ") and line.rstrip()[-1:] not in breaks else [])]


def asked(project: Path, environment: dict[str, str]) -> tuple[str, set[str]]:
    """What the command prints for a shell, and the modules of `HEAVY` that it imported for that."""
    program = (
        "import sys\nfrom gradcli.__main__ import main\nsys.argv[:] = ['gradcli']\ntry:\n    main()\nfinally:\n"
        f"    print({sorted(HEAVY)!r} and sorted(n for n in {sorted(HEAVY)!r} if sys.modules.get(n)), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=project, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment}, timeout=60,
    )  # fmt: skip
    return ended.stdout, set(eval(ended.stderr))


def in_bash(project: Path, line: str, breaks: str = BREAKS) -> list[str]:
    words = words_of(line, breaks)
    said, imported = asked(
        project,
        {"_GRADCLI_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)},
    )
    assert imported == set()
    return said.split()


LINES = [
    ("gradcli che", ["check"]),
    ("gradcli check ", ["broken.py", "mymodule.py", "package/", "specs/", "broken", "mymodule", "package"]),
    ("gradcli check mym", ["mymodule.py", "mymodule"]),
    ("gradcli check mymodule.p", ["mymodule.py", *(f"mymodule.py:{name}" for name in NAMES)]),
    ("gradcli check sp", ["specs/", "specs/a.yaml", "specs/wrong.yaml"]),
    ("gradcli check nothing:Lin", []),
    ("gradcli check broken.py:Ha", []),
    ("gradcli check no", []),
    ("gradcli check package.pa", ["package.part", *(f"package.part:{name}" for name in NAMES)]),
    ("gradcli check --only grad", ["gradient"]),
    ("gradcli check --skip other", ["other-inputs"]),
    ("gradcli check --format ju", ["junit"]),
    ("gradcli check --format=ju", ["junit"]),
    ("gradcli trace mymodule:Linear --format m", ["mermaid"]),
    ("gradcli check --tag ", ["fast", "gpu", "slow"]),
    ("gradcli check specs/wrong.yaml --tag ", []),
    ("gradcli check specs --tag g", ["gpu"]),
    ("gradcli explain missing-r", ["missing-reduction"]),
    ("gradcli explain GC10", [f"GC10{n}" for n in range(1, 10)]),
    ("gradcli explain kin", ["kink"]),
    ("gradcli replay sp", []),
]  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("line", "offered"), LINES, ids=[line for line, _ in LINES])
def test_a_line_begun_is_completed_without_importing_anything_heavy(
    project: Path, line: str, offered: list[str]
) -> None:
    found = in_bash(project, line)
    if "GC10" in line:
        assert found
        assert all(name.startswith("GC10") for name in found)
    else:
        assert found == offered


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("line", "prefix"), [
    ("gradcli check mymodule.py:", "mymodule.py:"),
    ("gradcli check mymodule:L", "mymodule:"),
    ("gradcli check package/part.py:G", "package/part.py:"),
    ("gradcli check -i x=3 specs package.part:lo", "package.part:"),
    ("gradcli init gradcli.examples.linear:Lin", "gradcli.examples.linear:"),
    ("gradcli check mymodule.py:Linear.", "mymodule.py:"),
])  # fmt: skip
def test_bash_is_offered_what_stands_after_the_colon_unless_a_colon_ends_no_word_there(
    project: Path, line: str, prefix: str
) -> None:
    divided, whole = in_bash(project, line), in_bash(project, line, breaks="")
    assert divided
    assert whole == [f"{prefix}{name}" for name in divided]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize(("line", "offered"), [
    ("gradcli che", "check"), ("gradcli check mymodule.py:Lin", "Linear"), ("gradcli check --on", "--only"),
    ("gradcli check --tag g", "gpu"), ("gradcli explain swapped", "swapped-gradients"),
])  # fmt: skip
def test_zsh_and_fish_are_answered_without_importing_anything_heavy(
    project: Path, shell: str, line: str, offered: str
) -> None:
    environment = {
        "_GRADCLI_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    said, imported = asked(project, environment)
    assert offered in said
    assert imported == set()


def test_the_script_for_bash_completes_in_bash(project: Path) -> None:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", "gradcli", "--show-completion"]
    scripts = {
        shell: subprocess.run(
            [*command, shell], capture_output=True, text=True, check=True, env=environment, timeout=60
        ).stdout
        for shell in ("bash", "zsh", "fish")
    }
    assert all("_GRADCLI_COMPLETE=complete_" + shell in script for shell, script in scripts.items())
    program = (
        f"{scripts['bash']}\ngradcli() {{ :; }}\n"
        "COMP_WORDS=(gradcli check mymodule.py : Lin); COMP_CWORD=4\n"
        '_gradcli_completion "$1" && printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    starter = project / "starter"
    starter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gradcli "$@"\n')
    starter.chmod(0o755)
    ended = subprocess.run(
        ["bash", "-c", program, "bash", str(starter)], cwd=project, capture_output=True, text=True, check=True,
        env=environment, timeout=60,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("Linear\n", "")


def test_names_that_a_shell_would_evaluate_are_not_offered(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert complete_targets("$") == []
    assert complete_targets("two") == []


def test_the_names_of_the_checks_are_those_of_the_battery_and_explain_knows_what_is_offered() -> None:
    assert tuple(check.name for check in CHECKS) == CHECK_NAMES
    known = {entry.name for entry in _entries()}
    assert set(complete_names("")) == known
    codes = {entry.code for entry in _entries() if entry.code}
    assert {name for name in complete_names("G") if name.isupper()} == codes
