"""What documentation says of `*masses` holds for each of them, and axes that are as long as there are masses."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.entries_read import with_counts
from gradcli.targets import Parameter, TargetInfo
from gradcli.verdict import Verdict


def attraction(ns: Any, words: str, factor: float = 1, *, swaps: bool = False) -> type:
    """The energy of two bodies; backward has a factor for the positions, or the masses' gradients swapped."""

    class Pair(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, pos: Any, *masses: Any) -> Any:
            one, other = masses
            d = pos[0] - pos[1]
            ctx.save_for_backward(pos, one, other)
            return -one * other / ((d * d).sum() + 0.01) ** 0.5

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            pos, one, other = ctx.saved_tensors
            d = pos[0] - pos[1]
            squared = (d * d).sum() + 0.01
            force = factor * (g * one * other).sum() * d / squared**1.5
            of_mass = -g / squared**0.5
            masses = (one, other) if swaps else (other, one)
            return ns.stack([force, -force]), of_mass * masses[0], of_mass * masses[1]

    Pair.__doc__ = words
    return Pair


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("words", "shape", "domain"),
    [
        ("pos: (2, D); masses: two scalars", (), "normal"),
        ("pos: (2, D)\nmasses: positive scalars", (), "positive"),
        ("pos (2, D), masses (K,)", (4,), "normal"),
    ],
)
@pytest.mark.parametrize(
    ("mistake", "verdict"),
    [({}, Verdict.PASSED), ({"factor": 1.01}, Verdict.FAILED), ({"swaps": True}, Verdict.FAILED)],
)
@pytest.mark.usefixtures("unexplained")
def test_each_is_as_documented(
    ns: Any, words: str, shape: tuple[int, ...], domain: str, mistake: Any, verdict: Verdict
) -> None:
    (case,) = gradcli.check(attraction(ns, words, **mistake), order=1, shrink=False).cases
    shapes = [("pos", (2, 3)), ("masses[0]", shape), ("masses[1]", shape)]
    assert [(spec.name, spec.shape) for spec in case.inputs] == shapes
    assert {spec.domain for spec in case.inputs[1:]} == {domain}
    assert case.verdict is verdict, (case.findings, case.error)


@pytest.mark.parametrize(
    ("line", "words", "found"),
    [
        ("sum(c * m for c, m in zip(w, maps))", "", {"w": (3, "...")}),
        ("sum(w[i] * m for i, m in enumerate(maps))", "", {"w": (3, "...")}),
        ("sum(w[i] * maps[i] for i in range(len(maps)))", "", {"w": (3, "...")}),
        ("sum(w[:, i] * m for i, m in enumerate(maps))", "", {"w": ("w_0", 3, "...")}),
        ("sum(w[..., i] * m for i, m in enumerate(maps))", "", {"w": ("...", 3)}),
        ("sum(w[i] * m for i, m in enumerate(maps))", "w: (R, D)", {"w": (3, "D")}),
        ("mixed(w, maps)", "w: (R,), maps: R tensors (D, R)", {"w": (3,), "maps[0]": ("D", 3)}),
        ("mixed(w, maps)", "w: (R,), where R is the number of maps", {"w": (3,)}),
        ("mixed(w, maps)", "w: (R,), maps: several tensors (R, D)", {"w": ("R",), "maps[0]": ("R", "D")}),
        ("sum(w[0] * m for i, m in enumerate(maps))", "", {}),
        ("sum(w[i] for i in range(len(w)))", "", {}),
    ],
)
def test_axes_as_long_as_there_are_arguments(line: str, words: str, found: dict[str, tuple[int | str, ...]]) -> None:
    names = ("w", "maps[0]", "maps[1]", "maps[2]")
    parameters = (Parameter(name="w"), Parameter(name="maps", variadic=True))
    info = TargetInfo(
        name="mix", backend="engine", parameters=parameters, forward=None, backward=None, documentation=words
    )
    said = documented_shapes(("w", "maps"), "", words)
    shapes = {name: said[name.partition("[")[0]] for name in names[:2] if name.partition("[")[0] in said}
    source = f"def forward(ctx, w, *maps):\n    return {line}\n"
    numbered, counted = with_counts(info, names, source, shapes)
    assert {**numbered, **counted} == found


def mixture(ns: Any, words: str, *, matrix: bool = False, turned: bool = False, factor: float = 1) -> type:
    """A sum of tensors with weights; backward may take the weights in turned order, or have a factor for theirs."""

    class Mixture(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, w: Any, *maps: Any) -> Any:
            shares = ns.exp(w)
            ctx.save_for_backward(w, *maps)
            total = 0
            for number, each in enumerate(maps):
                total = total + shares[number] * each
            return total

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            w, *maps = ctx.saved_tensors
            parts = ns.stack([(g * each).sum(0) if matrix else (g * each).sum() for each in maps])
            shares = ns.exp(w)
            of_maps = [g * shares[-1 - n if turned else n] for n in range(len(maps))]
            return (factor * shares * parts, *of_maps)

    Mixture.__doc__ = words
    return Mixture


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("words", "matrix"), [("", False), ("", True), ("w: (K,)\nmaps: K tensors of one shape", False), ("w (R, D)", True)]
)
@pytest.mark.parametrize(
    ("mistake", "wrong"), [({}, set()), ({"factor": 1.01}, {"w"}), ({"turned": True}, {"maps[0]", "maps[1]"})]
)
def test_a_weight_for_each_of_them(ns: Any, words: str, matrix: bool, mistake: Any, wrong: set[str]) -> None:
    """Forward runs with more weights than maps, and ignores the rest."""
    (case,) = gradcli.check(mixture(ns, words, matrix=matrix, **mistake), order=1, shrink=False).cases
    shape = case.inputs[0].shape or ()
    assert (shape[0], len(shape)) == (len(case.inputs) - 1, 1 + matrix)
    assert {finding.input for finding in case.findings} == wrong, (case.findings, case.error)
    assert case.verdict is (Verdict.FAILED if wrong else Verdict.PASSED)
