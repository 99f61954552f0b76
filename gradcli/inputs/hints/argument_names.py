"""What the names and annotations of parameters usually mean: names order the search for inputs, and never decide it."""

import ast
import re
from collections.abc import Mapping
from typing import Any

Values = tuple[Any, ...]

WHOLE_NUMBERS: Mapping[str, Values] = {
    "dim": (-1, 1, 0), "axis": (-1, 1, 0), "dims": ((0, 1), -1), "axes": ((0, 1), -1),
    "stride": (2, 1), "padding": (1, 0), "pad": (1, 0), "dilation": (1, 2), "groups": (1, 2),
    "k": (2, 3), "kernel_size": (2, 3), "window": (2, 3), "size": (3, 4, (3, 4)), "n": (3, 2, 4),
    "num_classes": (4, 3, 5), "n_classes": (4, 3, 5), "classes": (4, 3), "num_segments": (4, 3), "num_groups": (2,),
    "num_heads": (2,), "heads": (2,), "steps": (3,), "num_steps": (3,), "order": (2, 3),
    "upscale_factor": (2,), "shift": (1, 0.5), "shifts": (1,), "offset": (1, 0), "diagonal": (0, 1),
    "shape": ((4, 3), (3, 4), (12,)), "output_size": (3, (3, 4)), "degree": (2, 3), "power": (3, 2.5),
    "exponent": (3, 2.5), "p": (3, 2, 0.5), "ord": (2,), "repeats": (2, (2, 2)), "length": (4,), "bits": (4,),
    "ignore_index": (-100,), "chunks": (2,), "num": (3,), "depth": (4, 3),
    **dict.fromkeys(("normalized_shape", "normalised_shape", "norm_shape"), ((4,), (3, 4), 4)),
    **dict.fromkeys(("iterations", "iters", "n_iter", "n_iters", "num_iter", "num_iters", "num_iterations"), (50, 8)),
    **dict.fromkeys(("verbose", "verbosity"), (0,)),
    **dict.fromkeys(("max_iter", "max_iters", "maxiter", "max_iterations", "max_steps"), (50, 8)),
}  # fmt: skip
REAL_NUMBERS: Mapping[str, Values] = {
    "constant": (2.5, 5), "eps": (1e-5, 1e-3), "epsilon": (1e-5, 1e-3), "slope": (0.3,),
    "negative_slope": (0.3,), "temperature": (0.7,), "tau": (0.7,), "lambd": (0.5,), "lambda_": (0.5,), "lam": (0.5,),
    "threshold": (0.5,), "margin": (0.5,), "momentum": (0.1,), "smoothing": (0.1,), "label_smoothing": (0.1,),
    "delta": (0.7,), "min": (-0.7, 0.3), "max": (0.7,), "lo": (-0.7, 0.3), "hi": (0.7,), "low": (-0.7, 0.3),
    "high": (0.7,),
    "min_val": (-0.7,), "max_val": (0.7,), "clip": (0.7,), "max_norm": (1.5,), "coefficient": (0.7,), "coef": (0.7,),
    "rate": (0.3,), "dropout": (0.3,), "prob": (0.3,), "dt": (0.1,), "step": (0.5,), "radius": (1.5,),
    "damping": (0.5,), "jitter": (1e-3,), "value": (0.7,), "fill": (0.7,), "factor": (2.5, 2), "multiplier": (2.5,),
    "scalar": (2.5,), "number": (2.5, 3), "weight_decay": (0.1,),
    **dict.fromkeys(("tol", "tolerance", "atol", "rtol", "xtol", "ftol", "gtol", "rcond"), (1e-8,)),
}  # fmt: skip
PERHAPS_NUMBERS: Mapping[str, Values] = {
    "alpha": (0.7, 2.0), "beta": (0.7, 2.0), "gamma": (0.7, 2.0), "scale": (0.7, 2.0), "sigma": (0.7, 2.0),
    "s": (0.7,), "t": (0.7,), "T": (0.7, 2.0), "c": (2.5,), "mu": (0.3,), "rho": (0.5,), "r": (2, 0.7),
}  # fmt: skip
NUMBERS_OR_VECTORS = frozenset(("gamma", "beta", "alpha", "p", "r", "s", "t", "c", "k", "n", "window"))
"""Names of numbers that are vectors as often, if they get a gradient."""
OF_LAYERS: Mapping[str, frozenset[str]] = {
    "scale": frozenset(("bias", "b", "beta", "shift", "offset")), "shift": frozenset(("scale",)),
}  # fmt: skip
"""Names of numbers that are vectors of a layer if it has an argument with one of these other names."""
FLAGS = frozenset((
    "training", "train", "inplace", "keepdim", "keepdims", "ceil_mode", "align_corners", "causal", "is_causal",
    "normalize", "reverse", "flag", "largest", "descending", "exclusive", "upper", "lower", "unbiased",
    "affine", "hard", "symmetric", "transpose", "transposed", "bidirectional",
))  # fmt: skip
FLAG_NAMES = re.compile(r"(?:is|use|has|with|return|enable|needs?|should)_\w+")
"""Names that say that an argument is true or false."""
WORDS: Mapping[str, Values] = {
    "reduction": ("mean", "sum", "none"), "reduce": ("sum", "mean", "amax"),
    "mode": ("sum", "mean", "nearest", "max", "constant"), "activation": ("relu", "tanh"),
}  # fmt: skip
INDEX_NAMES = frozenset((
    "index", "indices", "idx", "ids", "inds", "labels", "label", "target", "targets", "y_true", "segment",
    "segments", "segment_ids", "tokens", "positions", "row", "col", "src", "dst", "edge_index",
))  # fmt: skip
UNSURE_INDEX_NAMES = frozenset(("target", "targets", "y_true"))
DATA_NAMES = re.compile(
    r"labels?|targets?|y_true|gt|ground_truth|dones?|(?:\w+_)?noise|gumbels?|freqs(?:_cis)?"
    r"|(?:rotary_|rope_)?(?:cos|sin)(?:_(?:cached?|table|emb))?"
    r"|old_(?:log_?)?(?:p|pi|probs?|values?|policy)|(?:log_?)?(?:p|pi|probs?|values?|policy)_old"
    r"|adv(?:antages?)?|rewards?|returns|teacher(?:_\w+)?|(?:class|sample|pos)_weights?"
)
"""Names of data that get no gradient where backward returns None for them, also if they are real numbers: labels,
noise, the tables of a rotary embedding, what an older policy or a teacher gave, and weights of samples."""
MASK_NAMES = frozenset((
    "mask", "attn_mask", "condition", "cond", "keep", "valid", "padding_mask", "key_padding_mask",
))  # fmt: skip
PROBABILITY_NAMES = re.compile(r"(?:\w+_)?(?:targets?|labels?|probs?|probabilities|y_true)|soft_\w+|teacher")
"""Names of what may be the probabilities of classes that a loss compares its input with."""
VECTOR_NAMES = frozenset((
    "bias", "b", "gamma", "beta", "running_mean", "running_var", "mean", "var", "std", "v", "vec", "vector",
    "slope", "offset",
))  # fmt: skip
COEFFICIENTS = frozenset(("w", "theta", "beta", "coef"))
"""Vectors beside a matrix `X`, which has a capital for that."""
ITERATION_LIMITS = re.compile(r"(?:.*_)?max_?(?:iter(?:s|ations?)?|steps|evals?|fev|nfev|sweeps)")
"""Names of numbers after which an iteration stops even if it has not converged."""
BLANK_NAMES = re.compile(r"(?:.*_)?blank(?:_(?:index|idx|label|id|class|token|symbol))?")
"""Names of a class that no label may be, as the blank of CTC."""
IGNORED_NAMES = re.compile(
    r"(?:.*_)?ignored?(?:_(?:index|idx|label|lb|id|class|value|target))?"
    r"|(?:.*_)?(?:pad(?:ding)?|void)_(?:index|idx|id|label|class|token|token_id)"
)
"""Names of numbers that mark the entries of an index input which count for nothing, as ignore_index does."""
LENGTH_NAMES = re.compile(r"(?:.*_)?(?:lengths|lens|seqlens)")
"""Names of the lengths of sequences, which are counts: none is 0."""
PART_NAMES = re.compile(rf"{LENGTH_NAMES.pattern}|(?:.*_)?(?:sections|split_sizes|parts)")
"""Names of the lengths of the parts of an axis, as tuples: unequal ones that add up to the first size tried."""
PERMUTATION_NAMES = re.compile(
    r"(?:.*_)?(?:perm(?:utation)?s?|argsort|(?:un)?shuffled?|reorder(?:ing)?)(?:_(?:idx|index|ind(?:ice)?s|ids?))?"
    r"|(?:un)?sort(?:ed|ing)?_(?:idx|index|ind(?:ice)?s|ids?|order)|ids?_(?:shuffle|restore|keep)"
)
"""Names of indices that are all different."""
POINTER_NAMES = re.compile(
    r"(?:.*_)?(?:ind|row|col|seg|node|edge|batch|bag)?_?ptrs?|c(?:row|col)(?:_indices)?|cu_?seq_?lens?(?:_\w+)?"
    r"|(?:.*_)?(?:offsets|splits)"
)
"""Names of the places where the rows of a compressed matrix, or the parts of a list, begin and end."""
PAIR_NAMES = re.compile(r"(?:.*_)?(?:bond|edge|pair|spring|link)s?(?:_(?:idx|index|ind(?:ice)?s|ids?|list))?")
"""Names of rows of two indices, of the ends of something: two different ones."""
WHOLE_NUMBER_PATTERNS = (LENGTH_NAMES, PERMUTATION_NAMES, POINTER_NAMES)
STATE_NAMES = re.compile(r"(?:running|moving|ema)_\w+|num_batches_tracked")
COMPANIONS: Mapping[str, frozenset[str]] = {
    "k": frozenset("qv"), "p": frozenset("q"), "s": frozenset("t"), "t": frozenset("s"), "n": frozenset("m"),
    "lower": frozenset(("upper",)), "upper": frozenset(("lower",)),
}  # fmt: skip
"""Names of numbers and flags that are tensors beside these: q, k and v are, and so are a lower and an upper limit."""
PARAMETER_NAMES = frozenset(("weight", "w", "gamma", "beta", "scale", "bias"))
ADDED_NAMES = frozenset(("beta", "bias", "gamma"))
"""Those of layers alone: a weight may be that of a loss, which has no gradient."""
IMAGE_NAMES = frozenset((
    "img", "image", "images", "feature_map", "fmap",
))  # fmt: skip
SMALL_NAMES = re.compile(r"(?:^|_)(?:eps|epsilon|[a-z]?tol|tolerance|rcond)$")
"""Names of numbers that are small as a rule: accuracies, and what guards a quotient."""
ENDINGS: tuple[tuple[str, Values, float], ...] = (
    (r"_(axis|axes)$", (-1, 1, 0), 2.5),
    (r"(^|_)(ignored?|pad(ding)?_(index|idx|id)|void_(label|class|id))", (-100,), 2.5),
    (r"(_size|_dim|_height|_width|^num_|^n_|kernel|stride|count|iters?$|steps?$)", (2, 3, 1, 4, (3, 4)), 2.5),
    (r"(eps|epsilon|tol|tolerance)$", (1e-8, 1e-5, 1e-3), 0.8),
    (r"(rate|_factor|_scale|lambda|temp|thresh|const)", (0.7, 2.0, 1e-3), 0.8),
)
"""Parts of names, with the numbers that they suggest and what a tensor costs more because of them."""
ANY_CONSTANT: Values = (2.5, 2, -1, 1, 3, True, False, (2, 2), "mean", "sum", None, 0, (3, 4))
_PLAIN = frozenset((
    "int", "float", "complex", "bool", "str", "tuple", "list", "sequence", "size", "dict", "mapping", "callable",
    "dtype", "device", "memory_format", "layout", "generator", "literal",
))  # fmt: skip


def is_layers_parameter(name: str) -> bool:
    """Whether an argument of this name is probably a parameter of a layer, which is meant to get a gradient."""
    word = name.lower()
    known = word in PARAMETER_NAMES | VECTOR_NAMES or re.match(r"w(?:\d|_|eight|$)", word) is not None
    return known or named_as_bias(name)


def named_as_bias(name: str) -> bool:
    """Whether an argument is called as the bias of a layer is: `b`, `b1`, `bias`."""
    return re.match(r"b(?:\d|_|ias|$)", name.lower()) is not None


def flag_values(word: str) -> Values:
    """The values of an argument that is named like a flag, the likeliest first; none for other names."""
    if word in FLAGS:
        return (True, False)
    return (False, True) if FLAG_NAMES.fullmatch(word) else ()


def says_number(name: str) -> bool:
    """Whether a name is a usual one of a number, as `stride` and `pool_height` are."""
    word = name.lower()
    known = word in WHOLE_NUMBERS or word in REAL_NUMBERS
    return (known and len(word) > 1) or any(re.search(pattern, word) for pattern, _, _ in ENDINGS)


def limits_iterations(name: str) -> bool:
    """Whether an argument has a usual name for the most steps that an iteration takes, such as max_iter."""
    return ITERATION_LIMITS.fullmatch(name.lower().strip("_")) is not None


def types_named(annotation: str) -> tuple[str, ...]:
    """The types of an annotation in lower case, without None and without their parts: `float` of `Optional[float]`."""
    try:
        tree = ast.parse(annotation, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(dict.fromkeys(_names(tree.body)))


def excludes_tensors(annotation: str) -> bool:
    """Whether an annotation names only numbers, texts, containers and callables."""
    named = types_named(annotation)
    return bool(named) and _PLAIN.issuperset(named)


def is_state(name: str) -> bool:
    """Whether an argument holds running statistics: no gradient is meant for them, whatever the mode."""
    return STATE_NAMES.fullmatch(name.lower().strip("_")) is not None


def names_tensors(annotation: str) -> bool:
    """Whether an annotation names a type that may be a tensor's; `Any` and `object` say nothing."""
    return not {"any", "object", *_PLAIN}.issuperset(types_named(annotation))


def _names(node: ast.expr) -> list[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return [name.lower()]
        case ast.Constant(value=str(text)):
            return list(types_named(text))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _names(left) + _names(right)
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return (
                [each for part in parts for each in _names(part)] if name in ("Optional", "Union") else [name.lower()]
            )
    return []
