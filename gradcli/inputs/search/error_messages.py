"""Why forward does not accept a guess, and hints from its exception: kinds and ranks of arguments, and equal sizes."""

import itertools
import math
import re
import traceback
from collections.abc import Sequence
from typing import final

from gradcli.frozen import dataclass
from gradcli.inputs.search.candidates import Choice

_SAVED_NUMBER_BONUS = 8.0
"""A number that is to be saved for backward must be a tensor, which need not change an output: tried at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a guess is not accepted: the exception, if there was one, and how far forward got, from 0 to 2.

    `idle` is the slot whose values change no output, where that is the reason; `whole` says that no output is real,
    `is_lasting` that the exception does not depend on the inputs.
    """

    progress: float
    error: BaseException | None = None
    non_finite: bool = False
    no_tensor: bool = False
    idle: int | None = None
    whole: bool = False
    is_lasting: bool = False

    @property
    def message(self) -> str:
        """The exception's text, empty where there was none."""
        return "" if self.error is None else str(self.error)

    @property
    def promise(self) -> float:
        """The progress as far as it speaks for other sizes: where a tensor changes no output, it seldom does there."""
        return self.progress if self.idle is None else min(self.progress, 1.0)

    @property
    def may_be_of_values(self) -> bool:
        """Whether other values may help: forward ran to its end, or its error is about values."""
        return self.non_finite or self.progress >= 1.5 or complains_of_values(self.message)


@final
class Mentions:
    """The kinds and ranks of arguments that a message names."""

    _INDEX = (
        "used as indices",
        "of integer",
        "integer type",
        "long",
        "int64",
        "integral",
        "index tensor",
        "integer or boolean",
        "index is supposed to be",
    )
    _CONSTANT = (
        "must be int",
        "must be float",
        "must be tuple",
        "must be str",
        "must be bool",
        "not tensor",
        "cannot be interpreted as an integer",
        "only integer",
        "converted to python scalars",
        "converted to a scalar",
        "slice indices",
        "truth value",
        "boolean value of tensor",
        "unhashable",
        "can only be used as",
    )
    _SAVED = "can only save"
    _RANK = ("{}-d", "{}d ", "{} dim", "expected {},", "to have {}")

    def __init__(self, message: str) -> None:
        message = message.lower()
        self._index = any(text in message for text in self._INDEX)
        self._constant = any(text in message for text in self._CONSTANT)
        self._saved = self._SAVED in message
        # JAX's `bool[3,4]` is of a value that forward computed: `lax.cond` wants numbers there, not a mask.
        self._mask = re.search(r"bool(?!\[)", message) is not None and "truth value" not in message
        self._complex = "complex" in message
        self._ranks = {int(rank) for rank in "01234" if any(text.format(rank) in message for text in self._RANK)}
        self._ranks |= {0} if "pred must be a scalar" in message or _wants_one_entry(message) else set()

    def bonus(self, choice: Choice) -> float:
        """How much cheaper `choice` becomes because the message names its kind or rank."""
        if choice.kind == "index" and self._index:
            return 2.2
        if choice.kind == "number-tensor":
            return _SAVED_NUMBER_BONUS if self._saved else 0.0
        if choice.kind == "value" and self._constant:
            return 2.0
        if (choice.kind == "mask" and self._mask) or (choice.kind == "complex" and self._complex):
            return 2.0
        return 2.0 if choice.kind in ("float", "label", "index") and choice.rank in self._ranks else 0.0


def size_pairs(message: str) -> list[tuple[float, int, int]]:
    """The pairs of sizes that an exception speaks of, each with a cost: which axes are likely to have to be equal."""
    if not message:
        return []
    inner = re.search(r"\((\d+) ?x ?(\d+) and (\d+) ?x ?(\d+)\)", message)
    if inner:
        return [(-0.1, int(inner[2]), int(inner[3])), (0.1, int(inner[1]), int(inner[4]))]
    unequal = re.search(r"(\d+) (?:\(dim \d\) )?(?:!=|is different from) (\d+)", message)
    unequal = unequal or re.search(r"\b(\d+) [a-z ]+, but (?:it )?(?:got|has) (\d+)", message)
    if unequal:
        return [(-0.1, int(unequal[1]), int(unequal[2]))]
    pairs = [
        (0.05 * index, one, other)
        for left, right in itertools.combinations(_shapes(message)[:4], 2)
        for index, (one, other) in enumerate(zip(reversed(left), reversed(right), strict=False))
        if one != other
    ]
    return pairs + _loose_pairs(message)


_REFUSED = (
    r"invalid gradient at index (?P<at>\d+) - got \[(?P<got>[\d, ]*)\] but expected shape compatible with "
    r"\[(?P<wanted>[\d, ]*)\]",
    r"at output\[(?P<at>\d+)\](?P<leaf>\S*)[^\[]*produced an output of type \w+\[(?P<got>[\d,]*)\] "
    r"corresponding to an input of type \w+\[(?P<wanted>[\d,]*)\]",
)
"""How PyTorch (the engine and NumPy's backend alike) and JAX refuse the shape of a gradient."""
_REFUSED_KINDS = (
    "expected Variable or None (got ",
    "returned a gradient different from None at position ",
    "Custom VJP bwd rule ",
)
"""How they refuse a gradient for another reason: of a wrong type, for an argument that is not a tensor, or in a wrong
structure (JAX)."""


def refused_gradient(message: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The shape of a gradient that the framework rejected, and that of its input; None if it rejected none."""
    found = _refusal(message)
    if found is None:
        return None
    got, wanted = (tuple(int(size) for size in found[key].split(",") if size.strip()) for key in ("got", "wanted"))
    return got, wanted


def refused_position(message: str) -> int | None:
    """The position of the argument whose gradient the framework rejected; None if it is a part of an argument."""
    found = _refusal(message)
    return int(found["at"]) if found is not None and not found.groupdict().get("leaf") else None


def broadcasts(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether broadcasting makes the large shape of the small one."""
    pairs = zip(reversed(small), reversed(large), strict=False)
    return len(small) <= len(large) and small != large and all(one in (1, other) for one, other in pairs)


def is_flattened(got: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a shape is that of a vector of as many entries as a tensor of several axes has."""
    return len(got) == 1 and len(wanted) > 1 and math.prod(wanted) == got[0]


def _refusal(message: str) -> re.Match[str] | None:
    return next((found for pattern in _REFUSED if (found := re.search(pattern, message))), None)


def refused_complex(message: str) -> bool:
    """Whether a gradient was rejected because it is complex where the input is real."""
    return (
        re.search(r"input_is_complex == grad_is_complex|expected a real gradient for a real input", message) is not None
    )


def refused_number(message: str) -> bool:
    """Whether the framework rejected the number of gradients."""
    return "returned an incorrect number of gradients" in message


def is_refusal(message: str) -> bool:
    """Whether the framework rejected what backward returned, so that backward itself did not raise."""
    refused = refused_gradient(message) is not None or refused_complex(message) or refused_number(message)
    return refused or any(text in message for text in _REFUSED_KINDS)


def exceeded_size(message: str) -> int | None:
    """The size of an axis of which an entry beyond its end was read; None if the message tells of none."""
    found = re.search(r"index -?\d+ is out of bounds for (?:axis|dimension) \d+ with size (\d+)", message)
    return None if found is None else int(found[1])


def complains_of_order(message: str) -> bool:
    """Whether one size should have been larger than another, so that the sizes should fall instead of rise."""
    return (
        re.search(r"greater|larger|smaller|too (?:big|large|small)|exceed|at least|negative dim", message) is not None
    )


def complains_of_rank(error: BaseException | None) -> bool:
    """Whether a tensor lacked an axis that was read, so that other sizes do not help."""
    return _wants_one_entry(str(error)) or (
        isinstance(error, IndexError)
        and re.match(r"tuple index|Dimension out|too many indices", str(error)) is not None
    )


def lacks_axis(error: BaseException | None) -> bool:
    """Whether backward read or summed over an axis that a tensor does not have, or unpacked more sizes than it has."""
    few = r"not enough values to unpack|is out of bounds for array of dimension|Dimension out|tuple index"
    return isinstance(error, IndexError | ValueError) and re.search(few, str(error)) is not None


def _wants_one_entry(message: str) -> bool:
    """Whether a number was to be read from a tensor of several entries."""
    return re.search(r"converted to (?:a )?(?:Python )?scalar|only (?:length|size)-1 arrays", message, re.I) is not None


def asks_for_integers(message: str) -> bool:
    """Whether a tensor of whole numbers was wanted in place of one of floats, so that other sizes do not help."""
    pattern = (
        r"used as indices|(?:of|must be|require[sd]?) integer|integer type|expected (?:dtype|scalar type) (?:int|long)"
    )
    return re.search(pattern, message, re.IGNORECASE) is not None


def complains_of_broadcast(message: str) -> bool:
    """Whether two shapes did not fit element by element; a failed unpacking counts parts, which are elementwise too."""
    return re.search(r"size of tensor a|broadcast|incompatible shapes|values to unpack", message) is not None


def complains_of_precision(message: str) -> bool:
    """Whether the precision of a tensor was not the one expected."""
    words = r"\bdtypes?\b|scalar type|\bfloat(?:32|64)\b|\b(?:Float|Double)\b"
    return re.search(rf"{words}|(?:expect|must|should|requir|support)\w*\b.*(?<!not )\bfloat\b", message) is not None


def refuses_double(message: str) -> bool:
    """Whether tensors of 64 and of 32 bits met, or the largest number of one precision was too large for another."""
    double, single = (re.search(rf"\b(?:{name})\b", message) for name in ("Double|float64", "Float|float32"))
    return (double is not None and single is not None) or "without overflow" in message


def said_of_double(error: BaseException | None) -> str:
    """What forward raised because tensors had 64 bits, also as an assertion; empty where it raised something else."""
    if refuses_double(str(error)):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__) if isinstance(error, AssertionError) else []
    line = (frames[-1].line or "") if frames else ""
    return line if re.search(r"\bassert\b.*\b(?:float32|\w+\.float|FloatTensor)\b", line) else ""


def complains_of_values(message: str) -> bool:
    """Whether the values of an argument, not its shape or kind, were out of bounds."""
    words = r"between 0 and 1|positive|negative|definite|singular|domain|probabilit|outside|out of range|in \[0"
    return re.search(words, message) is not None


def aligned_sizes(message: str) -> tuple[tuple[int, int], ...]:
    """The pairs of sizes to be made equal for every shape in the message to fit the longest, aligned at the end."""
    shapes = sorted(_shapes(message), key=len, reverse=True)
    return tuple(
        (one, other)
        for shape in shapes[1:]
        for one, other in zip(reversed(shapes[0]), reversed(shape), strict=False)
        if one != other
    )


def lacked_by_a_constant(error: BaseException | None) -> bool:
    """Whether an attribute of a number, text, tuple or None was missing: a tensor may be needed there."""
    constant = (bool, int, float, complex, str, tuple, list, type(None))
    return isinstance(error, AttributeError) and error.name is not None and isinstance(error.obj, constant)


def is_of_a_wrong_kind(error: BaseException | None) -> bool:
    """Whether an argument was not of the kind or rank that was needed, as one that lacks an attribute.

    Inputs of other sizes then raise the same error, unless it is about sizes.
    """
    if complains_of_rank(error) or isinstance(error, AttributeError) or asks_for_integers(str(error)):
        return True
    of_no_size = re.search(r"\d|only|shape|size", str(error)) is None
    return isinstance(error, KeyError) or (isinstance(error, TypeError) and of_no_size)


def _shapes(message: str) -> list[tuple[int, ...]]:
    given = [tuple(map(int, re.findall(r"\d+", each))) for each in re.findall(r"[(\[]([\d, ]*)[)\]]", message)]
    return [shape for shape in given if shape]


def _loose_pairs(message: str) -> list[tuple[float, int, int]]:
    given = re.sub(r"dim(?:ension)?:? ?-?\d+|\bdim=-?\d+|axis -?\d+|argument \d+|operand \d+|\d+-?D", "", message)
    numbers: Sequence[int] = [int(number) for number in re.findall(r"(?<![\w.])\d{1,3}(?![\w.])", given)][:12]
    distinct = list(dict.fromkeys(numbers))
    cost = 0.0 if len(distinct) <= 2 else 0.15
    return [(cost, one, other) for one, other in itertools.combinations(distinct, 2)]
