"""The options of PyTorch's gradcheck, and what each of them means to a verdict that comes from an error bound."""

from __future__ import annotations

from dataclasses import replace

from gradcli.frozen import dataclass

ATOL, RTOL, EPS = 1e-5, 1e-3, 1e-6
"""PyTorch's defaults (2.13)."""

_SWITCHES = {1: ("check_forward_ad", "check_backward_ad"), 2: ("check_fwd_over_rev", "check_rev_over_rev")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a caller asked for; the names and defaults are PyTorch's."""

    eps: float = EPS
    atol: float = ATOL
    rtol: float = RTOL
    nondet_tol: float = 0.0
    check_undefined_grad: bool = True
    check_grad_dtypes: bool = False
    check_batched_grad: bool = False
    check_batched_forward_grad: bool = False
    check_forward_ad: bool = False
    check_backward_ad: bool = True
    fast_mode: bool = False
    masked: bool = False
    order: int = 1
    non_contiguous: bool = False

    @property
    def allowed_atol(self) -> float:
        """The absolute error that the caller allows: `atol` where it is looser than the default, else none."""
        return self.atol if self.atol > ATOL else 0.0

    @property
    def allowed_rtol(self) -> float:
        """The relative error that the caller allows: `rtol` where it is looser than the default, else none."""
        return self.rtol if self.rtol > RTOL else 0.0

    @property
    def allows_errors(self) -> bool:
        """Whether the caller said that a gradient may be off."""
        return self.allowed_atol > 0 or self.allowed_rtol > 0

    def at_first_order(self) -> Options:
        """The same for a function that is itself a first derivative."""
        return replace(self, order=1, non_contiguous=False)

    def require_consistency(self) -> None:
        """Refuse options that exclude each other, and tolerances below zero, as PyTorch does.

        A negative `eps` is no mistake: it walks the same central difference the other way.

        Raises:
            RuntimeError: a tolerance is negative, or NaN.
            AssertionError: nothing is asked for, or something that rests on what was switched off.
        """
        forward, backward = _SWITCHES[self.order]
        required = (
            (
                self.check_forward_ad or self.check_backward_ad,
                f"Expected at least one of {forward} or {backward} to be True",
            ),
            (self.check_backward_ad or not self.check_batched_grad, _requires("check_batched_grad", backward)),
            (
                self.check_forward_ad or not self.check_batched_forward_grad,
                _requires("check_batched_forward_grad", forward),
            ),
            (
                self.check_backward_ad or not self.check_undefined_grad or self.order == 1,
                _requires("check_undefined_grad", backward),
            ),
        )
        for holds, what in required:
            if not holds:
                raise AssertionError(what)
        for name, tolerance in (("atol", self.atol), ("rtol", self.rtol)):
            if not tolerance >= 0:
                raise RuntimeError(f"expected {name} to be zero or more, got {name}={tolerance}")


def _requires(option: str, other: str) -> str:
    return f"Setting {option}=True requires {other} to be True"
