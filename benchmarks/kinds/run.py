"""Ask gradcli about members, and compare what it says with what is to be said."""

from __future__ import annotations

import importlib
import io
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import gradcli
from benchmarks.kinds.member import Case, Member, twins


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was said of a twin."""

    member: Member
    backend: str
    spoilt: bool
    wanted: str
    verdict: str
    names: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    detail: str

    @property
    def as_said(self) -> bool:
        """Whether it is what was to be said."""
        before, _, note = self.wanted.partition(": ")
        verdict, *names = before.split()
        return (
            self.verdict == verdict
            and (not names or any(name in names for name in self.names))
            and (verdict != "failed" or self.member.kind == "17" or bool(self.names))
            and any(note in said for said in (*self.notes, self.detail))
        )


def namespace(backend: str) -> Any:
    """The module that a backend is programmed in."""
    return importlib.import_module({"engine": "gradcli.engine", "jax": "jax", "numpy": "numpy"}.get(backend, backend))


def ask(member: Member) -> list[Answer]:
    """The answers for all twins of a member."""
    return [ask_one(member, backend, spoilt=spoilt) for backend, spoilt in twins(member)]


def ask_one(member: Member, backend: str, *, spoilt: bool, **options: Any) -> Answer:
    """The answer for one twin, with these options of the check beside its own."""
    wanted = member.wrong if spoilt else member.right
    assert wanted is not None
    made = member.build(namespace(backend), spoilt)
    found: Case = made if isinstance(made, Case) else Case(target=made)
    started = time.process_time()
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    detail = ""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            if callable(found.options.get("ask")):
                verdict, names, notes = found.options["ask"]()
            else:
                report = gradcli.check(found.target, found.inputs, **options, **found.options)
                (case,) = report.cases
                verdict, notes = str(case.verdict.value), tuple(map(str, case.notes))
                names = tuple(str(f.kind.value) for f in case.findings)
                detail = str(report)
        except gradcli.errors.GradcliError as error:
            verdict, detail = "refused", f"{type(error).__name__}: {error}"
    return Answer(
        member=member,
        backend=backend,
        spoilt=spoilt,
        wanted=wanted,
        verdict=verdict,
        names=names,
        notes=notes,
        seconds=time.process_time() - started,
        detail=detail,
    )


def line(answer: Answer) -> str:
    """One row of the table."""
    twin = "wrong" if answer.spoilt else "right"
    said = " ".join([answer.verdict, *answer.names])
    mark = "as said" if answer.as_said else f"NOT {answer.wanted!r}"
    mark += "  SLOW" if answer.seconds > 20 else ""
    made = f"{answer.member.kind:4s}{answer.member.name:52s}{answer.backend:8s}{twin:7s}"
    return f"{made}{answer.seconds:6.2f} s  {said:40s} {mark}"
