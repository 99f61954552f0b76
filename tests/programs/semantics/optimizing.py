"""Programs on the states, groups and errors of optimizers, on copies of parameters, and on losses of two types."""

from __future__ import annotations

import copy
from typing import Any

from tests.programs.semantics.table import case, caught, name, plain


def _stepped(t: Any, optimizer: Any, *parameters: Any) -> None:
    optimizer.zero_grad()
    sum((parameter * parameter).sum() for parameter in parameters).backward()
    optimizer.step()


@case
def states_of_optimizers(t: Any) -> Any:
    result = {}
    for kind, options in [
        ("SGD", {"momentum": 0.9}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("RMSprop", {}),
        ("RMSprop", {"momentum": 0.5, "centered": True}),
        ("Adagrad", {}), ("Adagrad", {"initial_accumulator_value": 0.5}),
        ("Adadelta", {}), ("Adamax", {}), ("NAdam", {}), ("RAdam", {}), ("Rprop", {}),
    ]:  # fmt: skip
        used, unused = t.ones(2, dtype=t.float64, requires_grad=True), t.ones(1, requires_grad=True)
        optimizer = getattr(t.optim, kind)([used, unused], lr=0.25, **options)
        before = [sorted(state) for state in optimizer.state.values()]
        for _ in range(3):
            _stepped(t, optimizer, used)
        step = optimizer.state[used].get("step")
        again = copy.deepcopy(optimizer.state_dict())
        _stepped(t, optimizer, used)
        result[f"{kind} {options}"] = [
            before,
            sorted(optimizer.state[used]),
            [plain(step), str(getattr(step, "dtype", None))],
            sorted(again["state"]),
            list(again["param_groups"][0])[:2],
            [round(value, 6) for value in plain(used)],
        ]
        other = t.ones(2, dtype=t.float64, requires_grad=True)
        fresh = getattr(t.optim, kind)([other, t.ones(1)], lr=0.25, **options)
        fresh.load_state_dict(again)
        _stepped(t, fresh, other)
        result[f"{kind} {options}"] += [plain(fresh.state[other].get("step"))]
    return result


@case
def steps_counted_in_the_default_type(t: Any) -> Any:
    weight = t.ones(2, dtype=t.float16, requires_grad=True)
    optimizer = t.optim.Adam([weight], lr=0.25)
    _stepped(t, optimizer, weight)
    return [str(value.dtype) for value in optimizer.state[weight].values()]


@case
def groups_of_optimizers(t: Any) -> Any:
    first, second = t.ones(1, requires_grad=True), t.ones(2, requires_grad=True)
    group = {"params": second, "lr": 0.5}
    optimizer = t.optim.SGD([{"params": [first]}, group], lr=0.1)
    return [
        repr(optimizer),
        optimizer.param_groups[1] is group,
        sorted(group),
        caught(lambda: t.optim.LBFGS([first]).step(), words=True),
        caught(lambda: optimizer.add_param_group({"params": {first}})),
        caught(lambda: optimizer.add_param_group([first])),
        caught(lambda: optimizer.load_state_dict({"state": {}, "param_groups": []})),
        caught(lambda: optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}, {"params": []}]})),
    ]


@case
def copies_of_parameters(t: Any) -> Any:
    layer = t.nn.Linear(1, 1)
    layer(t.ones(2, 1)).sum().backward()
    layer.weight.tag = "mine"
    tied = t.nn.ModuleList([layer, layer])
    copied, whole = copy.deepcopy(layer), copy.deepcopy(tied)
    weight = t.ones(1, requires_grad=True)
    weight.sum().backward()
    return [
        [parameter.grad is None for parameter in copied.parameters()],
        "tag" in dir(copied.weight),
        whole[0].weight is whole[1].weight,
        [copied.weight.requires_grad, type(copied.weight).__name__, plain(copied.weight) == plain(layer.weight)],
        plain(copy.deepcopy(weight).grad),
        plain(layer.weight.grad),
    ]


@case
def losses_of_two_types(t: Any) -> Any:
    losses = [t.nn.MSELoss(), t.nn.MSELoss(reduction="none"), t.nn.L1Loss(), t.nn.SmoothL1Loss()]
    result = []
    for loss in losses:
        for kinds in ((t.float32, t.int64), (t.int32, t.float32), (t.float32, t.float64), (t.float16, t.float32)):
            first, second = t.full((2,), 3, dtype=kinds[0]), t.full((2,), 1, dtype=kinds[1])
            if first.dtype.is_floating_point:
                first.requires_grad_()
            value = loss(first, second)
            if first.requires_grad:
                value.sum().backward()
            result.append([str(value.dtype), plain(value), None if first.grad is None else str(first.grad.dtype)])
    return result


@case
def graphs_of_linear_layers(t: Any) -> Any:
    layers = [t.nn.Linear(2, 3), t.nn.Linear(2, 3, bias=False)]
    x = t.ones(2, 4, 5, 2)
    inputs = [x, x[0], x[0, 0], x[0, 0, 0], x[0].transpose(0, 1), x.transpose(1, 2), x[:0]]
    outputs = [layer(value) for layer in layers for value in inputs]
    return [[name(value), list(value.shape)] for value in outputs]
