"""Plain NumPy functions of many families, and a backend of a few lines that tries them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.cases import Argument
from gradcli.targets import TargetInfo, Trial, parameters_of


def attempt_of(function: Callable[..., Any]) -> Callable[[Sequence[Argument]], Trial]:
    """Run `function` as a backend would: an exception is returned, not raised."""

    def attempt(arguments: Sequence[Argument]) -> Trial:
        positional = [argument.value for argument in arguments if not argument.keyword]
        keywords = {argument.name: argument.value for argument in arguments if argument.keyword}
        try:
            with np.errstate(all="ignore"):
                returned = function(*positional, **keywords)
        except Exception as error:
            return Trial(error=error)
        outputs = tuple(np.asarray(each) for each in (returned if isinstance(returned, tuple) else (returned,)))
        return Trial(outputs=outputs, differentiable=tuple(each.dtype.kind in "fc" for each in outputs))

    return attempt


def info_of(function: Callable[..., Any], backward: Callable[..., Any] | None = None) -> TargetInfo:
    return TargetInfo(
        name=function.__name__,
        backend="numpy",
        parameters=parameters_of(function, skip=0),
        forward=function,
        backward=backward,
    )


def log_of_minus(x):
    return np.log(-x)


def strict_mm(a, b):
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    return a @ b


def linear(input, weight, bias=None):
    output = strict_mm(input, weight.T)
    if bias is not None:
        output = output + bias[None, :]
    return output


def mul_constant(tensor, constant):
    return tensor * constant


def relu(input):
    return np.maximum(input, 0)


def matmul(a, b):
    return np.matmul(a, b)


def mm(a, b):
    return strict_mm(a, b)


def bmm(a, b):
    if a.ndim != 3 or b.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] "
            f"but got: [{b.shape[0]}, {b.shape[1]}]."
        )
    return a @ b


def outer(a, b):
    return a[:, None] * b[None, :]


def add(x, y):
    return x + y


def divide(a, b):
    return a / b


def softmax(x, dim):
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


def layer_norm(x, weight, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * weight + bias


def embedding(weight, idx):
    return weight[idx]


def gather(x, index):
    return np.take_along_axis(x, index, axis=1)


def cross_entropy(logits, target):
    shifted = logits - logits.max(1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return -logp[np.arange(len(target)), target].mean()


def where(mask, a, b):
    if mask.dtype != bool:
        raise RuntimeError("where expected condition to be a boolean tensor")
    return np.where(mask, a, b)


def conv1d(x, weight, bias=None):
    _n, C, L = x.shape
    _o, I, K = weight.shape
    if I != C:
        raise RuntimeError(f"expected input to have {I} channels, but got {C} channels instead")
    if K > L:
        raise RuntimeError(f"Kernel size ({K}) can't be greater than actual input size ({L})")
    out = np.stack([np.einsum("nck,ock->no", x[:, :, i : i + K], weight) for i in range(L - K + 1)], -1)
    if bias is not None:
        out = out + bias[None, :, None]
    return out


def conv2d(x, weight):
    N, C, H, W = x.shape
    _o, I, P, Q = weight.shape
    if I != C:
        raise RuntimeError(f"expected input[{N}, {C}, {H}, {W}] to have {I} channels, but got {C} channels instead")
    if P > H or Q > W:
        raise RuntimeError(f"Kernel size ({P} x {Q}) can't be greater than actual input size ({H} x {W})")
    windows = np.lib.stride_tricks.sliding_window_view(x, (P, Q), (2, 3))
    return np.einsum("nchwpq,ocpq->nohw", windows, weight)


def cumsum(x, dim):
    return np.cumsum(x, axis=dim)


def norm(x):
    return np.sqrt((x**2).sum())


def log(x):
    return np.log(x)


def sqrt(x):
    return np.sqrt(x)


def acosh(x):
    return np.arccosh(x)


def atanh(x):
    return np.arctanh(x)


def cholesky(a):
    return np.linalg.cholesky(a)


def inverse(a):
    return np.linalg.inv(a)


def solve(a, b):
    return np.linalg.solve(a, b)


def total(*tensors):
    out = tensors[0]
    for each in tensors[1:]:
        out = out * each
    return out


def flagged(x, transposed: bool):
    return x.T if transposed else x * 2


def reduced(x, target, reduction="mean"):
    loss = (x - target) ** 2
    return {"mean": loss.mean, "sum": loss.sum, "none": loss.copy}[reduction]()


def keyworded(x, *, scale=None):
    return x * 2 if scale is None else x * scale


def clamp(x, min, max):
    return np.clip(x, min, max)


def power(x, exponent: float):
    return x**exponent


def complex_abs(z):
    return np.abs(z.real + 1j * np.conj(z).imag)


def scalar_loss(prediction, target):
    if prediction.shape != target.shape:
        raise ValueError(f"Using a target size ({target.shape}) different to the input size ({prediction.shape})")
    return ((prediction - target) ** 2).mean()


def bilinear(x, y, weight):
    return np.einsum("bi,oij,bj->bo", x, weight, y)


def dot(a, b):
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    return a.dot(b)


def labelled_rows(scores, labels):
    shifted = scores - scores.max(-1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return -logarithms[np.arange(len(labels)), labels].mean()


def labels_after_a_product(W, X, y):
    scores = np.exp(X @ W)
    shares = scores / scores.sum(1, keepdims=True)
    return -np.log(shares[range(len(y)), y]).mean()


def distances(x, y):
    return np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))


def table(x, y):
    return x[:, None] * y[None, :]
