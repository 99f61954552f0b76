"""What may be put into a tensor's `.grad` by hand, in PyTorch's words where it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.engine.graph import Saved

if TYPE_CHECKING:
    from gradcli.engine.tensor import Tensor

NOT_A_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access "
    "the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information."
)


def not_a_tensor(value: object) -> TypeError:
    """Return the error for a gradient that is not a tensor."""
    kind = type(value)
    # C knows a type of an extension, such as NumPy's, with its module.
    name = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
    return TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {name}")


def check_fits_as_grad(tensor: Tensor, value: Tensor) -> None:
    """Refuse a gradient that is the tensor itself, or of another element type or shape.

    Raises:
        RuntimeError: it is.
    """
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    if value._data.dtype != tensor._data.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{value.dtype.in_c}' to a tensor with grad_dtype "
            f"'{tensor.dtype.letter}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
            "dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. "
            "Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream "
            "systems that assume they match."
        )
    if value._data.shape != tensor._data.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value._data.shape)}' to a tensor of size "
            f"'{list(tensor._data.shape)}'. Please ensure that the gradient and the tensor are the same size"
        )


def check_nothing_returned(reply: object, leaf: Tensor) -> None:
    """Raise when a hook that is called after the gradient was added returned something else than its leaf."""
    if reply is None or reply is leaf:
        return
    if not isinstance(reply, Saved):
        raise TypeError(f"expected Variable, but hook returned '{type(reply).__name__}'")
    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
