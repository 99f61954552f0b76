"""What a spec may hold: every key, with the type of its value and what it is for, in one place."""

from collections.abc import Mapping
from enum import Enum

from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.settings import HIGHEST_ORDER


class Kind(Enum):
    """The type a key's value must have; the value of a member is how an error names it."""

    TEXT = "a string"
    COUNT = "a whole number of at least 1"
    ORDER = f"a whole number from 1 to {HIGHEST_ORDER}"
    SEED = "a whole number of at least 0"
    FLAG = "true or false"
    NUMBER = "a number"
    SECONDS = "a number of seconds above 0"
    MAPPING = "a mapping"
    SEQUENCE = "a list"
    NAMES = "a string or a list of strings"
    ALLOWANCE = "a mapping from findings to reasons, or a list of findings"
    SHAPE = "a list of sizes, such as [3, 4], or scalar"
    ANYTHING = "a value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a mapping in a spec."""

    kind: Kind
    sentence: str
    required: bool = False


RUN_KEYS: Mapping[str, Key] = {
    "seed": Key(kind=Kind.SEED, sentence="The seed of the random inputs."),
    "order": Key(kind=Kind.ORDER, sentence="The highest derivative order to check."),
    "samples": Key(kind=Kind.COUNT, sentence="The number of sets of random inputs."),
    "budget": Key(kind=Kind.SECONDS, sentence="Seconds after which a case leaves out optional work, like --budget."),
    "nondeterminism": Key(
        kind=Kind.NUMBER,
        sentence=(
            "How much results may differ between two calls with equal inputs, as a fraction of their largest entry."
        ),
    ),
    "allow": Key(
        kind=Kind.ALLOWANCE,
        sentence=(
            "Findings that are reported as notes instead of failures, each with its reason; or a list of findings, "
            "with the key reason next to it."
        ),
    ),
    "reason": Key(kind=Kind.TEXT, sentence="Why the target is not deterministic, or why findings are allowed."),
    "device": Key(kind=Kind.TEXT, sentence="The device of the tensors: cpu, cuda, cuda:1, mps; --device overrides it."),
    "only": Key(kind=Kind.NAMES, sentence="The checks to run; all others are left out."),
    "skip": Key(kind=Kind.NAMES, sentence="The checks to leave out."),
    "tags": Key(kind=Kind.NAMES, sentence="Words by which cases are chosen with --tag."),
}
VERDICT_KEYS: Mapping[str, Key] = {
    "expect": Key(kind=Kind.TEXT, sentence="The expected result of the case: passed, failed or surrogate."),
    "findings": Key(kind=Kind.NAMES, sentence="With expect: failed, at least one of these findings must be reported."),
}
DOCUMENT_KEYS: Mapping[str, Key] = {
    "target": Key(kind=Kind.TEXT, sentence="package.module:Name or path/to/file.py:Name.", required=True),
    "grad": Key(kind=Kind.TEXT, sentence="The hand-written gradient of a callable, as module:attr."),
    "saved": Key(
        kind=Kind.NAMES,
        sentence=(
            "The parameters of grad besides grad_output: arguments of the callable, or values that it returns "
            "after its outputs."
        ),
    ),
    "construct": Key(kind=Kind.MAPPING, sentence="Arguments to instantiate a target that is a class."),
    "allow": RUN_KEYS["allow"],
    "reason": Key(kind=Kind.TEXT, sentence="Why the findings in allow are allowed."),
    "defaults": Key(kind=Kind.MAPPING, sentence="Defaults for all cases."),
    "sizes": Key(kind=Kind.MAPPING, sentence="Sizes of named dimensions, for every case."),
    "cases": Key(kind=Kind.SEQUENCE, sentence="The cases. Without this key: one case with inferred inputs."),
    **VERDICT_KEYS,
}
DEFAULTS_KEYS: Mapping[str, Key] = {
    **RUN_KEYS,
    "dtype": Key(kind=Kind.TEXT, sentence="The dtype of floating inputs."),
}
CASE_KEYS: Mapping[str, Key] = {
    "name": Key(kind=Kind.TEXT, sentence="The name shown in brackets after the target."),
    "inputs": Key(
        kind=Kind.MAPPING,
        sentence=("One entry for each argument of forward. Without this key, the inputs are inferred."),
    ),
    "sizes": Key(kind=Kind.MAPPING, sentence="Sizes of named dimensions; every combination becomes a case."),
    "grad": DOCUMENT_KEYS["grad"],
    "saved": DOCUMENT_KEYS["saved"],
    "construct": DOCUMENT_KEYS["construct"],
    "dtype": DEFAULTS_KEYS["dtype"],
    **RUN_KEYS,
    **VERDICT_KEYS,
}
INPUT_KEYS: Mapping[str, Key] = {
    "shape": Key(kind=Kind.SHAPE, sentence="The sizes; a name stands for a size given under sizes."),
    "dtype": Key(kind=Kind.TEXT, sentence="The dtype, by default the run's."),
    "domain": Key(
        kind=Kind.TEXT, sentence="How the values are drawn, such as normal (the default), uniform or positive."
    ),
    "layout": Key(kind=Kind.TEXT, sentence="coo or csr, for a sparse tensor."),
    "grad": Key(kind=Kind.FLAG, sentence="Whether the input requires a gradient, by default yes for floats."),
    "lo": Key(kind=Kind.NUMBER, sentence="The lower end, for uniform, open-interval, ascending and descending."),
    "hi": Key(kind=Kind.NUMBER, sentence="The upper end, for uniform, open-interval, ascending and descending."),
    "low": Key(kind=Kind.ANYTHING, sentence="The smallest index, for indices."),
    "high": Key(kind=Kind.ANYTHING, sentence="One more than the largest index, for indices; may be a named size."),
    "value": Key(kind=Kind.ANYTHING, sentence="Numbers, or nested lists of them: a tensor with these values."),
    "path": Key(kind=Kind.TEXT, sentence="The file of domain npz."),
    "key": Key(kind=Kind.TEXT, sentence="The array's name in the file of domain npz."),
    "python": Key(kind=Kind.TEXT, sentence="A Python literal that YAML cannot write, such as '(2, 2)'."),
}
# What may follow a domain's name in the same string, as a regular expression, and the keys it takes.
_NUMBER = r"[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|inf)"
_INTERVAL = rf"\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)"
DOMAIN_FORMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "normal": ("", ()),
    "uniform": (f"({_INTERVAL})?", ("lo", "hi")),
    "positive": ("", ()),
    "unit": ("", ()),
    "open-interval": (f"({_INTERVAL})?", ("lo", "hi")),
    "distinct": ("", ()),
    "ascending": (f"({_INTERVAL})?", ("lo", "hi")),
    "descending": (f"({_INTERVAL})?", ("lo", "hi")),
    "spd": ("", ()),
    "triangular": ("", ()),
    "diagonally-dominant": ("", ()),
    "orthogonal": ("", ()),
    "indices": (r"(\(\s*-?\d+\s*,\s*-?\d+\s*\))?", ("low", "high")),
    "permutation": (r"(\(\s*\d+\s*\))?", ("high",)),
    "pointers": (r"(\(\s*\d+\s*\))?", ("high",)),
    "simplex": ("", ()),
    "unit-vectors": ("", ()),
    "unit-ball": ("", ()),
    "one-hot": ("", ()),
    "signs": ("", ()),
    "binary": ("", ()),
    "boolean": ("", ()),
    "key": ("", ()),
    "typed-key": ("", ()),
    "literal": ("", ("value",)),
    "npz": (r"(:.+)?", ("path", "key")),
}
EXPECTATIONS = ("passed", "failed", "surrogate")
FINDINGS = tuple(kind.value for kind in FindingKind)
CHECKS = (
    "forward", "returns", "mutation", "memory", "repeat", "linearity", "gradient", "forward-mode", "batching",
    "compilation", "subsets", "layout", "aliasing", "unused-outputs", "untracked", "constants", "precision",
    "higher-order", "sizes", "empty", "other-inputs",
)  # fmt: skip
"""The names of the checks. They are written here again because the registry imports the numerics."""
