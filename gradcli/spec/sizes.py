"""Named dimensions of a spec: `sizes: {n: [1, 2, 7], d: 4}` and every combination of them."""

import itertools
from collections.abc import Iterator, Mapping

import yaml

from gradcli.spec.document import Problems, described, entries, plain

MAX_COMBINATIONS = 1000


def read_sizes(node: yaml.Node | None, problems: Problems) -> dict[str, tuple[int, ...]]:
    """The sizes that each name may take; problems are noted and the name is given size 1."""
    sizes: dict[str, tuple[int, ...]] = {}
    if not isinstance(node, yaml.MappingNode):
        return sizes
    count = 1
    for name, (key_node, value_node) in entries(node, problems).items():
        listed = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
        chosen = [plain(item, problems) if is_size(item) else _refused(item, problems) for item in listed]
        if not name.isidentifier():
            problems.add(key_node, f"a size needs a name such as n or batch, got {name!r}")
        if not chosen:
            problems.add(value_node, f"size {name!r} has no value")
        if len(set(chosen)) < len(chosen):
            problems.add(value_node, f"size {name!r} lists the same value twice")
        sizes[name] = tuple(dict.fromkeys(chosen)) or (1,)
        count *= len(sizes[name])
    if count > MAX_COMBINATIONS:
        problems.add(node, f"the sizes have {count:,} combinations; at most {MAX_COMBINATIONS:,} are run")
        return {name: values[:1] for name, values in sizes.items()}
    return sizes


def is_size(node: yaml.Node) -> bool:
    """Whether the node is a whole number of at least 0."""
    value = plain(node, Problems("")) if isinstance(node, yaml.ScalarNode) else None
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _refused(node: yaml.Node, problems: Problems) -> int:
    problems.add(node, f"a size must be a whole number of at least 0, got {described(node)}")
    return 1


def size_combinations(sizes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, dict[str, int]]]:
    """Every choice of sizes with a label such as `n=2`, which names those that vary."""
    for values in itertools.product(*sizes.values()):
        chosen = dict(zip(sizes, values, strict=True))
        yield " ".join(f"{name}={chosen[name]}" for name in sizes if len(sizes[name]) > 1), chosen
