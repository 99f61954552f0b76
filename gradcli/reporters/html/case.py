"""One case on the page: what is wrong, where, how it is known, and what to do."""

from collections.abc import Iterable, Iterator

from gradcli.reporters.escaping import markup, one_line, printable
from gradcli.reporters.html.charts import error_chart, heat_maps, resolution_scale
from gradcli.reporters.narrative import Line, Role, entry_rows, inputs_line, story
from gradcli.reporters.wording import fix_command, magnitude, orders
from gradcli.results import CheckResult, Evidence, Finding, SourceExcerpt
from gradcli.verdict import Verdict

VERDICTS = (Verdict.FAILED, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.PASSED, Verdict.SKIPPED)
"""In the order in which they need attention."""
_SIGNIFICANCE = 1e-7
_MAPS = 6


def case_body(case: CheckResult) -> Iterator[str]:
    """Everything below a case's headline."""
    if case.verdict is Verdict.FAILED and case.findings:
        yield from _failure(case)
    else:
        yield from _lines(case)
    yield from _figures(case)
    yield from _facts(case)
    yield from _checks(case.evidence)


def _failure(case: CheckResult) -> Iterator[str]:
    for finding in case.findings:
        yield f'<p class="sentence">{_text(finding.message)} <code>[{finding.kind.value}]</code></p>'
        if finding.hint:
            yield f"<p>{_text(finding.hint)}</p>"
        yield from _entries(finding)
    if case.excerpt is not None:
        yield from _source(case.excerpt)
    yield from (f"<p>{_text(note)}</p>" for note in case.notes)
    if case.smallest:
        lines = "\n".join(case.smallest)
        yield f'<h3>Smallest failing input</h3><pre class="advice">{_block(lines)}</pre>'
    if case.replay is not None:
        yield f'<h3>Replay</h3><pre class="advice">gradcli replay {_text(case.replay)}</pre>'
    if case.patch is not None:
        yield f"<h3>Fix available</h3><pre>{_block(case.patch.shown_diff())}</pre>"
        yield from (f'<p class="soft">proven: {_text(sentence)}</p>' for sentence in case.patch.proven)
        yield from (f'<p class="soft">not proven: {_text(sentence)}</p>' for sentence in case.patch.unproven)
        yield f'<pre class="advice">{_text(fix_command(case.asked, case.target, case.inputs))} --write</pre>'


def _entries(finding: Finding) -> Iterator[str]:
    rows = entry_rows(finding)
    if not rows:
        return
    head, *body = rows
    yield (
        "<table><thead><tr>"
        + "".join(f'<th scope="col" class="number">{_text(cell)}</th>' for cell in head)
        + "</tr></thead>"
    )
    for row in body:
        yield "<tr>" + "".join(f'<td class="number">{_text(cell)}</td>' for cell in row) + "</tr>"
    yield "</table>"
    if finding.wrong_total is not None and finding.entries_total is not None:
        yield f'<p class="soft">{finding.wrong_total} of {finding.entries_total} entries are wrong</p>'


def _source(excerpt: SourceExcerpt) -> Iterator[str]:
    width = len(str(excerpt.first + len(excerpt.lines)))
    lines = []
    for line, text in enumerate(excerpt.lines, excerpt.first):
        marked = line == excerpt.marked
        shown = f"{'▸' if marked else ' '} {line:>{width}} │ {_text(text)}"
        lines.append(f'<mark aria-label="suspect line">{shown}</mark>' if marked else shown)
    code = "\n".join(lines)
    yield f"<h3><code>{_text(excerpt.file)}:{excerpt.marked}</code></h3><pre>{code}</pre>"


def _lines(case: CheckResult) -> Iterator[str]:
    """The text that every report for people shows, for cases without a finding to lay out."""
    for code, lines in _runs(story(case)):
        texts = [line.text for line in lines]
        if code:
            yield "<pre>" + _block("\n".join(texts)) + "</pre>"
        else:
            yield from (f'<p class="{line.role.value}">{_text(line.text.strip())}</p>' for line in lines)


def _runs(lines: Iterable[Line]) -> Iterator[tuple[bool, list[Line]]]:
    """Neighbouring lines of code together, and the others together."""
    run: list[Line] = []
    for line in lines:
        if run and _is_code(run[0]) != _is_code(line):
            yield _is_code(run[0]), run
            run = []
        run.append(line)
    if run:
        yield _is_code(run[0]), run


def _is_code(line: Line) -> bool:
    return line.role in (Role.CODE, Role.SUSPECT, Role.TRACE, Role.ENTRY)


def _figures(case: CheckResult) -> Iterator[str]:
    figures = case.figures
    if figures is not None and case.verdict is Verdict.FAILED:
        yield from (heat_maps(block) for block in figures.blocks[:_MAPS] if block.rows and block.columns)
    drawings = []
    if figures is not None and figures.curve is not None:
        drawings.append(error_chart(figures.curve))
    if case.verdict is Verdict.PASSED and case.resolution is not None:
        drawings.append(resolution_scale(case.resolution, _SIGNIFICANCE))
    if drawings:
        yield f'<div class="figures">{"".join(drawings)}</div>'


def _facts(case: CheckResult) -> Iterator[str]:
    parts = [case.backend or "", orders(case), f"{case.samples} samples" if case.samples else ""]
    parts += [f"{case.forwards} forward and {case.backwards} backward runs", f"seed {case.seed}"]
    yield f'<p class="soft">{_text(" · ".join(part for part in parts if part))}</p>'
    if case.inputs:
        yield f'<p class="soft">{_text(inputs_line(case))}</p>'


def _checks(evidence: Iterable[Evidence]) -> Iterator[str]:
    rows = [_row(each) for each in evidence]
    if not rows:
        return
    head = ("check", "order", "input", "output", "verdict", "by", "rel. error", "bound", "resolution", "note")
    yield "<details><summary>Every check</summary><table><thead><tr>"
    yield "".join(f'<th scope="col">{name}</th>' for name in head) + "</tr></thead>"
    yield from rows
    yield "</table></details>"


def _row(evidence: Evidence) -> str:
    sizes = (evidence.max_rel_error, evidence.bound, evidence.resolution)
    cells = (
        evidence.check,
        str(evidence.order),
        evidence.input or "",
        "" if evidence.output is None else str(evidence.output),
        evidence.verdict.value if evidence.reason is None else f"{evidence.verdict.value} ({evidence.reason.value})",
        evidence.reference or "",
        *("" if size is None else magnitude(size) for size in sizes),
        evidence.note or "",
    )
    return "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"


def _text(text: str) -> str:
    return markup(one_line(text))


def _block(text: str) -> str:
    return markup(printable(text))
