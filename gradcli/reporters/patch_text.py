"""The outcome of `gradcli fix` as text: what is wrong, the diff, and what was proven of it."""

from collections.abc import Iterator

from gradcli.patches import FixResult
from gradcli.reporters.escaping import lines_of, one_line
from gradcli.reporters.wording import fix_command
from gradcli.verdict import Verdict

_NOTHING = {
    Verdict.PASSED: "passes the whole check: there is nothing to fix",
    Verdict.INCONCLUSIVE: (
        "the check is inconclusive, so no patch could be verified; run gradcli check for the reason"
    ),
}


def patch_text(result: FixResult, *, only_diff: bool = False, written: bool = False) -> str:
    """The lines to print for one target; `only_diff` leaves out everything but the diff."""
    if only_diff:
        return "" if result.patch is None else result.patch.diff()
    return "\n".join(_lines(result, written)) + "\n"


def _lines(result: FixResult, written: bool) -> Iterator[str]:
    if result.verdict in _NOTHING:
        yield f"{one_line(result.target)}: {_NOTHING[result.verdict]}"
        return
    yield one_line(result.target)
    for sentence in result.sentences:
        yield from (f"  {line}" for line in lines_of(sentence))
    patch = result.patch
    if patch is None:
        yield f"  no patch found: {result.reason}"
        return
    yield ""
    yield from lines_of(patch.shown_diff().rstrip("\n"))
    yield ""
    if patch.recomputes:
        yield "  this backward runs forward again and differentiates it by autograd; the formula is not corrected"
    if patch.once and patch.corrects:
        yield (
            "  the patch corrects the gradient and marks backward once_differentiable: a second derivative then raises "
            "an error instead of being silently wrong"
        )
    elif patch.once:
        yield (
            "  the patch only marks backward once_differentiable: a second derivative then raises an error instead of "
            "being silently wrong; the formula is not corrected"
        )
    yield from (f"  proven: {sentence}" for sentence in patch.proven)
    yield from (f"  not proven: {sentence}" for sentence in patch.unproven)
    if written:
        yield f"  written: {one_line(patch.shown_file)}"
    else:
        yield f"  apply:  {fix_command(result.asked, result.target)} --write"
