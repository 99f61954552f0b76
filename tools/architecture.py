"""Draw the packages of gradcli from their imports, into docs/architecture.md: `python -m tools.architecture`.

An arrow goes from a package to one that it imports, also inside functions. Arrows that follow from others are left out.
"""

import re
from functools import cache
from pathlib import Path

from tests.test_architecture import DOORS, FILES, ROWS, imports, module_of, room_of, tree_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "architecture.md"
_PICTURE = re.compile(r"(<!-- picture -->\n).*?(<!-- /picture -->)", re.S)
LEFT_OUT = frozenset({"__init__", "__main__", "_version", "examples", "frozen"})
SMALL = {
    "errors": "values", "settings": "values", "verdict": "values", "findings": "values",
    "results": "records", "traces": "records", "patches": "records", "cases": "records", "targets": "records",
    "figures": "records", "documents": "records", "display": "records",
    "pytest_plugin": "pytest", "pytest_session": "pytest",
}  # fmt: skip
"""Single files that are drawn together."""


@cache
def graph() -> dict[str, set[str]]:
    """What every package imports."""
    found: dict[str, set[str]] = {}
    for file in FILES:
        module = module_of(file)
        box = box_of(module)
        if box is None:
            continue
        others = found.setdefault(box, set())
        for name in imports(tree_of(file)):
            other = box_of(name) if name.startswith("gradcli.") and (module, name) not in DOORS else None
            if other not in (None, box):
                others.add(str(other))
    return found


def box_of(module: str) -> str | None:
    """The box in which a module is drawn, None for one that is left out."""
    room = room_of(module)
    return None if room in LEFT_OUT else SMALL.get(room, room)


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that do not follow from others."""

    @cache
    def reach(box: str) -> frozenset[str]:
        return frozenset(edges[box]).union(*(reach(other) for other in edges[box]))

    return {
        box: {other for other in others if not any(other in reach(step) for step in others - {other})}
        for box, others in edges.items()
    }


def picture() -> str:
    """The picture in Mermaid's language, the users' side on top."""
    lines = ["```mermaid", "flowchart TD"]
    for number, row in reversed(list(enumerate(ROWS))):
        boxes = sorted({box for room in row if (box := box_of(f"gradcli.{room}")) in graph()})
        if boxes:
            lines += [f"    subgraph row{number}[ ]", *(f"        {box}" for box in boxes), "    end"]
    edges = reduced(graph())
    lines += [f"    {box} --> {other}" for box in sorted(edges) for other in sorted(edges[box])]
    return "\n".join([*lines, "```", ""])


def drawn(page: str) -> str:
    """The page with the picture as it is now."""
    return _PICTURE.sub(lambda found: found[1] + picture() + found[2], page)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
