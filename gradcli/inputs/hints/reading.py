"""Reading the hints on a target: what its source and documentation say of each argument."""

import ast
import re
from collections import ChainMap, deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from gradcli.inputs.hints.argument_names import excludes_tensors, limits_iterations, names_tensors
from gradcli.inputs.hints.buffers import arrays_written_into, single_entries, written_into
from gradcli.inputs.hints.conjugates import complex_among, conjugates_arguments, surroundings
from gradcli.inputs.hints.documented_order import Order, documented_least, documented_order
from gradcli.inputs.hints.documented_shapes import Axis, documented_shapes, texts_of
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.inputs.hints.einsums import einsum_letters, equations
from gradcli.inputs.hints.entries_read import entries_read, with_counts, without_components
from gradcli.inputs.hints.equal_parts import cuts_in_halves
from gradcli.inputs.hints.one_hot_labels import one_hot_labels
from gradcli.inputs.hints.prose.differentiated import undifferentiated
from gradcli.inputs.hints.prose.sentences import in_singular
from gradcli.inputs.hints.source_hints import IndexRange, SourceHints
from gradcli.inputs.hints.suggested_constants import names_where_saved, numbers_among
from gradcli.inputs.hints.summed_gradients import returned_values, sums_of, sums_of_named
from gradcli.sources import nodes_of, source_of, tree_of
from gradcli.targets import TargetInfo

_GROUP = re.compile(r"[(\[]\s*\w+\s*,")
"""The begin of a shape in brackets."""
_MAY_BE_RANGE = re.compile(r"(?:[\[(]\s*\d\s*,|(?<![\w.])\d\s*(?:\.\.|…|to\b|and\b|<|≤))\s*\S")
_CALLED = re.compile(
    r"(?<!def )(?<![.\w])(?!(?:if|while|return|and|or|not|in|is|super|len|range|float|int|bool|tuple|list|max|min)\b)"
    r"[A-Za-z_]\w*\(|\b[A-Z]\w*\.\w+\("
)
"""A call that may be one of the user's own functions."""
_OF_MODULE = re.compile(r"(?<![.\w])(?!ctx\b|self\b)[a-z_]\w*\.[a-z_]\w*\(")
_DEMANDS_SHAPE = re.compile(r"\b(?:assert|if)\b[^\n]*(?:\.shape|\.size\(\))\s*[!=]=|[!=]=\s*\w+\.shape\b(?!\[)")
_recent: deque[tuple[TargetInfo, Hashable, SourceHints]] = deque(maxlen=4)
"""What was read last. A case reads the hints on one target up to eleven times: of itself, smaller, and corrected."""


def read_hints(info: TargetInfo, names: Sequence[str]) -> SourceHints:
    """The hints for a target whose arguments have these names; without source there are few."""
    key = _key(info, names)
    for kept, known, hints in _recent:
        if known == key and _are_same_objects(kept, info):
            return hints
    hints = _read(replace(info, documentation=in_singular(info.documentation, names)), names)
    _recent.append((info, key, hints))
    return hints


def _key(info: TargetInfo, names: Sequence[str]) -> Hashable:
    parameters = tuple((p.name, p.has_default, p.annotation, p.variadic, p.static) for p in info.parameters)
    return tuple(names), parameters, info.backend, info.inner, info.documentation


def _are_same_objects(one: TargetInfo, other: TargetInfo) -> bool:
    """Whether two targets have the same functions and defaults."""
    parts = [
        (each.forward, each.backward, each.setup_context, *(p.default for p in each.parameters))
        for each in (one, other)
    ]
    return all(a is b for a, b in zip(*parts, strict=True))


def _with_further(
    shapes: Mapping[str, tuple[Axis, ...]], needed: Sequence[str], called: Sequence[str], source: str, text: str
) -> dict[str, tuple[Axis, ...]]:
    """The documented shapes with those that stand without names, and with sizes that equations give."""
    found = dict(shapes)
    if any(_GROUP.search(each) for each in texts_of(source, text)):
        from gradcli.inputs.hints.prose.unnamed_shapes import unnamed_shapes

        found |= unnamed_shapes(needed, source, text)
    if re.search("scalar", whole := f"{source}\n\n{text}", re.IGNORECASE):
        from gradcli.inputs.hints.prose.unnamed_shapes import says_scalars

        found = {**(dict.fromkeys(needed, ()) if says_scalars(whole) else {}), **found}
    if found:
        from gradcli.inputs.hints.prose.equations import with_equations

        found = with_equations(found, called, source, text)
    return found


def _least(
    named: Mapping[str, tuple[Axis, ...]], shapes: Mapping[str, tuple[Axis, ...]], source: str, text: str,
    numbers: Collection[str],
) -> Order:  # fmt: skip
    """What sizes are at least, where equations give formulas for some of the `named` axes."""
    formulas = {one: other for name in shapes for one, other in zip(named.get(name, ()), shapes[name], strict=False)}
    pairs = documented_least(named, source, text, numbers)

    def written_out(least: str) -> str:
        return re.sub(r"[A-Za-z]\w*", lambda match: f"({formulas.get(match[0], match[0])})", least)

    return tuple((str(formulas.get(size, size)), written_out(least)) for size, least in pairs)


def _ranges(
    info: TargetInfo, called: Sequence[str], written: Mapping[str, str], source: str,
    shapes: Mapping[str, tuple[Axis, ...]],
) -> Mapping[str, IndexRange]:  # fmt: skip
    texts = texts_of(source, info.documentation)
    if not any(_MAY_BE_RANGE.search(text) for text in texts):
        return {}
    from gradcli.inputs.hints.prose.index_ranges import index_ranges

    found = index_ranges(called, texts, shapes)
    return {name: found[said] for name, said in written.items() if said in found}


def _asserted(own: str, helpers: str, names: Sequence[str]) -> tuple[Mapping[str, tuple[Axis, ...]], ...]:
    """The shapes that forward raises without, and those whose sizes they are."""
    if _DEMANDS_SHAPE.search(own + helpers) is None:
        return {}, {}
    from gradcli.inputs.hints.uses.asserted import asserted_shapes

    return asserted_shapes((own, helpers), names)


def convolved(texts: Sequence[str], names: Sequence[str]) -> Mapping[str, tuple[Axis, ...]]:
    """The shapes of what forward convolves channel by channel."""
    if not any("groups=" in text for text in texts):
        return {}
    from gradcli.inputs.hints.uses.convolutions import depthwise_shapes

    return depthwise_shapes(map(tree_of, texts), names)


def _compared(
    texts: Sequence[str], names: Sequence[str], gradients: Sequence[bool | None]
) -> tuple[dict[str, str], frozenset[str]]:
    """The domains of tensors that forward requires to be positive; and tensors of one entry, compared with a number."""
    if not re.search(r"\b(?:assert|if|while)\b", "".join(texts)):
        return {}, frozenset()
    tensors, trees = {n for n, given in zip(names, gradients, strict=True) if given is True}, [*map(tree_of, texts)]
    from gradcli.inputs.hints.uses.asserted import compared_with_numbers, demanded_positive

    return dict.fromkeys(demanded_positive(trees) & tensors, "positive"), compared_with_numbers(trees) & tensors


def _tuples(texts: Sequence[str], names: Sequence[str]) -> Mapping[str, tuple[Any, ...]]:
    if not any(re.search(r"\b(?:tuple|list)s?\s+of\s", text, re.IGNORECASE) for text in texts):
        return {}
    from gradcli.inputs.hints.uses.objects import documented_tuples

    return documented_tuples(texts, names)


def _random_keys(info: TargetInfo, names: Sequence[str], source: str) -> Mapping[str, bool]:
    if info.backend != "jax":
        return {}
    from gradcli.inputs.hints.random_keys import random_keys

    return random_keys(info, names, source)


def _read(info: TargetInfo, names: Sequence[str]) -> SourceHints:
    own, text = source_of(info.forward), source_of(None if info.inner else info.backward)
    annotations = {each.name: each.annotation for each in info.parameters if each.annotation is not None}
    written = _as_written(info, names)
    called = list(dict.fromkeys(written.values()))
    shapes = named = documented_shapes(called, own, info.documentation, annotations)
    needed = [p.name for p in info.parameters if not (p.has_default or excludes_tensors(p.annotation or ""))]
    shapes = _with_further(shapes, needed, called, own, info.documentation)
    only = needed[0] if len(needed) == 1 else None
    values = documented_values(called, own, info.documentation, only=only, shapes=shapes).of_each(written)
    tree = tree_of(own)
    entries = entries_read(tree, names)
    shapes = without_components({name: shapes[said] for name, said in written.items() if said in shapes}, entries)
    shapes, counted = with_counts(info, names, own, shapes)
    one_hot = dict.fromkeys(one_hot_labels(info.forward, names), "one-hot")
    complexes = complex_among(values.complexes, {**values.shapes, **shapes}, (tree, tree_of(text)))
    uses = _uses(info, names, (own, text), tree, used := ChainMap(*map(surroundings, _functions(info))))
    reals = values.reals.union(names if uses.complex else ())
    gradients = _gradients(text, len(names))
    signs, single = _compared((own, uses.helpers), names, gradients)
    values = replace(values, domains={**signs, **one_hot, **values.domains}, complexes=complexes, reals=reals)
    arrays = arrays_written_into(tree, names)
    scalars = [n for n, given in zip(names, gradients, strict=True) if given is not False or n in arrays]
    documented = {**{n: () for n in scalars if values.types.get(n) == "scalar"}, **entries, **values.shapes, **shapes}
    demanded, unpacked = _asserted(own, uses.helpers, names)
    tensors = frozenset(name for name, annotation in annotations.items() if names_tensors(annotation))
    setup = own if info.setup_context is None else source_of(info.setup_context)
    known = {*tensors, *uses.read, *documented, *values.domains, *arrays}
    numbers = numbers_among(tree_of(setup), names, gradients, known, tree)
    without = {name for name, gradient in zip(names, gradients, strict=True) if gradient is False}
    constants = _constants(info, written, (own, text), numbers=numbers | {*called} - {*needed}, without=without)
    return SourceHints(
        forward=own,
        backward=text,
        gradients=gradients,
        conjugated=tree is not None and conjugates_arguments(tree, names, used),
        sums=sums_of(tree_of(text), names) if text else sums_of_named(tree, names),
        names=used,
        documented={**convolved((own, uses.helpers), names), **demanded, **documented},
        values=replace(values, constants=values.constants | constants),
        keys=_random_keys(info, names, own),
        ranges=_ranges(info, called, written, own, {**dict.fromkeys(called, ()), **named}),
        tensors=tensors,
        order=(
            *documented_order(shapes, own, info.documentation),
            *_least(named, shapes, own, info.documentation, {*called}.difference(shapes)),
        ),
        letters={**unpacked, **counted, **einsum_letters(info.forward)},
        written=written_into(tree, names),
        arrays=arrays,
        single=single_entries(tree, names) | single,
        numbers=numbers,
        marks_dirty=".mark_dirty(" in setup,
        helpers=uses.helpers,
        read=uses.read,
        alike=uses.alike,
        **_settings((tree_of(setup), tree, tree_of(text)), names, gradients, used, uses.defaults),
        objects={**_tuples(texts_of(own, info.documentation), names), **uses.objects},
        halves=cuts_in_halves(f"{own}\n{uses.helpers}", info.name),
    )


def _settings(
    trees: tuple[ast.Module | None, ast.Module | None, ast.Module | None], names: Sequence[str],
    gradients: Sequence[bool | None], known: Mapping[str, Any], defaults: Mapping[str, tuple[float]],
) -> dict[str, Any]:  # fmt: skip
    """The `guards`, `counts` and `defaults` among the hints; the default of a helper is the value of a guard, too.

    Args:
        trees: of what keeps the arguments, of forward and of backward.
        names: the arguments.
        gradients: whether backward has one for each.
        known: the names outside these functions that they may use.
        defaults: those of the helpers' parameters.
    """
    saving, forward, backward = trees
    own = None if saving is None else names_where_saved(saving, names)
    if own is None or len(names) < 2:
        return {"defaults": defaults}
    from gradcli.inputs.hints.uses.guards import guards_of
    from gradcli.inputs.hints.uses.iterations import counts_of

    without = [n for n, given in zip(names, gradients, strict=True) if given is not True and not limits_iterations(n)]
    called = dict(zip(names, own, strict=True))
    tiny = guards_of(saving, forward, backward, {name: called[name] for name in without}, known)
    guards = {name: defaults.get(name, (value,)) for name, value in tiny.items()}
    return {
        "defaults": {**defaults, **guards},
        "guards": {name: value for name, (value,) in guards.items()},
        "counts": counts_of(saving, forward, backward, called),
    }


class _Uses(NamedTuple):
    """What the code does with forward's arguments, as in `SourceHints`; `complex`: their memory is viewed so."""

    helpers: str = ""
    read: frozenset[str] = frozenset()
    alike: tuple[frozenset[str], ...] = ()
    defaults: Mapping[str, tuple[float]] = MappingProxyType({})
    objects: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
    complex: bool = False


def _uses(
    info: TargetInfo, names: Sequence[str], sources: tuple[str, str], tree: ast.Module | None, known: Mapping[str, Any]
) -> _Uses:
    own, text = sources
    if len(names) < 2 and "complex" not in own and _CALLED.search(own) is None:
        # A single argument is the tensor, and a function of a module may be the user's.
        return _Uses(helpers=_helpers(info, names)) if _OF_MODULE.search(own) else _Uses()
    from gradcli.inputs.hints.uses.defaults import defaults_of_helpers
    from gradcli.inputs.hints.uses.memory import views_as_complex
    from gradcli.inputs.hints.uses.objects import plain_objects
    from gradcli.inputs.hints.uses.series import used_alike
    from gradcli.inputs.hints.uses.tensors import used_as_tensors

    helpers = _helpers(info, names)
    trees = (tree, tree_of(helpers))
    return _Uses(
        helpers=helpers,
        read=used_as_tensors(trees, names),
        alike=used_alike(trees, names),
        defaults=defaults_of_helpers((*trees, tree_of(text)), names, known),
        objects={**equations(trees, names), **plain_objects(info, names, f"{own}\n{helpers}", known)},
        complex=views_as_complex(own + helpers),
    )


def _helpers(info: TargetInfo, names: Sequence[str]) -> str:
    from gradcli.inputs.hints.uses.helpers import helpers_source

    return helpers_source(info.forward, names)


def _functions(info: TargetInfo) -> tuple[Callable[..., Any] | None, ...]:
    return info.forward, None if info.inner else info.backward


def _constants(
    info: TargetInfo,
    written: Mapping[str, str],
    sources: tuple[str, str],
    *,
    numbers: Collection[str],
    without: Collection[str],
) -> frozenset[str]:
    """The arguments that documentation says get no gradient; backward returns none for those `without` one."""
    (own, text), none = sources, [said for name, said in written.items() if name in without]
    called = list(dict.fromkeys(written.values()))
    left_out = undifferentiated(called, own, info.documentation, text, numbers=numbers, none=none)
    return frozenset(name for name, said in written.items() if said in left_out)


def _as_written(info: TargetInfo, names: Sequence[str]) -> dict[str, str]:
    """The arguments with the names that documentation has for them: `masses` of `*masses` for `masses[0]`."""
    several = [parameter.name for parameter in info.parameters if parameter.variadic]
    return {name: next((each for each in several if name.startswith(f"{each}[")), name) for name in names}


def _gradients(backward: str, count: int) -> tuple[bool | None, ...]:
    tree = tree_of(backward)
    if tree is None:
        return (None,) * count
    found: list[bool | None] = [None] * count
    for node in nodes_of(tree):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        for value in returned_values(tree, node.value):
            returned = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
            if any(isinstance(each, ast.Starred) for each in returned) or (len(returned) == 1 < count):
                continue
            for position, each in enumerate(returned[:count]):
                is_none = isinstance(each, ast.Constant) and each.value is None
                found[position] = bool(found[position]) if is_none else True
    return tuple(found)
