"""Results made by hand, for tests of what is said about them."""

from dataclasses import replace

from gradcli.cases import InputSpec
from gradcli.findings import FindingKind
from gradcli.results import CheckResult, Entry, Evidence, Finding, Location, Report, SourceExcerpt
from gradcli.verdict import Reason, Verdict

PASSED = CheckResult(
    case_id="mymodule:LinearFunction",
    target="mymodule:LinearFunction",
    name=None,
    backend="engine",
    verdict=Verdict.PASSED,
    seed=17,
    samples=3,
    inputs_from="inferred",
    inputs=(
        InputSpec(name="input", shape=(3, 4)),
        InputSpec(name="weight", shape=(5, 4)),
        InputSpec(name="dim", kind="value", value=-1),
    ),
    evidence=tuple(
        Evidence(
            check="gradient",
            verdict=Verdict.PASSED,
            order=order,
            input=name,
            output=0,
            reference="finite-difference",
            max_abs_error=3e-16,
            max_rel_error=4e-16,
            bound=3e-13,
            resolution=2e-11 / order,
        )
        for name in ("input", "weight")
        for order in (1, 2)
    ),
    forwards=14,
    backwards=9,
    seconds=0.031,
    orders=(1, 2),
)
FINDING = Finding(
    kind=FindingKind.WRONG_FACTOR,
    message="weight: the returned gradient is 1/5 of the right one everywhere; 5 is the value of the argument constant",
    input="weight",
    output=0,
    entries=(
        Entry(index=(0, 0), analytic=-0.340863604, numeric=-1.70431802, bound=3e-11),
        Entry(index=(0, 1), analytic=0.045826754, numeric=0.22913377, bound=3e-11),
    ),
    entries_total=20,
    wrong_total=20,
    factor="1/5",
    location=Location(file="mymodule.py", line=21),
)
FAILED = replace(
    PASSED,
    verdict=Verdict.FAILED,
    evidence=(Evidence(check="gradient", verdict=Verdict.FAILED, input="weight", output=0),),
    findings=(FINDING,),
    excerpt=SourceExcerpt(
        file="mymodule.py",
        first=19,
        lines=("        if ctx.needs_input_grad[0]:", "            g = grad_output", "            return g, None"),
        marked=21,
    ),
    smallest=("input = [[1.0]]", "weight = [[2.0]]"),
    replay=".gradcli/failures/LinearFunction-7f3a.json",
)
INCONCLUSIVE = replace(
    PASSED,
    verdict=Verdict.INCONCLUSIVE,
    evidence=(
        Evidence(
            check="gradient",
            verdict=Verdict.INCONCLUSIVE,
            input="input",
            reason=Reason.KINK,
            note="input[1] lies on a kink of forward: the slope is 0 on the left and 1 on the right, and backward "
            "gives 1, the right-hand slope, which is accepted",
        ),
    ),
)
ERROR = replace(
    PASSED,
    verdict=Verdict.ERROR,
    evidence=(),
    error="forward raised NameError: name 'supper' is not defined",
    error_traceback='Traceback (most recent call last):\n  File "mymodule.py", line 3, in forward\n    supper()',
    notes=("did you mean 'super'?",),
)
SKIPPED = replace(PASSED, verdict=Verdict.SKIPPED, evidence=(), notes=("not run: stopped at the first failure",))
ALL = (PASSED, FAILED, INCONCLUSIVE, ERROR, SKIPPED)


def report(*cases: CheckResult, allow_inconclusive: bool = False) -> Report:
    return Report(cases=cases, seed=0, seconds=0.25, allow_inconclusive=allow_inconclusive)
