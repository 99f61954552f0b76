"""Programs on hooks of tensors, nodes, saved tensors and modules."""

from __future__ import annotations

from typing import Any

from tests.programs.semantics.table import case, caught, leaf, plain


@case
def hooks_on_tensors(t: Any) -> Any:
    log: list[Any] = []
    x = leaf(t, 1, 2)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    handle = y.register_hook(lambda g: log.append(["y", plain(g)]))
    x.register_hook(lambda g: log.append(["x", plain(g)]))
    x.register_post_accumulate_grad_hook(lambda p: log.append(["post", plain(p.grad)]))
    y.sum().backward(retain_graph=True)
    handle.remove()
    handle.remove()
    y.sum().backward()
    with y.register_hook(lambda g: g):
        inside = len(y._backward_hooks)
    return [
        log,
        plain(y.grad),
        plain(x.grad),
        inside,
        len(y._backward_hooks),
        type(x._backward_hooks).__name__,
        x._post_accumulate_grad_hooks is not None,
        t.ones(1)._backward_hooks,
        caught(lambda: y.register_post_accumulate_grad_hook(lambda p: None)),
    ]


@case
def hooks_replaced_in_their_dict(t: Any) -> Any:
    log: list[Any] = []
    x = leaf(t, 1, 2)
    y = x * 2
    y.register_hook(lambda g: log.append("original"))
    for hooks in (y._backward_hooks,):
        for key in list(hooks):
            hooks[key] = lambda g: log.append("replaced")
    y.sum().backward()
    return log


@case
def hooks_on_nodes(t: Any) -> Any:
    log: list[Any] = []
    x, w = leaf(t, 1, 2), leaf(t, 3, 4)
    y = x * w
    y.grad_fn.register_prehook(lambda gs: log.append(["pre", plain(gs)]))
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    y.grad_fn.register_hook(lambda gi, go: log.append(["post", plain(gi), plain(go)]))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    y.sum().backward()
    first = [plain(x.grad), plain(w.grad)]
    node = (x * 1).grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: log.append(["leaf", len(gi), plain(go)]))
    (x * 2).sum().backward()
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: (gi[0],))
    return [log, first, caught(lambda: y.sum().backward())]


@case
def hooks_and_in_place(t: Any) -> Any:
    log: list[Any] = []
    x = leaf(t, 1, 2)
    y = x * 2
    y.register_hook(lambda g: log.append(["before", plain(g)]))
    y.mul_(3)
    y.register_hook(lambda g: log.append(["after", plain(g)]))
    y.retain_grad()
    (y * 5).sum().backward()
    return [log, plain(y.grad), plain(x.grad)]


@case
def multi_grad_hooks(t: Any) -> Any:
    log: list[Any] = []
    a, b, c = leaf(t, 1), leaf(t, 2), leaf(t, 3)
    t.autograd.graph.register_multi_grad_hook((a, b), lambda gs: log.append(plain(gs)))
    (a * b).backward()
    handle = t.autograd.graph.register_multi_grad_hook((a, b, c), lambda g: log.append(["any", plain(g)]), mode="any")
    (a * b * c).backward()
    handle.remove()
    return log


@case
def saved_tensor_hooks(t: Any) -> Any:
    log: list[Any] = []
    x = leaf(t, 1, 2)

    def pack(tensor: Any) -> Any:
        log.append(["pack", plain(tensor)])
        return tensor.tolist()

    def unpack(packed: Any) -> Any:
        log.append(["unpack", packed])
        return t.tensor(packed, dtype=t.float64)

    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    y.sum().backward()
    return [sorted(map(str, log)), plain(x.grad)]


@case
def module_hooks_of_every_kind(t: Any) -> Any:
    log: list[Any] = []

    class Both(t.nn.Module):
        def forward(self, a: Any, b: Any, k: int = 2) -> Any:
            return a * b, a + k

    both = Both()
    both.register_full_backward_hook(lambda m, i, o: log.append([plain(i), plain(o)]))
    a = t.ones(2, requires_grad=True)
    p, _ = both(a, t.ones(2), k=3)
    p.sum().backward()
    linear = t.nn.Linear(2, 2)
    linear.register_full_backward_pre_hook(lambda m, g: (g[0] * 0,))
    linear.register_forward_pre_hook(lambda m, args, kwargs: log.append([len(args), list(kwargs)]), with_kwargs=True)
    b = t.ones(1, 2, requires_grad=True)
    linear(input=b).sum().backward()
    linear(b).sum().backward()
    legacy = t.nn.Linear(2, 1)
    handle = legacy.register_backward_hook(lambda m, i, o: log.append([len(i), len(o)]))
    legacy(t.ones(2, requires_grad=True)).backward()
    handle.remove()
    legacy(t.ones(2)).backward()
    return [log, plain(b.grad), caught(lambda: linear.register_backward_hook(lambda m, i, o: None) is not None)]
