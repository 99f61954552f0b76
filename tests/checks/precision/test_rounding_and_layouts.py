"""Right Functions that a careless battery would fail: rounding, memory order, NaN, empty outputs; and PyTorch's own."""

import numpy as np
import pytest

import gradcli
from gradcli.backends.registry import backend_named
from gradcli.checks.battery import run_battery
from gradcli.findings import FindingKind
from gradcli.results import judge
from gradcli.settings import Settings
from gradcli.verdict import Reason, Verdict

torch = pytest.importorskip("torch", reason="these are PyTorch's operators")


def leaf(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).requires_grad_()


def case(function, *inputs, **options):
    return gradcli.check(function, inputs, order=1, shrink=False, **options).cases[0]


def kinds(result):
    return {finding.kind for finding in result.findings}


def recomputed(function):
    """A Function around `function` whose backward differentiates it anew."""

    class Recomputed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.save_for_backward(*tensors)
            return function(*tensors)

        @staticmethod
        def backward(ctx, *cotangents):
            with torch.enable_grad():
                leaves = [t.detach().requires_grad_() for t in ctx.saved_tensors]
                return torch.autograd.grad(function(*leaves), leaves, cotangents)

    return Recomputed


@pytest.mark.parametrize("function", [torch.sin, torch.nn.functional.softplus, torch.special.erf])
def test_a_builtin_is_told_by_the_tensors_that_it_is_given(function):
    for inputs in ((leaf(3),), [(leaf(3),), (leaf(2, 2),)], {"input": leaf(3)}):
        result = gradcli.check(function, inputs, shrink=False).cases[0]
        assert (result.backend, result.verdict) == ("torch", Verdict.PASSED)


def test_a_mask_drawn_in_the_order_of_memory_is_no_mistake():
    result = case(lambda x: torch.nn.functional.dropout(x, 0.5), leaf(5, 6))
    assert result.verdict is Verdict.PASSED
    assert any("gives other values when its inputs are transposed" in note for note in result.notes)


def windows(x):
    return torch.as_strided(x, (3, 2), (1, 2)) ** 2


def test_a_forward_that_is_about_strides_is_no_mistake():
    assert case(recomputed(windows), leaf(7)).verdict is Verdict.PASSED


def test_a_backward_that_reads_on_past_its_entries_is_found():
    class Shifted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * torch.as_strided(x, x.shape, (1,))

    assert kinds(case(Shifted, leaf(5))) == {FindingKind.NON_CONTIGUOUS}


@pytest.mark.parametrize("shape", [(5,), (3, 4)])
@pytest.mark.parametrize("misread", ["expanded", "strided", "strided, and mended with strided inputs"])
def test_a_grad_output_that_is_read_by_its_memory_alone_is_found(shape, misread):
    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            if "mended" in misread and not x.is_contiguous():
                x, g = x.contiguous(), g.contiguous()
            is_misread = 0 in g.stride() if misread == "expanded" else not g.is_contiguous() and 0 not in g.stride()
            return 2 * x * (g.flip(0) * 0.5 if is_misread else g)

    found = case(Squared, torch.randn(shape, dtype=torch.float64, requires_grad=True))
    assert kinds(found) == {FindingKind.NON_CONTIGUOUS}
    assert misread.split(",")[0] in found.findings[0].message


def test_an_expanded_grad_output_is_tried_where_forward_refuses_other_layouts():
    class Picky(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if not x.is_contiguous():
                raise ValueError("contiguous, please")
            return 3 * x

        @staticmethod
        def backward(ctx, g):
            return 3 * (g if 0 not in g.stride() else g + 1)

    assert kinds(case(Picky, leaf(3, 4))) == {FindingKind.NON_CONTIGUOUS}


def test_a_gradient_of_a_sum_that_is_all_rounding_is_no_mistake():
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.softmax(-1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return y * (g - (y.mT.contiguous().mT * g).sum(-1, keepdim=True))

    for seed in range(20):
        torch.manual_seed(seed)
        x = torch.randn(4, 7, dtype=torch.float64) * 3
        assert case(Softmax, x.requires_grad_()).verdict is Verdict.PASSED


@pytest.mark.parametrize("seed", range(12))
def test_terms_that_cancel_inside_backward_are_still_linear(seed):
    inputs = [10 * leaf(1, seed=[seed, place]).detach() for place in range(3)]
    function = recomputed(lambda x, w, b: torch.nn.functional.layer_norm(x, (1,), w, b))
    result = case(function, *(x.requires_grad_() for x in inputs), only=["linearity"])
    assert result.verdict is not Verdict.FAILED, result.findings


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex32"])
def test_an_output_of_low_precision_rounds_the_cotangent_and_is_linear(dtype):
    assert not case(lambda x: x.to(getattr(torch, dtype)) * 2, leaf(4)).findings


def test_a_backward_that_is_not_linear_is_found_at_low_precision_too():
    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.to(torch.bfloat16)

        @staticmethod
        def backward(ctx, g):
            return (g * g.abs()).double()

    assert FindingKind.NONLINEAR_BACKWARD in kinds(case(Squared, leaf(4)))


def test_a_gradient_of_nan_is_not_said_to_ignore_its_cotangent():
    class Spoilt(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    assert kinds(case(Spoilt, leaf(3))) == {FindingKind.NON_FINITE_GRADIENT}


def test_an_empty_output_beside_others_is_passed_over():
    assert case(lambda x: torch.split(x, [2, 0, 3]), leaf(5)).verdict is Verdict.PASSED
    empty = case(lambda x: torch.split(x, [0, 0]), leaf(0))
    assert (empty.verdict, empty.evidence[0].reason) == (Verdict.INCONCLUSIVE, Reason.NO_SIGNAL)


def test_the_null_backend_still_fails_where_forward_is_about_strides():
    from gradcli.backends.null_backend import NullBackend

    backend = NullBackend(backend_named("torch"))
    subject = backend.bind(recomputed(windows), backend_named("torch").adopt([leaf(7)]))
    assert judge(run_battery(subject, Settings(order=1), seed=0)) is Verdict.FAILED


@pytest.mark.parametrize("first", ["real", "complex"])
def test_complex_and_real_outputs_of_odd_sizes_lie_beside_each_other(first):
    def both(x):
        parts = (x[:3].exp(), torch.complex(x[1:6].sin(), x[2:7].cos()))
        return parts if first == "real" else parts[::-1]

    assert case(both, leaf(7)).verdict is Verdict.PASSED


@pytest.mark.parametrize("offset", [0, 1])
def test_complex_numbers_are_copied_from_wherever_they_lie(offset):
    numbers = np.arange(11.0)[offset : offset + 10].view(np.complex128)
    framework = backend_named("torch").framework
    assert np.array_equal(framework.to_array(framework.from_array(numbers)), numbers)
    assert framework.as_tensor(numbers).data_ptr() % 16 == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hidden", [False, True], ids=["body in sight", "body hidden"])
@pytest.mark.parametrize("n", [4, 9])
def test_a_product_in_single_precision_is_right_at_both_orders(hidden, n):
    def product(x, w):
        return (x.float() @ w.float()).double()

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            with torch.set_grad_enabled(torch.is_grad_enabled() and not hidden):
                return product(x, w)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return product(g, w.t()), product(x.t(), g)

    only = ("gradient", "precision", "higher-order")
    found = gradcli.check(Product, (leaf(n, n), leaf(n, n, seed=1)), shrink=False, only=only).cases[0]
    assert (found.verdict, found.orders) == (Verdict.PASSED, (1, 2))


class Cancelled(torch.autograd.Function):
    """A small term between two that cancel: what is left of it is in units of those."""

    size = 1e-11

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (25.4 * x + Cancelled.size * x) - 25.4 * x

    @staticmethod
    def backward(ctx, g):
        return (25.4 * g + Cancelled.size * g) - 25.4 * g


class Clamped(Cancelled):
    """The same with a gradient that is cut off."""

    @staticmethod
    def backward(ctx, g):
        return Cancelled.size * g.clamp(-2, 2)


@pytest.mark.parametrize("seed", range(4))
def test_what_cancelled_terms_leave_of_a_gradient_is_linear_enough(seed):
    right, clamped = (
        gradcli.check(function, (leaf(3, seed=seed),), only="linearity", seed=seed, shrink=False).cases[0]
        for function in (Cancelled, Clamped)
    )
    assert kinds(right) == set()
    assert kinds(clamped) == {FindingKind.NONLINEAR_BACKWARD}


def of_nothing(x):
    return torch.log_softmax(torch.nn.functional.pad(torch.atan2(x, x * x + 0.5), (1, 0)), -1).logsumexp(-1)


@pytest.mark.parametrize("seed", range(8))
def test_a_gradient_that_is_rounding_alone_is_no_loss_of_precision(seed):
    given = torch.from_numpy(np.random.default_rng(seed).standard_normal((4, 3)).astype(np.float32)).requires_grad_()
    assert (
        kinds(gradcli.check(recomputed(of_nothing), (given,), only="precision", seed=seed, shrink=False).cases[0])
        == set()
    )


def edges(backward):
    """Directions of the edges of a graph; of an edge from a node to itself, parts of 1e9 cancel."""

    class Edges(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, start, end):
            ctx.save_for_backward(x, start, end)
            d = x[start] - x[end]
            return d / (d.norm(dim=1, keepdim=True) + 1e-9)

        @staticmethod
        def backward(ctx, g):
            x, start, end = ctx.saved_tensors
            d = x[start] - x[end]
            r = d.norm(dim=1, keepdim=True)
            s = r + 1e-9
            v = backward(g / s - d * (d * g).sum(1, keepdim=True) / (s * s * r.clamp(min=1e-30)))
            return torch.zeros_like(x).index_add(0, start, v).index_add(0, end, -v), None, None

    return Edges


START = [0, 1, 2, 3, 0, 2, 3, 1]
TO_SELF, TO_OTHERS = [1, 1, 2, 0, 0, 3, 3, 2], [1, 2, 3, 0, 2, 3, 0, 2]


@pytest.mark.parametrize(
    ("backward", "end", "found"),
    [
        (lambda v: v, TO_SELF, set()),
        (lambda v: 1.01 * v, TO_SELF, {FindingKind.WRONG_FACTOR, FindingKind.WRONG_GRADIENT}),
        (lambda v: v.float().double(), TO_OTHERS, {FindingKind.LOW_PRECISION}),
    ],
)
def test_large_parts_that_cancel_are_not_called_float32(backward, end, found):
    given = (leaf(4, 3), torch.tensor(START), torch.tensor(end))
    named = kinds(case(edges(backward), *given, only=("gradient", "precision")))
    assert named == set() if not found else named & found


def test_a_gradient_without_grad_output_is_not_called_float32():
    class Fixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.square().sum()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x

    found = kinds(case(Fixed, leaf(3, 4), only=("gradient", "linearity", "precision")))
    assert FindingKind.IGNORES_GRAD_OUTPUT in found
    assert FindingKind.LOW_PRECISION not in found
