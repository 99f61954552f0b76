"""Programs in which the trace must not stand in the way: transforms, lazy modules, other tensors, passes in passes."""

import warnings

import pytest

from tests.tracing.tracing import fate, traced

torch = pytest.importorskip("torch", reason="these are features of PyTorch")


def mapped():
    x = torch.randn(3, 2, requires_grad=True)
    return torch.func.vmap(lambda row: (row * row).sum())(x).sum()


def jacobian():
    x = torch.randn(3, requires_grad=True)
    return torch.autograd.functional.jacobian(lambda t: t**2, x).sum() * x.sum()


def checkpointed():
    x = torch.randn(3, requires_grad=True)
    return torch.utils.checkpoint.checkpoint(lambda t: (t * 2).exp(), x, use_reentrant=False).sum()


def symbolically_traced():
    return torch.fx.symbolic_trace(torch.nn.Linear(2, 2))(torch.randn(1, 2)).sum()


def traced_to_script():
    linear = torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2))
    return linear(torch.ones(1, 2, requires_grad=True)).sum()


def lazy():
    net = torch.nn.Sequential(torch.nn.Conv1d(1, 2, 3), torch.nn.Flatten(), torch.nn.LazyLinear(2))
    return net(torch.randn(2, 1, 5)).sum()


def on_no_device():
    torch.randn(3, device="meta", requires_grad=True).exp()
    x = torch.ones(2, requires_grad=True)
    return x.sum()


def complex_numbers():
    x = torch.randn(3, dtype=torch.complex64, requires_grad=True)
    return (x * x.conj()).real.sum()


def attention():
    net, x = torch.nn.MultiheadAttention(8, 2), torch.randn(5, 2, 8)
    return net(x, x, x)[0].sum()


def recurrent():
    return torch.nn.LSTM(3, 4)(torch.randn(5, 2, 3))[0].sum()


def in_half_precision():
    net = torch.nn.Linear(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = net(torch.randn(2, 4))
    return y.float().sum()


def subclass():
    class Own(torch.Tensor):
        pass

    x = torch.randn(3).as_subclass(Own).requires_grad_()
    return (x * 2).sum()


def dropped_out():
    x = torch.randn(30, requires_grad=True)
    return (torch.nn.Dropout()(x) * x).sum()


PROGRAMS = [
    mapped, jacobian, checkpointed, symbolically_traced, traced_to_script, lazy, on_no_device, complex_numbers,
    attention, recurrent, in_half_precision, subclass, dropped_out,
]  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_result_is_that_of_an_untraced_run_and_nothing_is_wrong_with_it(program):
    with warnings.catch_warnings(record=True) as plain:
        warnings.simplefilter("always")
        torch.manual_seed(3)
        expected = program().detach().numpy().tobytes()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.manual_seed(3)
        results = []
        graph = traced(torch, lambda: results.append(program()) or results[0])
    assert graph.error is None
    assert results[0].detach().numpy().tobytes() == expected
    assert graph.symptoms == ()
    told = {(str(w.message), w.filename, w.lineno) for w in caught}
    assert told <= {(str(w.message), w.filename, w.lineno) for w in plain}


def test_a_result_that_holds_a_gradient_is_run_backward():
    def penalty():
        w = torch.ones(2, requires_grad=True)
        loss = (w**3).sum()
        (gradient,) = torch.autograd.grad(loss, w, create_graph=True)
        return loss + (gradient * gradient).sum()

    graph = traced(torch, penalty)
    assert (graph.passes, graph.error) == (2, None)
    assert fate(graph, "w").grad.values == (39.0, 39.0)


def test_a_loss_whose_graph_was_freed_is_not_run_again():
    def loss():
        w = torch.ones(2, requires_grad=True)
        loss = (w * w).sum()
        torch.autograd.grad(loss, w)
        return loss

    graph = traced(torch, loss)
    assert (graph.passes, graph.error) == (1, None)
    assert "only autograd.grad was called" in fate(graph, "w").why
