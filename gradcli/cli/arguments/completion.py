"""Completion of a command line in a shell, for which neither NumPy, a framework nor the user's code is imported."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import typer

VARIABLE = "_GRADCLI_COMPLETE"
"""Set by the scripts that `--show-completion` prints, to `complete_` and the name of the shell."""
_BREAKS = frozenset(":=")
"""Characters that bash takes for words of their own (COMP_WORDBREAKS), as in file.py:Name and --format=json."""


def completed(application: Callable[[], None]) -> None:
    """Let `application` print its completions for the words in the environment.

    Bash gives `file.py:Name` as three words and replaces the last one: the words are put together before, and what
    stands before the last one is taken away from the completions.
    """
    # Typer renders help texts with rich where it can be imported, which takes longer than all the rest.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # None is how an import is refused
    if os.environ.get(VARIABLE) != "complete_bash":
        application()
        return
    typed = _join_words()
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            application()
    finally:
        lines = printed.getvalue().splitlines()
        sys.stdout.write("".join(f"{line.removeprefix(typed)}\n" for line in lines))


def _join_words() -> str:
    """Put the words in the environment together; including those that bash takes for earlier words."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    number = os.environ.get("COMP_CWORD", "")
    current = int(number) if number.isdecimal() else len(words)
    joined: list[list[str]] = []
    at = 0
    for index, word in enumerate([*words, ""][: current + 1]):
        is_glued = len(joined) > 1 and bool(word) and (_is_break(word) or _is_break(joined[-1][-1]))
        if is_glued:
            joined[-1].append(word)
        else:
            joined.append([word])
        at = len(joined) - 1 if index == current else at
    os.environ["COMP_WORDS"] = "\n".join("".join(parts) for parts in joined)
    os.environ["COMP_CWORD"] = str(at)
    parts = joined[at]
    return "".join(parts if _is_break(parts[-1]) else parts[:-1])


def _is_break(word: str) -> bool:
    return bool(word) and set(word) <= _BREAKS


def leave_to_shell() -> list[str]:
    """Nothing, so that the shell completes the names of files itself, which Typer does not leave to it for a Path."""
    return []


def complete_checks(incomplete: str) -> list[str]:
    """The checks of the battery."""
    from gradcli.checks.names import CHECK_NAMES

    return [name for name in CHECK_NAMES if name.startswith(incomplete)]


def complete_formats(incomplete: str) -> list[str]:
    """What --format of a check takes."""
    from gradcli.reporters.formats import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def complete_names(incomplete: str) -> list[str]:
    """What `gradcli explain` explains; codes where one was begun."""
    from gradcli.checks.names import CHECK_NAMES
    from gradcli.diagnosis.symptoms.names import Symptom
    from gradcli.findings import FindingKind
    from gradcli.verdict import Reason, Verdict

    kinds = (FindingKind, Verdict, Reason, Symptom)
    names = [*(member.value for kind in kinds for member in kind), "once-differentiable", "surrogate"]
    codes = [kind.code for kind in FindingKind] if incomplete else []
    return [name for name in dict.fromkeys([*names, *CHECK_NAMES, *codes]) if name.startswith(incomplete)]


def complete_tags(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tags of the specs that were typed; without one, of those that a run without a target checks."""
    from gradcli.errors import GradcliError
    from gradcli.runner.planning.configuration import default_targets

    try:
        # An option without its value, such as --tag just now, leaves the targets unread, in ctx.args.
        targets = ctx.params.get("targets") or ctx.args or default_targets(Path.cwd())
        tags = sorted({tag for target in targets for tag in _tags_of(Path(target))})
    except (GradcliError, OSError):
        return []
    return [tag for tag in tags if tag.startswith(incomplete)]


def _tags_of(target: Path) -> Iterator[str]:
    """The tags in a spec, or in those of a folder; none where a file is no spec."""
    from gradcli.errors import SpecError
    from gradcli.spec.document import Problems, compose, plain

    files = sorted(target.iterdir()) if target.is_dir() else [target]
    for file in files:
        if file.suffix not in (".yaml", ".yml"):
            continue
        try:
            documents = [plain(node, Problems(str(file))) for node in compose(file, str(file))]
        except SpecError:
            continue
        for document in documents:
            yield from _tags_in(document)


def _tags_in(document: Any) -> Iterator[str]:
    if not isinstance(document, dict):
        return
    cases = document.get("cases")
    for holder in (document.get("defaults"), *(cases if isinstance(cases, list) else ())):
        tags = holder.get("tags") if isinstance(holder, dict) else None
        yield from (tag for tag in (tags if isinstance(tags, list) else [tags]) if isinstance(tag, str))
