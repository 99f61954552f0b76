"""Factors and terms are fitted at probes that need not have the same number of axes."""

import ast

import numpy as np
import pytest

from gradcli.edits.idiom import Idiom
from gradcli.edits.scope import Atom, Scope
from gradcli.fix.fitting import Library


def library(*shapes: tuple[int, ...], from_last: bool) -> tuple[Library, list[dict[str, np.ndarray]]]:
    generator = np.random.default_rng(0)
    values = [{name: generator.normal(size=shape) for name in ("g", "x")} for shape in shapes]
    scopes = [
        Scope(
            atoms=tuple(
                Atom(text=name, shape=each[name].shape, is_tensor=True, is_cotangent=name == "g") for name in each
            ),
            values=each,
        )
        for each in values
    ]
    idiom = Idiom(by_methods=False, namespace="np", from_last=from_last)
    return Library(scopes, idiom, {"np": np}, np.asarray, {"g"}), values


@pytest.mark.parametrize("shapes", [((3, 4), (5,)), ((5,), (3, 4)), ((2, 3, 4), (3, 4))])
@pytest.mark.parametrize("from_last", [True, False])
def test_a_sum_along_the_last_axis_is_found_where_probes_have_other_numbers_of_axes(shapes, from_last):
    made, values = library(*shapes, from_last=from_last)
    wanted = [(each["g"] * each["x"]).sum(-1, keepdims=True) + 0 * each["x"] for each in values]
    fits = [fit for form in made.terms() for fit in made.fitted(form, wanted)]
    assert "(g * x).sum(-1, True)" in {ast.unparse(fit.node).replace("keepdims=", "") for fit in fits}


@pytest.mark.parametrize("from_last", [True, False])
def test_a_sum_that_no_axis_has_at_every_probe_is_not_found(from_last):
    made, values = library((3, 4), (5,), from_last=from_last)
    wanted = [(each["g"] * each["x"]).sum(0, keepdims=True) + 0 * each["x"] for each in values]
    assert not [fit for form in made.terms() for fit in made.fitted(form, wanted)]
