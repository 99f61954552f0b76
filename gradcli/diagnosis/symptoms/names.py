"""The names for what can be wrong with a `.grad`: stable, documented, each with its remedy."""

from enum import Enum


class Symptom(Enum):
    """What can be wrong with a `.grad`; the value is its name, and each member has its texts."""

    sentence: str
    detection: str
    remedy: str

    MOVED_LEAF = (
        "moved-leaf",
        "The tensor is a moved or converted copy of a leaf; the gradient went to the leaf.",
        "The tensor is not a leaf, and only conversions and copies lie between it and the one leaf it comes from.",
        "Read the leaf's .grad; or convert first and then call requires_grad_(); or call retain_grad() on the copy.",
    )
    HIDDEN_LEAF = (
        "hidden-leaf",
        "The tensor is the result of an operation on a leaf that no variable refers to, so the leaf's gradient "
        "cannot be read.",
        "The tensor is not a leaf, and no variable holds the one leaf it comes from.",
        "Compute the values first, keep the resulting tensor in a variable, and call requires_grad_() on it.",
    )
    NOT_REACHED = (
        "not-reached",
        "The result does not depend on the leaf through the graph.",
        "The leaf requires grad, and its AccumulateGrad node is not in the graph of the result.",
        "Use this tensor itself in forward; look for a copy, an index, or a branch that leaves it out.",
    )
    DETACHED = (
        "detached",
        "A line of code between the leaf and the result cuts the leaf off.",
        "No path leads to the leaf, and a line of code detached a tensor computed from it.",
        "Use tensor operations at that line, without detach, .data, item, tolist or numpy; autograd.grad needs "
        "create_graph=True.",
    )
    NO_GRAD = (
        "no-grad",
        "The result was computed while gradients were not recorded.",
        "No path leads to the leaf, and the traced code entered a no_grad block.",
        "Move the computation out of the no_grad block, or open enable_grad inside it.",
    )
    MISSPELT_FLAG = (
        "misspelt-flag",
        "An attribute whose name resembles requires_grad was set, and requires_grad was not.",
        "requires_grad is False, and the tensor has an attribute with a very similar name.",
        "Write requires_grad, with the s, or call requires_grad_().",
    )
    RETURNED_NONE = (
        "function-returned-none",
        "A backward returned None where a gradient was needed.",
        "A node received a gradient and returned None for an operand that leads to the leaf.",
        "Return a gradient at this argument's position.",
    )
    RETAINED_LATE = (
        "retained-late",
        "retain_grad() was called only after backward.",
        "The tensor is not a leaf, and retain_grad() was called when the last backward pass was over.",
        "Call retain_grad() before backward.",
    )
    BACKWARD_NOT_RUN = (
        "backward-not-run",
        "No backward pass ran.",
        "Nothing called backward, and the traced function returned no tensor, or one that does not require grad.",
        "Return the loss, or call backward on it; at least one tensor in it must require grad.",
    )
    BACKWARD_RAISED = (
        "backward-raised",
        "The backward pass raised before it reached this tensor.",
        "The backward pass ended with an exception before anything was added to this .grad.",
        "Fix the reported error; the trace shows how far the backward pass came.",
    )
    ZERO_GRADIENT = (
        "zero-gradient",
        "The gradient is zero in every entry.",
        "A node or hook between the result and the leaf received a gradient that was not zero and returned only zeros, "
        "backward began with zeros, gradients cancelled, or .grad was made zero afterwards.",
        "Look at the operation, hook or line named: a dead ReLU, a rounding, a product with zero, or a saturated "
        "function.",
    )
    NON_FINITE = (
        "non-finite-gradient",
        "A NaN or infinity appeared in forward or in the backward pass.",
        "The trace names where the first one came from: the data, an operation of forward, a hook, the gradient passed "
        "to backward, or a node that received finite gradients and returned NaN or infinity.",
        "Look at the place named; for an operation, at its operands: a root or logarithm at zero, 0/0, an overflow.",
    )

    WRONG_NODE = (
        "wrong-node",
        "A node's backward is not the derivative of its own forward.",
        "With --check: the backward of each custom Function, at the arguments it was called with, was compared with "
        "finite differences of its forward and their error bound.",
        "Correct the backward named; gradcli check of that Function shows the wrong entries and the smallest input "
        "at which it fails.",
    )

    OVER_BUDGET = (
        "memory-over-budget",
        "The tensors of the backward pass need more memory at one time than the budget.",
        "With --memory BUDGET: while a node of the graph ran, the parameters, the saved tensors, the .grad tensors and "
        "the gradients passed between nodes took more than BUDGET together.",
        "Save less at the nodes listed first: recompute (checkpoint), save a mask instead of values, or drop copies.",
    )

    def __new__(cls, value: str, sentence: str, detection: str, remedy: str) -> "Symptom":
        """Keep the name as the value and the texts as attributes."""
        member = object.__new__(cls)
        member._value_ = value
        member.sentence = sentence
        member.detection = detection
        member.remedy = remedy
        return member
