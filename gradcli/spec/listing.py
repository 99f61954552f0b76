"""Explains why a source file defines nothing: its definitions are inside comments."""

import io
import re
import tokenize
from pathlib import Path

_DEFINITION = re.compile(r"\b(class|def)\s+(\w+)")
_FLATTENED = 60


def commented_definition(file: Path, name: str | None = None) -> str | None:
    """A sentence that names the first `class` or `def` inside a comment of `file`, or None.

    Args:
        file: a Python source.
        name: the name that is looked for, or None for any.
    """
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    for line, comment in _comments(source):
        for word, defined in _DEFINITION.findall(comment):
            if name in (None, defined):
                lost = "; line breaks are missing in that comment" if _looks_flattened(comment) else ""
                return f"line {line} has '{word} {defined}' inside a comment{lost}"
    return None


def _comments(source: str) -> list[tuple[int, str]]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


def _looks_flattened(comment: str) -> bool:
    return len(comment) > _FLATTENED and len(re.findall(r"\b(?:def|return|class|import)\b", comment)) > 1
