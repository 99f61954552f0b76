"""Functions of public packages, each with the verdict it gets and why that verdict is right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run of `gradcli check`: the distribution, the target, the flags, and what comes of it."""

    distribution: str
    target: str
    flags: tuple[str, ...] = ()
    verdict: str = "passed"
    finding: str = ""
    because: str = "right"


def right(distribution: str, target: str, *flags: str) -> Row:
    """A gradient that is right."""
    return Row(distribution=distribution, target=target, flags=flags)


def deliberate(distribution: str, target: str, *flags: str, finding: str = "wrong", because: str) -> Row:
    """A gradient that is meant not to be forward's: `expect: surrogate` in a spec says so."""
    return Row(
        distribution=distribution,
        target=target,
        flags=flags,
        verdict="failed",
        finding=finding,
        because=f"deliberate: {because}",
    )


def wrong(distribution: str, target: str, *flags: str, finding: str, because: str) -> Row:
    """A mistake, with its proof."""
    return Row(
        distribution=distribution,
        target=target,
        flags=flags,
        verdict="failed",
        finding=finding,
        because=f"a mistake: {because}",
    )


_SPIKE = "a surrogate for the derivative of a step, which is zero"
_ROUND = "straight-through: the derivative of rounding is zero, that of the identity is returned"
_LOSS = (
    "backward multiplies what forward saved, which has no history: PyTorch's gradgradcheck "
    "fails too (second derivatives "
    "by X are zero, differences are not)"
)

FUNCTIONS: tuple[Row, ...] = (
    right("entmax", "entmax.activations:SparsemaxFunction"),
    wrong(
        "entmax",
        "entmax.activations:Entmax15Function",
        finding="non-finite-gradient",
        because="order 2 differentiates the root of a probability that is exactly 0: infinity times 0 is "
        "NaN, and PyTorch's "
        "gradgradcheck fails there too; order 1 is right",
    ),
    right("entmax", "entmax.root_finding:SparsemaxBisectFunction"),
    wrong(
        "entmax",
        "entmax.root_finding:EntmaxBisectFunction",
        finding="non-finite-gradient",
        because="second derivatives are NaN where an entry of the result is zero: PyTorch's gradgradcheck fails too; "
        "called with X alone, backward asks for needs_input_grad[1] and raises IndexError, which is a note",
    ),
    right("entmax", "entmax.root_finding:NormmaxBisectFunction"),
    wrong(
        "entmax",
        "entmax.root_finding:BudgetBisectFunction",
        finding="non-finite-gradient",
        because="where no entry of the result lies between 0 and 1 backward divides by their number, 0, before it "
        "discards the quotient: second derivatives by grad_output are NaN in PyTorch; order 1 is right",
    ),
    wrong("entmax", "entmax.losses:SparsemaxLossFunction", finding="not-twice-differentiable", because=_LOSS),
    wrong("entmax", "entmax.losses:Entmax15LossFunction", finding="not-twice-differentiable", because=_LOSS),
    right("sparsemax", "sparsemax.sparsemax:SparsemaxFunction"),
    right("diffsort", "diffsort.functional:NormalCDF"),
    right("e3nn", "e3nn.math._soft_unit_step:_SoftUnitStep"),
    wrong(
        "roma",
        "roma.mappings:_ProcrustesManualDerivatives",
        "-i",
        "M=2x3x3",
        "-a",
        "force_rotation=True",
        "-a",
        "gradient_eps=0.0",
        finding="not-twice-differentiable",
        because="the saved U S and V are marked as not differentiable, so second derivatives are silently incomplete; "
        "order 1 is right, and that another gradient_eps damps the gradient is by design, and a note",
    ),
    deliberate(
        "pytorch-revgrad",
        "pytorch_revgrad.functional:RevGrad",
        finding="wrong-factor",
        because="a gradient reversal layer, the identity with -alpha times its gradient",
    ),
    deliberate("snntorch", "snntorch.surrogate:StraightThroughEstimator", because=_SPIKE),
    deliberate("snntorch", "snntorch.surrogate:FastSigmoid", because=_SPIKE),
    deliberate("snntorch", "snntorch.surrogate:ATan", because=_SPIKE),
    deliberate("snntorch", "snntorch.surrogate:Triangular", because=_SPIKE),
    wrong(
        "snntorch",
        "snntorch.surrogate:LeakySpikeOperator",
        finding="wrong-arity",
        because="backward returns one gradient for two arguments: PyTorch raises 'returned an incorrect "
        "number of gradients "
        "(expected 2, got 1)' at the first backward",
    ),
    deliberate("norse", "norse.torch.functional.superspike:SuperSpike", because=_SPIKE),
    deliberate("norse", "norse.torch.functional.threshold:HeaviErfc", because=_SPIKE),
    deliberate("norse", "norse.torch.functional.threshold:HeaviTanh", because=_SPIKE),
    deliberate("norse", "norse.torch.functional.threshold:HeaviCirc", because=_SPIKE),
    deliberate("norse", "norse.torch.functional.threshold:Triangle", because=_SPIKE),
    deliberate("spikingjelly", "spikingjelly.activation_based.surrogate:atan", because=_SPIKE),
    deliberate("spikingjelly", "spikingjelly.activation_based.surrogate:soft_sign", because=_SPIKE),
    wrong(
        "gpytorch",
        "gpytorch.functions._log_normal_cdf:LogNormalCDF",
        finding="wrong-entries",
        because="below z = -1 forward and backward are approximations of their own: at z = -1.5 the "
        "gradient is 1.93923, the "
        "derivative of log Phi to 30 digits is 1.93868 (relative error 2.9e-4)",
    ),
    deliberate(
        "gpytorch",
        "gpytorch.variational.tril_natural_variational_distribution:_TrilNaturalToMuVarSqrt",
        "-i",
        "nat_mean=4",
        "-i",
        "tril_nat_covar=4x4,domain=triangular",
        because="returns the natural gradient, that by the expectation parameters",
    ),
    right(
        "kornia",
        "kornia.losses.focal:_TargetLogSoftmax",
        "-i",
        "pred=2x3x4",
        "-i",
        "target=2x1x4,domain=indices,high=3",
        "-a",
        "valid=None",
    ),
    deliberate("brevitas", "brevitas.ops.autograd_ste_ops:RoundSteFn", because=_ROUND),
    deliberate("brevitas", "brevitas.ops.autograd_ste_ops:FloorSteFn", because=_ROUND),
    wrong(
        "brevitas",
        "brevitas_examples.bnn_pynq.models.losses:squared_hinge_loss",
        "-i",
        "predictions=3x4",
        "-i",
        "targets=3x4,grad=false",
        finding="ignores-grad-output",
        because="backward writes over grad_output and never reads it; loss, 2·loss and 3·loss get the same gradient in "
        "PyTorch",
    ),
    right("xitorch", "xitorch._impls.linalg.symeig:degen_symeig", "-i", "A=4x4,domain=spd"),
    right("jax", "jax.nn:relu"),
    right("jax", "jax.nn:relu6"),
    right("jax", "jax.nn:log1mexp"),
    right("jax", "jax.scipy.special:expi"),
    right("jax", "jax.scipy.special:logit"),
    right("jax", "jax.scipy.special:xlogy", "-i", "x=3x4", "-i", "y=3x4,domain=positive"),
    right("jax", "jax.scipy.special:xlog1py", "-i", "x=3x4", "-i", "y=3x4,domain=positive"),
    right("jax", "jax.scipy.special:log_ndtr"),
    right("optax", "optax.losses._classification:weighted_logsoftmax"),
    right("optax", "optax.projections._projections:_projection_unit_simplex", "-i", "values=5"),
    right("jaxopt", "jaxopt._src.projection:_projection_unit_simplex", "-i", "x=5"),
    right("numpyro", "numpyro.distributions.util:log1mexp"),
    right("lineax", "lineax._norm:_two_norm"),
    right("ott-jax", "ott.math.utils:logsumexp"),
    deliberate(
        "optax",
        "optax._src.utils:_scale_gradient",
        finding="wrong-factor",
        because="scales the gradient of the identity",
    ),
)
