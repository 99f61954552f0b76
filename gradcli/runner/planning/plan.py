"""From specs to the cases of a run; the user's code does not run here."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from gradcli.cases import CheckSpec
from gradcli.errors import NothingToCheckError, UsageError
from gradcli.frozen import dataclass
from gradcli.results import CheckResult
from gradcli.runner.planning.import_folders import apart
from gradcli.settings import Settings
from gradcli.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Shard number `index` (from 1) of `count`; a case belongs to one by its id, whatever other cases there are."""

    index: int
    count: int

    def holds(self, case_id: str) -> bool:
        """Whether the case is in this shard."""
        digest = hashlib.sha256(case_id.encode("utf-8", "backslashreplace")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.index - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCase:
    """One case of a run: its spec, its settings with the spec's own taken over, and its own seed."""

    spec: CheckSpec
    settings: Settings
    seed: int

    def result(self, verdict: Verdict) -> CheckResult:
        """A result with nothing in it yet but the case's identity and `verdict`."""
        return CheckResult(
            case_id=self.spec.case_id,
            target=self.spec.target,
            name=self.spec.name,
            backend=None,
            verdict=verdict,
            seed=self.seed,
            samples=0,
            inputs_from=None if self.spec.inputs is None else self.spec.inputs_from.value,
            inputs=self.spec.inputs or (),
            asked=self.spec.asked,
        )


def plan(specs: Sequence[CheckSpec], settings: Settings, shard: Shard | None = None) -> tuple[CheckCase, ...]:
    """One case for each spec, or this shard's part of them; no target is imported.

    Raises:
        UsageError: the run names a check that does not exist.
        NothingToCheckError: no case is left.
    """
    require_checks((*settings.only, *settings.skip), "--only/--skip")
    cases = tuple(case_of(spec, settings) for spec in specs)
    if shard is not None:
        cases = tuple(case for case in cases if shard.holds(case.spec.case_id))
    if not cases:
        if shard is None:
            raise NothingToCheckError("nothing to check: there are no cases")
        share = f"none of the {len(specs)} cases is in shard {shard.index}/{shard.count}"
        raise NothingToCheckError(f"nothing to check: {share}")
    return cases


def claimed(target: object, spec: CheckSpec) -> object:
    """What is checked for `target`: itself, or the pair with the hand-written gradient that `spec` names.

    Raises:
        UsageError: the target has a backward of its own, or a name cannot be found.
    """
    if spec.grad is None:
        require_no_saved(spec.saved)
        from gradcli.backends.registry import with_partner_found

        return with_partner_found(target)
    from gradcli.backends.registry import has_gradient, with_gradient
    from gradcli.spec.resolve import resolve

    if has_gradient(target):
        return target
    with apart(spec.grad, spec.target, Path.cwd()):
        gradient = resolve(spec.grad).object
    return with_gradient(target, gradient, saved=spec.saved)


def require_no_saved(saved: Sequence[str]) -> None:
    """Raise UsageError where values are named for a backward, and no backward is."""
    if saved:
        raise UsageError(
            f"saved lists {', '.join(saved)} as parameters of a backward function, but no backward function is "
            "given: add --grad MODULE:BACKWARD, or the key grad to the spec"
        )


def case_of(spec: CheckSpec, settings: Settings) -> CheckCase:
    """The case of `spec`, whose settings override those of the run; checks named by the run override both."""
    own = replace(
        settings,
        nondeterminism=spec.nondeterminism or settings.nondeterminism,
        device=settings.device or spec.device,
        order=settings.order if spec.order is None else spec.order,
        order_asked=settings.order_asked or spec.order is not None,
        budget=settings.budget if spec.budget is None else spec.budget,
        samples=settings.samples if spec.samples is None else spec.samples,
        only=settings.only or spec.only,
        skip=(*settings.skip, *spec.skip),
        allow=(*spec.allow, *settings.allow),
    )
    run_seed = settings.seed if spec.seed is None else spec.seed
    return CheckCase(spec=spec, settings=own, seed=case_seed(run_seed, spec.target, spec.name))


def case_seed(run_seed: int, target: str, name: str | None) -> int:
    """A case's own seed in [0, 2^32), the same in every process, order and shard of a run.

    Of a file only the name counts, so that the same inputs are drawn wherever its folder lies.
    """
    text = "\0".join([str(run_seed), re.split(r"[/\\]", target)[-1], name or ""])
    return int.from_bytes(hashlib.sha256(text.encode(errors="surrogateescape")).digest()[:4], "big")


def require_checks(names: Iterable[str], where: str) -> None:
    """Refuse the name of a check that does not exist; `where` says where it was given."""
    names = tuple(names)
    if not names:
        return
    from gradcli.checks.registry import CHECKS

    known = [check.name for check in CHECKS]
    for name in names:
        if name not in known:
            if "," in name:
                raise UsageError(f"{where}: there is no check {name!r}; give the option once for each check")
            close = get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            raise UsageError(f"{where}: there is no check {name!r}; {hint}")
