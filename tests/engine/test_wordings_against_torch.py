"""Hooks on saved tensors fire in PyTorch's order, and mistakes are told in its words."""

import copy
import importlib
import warnings

import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="compares with PyTorch")


def leaf(ns, values, *, grad=True):
    return ns.tensor(values, dtype=ns.float64, requires_grad=grad)


SAVING = {
    "mul": lambda ns, x, w: (x * w).sum(),
    "div": lambda ns, x, w: (x / w).sum(),
    "exp": lambda ns, x, w: (x.exp() * w).sum(),
    "mm": lambda ns, x, w: (x.reshape(1, 2) @ w.reshape(2, 1)).sum(),
    "outer": lambda ns, x, w: ns.outer(x, w).sum(),
    "pow of a tensor": lambda ns, x, w: (w**x).sum(),
    "chain": lambda ns, x, w: ((x * w).sin() * w.exp()).sum(),
    "softmax": lambda ns, x, w: (ns.softmax(x, 0) * w).sum(),
    "where": lambda ns, x, w: ns.where(x > 0, x * w, w).sum(),
    "max": lambda ns, x, w: (x.max() * w).sum(),
    "prod": lambda ns, x, w: x.prod() * w.prod(),
    "addmm": lambda ns, x, w: ns.addmm(x.reshape(1, 2), w.reshape(1, 2), x.reshape(2, 1) @ w.reshape(1, 2)).sum(),
    "norm": lambda ns, x, w: x.norm() * w.norm(),
    "clamp": lambda ns, x, w: (x.clamp(-1, 1) * w).sum(),
    "one factor only": lambda ns, x, w: (x * w.detach()).sum(),
    "in place": lambda ns, x, w: (x * 1).mul_(w).sum(),
}


def logged(ns, program):
    """What the hooks see, in order; sums stand for the tensors."""
    seen = []

    def noted(what):
        def hook(tensor):
            seen.append((what, tuple(tensor.shape), round(float(tensor.sum()), 9)))
            return tensor

        return hook

    x, w = leaf(ns, [0.5, 1.5]), leaf(ns, [2.0, 3.0])
    with ns.autograd.graph.saved_tensors_hooks(noted("pack"), noted("unpack")):
        y = program(ns, x, w)
    seen.append("backward")
    y.backward()
    return seen, [round(float(v), 9) for t in (x, w) if t.grad is not None for v in t.grad]


@pytest.mark.parametrize("program", SAVING.values(), ids=SAVING.keys())
def test_hooks_on_saved_tensors_fire_in_the_same_order(program):
    assert logged(engine, program) == logged(torch, program)


def _written_after_exp(ns):
    y = leaf(ns, [1.0, 2.0]).exp()
    y.add_(1)
    y.sum().backward()


def _factor_written(ns):
    w = leaf(ns, [1.0, 2.0]) * 1
    y = w * w
    w.mul_(2)
    y.sum().backward()


def _row_written(ns):
    w = leaf(ns, [[1.0, 2.0], [3.0, 4.0]]) * 1
    y = w @ w
    w[0] = 0
    y.sum().backward()


def _entries_written(ns):
    y = leaf(ns, [1.0, 2.0]).sigmoid()
    y[0], y[1] = 1, 2
    y.sum().backward()


def _single_written(ns):
    y = ns.ones(2, 3, requires_grad=True).softmax(1)
    y *= 2
    y.sum().backward()


def _leaf_written(ns):
    x = leaf(ns, [1.0, 2.0])
    x[0] = 3


def _assigned(value):
    def mistake(ns):
        x = leaf(ns, [1.0, 2.0])
        x.grad = value(ns)

    return mistake


def _own_gradient(ns):
    x = leaf(ns, [1.0, 2.0])
    x.grad = x


def _unpacked_to_a_number(ns):
    with ns.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda _: 3):
        y = leaf(ns, [1.0, 2.0]).exp()
    y.sum().backward()


def _tangent_of_another_shape(ns):
    forward_ad = importlib.import_module(f"{ns.__name__}.autograd.forward_ad")
    with forward_ad.dual_level():
        forward_ad.make_dual(ns.ones(3, 2), ns.ones(2))


def _named_star(ns):
    class First(ns.autograd.Function):
        @staticmethod
        def forward(ctx, *xs):
            return xs[0] * 1

    First.apply(xs=leaf(ns, [1.0, 2.0]))


LAYERS = {
    "Linear": lambda ns: ns.nn.Linear(2, 4),
    "Linear without bias": lambda ns: ns.nn.Linear(2, 4, bias=False),
    "Linear of other features": lambda ns: ns.nn.Linear(3, 4),
    "LayerNorm": lambda ns: ns.nn.LayerNorm(2),
    "RNN": lambda ns: ns.nn.RNN(2, 3),
    "LSTM": lambda ns: ns.nn.LSTM(2, 3),
}
PRODUCTS = {
    "mm": [(2, 2, "float64"), (1, 2, "float32"), (2, 3, "float32")],
    "mv": [(2, 1, "float64"), (1, 1, "float32"), (2, 2, "float32")],
    "dot": [(1, 1, "int64"), (1, 2, "float32"), (3, 1, "float32")],
    "vdot": [(1, 2, "float32")],
    "bmm": [(3, 3, "float64"), (2, 3, "float32")],
    "inner": [(1, 1, "float64"), (2, 2, "int64")],
    "matmul": [(2, 2, "int64"), (3, 3, "float64"), (3, 2, "float64"), (2, 1, "float64"), (1, 1, "float64")],
}

MISTAKES = {
    "an unpack hook that gives a number": _unpacked_to_a_number,
    "a tangent of another shape": _tangent_of_another_shape,
    "a name for *xs": _named_star,
    "vmap of a number": lambda ns: ns.func.vmap(lambda x: 3)(ns.ones(2, 2)),
    "vmap of three lengths": lambda ns: ns.func.vmap(lambda x, y, z: x)(ns.ones(3), ns.ones(2), ns.ones(3)),
    "logits and targets of different shapes": lambda ns: ns.nn.functional.binary_cross_entropy_with_logits(
        ns.ones(3), ns.ones(3, 1)
    ),
    "classes that are no integers": lambda ns: ns.nn.functional.cross_entropy(ns.ones(3, 2), ns.ones(3)),
    "an approximation of GELU that is none": lambda ns: ns.nn.functional.gelu(ns.ones(2), approximate="erf"),
    "allclose of two element types": lambda ns: ns.allclose(ns.ones(2), ns.ones(2).double()),
    "isclose of two element types": lambda ns: ns.isclose(ns.ones(2).double(), ns.ones(2).long()),
    "index_add of too many rows": lambda ns: ns.zeros(4, 2).index_add(0, ns.tensor([0, 3]), ns.ones(3, 2)),
    "index_add of longer rows": lambda ns: ns.zeros(4, 2).index_add(0, ns.tensor([0, 3]), ns.ones(2, 3)),
    "a mask of another length": lambda ns: ns.ones(2, 3).masked_select(ns.tensor([True, False])),
    "eigh of a triangle that is none": lambda ns: ns.linalg.eigh(ns.ones(2, 2), UPLO="X"),
    "eigvalsh of a triangle that is none": lambda ns: ns.linalg.eigvalsh(ns.ones(2, 2), UPLO="X"),
    **{
        f"{name} of {shape} in {kind}": lambda ns, make=make, shape=shape, kind=kind: make(ns)(
            ns.ones(shape, dtype=getattr(ns, kind))
        )
        for name, make in LAYERS.items()
        for shape in ((3, 2), (4, 3, 2))
        for kind in ("float64", "int64", "complex64")
    },
    **{
        f"{name} of {a}-d and {b}-d in {kind}": lambda ns, name=name, a=a, b=b, kind=kind: getattr(ns, name)(
            ns.ones((2,) * a, dtype=getattr(ns, kind)), ns.ones((2,) * b)
        )
        for name, ranks in PRODUCTS.items()
        for a, b, kind in ranks
    },
    "addmm of another sum": lambda ns: ns.addmm(ns.ones(2).double(), ns.ones(2, 2), ns.ones(2, 2)),
    "baddbmm of two types": lambda ns: ns.baddbmm(ns.ones(2, 2, 2), ns.ones(2, 2, 2).long(), ns.ones(2, 2, 2)),
    "conv of two types": lambda ns: ns.nn.Conv2d(1, 2, 2)(ns.ones(1, 1, 3, 3).double()),
    "conv of two types without bias": lambda ns: ns.nn.Conv1d(1, 2, 2, bias=False)(ns.ones(1, 1, 3).long()),
    "transposed conv of two types": lambda ns: ns.nn.ConvTranspose1d(1, 2, 2)(ns.ones(1, 1, 3).double()),
    "logits and labels": lambda ns: ns.nn.BCEWithLogitsLoss()(ns.ones(2), ns.ones(2).long()),
    "probabilities in another type": lambda ns: ns.nn.BCELoss()(ns.ones(2).double(), ns.ones(2)),
    "solve of two types": lambda ns: ns.linalg.solve(ns.eye(2).double(), ns.ones(2)),
    "einsum of two types": lambda ns: ns.einsum("ij,j", ns.eye(2).double(), ns.ones(2)),
    "scatter of two types": lambda ns: ns.ones(2).scatter(0, ns.tensor([0]), ns.ones(2).double()),
    "gather by floats": lambda ns: ns.ones(2).gather(0, ns.ones(2)),
    "index_add of two types": lambda ns: ns.ones(2).index_add(0, ns.tensor([0]), ns.ones(1).double()),
    "a mask of floats": lambda ns: ns.ones(2).masked_fill(ns.ones(2), 0),
    "a text": lambda ns: ns.tensor("a"),
    "texts": lambda ns: ns.tensor(["a", "b"]),
    "a text among numbers": lambda ns: ns.tensor([1, "a"]),
    "None": lambda ns: ns.tensor(None),
    "None among numbers": lambda ns: ns.tensor([1.0, None]),
    "a dict": lambda ns: ns.tensor({}),
    "lists of two lengths": lambda ns: ns.tensor([[1, 2], [3]]),
    "a list among numbers": lambda ns: ns.tensor([1, [2]]),
    "a number among lists": lambda ns: ns.tensor([[1], 2]),
    "a text as index": lambda ns: ns.ones(2)["a"],
    "std of integers": lambda ns: ns.ones(2).long().std(),
    "tril of a vector": lambda ns: ns.ones(2).tril(),
    "an order of complex numbers": lambda ns: ns.ones(2).cfloat() > 0,
    "a parameter of integers": lambda ns: ns.nn.Parameter(ns.ones(2).long()),
    "a result written": _written_after_exp,
    "a factor written": _factor_written,
    "a row written": _row_written,
    "entries written": _entries_written,
    "a float32 result written": _single_written,
    "a leaf written": _leaf_written,
    "deepcopy of a result": lambda ns: copy.deepcopy(leaf(ns, [1.0]) * 2),
    "deepcopy of a list with one": lambda ns: copy.deepcopy([leaf(ns, [1.0]).exp()]),
    "a number as grad": _assigned(lambda ns: 1),
    "a text as grad": _assigned(lambda ns: "a"),
    "a list as grad": _assigned(lambda ns: [1.0, 2.0]),
    "an array as grad": _assigned(lambda ns: leaf(ns, [1.0, 2.0], grad=False).numpy()),
    "another length as grad": _assigned(lambda ns: leaf(ns, [1.0, 2.0, 3.0], grad=False)),
    "a scalar as grad": _assigned(lambda ns: leaf(ns, 1.0, grad=False)),
    "another shape as grad": _assigned(lambda ns: leaf(ns, [[1.0, 2.0]], grad=False)),
    "another type and length as grad": _assigned(lambda ns: ns.ones(3)),
    "itself as grad": _own_gradient,
    **{
        f"{name} as grad": _assigned(lambda ns, name=name: ns.ones(2).to(getattr(ns, name)))
        for name in (
            "float32",
            "float16",
            "complex64",
            "complex128",
            "int64",
            "int32",
            "int16",
            "int8",
            "uint8",
            "bool",
        )
    },
}


def told(ns, mistake):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of parts of its own that PyTorch imports here first
        with pytest.raises((RuntimeError, TypeError, ValueError)) as raised:
            mistake(ns)
    return type(raised.value), str(raised.value).replace("gradcli.engine", "torch")


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_told_in_the_same_words(mistake):
    assert told(engine, mistake) == told(torch, mistake)


def test_what_fits_is_taken():
    for ns in (engine, torch):
        x = leaf(ns, [1.0, 2.0])
        for value in (leaf(ns, [1.0, 2.0], grad=False), leaf(ns, [1.0, 2.0]), None):
            x.grad = value
            assert x.grad is value


def test_a_second_order_through_a_once_differentiable_backward_is_refused_where_it_is_reached():
    for ns in (engine, torch):
        once = importlib.import_module(f"{ns.__name__}.autograd.function").once_differentiable

        class Once(ns.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            @once
            def backward(ctx, g):
                return 2 * g * ctx.saved_tensors[0]

        x, g = leaf(ns, [1.0, 2.0]), leaf(ns, [1.0, 1.0])
        (first,) = ns.autograd.grad(Once.apply(x), x, g, create_graph=True)
        assert ns.autograd.grad(first.sum(), [x, g], allow_unused=True) == (None, None)
        with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked"):
            first.sum().backward()
