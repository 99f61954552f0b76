"""A rule of JAX for forward mode: corrections leave its outputs as they are, and the line shown computes a tangent."""

import ast
import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from gradcli.backends.registry import backend_named
from gradcli.diagnosis.code.location import Seen, locate
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips import search as search_module
from gradcli.diagnosis.slips.bench import keeps_outputs
from gradcli.diagnosis.slips.hooks import running
from gradcli.diagnosis.slips.search import SlipSearch
from gradcli.diagnosis.slips.slip import Slip
from gradcli.edits.render import Change
from gradcli.edits.statements import unpacked
from gradcli.findings import FindingKind
from gradcli.results import Finding

pytest.importorskip("jax")
RATIO = """
import jax
import jax.numpy as jnp


@jax.custom_jvp
def ratio(x, y):
    return x / y


@ratio.defjvp
def ratio_jvp(primals, tangents):
    x, y = primals
    dx, dy = tangents
    out = ratio(x, y)
    return out, {tangent}
"""
RIGHT, WRONG = "dx / y - dy * x / y**2", "dx / x - dy * y / x**2"


PARTS = """
import jax
import jax.numpy as jnp


@jax.custom_jvp
def parts(x, y):
    return jnp.sin(x * y), jnp.cos(x * y)


@parts.defjvp
def parts_jvp(primals, tangents):
    x, y = primals
    dx, dy = tangents
    s, c = parts(x, y)
    by_y = x + 0.0
    moved = jnp.multiply(y, dx)
    moved += by_y * dy
    of_s = jnp.multiply(moved, c)
    of_c = -jnp.multiply(moved, s)
    return (s, c), (of_s, of_c)
"""


@pytest.fixture
def subject_of(tmp_path):
    def made(source, name):
        file = tmp_path / f"{name}.py"
        file.write_text(source)
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        backend = backend_named("jax")
        values = [np.array([0.7, 1.3, 2.1]), np.array([1.1, 0.4, -0.9])]
        given = zip("xy", backend.adopt(values), strict=True)
        return backend.bind(getattr(module, name), [replace(each, name=own) for own, each in given])

    return made


@pytest.fixture
def facts_of(subject_of):
    return lambda tangent: Facts(subject_of(RATIO.format(tangent=tangent), "ratio"), 0)


def prepared(facts):
    search = SlipSearch(facts)
    search._tried = search._prepared(search.draft)
    return search, search.draft.edited.node


def test_a_correction_that_changes_the_outputs_is_refused(facts_of):
    facts = facts_of(WRONG)
    search, definition = prepared(facts)
    change, other = next(iter(unpacked(definition))).changes
    slip = Slip(cost=2, number=None, old=change.old, new=change.new, fixes=frozenset({0, 1}), more=(other,))
    assert search._tried.trial.wrong == {0, 1}
    assert not search.proves(slip)
    with running(search.draft.codes_with(slip.changes)):
        assert not keeps_outputs(facts, "backward")
        assert all(facts.explains(place, facts.of(place)) for place in range(2))  # the tangents alone are right


def test_the_tangents_are_searched_and_not_the_outputs(facts_of):
    facts = facts_of(WRONG)
    search, definition = prepared(facts)
    outputs, tangents = definition.body[-1].value.elts
    for position in range(2):
        places = search_module._expressions(search.draft, facts, position)
        assert tangents in places
        assert outputs not in places
    with running(search.draft.codes_with([Change(tangents, ast.parse(RIGHT, mode="eval").body)])):
        assert keeps_outputs(facts, "backward")


def test_the_right_rule_shows_no_mistake(facts_of):
    search, _ = prepared(facts_of(RIGHT))
    assert not search._tried.trial.wrong


@pytest.mark.parametrize(
    ("name", "outputs", "marked"),
    [
        ("x", (0, 1), "moved = jnp.multiply(y, dx)"),
        ("y", (0, 1), "moved += by_y * dy"),
        ("x", (0,), "of_s = "),
        ("y", (1,), "of_c = "),
    ],
)
def test_the_line_shown_is_where_the_tangents_of_the_wrong_outputs_are_computed(subject_of, name, outputs, marked):
    subject = subject_of(PARTS, "parts")
    finding = Finding(kind=FindingKind.WRONG_GRADIENT, message=f"{name}: wrong", input=name)
    found = locate(finding, subject, Seen(outputs=outputs))
    assert marked in PARTS.splitlines()[found.location.line - 1]


@pytest.mark.parametrize(("name", "marked"), [("x", "moved = jnp.multiply"), ("y", "by_y = x + 0.0")])
def test_a_term_with_the_tangent_of_another_input_is_left_out(subject_of, name, marked):
    source = PARTS.replace("    return (s, c), (of_s, of_c)", "    return s, moved").replace(
        "(x * y), jnp.cos(x * y)", "(x * y)"
    )
    source = source.replace("s, c = parts(x, y)", "s = c = parts(x, y)")
    finding = Finding(kind=FindingKind.WRONG_GRADIENT, message=f"{name}: wrong", input=name)
    found = locate(finding, subject_of(source, "parts"))
    assert marked in source.splitlines()[found.location.line - 1]
