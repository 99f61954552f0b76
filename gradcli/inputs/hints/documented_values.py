"""What docstrings and comments say about the values of arguments, such as `A: a symmetric positive definite matrix`.

A word counts only for the argument in whose description it stands: in the first noun phrase there, or in a phrase of
its own as in `the kernel, which must be positive`. What stands behind a "not" counts for nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from gradcli.frozen import dataclass
from gradcli.inputs.domains import CLASSES, INTEGRAL, MATRICES, WITH_AXES
from gradcli.inputs.hints.documented_constants import constants_named, fixed_named, says_constant, says_fixed
from gradcli.inputs.hints.documented_shapes import Axis, texts_of
from gradcli.inputs.hints.prose.descriptions import BITS, SIGNS, descriptions, kinds_named, positives_named
from gradcli.inputs.hints.prose.number_systems import FILLERS, system_said, systems_named
from gradcli.inputs.hints.prose.sentences import IN_BALL, QUOTES

_Said = TypeVar("_Said")
_PERHAPS = re.compile(
    r"[∈~∼<>≤≥≦≧\\]|\b(?:within|inside|between|range|unit interval|than|U|Unif|uniform(?:ly)?|above|at least)\b"
    r"|\bin\b[^()\[\]]{0,40}[(\[\]]", re.IGNORECASE,
)  # fmt: skip
"""What a text has that gives an interval; most have none."""
_MAYBE_ORDERED = re.compile(
    r"creasing|scending|sorted|ordered|knots|break-?\s?points|\bbin\s|time-?\s?stamps|[\]\d}ijkmn]\s*[<>≤≥]"
    r"|searchsorted|bucketize|digitize|\binterp\(", re.IGNORECASE,
)  # fmt: skip
"""What a source or text has that says that values are in order; most have none."""
_ENTRIES = frozenset(("positive", "unit", "open-interval"))
"""The domains of single entries: a text about branches says `x if x is positive` too, so these need more."""
_DOMAINS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in (
        (
            "spd",
            r"(?:\bsymmetric,?\s+)?positive[- ](?:semi-?\s?)?definite|\b(?:PSD|SPD)\b|covariance matri"
            r"|\bsymmetric(?:\s+\w+){0,2}\s+matri"
            r"|\b(?:symmetric|covariance)\s*$",
        ),
        ("triangular", r"lower[- ]triangular"),
        ("orthogonal", r"\borthogonal(?=\s*$|\s+(?:\w+\s+)?(?:matri|basis|frame|tensor))|\borthonormal"),
        ("one-hot", r"\bone[- ]?hot"),
        (
            "unit-vectors",
            r"\bunit[- ](?:normals?|vectors?|directions?|quaternions?|rays?|axes)\b|\bL2[- ]normali[sz]ed\b|@norm",
        ),
        ("unit-ball", r"@ball"),
        ("signs", r"@signs"),
        ("unit", r"@unit"),
        ("simplex", r"\bprobabilities\b|\bprobability (?:distribution|simplex|vector)|\bcategorical distribution|@sum"),
        (
            "binary",
            r"\bbinary(?=\s*$|\s+(?:\w+\s+)?(?:label|target|mask|value|tensor|vector|matri|array|entries|indicator)\w*)"
            r"|\bindicators?(?=\s*$|\s+(?:variable|tensor|vector|matri|array)\w*)|@bits|\bzeros (?:and|or) ones\b",
        ),
        ("boolean", r"\bbool(?:ean)?s?\b|\bbooltensor\b"),
        (
            "permutation",
            r"\bpermutations?\b(?![- ]\w*variant)|\b(?:distinct|unique|different)\s+(?:\w+\s+)?(?:indices|ids|integers)"
            r"|\bindices without (?:repetition|replacement|duplicates)",
        ),
        (
            "indices",
            r"(?<!\band )(?<!\band the )(?<!\band their )\bindices\b|\bint(?:32|64)?\b"
            r"|\bintegers?\b(?!\s+(?:(?:multiple|part)s?|power|shift|order|(?:lattice|grid)(?!\s+\w*s\b)(?:\s+\w+)?)\b)"
            r"|\blongtensor\b|\bclass labels\b|\bpointers (?:to|into|of)\b|\b(?:row|column|segment) pointers\b",
        ),
        ("positive", r"\bpositive\b|\bnon-?\s?negative\b|@positive"),
        ("open-interval", r"@between_(?P<lo>\w+?)_(?P<hi>\w+)"),
    )
}
_NEGATION = re.compile(r"(?:\bnot\b|n't\b|\bcannot\b|\bnever\b|\bneither\b|\bwithout\b)(?:(?!\bbut\b)[^.;()\[])*", re.I)
_DENIED = re.compile(r"(?:\b(?:non|skew|anti|un\w+|log|no|or|negative|upper|true|false)[-\s]*)$", re.I)
_CONTRASTS = re.compile(
    r"[-\s]*(?:or\b(?! zero)|and negative|/|(?:samples?|pairs?|examples?|class(?:es)?|instances?|embeddings?|anchors?"
    r"|keys?|logits?|scores?|infinity|sides?|directions?|parts?|labels?|features?|views?|items?)\b)",
    re.I,
)
_MAY_BE_BALL = re.compile(r"ball|dis[ck]|norm|[|‖]", re.IGNORECASE)
_NEGATIVE = re.compile(r"(?<!non)(?<!non-)(?<!non )\bnegative\b", re.I)
_REPLACED = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (SIGNS, " @signs "),
        (BITS, " @bits "),
        (r"\b(labels|targets|values|entries|numbers|masks?) of  @(signs|bits)", r"\1 @\2"),
        (r"\b(?:of|with|have|has|having) unit (?:norms?|lengths?)\b", " @norm "),
        (IN_BALL, " @ball "),
        (r"\b(?:sum(?:s|ming)?|add(?:s|ing)?(?: up)?) to (?:one|1)\b", " @sum "),
        (r"(?:>=?|≥)\s*0(?![.\d]*[1-9])", " @positive "),
        (r"\b(tensors?|arrays?|vectors?|matri(?:x|ces)|batch(?:es)?|stacks?) of\b", r"\1"),
        (r"\bi\.e\.|\be\.g\.", " "),
    )
)
_BREAK = re.compile(
    r"(?P<mark>[,;:()\[\]]|\.(?!\w)|\Z)|\b(?:whose|which|that|with|must|should|shall|is|are|be|being|assumed|containing|holding"
    r"|has|have|needs?|to|stores?|holds?|contains?|gives?)\b",
    re.I,
)
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_PREPOSITION = re.compile(
    r"\b(?:of|for|at|in|from|by|on|where|when|if|unless|whether|while|into|over|under|per|than|using|used|so|along"
    r"|between|before|after|as|against|within|multiplying|scaling|weighting)\b",
    re.I,
)
_AFTER = re.compile(r"\s*(?:(?:real|only|floats?|numbers?|values?|entries|scalars?|tensors?|vectors?|arrays?)\s*)*")
_NOT_NUMBERS = (
    r"or|and|per|for|of|times|fields?|functions?|maps?|images?|potentials?|products?|values|weights|features|grids?"
    r"|volumes?|data|outputs?|results?|part"
)
"""What may follow "scalar" where more than one number is meant, as in a scalar field."""
_NUMBER = re.compile(
    FILLERS
    + rf"(?:(?P<scalar>(?:(?:positive|non-?negative)\s+)?(?:\w+\s+)?scalars?(?:\s+(?!(?:{_NOT_NUMBERS})\b)\w+){{0,2}})"
    r"|(?P<number>(?:positive\s+|non-?negative\s+)?number)|(?:\w+\s+){0,3}?coefficients?"
    r"|(?:positive\s+|non-?negative\s+)?(?:floats?|(?P<whole>int|integers?)|(?P<flag>bool|booleans?)|numbers))(?:\s+(?:value|number|scalar|factor|flag|tensor))?\s*",
    re.I,
)
_WITHOUT_AXES = re.compile(
    r"\b(?:0|zero)[- ]?d(?:im(?:ensional)?)?\b|^[\s(]*\(\s*\)|\bshape\s*:?\s*\(\s*\)"
    r"|^\s*(?:(?:is|are|must be|should be)\s+)?(?:(?:an?\s+)?single|one) (?:\w+\s+)?(?:number|value|scalar)\b"
    r"(?!s|\s+(?:per|for|of|in (?:each|every))\b)",
    re.I,
)
"""What says that a tensor is a single number: `0-d tensor`, `shape ()`."""
_AXES = re.compile(
    r"tensor|array|matri|vector|batch|\bmasks?\b|\bmaps?\b|images?|\bshape|labels|targets?\b|\bzeros\b|\blists?\b|indices|\bindicators?\b",
    re.I,
)
_LAST = re.compile(
    r"\b(?:last|final) (?:dimension|axis|dim)\s+(?:(?:is|has|of|must|should|be|a|size|length|equals?|=)\s+)*"
    r"(?P<size>two|three|four|\d+)\b", re.I,
)  # fmt: skip
_OF_NORM_ONE = re.compile(
    r"(?<![|‖])(?P<bar>\|\|?|‖)\s*(?P<name>[A-Za-z]\w*?)(?:_i|\[i\])?\s*(?P=bar)(?:_2)?\s*=\s*1(?![\w.])"
)
"""As in `|n| = 1`."""
_CONDITION = re.compile(r"\b(?:if|when|unless|until|not|so that)\s+$", re.I)
_MEASURES = re.compile(r"norm\w*\(|sqrt\(")
"""What code has that may divide by a norm: at vectors of norm 1 its derivative would not show."""
_QUOTED = re.compile(r"(?<!\w)[\"'](\w[\w-]*)[\"']")
"""A word in quotation marks: what an argument may be, as in `order: 'active' or 'passive'`."""
_SIZES = {"two": 2, "three": 3, "four": 4}
_OF = r"\b(?:of|for|takes)\s+(?:(?:an?|the|some|real|square|batch(?:es)? of)\s+)*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Documented:
    """What documentation says of arguments, by name.

    `constants` get no gradient, and `fixed` are called constants; `domains` are texts as `parse_domain` takes them;
    `types` are "float", "int", "bool" or "scalar" for what is a single number; `shapes` are those of which a text gives
    the last axis alone; `complexes` are complex and `reals` real; `words` are the texts that an argument may be, of two
    or more; `closed` are ends of domains that belong to them, as 0 does where all is non-negative, and zeros allowed.
    """

    domains: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[Axis, ...]] = field(default_factory=dict)
    constants: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    complexes: frozenset[str] = frozenset()
    reals: frozenset[str] = frozenset()
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    closed: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def of_each(self, written: Mapping[str, str]) -> "Documented":
        """The same for arguments of which documentation says it under other names, those in `written`."""

        def each(said: Mapping[str, _Said]) -> dict[str, _Said]:
            return {name: said[called] for name, called in written.items() if called in said}

        def among(said: frozenset[str]) -> frozenset[str]:
            return frozenset(name for name, called in written.items() if called in said)

        return Documented(
            domains=each(self.domains), types=each(self.types), shapes=each(self.shapes), words=each(self.words),
            constants=among(self.constants), fixed=among(self.fixed), complexes=among(self.complexes),
            reals=among(self.reals), closed=each(self.closed),
        )  # fmt: skip


def documented_values(
    names: Sequence[str],
    source: str,
    documentation: str = "",
    *,
    only: str | None = None,
    shapes: Mapping[str, tuple[Axis, ...]] | None = None,
) -> Documented:
    """What is said about the values of arguments; the first that is found of each.

    Args:
        names: the arguments.
        source: of forward, of which docstring and comments are read.
        documentation: a further text, such as the class's docstring.
        only: the argument that forward cannot do without, if there is one such: `root of an orthogonal matrix` is about
            it.
        shapes: the documented shapes. An argument with axes is not taken for a single number.
    """
    domains: dict[str, str] = {}
    types: dict[str, str] = {}
    lasts: dict[str, tuple[Axis, ...]] = {}
    words: dict[str, tuple[str, ...]] = {}
    values: list[tuple[str, str]] = []
    texts = texts_of(source, documentation)
    systems = {name: system for text in texts for name, system in systems_named(names, text)}
    constants: set[str] = {name for text in texts for name in constants_named(names, text)}
    fixed = set[str]()
    for text in texts:
        kinds = ((name, kind, False) for name, kind in kinds_named(names, text))
        behind = ((name, "fixed", False) for name in fixed_named(names, text))
        described = [*descriptions(names, text, source), *kinds, *behind]
        for name, description, is_stated in described:
            together = {other for other, same, _ in described if same == description}
            has_axes = bool((shapes or {}).get(name)) or _AXES.search(f"{name} {description}") is not None
            said = _said(description, is_stated=is_stated)
            is_fixed = says_fixed(description)
            constants |= {name} if says_constant(description, names, together) or (is_fixed and has_axes) else set()
            fixed |= {name} if is_fixed else set()
            if (system := system_said(description, _clauses(description))) is not None:
                systems.setdefault(name, system)
            kind = _type_of(description)
            if kind is not None and (not has_axes or (kind == "scalar" and not (shapes or {}).get(name))):
                types.setdefault(name, kind)
            if said is not None and (has_axes or said not in WITH_AXES):
                domains.setdefault(name, said)
            if len((shapes or {}).get(name, ())) <= 1 and said not in WITH_AXES:
                values.append((name, description))
            if len(quoted := _QUOTED.findall(description)) > 1:
                words.setdefault(name, tuple(quoted))
            if (last := _LAST.search(description)) is not None:
                lasts.setdefault(name, ("...", _SIZES.get(last["size"].lower()) or int(last["size"])))
    domains = _with_orders(names, texts, source, _with_prose(names, texts, source, only, domains), values)
    return Documented(
        domains=domains, types=types, shapes=lasts, words=words, constants=frozenset(constants), fixed=frozenset(fixed),
        complexes=frozenset(name for name, system in systems.items() if system == "complex"),
        reals=frozenset(name for name, system in systems.items() if system == "real"),
        closed=_closed(names, domains, texts),
    )  # fmt: skip


def _closed(names: Sequence[str], domains: Mapping[str, str], texts: Sequence[str]) -> Mapping[str, tuple[float, ...]]:
    if not domains and not any("zero" in text.lower() for text in texts):
        return {}
    from gradcli.inputs.hints.prose.closed_ends import closed_ends, zeros_allowed

    return {**zeros_allowed(names, texts), **closed_ends(domains, texts)}


def _with_prose(
    names: Sequence[str], texts: Sequence[str], source: str, only: str | None, domains: Mapping[str, str]
) -> dict[str, str]:
    """The domains of arguments with those that texts give other than in descriptions."""
    found = dict(domains)
    for text in texts:
        for name, domain in _intervals(names, text, source, only):
            found[name] = domain if found.get(name) in (None, "positive") else found[name]
        positive = ((name, "positive") for name in positives_named(names, text))
        for name, domain in (*_in_prose(names, text, only), *positive):
            found.setdefault(name, domain)
        for match in _OF_NORM_ONE.finditer(text):
            if match["name"] in names and _CONDITION.search(text[: match.start()]) is None:
                found.setdefault(match["name"], "unit-vectors")
        if _MAY_BE_BALL.search(text) is not None:
            from gradcli.inputs.hints.prose.balls import points_in_ball

            found |= dict.fromkeys(points_in_ball(names, text), "unit-ball")
    if _MEASURES.search(source) is not None:
        found = {name: domain for name, domain in found.items() if domain != "unit-vectors"}
    return found


def _with_orders(
    names: Sequence[str], texts: Sequence[str], source: str, domains: dict[str, str], values: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """The domains with those of arguments that are in order; `values` are descriptions of arguments that may be."""
    if not any(_MAYBE_ORDERED.search(text) for text in (source, *texts)):
        return domains
    from gradcli.inputs.hints.prose.orders import in_order, order_said, orders_named

    said = [(name, order_said(_NEGATION.sub(" ", description))) for name, description in values]
    named = [each for text in texts for each in orders_named(names, text)]
    orders = {name: order for name, order in reversed([*said, *named]) if order is not None}
    return in_order(names, domains, orders, source)


def _intervals(names: Sequence[str], text: str, code: str, only: str | None) -> Sequence[tuple[str, str]]:
    """The domains of arguments that a text says to lie in an interval."""
    if _PERHAPS.search(text) is None:
        return ()
    from gradcli.inputs.hints.prose.intervals import intervals_named

    return tuple(intervals_named(names, text, code, only))


def _end_of(word: str) -> str:
    """The number that is written in a word for an interval, as in `@between_m0p5_2`."""
    return f"{float(word.replace('m', '-').replace('p', '.')):g}"


def _clauses(description: str) -> Iterator[tuple[int, str, bool]]:
    """The phrases of a description up to their first preposition, with whether each is followed by a mark.

    They are counted from 0, those in brackets at its begin apart: a type there, as in `loss (torch.Tensor): the reduced
    (scalar) loss`, is not what the description begins with.
    """
    begin = _BRACKETS.match(description)
    end = 0 if begin is None else begin.end()
    for part in (description[:end], description[end:]):
        yield from ((number, *clause) for number, clause in enumerate(_phrases(part)))


def _phrases(description: str) -> list[tuple[str, bool]]:
    if _PERHAPS.search(description) is not None:
        from gradcli.inputs.hints.prose.intervals import without_intervals

        description = without_intervals(description)
    for pattern, text in _REPLACED:
        description = pattern.sub(text, description)
    description = _NEGATION.sub(" ", description)
    found, start = [], 0
    for match in _BREAK.finditer(description):
        phrase = description[start : match.start()]
        start = match.end()
        cut = _PREPOSITION.search(phrase)
        kept = phrase if cut is None else phrase[: cut.start()]
        if phrase.strip():
            found.append((kept.strip(), match["mark"] is not None and cut is None))
    return found


def _said(description: str, *, is_stated: bool) -> str | None:
    """The domain that a description names; None where it names none."""
    clauses = list(_clauses(description))
    for domain, pattern in _DOMAINS.items():
        if domain in _ENTRIES and (not is_stated or _NEGATIVE.search(description) is not None):
            continue
        for number, clause, is_whole in clauses:
            match = pattern.search(clause)
            if (
                match is None
                or _DENIED.search(clause[: match.start()])
                or (domain not in ("signs", *INTEGRAL, "binary") and _CONTRASTS.match(clause, match.end()))
            ):
                continue
            is_own = re.fullmatch(FILLERS, clause[: match.start()], re.IGNORECASE) is not None
            is_all = is_whole and _AFTER.fullmatch(clause, match.end()) is not None
            if (is_own and (domain not in _ENTRIES or is_all)) or number == 0:
                ends = [_end_of(match[key]) for key in pattern.groupindex]
                return f"{domain}({', '.join(ends)})" if ends else domain
    return None


def _type_of(description: str) -> str | None:
    """The type of a single number that a description names at its begin; None where it names none."""
    if re.search(r"\bnumber of\b", description, re.IGNORECASE):
        return None
    if _WITHOUT_AXES.search(description) is not None:
        return "scalar"
    for number, clause, _ in _clauses(description):
        match = _NUMBER.fullmatch(re.sub(r"\s*@\w+", "", clause)) if number < 2 else None
        if match is not None:
            return next((kind for kind, each in _GROUPS if match[each] is not None), "float")
    return None


_NOUNS = frozenset(("matrix", "tensor", "vector", "array", "targets"))
_GROUPS = (("scalar", "scalar"), ("scalar", "number"), ("int", "whole"), ("bool", "flag"))


def _in_prose(names: Sequence[str], text: str, only: str | None) -> Iterator[tuple[str, str]]:
    """The domains of what a sentence names: `for a symmetric positive definite A`, `root of an orthogonal matrix`."""
    for domain in (*sorted(MATRICES), *sorted(CLASSES)):
        for match in _DOMAINS[domain].finditer(text):
            sentence = re.split(r"\.\s|;|\n\s*\n", text[: match.start()])[-1]
            if _DENIED.search(sentence) or _NEGATION.search(sentence):
                continue
            before = re.search(rf"(?P<name>\w+){QUOTES}\s+(?P<article>an?\s+)?$", text[: match.start()])
            if before is not None and before["name"] in names and (before["article"] or before["name"].lower() != "a"):
                yield before["name"], domain
                continue
            following = re.match(
                rf"\w*(?P<noun>\s+(?:matri\w+|tensors?|vectors?|arrays?|targets?))?\s+"
                rf"(?P<names>{QUOTES}\w+(?:{QUOTES}(?:,|\s+and)\s+{QUOTES}\w+)*)",
                text[match.end() :],
            )
            owners = [] if following is None else re.findall(r"\w+", following["names"])
            named = [name for name in owners if name in names]
            behind = text[match.end() + (0 if following is None else following.end()) :]
            if domain == "unit-vectors" and re.match(r"\s*[/*^|]", behind):  # `the unit vector x / |x|`
                continue
            is_named = bool(owners) and owners[0] in named and owners[0] not in _NOUNS
            has_noun = match[0].endswith("matri") or (following is not None and following["noun"] is not None)
            if is_named and (owners[0] != "a" or len(named) > 1 or has_noun):
                yield from ((name, domain) for name in named)
            elif only is not None and re.search(rf"{_OF}(?:\w+\s+)?$", sentence, re.IGNORECASE):
                yield only, domain
