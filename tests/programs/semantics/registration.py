"""Programs that register, replace and remove the parameters, buffers and children of modules."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

from tests.programs.semantics.table import case, caught, plain


def _order(module: Any) -> Any:
    """Return everything in which the order of a module shows."""
    return [
        list(module.state_dict()),
        [name for name, _ in module.named_parameters()],
        [name for name, _ in module.named_buffers()],
        [name for name, _ in module.named_children()],
        [name for name, _ in module.named_modules()],
        repr(module),
    ]


def _cell(t: Any) -> Any:
    class Cell(t.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def __init__(self) -> None:
            super().__init__()
            self.gain = t.nn.Parameter(t.ones(1))
            self.rate = t.nn.Parameter(t.ones(2))
            self.inner = t.nn.Linear(1, 2)
            self.outer = t.nn.Linear(2, 1)
            self.register_buffer("mean", t.zeros(1))
            self.register_buffer("count", t.zeros(2))
            self.register_buffer("passing", t.zeros(3), persistent=False)
            self.note = "plain"

    return Cell()


def _set(name: str, make: Any) -> Any:
    return lambda t, cell: setattr(cell, name, make(t))


CHANGES: dict[str, Any] = {
    "parameter, another": _set("gain", lambda t: t.nn.Parameter(t.zeros(3))),
    "parameter, itself": lambda t, cell: setattr(cell, "gain", cell.gain),
    "parameter, registered": lambda t, cell: cell.register_parameter("gain", t.nn.Parameter(t.zeros(3))),
    "parameter, None": _set("gain", lambda t: None),
    "parameter, None and back": lambda t, cell: [
        setattr(cell, "gain", None), setattr(cell, "gain", t.nn.Parameter(t.zeros(1)))
    ],
    "parameter, registered as None": lambda t, cell: cell.register_parameter("gain", None),
    "parameter, tied": lambda t, cell: setattr(cell.inner, "weight", cell.outer.weight),
    "parameter, deleted and back": lambda t, cell: [
        delattr(cell, "gain"), setattr(cell, "gain", t.nn.Parameter(t.zeros(1)))
    ],
    "parameter, by a module": _set("gain", _cell),
    "parameter, by a tensor": _set("gain", lambda t: t.zeros(1)),
    "parameter, by a buffer": _set("gain", lambda t: t.nn.Buffer(t.zeros(1))),
    "parameter, registered as a buffer": lambda t, cell: cell.register_buffer("gain", t.zeros(1)),
    "parameter, by a number": _set("gain", lambda t: 3.0),
    "child, another": _set("inner", lambda t: t.nn.Linear(1, 3)),
    "child, added": lambda t, cell: cell.add_module("inner", t.nn.ReLU()),
    "child, registered as None": lambda t, cell: cell.register_module("inner", None),
    "child, None": _set("inner", lambda t: None),
    "child, None and back": lambda t, cell: [setattr(cell, "inner", None), setattr(cell, "inner", t.nn.ReLU())],
    "child, deleted and back": lambda t, cell: [delattr(cell, "inner"), setattr(cell, "inner", t.nn.ReLU())],
    "child, by a parameter": _set("inner", lambda t: t.nn.Parameter(t.zeros(1))),
    "child, by a tensor": _set("inner", lambda t: t.zeros(1)),
    "child, by a buffer": _set("inner", lambda t: t.nn.Buffer(t.zeros(1))),
    "child, by the other": lambda t, cell: setattr(cell, "inner", cell.outer),
    "child, by a dotted name": lambda t, cell: cell.set_submodule("inner", t.nn.ReLU()),
    "child, by a dotted name that is missing": lambda t, cell: cell.set_submodule("no", t.nn.ReLU(), strict=True),
    "child, by a new dotted name": lambda t, cell: cell.set_submodule("inner.more", t.nn.ReLU()),
    "child, on a parameter's dotted name": lambda t, cell: cell.set_submodule("inner.bias", t.nn.ReLU()),
    "buffer, another": _set("mean", lambda t: t.ones(4)),
    "buffer, a Buffer that does not persist": _set("mean", lambda t: t.nn.Buffer(t.ones(4), persistent=False)),
    "buffer that does not persist, a tensor": _set("passing", lambda t: t.ones(4)),
    "buffer that does not persist, a Buffer": _set("passing", lambda t: t.nn.Buffer(t.ones(4))),
    "buffer that does not persist, registered": lambda t, cell: cell.register_buffer("passing", t.ones(4)),
    "buffer that does not persist, deleted and back": lambda t, cell: [
        delattr(cell, "passing"), cell.register_buffer("passing", t.ones(4))
    ],
    "buffer, None and back": lambda t, cell: [setattr(cell, "mean", None), setattr(cell, "mean", t.ones(1))],
    "buffer, by a parameter": _set("mean", lambda t: t.nn.Parameter(t.zeros(1))),
    "buffer, by a module": _set("mean", lambda t: t.nn.Tanh()),
    "buffer, by a number": _set("mean", lambda t: 3),
    "buffer that does not persist, by a parameter and back": lambda t, cell: [
        setattr(cell, "passing", t.nn.Parameter(t.zeros(1))),
        delattr(cell, "passing"),
        cell.register_buffer("passing", t.ones(1)),
    ],
    "attribute, by a parameter": _set("note", lambda t: t.nn.Parameter(t.zeros(1))),
    "attribute, by a module": _set("note", lambda t: t.nn.Tanh()),
    "attribute, by a Buffer": _set("note", lambda t: t.nn.Buffer(t.zeros(1))),
    "attribute, registered": lambda t, cell: cell.register_parameter("note", None),
    "a method's name": lambda t, cell: cell.add_module("forward", t.nn.Tanh()),
    "a name with a dot": lambda t, cell: cell.add_module("a.b", t.nn.Tanh()),
    "a name with a dot, parameter": lambda t, cell: cell.register_parameter("a.b", None),
    "an empty name": lambda t, cell: cell.register_buffer("", None),
    "a number for a name": lambda t, cell: cell.register_buffer(1, None),
    "a class for a module": lambda t, cell: cell.add_module("kind", dict),
    "a result for a parameter": lambda t, cell: cell.register_parameter("fresh", cell.rate * 2),
    "nothing to delete": lambda t, cell: delattr(cell, "absent"),
}  # fmt: skip


@case
def what_replaces_an_entry_keeps_its_place(t: Any) -> Any:
    result = {}
    for label, change in CHANGES.items():
        cell = _cell(t)
        raised = caught(lambda change=change, cell=cell: [change(t, cell), 0][1])
        result[label] = [raised, _order(cell), sorted(key for key in vars(cell) if not key.startswith("_"))]
    return result


@case
def replaced_layers_run_in_their_places(t: Any) -> Any:
    net = t.nn.Sequential(OrderedDict(scale=t.nn.Linear(1, 1), bend=t.nn.ReLU(), last=t.nn.Linear(1, 1)))
    with t.no_grad():
        for number, parameter in enumerate(net.parameters()):
            parameter.fill_(number - 1.5)
    values = [plain(net(t.ones(1, 1) * 2))]
    for name, layer in list(net.named_children()):
        if isinstance(layer, t.nn.ReLU):
            setattr(net, name, t.nn.Sigmoid())
    values.append(plain(net(t.ones(1, 1) * 2)))
    net[-1] = t.nn.Tanh()
    values.append(plain(net(t.ones(1, 1) * 2)))
    return [[round(value[0][0], 5) for value in values], _order(net), caught(lambda: net.__setitem__(0, t.ones(1)))]


@case
def state_fits_after_replacing(t: Any) -> Any:
    first, second = _cell(t), _cell(t)
    for cell in (first, second):
        cell.gain = t.nn.Parameter(t.ones(2) * 3)
    slow = t.optim.SGD(first.parameters(), lr=0.1, momentum=0.9)
    first.gain.sum().backward()
    slow.step()
    again = t.optim.SGD(second.parameters(), lr=0.1, momentum=0.9)
    again.load_state_dict(slow.state_dict())
    t.nn.utils.vector_to_parameters(t.arange(12.0), second.parameters())
    kept = second.rate
    second.load_state_dict(first.state_dict(), assign=True)
    return [
        plain(again.state[second.gain]["momentum_buffer"]) if second.gain in again.state else None,
        {name: plain(value) for name, value in _cell(t).named_parameters() if name in ("gain", "rate")},
        {name: plain(value) for name, value in second.named_parameters() if name in ("gain", "rate")},
        plain(kept),
        kept is second.rate,
        second.rate.requires_grad,
        _order(second),
        _order(copy.deepcopy(second)),
    ]


@case
def lists_of_modules_grow_and_shrink(t: Any) -> Any:
    nn = t.nn

    def listed(*names: str) -> list[Any]:
        return [getattr(nn, name)() for name in names]

    grown = nn.ModuleList(listed("ReLU"))
    grown += listed("Tanh", "Sigmoid")
    more = grown + listed("Identity")
    inserted = grown.insert(1, nn.Softplus())
    grown[2] = nn.ELU()
    replaced = repr(grown)
    del grown[0]
    chain = nn.Sequential(*listed("ReLU", "Tanh"))
    doubled, tripled = chain * 2, 3 * chain
    chain += nn.Sequential(*listed("Sigmoid"))
    chain *= 2
    chain.insert(-1, nn.ELU())
    taken = repr(chain.pop(slice(0, 2)))
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh(), c=nn.ELU()))
    named.a = nn.Sigmoid()
    del named[1]
    return [
        [repr(value) for value in (grown, more, chain, doubled, tripled, named)],
        [inserted is None, replaced, taken, repr(grown[0:2]), [name for name in dir(chain) if name.isdigit()]],
        [
            caught(lambda: chain + listed("ReLU")),
            caught(lambda: chain * 0, words=False),
            caught(lambda: grown.extend(3)),
        ],
        [caught(lambda: chain.insert(9, nn.ELU())), caught(lambda: grown[True] is grown[1])],
        [caught(lambda: nn.Sequential(nn.ReLU(), 3)), caught(lambda: nn.ModuleList([dict])), caught(lambda: grown[9])],
        caught(lambda: grown.__setitem__(0, None)),
        repr(grown),
    ]


@case
def dicts_of_modules_and_parameters(t: Any) -> Any:
    nn = t.nn
    parts = nn.ModuleDict([("b", nn.ReLU()), ("a", nn.Tanh())])
    parts.update({"c": nn.ELU(), "b": nn.Sigmoid()})
    parts["a"] = nn.Softplus()
    weights = nn.ParameterDict({"w": t.ones(2), "b": t.zeros(1)})
    weights["w"] = t.ones(3)
    weights["label"] = "text"
    weights.b = nn.Parameter(t.ones(4))
    other = weights.copy()
    other |= {"z": t.ones(1), "y": t.ones(2)}
    both = weights | nn.ParameterDict({"q": t.ones(1)})
    weights["w"] = None
    again = nn.ParameterDict([("k", t.ones(1))])
    kept = [
        again.setdefault("k", t.zeros(9)) is again["k"],
        again.get("no", 3),
        list(again.setdefault("n", t.ones(2)).shape),
    ]
    last = again.popitem()[0]
    result = [repr(value) for value in (parts, weights, other, both, again)]
    again.clear()
    return [
        result, kept, last, len(again), list(reversed(other)), list(both.keys()),
        [name for name, _ in weights.named_parameters()], [name for name, _ in other.named_parameters()],
        [caught(lambda: weights(1)), caught(lambda: weights.update(3)), caught(lambda: weights["no"], words=False)],
        [caught(lambda: parts.update(3)), caught(lambda: parts.update([("a", 1, 2)]))],
        caught(lambda: parts.update([3])),
        caught(lambda: weights.__setitem__(3, t.ones(1))),
        list(nn.ParameterDict().fromkeys(["p", "q"], 1).items()),
    ]  # fmt: skip


@case
def lists_of_parameters(t: Any) -> Any:
    nn = t.nn
    values = nn.ParameterList([t.ones(2), nn.Parameter(t.zeros(1)), "text"])
    values += [t.ones(3)]
    values[0] = t.zeros(5)
    values[-1] = None
    part = values[1:]
    return [
        [repr(value) for value in (values, part)],
        [name for name, _ in values.named_parameters()],
        [type(value).__name__ for value in values],
        len(nn.ParameterList()),
        caught(lambda: values.extend(t.ones(2))),
        caught(lambda: values[7]),
        caught(values),
        _order(copy.deepcopy(values)),
    ]
