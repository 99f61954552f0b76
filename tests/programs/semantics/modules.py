"""Programs on modules, their state and containers, and optimizers."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tests.programs.semantics.table import case, caught, leaf, plain


def _net(t: Any) -> Any:
    class Net(t.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def __init__(self) -> None:
            super().__init__()
            self.first = t.nn.Linear(2, 3)
            self.parts = t.nn.Sequential(t.nn.Linear(3, 3), t.nn.ReLU())
            self.register_buffer("kept", t.zeros(2))
            self.register_buffer("passing", t.ones(1), persistent=False)
            self.scale = t.nn.Parameter(t.ones(2))
            self.shift = t.nn.Buffer(t.ones(1))

    return Net()


@case
def state_by_names(t: Any) -> Any:
    net = _net(t)
    state = net.state_dict()
    partial = net.load_state_dict({"scale": t.ones(2) * 2, "other": t.ones(1)}, strict=False)
    return [
        list(state),
        [name for name, _ in net.named_buffers()],
        list(net.state_dict(prefix="a.", keep_vars=True)),
        net.state_dict(keep_vars=True)["scale"] is net.scale,
        partial.missing_keys,
        partial.unexpected_keys,
        plain(net.scale),
        repr(net.load_state_dict(state)),
        caught(lambda: net.load_state_dict({"scale": t.ones(2)})),
        caught(lambda: net.load_state_dict({**state, "scale": t.ones(3)})),
        caught(lambda: net.load_state_dict({**state, "scale": 3}), words=False),
        caught(lambda: net.load_state_dict(3)),
        net.load_state_dict({**state, "scale": t.ones(2) * 7}, assign=True).missing_keys,
        plain(net.scale),
    ]


@case
def state_of_ones_own(t: Any) -> Any:
    class Counter(t.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def __init__(self) -> None:
            super().__init__()
            self.weight = t.nn.Parameter(t.ones(1))
            self.count = 0

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    class Renaming(t.nn.Linear):  # type: ignore[misc]  # the framework is a parameter
        def _load_from_state_dict(self, state_dict: Any, prefix: Any, *rest: Any) -> None:
            if prefix + "old" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")
            super()._load_from_state_dict(state_dict, prefix, *rest)

    first, second = Counter(), Counter()
    first.count = 5
    second.load_state_dict(first.state_dict())
    renamed = t.nn.Sequential(Renaming(1, 1, bias=False))
    log: list[str] = []
    layer = t.nn.Linear(1, 1)
    layer.register_state_dict_pre_hook(lambda module, prefix, keep: log.append("before saving"))
    layer.register_state_dict_post_hook(lambda module, state, prefix, metadata: log.append("after saving"))
    layer.register_load_state_dict_pre_hook(lambda module, *rest: log.append("before loading"))
    layer.register_load_state_dict_post_hook(lambda module, keys: log.append("after loading"))
    layer.load_state_dict(layer.state_dict())
    return [
        list(first.state_dict()),
        second.count,
        repr(renamed.load_state_dict({"0.old": t.ones(1, 1) * 3})),
        plain(renamed[0].weight),
        log,
    ]


@case
def parts_by_dotted_names(t: Any) -> Any:
    net = _net(t)
    shared = t.nn.Sequential(net.first, net.first)
    return [
        list(net.get_parameter("parts.0.weight").shape),
        net.get_submodule("parts.0").in_features,
        net.get_submodule("") is net,
        plain(net.get_buffer("kept")),
        caught(lambda: net.get_submodule("no.such"), words=False),
        caught(lambda: net.get_parameter("parts.0.no"), words=False),
        len(list(shared.named_parameters(remove_duplicate=False))),
        len(list(shared.named_modules(remove_duplicate=False))),
        [str(buffer.dtype) for buffer in net.type(t.float64).buffers()],
        caught(lambda: net.train("yes")),
        caught(lambda: net.add_module("part", 3)),
    ]


@case
def containers_that_change(t: Any) -> Any:
    parts = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.ReLU())
    parts.insert(0, t.nn.Identity())
    parts.extend([t.nn.Tanh()])
    popped = type(parts.pop(1)).__name__
    del parts[0]
    listed = t.nn.ModuleList([t.nn.Linear(1, 1) for _ in range(3)])
    listed.insert(1, t.nn.Tanh())
    named = t.nn.ModuleDict({"a": t.nn.ReLU()})
    named.update({"b": t.nn.Tanh()})
    weights = t.nn.ParameterDict({"w": t.nn.Parameter(t.ones(2, 3))})
    values = t.nn.ParameterList([t.ones(1)])
    values.extend([t.zeros(2)])
    values[0] = t.nn.Parameter(t.ones(3))
    return [
        popped,
        repr(parts),
        repr(parts + t.nn.Sequential(OrderedDict(last=t.nn.Sigmoid()))),
        repr(listed),
        repr(t.nn.ModuleList()),
        type(named.pop("a")).__name__,
        list(named.keys()),
        repr(weights),
        [list(weights.keys()), "w" in weights, len(list(weights.values()))],
        [list(value.shape) for value in values],
        caught(lambda: listed[10]),
    ]


@case
def forward_hooks_that_are_always_called(t: Any) -> Any:
    log: list[Any] = []

    class Fails(t.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    failing, working = Fails(), t.nn.Identity()
    for module in (failing, working):
        module.register_forward_hook(
            lambda m, args, output: log.append([type(m).__name__, output is None]), always_call=True
        )
    return [caught(lambda: failing(t.ones(1))), plain(working(t.ones(1))), log]


@case
def optimizers_and_their_options(t: Any) -> Any:
    def weight() -> Any:
        return t.ones(2, requires_grad=True)

    shared = weight()
    made = [
        t.optim.SGD([weight()], lr=0.1, momentum=0.9, foreach=False),
        t.optim.Adam([weight()], amsgrad=True),
        t.optim.AdamW([weight()], fused=None),
        t.optim.RMSprop([weight()], centered=True, maximize=True),
    ]
    log: list[str] = []
    stepped = t.optim.SGD([shared], lr=0.1)
    stepped.register_step_pre_hook(lambda optimizer, args, kwargs: log.append("before"))
    stepped.register_step_post_hook(lambda optimizer, args, kwargs: log.append("after"))
    shared.sum().backward()
    stepped.step()
    rising = weight()
    climber = t.optim.RMSprop([rising], lr=0.1, maximize=True)
    rising.sum().backward()
    climber.step()
    return [
        [repr(optimizer) for optimizer in made],
        log,
        plain([shared, rising]),
        caught(lambda: t.optim.SGD([{"params": [shared]}, {"params": [shared]}], lr=0.1)),
        caught(lambda: t.optim.SGD(shared, lr=0.1)),
        caught(lambda: t.optim.SGD([shared], lr=0.1, nothing=True), words=False),
    ]


@case
def close_or_not(t: Any) -> Any:
    x = t.tensor([1.0, 2.0])
    close = t.testing.assert_close
    pairs = [
        (x, x + 1e-7), (x, x + 1e-3), (x, x.double()), (x, x[:1]), (x.double(), x.double() + 1e-6), (1.0, 1.0 + 1e-5),
        ([x, x], [x, x * 2]), ({"a": x}, {"a": x}), ({"a": x}, {"b": x}), (x * float("nan"), x * float("nan")),
        (t.tensor([1, 2]), t.tensor([1, 3])), (t.tensor([True]), t.tensor([False])), ([x], [x, x]),
    ]  # fmt: skip
    calls = [caught(lambda pair=pair: close(*pair), words=False) for pair in pairs]
    more = [
        caught(lambda: close(x, x + 0.1, rtol=0, atol=0.2)),
        caught(lambda: close(x, x.double(), check_dtype=False)),
        caught(lambda: close(x, x + 1, msg="mine")),
        caught(lambda: close(x, x, rtol=0.1), words=False),
        caught(lambda: close(x * float("nan"), x * float("nan"), equal_nan=True)),
    ]
    return [calls, more]


@case
def modules(t: Any) -> Any:
    nn = t.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(2, 3)
            self.b = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))
            self.tied = self.a
            self.register_buffer("count", t.zeros(1), persistent=False)
            self.items = nn.ModuleList([nn.Tanh(), nn.Linear(1, 1)])
            self.scale = nn.ParameterList([nn.Parameter(t.ones(1))])

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x)) * self.scale[0]

    net = Net().double()
    with t.no_grad():
        for parameter in net.parameters():
            parameter.fill_(0.5)
    state = {key: list(value.shape) for key, value in net.state_dict().items()}
    net.eval()
    out = net(t.ones(1, 2, dtype=t.float64))
    net.apply(lambda m: setattr(m, "seen", True))
    wrong = caught(lambda: net.load_state_dict({"nothing": t.ones(1)}), words=False)
    net.load_state_dict({key: value * 2 for key, value in net.state_dict().items()})
    net.requires_grad_(False)
    return [
        repr(net),
        state,
        plain(out),
        [n for n, _ in net.named_modules()],
        [n for n, _ in net.named_children()],
        net.training,
        net.b.training,
        wrong,
        [n for n, _ in net.named_parameters()],
        plain(net.a.weight),
        any(p.requires_grad for p in net.parameters()),
        caught(lambda: net.missing),
        caught(lambda: nn.Module()(1), words=False),
        net.items[1].in_features,
        len(net.b),
        repr(net.b[0:1]),
        caught(lambda: net.register_parameter("a", None), words=False),
        caught(lambda: setattr(net, "b", 3)),
    ]


@case
def optimisers(t: Any) -> Any:
    results = {}
    start = [0.5, -1.5, 2.0]
    makers = {
        "sgd": lambda p: t.optim.SGD(p, lr=0.1),
        "momentum": lambda p: t.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
        "nesterov": lambda p: t.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        "maximize": lambda p: t.optim.SGD(p, lr=0.01, maximize=True),
        "adam": lambda p: t.optim.Adam(p, lr=0.1, weight_decay=0.1),
        "amsgrad": lambda p: t.optim.Adam(p, lr=0.1, amsgrad=True),
        "adamw": lambda p: t.optim.AdamW(p, lr=0.1),
        "rmsprop": lambda p: t.optim.RMSprop(p, lr=0.05, momentum=0.5, centered=True),
        "groups": lambda p: t.optim.SGD([{"params": p, "lr": 0.05}], lr=1.0),
        "lbfgs": lambda p: t.optim.LBFGS(p, lr=0.5, max_iter=4),
    }
    for label, make in makers.items():
        x = leaf(t, *start)
        optimiser = make([x])

        def closure(x: Any = x, optimiser: Any = optimiser) -> Any:
            optimiser.zero_grad()
            loss = (x**4).sum() + (x[0] * x[1]) ** 2
            loss.backward()
            return loss

        for _ in range(5):
            optimiser.step(closure)
        results[label] = plain(x)
    return [
        results,
        caught(lambda: t.optim.SGD([], lr=0.1)),
        caught(lambda: t.optim.SGD(leaf(t, 1), lr=0.1), words=False),
        caught(lambda: t.optim.SGD([leaf(t, 1) * 2], lr=0.1)),
        caught(lambda: t.optim.SGD([leaf(t, 1)], lr=-1)),
    ]
