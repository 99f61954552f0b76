"""What made the first NaN or Inf, in words: the operation with its operands, the line, why, and what to do."""

import re

from gradcli.traces import NonFinite, SourceSite, TraceGraph

_AWAY_FROM_0 = "keep its operand away from 0, with clamp or a small term added before"
_ROWS = "leave at least one entry of each row unmasked"
_STATISTICS = "leave out the correction (unbiased=False), or take more entries"
_REMEDIES = {
    "softmax": _ROWS,
    "log_softmax": _ROWS,
    "logsumexp": _ROWS,
    "std": _STATISTICS,
    "var": _STATISTICS,
    "mean": "do not take the mean of an empty selection",
    "div": "keep the divisor away from 0",
    "acos": "keep its operand between -1 and 1",
    "asin": "keep its operand between -1 and 1",
    "atanh": "keep its operand between -1 and 1",
    "log1p": "keep its operand above -1",
    "logit": "keep its operand between 0 and 1",
    "sub": "do not subtract infinite entries",
    "mul": "insert infinities by `masked_fill` or `where`, not by a product",
    "cross_entropy": "make sure that at least one target is neither ignored nor of weight 0",
    "nll_loss": "make sure that at least one target is neither ignored nor of weight 0",
}
_INSIDE = "keep its operand away from -1 and 1"
_POLES = {
    "acos": _INSIDE,
    "asin": _INSIDE,
    "atanh": _INSIDE,
    "arccos": _INSIDE,
    "arcsin": _INSIDE,
    "arctanh": _INSIDE,
    "acosh": "keep its operand above 1",
    "arccosh": "keep its operand above 1",
    "tan": "keep its operand away from the poles of the tangent",
    "log1p": "keep its operand above -1",
    "logit": "keep its operand between 0 and 1",
}
"""What to do about operations whose derivative is infinite elsewhere than at 0."""
_EXPONENTIAL = ("exp", "exp2", "expm1", "sinh", "cosh")
_OVERFLOWING = (*_EXPONENTIAL, "mul", "add", "sub", "pow", "square", "sum", "prod", "matmul", "mm", "bmm", "mv", "dot",
                "addmm", "linear", "einsum", "cumsum", "cumprod", "to", "half", "float", "bfloat16")  # fmt: skip
_FROM_NEGATIVE = ("log", "log2", "log10", "sqrt", "rsqrt", "pow", "xlogy")
_POLE_AT_0 = frozenset({"log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "div", "rdiv",
                        "true_divide", "pow", "float_power", "xlogy", "norm", "vector_norm", "linalg_vector_norm",
                        "lgamma", "digamma", "polygamma", "prod", "cumprod", "hypot", "atan2", "angle", "cdist", "dist",
                        "pairwise_distance", "pdist"})  # fmt: skip
_LOOK = "look at its operands there"
_SUFFIX = re.compile(r"Backwards?\d*$")


def non_finite_sentence(graph: TraceGraph) -> str | None:
    """Where the first NaN or Inf came from; None where everything was finite."""
    found = graph.non_finite
    if found is None:
        if graph.result is not None and graph.result.non_finite:
            return "the result is NaN or infinite, but no traced operation made it so: look at "
            "code that the trace does not see, such as NumPy, .data or a kernel"
        return None
    if found.kind == "node":
        return _of_node(found)
    if found.kind == "hook":
        return f"the hook `{found.name}`{_at(found.site)} made the first NaN or Inf: it received finite gradients"
    if found.kind == "cotangent":
        return "the gradient passed to backward is itself NaN or infinite"
    return f"{_origin_of(found)}; {_advice(found)}"


def _at(site: SourceSite | None) -> str:
    return "" if site is None else f" at {site}"


def _entry(found: NonFinite) -> str:
    return f" at entry {list(found.entry)}" if found.entry else ""


def _origin_of(found: NonFinite) -> str:
    if found.kind == "data":
        held = "NaN" if found.value != found.value else "Inf"
        where = f"{held}{_entry(found)}"
        if found.site is None:
            return f"{found.name} holds {where} before anything is computed"
        return f"{found.name} at {found.site} puts {where} into the data"
    overflow = f", an overflow of {found.dtype}" if _overflows(found) else ""
    text = f"{found.name}{_at(found.site)} made the first NaN or Inf, in forward: {found.text}{_entry(found)}{overflow}"
    if found.cause is not None:
        text += f"; the Inf comes from {found.cause.name}{_at(found.cause.site)}"
    if found.became is not None:
        text += f"; {found.became.name}{_at(found.became.site)} turns it into NaN: {found.became.text}"
    return text


def _overflows(found: NonFinite) -> bool:
    """Whether Inf resulted from finite operands away from a pole."""
    infinite = found.value is not None and abs(found.value) == float("inf")
    return infinite and found.name.rstrip("_") in _OVERFLOWING and "0 ** (-" not in found.text and found.cause is None


def _advice(found: NonFinite) -> str:
    name = found.name.rstrip("_")
    if found.kind == "data":
        return "look at where these values come from"
    if _overflows(found):
        exponential = "subtract the maximum before, or use softmax, logsumexp or softplus"
        return exponential if name in _EXPONENTIAL else "scale its operands down, or compute with logarithms"
    if name in _FROM_NEGATIVE and _is_nan(found):
        return "keep its operand from becoming negative"
    return _REMEDIES.get(name, _AWAY_FROM_0 if name in _POLE_AT_0 else _LOOK)


def _of_node(found: NonFinite) -> str:
    operation = found.operation or _SUFFIX.sub("", found.name).lower()
    if found.selected_at is not None:
        where = f"the `{found.selected_by}` at {found.selected_at}"
        return (
            f"{found.name}, {found.site}, made the first NaN or Inf: {where} does not select its result{_entry(found)} "
            f"and sends a gradient of 0 back to this entry, but there the derivative of {operation} is infinite, and "
            f"0·inf is NaN{_saved(found)}. Selecting afterwards does not help: make the operand of {operation} safe "
            "first, with a `where` in front of it"
        )
    if found.cause is not None and found.cause.phase == "backward":
        made = _origin_of(found.cause).replace("made the first NaN or Inf, in forward:", "computes")
        return f"{found.name} made the first NaN or Inf: in its backward, {made}; {_advice(found.cause)}"
    if found.cause is not None:
        return (
            f"{_origin_of(found.cause)}; the result does not show it, but in backward {found.name}, {found.site}, "
            f"turns it into {_kind(found)}; {_advice(found.cause)}"
        )
    received = "finite gradients" if found.incoming is None else f"a gradient of {found.incoming:.6g}"
    came = f"it received {received}{_entry(found)} and returned {_kind(found)}{_saved(found)}"
    if found.site is not None and found.operation is None and _is_users(found.name):
        return f"{found.name}, {found.site}, made the first NaN or Inf: {came}"
    why = ": the derivative is infinite there, and 0·inf is NaN" if found.incoming == 0 and _is_nan(found) else ""
    advice = _POLES.get(operation, _AWAY_FROM_0 if operation in _POLE_AT_0 else _LOOK)
    if operation == "pow" and ("self", "0") in [(name, value.lstrip("-")) for name, value in found.saved]:
        advice = _AWAY_FROM_0
    elif operation in _OVERFLOWING and found.incoming and not _is_nan(found):
        why, advice = ", an overflow", "scale down the loss, or the factor by which the gradient is multiplied here"
    return (
        f"{found.name}{'' if found.site is None else f', {found.site}'}, made the first NaN or Inf, in backward: "
        f"{came}{why}; {advice}"
    )


def _is_users(name: str) -> bool:
    """Whether a node's backward is the user's own."""
    return name.endswith("Backward") or name.startswith("custom_")


def _is_nan(found: NonFinite) -> bool:
    return found.value is not None and found.value != found.value


def _kind(found: NonFinite) -> str:
    return "NaN" if _is_nan(found) else "Inf"


def _saved(found: NonFinite) -> str:
    return (
        f" (saved for this entry: {', '.join(f'{name} = {value}' for name, value in found.saved)})"
        if found.saved
        else ""
    )
