"""Programs with hooks on nodes of several outputs or operands: `on(tensor, hook)` registers, or does not.

Each returns its leaves by the names that a trace gives them.
"""


def matrix(f, rows=2):
    return f.tensor([[1.0 + 2 * i, 2.0 + 3 * i] for i in range(rows)], dtype=f.float64, requires_grad=True)


def vector(f, size=4):
    return f.tensor([1.0 + i for i in range(size)], dtype=f.float64, requires_grad=True)


def scaled(factor):
    return lambda g: g * factor


# --- nodes with several outputs
def unbind_both(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    on(a, scaled(2))
    on(b, scaled(2))
    (a * b).sum().backward()
    return {"x": x}


def unbind_both_differently(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    on(a, scaled(2))
    on(b, scaled(3))
    (a * b).sum().backward()
    return {"x": x}


def unbind_one(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    on(b, scaled(-1))
    (a * b).sum().backward()
    return {"x": x}


def unbind_one_beside_an_unused(f, on):
    x = matrix(f)
    a, _ = x.unbind(0)
    on(a, scaled(3))
    (a * a).sum().backward()
    return {"x": x}


def unbind_one_beside_a_zero(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    on(a, scaled(3))
    (a * a + b * 0).sum().backward()
    return {"x": x}


def unbind_one_beside_one_that_a_hook_zeroes(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    on(a, scaled(3))
    on(b, scaled(0))
    (a * b).sum().backward()
    return {"x": x}


def all_zeroed(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    on(a, scaled(0))
    on(b, scaled(0))
    (a * b).sum().backward()
    return {"x": x}


def unbind_both_and_the_leaf(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    on(a, scaled(2))
    on(b, scaled(2))
    on(x, scaled(5))
    (a * b).sum().backward()
    return {"x": x}


def unbind_one_and_the_leaf(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    on(a, scaled(2))
    on(x, scaled(5))
    (a * b).sum().backward()
    return {"x": x}


def unbind_before_all_outputs_meet(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    y = a * b
    on(y, scaled(7))
    y.sum().backward()
    return {"x": x}


def split_one(f, on):
    x = vector(f)
    a, b = x.split(2)
    on(a, scaled(10))
    (a * b).sum().backward()
    return {"x": x}


def chunks_each(f, on):
    x = vector(f, 6)
    parts = x.chunk(3)
    for part in parts:
        on(part, scaled(0.5))
    (parts[0] * parts[1] * parts[2]).sum().backward()
    return {"x": x}


def chunks_but_one(f, on):
    x = vector(f, 6)
    parts = x.chunk(3)
    for part in parts[:2]:
        on(part, scaled(0.5))
    (parts[0] * parts[1] * parts[2]).sum().backward()
    return {"x": x}


def slices(f, on):
    x = vector(f)
    a, b = x[:2], x[2:]
    on(a, scaled(10))
    (a * b).sum().backward()
    return {"x": x}


def both_slices(f, on):
    x = vector(f)
    a, b = x[:2], x[2:]
    on(a, scaled(10))
    on(b, scaled(10))
    (a * b).sum().backward()
    return {"x": x}


def svd_one(f, on):
    x = f.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=f.float64, requires_grad=True)
    u, s, _ = f.linalg.svd(x)
    on(s, scaled(10))
    (s.sum() + u.abs().sum()).backward()
    return {"x": x}


def svd_alone(f, on):
    x = f.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=f.float64, requires_grad=True)
    _, s, _ = f.linalg.svd(x)
    on(s, scaled(10))
    (s * s).sum().backward()
    return {"x": x}


def values_of_topk(f, on):
    x = vector(f)
    values, _ = f.topk(x, 2)
    on(values, scaled(4))
    (values * values).sum().backward()
    return {"x": x}


def values_of_max(f, on):
    x, w = matrix(f), vector(f, 2)
    values, _ = f.max(x, dim=1)
    on(values, scaled(4))
    (values * w).sum().backward()
    return {"x": x, "w": w}


# --- nodes with several operands
def stacked(f, on):
    x, w = vector(f, 2), vector(f, 2)
    y = f.stack([x, w * 3])
    on(y, scaled(2))
    (y * y).sum().backward()
    return {"x": x, "w": w}


def stacked_and_unbound(f, on):
    x, w = vector(f, 2), vector(f, 2)
    a, b = f.stack([x, w]).unbind(0)
    on(a, scaled(2))
    (a * b).sum().backward()
    return {"x": x, "w": w}


def joined_twice(f, on):
    x = vector(f, 2)
    a, b = x * 2, x * 3
    on(a, scaled(6))
    on(b, scaled(6))
    f.cat([a, b]).sum().backward()
    return {"x": x}


def used_twice(f, on):
    x = vector(f, 2)
    y = x * 2
    on(y, scaled(3))
    (y * y + x).sum().backward()
    return {"x": x}


def squared_by_itself(f, on):
    x = vector(f, 2)
    y = x * x
    on(y, scaled(3))
    y.sum().backward()
    return {"x": x}


def diamond_that_ends_equal(f, on):
    x = vector(f, 2)
    y = x * 2
    a, b = y * 3, y * 4
    on(a, scaled(6))
    on(b, scaled(2))
    c = b * 1
    on(c, scaled(3))
    (a + c).sum().backward()
    return {"x": x}


def diamond_with_a_detour(f, on):
    x, w = vector(f, 2), vector(f, 2)
    y = x * w
    on(y, scaled(2))
    z = y * w
    on(z, scaled(2))
    (z + y).sum().backward()
    return {"x": x, "w": w}


def one_operand_of_a_node(f, on):
    x, w = vector(f, 2), vector(f, 2)
    y = x * w
    if on.registers:
        y.grad_fn.register_hook(lambda given, _: (given[0] * 7, given[1]))
    y.sum().backward()
    return {"x": x, "w": w}


def operands_of_a_node_differently(f, on):
    x, w = vector(f, 2), vector(f, 2)
    y = x * w
    if on.registers:
        y.grad_fn.register_hook(lambda given, _: (given[0] * 7, given[1] * 2))
    y.sum().backward()
    return {"x": x, "w": w}


def one_output_before_its_node(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    if on.registers:
        a.grad_fn.register_prehook(lambda given: (given[0] * 7, *given[1:]))
    (a * b).sum().backward()
    return {"x": x}


def both_outputs_before_their_node(f, on):
    x = matrix(f)
    a, b = x.unbind(0)
    if on.registers:
        a.grad_fn.register_prehook(lambda given: tuple(g * 7 for g in given))
    (a * b).sum().backward()
    return {"x": x}


def one_half_of_a_concatenation(f, on):
    x, w = vector(f, 2), vector(f, 2)
    y = f.cat([x, w])
    a, b = y[:2], y[2:]
    on(a, scaled(10))
    (a * b).sum().backward()
    return {"x": x, "w": w}


def custom(f, backward):
    class Two(f.autograd.Function):
        @staticmethod
        def forward(ctx, p, q):
            return p * 2, q * 3

    Two.backward = staticmethod(backward)
    return Two


def one_output_of_a_function(f, on):
    x, w = vector(f, 2), vector(f, 2)
    a, b = custom(f, lambda ctx, g, h: (g * 2, h * 3)).apply(x, w)
    on(a, scaled(10))
    (a * b).sum().backward()
    return {"x": x, "w": w}


def both_outputs_of_a_function(f, on):
    x, w = vector(f, 2), vector(f, 2)
    a, b = custom(f, lambda ctx, g, h: (g * 2, h * 3)).apply(x, w)
    on(a, scaled(10))
    on(b, scaled(10))
    (a * b).sum().backward()
    return {"x": x, "w": w}
