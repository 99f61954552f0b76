"""`gradcli explain`: every name that a report can hold, in full."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated

import typer

from gradcli.cli.arguments.completion import complete_names
from gradcli.cli.output.streams import report_stream
from gradcli.errors import UsageError
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.verdict import Reason, Verdict

_BY_DESIGN = (
    (
        "once-differentiable",
        "backward is marked once_differentiable: a second derivative raises an error, so higher orders are not "
        "checked. It fails no case; a note tells it.",
        "Decorate backward with once_differentiable of torch.autograd.function or gradcli.engine.autograd.function.",
    ),
    (
        "surrogate",
        "backward returns another gradient than forward's derivative on purpose, as a straight-through estimator does. "
        "Where it is declared, wrong values are noted; broken rules of backward fail.",
        "Write `expect: surrogate` in the spec of the target: it is never guessed.",
    ),
)
"""What a report shows that is meant so: name, sentence, how to declare it."""
_HEADINGS = {"reason for INCONCLUSIVE": "reasons for INCONCLUSIVE", "shown by design": "shown by design"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name: what kind of name it is, its sentence, and what else there is to say under short headings."""

    name: str
    kind: str
    sentence: str
    more: tuple[tuple[str, str], ...] = ()
    code: str = ""


def explain_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A name or code, as in missing-gradient or GC105; without one, all are listed.",
            autocompletion=complete_names,
            show_default=False,
        ),
    ] = None,
) -> int:
    """Explain a name in a report: what it means, how it is detected, what to do.

    Names are findings (kinds of mistakes), verdicts (outcomes of cases), reasons (why a case is INCONCLUSIVE), symptoms
    (what trace finds) and checks (properties that every backward must have).
    """
    stream = report_stream()
    entries = tuple(_entries())
    stream.write(_table(entries) if name is None else _full(_found(name, entries)))
    stream.flush()
    return 0


def _entries() -> Iterator[Entry]:
    from gradcli.checks.registry import CHECKS
    from gradcli.diagnosis.symptoms.names import Symptom

    for kind in FindingKind:
        more = (("how it is detected", kind.detection), ("how to fix it", kind.remedy))
        yield Entry(name=kind.value, kind="finding", sentence=kind.sentence, more=more, code=kind.code)
    for verdict in Verdict:
        yield Entry(name=verdict.value, kind="verdict", sentence=verdict.sentence)
    for reason in Reason:
        advice = (("what to do", reason.remedy),)
        yield Entry(name=reason.value, kind="reason for INCONCLUSIVE", sentence=reason.sentence, more=advice)
    for known, sentence, note in _BY_DESIGN:
        yield Entry(name=known, kind="shown by design", sentence=sentence, more=(("how to declare it", note),))
    for symptom in Symptom:
        more = (("how it is detected", symptom.detection), ("what to do", symptom.remedy))
        yield Entry(name=symptom.value, kind="symptom", sentence=symptom.sentence, more=more)
    for check in CHECKS:
        yield Entry(name=check.name, kind="check", sentence=f"{check.sentence}.")


def _found(name: str, entries: Sequence[Entry]) -> Entry:
    if not name.strip():
        raise UsageError("expected a name, as in gradcli explain missing-gradient; gradcli explain lists all names")
    wanted = name.strip().lower().replace("_", "-")
    for entry in entries:
        if wanted in (entry.name, entry.code.lower()):
            return entry
    names = [known for entry in entries for known in (entry.name, entry.code.lower()) if known]
    close = get_close_matches(wanted, names, 3)
    codes = {entry.code.lower(): entry.code for entry in entries if entry.code}
    close = [codes.get(each, each) for each in close]
    hint = f"did you mean {' or '.join(close)}?" if close else "gradcli explain lists all names."
    raise UsageError(f"there is no finding, verdict, reason, symptom or check called {name!r}; {hint}")


def _full(entry: Entry) -> str:
    title = f"{entry.name}   {entry.kind}{f' {entry.code}' if entry.code else ''}"
    parts = [title, "", f"  {entry.sentence}"]
    for heading, text in entry.more:
        parts += ["", f"  {heading}", f"    {text}"]
    return "\n".join(parts) + "\n"


def _table(entries: Sequence[Entry]) -> str:
    width = max(len(entry.name) for entry in entries)
    lines: list[str] = []
    for kind in dict.fromkeys(entry.kind for entry in entries):
        lines += ["", _HEADINGS.get(kind, f"{kind}s")]
        listed = [entry for entry in entries if entry.kind == kind]
        lines += [f"  {entry.code:5}  {entry.name.ljust(width)}  {entry.sentence}" for entry in listed]
    return "\n".join(lines[1:]) + "\n"
