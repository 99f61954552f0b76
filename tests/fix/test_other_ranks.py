"""A patch holds where inputs have another number of axes, as far as forward and backward take such inputs."""

import pytest

from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import patched
from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.edits.draft import draft_for
from gradcli.edits.idiom import idiom_of
from gradcli.runner.arguments.prepare import Prepared, prepared
from gradcli.runner.case import check_object
from gradcli.runner.outcome.ranks import WRONG_THERE, OtherRanks
from gradcli.runner.planning.plan import plan
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve

TEXT = '''from gradcli import engine as torch
from gradcli.engine.autograd import Function


def level(v):
    return v.mean(dim=AXIS)


class Energy(Function):
    """Half of the mean square.DOCUMENTED"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return level(x * x) / 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return BACKWARD
'''
LACKING = "g[..., None] * x"


def source(backward: str, *, axis: int = -1, documented: str = "") -> str:
    return TEXT.replace("AXIS", str(axis)).replace("BACKWARD", backward).replace("DOCUMENTED", documented)


def ready_for(text: str, folder) -> tuple[Prepared, object]:
    (folder / "own.py").write_text(text)
    target = f"{folder / 'own.py'}:Energy"
    matrix = (InputSpec(name="x", kind="tensor", shape=(3, 4)),)
    (case,) = plan([CheckSpec(target=target).with_inputs(matrix, InputsFrom.SPEC)], Settings())
    found = resolve(target).object
    return prepared(found, case), found


def holds(before: str, after: str, folder) -> bool:
    ready, found = ready_for(before, folder)
    draft = draft_for(ready.info)
    assert draft is not None
    made = draft.at(after)
    assert made is not None
    return OtherRanks(ready=ready, target=found, check=check_object).hold(made.codes)


@pytest.mark.parametrize(
    ("axis", "size", "right"),
    [(-1, "x.shape[-1]", True), (-1, "x.shape[1]", False), (-1, "x[0].numel()", False), (-1, "x.shape[-2]", False)],
)
def test_an_edit_for_a_matrix_is_refused_where_backward_takes_other_numbers_of_axes(axis, size, right, tmp_path):
    before, after = (source(f"{LACKING}{more}", axis=axis) for more in ("", f" / {size}"))
    assert holds(before, after, tmp_path) is right


@pytest.mark.parametrize(
    ("lacking", "documented"),
    [(LACKING, " x: (B, N)"), ("g.unsqueeze(1).expand(len(x), x.shape[1]) * x", "")],
)
def test_a_backward_for_matrices_alone_may_count_axes_from_the_first(lacking, documented, tmp_path):
    before, after = (source(f"{lacking}{more}", documented=documented) for more in ("", " / x.shape[1]"))
    assert holds(before, after, tmp_path)


@pytest.mark.parametrize("axis", [-1, 1])
def test_axes_are_counted_as_in_a_helper_where_backward_and_forward_name_none(axis, tmp_path):
    ready, _ = ready_for(source(LACKING, axis=axis), tmp_path)
    draft = draft_for(ready.info)
    assert draft is not None
    assert idiom_of(draft, "engine").from_last is (axis < 0)


def test_a_lacking_size_is_read_along_the_axis_of_a_helper(tmp_path):
    text = source(LACKING)
    result, _ = patched(Specimen("own", "", "engine", "Energy", text, text, frozenset(), inputs="x=nk"), tmp_path)
    assert result.patch is not None
    assert f"return {LACKING} / x.shape[-1]" in result.patch.after


def test_a_patch_that_is_right_for_matrices_alone_says_so(tmp_path):
    """`x.numel()` is the product of the first two sizes of a matrix only."""
    text = source("g * x").replace("level(x * x) / 2", "level(level(x * x)) / 2").replace("dim=-1", "dim=0")
    result, _ = patched(Specimen("own", "", "engine", "Energy", text, text, frozenset(), inputs="x=nk"), tmp_path)
    assert result.patch is not None
    assert "return g * x / x.numel()" in result.patch.after
    assert WRONG_THERE in result.patch.unproven


MEAN = """import FRAMEWORK as torch
from FRAMEWORK.autograd import Function


class Energy(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a - b).sin().mean()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        t = (a - b).cos()
        t = t / COUNT
        return g * t, -g * t
"""


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("count", "right"), [("t.numel()", True), ("a.numel()", False), ("b.numel()", False)])
def test_an_edit_holds_where_inputs_are_broadcast(framework, count, right, tmp_path):
    pytest.importorskip(framework.partition(".")[0])
    text = MEAN.replace("FRAMEWORK", framework)
    file = tmp_path / f"own_{framework.partition('.')[0]}.py"
    file.write_text(text.replace("COUNT", "a.shape[-1]"))
    given = tuple(InputSpec(name=name, kind="tensor", shape=(3, 4)) for name in "ab")
    (case,) = plan([CheckSpec(target=f"{file}:Energy").with_inputs(given, InputsFrom.SPEC)], Settings())
    found = resolve(f"{file}:Energy").object
    ready = prepared(found, case)
    draft = draft_for(ready.info)
    assert draft is not None
    made = draft.at(text.replace("COUNT", count))
    assert made is not None
    assert OtherRanks(ready=ready, target=found, check=check_object).hold(made.codes) is right


def test_the_entries_of_what_is_averaged_are_counted(tmp_path):
    text = MEAN.replace("FRAMEWORK", "gradcli.engine").replace("COUNT", "a.shape[-1]")
    result, _ = patched(Specimen("own", "", "engine", "Energy", text, text, frozenset(), inputs="a=nm b=nm"), tmp_path)
    assert result.patch is not None
    assert "t = t / t.numel()" in result.patch.after
