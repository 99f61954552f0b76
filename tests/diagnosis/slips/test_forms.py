"""Forms that are tried thousands at once: each row is the value of its text, and what fits is found."""

import ast

import numpy as np

from gradcli.diagnosis.slips.affine import Influence, fitting
from gradcli.diagnosis.slips.forms import Form
from gradcli.diagnosis.slips.hooks import Hooks, hooked, marks_of, running
from gradcli.diagnosis.slips.rows import products, quotients, spread, squared
from gradcli.diagnosis.slips.trial import compiled_expression
from gradcli.edits.source import written

RNG = np.random.default_rng(5)
NAMES = {"a": RNG.normal(size=(2, 3)), "b": RNG.normal(size=3), "c": RNG.normal(size=()), "d": RNG.normal(size=(3, 2))}
FORMS = [Form(1.0 + number, text, (value,)) for number, (text, value) in enumerate(NAMES.items())]


def test_every_row_is_the_value_of_its_text():
    base = spread(FORMS, [(2, 3)])
    assert [base.spelled(n).text for n in range(len(base))] == ["a", "b", "c"]  # d is not broadcast to the place
    tables = [*squared(base), *quotients(base), *(p for s in squared(base) for p in products(s, base))]
    seen = 0
    for rows in tables:
        for number in range(len(rows)):
            form = rows.spelled(number)
            value = np.broadcast_to(eval(form.text, {}, dict(NAMES)), (2, 3))
            np.testing.assert_allclose(rows.values[number], value.reshape(-1), rtol=1e-14)
            assert form.cost == rows.costs[number]
            seen += 1
    assert seen == 6 + 6 + 18


def test_rows_that_are_not_finite_are_left_out_and_the_others_keep_their_texts():
    zero = Form(1.0, "z", (np.array([0.0, 1.0, 2.0]),))
    (rows,) = quotients(spread([*FORMS[1:2], zero], [(3,)]))
    assert [rows.spelled(n).text for n in range(len(rows))] == ["z / b"]


def influence(matrix, wanted, value, allowed) -> Influence:
    rows = len(matrix)
    return Influence(
        matrix=matrix,
        value=value,
        shapes=(value.shape,),
        lacking=wanted - matrix @ value,
        without=wanted,
        allowed=np.full(rows, allowed),
        owners=np.repeat(np.arange(rows // 3), 3),
    )


def test_a_form_fits_with_its_coefficient_and_one_that_is_off_by_a_thousandth_does_not():
    matrix, right = RNG.normal(size=(6, 4)), RNG.normal(size=4)
    here = influence(matrix, matrix @ (2.5 * right), RNG.normal(size=4), 1e-9)
    off = right * np.array([1.001, 1, 1, 1])
    numbers, values = fitting(np.array([off, right]) @ matrix.T, here.without, here)
    assert numbers.tolist() == [1]
    np.testing.assert_allclose(values, 2.5, rtol=1e-12)


def test_a_place_that_no_value_mends_is_told_from_one_that_some_value_does():
    matrix = np.outer(RNG.normal(size=6), RNG.normal(size=4))  # of rank one
    value = RNG.normal(size=4)
    assert influence(matrix, matrix @ RNG.normal(size=4), value, 1e-9).can_fix
    assert not influence(matrix, RNG.normal(size=6), value, 1e-9).can_fix


def test_a_value_mends_the_inputs_whose_slopes_it_gives_unless_it_spoils_another():
    matrix, right = RNG.normal(size=(6, 4)), RNG.normal(size=4)
    wanted = matrix @ right
    half = np.concatenate([wanted[:3], wanted[3:] + 1.0])
    assert influence(matrix, wanted, right + 1, 1e-9).fixed_by(right, frozenset({0, 1})) == {0, 1}
    assert influence(matrix, wanted, right + 1, 1e-9).fixed_by(right * 1.001, frozenset({0, 1})) == frozenset()
    assert influence(matrix, half, right + 1, 1e-9).fixed_by(right, frozenset({0, 1})) == {0}
    assert influence(matrix, half, right + 1, 1e-9).fixed_by(right, frozenset({0})) == frozenset()


class Arrays:
    """NumPy as a framework of the hooks."""

    @staticmethod
    def is_tensor(value) -> bool:
        return isinstance(value, np.ndarray)

    to_array = staticmethod(np.asarray)


def doubled(x, y):
    total = x * y
    return total + x


def test_codes_are_compared_where_a_place_is_and_what_raises_or_is_equal_is_told():
    own = written(doubled)
    assert own is not None
    place = next(n for n in ast.walk(own.node) if isinstance(n, ast.BinOp) and ast.unparse(n) == "x * y")
    hooks = Hooks()
    code = hooked(own.node, doubled, [place], hooks)
    assert code is not None
    texts = ("x * y", "y * x", "x + y", "x.nothing", "x @ y")
    codes = [compiled_expression(ast.parse(text, mode="eval").body) for text in texts]
    x, y = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])
    with running({doubled: code}), hooks.comparing(0, codes) as values:
        np.testing.assert_array_equal(doubled(x, y), x * y + x)
    marks = [marks_of([each], Arrays) for each in values]
    assert marks[0] == marks[1]
    assert marks[2] not in (marks[0], None)
    assert marks[3:] == [None, None]
