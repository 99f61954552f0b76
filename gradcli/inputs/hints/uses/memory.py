"""Forwards that take the memory of real tensors, with a last axis of two, for complex numbers."""

import re

_VIEW = r"\.view\(\s*(?:dtype ?= ?)?(?:['\"]|\w+\.)"


def views_as_complex(code: str) -> bool:
    """Whether real numbers are viewed as complex ones, as in `x.view("complex64")` and `torch.view_as_complex(x)`."""
    return re.search(rf"\bview_as_complex\(|{_VIEW}(?:complex|c(?:float|double)\b)", code) is not None


def precision_viewed(code: str) -> str | None:
    """The dtype of the real tensors that a view as complex numbers needs: "float32" of `complex64`; else None.

    PyTorch and NumPy take twice as many numbers from the memory of a tensor of float64 there, and all are wrong.
    """
    return "float32" if re.search(rf"{_VIEW}c(?:omplex64|float)\b", code) is not None else None
