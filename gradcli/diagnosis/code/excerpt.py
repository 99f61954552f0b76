"""The lines of the user's file around a suspect line."""

import linecache

from gradcli.results import Finding, SourceExcerpt

AROUND = 3


def excerpt_for(finding: Finding) -> SourceExcerpt | None:
    """A few lines around the finding's location, None where it has none or the file is gone."""
    if finding.location is None:
        return None
    lines = linecache.getlines(finding.location.file)
    marked = finding.location.line
    if not 1 <= marked <= len(lines):
        return None
    first = max(1, marked - AROUND)
    last = min(len(lines), marked + AROUND)
    shown = tuple(line.rstrip("\n") for line in lines[first - 1 : last])
    return SourceExcerpt(file=finding.location.file, first=first, lines=shown, marked=marked)
