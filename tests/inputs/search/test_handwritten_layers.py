"""Inputs of layers that people write by hand: gates cut from one product, running statistics, queries and keys."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.equal_parts import parts_of, unpacked_parts
from gradcli.inputs.search.error_messages import lacked_by_a_constant
from gradcli.results import CheckResult
from gradcli.verdict import Verdict


def sigmoid_slope(s: Any) -> Any:
    return s * (1 - s)


class Lstm(Function):
    """One step of an LSTM: four gates."""

    @staticmethod
    def forward(ctx: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        gates = x @ w_ih.t() + b_ih + h @ w_hh.t() + b_hh
        i, f, g, o = gates.chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c_new = f * c + i * g
        ctx.save_for_backward(x, h, c, w_ih, w_hh, i, f, g, o, c_new)
        return o * c_new.tanh(), c_new

    @staticmethod
    def backward(ctx: Any, gh: Any, gc: Any) -> Any:
        x, h, c, w_ih, w_hh, i, f, g, o, c_new = ctx.saved_tensors
        t = c_new.tanh()
        gc = gc + gh * o * (1 - t * t)
        of_gates = gc * g * sigmoid_slope(i), gc * c * sigmoid_slope(f), gc * i * (1 - g * g), gh * t * sigmoid_slope(o)
        d = engine.cat(of_gates, 1)
        return d @ w_ih, d @ w_hh, gc * f, d.t() @ x, d.t() @ h, d.sum(0), d.sum(0)


class Gru(Function):
    """One step of a GRU: three gates from each of two products."""

    @staticmethod
    def forward(ctx: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        ir, iz, i_n = (x @ w_ih.t() + b_ih).chunk(3, 1)
        hr, hz, hn = (h @ w_hh.t() + b_hh).chunk(3, 1)
        r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
        n = (i_n + r * hn).tanh()
        ctx.save_for_backward(x, h, w_ih, w_hh, r, z, n, hn)
        return (1 - z) * n + z * h

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, h, w_ih, w_hh, r, z, n, hn = ctx.saved_tensors
        dn, dz = g * (1 - z) * (1 - n * n), g * (h - n) * sigmoid_slope(z)
        dr = dn * hn * sigmoid_slope(r)
        di, dh = engine.cat([dr, dz, dn], 1), engine.cat([dr, dz, dn * r], 1)
        return di @ w_ih, g * z + dh @ w_hh, di.t() @ x, dh.t() @ h, di.sum(0), dh.sum(0)


class Joined(Function):
    """Three gates of a state and an input side by side."""

    @staticmethod
    def forward(ctx: Any, input: Any, weights: Any, bias: Any, old_h: Any, old_cell: Any) -> Any:
        both = engine.cat([old_h, input], 1)
        i, o, c = (both @ weights.t() + bias).chunk(3, 1)
        i, o, c = i.sigmoid(), o.sigmoid(), c.tanh()
        cell = old_cell + c * i
        ctx.save_for_backward(both, weights, i, o, c, cell)
        return cell.tanh() * o, cell

    @staticmethod
    def backward(ctx: Any, gh: Any, gc: Any) -> Any:
        both, weights, i, o, c, cell = ctx.saved_tensors
        t = cell.tanh()
        d_cell = gh * o * (1 - t * t) + gc
        d = engine.cat([d_cell * c * sigmoid_slope(i), gh * t * sigmoid_slope(o), d_cell * i * (1 - c * c)], 1)
        d_both, hidden = d @ weights, gh.shape[1]
        return d_both[:, hidden:], d.t() @ both, d.sum(0), d_both[:, :hidden], d_cell


class Normalised(Function):
    """Batch normalisation, with running statistics that only the other mode uses."""

    @staticmethod
    def forward(
        ctx: Any, x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool = True
    ) -> Any:
        mean, var = (x.mean(0), x.var(0, unbiased=False)) if training else (running_mean, running_var)
        inverse = 1 / (var + 1e-5).sqrt()
        normal = (x - mean) * inverse
        ctx.save_for_backward(normal, weight, inverse)
        ctx.training = training
        return normal * weight + bias

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        normal, weight, inverse = ctx.saved_tensors
        d = g * weight
        if ctx.training:
            d = d - d.mean(0) - normal * (d * normal).mean(0)
        return d * inverse, (g * normal).sum(0), g.sum(0), None, None, None


class Differentiated(Normalised):
    """The statistics have a gradient where they are not those of the batch."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        normal, weight, inverse = ctx.saved_tensors
        dx, dw, db, *_ = Normalised.backward(ctx, g)
        if ctx.training:
            return dx, dw, db, None, None, None
        return dx, dw, db, -dx.sum(0), -0.5 * (g * weight * normal).sum(0) * inverse**2, None


class WronglyDifferentiated(Normalised):
    """The gradient of the variance has one factor too many."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        normal, weight, inverse = ctx.saved_tensors
        dx, dw, db, *_ = Normalised.backward(ctx, g)
        if ctx.training:
            return dx, dw, db, None, None, None
        return dx, dw, db, -dx.sum(0), -0.5 * (g * weight * normal).sum(0) * inverse**3, None


class AlwaysTraining(Normalised):
    """Right in training alone."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        ctx.training = True
        return Normalised.backward(ctx, g)


class Attention(Function):
    """Queries, keys and values: k is no number beside the two."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, scale: float = 0.5) -> Any:
        a = (q @ k.transpose(-1, -2) * scale).softmax(-1)
        ctx.save_for_backward(q, k, v, a)
        ctx.scale = scale
        return a @ v

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        q, k, v, a = ctx.saved_tensors
        da = g @ v.transpose(-1, -2)
        ds = a * (da - (da * a).sum(-1, keepdim=True)) * ctx.scale
        return ds @ k, ds.transpose(-1, -2) @ q, a.transpose(-1, -2) @ g, None


def checked(function: Any) -> tuple[CheckResult, dict[str, tuple[int, ...]]]:
    result = gradcli.check(function, order=1, samples=1, shrink=False, only=["returns", "gradient"]).cases[0]
    return result, {spec.name: spec.shape for spec in result.inputs if spec.shape is not None}


@pytest.mark.parametrize(("cell", "gates", "state"), [(Lstm, 4, "c"), (Gru, 3, "h")])
def test_a_product_is_as_long_as_all_gates_together(cell: Any, gates: int, state: str) -> None:
    result, shapes = checked(cell)
    assert result.verdict.value == "passed", result
    assert shapes["w_hh"] == (gates * shapes[state][-1], shapes["h"][1])
    assert shapes["w_ih"] == (gates * shapes[state][-1], shapes["x"][1])


def test_a_product_of_two_inputs_side_by_side_is_found() -> None:
    result, shapes = checked(Joined)
    assert result.verdict.value == "passed", result
    hidden = shapes["old_h"][1]
    assert shapes["weights"] == (3 * hidden, hidden + shapes["input"][1])


def test_running_statistics_need_not_change_the_outputs_and_have_no_gradient() -> None:
    result, shapes = checked(Normalised)
    assert result.verdict.value == "passed", result
    assert shapes["weight"] == shapes["bias"] == shapes["running_mean"] == shapes["running_var"] == shapes["x"][1:]
    assert {spec.name for spec in result.inputs if spec.requires_grad is False} == {"running_mean", "running_var"}


def test_running_statistics_are_checked_where_backward_has_a_gradient_for_them() -> None:
    right = checked(Differentiated)[0]
    assert right.verdict.value == "passed", right
    assert not any(spec.requires_grad is False for spec in right.inputs)
    wrong = checked(WronglyDifferentiated)[0]
    assert wrong.verdict.value == "failed"
    assert {finding.input for finding in wrong.findings} == {"running_var"}


def test_the_mode_that_was_left_out_is_a_case_too() -> None:
    assert checked(AlwaysTraining)[0].verdict.value == "failed"


def test_k_is_a_tensor_beside_q_and_v() -> None:
    result, shapes = checked(Attention)
    assert result.verdict.value == "passed", result
    assert shapes["q"][-1] == shapes["k"][-1]
    assert shapes["k"][-2] == shapes["v"][-2]


def test_a_number_that_lacks_an_attribute_is_no_misspelt_name() -> None:
    errors = []
    for text in ("(2).transpose", "object().transpose"):
        try:
            eval(text)
        except AttributeError as error:
            errors.append(error)
    assert [lacked_by_a_constant(error) for error in errors] == [True, False]


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("gates.chunk(4, 1)", (4,)),
        ("torch.chunk(gates, 3, dim=1)", (3,)),
        ("i, f, o, u = g[:, :H], g[:, H:2*H], g[:, 2*H:3*H], g[:, 3*H:]", (3, 4)),
        ("x.chunk(40)", ()),
        ("2 * x", ()),
        ("def half(x):\n    return 0.5 * x * x", ()),
        ("def twice(x):\n    2 * x", ()),
        ("z[:, 2 * x.shape[1]:]", (2, 3)),
        ("g[..., 0 : 2 * self.n]", (2, 3)),
    ],
)
def test_source_tells_into_how_many_parts_an_axis_is_cut(source: str, parts: tuple[int, ...]) -> None:
    assert parts_of(source) == parts


def test_a_failed_unpacking_tells_too() -> None:
    assert unpacked_parts("not enough values to unpack (expected 4, got 3)") == (4,)


def centred(is_right: bool, annotation: object) -> type[Function]:
    """x less its mean over the last axes."""

    class Centred(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, normalized_shape: Any) -> Any:
            ctx.axes = tuple(range(-len(normalized_shape), 0))
            return x - x.mean(ctx.axes, keepdim=True)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g - g.mean(ctx.axes if is_right else -2, keepdim=True), None

    Centred.forward.__annotations__["normalized_shape"] = annotation
    return Centred


@pytest.mark.parametrize("annotation", ["Any", "tuple[int, ...]", "Sequence[int]"])
@pytest.mark.usefixtures("unexplained")
def test_a_shape_to_be_normalised_is_a_tuple_of_the_last_sizes(annotation: str) -> None:
    case = gradcli.check(centred(True, annotation), shrink=False).cases[0]
    assert case.verdict is gradcli.Verdict.PASSED
    assert [spec.as_flag() for spec in case.inputs] == ["-i x=3x4", "-a 'normalized_shape=(4,)'"]
    assert gradcli.check(centred(False, annotation), shrink=False).verdict is gradcli.Verdict.FAILED


def test_a_gated_layer_takes_few_tries():
    class Gated(Function):
        calls = 0

        @staticmethod
        def forward(ctx, x, weight, back):
            Gated.calls += 1
            ctx.save_for_backward(x, weight, back)
            value, gate = (x @ weight.T).chunk(2, -1)
            return (value * gate) @ back.T

        @staticmethod
        def backward(ctx, g):
            x, weight, back = ctx.saved_tensors
            value, gate = (x @ weight.T).chunk(2, -1)
            h = g @ back
            parts = engine.cat([h * gate, h * value], -1)
            rows = x.flatten(0, -2)
            return parts @ weight, parts.flatten(0, -2).T @ rows, g.flatten(0, -2).T @ (value * gate).flatten(0, -2)

    (case,) = gradcli.check(Gated).cases
    assert case.verdict is Verdict.PASSED, case.findings
    assert Gated.calls < 1000
