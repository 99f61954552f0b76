"""The hook tutorial, step by step: order, values and lines of its hooks, as PyTorch 2.13 runs them."""

import warnings

import pytest

from tests.programs import hook_network
from tests.programs.hook_network import program
from tests.tracing.tracing import after, at, before, fate, grads, shapes, traced

EIGHT = [8.0] * 4

# order, batch: grad_input of the legacy hook with its shapes, the tensor hook's gradient, weight, bias, result, node
LEGACY = [
    ("linear_then_quarter", False, [[0.25], None], [[1], None], [2.0] * 4, [0.25, 0.5, 0.75, 1.0], 0.25, 20.5, "Div"),
    ("quarter_then_linear", False, [[1.0]], [[1, 1]], [2.0] * 4, [0.25, 0.5, 0.75, 1.0], 1.0, 22.0, "View"),
    (
        "quarter_linear_quarter", False, [[0.25], None], [[1], None], [0.5] * 4, [0.0625, 0.125, 0.1875, 0.25],
        0.25, 5.5, "Div",
    ),
    ("linear_then_quarter", True, [[0.25], None], [[1, 1], None], [2.0] * 4, [0.25, 0.5, 0.75, 1.0], 0.25, 20.5, "Div"),
    (
        "quarter_then_linear", True, [[1.0], EIGHT, [0.25, 0.5, 0.75, 1.0]], [[1], [1, 4], [4, 1]], [2.0] * 4,
        [0.25, 0.5, 0.75, 1.0], 1.0, 22.0, "Addmm",
    ),
    (
        "quarter_linear_quarter", True, [[0.25], None], [[1, 1], None], [0.5] * 4, [0.0625, 0.125, 0.1875, 0.25],
        0.25, 5.5, "Div",
    ),
]  # fmt: skip


@pytest.fixture(autouse=True)
def legacy_hooks_are_meant():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using a non-full backward hook", FutureWarning)
        yield


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("order", "batch", "given", "sizes", "seen", "weight", "bias", "result", "node"), LEGACY)
def test_legacy_hook_sees_the_last_operation_before_the_tensor_hook_fires(
    framework, order, batch, given, sizes, seen, weight, bias, result, node
):
    graph = traced(framework, program(framework, order, batch=batch))
    module, tensor = graph.hooks
    assert (module.number, module.kind, module.owner, module.function) == (1, "module-legacy", "Net", "Net.hook")
    assert before(module) == given
    assert shapes(module) == sizes
    assert [list(g.values) for g in module.grad_output] == [[1.0]]
    assert (module.returned, module.effect) == (True, "unchanged")
    assert (tensor.number, tensor.kind, tensor.function, tensor.effect) == (2, "tensor", "tensor_hook", "unchanged")
    assert before(tensor) == [seen]
    assert at(module.site, hook_network, "# the module's hook")
    assert at(tensor.site, hook_network, "# the tensor's hook")
    assert grads(graph) == {"f1.weight": weight, "f1.bias": [bias], "x0": seen}
    assert graph.result.values == (result,)
    assert graph.nodes[module.node].name == f"{node}Backward0"
    assert f"the last operation only ({node}Backward0)" in module.warning


@pytest.mark.parametrize(
    ("order", "given"),
    [
        ("linear_then_quarter", [2.0] * 4),
        ("quarter_then_linear", [2.0] * 4),
        ("quarter_linear_quarter", [0.5] * 4),
    ],
)
def test_full_hook_sees_the_modules_own_gradients(framework, order, given):
    graph = traced(framework, program(framework, order, "register_full_backward_hook"))
    module, tensor = graph.hooks
    assert (module.kind, before(module), shapes(module)) == ("module-full", [given], [[4]])
    assert before(tensor) == [given]
    assert module.warning is None


@pytest.mark.parametrize(
    ("order", "scaled", "reply", "weight", "bias", "seen"),
    [
        ("linear_then_quarter", [[2.5], None], "times_ten", [2.5, 5.0, 7.5, 10.0], 2.5, [20.0] * 4),
        ("quarter_then_linear", [[10.0]], "times_ten", [2.5, 5.0, 7.5, 10.0], 10.0, [20.0] * 4),
        ("quarter_linear_quarter", [[2.5], None], "times_ten", [0.625, 1.25, 1.875, 2.5], 2.5, [5.0] * 4),
        ("linear_then_quarter", [[0.25], None], "none", [0.25, 0.5, 0.75, 1.0], 0.25, [2.0] * 4),
        ("quarter_then_linear", [[1.0]], "none", [0.25, 0.5, 0.75, 1.0], 1.0, [2.0] * 4),
        ("quarter_linear_quarter", [[0.25], None], "none", [0.0625, 0.125, 0.1875, 0.25], 0.25, [0.5] * 4),
    ],
)
def test_what_a_legacy_hook_returns_reaches_parameters_too(framework, order, scaled, reply, weight, bias, seen):
    graph = traced(framework, program(framework, order, reply=reply))
    module, tensor = graph.hooks
    assert after(module) == scaled
    assert before(tensor) == [seen]
    assert grads(graph) == {"f1.weight": weight, "f1.bias": [bias], "x0": seen}
    if reply == "times_ten":
        assert module.effect == "returned a new value: 10x"
        assert len(graph.effects) == 1
        assert graph.effects[0].startswith("grad of f1.bias, x0 and f1.weight is scaled by 10 because `Net.hook` at ")
        assert graph.effects[0].endswith(" returned a new value")
    else:
        assert (module.effect, module.returned, graph.effects) == ("unchanged", False, ())


def test_what_a_full_hook_returns_reaches_only_the_input(framework):
    graph = traced(framework, program(framework, "linear_then_quarter", "register_full_backward_hook", "times_ten"))
    assert graph.hooks[0].effect == "returned a new value: 10x"
    assert [line.split(" because")[0] for line in graph.effects] == ["grad of x0 is scaled by 10"]
    assert grads(graph) == {"f1.weight": [0.25, 0.5, 0.75, 1.0], "f1.bias": [0.25], "x0": [20.0] * 4}
    graph = traced(framework, program(framework, "linear_then_quarter", "register_full_backward_hook", "times_input"))
    assert before(graph.hooks[1]) == [[2.0, 4.0, 6.0, 8.0]]
    (effect,) = graph.effects
    assert effect.split(" because")[0] == "grad of x0 differs from the gradient that autograd computed"


@pytest.mark.parametrize(
    ("order", "method", "reply", "error", "problem"),
    [
        (
            "linear_then_quarter", "register_backward_hook", "times_input", "RuntimeError",
            "returned 1 gradient, expected 2",
        ),
        (
            "quarter_then_linear", "register_backward_hook", "times_input", "RuntimeError",
            "returned a gradient of shape [1, 4] where [1, 1] was expected",
        ),
        (
            "quarter_linear_quarter", "register_backward_hook", "bare_tensor", "TypeError",
            "returned Tensor; a tuple of 2 gradients, or None, was expected",
        ),
        (
            "linear_then_quarter", "register_full_backward_hook", "bare_tensor", "RuntimeError",
            "returned Tensor; a tuple of 1 gradient, or None, was expected",
        ),
    ],
)  # fmt: skip
def test_the_pages_commented_out_lines_raise_and_the_hook_is_named(framework, order, method, reply, error, problem):
    graph = traced(framework, program(framework, order, method, reply))
    assert graph.error.startswith(error)
    assert graph.error_phase == "backward"
    assert graph.hooks[-1].problem == problem
    assert problem in graph.error_hint
    assert "hook_network.py:" in graph.error_hint
    assert graph.nodes[0].executed
    assert grads(graph)["x0"] is None
    assert fate(graph, "x0").symptom == "backward-raised"


@pytest.mark.parametrize("order", ["linear_then_quarter", "quarter_then_linear", "quarter_linear_quarter"])
def test_a_converted_input_has_no_grad_and_the_origin_has_it(framework, order):
    graph = traced(framework, program(framework, order, convert=True))
    moved, origin = fate(graph, "input"), fate(graph, "x0")
    assert moved is fate(graph, "x")
    assert (moved.is_leaf, moved.grad, moved.made_by) == (False, None, "ToCopyBackward0")
    assert moved.symptom == "moved-leaf"
    assert moved.why.startswith("x is not a leaf: ")
    assert moved.why.endswith(" computes it with .to(framework.float64) from x0; x0.grad is filled")
    assert at(moved.site, hook_network, "# moved here")
    assert origin.grad.dtype == "float32"
    assert origin.grad.values == ((0.5,) * 4 if order == "quarter_linear_quarter" else (2.0,) * 4)
    assert graph.nodes[origin.node].name == "AccumulateGrad"


def test_a_move_to_the_same_kind_is_the_same_leaf(framework):
    graph = traced(framework, program(framework, "linear_then_quarter"))
    leaf = fate(graph, "x0")
    assert leaf.aliases == ("x", "input")
    assert (leaf.is_leaf, leaf.symptom, leaf.grad.values) == (True, None, (2.0,) * 4)


def test_the_graph_names_lines_shapes_and_leaves(framework):
    graph = traced(framework, program(framework, "linear_then_quarter"))
    names = [node.name for node in graph.nodes]
    assert names == [
        "DivBackward0", "ViewBackward0", "AddmmBackward0", "AccumulateGrad", "ViewBackward0", "AccumulateGrad",
        "TBackward0", "AccumulateGrad",
    ]  # fmt: skip
    assert at(graph.nodes[0].site, hook_network, "# a quarter")
    assert at(graph.nodes[2].site, hook_network, "# linear first")
    assert [node.variable for node in graph.nodes if node.name == "AccumulateGrad"] == ["f1.bias", "x0", "f1.weight"]
    assert [g.values for g in graph.nodes[0].gradients_in] == [(1.0,)]
    assert [g and g.values for g in graph.nodes[0].gradients_out] == [(0.25,), None]
    assert [edge.target for edge in graph.nodes[2].edges] == [3, 4, 6]
