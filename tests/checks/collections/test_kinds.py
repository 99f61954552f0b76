"""Members of the kinds in `benchmarks/kinds` that were once answered wrongly, and two relatives of each."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the members are PyTorch's as well as the engine's")

from benchmarks.kinds.catalogue import MEMBERS
from benchmarks.kinds.member import Member, twins
from benchmarks.kinds.run import ask_one

CASES = [
    ("16", "lambert by halley halved"),
    ("16", "lambert by halley off by a tenth"),
    ("16", "friction by secants off by a tenth"),
    ("2", "inverse of a cubic"),
    ("2", "fixed point"),
    ("8", "jvp nothing"),
    ("8", "a jvp that is there"),
    ("12", "cache filled once by shape"),
    ("12", "cache filled once by rank"),
    ("12", "slope of the first call"),
    ("13", "cast: grad output in float32"),
    ("13", "cast: grad output in half"),
    ("13", "cast: grad output by parts"),
    ("13", "cast: half"),
    ("17", "a NumPy array, only gradient"),
    ("17", "a NumPy number, only gradient"),
    ("17", "a dictionary, only gradient"),
]


CHOSEN = [member for member in MEMBERS if (member.kind, member.name) in CASES]
TWINS = [
    pytest.param(member, backend, spoilt, id=f"{member.name}, {'wrong' if spoilt else 'right'}")
    for member in CHOSEN
    for backend, spoilt in twins(member)
    if backend == member.backends[len(member.name) % len(member.backends)]
]


def test_all_are_there() -> None:
    assert len(CHOSEN) == len(CASES)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("member", "backend", "spoilt"), TWINS)
def test_it_is_answered_as_said(member: Member, backend: str, spoilt: bool) -> None:
    answer = ask_one(member, backend, spoilt=spoilt, shrink=False)
    assert answer.as_said, answer.detail
