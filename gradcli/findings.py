"""The names for what can be wrong with a gradient: stable, documented, each with its code."""

from enum import Enum


class FindingKind(Enum):
    """A kind of mistake; the value is its name, and each member explains itself."""

    code: str
    sentence: str
    detection: str
    remedy: str

    WRONG_FACTOR = (
        "wrong-factor",
        "GC101",
        "The returned gradient is a constant times the right one.",
        "One factor c fits every entry: returned = c × numerical, within the bounds, and c is not 1.",
        "Multiply by the missing factor; where c is 1/k for an argument k, the chain rule's factor k was left out, "
        "and c = 1/size or size points to a mean taken for a sum, or the reverse.",
    )
    WRONG_SIGN = (
        "wrong-sign",
        "GC102",
        "The returned gradient has the wrong sign.",
        "The factor that fits every entry (or every entry of a region that is named) is -1.",
        "Negate the expression for this input; typical for the second operand of a subtraction.",
    )
    TRANSPOSED = (
        "transposed",
        "GC103",
        "The returned gradient is the right one with its axes exchanged.",
        "Returned and numerical gradients agree after a permutation of axes, and not before.",
        "Transpose the result, or exchange the operands of the matrix product.",
    )
    SWAPPED_GRADIENTS = (
        "swapped-gradients",
        "GC104",
        "The gradient returned for one input is the gradient of another.",
        "What is returned in this input's place agrees with the numerical gradient of a different input.",
        "Return the gradients in the order of forward's arguments, and assign each to its own variable.",
    )
    MISSING_GRADIENT = (
        "missing-gradient",
        "GC105",
        "No gradient is returned for an input that has one.",
        "backward returns None or exact zeros while the numerical gradient is not zero.",
        "Compute the gradient for this input; check the branch on ctx.needs_input_grad and the order of the values "
        "returned.",
    )
    UNNEEDED_GRADIENT = (
        "unneeded-gradient",
        "GC106",
        "A gradient is returned for an argument that has none.",
        "backward returns something other than None in the place of a number, a string or an integer tensor.",
        "Return None in this argument's place.",
    )
    WRONG_ARITY = (
        "wrong-arity",
        "GC107",
        "backward returns the wrong number of gradients.",
        "The number of values returned is compared with the number of forward's arguments (extra None are allowed).",
        "Return one value for each argument of forward, None for those that have no gradient.",
    )
    MISSING_REDUCTION = (
        "missing-reduction",
        "GC108",
        "The returned gradient was not summed over the axes that forward broadcast.",
        "Summing what backward returns over the broadcast axes gives the numerical gradient.",
        "Sum over the broadcast axes, for a bias typically grad_output.sum(0).",
    )
    WRONG_REDUCTION = (
        "wrong-reduction",
        "GC109",
        "The returned gradient was reduced in the wrong way: a mean for a sum, or over the wrong axis.",
        "The factor between returned and numerical gradient is the size of a reduced axis, or another axis fits.",
        "Use sum for the gradient of a broadcast, over the axes that forward broadcast.",
    )
    MISSING_TERM = (
        "missing-term",
        "GC110",
        "The returned gradient lacks a term.",
        "With one more term of a simple form (grad_output times inputs and output, sums of such along axes, matrix "
        "products) the gradient agrees with slopes of forward along several directions, for several cotangents; or "
        "what the Jacobian of a small Function lacks has rank one or two in every slice, or lies off the diagonal. "
        "Either holds at a second point.",
        "Differentiate every place the input occurs in, statistics such as a mean or a norm included.",
    )
    WRONG_SHIFT = (
        "wrong-shift",
        "GC111",
        "The returned gradient is the right one, rolled along an axis.",
        "Returned and numerical gradients agree after a roll by a few places.",
        "Look for an index that is off by one.",
    )
    WRONG_ENTRIES = (
        "wrong-entries",
        "GC112",
        "The returned gradient is wrong in some entries and right in the others.",
        "Entries are compared one by one; a rule that fits exactly the wrong ones (input < 0, last row) is named.",
        "Look at the branch or mask that treats these entries.",
    )
    IGNORES_GRAD_OUTPUT = (
        "ignores-grad-output",
        "GC113",
        "backward does not use grad_output.",
        "Different cotangents give the same gradient; or only one element, one slice or the sum of the cotangent "
        "matters, or that of one output does not.",
        "Multiply by grad_output: backward returns a vector-Jacobian product, not a derivative.",
    )
    NONLINEAR_BACKWARD = (
        "nonlinear-backward",
        "GC114",
        "backward is not linear in grad_output.",
        "backward(a·u + b·v) differs from a·backward(u) + b·backward(v) by more than rounding.",
        "Use grad_output once, as a factor; do not clamp, square or normalise it.",
    )
    MISSING_CONJUGATE = (
        "missing-conjugate",
        "GC115",
        "The returned gradient is the complex conjugate of the right one.",
        "Returned and numerical gradients agree after conjugation.",
        "For a complex function the gradient is grad_output times the conjugate of the derivative.",
    )
    WRONG_GRADIENT = (
        "wrong-gradient",
        "GC116",
        "The returned gradient is wrong.",
        "It lies outside the error bound of the numerical gradient, and no more specific name holds.",
        "Compare the worst entries with the formula for them.",
    )
    NON_FINITE_GRADIENT = (
        "non-finite-gradient",
        "GC117",
        "The returned gradient is NaN or infinite where the derivative is finite.",
        "The numerical derivative is bounded at the same point.",
        "Avoid 0/0 and inf·0 in backward: mask before dividing, or use a stable form.",
    )
    WRONG_SHAPE = (
        "wrong-shape",
        "GC201",
        "A returned gradient does not have its input's shape.",
        "The shape that backward returns is compared with the input's.",
        "Sum over broadcast axes and reshape to the input's shape.",
    )
    WRONG_DTYPE = (
        "wrong-dtype",
        "GC202",
        "A complex gradient is returned for a real input.",
        "The dtype that backward returns is compared with the input's. Other precisions are converted silently; this "
        "the framework refuses.",
        "Return the real part of the gradient, z.real.",
    )
    LOW_PRECISION = (
        "low-precision",
        "GC203",
        "The returned gradient carries the errors of a lower precision.",
        "Its errors are at the level of float32 or lower although inputs are float64; or all its entries are float32 "
        "numbers, or were rounded to such on the way, while forward computes in float64.",
        "Remove conversions to a lower precision from backward.",
    )
    MUTATES_INPUT = (
        "mutates-input",
        "GC301",
        "An input is changed in place without being marked.",
        "The input's bytes are compared before and after. For an input that requires no gradient, such as running "
        "statistics, it is a note.",
        "Work on a copy, or call ctx.mark_dirty and return the tensor. Where it is meant, allow it in a spec with the "
        "reason: `allow: {mutates-input: the kernel hands its logits over}`.",
    )
    MUTATES_GRAD_OUTPUT = (
        "mutates-grad-output",
        "GC302",
        "backward changes grad_output in place: the caller's gradient changes with it.",
        "grad_output's bytes are compared before and after backward.",
        "Clone grad_output before writing into it.",
    )
    MUTATES_SAVED = (
        "mutates-saved",
        "GC303",
        "backward changes a saved tensor in place.",
        "The saved tensors' bytes are compared before and after backward.",
        "Clone a saved tensor before writing into it.",
    )
    NONDETERMINISTIC_FORWARD = (
        "nondeterministic-forward",
        "GC304",
        "forward gives different results for the same input.",
        "Two runs on the same input, random generators reset, are compared bit for bit.",
        "Take randomness from the framework's seeded generator, or remove the state that forward depends on.",
    )
    NONDETERMINISTIC_BACKWARD = (
        "nondeterministic-backward",
        "GC305",
        "backward gives different gradients for the same input and cotangent.",
        "Two runs on the same input and cotangent are compared, and two passes through one graph under two seeds.",
        "Remove randomness and state from backward; save a random mask on ctx in forward.",
    )
    STATEFUL = (
        "stateful",
        "GC306",
        "The result depends on an earlier call.",
        "forward is called between a forward and its backward, with other signs, another order of the entries, other "
        "indices, numbers and sizes; the gradient changes, or backward raises.",
        "Keep state on ctx, not on the class or the module.",
    )
    SECOND_BACKWARD_FAILS = (
        "second-backward-fails",
        "GC307",
        "A second backward through a retained graph raises or differs.",
        "backward is called twice on the same graph.",
        "Do not delete or change what forward saved.",
    )
    NEEDS_INPUT_GRAD = (
        "needs-input-grad",
        "GC308",
        "The gradient of an input changes with which other inputs require one.",
        "Gradients are compared over the subsets of inputs that require a gradient.",
        "Let each branch on ctx.needs_input_grad compute its own gradient only.",
    )
    UNDEFINED_GRAD = (
        "undefined-grad",
        "GC309",
        "backward fails, or is wrong, when an output's gradient is None.",
        "An unused output's gradient is passed as None and as zeros.",
        "With ctx.set_materialize_grads(False), treat None as zeros.",
    )
    NON_CONTIGUOUS = (
        "non-contiguous",
        "GC310",
        "The gradient is wrong for tensors that are not contiguous.",
        "Strided, expanded and transposed tensors of equal values are compared with contiguous ones.",
        "Use reshape for view, and do not rely on the memory's order.",
    )
    ALIASED_INPUTS = (
        "aliased-inputs",
        "GC311",
        "The gradient is wrong when one tensor is passed twice.",
        "The same tensor is passed for two inputs of one shape and dtype; its gradient must be the sum of those that "
        "two tensors of the same values get, and forward's values must be the same.",
        "Do not tell inputs apart by identity (is, id(), data_ptr()); return a separate gradient for each argument.",
    )
    ZERO_SIZE = (
        "zero-size",
        "GC312",
        "The gradient is wrong for empty inputs.",
        "The axis of the batch is given size 0 where forward accepts it: gradients must have their inputs' shapes, be "
        "finite, and zero where the outputs are empty. A backward that raises there is a note: nobody gets a wrong "
        "number.",
        "Handle size 0: reshape with sizes instead of -1, and do not divide by a size.",
    )
    BATCH_SIZE = (
        "batch-size",
        "GC313",
        "The gradient is wrong for some batch sizes.",
        "Other sizes of a leading axis whose entries stand side by side, so that exchanging two of them exchanges them "
        "in the outputs, are tried where forward accepts them; what seems wrong there is verified by differences.",
        "Look for a size that is written down as a constant, and for squeeze without an axis.",
    )
    NOT_TWICE_DIFFERENTIABLE = (
        "not-twice-differentiable",
        "GC401",
        "backward leaves the graph, so that higher derivatives are silently zero or incomplete.",
        "The second derivative through backward is zero or lacks a part, and the numerical one is not. A backward that "
        "raises when it is differentiated is a note, and fails only where its order was asked for: with --order, by a "
        "spec's order, or with order= in Python.",
        "Build backward from differentiable operations on grad_output, saved inputs and saved outputs; "
        "return a needed intermediate as an output, or mark backward once_differentiable.",
    )
    WRONG_SECOND_ORDER = (
        "wrong-second-order",
        "GC402",
        "The first derivative is right and a higher one is wrong.",
        "backward is itself compared with differences of backward.",
        "If backward calls another Function, check that Function's own backward.",
    )
    JVP_MISMATCH = (
        "jvp-mismatch",
        "GC403",
        "Forward mode disagrees with backward.",
        "<J v, u> and <v, J^T u> are compared. A jvp that raises, or that returns None whatever the tangents are, is a "
        "note: nobody gets a wrong number.",
        "Make jvp the transpose of backward.",
    )
    VMAP_MISMATCH = (
        "vmap-mismatch",
        "GC404",
        "Batched gradients disagree with backward.",
        "vmap over backward is compared with a loop.",
        "Write the batching rule for every axis, or let it be generated.",
    )
    JIT_MISMATCH = (
        "jit-mismatch",
        "GC405",
        "The function gives another result compiled than not.",
        "Outputs and gradients of one call under jit are compared with those of one without it.",
        "Keep state and random numbers out of the function, and do not ask whether a value is a tracer.",
    )
    LEAKS_MEMORY = (
        "leaks-memory",
        "GC501",
        "The graph stays alive after its result is gone.",
        "A call's result and leaves are released, and its node is there still: ctx holds an output whose graph holds "
        "ctx, or something that outlives the call holds an output or ctx even after a garbage collection.",
        "Save outputs with save_for_backward, not as attributes of ctx, and keep what outlives a call detached.",
    )
    SPECIAL_POINT = (
        "special-point",
        "GC502",
        "The gradient is wrong or not finite at a special value.",
        "Exact zeros, ties, clip edges and infinities are tried.",
        "Mask the special value before dividing or taking a logarithm, in forward and in backward.",
    )

    def __new__(cls, name: str, code: str, sentence: str, detection: str, remedy: str) -> "FindingKind":
        """Keep the name as the value and the texts as attributes."""
        member = object.__new__(cls)
        member._value_ = name
        member.code = code
        member.sentence = sentence
        member.detection = detection
        member.remedy = remedy
        return member
