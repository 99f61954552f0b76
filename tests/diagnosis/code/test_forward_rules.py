"""A rule of JAX for forward mode: the outputs that it returns beside their tangents stay as they are."""

import ast
import importlib.util

import numpy as np
import pytest

from gradcli.backends.registry import backend_named
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips import search as search_module
from gradcli.diagnosis.slips.bench import keeps_outputs
from gradcli.diagnosis.slips.hooks import running
from gradcli.diagnosis.slips.search import SlipSearch
from gradcli.diagnosis.slips.slip import Slip
from gradcli.edits.render import Change
from gradcli.edits.statements import unpacked

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


@pytest.fixture
def facts_of(tmp_path):
    def made(tangent):
        file = tmp_path / f"ratio{len(tangent)}{tangent[5]}.py"
        file.write_text(RATIO.format(tangent=tangent))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        backend = backend_named("jax")
        values = [np.array([0.7, 1.3, 2.1]), np.array([1.1, 0.4, -0.9])]
        return Facts(backend.bind(module.ratio, backend.adopt(values)), 0)

    return made


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
