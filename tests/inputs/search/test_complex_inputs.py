"""Which inputs are inferred to be complex: as backward returns gradients, one input complex and another real."""

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.backends.numpy.claims import GradientPair
from gradcli.cases import CheckSpec
from gradcli.findings import FindingKind
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict


def checked(target: Any) -> CheckResult:
    """What the checks of the gradient's form and values say at the inputs that are found."""
    settings = Settings(order=1, samples=1, shrink=False, only=("returns", "gradient"))
    return check_object(target, case_of(CheckSpec(target="module:Target"), settings))


def rotation_of(ns: Any, factor: float) -> Any:
    class Rotation(ns.autograd.Function):
        """Turns complex numbers by real angles; the gradient of the angles is `factor` times the right one."""

        @staticmethod
        def forward(ctx: Any, z: Any, angle: Any) -> Any:
            y = z * ns.exp(1j * angle)
            ctx.save_for_backward(y, angle)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y, angle = ctx.saved_tensors
            return g * ns.exp(-1j * angle), factor * ns.real(g * ns.conj(1j * y))

    return Rotation


def seen(result: CheckResult) -> dict[str, str]:
    return {spec.name: str(spec.dtype or "float64") for spec in result.inputs}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_a_complex_and_a_real_input_are_told_apart_by_their_gradients(ns: Any, factor: float) -> None:
    result = checked(rotation_of(ns, factor))
    assert seen(result) == {"z": "complex128", "angle": "float64"}
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert [f.input for f in result.findings] == ([] if factor == 1 else ["angle"])


@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_in_jax(factor: float) -> None:
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    jnp = jax.numpy
    target = jax.custom_vjp(lambda z, angle: z * jnp.exp(1j * angle))
    target.defvjp(
        lambda z, angle: (target(z, angle), (z, angle)),
        lambda kept, g: (
            g * jnp.exp(1j * kept[1]),
            factor * jnp.real(g * 1j * kept[0] * jnp.exp(1j * kept[1])),
        ),
    )
    result = checked(target)
    assert seen(result) == {"z": "complex128", "angle": "float64"}
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert [f.input for f in result.findings] == ([] if factor == 1 else ["angle"])


def test_a_complex_gradient_of_a_real_input_fails_in_jax() -> None:
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    target = jax.custom_vjp(lambda x: jax.numpy.sin(x.real))
    target.defvjp(lambda x: (target(x), x), lambda x, g: (g * jax.numpy.cos(x) * (1 + 0j),))
    (result,) = gradcli.check(target, (jax.numpy.array([0.3, 0.7]),), order=1, shrink=False).cases
    assert result.verdict is Verdict.FAILED
    assert [f.kind for f in result.findings] == [FindingKind.WRONG_DTYPE]


@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_a_numpy_pair_is_checked_with_a_complex_input_beside_a_real_one(factor: float) -> None:
    def turned(z: Any, angle: Any) -> Any:
        return z * np.exp(1j * angle)

    def turned_vjp(z: Any, angle: Any, g: Any) -> Any:
        return g * np.exp(-1j * angle), factor * np.real(g * np.conj(1j * turned(z, angle)))

    result = checked(GradientPair(function=turned, gradient=turned_vjp))
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {f.input for f in result.findings} == (set() if factor == 1 else {"angle"})


PHASES = {
    "z / |z|": (
        lambda ns, z: z / ns.abs(z),
        lambda ns, z, g: g / ns.abs(z) - z * ns.real(ns.conj(z) * g) / ns.abs(z) ** 3,
    ),
    "angle": (lambda ns, z: ns.angle(z), lambda ns, z, g: g * 1j / ns.conj(z)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factor", [1.0, 1.001])
@pytest.mark.parametrize("name", PHASES)
@pytest.mark.usefixtures("unexplained")
def test_inputs_are_complex_where_forward_is_flat_at_real_ones(ns: Any, name: str, factor: float) -> None:
    forward, vjp = PHASES[name]

    class Phase(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return forward(ns, z)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            return factor * vjp(ns, z, ns.conj(ns.conj(g)))

    result = checked(Phase)
    assert seen(result) == {"z": "complex128"}
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)


def test_they_stay_real_where_forward_is_flat_there_too(ns: Any) -> None:
    class Floor(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return ns.floor(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 0 * ns.conj(g)

    assert seen(checked(Floor)) == {"x": "float64"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("conjugate", [False, True])
@pytest.mark.parametrize("name", ["by its conjugate", "by its parts"])
def test_a_forward_that_conjugates_its_input_is_checked_at_complex_ones(name: str, conjugate: bool) -> None:
    """In JAX the gradient of |z|^2 is 2 conj(z): the mistake is that backward has no conjugate, so forward tells."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    @jax.custom_vjp
    def by_conjugate(z: Any) -> Any:
        return (z * jnp.conj(z)).real

    @jax.custom_vjp
    def by_parts(z: Any) -> Any:
        return z.real**2 + z.imag**2

    squared = by_conjugate if name == "by its conjugate" else by_parts
    if conjugate:
        squared.defvjp(lambda z: (squared(z), z), lambda z, g: (2 * g * jnp.conj(z),))
    else:
        squared.defvjp(lambda z: (squared(z), z), lambda z, g: (2 * g * z,))
    result = check_object(squared, case_of(CheckSpec(target="module:squared"), Settings(order=1, shrink=False)))
    assert result.verdict is (Verdict.PASSED if conjugate else Verdict.FAILED)
    assert [f.kind for f in result.findings] == ([] if conjugate else [FindingKind.MISSING_CONJUGATE])


def test_imaginary_parts_of_what_forward_computes_ask_for_no_complex_input(ns: Any) -> None:
    class Sine(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            y = ns.exp(1j * x)
            return ns.real(y * y.conj()) + y.imag

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * ns.cos(x)

    result = check_object(Sine, case_of(CheckSpec(target="module:Sine"), Settings(order=1)))
    assert result.verdict is Verdict.PASSED
    assert seen(result) == {"x": "float64"}


def shrunk(ns: Any, factor: float) -> Any:
    """Complex numbers whose moduli are cut by a real margin of each column, which relu takes as real only."""

    class Shrunk(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any, margin: Any) -> Any:
            ctx.save_for_backward(z, margin)
            r = ns.abs(z)
            return ns.relu(r - margin) * z / r

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, margin = ctx.saved_tensors
            r = ns.abs(z)
            on, u = (r > margin) * 1.0, z / r
            along = ns.real(g * ns.conj(u))
            return on * (along * u + factor * (1 - margin / r) * (g - along * u)), -(on * along).sum(0)

    return Shrunk


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.001])
@pytest.mark.usefixtures("unexplained")
def test_a_real_parameter_that_forward_takes_as_real_only(ns: Any, factor: float) -> None:
    """At real numbers nothing is across the radius: only complex ones show the factor there."""
    (case,) = gradcli.check(shrunk(ns, factor), order=1, samples=1, shrink=False, only=("gradient",)).cases
    assert seen(case) == {"z": "float64", "margin": "float64"}
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case.error


def squared(ns: Any, factor: float) -> Any:
    class Squared(ns.autograd.Function):
        """z : Tensor
        Complex numbers, whose final dimension should be 2.
        """

        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            a, b = z[..., 0], z[..., 1]
            return ns.stack([a * a - b * b, 2 * a * b], -1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            a, b = z[..., 0], z[..., 1]
            u, v = g[..., 0], g[..., 1]
            return ns.stack([2 * (a * u + b * v), 2 * (factor * a * v - b * u)], -1)

    return Squared


@pytest.mark.parametrize("factor", [1.0, -1.0])
@pytest.mark.usefixtures("unexplained")
def test_complex_numbers_that_are_pairs_of_real_ones(ns: Any, factor: float) -> None:
    result = checked(squared(ns, factor))
    assert seen(result) == {"z": "float64"}
    assert result.inputs[0].shape == (3, 2)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)


def overlap(ns: Any, conjugate: bool) -> Any:
    class Overlap(ns.autograd.Function):
        """psi, phi: complex (N, 2)"""

        @staticmethod
        def forward(ctx: Any, psi: Any, phi: Any) -> Any:
            ctx.save_for_backward(psi, phi)
            return (psi.conj() * phi).sum(-1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            psi, phi = ctx.saved_tensors
            g = g[..., None]
            return (g.conj() if conjugate else g) * phi, g * psi

    return Overlap


@pytest.mark.parametrize("conjugate", [True, False])
@pytest.mark.usefixtures("unexplained")
def test_two_complex_numbers_are_not_a_pair_where_one_is_conjugated(ns: Any, conjugate: bool) -> None:
    result = checked(overlap(ns, conjugate))
    assert seen(result) == {"psi": "complex128", "phi": "complex128"}
    assert result.verdict is (Verdict.PASSED if conjugate else Verdict.FAILED)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("conjugates", [True, False])
def test_complex_data_get_no_gradient(ns: Any, conjugates: bool) -> None:
    class Intensity(ns.autograd.Function):
        """Square of a product.

        z: (n,) complex
        H: (m, n) complex, fixed
        """

        @staticmethod
        def forward(ctx: Any, z: Any, H: Any) -> Any:
            ctx.save_for_backward(z, H)
            return ns.abs(H @ z) ** 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, H = ctx.saved_tensors
            return 2 * (H.conj() if conjugates else H).T @ (g * (H @ z)), None

    result = checked(Intensity)
    assert seen(result) == {"z": "complex128", "H": "complex128"}
    assert [spec.requires_grad for spec in result.inputs] == [None, False]
    assert result.verdict is (Verdict.PASSED if conjugates else Verdict.FAILED)
    assert [f.input for f in result.findings] == ([] if conjugates else ["z"])


def weighted(ns: Any, gradient: str, documentation: str | None) -> Any:
    """Complex waves times real weights of each column; only `real` is the gradient of the weights."""

    def of_weights(g: Any, waves: Any) -> Any:
        return {
            "real": lambda: ns.real(g * ns.conj(waves)).sum(0),
            "no conjugate": lambda: ns.real(g * waves).sum(0),
            "not real": lambda: (g * ns.conj(waves)).sum(0),
        }[gradient]()

    class Weighted(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, waves: Any, weights: Any) -> Any:
            ctx.save_for_backward(waves, weights)
            return waves * weights

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            waves, weights = ctx.saved_tensors
            return g * weights, of_weights(g, waves)

    return Weighted


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    "documentation",
    [
        "Scales.\n\nwaves: (N, C), complex\nweights: (C,), real",
        "Scales.\n\nwaves (N, C) complex\nweights (C,) real",
        "complex sound waves (N, C) times real filter weights (C,)",
    ],
)
@pytest.mark.parametrize("gradient", ["real", "no conjugate", "not real"])
def test_complex_and_real_inputs_are_as_documented(ns: Any, gradient: str, documentation: str) -> None:
    result = checked(weighted(ns, gradient, documentation))
    assert seen(result) == {"waves": "complex128", "weights": "float64"}
    assert result.verdict is (Verdict.PASSED if gradient == "real" else Verdict.FAILED)
    assert [f.input for f in result.findings] == ([] if gradient == "real" else ["weights"])


def scaled(ns: Any) -> dict[str, Any]:
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any, gain: Any) -> Any:
            ctx.save_for_backward(z, gain)
            return z * gain

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, gain = ctx.saved_tensors
            return g * gain, ns.real(g * z.conj())

    class Unconjugated(Scaled):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, gain = ctx.saved_tensors
            return g * gain, ns.real(g * z)

    class OfAComplexGain(Scaled):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, gain = ctx.saved_tensors
            return g * gain.conj(), ns.real(g * z.conj())

    return {"": Scaled, "no conjugate": Unconjugated, "complex gain": OfAComplexGain}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mistake", ["", "no conjugate", "complex gain"])
def test_an_input_whose_gradient_is_a_real_part_is_real(ns: Any, mistake: str) -> None:
    """Without a word on it: where backward conjugates the gain, that is complex, and the real part a mistake."""
    (case,) = gradcli.check(scaled(ns)[mistake], order=1, samples=1, shrink=False, only=("gradient",)).cases
    assert case.verdict is (Verdict.FAILED if mistake else Verdict.PASSED)
    assert {f.input for f in case.findings} == ({"gain"} if mistake else set())
