"""Random programs of recorded operations, hooks, views and in-place writes, run in step on two frameworks."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

UNARY = ["sin", "cos", "tanh", "sigmoid", "neg", "abs", "exp", "relu", "clone", "contiguous", "square"]
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y * y + 1),
    "maximum": lambda x, y: x.maximum(y),
    "where": lambda x, y: (x > y).to(x.dtype) * x + y,
}
IN_PLACE = ["sin_", "tanh_", "neg_", "sigmoid_", "relu_", "zero_"]
SHAPES = [(3,), (2, 3), (3, 2), (2, 1), (1, 3), (), (2, 2, 3)]


VIEWS = {
    f"{name}Backward{n}"
    for name in ["AsStrided", "Select", "Slice", "View", "Unsqueeze", "Squeeze", "Transpose", "Permute", "Expand"]
    for n in (0, 1)
}


def broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Tell whether two shapes fit."""
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(first), reversed(second), strict=False))


class Machine:
    """One framework running a program: its values, its leaves, and what its hooks have said."""

    def __init__(self, framework: Any) -> None:
        self.t = framework
        self.values: list[Any] = []
        self.versions: list[int] = []
        self.leaves: list[Any] = []
        self.log: list[Any] = []

    def leaf(self, array: np.ndarray) -> None:
        """Add a tracked leaf."""
        leaf = self.t.tensor(array, requires_grad=True)
        self.leaves.append(leaf)
        self.values.append(leaf)
        self.versions.append(0)

    def hook(self, label: str, factor: float | None) -> Callable[[Any], Any]:
        """Return a hook that writes down what it sees, and replaces it if there is a factor."""

        def hook(g: Any) -> Any:
            self.log.append((label, g.detach().numpy().copy()))
            return None if factor is None else g * factor

        return hook


class Program:
    """A program for two machines: every step is drawn once and taken by both."""

    def __init__(self, seed: int, frameworks: list[Any]) -> None:
        self.random = random.Random(seed)
        self.arrays = np.random.default_rng(seed)
        self.machines = [Machine(framework) for framework in frameworks]
        self.text: list[str] = []

    def shape(self, index: int) -> tuple[int, ...]:
        return tuple(self.machines[0].values[index].shape)

    def pick(self) -> int:
        return self.random.randrange(len(self.machines[0].values))

    def both(self, text: str, step: Callable[[Machine], Any]) -> None:
        """Take a step on both; what it returns becomes a value, and what it raises must be of one class."""
        self.text.append(text)
        outcomes = []
        for machine in self.machines:
            try:
                outcomes.append(step(machine))
            except Exception as error:
                outcomes.append(error)
        kinds = [type(entry).__name__ if isinstance(entry, Exception) else "" for entry in outcomes]
        assert kinds[0] == kinds[1], f"{kinds}\n{outcomes}\n{self}"
        if outcomes[0] is not None and not kinds[0]:
            for machine, value in zip(self.machines, outcomes, strict=True):
                machine.values.append(value)
                machine.versions.append(value._version)

    def __str__(self) -> str:
        return "\n".join(self.text)

    # --- steps
    def start(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            array = self.arrays.normal(size=self.random.choice(SHAPES))
            self.text.append(f"leaf {array.shape}")
            for machine in self.machines:
                machine.leaf(array)

    def unary(self) -> None:
        i, name = self.pick(), self.random.choice(UNARY)
        self.both(f"{name} {i}", lambda m: getattr(m.values[i].clamp(-3, 3) if name == "exp" else m.values[i], name)())

    def binary(self) -> None:
        i, j, name = self.pick(), self.pick(), self.random.choice(list(BINARY))
        if broadcast(self.shape(i), self.shape(j)):
            self.both(f"{name} {i} {j}", lambda m: BINARY[name](m.values[i], m.values[j]))

    def number(self) -> None:
        i, value = self.pick(), round(self.random.uniform(-2, 2), 2)
        form = self.random.choice(["x * c", "c - x", "x + c", "x / 2", "x ** 2", "x ** 3"])
        self.both(f"{form} {i} {value}", lambda m: eval(form, {"x": m.values[i], "c": value}))

    def reduce(self) -> None:
        i, name = self.pick(), self.random.choice(["sum", "mean", "amax", "logsumexp"])
        ndim = len(self.shape(i))
        if ndim:
            dim, keep = self.random.randrange(-ndim, ndim), self.random.random() < 0.5
            self.both(f"{name} {i} {dim} {keep}", lambda m: getattr(m.values[i], name)(dim, keepdim=keep))

    def view(self) -> None:
        i = self.pick()
        shape = self.shape(i)
        forms: list[tuple[str, Callable[[Any], Any]]] = [
            ("unsqueeze", lambda x: x.unsqueeze(-1)),
            ("reshape", lambda x: x.reshape(-1)),
            ("expand", lambda x: x.expand(2, *shape)),
        ]
        if shape:
            forms += [("slice", lambda x: x[1:]), ("select", lambda x: x[0]), ("view", lambda x: x.view(-1))]
            forms += [("step", lambda x: x[::2]), ("flip", lambda x: x.flip(0)), ("squeeze", lambda x: x.squeeze(0))]
        if len(shape) > 1:
            forms += [("t", lambda x: x.transpose(0, -1)), ("last", lambda x: x[..., -1]), ("T", lambda x: x.mT)]
        name, form = self.random.choice(forms)
        self.both(f"{name} {i}", lambda m: form(m.values[i]))

    def join(self) -> None:
        i = self.pick()
        if self.shape(i):
            name = self.random.choice(["cat", "stack"])
            self.both(f"{name} {i}", lambda m: getattr(m.t, name)([m.values[i], m.values[i] * 2], 0))

    def product(self) -> None:
        i, j = self.pick(), self.pick()
        first, second = self.shape(i), self.shape(j)
        if not first or not second or len(second) > 2 or len(first) < len(second):
            return  # PyTorch folds, squeezes or expands batches in ways that depend on strides and flags
        if len(first) > 2 and not self.machines[0].values[j].requires_grad:
            return
        if first[-1] == second[0]:
            self.both(f"matmul {i} {j}", lambda m: m.values[i] @ m.values[j])

    def write(self) -> None:
        i, name = self.pick(), self.random.choice([*IN_PLACE, "add_", "mul_", "setitem", "part"])

        def step(machine: Machine) -> None:
            x = machine.values[i]
            if name == "zero_" and any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape, strict=True)):
                return  # PyTorch lets an expanded tensor be filled; here every write to one is refused
            if name in ("add_", "mul_"):
                getattr(x, name)(0.5)
            elif name == "setitem":
                x[..., :1] = x.detach()[..., :1] * 0.3
            elif name == "part":
                x[0] *= 2
            else:
                getattr(x, name)()

        if self.shape(i) or name not in ("setitem", "part"):
            self.both(f"{name} {i}", step)

    def quiet(self) -> None:
        i, how = self.pick(), self.random.choice(["detach", "no_grad", "data"])

        def step(machine: Machine) -> Any:
            if how == "detach":
                return machine.values[i].detach()
            if how == "data":
                return machine.values[i].data * 1
            with machine.t.no_grad():
                return machine.values[i] * 2

        self.both(f"{how} {i}", step)

    def watch(self) -> None:
        i, how = self.pick(), self.random.choice(["look", "look", "scale", "retain", "post", "pre", "node"])

        def step(machine: Machine) -> None:
            x, label = machine.values[i], f"{how} {i}"
            if x._base is not None:  # PyTorch 2.13 crashes on hooks of some views whose base has been written to
                return
            if how in ("look", "scale"):
                x.register_hook(machine.hook(label, None if how == "look" else 0.5))
            elif how == "retain":
                x.retain_grad()
            elif how == "post":
                x.register_post_accumulate_grad_hook(lambda p: machine.log.append((label, p.grad.numpy().copy())))
            elif x.grad_fn is not None and how == "pre":
                x.grad_fn.register_prehook(lambda gs: machine.log.append((label, len(gs))))
            elif x.grad_fn is not None:
                x.grad_fn.register_hook(lambda gi, go: machine.log.append((label, len(gi), len(go))))

        self.both(f"{how} {i}", step)

    def run(self) -> None:
        """Draw the steps, with more of the plain ones."""
        self.start()
        steps = [self.unary, self.binary, self.binary, self.number, self.number, self.reduce, self.view, self.view]
        steps += [self.join, self.product, self.write, self.write, self.quiet, self.watch, self.watch]
        for _ in range(self.random.randint(5, 40)):
            self.random.choice(steps)()


def graph(node: Any) -> list[Any]:
    """Return the graph below a node: names, and where the edges go, nodes numbered as they are met."""
    numbers: dict[Any, int] = {}
    result: list[Any] = []
    stack = [node] if node is not None else []
    while stack:
        current = stack.pop()
        if current in numbers:
            continue
        numbers[current] = len(numbers)
        following = [entry for entry, _ in current.next_functions if entry is not None]
        result.append((type(current).__name__, len(current.next_functions)))
        stack.extend(reversed(following))
    return result


def array(value: Any) -> np.ndarray | None:
    """Return a tensor's values."""
    return None if value is None else np.asarray(value.detach().numpy())


def differentiate(machine: Machine, how: str) -> list[Any]:
    """Run backward passes over the last tracked values, and return all that can be seen afterwards."""
    tracked = [value for value in machine.values if value.requires_grad]
    total = sum((value * value).sum() for value in tracked[-3:])
    seen: list[Any] = []
    try:
        if how == "twice":
            total.backward(retain_graph=True)
            total.backward()
        elif how == "second":
            first = machine.t.autograd.grad(total, machine.leaves, create_graph=True, allow_unused=True)
            seen += [array(entry) for entry in first]
            again = [entry for entry in first if entry is not None and entry.requires_grad]
            if again:
                sum((entry * entry).sum() for entry in again).backward()
        elif how == "inputs":
            total.backward(inputs=machine.leaves[:1])
        else:
            total.backward()
    except Exception as error:
        seen.append(type(error).__name__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen += [array(value.grad) for value in machine.values]
    return seen


def same(ours: Any, theirs: Any) -> bool:
    """Compare nested results, arrays to 1e-7 of their size."""
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-7, atol=1e-9, equal_nan=True)
    return type(ours) is type(theirs) and bool(ours == theirs)


def compare(seed: int, frameworks: list[Any]) -> None:
    """Run one program on two frameworks, and require that everything agrees."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        program = Program(seed, frameworks)
        program.run()
        first, second = program.machines
        values = [[array(value) for value in machine.values] for machine in program.machines]
        assert same(*values), f"values\n{program}"
        flags = [
            [
                (v.requires_grad, v.is_leaf, v._version - n)
                for v, n in zip(machine.values, machine.versions, strict=True)
            ]
            for machine in program.machines
        ]
        assert flags[0] == flags[1], f"flags {flags}\n{program}"
        for mine, theirs in zip(first.values, second.values, strict=True):
            graphs = graph(mine.grad_fn), graph(theirs.grad_fn)
            if ("AsStridedBackward0", 1) in graphs[
                1
            ]:  # here a view's own node comes again after its base was written to
                graphs = tuple([entry for entry in names if entry[0] not in VIEWS] for names in graphs)  # type: ignore[assignment]  # two again
            assert graphs[0] == graphs[1], f"{graphs[0]}\n{graphs[1]}\n{program}"
        if not any(value.requires_grad for value in first.values):
            return
        how = random.Random(seed).choice(["once", "twice", "second", "inputs"])
        seen = [differentiate(machine, how) for machine in program.machines]
        assert same(*seen), f"{how}: {seen[0]}\n{seen[1]}\n{program}"
        assert same(first.log, second.log), f"hooks, {how}\n{first.log}\n{second.log}\n{program}"
