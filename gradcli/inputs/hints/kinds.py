"""What the names and annotations of arguments, and their uses, suggest of indices and masks."""

from gradcli.inputs.domains import INTEGRAL
from gradcli.inputs.hints import argument_names
from gradcli.inputs.hints.source_hints import SourceHints

INDEX_COST, MASK_COST = 2.2, 2.6
UNSURE_INDEX_COST = 0.35
"""More than a float tensor, and less where backward returns None for that."""
NAMED_INDEX_COST = 0.1
"""Of an index input that its name suggests."""


def index_cost(word: str, annotation: str, *, is_input: bool) -> float:
    """The cost of an index tensor for an argument of this name; `is_input` says that it is the input itself."""
    if "LongTensor" in annotation or "IntTensor" in annotation:
        return 0.0
    if word in argument_names.UNSURE_INDEX_NAMES:
        return UNSURE_INDEX_COST
    if word in ("label", "labels"):
        return -0.1
    if any(pattern.fullmatch(word) for pattern in argument_names.WHOLE_NUMBER_PATTERNS):
        return NAMED_INDEX_COST
    if word in argument_names.INDEX_NAMES or word.endswith(("idx", "index", "indices", "ids", "_ind", "_inds")):
        return NAMED_INDEX_COST
    return 5.0 if is_input else INDEX_COST


def mask_cost(word: str, *, is_input: bool) -> float:
    """The same for a boolean tensor."""
    if word in argument_names.MASK_NAMES or "mask" in word:
        return 0.1
    return 5.5 if is_input else MASK_COST


def suggested_kinds(word: str, name: str, position: int, hints: SourceHints, annotation: str) -> frozenset[str]:
    """ "index" or "mask" where something says that an argument is one."""
    said, is_input = hints.values.domains.get(name), hints.is_input(position)
    kinds = {
        "index": index_cost(word, annotation, is_input=is_input) < INDEX_COST
        or hints.index_bonus(name) > 0
        or said in INTEGRAL,
        "mask": mask_cost(word, is_input=is_input) < MASK_COST or hints.mask_bonus(name) > 0 or said == "boolean",
    }
    return frozenset(kind for kind, is_suggested in kinds.items() if is_suggested)
