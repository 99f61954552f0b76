"""The corpus of mistakes by another hand: each case is what it says, and right twins and wrong ones do differ."""

import ast
from collections import Counter

import pytest

from benchmarks.fix.other_hand.record import Family, changed_nodes, flags_of, replaced, source_of
from benchmarks.fix_corpus import naming, patching
from gradcli.findings import FindingKind

MODULE = '''"""Docstring."""
import math
import os

from somewhere import Family

PLANT = Family()
HALF = 0.5


def helper(x):
    return HALF * x


class Wanted:
    def forward(self, x):
        return helper(x) + math.pi


PLANT("Wanted", "x=3")


class Other:
    pass


Wanted.register(helper)
Other.register(helper)
'''


def test_the_source_of_a_function_has_what_it_uses_and_nothing_else():
    text = source_of(MODULE, ["Wanted"])
    for kept in ("import math", "import os", "HALF = 0.5", "def helper", "class Wanted", "Wanted.register(helper)"):
        assert kept in text
    for left in ("Family", "PLANT", "Other", "Docstring"):
        assert left not in text
    ast.parse(text)


def test_a_mistake_is_planted_at_exactly_one_place():
    assert replaced("a = b + c\n", "b + c", "b - c", "here") == "a = b - c\n"
    with pytest.raises(ValueError, match="here: 'b' occurs 2 times"):
        replaced("a = b + b\n", "b", "c", "here")
    with pytest.raises(ValueError, match="occurs 0 times"):
        replaced("a = b\n", "c", "d", "here")


def test_flags_have_sizes_for_letters_and_braces():
    given = flags_of("x=NxM index=K,domain=indices,high=M scale:0.5 y={2*N}xL", {"N": 3, "M": 4, "K": 5, "L": 2})
    assert given == [
        ("-i", "x=3x4"),
        ("-i", "index=5,domain=indices,high=4"),
        ("-a", "scale=0.5"),
        ("-i", "y=6x2"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "nodes"),
    [("y = a * b", "y = a * b", 0), ("y = a * b", "y = a + b", 2), ("f(a, b)", "f(b, a)", 2), ("-x", "x", 2)],
)
def test_a_change_is_counted_in_nodes(before, after, nodes):
    assert changed_nodes(before, after) == nodes


def test_what_a_row_comes_to():
    row = {"verdict": "failed", "named": ["wrong-sign"], "accepted": ["wrong-sign"], "patched": True, "differs": []}
    row |= {"recomputes": False, "nodes": 2, "human_nodes": 2}
    assert (naming(row), patching(row)) == ("right", "short")
    assert naming(row | {"accepted": ["wrong-factor"]}) == "false"
    assert naming(row | {"accepted": ["wrong-factor"], "named": ["wrong-gradient"]}) == "general"
    assert naming(row | {"verdict": "passed", "named": []}) == "missed"
    assert naming(row | {"verdict": "inconclusive", "named": []}) == "open"
    assert patching(row | {"nodes": 3}) == "longer"
    assert patching(row | {"differs": ["second"]}) == "WRONG"
    assert patching(row | {"recomputes": True}) == "recomputes"
    assert patching(row | {"patched": False}) == "none"


def test_two_mistakes_of_a_kind_have_two_names(tmp_path):
    file = tmp_path / "family.py"
    file.write_text("def f(x):\n    return 2 * x\n")
    family = Family("some", "torch", str(file))
    family("f", "x=3", ("k", "wrong-sign", "x", "2", "-2"), ("k", "wrong-factor", "x", "2", "3"))
    assert [case.name for case in family.cases] == ["some/f/k", "some/f/k-2"]
    assert family.cases[0].wrong.strip() == "def f(x):\n    return -2 * x"


def test_the_corpus_is_large_and_accepts_only_findings_that_exist():
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    from benchmarks.fix.other_hand import cases

    found = cases()
    assert len(found) >= 400
    assert len({case.kind for case in found}) >= 30
    assert {name for case in found for name in case.accepted} <= {kind.value for kind in FindingKind}
    assert all(case.accepted for case in found)
    assert all(case.wrong != case.right for case in found)
    shares = Counter(case.backend for case in found)
    assert min(shares.values()) >= 50
    assert set(shares) == {"torch", "engine", "jax", "numpy"}


def test_each_public_report_accepts_names_that_exist_and_differs_from_its_right_twin():
    pytest.importorskip("torch")
    from benchmarks.fix.reported import cases as reported_cases

    assert len(reported_cases()) > 30
    for case in reported_cases():
        assert case.accepted <= {kind.value for kind in FindingKind}
        assert changed_nodes(case.wrong, case.right) > 0
