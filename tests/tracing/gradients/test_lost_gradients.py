"""Where a gradient was lost or taken away: the operation, the Function or the line, also through several steps."""

import re
import sys

import pytest

from gradcli.reporters.graph.tree import explanation
from tests.tracing.tracing import fate, line_of, traced

HERE = sys.modules[__name__]
NAME = __file__.rsplit("/", 1)[-1]


def pair(f):
    x = f.tensor([1.0, 2.0], requires_grad=True)
    return x, f.tensor([3.0, 4.0], requires_grad=True)


def mask(f):
    x, w = pair(f)
    return ((x > 0).float() * w).sum()  # mask


def equality(f):
    x, w = pair(f)
    chosen = x == 1.0  # equality
    return (w * chosen).sum()


def truth(f):
    x, w = pair(f)
    return (w * x.bool()).sum()  # truth


def test_for_nan(f):
    x, w = pair(f)
    return (w * f.where(f.isnan(x), 1.0, 2.0)).sum()  # isnan


test_for_nan.__test__ = False


def index_by_a_comparison(f):
    x, w = pair(f)
    return w[x >= 2].sum()  # index


def marked(f):
    class Sign(f.autograd.Function):
        @staticmethod  # not differentiable
        def forward(ctx, x):
            out = x.sign()
            ctx.mark_non_differentiable(out)
            return out

        @staticmethod
        def backward(ctx, g):
            return None

    x, w = pair(f)
    return (Sign.apply(x * 2) * w).sum()  # marked


def function_of_whole_numbers(f):
    class Rank(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.long()

        @staticmethod
        def backward(ctx, g):
            return None

    x, w = pair(f)
    return (Rank.apply(x) * w).sum()  # whole


def recording_off_by_a_call(f):
    x, w = pair(f)
    f.set_grad_enabled(False)  # the call
    try:
        y = x * 2  # under the call
    finally:
        f.set_grad_enabled(True)
    return (y * w).sum()


def recording_off_in_a_block(f):
    x, w = pair(f)
    with f.set_grad_enabled(False):  # the block
        y = x * 2  # in the block
    return (y * w).sum()


def recording_off_for_all(f):
    x, w = pair(f)
    with f.no_grad():  # for all
        return (x * w).sum()  # all of it


def through_numpy(f):
    x, w = pair(f)
    values = x.detach().numpy() * 2  # to numpy
    return (w * f.tensor(values)).sum()


def through_a_number(f):
    x, w = pair(f)
    scale = x.sum().item()  # a number
    return (w * scale).sum()


def through_arithmetic_of_numbers(f):
    x, w = pair(f)
    scale = 2 * x.sum().item() + 1  # in between
    return (w * scale).sum()


def in_a_list(f):
    x, w = pair(f)
    rows = [row.detach() for row in x]  # rows
    return (f.stack(rows) * w).sum()


def through_a_function(f):
    def features(t):
        return t.exp().detach() + 1  # features

    x, w = pair(f)
    return (features(x * 2) * w).sum()


def written_to_data(f):
    x, w = pair(f)
    y = w * 1
    y.data = x * 2  # data
    return y.sum()


def only_asked_for_gradients(f):
    x, w = pair(f)
    f.autograd.grad((x * w).sum(), [w])  # asked


def zeroed_by_a_module(f):
    x, w = pair(f)
    net = f.nn.Module()
    net.weight = f.nn.Parameter(w.detach().clone())
    (x * net.weight).sum().backward()
    net.zero_grad()  # zeroed
    return net.weight


def zeroed_by_an_optimizer(f):
    x, w = pair(f)
    optimizer = f.optim.SGD([x, w], lr=0.1)
    (x * w).sum().backward()
    optimizer.step()
    optimizer.zero_grad()  # by the optimizer


def zeroed_in_place(f):
    x, w = pair(f)
    (x * w).sum().backward()
    x.grad.zero_()  # in place


def set_to_none(f):
    x, w = pair(f)
    (x * w).sum().backward()
    x.grad = None  # to None


def another_result(f):
    x, w = pair(f)
    aux = (w * 2).sum()
    aux.backward()  # aux
    loss = (x * w).sum()
    return [loss]


def replaced_parameter(f):
    net = f.nn.Linear(2, 1)
    x = net.weight
    net.weight = f.nn.Parameter(f.ones(1, 2))  # replaced
    return (net(f.ones(3, 2)) * 2).sum() + 0 * len(x)


def plain_tensor_of_a_module(f):
    class Net(f.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = f.nn.Parameter(f.ones(2))
            self.x = f.ones(2)

        def forward(self):
            return (self.w * self.x).sum()

    net = Net()
    return net()


def never_used(f):
    x, w = pair(f)
    return (w * 2).sum() + 0 * len(x)


def used_in_vain(f):
    x, w = pair(f)
    y = x * 3  # in vain
    loss = (w * 2).sum()
    loss.backward()
    assert y.sum().item() == 9.0


def never_run(f):
    x, w = pair(f)
    loss = (x * w).sum()
    assert f"{loss.item():.3f}" == "11.000"


UNREACHED = "no path leads from the result to x: "
TRUTH = "True and False have no gradient"
CAUSES = [
    (mask, UNREACHED + "{# mask} takes it out of the graph with `>`: " + TRUTH),
    (equality, UNREACHED + "{# equality} takes it out of the graph with `==`: " + TRUTH),
    (truth, UNREACHED + "{# truth} takes it out of the graph with bool(): " + TRUTH),
    (test_for_nan, UNREACHED + "{# isnan} takes it out of the graph with isnan(): " + TRUTH),
    (index_by_a_comparison, UNREACHED + "{# index} takes it out of the graph with `>=`: " + TRUTH),
    (marked, UNREACHED + "{# marked} takes it out of the graph with Sign.apply(): its forward, at {# not differentiable"
     "}, marks this output as not differentiable"),
    (function_of_whole_numbers, UNREACHED + "{# whole} takes it out of the graph with Rank.apply(): its forward, at "),
    (recording_off_by_a_call, UNREACHED + "{# under the call} computes under set_grad_enabled(False), which "
     "{# the call} turned on"),
    (recording_off_in_a_block, UNREACHED + "{# in the block} computes under set_grad_enabled(False), which "
     "{# the block} turned on"),
    (recording_off_for_all, UNREACHED + "{# all of it} computes under no_grad, which {# for all} turned on"),
    (through_numpy, UNREACHED + "{# to numpy} takes it out of the graph with detach(), which may be the cause"),
    (through_a_number, UNREACHED + "{# a number} takes it out of the graph with item()"),
    (through_arithmetic_of_numbers, UNREACHED + "{# in between} takes it out of the graph with item(), which may be"),
    (in_a_list, UNREACHED + "{# rows} takes it out of the graph with detach()"),
    (through_a_function, UNREACHED + "{# features} takes it out of the graph with detach()"),
    (written_to_data, UNREACHED + "{# data} takes it out of the graph with .data ="),
    (only_asked_for_gradients, "only autograd.grad was called, at {# asked}: it returns gradients and fills no .grad"),
    (zeroed_by_an_optimizer, "backward filled .grad, and .grad was set to None again at {# by the optimizer}; read"),
    (zeroed_in_place, "backward filled .grad, and {# in place} zeroed it again; read .grad before that"),
    (set_to_none, "backward filled .grad, and .grad was set to None again at {# to None}; read .grad before"),
    (another_result, "the backward pass ran from aux at {# aux}, which does not depend on x; only the returned result "
     "does, and backward was not called on that"),
    (replaced_parameter, UNREACHED + "{# replaced} replaces this parameter of the module by another one"),
    (plain_tensor_of_a_module, "requires_grad is False: Net holds it as a plain tensor, not as an nn.Parameter"),
    (never_used, UNREACHED + "no traced operation used it"),
    (used_in_vain, UNREACHED + "{# in vain} uses it, but no traced operation leads from that line"),
    (never_run, "no backward pass ran: nothing called backward, and the traced function returned no tensor"),
]  # fmt: skip


def placed(sentence):
    """The sentence with each {mark} replaced by the line that ends with it."""
    return re.sub(r"\{(# .*?)\}", lambda found: f"{NAME}:{line_of(HERE, found[1])}", sentence)


def stripped(text):
    return re.sub(r"[^\s(]*/(?=test_lost)", "", text)


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("program", "sentence"), CAUSES, ids=lambda value: getattr(value, "__name__", ""))
def test_the_cause_is_named_at_its_line(framework, program, sentence):
    graph = traced(framework, lambda: program(framework))
    assert graph.error is None
    why = stripped(fate(graph, "x").why)
    assert why.startswith(placed(sentence)), why
    shown = "\n".join(stripped(line.text) for line in explanation(graph))
    assert why in shown


def test_the_pass_that_is_drawn_is_named_where_it_is_not_that_of_the_result(framework):
    graph = traced(framework, lambda: another_result(framework))
    told = [stripped(lint) for lint in graph.lints]
    assert told == [
        placed("the graph above is that of the backward pass from aux at {# aux}, not of the returned loss")
    ]


def test_a_module_that_zeroed_its_gradients_is_named(framework):
    graph = traced(framework, lambda: zeroed_by_a_module(framework))
    weight = next(t for t in graph.tensors if t.name.endswith("weight"))
    assert stripped(weight.why) == placed(
        "backward filled .grad, and .grad was set to None again at {# zeroed}; read .grad before that"
    )


def test_modules_and_parameters_in_plain_containers_are_reported(framework):
    nn = framework.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 2)]
            self.scales = {"a": nn.Parameter(framework.ones(2))}
            self.sizes = [2, 2]
            self.good = nn.ModuleList([nn.Linear(2, 2)])

        def forward(self, t):
            return self.good[0](self.layers[0](t)) * self.scales["a"]

    net = Net()
    graph = traced(framework, lambda: net(framework.ones(3, 2)).sum(), modules={"": net})
    assert [lint.split(":")[0] for lint in graph.lints] == [
        "layers is a plain list of modules, not an nn.ModuleList",
        "scales is a plain dict of parameters, not an nn.ParameterDict",
    ]
    assert fate(graph, "layers[0].weight").grad is not None


class Box:
    pass


def on_an_object(f):
    x, w = pair(f)
    box = Box()
    box.hidden = x * w  # on an object
    return (box.hidden * 2).sum()


def in_two_steps(f):
    x, _ = pair(f)
    y = x.to(f.float64) * 1.0  # two steps
    return (y * y).sum(), y


def returned_alone(f):
    x, _ = pair(f)
    return x.to(f.float64) * 1.0  # returned


def returned_copy(f):
    x, _ = pair(f)
    return x.to(f.float64)  # copy


RESULTS = [
    (on_an_object, "box.hidden", "box.hidden is not a leaf: {# on an object} computes it with mul from x, w; a "
     "non-leaf tensor keeps its gradient only after retain_grad()", "why is box.hidden.grad None?"),
    (in_two_steps, "y", "y is not a leaf: {# two steps} computes it with mul from x; a non-leaf tensor keeps its "
     "gradient only after retain_grad(); x.grad is filled", "y ({# two steps}, mul from x)"),
    (returned_alone, "result", "result is not a leaf: {# returned} computes it with mul from x; a non-leaf tensor "
     "keeps its gradient only after retain_grad(); x.grad is filled", "result ({# returned}, mul from x)"),
    (returned_copy, "result", "result is not a leaf: {# copy} computes it with .to(f.float64) from x; x.grad is filled",
     "why is result.grad None?"),
]  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("program", "name", "why", "shown"), RESULTS, ids=lambda value: getattr(value, "__name__", ""))
def test_results_that_are_returned_or_held_are_explained_unasked(framework, program, name, why, shown):
    graph = traced(framework, lambda: program(framework))
    assert stripped(fate(graph, name).why) == placed(why)
    assert placed(shown) in "\n".join(stripped(line.text) for line in explanation(graph))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("program", [entry[0] for entry in (*CAUSES, *RESULTS)], ids=lambda value: value.__name__)
def test_gradients_are_bit_for_bit_those_of_an_untraced_run(framework, program, monkeypatch):
    made = []
    plain_pair = pair

    def kept(f):
        made.append(plain_pair(f))
        return made[-1]

    monkeypatch.setattr(HERE, "pair", kept)
    framework.manual_seed(1)
    graph = traced(framework, lambda: program(framework))
    traced_grads = [None if t.grad is None else t.grad.tolist() for two in made for t in two]
    made.clear()
    framework.manual_seed(1)
    result = program(framework)
    if graph.passes and graph.pass_site is None:  # the trace itself called backward
        given = result if isinstance(result, tuple) else (result,)
        roots = tuple(tensor for tensor in given if tensor.requires_grad)
        framework.autograd.backward(roots, [framework.ones_like(root) for root in roots])
    assert [None if t.grad is None else t.grad.tolist() for two in made for t in two] == traced_grads
