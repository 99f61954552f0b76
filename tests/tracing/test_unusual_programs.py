"""Programs in which the trace must not stand in the way: transforms, lazy modules, other tensors, passes in passes."""

import warnings

import pytest

import gradcli
from gradcli import engine
from tests.tracing.tracing import fate, traced

torch = pytest.importorskip("torch", reason="these are features of PyTorch")
nn = torch.nn


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


class Shelf:
    """A program's parts, with methods called like what the module imports."""

    def __init__(self):
        self.weight = engine.ones(2, requires_grad=True)

    def nn(self):
        return (self.weight * 3).sum()

    def run(self):
        self.nn().backward()


def through_an_attribute():
    layer = engine.nn.Linear(2, 1)
    return layer(engine.ones(3, 2)).sum()


def through_a_nested_function():
    def loss():
        return engine.nn.functional.relu(engine.ones(2, requires_grad=True)).sum()

    loss().backward()


def through_a_method():
    Shelf().run()


def beside_a_constant():
    weight = engine.tensor(torch.ones(2).numpy(), requires_grad=True)
    (weight * 2).sum().backward()


def returned_beside_a_constant():
    return (engine.tensor(torch.ones(2).numpy(), requires_grad=True) * 2).sum()


def out_of_sight():
    globals()["Shelf"]().run()


def returned_out_of_sight():
    return {"loss": globals()["Shelf"]().nn()}


def in_torch_beside_the_engine():
    engine.ones(2)
    return (torch.ones(2, requires_grad=True) * 2).sum()


def in_torch_and_then_in_the_engine():
    torch.ones(2, requires_grad=True).sum().backward()
    engine.ones(2, requires_grad=True).sum().backward()


ENGINES = (
    *(through_an_attribute, through_a_nested_function, through_a_method, beside_a_constant),
    *(returned_beside_a_constant, out_of_sight, returned_out_of_sight),
)


@pytest.mark.parametrize("program", ENGINES)
def test_a_program_of_the_engine_is_traced_in_a_file_that_imports_torch(program):
    assert nn.Module is torch.nn.Module
    graph = gradcli.trace(program)
    assert (graph.backend, graph.passes, graph.error) == ("engine", 1, None)
    assert any(node.name == "AccumulateGrad" for node in graph.nodes)


def in_torch_without_a_graph():
    engine.ones(2)
    torch.ones(2, requires_grad=True).sum().backward()
    return torch.ones(2)


IN_TORCH = (in_torch_beside_the_engine, in_torch_and_then_in_the_engine, in_torch_without_a_graph)


@pytest.mark.parametrize("program", IN_TORCH)
def test_a_program_of_torch_is_traced_as_one_where_it_names_the_engine_as_well(program):
    graph = gradcli.trace(program)
    assert (graph.backend, graph.passes, graph.error) == ("torch", 1, None)


def test_a_gradient_is_filled_once_where_the_framework_is_found_by_a_run():
    shelf = Shelf()
    gradcli.trace(lambda: getattr(shelf, "".join("run"))())
    assert shelf.weight.grad.tolist() == [3.0, 3.0]


def test_several_entries_returned_without_a_pass_are_a_result():
    graph = gradcli.trace(lambda: (torch.ones(2), engine.ones(3)))
    assert (graph.backend, graph.passes) == ("torch", 0)
    assert graph.result is not None


WEIGHT = torch.full((2,), float("nan"), requires_grad=True)


def test_a_global_called_like_an_attribute_is_not_a_tensor_of_the_program():
    def loss():
        layer = nn.Linear(2, 1)
        layer.WEIGHT = 1.0
        return layer(torch.ones(2) * layer.WEIGHT).sum()

    assert "WEIGHT" not in [found.name for found in gradcli.trace(loss).tensors]
    assert "WEIGHT" in [found.name for found in gradcli.trace(lambda: (WEIGHT.detach() * WEIGHT).sum()).tensors]
