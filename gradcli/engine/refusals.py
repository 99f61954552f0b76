"""What PyTorch says where flags, views and in-place operations are refused."""

from __future__ import annotations

FLAG_OF_RESULT = (
    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
    "that doesn't require differentiation use var_no_grad = var.detach()."
)
DATA_OF_INTEGERS = "data set to a tensor that requires gradients must be floating point or complex dtype"
CANNOT_REQUIRE = "only Tensors of floating point dtype can require gradients"
VIEW_DETACHED = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
    "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
    "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
    "torch/optim/optimizer.py as the solution."
)
LEAF_WRITTEN = "a leaf Variable that requires grad is being used in an in-place operation."
LEAF_VIEW_WRITTEN = "a view of a leaf Variable that requires grad is being used in an in-place operation."
_UNTRACKED_VIEW = (
    "A view was created in no_grad mode and {} modified inplace with grad mode enabled. Given that this use case is "
    "ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace "
    "either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want "
    "the inplace to be tracked)."
)
UNTRACKED_VIEW_WRITTEN = _UNTRACKED_VIEW.format("is being")
UNTRACKED_BASE_WRITTEN = _UNTRACKED_VIEW.format("its base or another view of its base has been")
VIEW_WRITTEN = "Output {} of {} is a view and is being modified inplace. {}"
BASE_WRITTEN = "Output {} of {} is a view and its base or another view of its base has been modified inplace. {}"
ONE_OF_SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
FROM_A_FUNCTION = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
FREED_BEFORE_HOOKS = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
    "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved variables after calling backward."
)
