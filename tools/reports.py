"""Write docs/findings/reports.md: public reports of wrong gradients, each as a Function that runs, with its patch.

`python -m tools.reports [NAME]...` runs `gradcli fix` on the named cases of benchmarks/fix/reported, or on all;
other screens stay as they are. docs/findings/bugs.yaml says which case stands for which reports.
"""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import yaml

from benchmarks.fix.other_hand.record import Case, flags_of
from benchmarks.fix.reported import cases as reported_cases
from benchmarks.fix_corpus import command
from tools.gallery import DOCS, anchor, fenced, linked
from tools.screens import empty_folder

PAGE = DOCS / "findings" / "reports.md"


def label(case: Case) -> str:
    """A case as bugs.yaml calls it."""
    return case.name.removeprefix(f"{case.family}/")


def command_for(case: Case) -> list[str]:
    """The arguments of `gradcli` that look for a patch."""
    given = [part for flag in flags_of(case.inputs) for part in flag] if case.flags else []
    return ["fix", f"{case.target.lower()}.py:{case.target}", *given]


def file_in(folder: Path, case: Case) -> None:
    """Write a case into a folder as a reader would."""
    (folder / f"{case.target.lower()}.py").write_text(case.wrong, encoding="utf-8")


def outcome(screen: str) -> tuple[list[str], str]:
    """The findings' names on a screen, and what became of the search for a patch."""
    names = list(dict.fromkeys(re.findall(r"   \[([a-z-]+)\]$", screen, re.M)))
    if "  no patch found" in screen:
        return names, "none"
    if "runs forward again" in screen:
        return names, "runs forward again"
    return names, "marks backward" if "is marked once_differentiable" in screen else "a corrected line"


def patch_in(screen: str) -> list[str]:
    """The lines that a patch on a screen takes away and adds."""
    return [line for line in screen.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def shown(page: str, name: str) -> str:
    """The screen that the page has for a case, without the command."""
    section = page.partition(f"\n## {name}\n")[2]
    return section.partition("```console\n")[2].partition("```")[0].partition("\n")[2]


def reports() -> dict[str, list[list[str]]]:
    """The reports of bugs.yaml by the case that stands for them: reference and what was wrong."""
    text = (DOCS / "findings" / "bugs.yaml").read_text(encoding="utf-8")
    found: dict[str, list[list[str]]] = {}
    listed: dict[str, list[Any]] = yaml.safe_load(text)
    for reference, what, *case in (entry for entries in listed.values() for entry in entries):
        for name in case:
            found.setdefault(name, []).append([reference, what])
    return found


def page(screens: dict[str, str]) -> str:
    """The page, from what is printed for each case."""
    cases = {label(case): case for case in reported_cases()}
    rows = ["| Function | finding | patch |", "|---|---|---|"]
    for name in cases:
        names, patch = outcome(screens[name])
        findings = ", ".join(f"[{each}]({each}.md)" for each in names)
        rows.append(f"| [{name}]({f'#{anchor(name)}'}) | {findings} | {patch} |")
    parts = [
        "# Public reports as Functions",
        "Mistakes that were reported in public, each written again as a small Function that runs on a CPU. Save the "
        "code under the name in the command and run it. Reports about one device, about offsets beyond 32 bits, about "
        "races that need many threads, about gradients that are computed without need, about errors that a second "
        "derivative raises, and about other checkers have no Function here.",
        "\n".join(rows),
    ]
    known = reports()
    for name, case in cases.items():
        parts += [
            f"## {name}",
            "\n".join(f"* {linked(reference)}: {what}." for reference, what in known[name]),
            fenced(case.wrong, "python"),
            fenced(f"$ {shlex.join(['gradcli', *command_for(case)])}\n{screens[name].rstrip()}", "console"),
        ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the page."""
    chosen, known = sys.argv[1:], PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    screens = {}
    for case in reported_cases():
        if chosen and label(case) not in chosen:
            screens[label(case)] = shown(known, label(case))
            continue
        with empty_folder() as folder:
            file_in(folder, case)
            screens[label(case)], _, _ = command([*command_for(case), "--in-process"])
    PAGE.write_text(page(screens), encoding="utf-8")


if __name__ == "__main__":
    main()
