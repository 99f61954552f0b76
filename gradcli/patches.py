"""What `gradcli fix` comes to: a patch with what was proven of it, or why there is none."""

import difflib
import os

from gradcli.cases import Asked
from gradcli.frozen import dataclass
from gradcli.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """New text for a file of the user's; `proven` says, a sentence each, what the patched Function passed.

    `unproven` says what is not proven of other Functions that run the edited code. `recomputes` marks a
    backward that differentiates forward by autograd instead of correcting the formula, `once` one that is marked as
    differentiable only once, `corrects` one that is corrected and marked.
    """

    file: str
    before: str
    after: str
    proven: tuple[str, ...]
    unproven: tuple[str, ...] = ()
    recomputes: bool = False
    once: bool = False
    corrects: bool = False

    @property
    def shown_file(self) -> str:
        """The file as seen from the working directory, where it lies below that."""
        relative = os.path.relpath(self.file)
        return self.file if relative.startswith("..") else relative

    def diff(self) -> str:
        """The unified diff, as `git apply` and `patch -p1` take it."""
        name = self.shown_file.lstrip("/")
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True), self.after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def shown_diff(self) -> str:
        """The diff to be read: without the carriage returns of a file with Windows line ends."""
        return self.diff().replace("\r\n", "\n")

    def changed_lines(self) -> list[tuple[int, int, str]]:
        """Where the texts differ: the first line and the one after the last, from 1, and what takes their place."""
        before, after = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        return [
            (start + 1, stop + 1, "".join(after[first:last]))
            for tag, start, stop, first, last in matcher.get_opcodes()
            if tag != "equal"
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixResult:
    """The outcome for one target: its verdict, what is wrong, and the patch or the `reason` for which there is none.

    `asked` is what the command was given for it.
    """

    target: str
    verdict: Verdict
    sentences: tuple[str, ...] = ()
    patch: Patch | None = None
    reason: str | None = None
    asked: Asked | None = None

    @property
    def exit_code(self) -> int:
        """0 with a patch or with nothing to patch, 1 without; as for a check where no verdict came about."""
        if self.patch is not None or self.verdict is Verdict.PASSED:
            return 0
        return {Verdict.ERROR: 3, Verdict.INCONCLUSIVE: 4}.get(self.verdict, 1)
