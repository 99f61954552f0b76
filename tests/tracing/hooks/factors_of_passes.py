"""Programs with hooks: several roots, modules, gradients that share memory, views, hooks that do not just multiply.

`on(tensor, hook)` registers, or does not. Each returns its leaves by the names that a trace gives them.
"""

from tests.tracing.hooks.factors_of_nodes import matrix, scaled, vector


# --- roots
def two_roots(f, on):
    x = vector(f, 2)
    y = x * x
    z = (y * 3).sum()
    on(z, scaled(5))
    f.autograd.backward([y, z], [f.ones(2, dtype=f.float64), None])
    return {"x": x}


def the_inner_of_two_roots(f, on):
    x = vector(f, 2)
    y = x * x
    z = (y * 3).sum()
    on(y, scaled(5))
    f.autograd.backward([y, z], [f.ones(2, dtype=f.float64), None])
    return {"x": x}


def two_outputs_as_roots(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    on(a, scaled(5))
    f.autograd.backward([a, b], [f.ones(2, dtype=f.float64), f.ones(2, dtype=f.float64)])
    return {"x": x}


def the_leaf_as_a_root(f, on):
    x = vector(f, 2)
    y = (x * x).sum()
    on(y, scaled(5))
    f.autograd.backward([y, x], [None, f.ones(2, dtype=f.float64)])
    return {"x": x}


def only_for_one_leaf(f, on):
    x, w = vector(f, 2), vector(f, 2)
    y = x * w
    on(y, scaled(5))
    y.sum().backward(inputs=[x])
    return {"x": x}


# --- modules
def one_argument_of_a_module(f, on):
    class Product(f.nn.Module):
        def forward(self, p, q):
            return p * q

    x, w = vector(f, 2), vector(f, 2)
    product = Product()
    if on.registers:
        product.register_full_backward_hook(lambda m, given, _: (given[0] * 7, given[1]))
    product(x, w).sum().backward()
    return {"x": x, "w": w}


def one_result_of_a_module(f, on):
    class Both(f.nn.Module):
        def forward(self, p, q):
            return p * q, p + q

    x, w = vector(f, 2), vector(f, 2)
    both = Both()
    if on.registers:
        both.register_full_backward_pre_hook(lambda m, given: (given[0] * 7, given[1]))
    a, b = both(x, w)
    (a + b).sum().backward()
    return {"x": x, "w": w}


def one_leaf_as_both_arguments(f, on):
    class Product(f.nn.Module):
        def forward(self, p, q):
            return p * q

    x = vector(f, 2)
    product = Product()
    if on.registers:
        product.register_full_backward_hook(lambda m, given, _: (given[0] * 7, given[1]))
    product(x, x).sum().backward()
    return {"x": x}


def weight_used_in_two_layers(f, on):
    enc, dec = f.nn.Linear(2, 2, bias=False), f.nn.Linear(2, 2, bias=False)
    x = matrix(f).float().detach()
    f.nn.init.constant_(enc.weight, 0.5)
    w = dec.weight = enc.weight
    y = enc(x)
    on(y, scaled(2))
    dec(y).sum().backward()
    return {"enc.weight": w}


# --- gradients that share memory, views and operations in place
def in_place_on_a_shared_gradient(f, on):
    x, w = vector(f, 2), vector(f, 2)
    a, b = x * 1, w * 1
    on(a, lambda g: g.mul_(3))
    on(w, scaled(2))
    (a + b).backward(f.ones(2, dtype=f.float64))
    return {"x": x, "w": w}


def in_place_on_a_leaf(f, on):
    x, w = vector(f, 2), vector(f, 2)
    on(x, lambda g: g.mul_(3))
    (x + w).backward(f.ones(2, dtype=f.float64))
    return {"x": x, "w": w}


def in_place_before_another_use(f, on):
    x, w = vector(f, 2), vector(f, 2)
    y = x * 1
    on(y, lambda g: g.mul_(3))
    z = y + w
    (z + y * 2).backward(f.ones(2, dtype=f.float64))
    return {"x": x, "w": w}


def before_an_operation_in_place(f, on):
    x = vector(f, 2)
    y = x * 3
    on(y, scaled(2))
    y.mul_(2)
    on(y, scaled(5))
    (y * y).sum().backward()
    return {"x": x}


def a_view_that_is_written_to(f, on):
    x = vector(f, 3)
    y = x * 1
    v = y[:2]
    v.mul_(10)
    on(v, scaled(3))
    on(y, scaled(3))
    (y.sum() + v.sum()).backward()
    return {"x": x}


def a_view_of_a_base_with_a_hook(f, on):
    x = vector(f, 3)
    y = x * 1
    on(y, scaled(4))
    y[0] = y[1] * 5
    y.sum().backward()
    return {"x": x}


def expanded(f, on):
    x = vector(f, 1)
    y = x.expand(3)
    on(y, lambda g: g * f.tensor([1.0, 0.0, 0.0], dtype=f.float64))
    (y * f.tensor([1.0, 2.0, 3.0], dtype=f.float64)).sum().backward()
    return {"x": x}


# --- several passes, and what .grad held before
def filled_by_hand(f, on):
    x = vector(f, 2)
    on(x, scaled(2))
    (x * x).sum().backward()
    return {"x": x}


def clipped(f, on):
    x = vector(f, 3)
    on(x, lambda g: g.clamp(-3, 3))
    (x * x).sum().backward()
    return {"x": x}


def clipped_after_a_factor(f, on):
    x = f.tensor([5.0, 5.0], dtype=f.float64, requires_grad=True)
    y = x * 1
    on(y, scaled(2))
    on(x, lambda g: g.clamp(-3, 3))
    (y * y).sum().backward()
    return {"x": x}


def cancelled_by_a_factor(f, on):
    x = vector(f, 2)
    a, b = x * 2, x * 4
    y = a * 1
    on(y, scaled(-2))
    (y + b).sum().backward()
    return {"x": x}


def cancelled_without_a_factor(f, on):
    x = vector(f, 2)
    a, b = x * 2, x * -2
    on(a, scaled(3))
    (a + b).sum().backward()
    return {"x": x}
