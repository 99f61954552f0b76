"""The notes of a case, each of them once."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from gradcli.backends.attribution import shown_path
from gradcli.cases import Argument, InputSpec
from gradcli.findings import FindingKind
from gradcli.inputs.hints.argument_names import is_layers_parameter
from gradcli.results import Evidence, Finding
from gradcli.verdict import Verdict
from gradcli.watchdog.case import Overrun, Watchdog

_BETWEEN = "; "
_AFTER_CHECKS = ("naming", "shrinking", "figures")
"""Phases whose calls, of edited code too, change no result of a check."""
_MEASURED = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d+(?= %)")
"""Numbers that are measured; whole ones without % are positions, sizes and counts, which make another note of it."""


def noted_once(samples: Iterable[Sequence[str]]) -> str | None:
    """The notes of several samples as one; None where there are none.

    Of notes that differ only in measured numbers, the one with the largest numbers is kept.
    """
    alike: dict[tuple[str, int], list[str]] = {}
    for notes in samples:
        earlier: Counter[str] = Counter()
        for part in dict.fromkeys(part for note in notes for part in note.split(_BETWEEN)):
            wording = _MEASURED.sub("#", part).replace("# % of", "# of")
            alike.setdefault((wording, earlier[wording]), []).append(part)
            earlier[wording] += 1
    return _BETWEEN.join(_standing_for(parts) for parts in alike.values()) or None


def _standing_for(parts: Sequence[str]) -> str:
    """The note with the largest numbers, and the number of further samples with such a note."""
    largest = max(parts, key=lambda part: math.fsum(map(float, _MEASURED.findall(part))))
    others = len(parts) - 1
    if len(set(parts)) == 1:
        return largest
    return f"{largest} (likewise in {others} other sample{'s' * (others != 1)})"


def other_types(specs: Sequence[InputSpec], arguments: Sequence[Argument]) -> tuple[str, ...]:
    """A note with the flags of the arguments that failed, where some are complex that are real in the inputs shown."""
    failed = {a.name: a for a in arguments if a.is_tensor and a.value.dtype.kind == "c"}
    changed = {
        spec.name: replace(spec, shape=failed[spec.name].shape, dtype=failed[spec.name].dtype_name)
        for spec in specs
        if spec.name in failed and spec.kind == "tensor" and not (spec.dtype or "").startswith("complex")
    }
    if not changed:
        return ()
    flags = " ".join(changed.get(spec.name, spec).as_flag() for spec in specs)
    return (
        f"the failure is that of complex inputs, {flags}: they are tried too, because the source conjugates an input, "
        "or what is real for real inputs",
    )


def telling_notes(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """What a check that passed has to add: a kink, an input left out, a point moved, a precision raised.

    So has one that failed with entries that were measured: where that was, if not at the inputs. What is the same of
    several inputs is said once, after the names of all. Of higher orders only what is said of all inputs is told, such
    as why one was left out.
    """
    noted = [e for e in evidence if e.note and (e.order == 1 or e.input is None) and not e.zero_everywhere]
    telling = [
        e
        for e in noted
        if e.verdict is Verdict.PASSED
        or (e.verdict is Verdict.FAILED and e.finding is None)
        or (e.verdict is Verdict.SKIPPED and e.order > 1)
    ]
    about: dict[str, dict[str, None]] = {}
    for each in telling:
        names = about.setdefault(str(each.note), {})
        if each.input is not None and not re.match(rf"{re.escape(each.input)}(?!\w)", str(each.note)):
            names[each.input] = None
    return tuple(f"{', '.join(names)}: {note}" if names else note for note, names in about.items())


def not_in_findings(notes: Sequence[str], findings: Sequence[Finding]) -> tuple[str, ...]:
    """The notes, without those that are part of the sentence of a finding."""
    said = [(f"{finding.input}: ", finding.message) for finding in findings]
    return tuple(note for note in notes if not any(note.removeprefix(name) in message for name, message in said))


def doubtful_shapes(
    inferred: Sequence[InputSpec], findings: Sequence[Finding], documented: Collection[str] = ()
) -> tuple[str, ...]:
    """What to do if the inferred shape of an input, rather than the shape of its gradient, may be wrong.

    The shape of an input that is `documented` is none to doubt, nor is one for which no tensor was returned.
    """
    shaped = [each for each in findings if each.kind is FindingKind.WRONG_SHAPE and "of type " not in each.message]
    wrong = {finding.input for finding in shaped}
    return tuple(
        f"gradcli inferred the shape of {spec.name} ({spec.as_flag()}): if forward expects another shape, give it "
        f"with -i, as in -i {spec.name}=scalar for a single number"
        for spec in inferred
        if spec.name in wrong and spec.name not in documented
    )


def perhaps_without_gradient(inferred: Sequence[InputSpec], findings: Sequence[Finding]) -> tuple[str, ...]:
    """What to do if an input for which backward returns None needs no gradient."""
    missing = {
        finding.input
        for finding in findings
        if finding.kind is FindingKind.MISSING_GRADIENT
        and "backward returns None" in finding.message
        and "at the position of" not in finding.message
    }
    others = [spec for spec in inferred if spec.kind == "tensor" and spec.name not in missing]
    return tuple(
        f"if {spec.name} is meant to get no gradient, like labels, say so with "
        f"{replace(spec, requires_grad=False).as_flag()}"
        for spec in inferred
        if others and spec.name in missing and spec.kind == "tensor" and not is_layers_parameter(spec.name)
    )


def time_notes(watchdog: Watchdog, samples: int, wanted: int) -> tuple[str, ...]:
    """What was left out because calls took long: points at which forward did not return, and samples."""
    stopped = [overrun for overrun in watchdog.overruns if overrun.seconds and overrun.phase not in _AFTER_CHECKS]
    notes = [_overrun_note(stopped)] if stopped else []
    if watchdog.omissions.why:
        phases = [*sorted(watchdog.omissions.phases), *(o.phase for o in watchdog.overruns if not o.seconds)]
        where = ", ".join(dict.fromkeys(phases))
        notes.append(
            f"at inputs that gradcli chose, {watchdog.omissions.why} ({where}); the case was run again without these "
            "inputs"
        )
    if watchdog.is_slow and 0 < samples < wanted:
        seconds = f"{watchdog.forward_seconds:.2g} s"
        notes.append(
            f"forward takes {seconds}, so only {samples} of {wanted} samples were checked; a larger "
            "--budget allows more"
        )
    return tuple(notes)


def _overrun_note(overruns: Sequence[Overrun]) -> str:
    phases = dict.fromkeys(each.phase for each in overruns)
    places = dict.fromkeys(shown_path(each.location) for each in overruns if each.location is not None)
    calls = "a call" if len(overruns) == 1 else f"{len(overruns)} calls"
    was = "was" if len(overruns) == 1 else "were"
    return (
        f"{calls} at inputs that gradcli chose {was} stopped after {max(each.seconds for each in overruns):.2g} s "
        f"({', '.join([*phases, *places])}): the check goes on without these inputs, as if forward had raised for "
        "them"
    )
