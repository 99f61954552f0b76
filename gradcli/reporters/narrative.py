"""What a case has to say beyond its verdict, line by line, for every report that people read."""

import cmath
import math
from collections.abc import Iterator
from enum import Enum

from gradcli.frozen import dataclass
from gradcli.reporters.escaping import lines_of, printable
from gradcli.reporters.gradient_table import table_lines
from gradcli.reporters.wording import digits_for, fix_command, flags, index, magnitude, number, size_of
from gradcli.results import LEFT_OUT, CheckResult, Entry, Evidence, Finding, SourceExcerpt
from gradcli.verdict import Verdict

_ENTRIES = 5
_FINDINGS = 5
_LONGEST = 4000
_LONGEST_LINE = 8000
_MARGIN = "  "


class Role(Enum):
    """What a line is, for those who can show it in colour."""

    SENTENCE = "sentence"
    PLACE = "place"
    CODE = "code"
    SUSPECT = "suspect"
    ENTRY = "entry"
    TRACE = "trace"
    NOTE = "note"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class Line:
    """One line; `text` carries its own indentation, `fold` says that it may be wrapped, `head` that it begins a table.

    Control characters in it are shown as such, line feeds too, and it is cut where it is too long.
    """

    text: str
    role: Role
    fold: bool = False
    head: bool = False

    def __post_init__(self) -> None:
        shown = printable(self.text).replace("\n", "\\n")
        object.__setattr__(self, "text", shown if len(shown) <= _LONGEST_LINE else f"{shown[:_LONGEST_LINE]}...")


def story(result: CheckResult, *, verbose: bool = False) -> Iterator[Line]:
    """Everything to be said below the headline of `result`; nothing for a plain pass that is not `verbose`."""
    if result.verdict is Verdict.FAILED:
        yield from _failure(result)
    elif result.verdict is Verdict.INCONCLUSIVE:
        yield from _doubt(result)
    elif result.verdict is Verdict.ERROR:
        yield from _error(result)
    else:
        yield from (_note(note) for note in result.notes)
    yield from _left_out(result)
    if verbose:
        yield from shown_figures(result)
        yield from details(result)


def _left_out(result: CheckResult) -> Iterator[Line]:
    """The checks that were skipped, with the reason; of those left out on request what is left, if that is shorter."""
    why: dict[str, dict[str, None]] = {}
    for e in result.evidence:
        if e.verdict is Verdict.SKIPPED and e.order == 1 and e.note:
            why.setdefault(e.note, {})[e.check] = None
    for note, checks in why.items():
        run = dict.fromkeys(
            e.check for e in result.evidence if e.verdict is not Verdict.SKIPPED and e.check not in checks
        )
        shown = f"all checks but {', '.join(run)}" if note == LEFT_OUT and len(run) < len(checks) else ", ".join(checks)
        yield _note(f"skipped: {shown} ({note})")


def details(result: CheckResult) -> Iterator[Line]:
    """Every check with its errors and bounds, the inputs and the number of runs."""
    rows: list[tuple[str, ...]] = [
        ("check", "order", "input", "output", "verdict", "by", "rel. error", "bound", "resolution")
    ]
    rows += [_row(evidence) for evidence in result.evidence]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for line, row in enumerate(rows):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield Line(_MARGIN + text, Role.ENTRY, head=not line)
        note = result.evidence[line - 1].note if line else None
        if note:
            yield Line(f"{_MARGIN * 2}{note}", Role.NOTE, fold=True)
    yield from _costs(result)
    yield Line(
        f"{_MARGIN}{result.forwards} forward and {result.backwards} backward runs, {result.samples} samples, "
        f"seed {result.seed}",
        Role.NOTE,
    )
    if result.inputs:
        yield Line(f"{_MARGIN}{inputs_line(result)}", Role.NOTE, fold=True)


def _costs(result: CheckResult) -> Iterator[Line]:
    """Runs and time of each check, over all samples."""
    if not result.stages:
        return
    rows = [("cost", "forward", "backward", "ms")]
    rows += [(name, str(s.forward), str(s.backward), f"{1e3 * s.seconds:.1f}") for name, s in result.stages]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for name, *numbers in rows:
        cells = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
        yield Line(_MARGIN + "  ".join((name.ljust(widths[0]), *cells)), Role.ENTRY, head=name == "cost")


def inputs_line(result: CheckResult) -> str:
    """The inputs as flags, after where they came from; given values by their shapes."""
    source = result.inputs_from or "inputs"
    if source in ("given", "sample_inputs"):
        listed = (f"{s.name} {size_of(s)}" if s.kind == "tensor" else f"{s.name}={s.value!r}" for s in result.inputs)
        return f"inputs {'given' if source == 'given' else 'from sample_inputs'}: {', '.join(listed)}"
    return f"inputs {_SOURCES.get(source, source)}: {flags(result.inputs)}"


def shown_figures(result: CheckResult) -> Iterator[Line]:
    """Entries of every gradient beside differences of forward, then the hooks that fired."""
    figures = result.figures
    if figures is None:
        return
    passed = result.verdict is Verdict.PASSED
    lines = table_lines(figures.tables, passed=passed)
    yield from (Line(f"{_MARGIN}{text}", Role.ENTRY, fold=fold) for text, fold in lines)
    if figures.trace is not None:
        from gradcli.reporters.graph.tree import hook_lines

        yield from (Line(f"{_MARGIN}{text}", Role.TRACE, fold=True) for text in hook_lines(figures.trace))


_SOURCES = {"inferred": "inferred", "flags": "by flags", "spec": "from the spec"}


def _failure(result: CheckResult) -> Iterator[Line]:
    """The findings and their lines first; notes say under which circumstances these hold."""
    for finding in result.findings[:_FINDINGS]:
        yield from _finding(finding)
    if len(result.findings) > _FINDINGS:
        yield _note(f"... and {len(result.findings) - _FINDINGS} more findings")
    if not result.findings and not result.notes:
        failed = [evidence for evidence in result.evidence if evidence.verdict is Verdict.FAILED]
        yield from (_note(f"{_about(evidence)}: {evidence.note or 'failed'}") for evidence in failed)
    if result.excerpt is not None:
        yield from _excerpt(result.excerpt)
    yield from (_note(note) for note in result.notes)
    if result.inputs and result.inputs_from == "inferred":
        yield Line(f"{_MARGIN}{inputs_line(result)}", Role.NOTE, fold=True)
    if result.smallest:
        yield from _smallest(result.smallest)
    if result.replay is not None:
        yield Line(f"{_MARGIN}replay                   gradcli replay {result.replay}", Role.ADVICE)
    if result.patch is not None:
        yield Line(f"{_MARGIN}fix available: {fix_command(result.asked, result.target, result.inputs)}", Role.ADVICE)
    if result.findings:
        yield Line(f"{_MARGIN}more                     gradcli explain {result.findings[0].kind.value}", Role.ADVICE)


def sentence(finding: Finding) -> Line:
    """What is wrong, with its name."""
    return Line(f"{_MARGIN}{finding.message}   [{finding.kind.value}]", Role.SENTENCE, fold=True)


def _finding(finding: Finding) -> Iterator[Line]:
    yield sentence(finding)
    yield from _entries(finding)
    if finding.hint:
        yield Line(f"{_MARGIN * 2}{finding.hint}", Role.NOTE, fold=True)


def entry_rows(finding: Finding) -> list[tuple[str, str, str]]:
    """The worst entries as cells, below a row of headings; nothing where no entries are known."""
    shown = finding.entries[:_ENTRIES]
    if not shown:
        return []
    name = finding.input or "input"
    return [(f"{name}{_symbols(shown[0])}", "returned", "numeric"), *((_label(e), *_values(e)) for e in shown)]


def _entries(finding: Finding) -> Iterator[Line]:
    rows = entry_rows(finding)
    if not rows:
        return
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield Line(
            f"{_MARGIN * 2}{row[0].ljust(widths[0])}   {row[1].rjust(widths[1])}   {row[2]}".rstrip(), Role.ENTRY
        )
    wrong, total = finding.wrong_total, finding.entries_total
    if wrong is not None and total is not None and total > 1:
        yield Line(f"{_MARGIN * 2}{wrong} of {total} entries are wrong", Role.NOTE)


def _symbols(entry: Entry) -> str:
    return index_symbols(len(entry.index))


def index_symbols(rank: int) -> str:
    """Letters for the indices of an array of this rank, as in [i, j]."""
    letters = "ijklmnpq"[:rank]
    return f"[{', '.join(letters)}]" if letters else ""


def _label(entry: Entry) -> str:
    label = index(entry.index) or "value"
    return f"{label} of output{index(entry.output_index)}" if entry.output_index else label


def _values(entry: Entry) -> tuple[str, str]:
    digits = digits_for(entry)
    if entry.returned_shape is not None:
        returned = f"({'×'.join(map(str, entry.returned_shape)) or 'scalar'})"
    else:
        returned = number(entry.analytic, digits)
    if math.isinf(entry.bound) or cmath.isnan(entry.numeric):
        return returned, "not measured"
    if math.isnan(entry.bound):
        return returned, number(entry.numeric, digits)
    return returned, f"{number(entry.numeric, digits)} ± {magnitude(entry.bound)}"


def _excerpt(excerpt: SourceExcerpt) -> Iterator[Line]:
    yield Line(f"{_MARGIN * 2}{excerpt.file}:{excerpt.marked}", Role.PLACE)
    width = len(str(excerpt.first + len(excerpt.lines)))
    for line, text in enumerate(excerpt.lines, excerpt.first):
        suspect = line == excerpt.marked
        mark = "▸" if suspect else " "
        code = f"{_MARGIN * 2}{mark} {line:>{width}} │ {text}".rstrip()
        yield Line(code, Role.SUSPECT if suspect else Role.CODE)


def _smallest(lines: tuple[str, ...]) -> Iterator[Line]:
    joined = ", ".join(lines)
    if len(joined) > _LONGEST:
        text = f"too long to print ({len(joined):,} characters); it is in the replay file"
        yield Line(f"{_MARGIN}smallest failing input   {text}", Role.ADVICE)
        return
    if len(joined) <= 70 and not any("\n" in line for line in lines):
        yield Line(f"{_MARGIN}smallest failing input   {joined}", Role.ADVICE)
        return
    yield Line(f"{_MARGIN}smallest failing input", Role.ADVICE)
    for line in lines:
        yield from (Line(f"{_MARGIN * 2}{part}", Role.ENTRY) for part in line.splitlines())


def _doubt(result: CheckResult) -> Iterator[Line]:
    from gradcli.reporters.advice import advice_on  # most commands give no advice

    yield from (_note(note) for note in result.notes)
    doubtful = [evidence for evidence in result.evidence if evidence.verdict is Verdict.INCONCLUSIVE]
    if not doubtful:
        yield _note("no check compared a gradient with finite differences: run without --only, or give other inputs")
    for text in dict.fromkeys(_doubt_sentence(evidence) for evidence in doubtful):
        yield Line(f"{_MARGIN}{text}", Role.SENTENCE, fold=True)
    for remedy in filter(None, dict.fromkeys(advice_on(evidence, result) for evidence in doubtful)):
        yield Line(f"{_MARGIN}{remedy}", Role.ADVICE, fold=True)
    if result.inputs:
        yield Line(f"{_MARGIN}{inputs_line(result)}", Role.NOTE, fold=True)


def _doubt_sentence(evidence: Evidence) -> str:
    reason = evidence.reason
    sentence = evidence.note or (reason.sentence if reason is not None else "No error bound is available.")
    tag = "" if reason is None else f"   [{reason.value}]"
    return f"{_about(evidence)}: {sentence}{tag}"


def _about(evidence: Evidence) -> str:
    parts = [evidence.check if evidence.input is None else evidence.input]
    if evidence.order > 1:
        parts.append(f"order {evidence.order}")
    return ", ".join(parts)


def _error(result: CheckResult) -> Iterator[Line]:
    if result.error is not None:
        yield from (Line(f"{_MARGIN}{text}", Role.SENTENCE, fold=True) for text in lines_of(result.error))
    yield from (_note(note) for note in result.notes)
    if result.error_traceback is not None:
        yield from (Line(f"{_MARGIN * 2}{text}", Role.TRACE) for text in lines_of(result.error_traceback))
    if result.inputs:
        yield Line(f"{_MARGIN}{inputs_line(result)}", Role.NOTE, fold=True)


def _note(text: str) -> Line:
    return Line(f"{_MARGIN}{text}", Role.NOTE, fold=True)


def _row(evidence: Evidence) -> tuple[str, ...]:
    sizes = (evidence.max_rel_error, evidence.bound, evidence.resolution)
    return (
        evidence.check,
        str(evidence.order),
        evidence.input or "",
        "" if evidence.output is None else str(evidence.output),
        evidence.verdict.value if evidence.reason is None else f"{evidence.verdict.value} ({evidence.reason.value})",
        evidence.reference or "",
        *("" if size is None else magnitude(size) for size in sizes),
    )
