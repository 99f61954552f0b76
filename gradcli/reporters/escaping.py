"""Text from the user's files made safe for the languages that reports are written in."""

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-!|~$@])")


def printable(text: str) -> str:
    """`text` with control characters, lone surrogates and direction overrides as `\\xNN` or `\\uNNNN`.

    Line feeds and tabs stay. What is left can be encoded in UTF-8, is allowed in XML 1.0, and does nothing to a
    terminal.
    """
    return _BIDIRECTIONAL.sub(_escaped, _CONTROL.sub(_escaped, text))


def one_line(text: str) -> str:
    """`printable` text on a single line: line feeds and tabs become `\\n` and `\\t`."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def lines_of(text: str, longest: int = 8000) -> list[str]:
    """The lines of `printable` text, each cut where it is too long.

    One that a CI system would take for a command of its own (`::error`, `##[error]`, `##teamcity`) follows a bar.
    """
    return [_harmless(line if len(line) <= longest else f"{line[:longest]}...") for line in printable(text).split("\n")]


def _harmless(line: str) -> str:
    return f"| {line}" if line.lstrip().startswith(("::", "##")) else line


def markup(text: str) -> str:
    """Text for XML or HTML, in elements and in quoted attributes."""
    import html

    return html.escape(printable(text), quote=True)


def markdown(text: str) -> str:
    """Text for a paragraph or a table cell of GitHub's Markdown, on one line."""
    import html

    return html.escape(_MARKDOWN.sub(r"\\\1", one_line(text)), quote=False)


def code_span(text: str) -> str:
    """Text as inline code of Markdown; in a table cell, too, where a bar has to be escaped."""
    line = one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if "`" in line or line != line.strip() or not line else ""
    return f"{fence}{pad}{line.replace('|', chr(92) + '|')}{pad}{fence}"


def code_block(text: str, language: str = "") -> str:
    """Text as a fenced block of Markdown, with a fence longer than any in it."""
    body = printable(text)
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", body)), default=0) + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def _escaped(match: re.Match[str]) -> str:
    point = ord(match[0])
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}"
