"""Axes by the letters of einsums, in forward and in the functions that it calls."""

import math

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.einsums import einsum_letters, equations
from gradcli.sources import tree_of
from gradcli.verdict import Verdict


def attended(lib, q, k, v):
    """Attention whose einsums stand in a function of their own."""
    scores = lib.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    weights = lib.softmax(scores, -1)
    return lib.einsum("bqk,bke->bqe", weights, v), weights


def attention(lib, base, factor=1.0, *, summed=True):
    class Attention(base):
        @staticmethod
        def forward(ctx, q, k, v):
            out, weights = attended(lib, q, k, v)
            ctx.save_for_backward(q, k, v, weights)
            return out

        @staticmethod
        def backward(ctx, g):
            q, k, v, weights = ctx.saved_tensors
            of_weights = lib.einsum("bqe,bke->bqk", g, v)
            if summed:
                of_weights = of_weights - (of_weights * weights).sum(-1, keepdim=True)
            of_scores = weights * of_weights / math.sqrt(q.shape[-1])
            of_q, of_k = lib.einsum("bqk,bkd->bqd", of_scores, k), lib.einsum("bqk,bqd->bkd", of_scores, q)
            return of_q, of_k, factor * lib.einsum("bqk,bqe->bke", weights, g)

    return Attention


def frameworks():
    yield engine, Function
    torch = pytest.importorskip("torch")
    yield torch, torch.autograd.Function


@pytest.mark.parametrize("which", [0, 1])
def test_arguments_of_a_helper_have_the_axes_of_its_einsums(which):
    lib, base = list(frameworks())[which]
    (case,) = gradcli.check(attention(lib, base), order=1, samples=1).cases
    assert case.verdict is Verdict.PASSED
    shapes = {spec.name: spec.shape for spec in case.inputs}
    assert [len(shapes[name]) for name in "qkv"] == [3, 3, 3]
    assert shapes["k"][1] == shapes["v"][1] != shapes["q"][1]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("change", "wrong"), [({"factor": 1.01}, {"v"}), ({"summed": False}, {"q", "k"})])
@pytest.mark.usefixtures("unexplained")
def test_wrong_gradients_there_fail(which, change, wrong):
    lib, base = list(frameworks())[which]
    (case,) = gradcli.check(attention(lib, base, **change), order=1, samples=1, shrink=False).cases
    assert case.verdict is Verdict.FAILED
    assert {e.input for e in case.evidence if e.verdict is Verdict.FAILED} == wrong


def product(one, other):
    return np.einsum("ij,jk->ik", one, other)


def inner(x, w):
    return product(other=w, one=x)


def two_layers(x, w, v):
    return product(np.maximum(product(x, w), 0), v)


def nested(x, w):
    return inner(x, w)


def implicit(x, y):
    return np.einsum("ij, jk", x, y)


def rescaled(x, y):
    return np.einsum("...j,jk->...k", x, y) + np.einsum(np.sum(x), [0])


def test_letters_follow_arguments_by_position_and_by_name():
    assert einsum_letters(implicit) == {"x": ("i", "j"), "y": ("j", "k")}
    assert einsum_letters(rescaled) == {}
    assert [len(axes) for axes in einsum_letters(nested).values()] == [2, 2]
    assert einsum_letters(nested)["x"][1] == einsum_letters(nested)["w"][0]


def test_two_calls_of_one_helper_share_no_letters():
    found = einsum_letters(two_layers)
    assert found.keys() == {"x", "w", "v"}
    assert found["x"][1] == found["w"][0]
    assert set(found["w"]).isdisjoint(found["v"])


def test_recursion_ends():
    assert einsum_letters(recursive) == {}


def recursive(x):
    return recursive(x)


def contraction(factor):
    """The product by letters, of any number of operands."""

    class Contraction(Function):
        @staticmethod
        def forward(ctx, letters, *operands):
            ctx.letters = letters
            ctx.save_for_backward(*operands)
            return engine.einsum(letters, *operands)

        @staticmethod
        def backward(ctx, g):
            parts, result = ctx.letters.split("->")
            parts, operands = parts.split(","), ctx.saved_tensors
            found = []
            for place, part in enumerate(parts):
                others = [*parts[:place], *parts[place + 1 :]]
                tensors = [*operands[:place], *operands[place + 1 :]]
                own = engine.einsum(f"{','.join([result, *others])}->{part}", g, *tensors)
                found.append(own * factor if place else own)
            return None, *found

    return Contraction


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_an_equation_has_several_operands(factor, unexplained):
    case = gradcli.check(contraction(factor), shrink=False, order=1).cases[0]
    assert case.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED)
    assert [spec.value or spec.shape for spec in case.inputs] == ["ij,jk->ik", (3, 4), (4, 5)]


def test_equations_have_as_many_operands_as_the_call():
    tree = tree_of("einsum(eq, x, 2 * y, *z) + np.einsum('ij', x) + np.einsum(y, [0, 1], [1])")
    assert equations((None, tree), ("eq", "x", "y", "z[0]")) == {"eq": ("ij,jk,kl->il",)}
    assert equations((tree_of("einsum(eq, x)"),), ("eq", "x")) == {"eq": ("ij->j",)}
    assert equations((tree_of("einsum(eq, x, y)"),), ("x", "y")) == {}


def spectrum(lib, base, factor=1.0):
    """Operands that are results: a product of matrices, and a quotient in which axes are put in."""

    class Spectrum(base):
        @staticmethod
        def forward(ctx, points, rates, weights, mixing):
            ctx.save_for_backward(points, rates, weights, mixing)
            mixed = weights @ mixing
            terms = 1 / (1 + (rates[None, :] - points[:, None]) ** 2)
            return lib.einsum("il,wl->wi", mixed, terms)

        @staticmethod
        def backward(ctx, g):
            points, rates, weights, mixing = ctx.saved_tensors
            difference = rates[None, :] - points[:, None]
            terms = 1 / (1 + difference**2)
            of_mixed = lib.einsum("wi,wl->il", g, terms)
            of_difference = -2 * difference * terms**2 * lib.einsum("wi,il->wl", g, weights @ mixing)
            return -of_difference.sum(1), of_difference.sum(0), factor * of_mixed @ mixing.T, weights.T @ of_mixed

    return Spectrum


@pytest.mark.parametrize("factor", [1.0, 1.01])
@pytest.mark.parametrize("which", [0, 1])
def test_results_that_are_operands_tell_the_axes_of_arguments(which, factor):
    lib, base = list(frameworks())[which]
    (case,) = gradcli.check(spectrum(lib, base, factor), order=1, samples=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"weights"})
    shapes = {spec.name: spec.shape for spec in case.inputs}
    assert [len(shape) for shape in shapes.values()] == [1, 1, 2, 2]
    assert len({*shapes["points"], *shapes["weights"], *shapes["mixing"]}) == 4
    assert einsum_letters(spectrum(lib, base).forward)["points"] == ("w",)
