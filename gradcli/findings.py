"""The names for what can be wrong with a gradient: stable, documented, each with its code."""

from enum import Enum

SURROGATE_ADVICE = (
    "if this is meant as a straight-through or surrogate gradient, declare it in a spec with `expect: surrogate`"
)


class FindingKind(Enum):
    """A kind of mistake; the value is its name, and each member explains itself."""

    code: str
    sentence: str
    detection: str
    remedy: str

    WRONG_FACTOR = (
        "wrong-factor",
        "GC101",
        "The returned gradient lacks a factor, has one factor too many, or has a wrong factor.",
        "The returned gradient is c times the numerical one in every entry, within the error bounds, and c is not 1; "
        "the report gives c as `factor`, unless it changes with the inputs. Or one expression of backward lacks a "
        "factor or has a wrong one: with this expression corrected, the gradient agrees with finite differences of "
        "forward, at these inputs and at others; what the gradient lacks may then be another number in each entry.",
        "Add the missing factor, leave out the extra one, or correct the wrong one: the returned gradient is c times "
        "the right one. Where c is 1/k for an argument k, the factor k of the chain rule was left out; where c is the "
        "size of an axis or 1/size, a sum and a mean were confused.",
    )
    WRONG_SIGN = (
        "wrong-sign",
        "GC102",
        "The returned gradient has the wrong sign.",
        "The returned gradient is -1 times the numerical one, in every entry or in every entry of a named region.",
        "Negate the expression for this input; typical for the second operand of a subtraction.",
    )
    TRANSPOSED = (
        "transposed",
        "GC103",
        "The returned gradient is the transpose of the right one, or an operand inside backward is transposed.",
        "Returned and numerical gradient agree only after a permutation of the axes; or the gradient agrees with "
        "finite differences of forward, at these inputs and at others, once one operand inside backward is "
        "transposed.",
        "Transpose the result, or exchange the operands of the matrix product.",
    )
    SWAPPED_GRADIENTS = (
        "swapped-gradients",
        "GC104",
        "The gradient returned for one input is the gradient of another.",
        "What backward returns for this input agrees with the numerical gradient of another input.",
        "Return the gradients in the order of forward's arguments, and assign each to its own variable.",
    )
    MISSING_GRADIENT = (
        "missing-gradient",
        "GC105",
        "backward returns no gradient for an input that has one.",
        "backward returns None or exact zeros while the numerical gradient is not zero.",
        "Compute the gradient of this input. Check the branch on ctx.needs_input_grad and the order of the values "
        "returned.",
    )
    UNNEEDED_GRADIENT = (
        "unneeded-gradient",
        "GC106",
        "backward returns a gradient for an argument that cannot have one.",
        "backward returns something other than None for a number, a string or an integer tensor.",
        "Return None for this argument.",
    )
    WRONG_ARITY = (
        "wrong-arity",
        "GC107",
        "backward returns the wrong number of gradients.",
        "The number of values returned is compared with the number of forward's arguments. Extra None values at the "
        "end are allowed.",
        "Return one value for each argument of forward, and None for those that have no gradient.",
    )
    MISSING_REDUCTION = (
        "missing-reduction",
        "GC108",
        "The returned gradient was not summed over the axes that forward broadcast.",
        "Summing what backward returns over the broadcast axes gives the numerical gradient.",
        "Sum over the broadcast axes; for a bias that is typically grad_output.sum(0).",
    )
    WRONG_REDUCTION = (
        "wrong-reduction",
        "GC109",
        "The returned gradient was reduced in the wrong way: a mean for a sum, or over the wrong axis.",
        "The returned gradient is the numerical one multiplied or divided by the size of a reduced axis, or it equals "
        "what a reduction over another axis gives; or the gradient agrees with finite differences of forward, at "
        "these inputs and at others, once one reduction inside backward is replaced by another.",
        "Use sum for the gradient of a broadcast, over the axes that forward broadcast.",
    )
    MISSING_TERM = (
        "missing-term",
        "GC110",
        "The returned gradient lacks a term.",
        "Adding one term of a simple form (grad_output times inputs and output, sums of these along axes, matrix "
        "products) makes the gradient agree with finite differences of forward along several directions and for "
        "several values of grad_output. Or, for a small Function, the missing part of the Jacobian has rank one or "
        "two along some axes, or consists of all off-diagonal entries. Or the gradient becomes right when a term is "
        "added to an expression of backward, or the sign of a term is changed. Each of these must hold at other "
        "inputs too.",
        "Differentiate every place where the input occurs, statistics such as a mean or a norm included.",
    )
    WRONG_SHIFT = (
        "wrong-shift",
        "GC111",
        "The returned gradient is shifted cyclically along an axis, or an index, range or order in backward is wrong.",
        "Returned and numerical gradient agree after a roll by a few places; or the gradient agrees with finite "
        "differences of forward, at these inputs and at others, once one index, range or order inside backward is "
        "changed.",
        "Look for an index that is off by one, or for an axis that is read in the wrong order.",
    )
    WRONG_ENTRIES = (
        "wrong-entries",
        "GC112",
        "The returned gradient is wrong in some entries and right in the others.",
        "Entries are compared one at a time. A condition that holds for exactly the wrong entries (input < 0, the last "
        "row) is named.",
        "Look at the branch or mask that handles these entries.",
    )
    IGNORES_GRAD_OUTPUT = (
        "ignores-grad-output",
        "GC113",
        "backward does not use grad_output, or only a part of it.",
        "Different values of grad_output give the same gradient; or the gradient depends only on one element, one "
        "slice or the sum of grad_output; or it does not depend on the grad_output of one of the outputs.",
        "Multiply by grad_output: backward returns a vector-Jacobian product, not the derivative alone.",
    )
    NONLINEAR_BACKWARD = (
        "nonlinear-backward",
        "GC114",
        "backward is not linear in grad_output.",
        "backward(a·u + b·v) differs from a·backward(u) + b·backward(v) by more than rounding.",
        "Multiply every term by grad_output exactly once; do not clamp, square or normalise grad_output.",
    )
    MISSING_CONJUGATE = (
        "missing-conjugate",
        "GC115",
        "The returned gradient is the complex conjugate of the right one.",
        "Returned and numerical gradient agree after conjugation.",
        "In PyTorch and gradcli.engine, multiply grad_output by the conjugate of the derivative. In JAX and NumPy, use "
        "the derivative itself.",
    )
    WRONG_GRADIENT = (
        "wrong-gradient",
        "GC116",
        "The returned gradient is wrong.",
        "The returned gradient differs from finite differences of forward by more than three times their error "
        "bound, and no more specific finding explains it.",
        "Work out the formula of the worst entries by hand and compare it with backward.",
    )
    NON_FINITE_GRADIENT = (
        "non-finite-gradient",
        "GC117",
        "The returned gradient is NaN or infinite where the derivative is finite.",
        "backward returns NaN or infinity at a point where the numerical derivative is finite.",
        "Avoid 0/0 and inf·0 in backward: mask before dividing, or use a numerically stable form.",
    )
    WRONG_SHAPE = (
        "wrong-shape",
        "GC201",
        "A returned gradient does not have the shape of its input.",
        "The shape that backward returns is compared with the input's.",
        "Sum over the axes that forward broadcast, and reshape to the input's shape.",
    )
    WRONG_DTYPE = (
        "wrong-dtype",
        "GC202",
        "A complex gradient is returned for a real input.",
        "The dtype that backward returns is compared with the input's. Other precisions are converted "
        "silently; a complex gradient for a real input is a failure.",
        "Return the real part of the gradient, z.real.",
    )
    LOW_PRECISION = (
        "low-precision",
        "GC203",
        "The returned gradient has only the accuracy of a lower precision, or is wrong only in a lower precision.",
        "The inputs are float64, but the gradient's errors are as large as the rounding of float32 or a less precise "
        "type. Or forward computes in float64, but every entry of the gradient is exactly a float32 value, or "
        "backward rounded the gradient to float32. Or backward in a lower precision, that of the inputs or one with "
        "which the source compares a dtype, differs from backward in float64 by more than its rounding explains: a "
        "value overflows or underflows, terms cancel, or a branch for this dtype has another formula.",
        "Remove conversions to a lower precision from backward. Where it is wrong only in a lower precision, compute "
        "what overflows, underflows or cancels in a higher one, or correct the branch for this dtype.",
    )
    MUTATES_INPUT = (
        "mutates-input",
        "GC301",
        "An input is changed in place without being marked as dirty.",
        "The bytes of the input are compared before and after the call. For an input that requires no gradient, such "
        "as running statistics, a change is reported only as a note, not as a failure.",
        "Work on a copy, or call ctx.mark_dirty and return the tensor. Where the change is intended, allow it in a "
        "spec with the reason: `allow: {mutates-input: forward overwrites its logits to save memory}`.",
    )
    MUTATES_GRAD_OUTPUT = (
        "mutates-grad-output",
        "GC302",
        "backward changes grad_output in place, which changes the caller's gradient.",
        "grad_output's bytes are compared before and after backward.",
        "Clone grad_output before writing into it.",
    )
    MUTATES_SAVED = (
        "mutates-saved",
        "GC303",
        "A saved tensor is changed in place, by backward or by a later line of forward.",
        "The saved tensors' bytes are compared before and after backward. Or a wrong gradient agrees with finite "
        "differences of forward, at these inputs and at others, once forward keeps a copy of what it then writes into.",
        "Clone a saved tensor before writing into it.",
    )
    NONDETERMINISTIC_FORWARD = (
        "nondeterministic-forward",
        "GC304",
        "forward gives different results for the same input.",
        "Two calls with the same inputs and the same random seed are compared. Only differences as small as "
        "rounding are accepted, or as large as `nondeterminism` in the spec allows.",
        "Take random numbers from the framework's seeded generator, or remove the state that forward depends on. If "
        "additions run in varying order (atomic additions on a GPU), declare `nondeterminism` with a reason in a spec.",
    )
    NONDETERMINISTIC_BACKWARD = (
        "nondeterministic-backward",
        "GC305",
        "backward gives different gradients for the same input and grad_output.",
        "Two runs on the same input and grad_output are compared, and so are two backward passes through one graph "
        "with different random seeds.",
        "Remove randomness and state from backward; draw a random mask in forward and keep it on ctx.",
    )
    STATEFUL = (
        "stateful",
        "GC306",
        "The result depends on an earlier call.",
        "Between a forward and its backward, forward is called on different inputs: other signs, orders of entries, "
        "indices, values and sizes, and other numbers and flags, also in place of defaults; once, or several times in "
        "a row. The gradient changes, or backward raises. Or a further backward pass changes a gradient that was "
        "returned before.",
        "Keep state on ctx, not on the class or the module, and return a new tensor each time.",
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
        "The gradient of an input depends on which other inputs require a gradient.",
        "Gradients are compared over the subsets of inputs that require a gradient.",
        "Let each branch on ctx.needs_input_grad compute its own gradient only.",
    )
    UNDEFINED_GRAD = (
        "undefined-grad",
        "GC309",
        "backward fails, or is wrong, when an output's gradient is None.",
        "backward is called with None and with zeros as the gradient of an unused output; the results must agree.",
        "With ctx.set_materialize_grads(False), treat None as zeros; without that call, backward receives "
        "zeros instead of None.",
    )
    NON_CONTIGUOUS = (
        "non-contiguous",
        "GC310",
        "The gradient is wrong for tensors that are not contiguous.",
        "Strided, expanded and transposed tensors must give the same gradients as contiguous tensors with the same "
        "values.",
        "Use reshape instead of view, or call contiguous() first, and do not rely on the order of elements in memory.",
    )
    ALIASED_INPUTS = (
        "aliased-inputs",
        "GC311",
        "The gradient is wrong when one tensor is passed twice.",
        "The same tensor is passed for two inputs of equal shape and dtype. Its gradient must be the sum of the "
        "gradients of two separate tensors with the same values, and forward's values must not change.",
        "Do not tell inputs apart by identity (is, id(), data_ptr()); return a separate gradient for each argument.",
    )
    ZERO_SIZE = (
        "zero-size",
        "GC312",
        "The gradient is wrong for empty inputs.",
        "The batch axis is given size 0 where forward accepts that. Gradients must have the shapes of their inputs, "
        "be finite, and be zero where the outputs are empty. If backward raises there, that is reported only as a "
        "note, because no wrong number is returned.",
        "Handle size 0: reshape with explicit sizes instead of -1, and do not divide by a size.",
    )
    BATCH_SIZE = (
        "batch-size",
        "GC313",
        "The gradient is wrong for some batch sizes.",
        "Other sizes of the batch axis are tried where forward accepts them, and a gradient that looks wrong is "
        "verified by finite differences. An axis counts as the batch axis if its entries are independent of each "
        "other, or if forward computes statistics over them.",
        "Look for a size written into the code as a constant, and for squeeze without an axis.",
    )
    NOT_TWICE_DIFFERENTIABLE = (
        "not-twice-differentiable",
        "GC401",
        "A part of backward is cut off from the graph, so higher derivatives are silently zero or incomplete.",
        "The second derivative through backward is zero or incomplete, and the numerical one is not. If backward "
        "raises when it is differentiated, that is reported only as a note; it is a failure only if you gave that "
        "order: --order, or order in a spec, pyproject.toml or Python.",
        "Build backward from differentiable operations on grad_output, saved inputs and saved outputs. Return a "
        "needed intermediate as an output, or mark backward once_differentiable.",
    )
    WRONG_SECOND_ORDER = (
        "wrong-second-order",
        "GC402",
        "The first derivative is right and a higher one is wrong.",
        "The derivative of backward is compared with finite differences of backward.",
        "If backward calls another Function, check that Function's own backward.",
    )
    JVP_MISMATCH = (
        "jvp-mismatch",
        "GC403",
        "Forward mode (jvp) disagrees with backward.",
        "For tangents v and cotangents u, the jvp J v and the vjp J^T u must satisfy <J v, u> = <v, J^T u>. A jvp "
        "that raises or always returns None is reported only as a note, because no wrong number is returned.",
        "Fix the jvp: it must apply the Jacobian whose transpose backward applies. backward is right, since it is "
        "verified before jvp is compared with it.",
    )
    VMAP_MISMATCH = (
        "vmap-mismatch",
        "GC404",
        "A call under vmap gives other outputs or gradients than a loop over the batch.",
        "Outputs and gradients under vmap, with the batch on different axes, are compared with those of a loop. What "
        "the rule refuses with a NotImplementedError is reported only as a note.",
        "Handle every value of in_dims in the batching rule, or set generate_vmap_rule = True.",
    )
    JIT_MISMATCH = (
        "jit-mismatch",
        "GC405",
        "The function gives other results under jit than without it.",
        "Outputs and gradients of a call under jit are compared with those of a call without it.",
        "Keep state and random numbers of Python or NumPy out of the function, and do not test whether a value is a "
        "tracer.",
    )
    LEAKS_MEMORY = (
        "leaks-memory",
        "GC501",
        "The graph of a call stays in memory after its result is released.",
        "After a call's result and leaves are released, its graph node still exists. Either ctx holds an output, "
        "whose graph holds ctx: this reference cycle stays until the garbage collector runs, or longer. Or, even "
        "after a garbage collection, the class, a module or another object that outlives the call holds an output or "
        "ctx.",
        "Save outputs with ctx.save_for_backward, not as attributes of ctx; detach a tensor before you keep it "
        "beyond the call.",
    )
    SPECIAL_POINT = (
        "special-point",
        "GC502",
        "The gradient is wrong or not finite at a special value.",
        "The gradient is wrong or not finite at exactly this point, although it may be right nearby. Besides the given "
        "inputs, gradcli tries 0, 1, -1, 2, 1/2 and equal entries, where the domains allow them.",
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
