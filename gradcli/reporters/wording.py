"""Numbers, inputs and counts in the words that every report for people uses."""

import math
import os
import shlex
from collections.abc import Iterable, Sequence

from gradcli.cases import HELD, Asked, InputSpec
from gradcli.reporters.escaping import one_line
from gradcli.results import CheckResult, Entry, Report
from gradcli.verdict import Verdict

_ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth"}
_COUNTED = (Verdict.FAILED, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.PASSED, Verdict.SKIPPED)


def magnitude(value: float) -> str:
    """A size in one digit, as in 2e-11."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e3:
        return f"{value:.1g}" if abs(value) < 1 else f"{value:.3g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def number(value: complex | None, digits: int = 9) -> str:
    """A gradient's entry; None as such."""
    if value is None:
        return "None"
    if isinstance(value, complex):
        if value.imag == 0:
            return number(value.real, digits)
        return f"{value.real:.{digits}g}{value.imag:+.{digits}g}j"
    return f"{value:.{digits}g}"


def digits_for(entry: Entry) -> int:
    """How many digits show that the two values of an entry differ: 9, more where they are close."""
    return 9 if entry.analytic is None else digits_of(entry.analytic, entry.numeric)


def digits_of(analytic: complex, numeric: complex) -> int:
    """The same for two values."""
    size, gap = absolute(numeric), absolute(analytic - numeric)
    if not (0 < gap < size and math.isfinite(size)):
        return 9
    return min(17, max(9, math.ceil(-math.log10(gap / size)) + 2))


def absolute(value: complex) -> float:
    """The absolute value; of a complex NaN `abs` raises OverflowError if a C function before it left its errno set."""
    return math.hypot(value.real, value.imag)


def index(position: tuple[int, ...]) -> str:
    """An entry's place, as in [0, 1]; empty for a scalar."""
    return f"[{', '.join(str(part) for part in position)}]" if position else ""


def size_of(spec: InputSpec) -> str:
    """A tensor's shape as in 3×4."""
    if spec.shape is None:
        return spec.domain
    return "×".join(str(size) for size in spec.shape) if spec.shape else "scalar"


def ordinal(order: int) -> str:
    """first, second, ..."""
    return _ORDINALS.get(order, f"{order}th")


def orders(result: CheckResult) -> str:
    """As in "orders 1 and 2"."""
    listed = [str(order) for order in result.orders]
    if not listed:
        return ""
    if len(listed) == 1:
        return f"order {listed[0]}"
    return f"orders {', '.join(listed[:-1])} and {listed[-1]}"


def flags(specs: Iterable[InputSpec]) -> str:
    """The inputs as command-line flags that can be pasted."""
    return " ".join(spec.as_flag() for spec in specs if spec.domain != HELD)


def fix_command(asked: Asked | None, target: str, inputs: Sequence[InputSpec] = ()) -> str:
    """The command that finds the patch of a case, with the spec or the flags that gave its inputs.

    `inputs` are those of the result, which stand for inputs given by flags.
    """
    asked = asked or Asked(name=target)
    name = os.path.relpath(asked.name) if os.path.isabs(asked.name) else asked.name
    name = asked.name if name.startswith(os.pardir) else name
    grad = f"--grad {shlex.quote(one_line(asked.grad))}" if asked.grad is not None else ""
    saved = f"--saved {shlex.quote(one_line(','.join(asked.saved)))}" if asked.saved else ""
    given = flags((inputs or asked.inputs) if asked.inputs else ())
    words = ("gradcli fix", shlex.quote(one_line(name)), given, grad, saved)
    return " ".join(word for word in words if word)


def seconds(value: float) -> str:
    """A duration, as in 0.03 s."""
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def summary(report: Report) -> str:
    """The counts of a run on one line, what needs attention first."""
    counts = [(report.count(verdict), verdict.value) for verdict in _COUNTED]
    shown = [f"{count} {_plural(word, count)}" for count, word in counts if count]
    shown += ["interrupted: the other cases are missing"] if report.interrupted else []
    return " · ".join([*(shown or ["nothing was checked"]), seconds(report.seconds), f"seed {report.seed}"])


def _plural(word: str, count: int) -> str:
    return "errors" if word == "error" and count != 1 else word
