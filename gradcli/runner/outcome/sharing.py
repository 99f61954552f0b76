"""Other Functions that run the code which a patch edits: one that is right must stay so."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

from gradcli.backends.registry import backends_for
from gradcli.cases import CheckSpec, InputsFrom
from gradcli.diagnosis.slips.hooks import running
from gradcli.edits.draft import Draft
from gradcli.edits.helpers import functions_reached, is_users_module
from gradcli.edits.own_copy import is_edited, with_own_copies
from gradcli.errors import GradcliError
from gradcli.frozen import dataclass
from gradcli.results import CheckResult
from gradcli.runner.arguments.prepare import Prepared
from gradcli.runner.outcome.proof import CaseCheck, plain, rebuilt
from gradcli.runner.planning.functions import is_checkable
from gradcli.targets import TargetInfo
from gradcli.verdict import Verdict
from gradcli.watchdog.limit import TimeLimit

_WITH_MODULE = (type, FunctionType)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A Function that runs code which a patch edits."""

    name: str
    target: object
    info: TargetInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Spared:
    """A patch that breaks no other Function, and sentences on these: what is proven of them, and what is not."""

    draft: Draft
    proven: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A Function that passes without a patch and not with it."""

    name: str


def sparing_others(
    ready: Prepared, target: object, draft: Draft, made: Draft, *, check: CaseCheck, limit: TimeLimit | None = None
) -> Spared | Broken | None:
    """The patch `made` of a draft, which is proven for the target, so that no other Function fails by it.

    Where one fails with it, the target's Function gets a copy of the edited code as its own. Where that is not
    possible, and the other passed before, that is what the patch breaks. None if the limit ends before this is known.
    """
    edited = [p.function for p in made.parts if is_edited(p, draft)]
    known = list(_users_of(edited, draft, ready))
    passing, failing, unknown = list[User](), list[User](), list[User]()
    broken: list[User] = []
    for user in (each for each in known if _parts(each.info) != _parts(ready.info) and each.target is not target):
        with running(made.codes):
            after = _checked(ready, rebuilt(ready, user.target, made.codes), user, check)
        before = [] if all(_passes(each, 2) for each in after) else _checked(ready, user.target, user, check)
        if limit is not None and limit.is_over:
            return None
        if any(_is_worse(new, old) for new, old in zip(after, before, strict=False)):
            broken.append(user)
        fails = any(each is not None and each.verdict is Verdict.FAILED for each in after)
        (failing if user in broken or fails else passing if any(map(_passes, after)) else unknown).append(user)
    owner = _owner(draft, known, ready) if failing else None
    own = None if owner is None else with_own_copies(draft, made, owner.target)
    if owner is not None and own is not None:
        return Spared(draft=own, proven=(f"{_that(failing, 'is', 'are')} not changed: {owner.name} gets its own",))
    if broken:
        return Broken(name=broken[0].name)
    unproven = []
    if failing:
        unproven.append(f"{_that(failing, 'fails', 'fail')} with the patch as without it")
    if unknown:
        unproven.append(f"{_that(unknown, 'was', 'were')} not checked: no inputs were found that give a verdict")
    proven = (f"{_that(passing, 'passes', 'pass')} the whole check",) if passing else ()
    return Spared(draft=made, proven=proven, unproven=tuple(unproven))


def _that(users: Sequence[User], one: str, several: str) -> str:
    """The names of Functions, and a verb for one or several of them."""
    names = [user.name for user in users]
    if len(names) == 1:
        return f"{names[0]}, which also runs the edited code, {one}"
    return f"{', '.join(names[:-1])} and {names[-1]}, which also run the edited code, {several}"


def _owner(draft: Draft, known: Sequence[User], ready: Prepared) -> User | None:
    """The one Function whose backward and forward those of the draft are."""
    backward = draft.backward.function
    forward = draft.part("forward").function if draft.has("forward") else ready.info.forward
    own = [each for each in known if each.info.backward is backward and each.info.forward is forward]
    return own[0] if len(own) == 1 else None


def _users_of(edited: Sequence[FunctionType], draft: Draft, ready: Prepared) -> Iterator[User]:
    """The Functions, each once, that run one of the edited functions, as far as their modules have been imported."""
    seen: set[tuple[int, ...]] = set()
    backend = ready.backend.name
    for space in _namespaces([*(p.function for p in draft.parts), ready.info.forward]):
        for name, value in list(space.items()):
            info = _described(value)
            if info is None or info.backend != backend or (parts := _parts(info)) in seen:
                continue
            seen.add(parts)
            if _reaches(info, edited):
                yield User(name=name, target=value, info=info)


def _namespaces(functions: Sequence[Callable[..., Any] | None]) -> Iterator[dict[str, Any]]:
    """The modules of functions, then the user's modules that have something from these."""
    homes = {id(f.__globals__): f.__globals__ for f in functions if isinstance(f, FunctionType)}
    yield from homes.values()
    names = {f.__module__ for f in functions if isinstance(f, FunctionType)}
    for module in list(sys.modules.values()):
        # `type`, not `isinstance`: that asks an object for its class, and a hostile one raises.
        if type(module) is ModuleType and id(vars(module)) not in homes and is_users_module(module):
            values = list(vars(module).values())
            if any((v.__name__ if type(v) is ModuleType else _module_of(v)) in names for v in values):
                yield vars(module)


def _module_of(value: object) -> str | None:
    try:
        return value.__module__ if isinstance(value, _WITH_MODULE) else None
    except Exception:  # whatever an object of the user's raises when it is looked at: it is no Function
        return None


def _described(value: object) -> TargetInfo | None:
    try:
        return backends_for(value)[0].describe(value) if is_checkable(value) else None
    except Exception:  # whatever an object of the user's raises when it is looked at: it is no Function
        return None


def _parts(info: TargetInfo) -> tuple[int, ...]:
    return id(info.forward), id(info.backward), id(info.setup_context)


def _reaches(info: TargetInfo, edited: Sequence[FunctionType]) -> bool:
    """Whether what a Function runs, or may call, is one of the edited functions."""
    own = (info.forward, info.backward, info.setup_context, info.jvp, *info.rules)
    return any(each is function for each in functions_reached(own) for function in edited)


def _checked(ready: Prepared, target: object, user: User, check: CaseCheck) -> list[CheckResult | None]:
    """The results at inputs that are inferred, and at those of the patched target where the names are the same."""
    case = plain(ready.case)
    spec = CheckSpec(target=f"{case.spec.target.rpartition(':')[0]}:{user.name}")
    wanted = [spec]
    own = ready.supply.specs
    if ready.supply.source is not InputsFrom.INFERRED and {s.name for s in own} <= {
        p.name for p in user.info.parameters
    }:
        wanted.append(spec.with_inputs(tuple(own), InputsFrom.SPEC))
    found: list[CheckResult | None] = []
    for each in wanted:
        try:
            found.append(check(target, replace(case, spec=each), named=False))
        except GradcliError:
            found.append(None)
    return found


def _passes(result: CheckResult | None, order: int = 1) -> bool:
    return result is not None and result.verdict is Verdict.PASSED and max(result.orders, default=1) >= order


def _is_worse(after: CheckResult | None, before: CheckResult | None) -> bool:
    """Whether a Function was right before, and is not now, or only at lower orders."""
    return _right_to(after) < _right_to(before)


def _right_to(result: CheckResult | None) -> int:
    """The highest order at which a Function is right, below the lowest at which it fails; 0 where that is unknown."""
    if result is None or result.verdict not in (Verdict.PASSED, Verdict.FAILED):
        return 0
    orders = max(result.orders, default=1)
    if result.verdict is Verdict.PASSED:
        return orders
    return min((each.order - 1 for each in result.evidence if each.verdict is Verdict.FAILED), default=0)
