"""Functions of any number of tensors are checked with one more than inference needs."""

import math

import pytest

import gradcli


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("others", "verdict"), [("[*ts[:i], *ts[i + 1 :]]", "PASSED"), ("[ts[i - 1]]", "FAILED")])
def test_a_product_of_any_number_of_factors_is_checked_with_three(framework, others, verdict):
    torch = pytest.importorskip(framework)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *ts):
            ctx.save_for_backward(*ts)
            return math.prod(ts)

        @staticmethod
        def backward(ctx, g):
            ts = ctx.saved_tensors
            return tuple(g * math.prod(eval(others, {"ts": ts, "i": i})) for i in range(len(ts)))

    (case,) = gradcli.check(Product, shrink=False).cases
    assert case.verdict is gradcli.Verdict[verdict], case.findings
