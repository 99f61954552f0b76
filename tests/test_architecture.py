"""The house rules that a program can hold: imports go one way, frameworks are named in one place, rooms stay small."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "gradcli"
FILES = sorted(PACKAGE.rglob("*.py"))
ROWS = (
    {"errors", "settings", "verdict", "findings", "_version"},
    {"numerics", "engine", "watchdog"},
    {"results", "traces", "patches", "cases", "targets", "figures", "documents"},
    {"backends", "spec", "inputs"},
    {"checks", "diagnosis"},
    {"runner", "reporters"},
    {"fix"},
    {"cli", "pytest_plugin", "pytest_session", "api", "tolerance", "examples"},
    {"__main__", "__init__"},
)
RECORDS = frozenset({"results", "traces", "patches", "cases", "targets", "figures", "documents"})
"""The frozen values of row 2, one room in seven files: they may import each other."""
FRONT = {("tolerance", "api"), ("pytest_plugin", "api"), ("pytest_plugin", "pytest_session")}
"""What the front doors may share among themselves."""
DOORS = {
    ("gradcli.results", "gradcli.reporters.plain"),
    ("gradcli.results", "gradcli.reporters.html_page"),
    ("gradcli.traces.graph", "gradcli.reporters.graph_tree"),
    ("gradcli.engine.autograd", "gradcli.tolerance.as_torch"),
}
"""The documented doors that lead up: a report as text and in a notebook, and gradcheck where the tutorials call it."""
HOMES = {
    "torch": {
        "backends/torch_backend.py",
        "backends/torch_checkpoint.py",
        "backends/torch_operators.py",
        "backends/torch_sparse.py",
    },
    "jax": {
        "backends/jax_backend.py",
        "backends/jax_compilations.py",
        "backends/jax_pairs.py",
        "backends/jax_steps.py",
        "backends/jax_trips.py",
    },
    "jaxlib": {"backends/jax_backend.py"},
    "dask": {"runner/dask_executor.py"},
    "distributed": {"runner/dask_executor.py"},
}
SCREENS = ("cli/", "reporters/")
LINES_IN_A_FILE = 400
LINES_IN_A_FUNCTION = 60


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def row_of(room: str) -> int:
    return next(number for number, row in enumerate(ROWS) if room in row)


def imports(node: ast.AST) -> Iterator[str]:
    """The modules imported anywhere below `node`, relative imports refused, names of modules resolved."""
    for child in ast.walk(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"a relative import in line {child.lineno}"
            base = str(child.module)
            yield base
            yield from (f"{base}.{alias.name}" for alias in child.names if is_module(f"{base}.{alias.name}"))


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def at_import(node: ast.AST) -> Iterator[ast.stmt]:
    """The import statements that run when the module is imported: none in functions or for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from at_import(child)


def is_setter(method: ast.FunctionDef) -> bool:
    """Whether it is the setter of a property, which the getter describes."""
    return any(isinstance(d, ast.Attribute) and d.attr == "setter" for d in method.decorator_list)


def named(files: list[Path]) -> list[str]:
    return [str(file.relative_to(PACKAGE)) for file in files]


def test_every_module_has_a_place_in_the_rows() -> None:
    rooms = {room_of(module_of(file)) for file in FILES}
    assert rooms <= set().union(*ROWS)
    assert "numerics" in rooms


@pytest.mark.parametrize("file", FILES, ids=named(FILES))
def test_a_module_imports_only_from_lower_rows_and_its_own_room(file: Path) -> None:
    module = module_of(file)
    room = room_of(module)
    if room == "__init__":
        return
    for imported in imports(tree_of(file)):
        if imported.split(".")[0] != "gradcli" or imported == "gradcli" or imported.startswith("gradcli._version"):
            continue
        other = room_of(imported)
        same = other == room or {room, other} <= RECORDS or (room, other) in FRONT
        if same or (module, imported) in DOORS or (imported.rpartition(".")[0], room) == ("gradcli", room):
            continue
        assert row_of(other) < row_of(room), f"{module} imports {imported}, which lies beside or above it"


def test_the_doors_that_lead_up_are_inside_functions() -> None:
    for module, imported in DOORS:
        file = PACKAGE.parent.joinpath(*module.split("."))
        source = file.with_suffix(".py") if file.with_suffix(".py").is_file() else file / "__init__.py"
        for statement in at_import(tree_of(source)):
            assert imported not in set(imports(statement)), f"{module} imports {imported} at its top"


@pytest.mark.parametrize("file", FILES, ids=named(FILES))
def test_frameworks_are_imported_in_their_own_file_inside_functions_and_screens_stay_outside(file: Path) -> None:
    place = file.relative_to(PACKAGE).as_posix()
    for imported in imports(tree_of(file)):
        top = imported.split(".")[0]
        assert place in HOMES.get(top, {place}), f"{place} imports {top}"
        if top in ("typer", "rich"):
            assert place.startswith(SCREENS), f"{place} imports {top}"
    for statement in at_import(tree_of(file)):
        tops = {name.split(".")[0] for name in imports(statement)}
        assert not tops & set(HOMES), f"{place} imports {tops} when it is imported"


@pytest.mark.parametrize("room", ["numerics", "engine"])
def test_the_numerics_and_the_engine_know_numpy_and_themselves_alone(room: str) -> None:
    import sys

    for file in (PACKAGE / room).rglob("*.py"):
        for imported in imports(tree_of(file)):
            top = imported.split(".")[0]
            own = (
                imported.startswith(f"gradcli.{room}") or (module_of(file), imported) in DOORS or imported == "gradcli"
            )
            assert own or top == "numpy" or top in sys.stdlib_module_names or imported == "gradcli._version", (
                f"{file.relative_to(PACKAGE)} imports {imported}"
            )


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {
        module_of(file): {
            name for statement in at_import(tree_of(file)) for name in imports(statement) if name.startswith("gradcli.")
        }
        for file in FILES
    }
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        for imported in sorted(graph.get(module, ())):
            if imported != module and not module.startswith(f"{imported}."):
                visit(imported, (*path, module))
        done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("file", FILES, ids=named(FILES))
def test_files_and_functions_stay_small(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").count("\n")
    assert lines <= LINES_IN_A_FILE, f"{file.name} has {lines} lines"
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LINES_IN_A_FUNCTION, f"{node.name} in line {node.lineno} has {length} lines"


@pytest.mark.parametrize("file", FILES, ids=named(FILES))
def test_everything_public_says_what_it_is(file: Path) -> None:
    tree = tree_of(file)
    assert ast.get_docstring(tree), "the module has no docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} in line {node.lineno} has no docstring"
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_") and not is_setter(method):
                    assert ast.get_docstring(method), f"{node.name}.{method.name} has no docstring"


def test_the_picture_of_the_packages_is_up_to_date() -> None:
    from tools import architecture

    page = architecture.PAGE.read_text(encoding="utf-8")
    assert page == architecture.drawn(page), "run python -m tools.architecture"
    assert "flowchart" in page


def test_the_files_that_the_documentation_names_exist() -> None:
    import re

    for page in ("docs/architecture.md", "CONTRIBUTING.md"):
        text = (PACKAGE.parent / page).read_text(encoding="utf-8")
        places = re.findall(r"`((?:[\w]+/)*\w+\.py|(?:\w+/)+)`", text)
        assert len(places) > 5
        for place in places:
            beside = {(PACKAGE / folder / place).exists() for folder in ("", "reporters", "backends", "..")}
            assert any(beside), f"{page} names {place}"


def test_messages_use_the_words_of_the_glossary() -> None:
    """What CONTRIBUTING.md lists as words not used is in no text that a user can see."""
    import re

    from tools.messages import sheet

    avoided = re.compile(
        r"could be had|\bis another one\b|nobody asked for|this very point|\bmend|\btread|\btestimony|\bis heard|"
        r"\bis no (?:regular file|target|tensor|number|shape)\b|without a word|comes? farthest|came farthest"
    )
    lines = list(sheet([]))
    assert len(lines) > 500
    assert [line for line in lines if avoided.search(line)] == []
