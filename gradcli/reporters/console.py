"""The screens of `gradcli check` on a terminal: is it right, what is wrong, where, how is it known, what to do."""

import re
import textwrap
from collections.abc import Iterator
from itertools import accumulate, groupby, pairwise

from rich.text import Text

from gradcli.cases import InputSpec
from gradcli.reporters.escaping import one_line
from gradcli.reporters.narrative import Line, Role, inputs_line, sentence, story
from gradcli.reporters.wording import magnitude, orders, ordinal, seconds, size_of, summary
from gradcli.results import CheckResult, Evidence, Report
from gradcli.verdict import Verdict

WIDTH = 100
_ROUNDING = 1e-10
"""A relative difference above this is a measured one, which has a note, and no rounding error of float64."""
GLYPHS = {
    Verdict.PASSED: "✓",
    Verdict.FAILED: "✗",
    Verdict.INCONCLUSIVE: "?",
    Verdict.ERROR: "!",
    Verdict.SKIPPED: "-",
}
_COLOURS = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.ERROR: "magenta",
    Verdict.SKIPPED: "dim",
}
_STYLES = {
    Role.SENTENCE: "bold",
    Role.PLACE: "cyan",
    Role.CODE: "dim",
    Role.SUSPECT: "red",
    Role.ENTRY: "",
    Role.TRACE: "dim",
    Role.NOTE: "",
    Role.ADVICE: "cyan",
}


def console_case(result: CheckResult, *, verbose: bool = False, width: int | None = WIDTH) -> Text:
    """One case; folded to `width` columns, or never folded where it is None."""
    said = [*(_pass_lines(result) if result.verdict is Verdict.PASSED else ()), *story(result, verbose=verbose)]
    lines = [_headline(result, width)]
    tables = list(accumulate((line.head for line in said), initial=0))[1:]
    for (is_row, _), group in groupby(
        zip(said, tables, strict=True), key=lambda each: (each[0].role is Role.ENTRY and not each[0].fold, each[1])
    ):
        own = [line for line, _ in group]
        if is_row and width is not None:
            lines += map(Text, _in_columns([line.text for line in own], width))
        else:
            lines += [_styled(line, width) for line in own]
    return Text("\n").join(lines)


def console_summary(report: Report) -> Text:
    """The counts of the run on one line."""
    return Text(summary(report), style=f"bold {_COLOURS[report.verdict]}")


def _headline(result: CheckResult, width: int | None) -> Text:
    colour = _COLOURS[result.verdict]
    facts = [result.backend or "", _samples(result), orders(result)]
    name = one_line(result.case_id)
    left = f"{GLYPHS[result.verdict]} {name}   {' · '.join(fact for fact in facts if fact)}".rstrip()
    right = seconds(result.seconds)
    gap = 3 if width is None else max(3, min(width, WIDTH) - len(left) - len(right))
    text = Text(left + " " * gap + right)
    text.stylize(colour, 0, 1)
    text.stylize(f"bold {colour}", 2, 2 + len(name))
    text.stylize("dim", len(left), len(text))
    return text


def _samples(result: CheckResult) -> str:
    if result.samples == 0 or result.verdict is not Verdict.PASSED:
        return ""
    return f"{result.samples} sample{'s' * (result.samples != 1)}"


def _pass_lines(result: CheckResult) -> Iterator[Line]:
    if result.findings and result.expected != "surrogate":
        yield Line(f"  {result.expected}, as its spec expects", Role.NOTE)
        yield from (sentence(finding) for finding in result.findings)
    if result.findings:
        return
    tensors = [spec for spec in result.inputs if spec.kind == "tensor"]
    rows = [(spec.name, size_of(spec), *_measured(result, spec)) for spec in tensors]
    rows = [row for row in rows if len(row) > 2]
    columns = max((len(row) for row in rows), default=0)
    widths = [max((len(row[c]) for row in rows if c < len(row)), default=0) for c in range(columns)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield Line("  " + "   ".join(cells).rstrip(), Role.ENTRY)
    facts = []
    if result.resolution is not None and not any(e.allowed for e in result.evidence):
        facts.append(f"would have shown a relative error of {magnitude(result.resolution)}")
    if result.inputs:
        facts.append(inputs_line(result))
    if facts:
        yield Line("  " + " · ".join(facts), Role.NOTE, fold=True)


def _measured(result: CheckResult, spec: InputSpec) -> tuple[str, ...]:
    """For each order, how exact the gradient of this input was found to be."""
    cells = []
    for order in result.orders:
        about = [e for e in result.evidence if e.input == spec.name and e.order == order and e.bound is not None]
        zero = [e for e in result.evidence if e.input == spec.name and e.order == order and e.zero_everywhere]
        if about or zero:
            cells.append(_exactness(order, about, bool(zero) and not about))
    return tuple(cells)


def _exactness(order: int, about: list[Evidence], zero: bool) -> str:
    glyph = GLYPHS[Verdict.PASSED] if all(e.verdict is Verdict.PASSED for e in about) else GLYPHS[Verdict.INCONCLUSIVE]
    if any(e.allowed for e in about):
        glyph, words = GLYPHS[Verdict.INCONCLUSIVE], "wrong, as allowed"
    elif zero or all(e.zero_everywhere for e in about):
        words = "correctly zero at all points tried"
    else:
        errors = [e.max_rel_error for e in about if e.max_rel_error is not None]
        words = _agreement(about, errors)
    return f"{glyph} {words}" if order == 1 else f"{ordinal(order)} order {glyph} {words}"


def _agreement(about: list[Evidence], errors: list[float]) -> str:
    """How far the claim is known to be right: autodiff to rounding, differences as finely as their bound resolves."""
    if errors and all(e.reference == "autodiff" for e in about):
        largest = max(errors)
        return f"{'differs by' if largest > _ROUNDING else 'exact to'} {magnitude(largest)}" if largest else "exact"
    known = [e.resolution for e in about if e.resolution is not None]
    return f"within {magnitude(max(known))}" if known else "within the error bound"


def _styled(line: Line, width: int | None) -> Text:
    text = line.text if width is None or not line.fold else _folded(line.text, min(width, WIDTH))
    return Text(text, style=_STYLES[line.role])


def _in_columns(rows: list[str], width: int) -> list[str]:
    """The rows of a table, all broken before the same columns where the widest is wider than `width`."""
    longest = max(map(len, rows))
    if longest <= width:
        return rows
    taken = "".join("x" if any(row[at : at + 1].strip() for row in rows) else " " for at in range(longest))
    starts = [0, *(gap.end() for gap in re.finditer(r"(?<=x) {2,}(?=x)", taken))]
    indent = " " * (len(taken) - len(taken.lstrip()))
    cuts = [0]
    for start, end in pairwise([*starts, longest + 2]):
        hung = len(indent) + 2 if cuts[-1] else 0
        if start > cuts[-1] and hung + end - cuts[-1] - 2 > width:
            cuts.append(start)
    parts = list(pairwise([*cuts, longest]))
    return [
        (f"{indent}  " if begin else "") + row[begin:end].rstrip()
        for row in rows
        for begin, end in parts
        if not begin or row[begin:end].strip()
    ]


def _folded(text: str, width: int) -> str:
    """`text` wrapped under its own indentation; a flag stays on one line with its value."""
    indent = text[: len(text) - len(text.lstrip())]
    tied = text.replace(" -i ", " -i\xa0").replace(" -a ", " -a\xa0")
    wrapped = textwrap.wrap(
        tied.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(wrapped).replace("\xa0", " ")
