"""The namespace `special`: functions of single numbers."""

from typing import Any

from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.ops.activation import log_softmax, softmax
from gradcli.engine.ops.bessel import i0, i0e, i1, i1e
from gradcli.engine.ops.elementwise import (
    digamma,
    erf,
    erfc,
    exp2,
    expm1,
    log1p,
    polygamma,
    round,
    sinc,
)
from gradcli.engine.ops.elementwise import digamma as psi
from gradcli.engine.ops.elementwise import lgamma as gammaln
from gradcli.engine.ops.elementwise import sigmoid as expit
from gradcli.engine.ops.logarithms import entr, logit, xlog1py, xlogy
from gradcli.engine.ops.numbers import erfinv, log_ndtr, ndtr, ndtri
from gradcli.engine.ops.numbers import mvlgamma as multigammaln
from gradcli.engine.ops.statistics import logsumexp

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here."""
    raise refusal(".special", name, globals())
