"""`autograd.functional` gives PyTorch's results, and refuses what PyTorch refuses, in its words."""

import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="compares with PyTorch")

NAMES = ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp")
FUNCTIONS = {
    "a number": lambda x: 3,
    "a list": lambda x: [x.sum()],
    "a tensor and a number": lambda x: (x.sum(), 3),
    "a vector": lambda x: x * 2,
    "a detached value": lambda x: x.detach().sum(),
    "a linear value": lambda x: x.sum(),
    "a value of one element": lambda x: (x**3).sum().reshape(1),
    "a tuple": lambda x: ((x * x).sum(),),
}
PAIRS = {
    "one of two inputs": lambda x, y: (x * x).sum(),
    "an output for each": lambda x, y: ((x * x).sum(), y.sum()),
    "both": lambda x, y: (x * x * y).sum(),
}


def outcome(call):
    """What a call gives: numbers, or the error's class and text."""
    try:
        result = call()
    except (RuntimeError, TypeError) as error:
        return type(error), str(error).replace("gradcli.engine", "torch")
    return numbers(result)


def numbers(value):
    return [numbers(entry) for entry in value] if isinstance(value, tuple) else value.tolist()


def product(ns, name, function, inputs, vector, **options):
    derivative = getattr(ns.autograd.functional, name)
    extra = (vector,) if name in ("jvp", "vhp", "hvp") else ()
    return outcome(lambda: derivative(function, inputs, *extra, **options))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_one_input(name, strict):
    for case, function in FUNCTIONS.items():
        ours, theirs = (
            product(ns, name, function, ns.tensor([1.0, 2.0]), ns.tensor([1.0, 0.5]), strict=strict)
            for ns in (engine, torch)
        )
        assert ours == theirs, case


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_two_inputs(name, strict):
    for case, function in PAIRS.items():
        ours, theirs = (
            product(ns, name, function, (ns.tensor([1.0, 2.0]),) * 2, (ns.tensor([1.0, 0.5]),) * 2, strict=strict)
            for ns in (engine, torch)
        )
        assert ours == theirs, case


@pytest.mark.parametrize("name", NAMES)
def test_inputs_and_vectors_that_do_not_fit(name):
    for inputs in (3, [1.0]):
        assert product(engine, name, FUNCTIONS["a linear value"], inputs, None) == product(
            torch, name, FUNCTIONS["a linear value"], inputs, None
        )
    for vector in (lambda ns: ns.ones(3), lambda ns: (ns.ones(2),), lambda ns: (ns.ones(3), ns.ones(2))):
        ours, theirs = (
            product(ns, name, PAIRS["both"], (ns.tensor([1.0, 2.0]),) * 2, vector(ns)) for ns in (engine, torch)
        )
        assert ours == theirs


def test_a_triangle_of_a_hermitian_matrix():
    def derived(ns, which):
        a = ns.tensor([[2.0, 1.0, 5.0], [1.0, 3.0, 0.5], [0.2, 0.1, 1.0]], dtype=ns.float64, requires_grad=True)
        values, vectors = ns.linalg.eigh(a, UPLO=which)
        (values**2).sum().backward()
        return [*values.tolist(), *vectors.abs().reshape(-1).tolist(), *a.grad.reshape(-1).tolist()]

    for which in ("L", "U", "u"):
        assert derived(engine, which) == pytest.approx(derived(torch, which))


def test_versions_count_the_writes_of_a_refused_call():
    def versions(ns):
        class Doubled(ns.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(2)
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, g):
                return 2 * g

        leaf, result = ns.ones(2, requires_grad=True), ns.ones(2, requires_grad=True) * 1
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            Doubled.apply(leaf)
        return leaf._version, Doubled.apply(result)._version

    assert versions(engine) == versions(torch) == (2, 2)
