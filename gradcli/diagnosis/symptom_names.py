"""The names for what can be the matter with a `.grad`: stable, documented, each with its remedy."""

from enum import Enum


class Symptom(Enum):
    """What can be the matter with a `.grad`; the value is its name, and each member explains itself."""

    sentence: str
    detection: str
    remedy: str

    MOVED_LEAF = (
        "moved-leaf",
        "A leaf was moved or converted: the copy is a result, and the gradient went to the leaf.",
        "The tensor is not a leaf; between it and the one leaf it comes from lie only conversions and copies.",
        "Read the leaf's .grad, convert first and call requires_grad_() then, or call retain_grad() on the copy.",
    )
    HIDDEN_LEAF = (
        "hidden-leaf",
        "The tensor is the result of an operation on a leaf that has no name: its gradient is out of reach.",
        "The tensor is not a leaf, and the one leaf it comes from is held by no variable.",
        "Compute the values first and call requires_grad_() on the result.",
    )
    NOT_REACHED = (
        "not-reached",
        "No path leads from the result to the leaf.",
        "The leaf requires grad, and its AccumulateGrad node is not in the graph of the result.",
        "Use the tensor itself in forward; look for a copy, an index, or a branch that leaves it out.",
    )
    DETACHED = (
        "detached",
        "The leaf was taken out of the graph on the way to the result.",
        "No path leads to the leaf, and a line took a tensor that comes from it out of the graph.",
        "Stay with tensor operations at that line: no detach, .data, item, tolist or numpy in between.",
    )
    NO_GRAD = (
        "no-grad",
        "The result was computed while nothing was recorded.",
        "No path leads to the leaf, and the traced code entered a no_grad block.",
        "Take the computation out of the no_grad block, or open enable_grad inside it.",
    )
    MISSPELT_FLAG = (
        "misspelt-flag",
        "An attribute that looks like requires_grad was set in its place.",
        "requires_grad is False, and the tensor has an attribute with a name much like it.",
        "Write requires_grad, with the s, or call requires_grad_().",
    )
    RETURNED_NONE = (
        "function-returned-none",
        "A backward returned None where a gradient was needed.",
        "A node got a gradient and gave None to an operand that leads to the leaf.",
        "Return a gradient in the position of this argument of forward.",
    )
    RETAINED_LATE = (
        "retained-late",
        "retain_grad() was called only after backward.",
        "The tensor is a result, and it was told to keep its gradient when the last pass was over.",
        "Call retain_grad() before backward.",
    )
    BACKWARD_NOT_RUN = (
        "backward-not-run",
        "No backward pass ran.",
        "Nothing called backward, and the result does not require grad.",
        "Return the loss, or call backward on it; at least one tensor in it must require grad.",
    )
    BACKWARD_RAISED = (
        "backward-raised",
        "The backward pass raised before it came to this tensor.",
        "The pass ended with an exception, and nothing had been added to this .grad.",
        "Mend what the error says; the trace shows how far the pass came.",
    )
    ZERO_GRADIENT = (
        "zero-gradient",
        "The gradient is zero in every entry.",
        "A gradient that is not zero came to a node on the way, and only zeros left it.",
        "Look at the operation named: a dead ReLU, a rounding, a product with zero, a saturated function.",
    )
    NON_FINITE = (
        "non-finite-gradient",
        "A NaN or Inf appeared.",
        "The first node to which finite gradients came and from which others left.",
        "Look at the operands of the operation named: a root or logarithm at zero, 0/0, an overflow.",
    )

    WRONG_NODE = (
        "wrong-node",
        "A node's backward is not the derivative of its own forward.",
        "With --check: the backward of each custom Function, at the arguments it was called with, was compared with "
        "the error-bounded derivative of its forward.",
        "Correct the backward named; gradcli check of that Function shows entries and the smallest input.",
    )

    def __new__(cls, value: str, sentence: str, detection: str, remedy: str) -> "Symptom":
        """Keep the name as the value and the texts as attributes."""
        member = object.__new__(cls)
        member._value_ = value
        member.sentence = sentence
        member.detection = detection
        member.remedy = remedy
        return member
