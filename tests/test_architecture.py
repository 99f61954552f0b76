"""The house rules that a program can hold: imports go one way, frameworks are named in one place, rooms stay small."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "gradcli"
FILES = sorted(PACKAGE.rglob("*.py"))
OUTSIDE = [
    file for folder in ("tests", "tools", "benchmarks") for file in sorted((PACKAGE.parent / folder).rglob("*.py"))
]
"""Files outside the package, which stay as short and lie in folders as small."""
ROWS = (
    {"frozen"},
    {"errors", "settings", "verdict", "findings", "garbage", "sources", "_version"},
    {"numerics", "engine", "watchdog"},
    {"results", "traces", "patches", "cases", "targets", "figures", "documents", "display"},
    {"backends", "spec", "inputs"},
    {"edits"},
    {"checks", "diagnosis", "tracing"},
    {"runner", "reporters"},
    {"fix"},
    {"cli", "pytest_plugin", "pytest_session", "api", "tolerance", "examples"},
    {"__main__", "__init__"},
)
BELOW = frozenset({"gradcli._version", "gradcli.frozen", "gradcli.frozen.dataclass"})
"""What the numerics and the engine may import: the version, and dataclasses that need no compiler."""
RECORDS = frozenset({"results", "traces", "patches", "cases", "targets", "figures", "documents", "display"})
"""The frozen values of row 2, one room in eight files: they may import each other."""
FRONT = {("tolerance", "api"), ("pytest_plugin", "api"), ("pytest_plugin", "pytest_session")}
"""What the front doors may share among themselves."""
DOORS = {
    ("gradcli.engine.autograd", "gradcli.tolerance.as_torch"),
}
"""The documented door that leads up: gradcheck where the tutorials call it."""
HOMES = {
    "torch": {
        "backends/torch/backend.py",
        "backends/torch/operators.py",
        "backends/torch/sparse.py",
    },
    "jax": {
        "backends/jax/backend.py",
        "backends/jax/compilations.py",
        "backends/jax/configuration.py",
        "backends/jax/custom_rules.py",
        "backends/jax/framework.py",
        "backends/jax/pairs.py",
        "backends/jax/shared_loops.py",
        "backends/jax/steps.py",
        "backends/jax/iterations.py",
        "backends/jax/values.py",
        "backends/jax/vjp_graph.py",
    },
    "jaxlib": {"backends/jax/backend.py"},
    "dask": {"runner/executors/dask.py"},
    "distributed": {"runner/executors/dask.py"},
}
FILES_IN_A_FOLDER = 20
LISTS = {
    "gradcli/checks": "one file for each check of the battery",
    "gradcli/engine/ops": "one file for each family of operations",
    "tests/seeds/programs": "one file for each program of the tutorials",
    "benchmarks/correct": "one file for each kind of right Functions",
}
"""Folders that hold more files because these are equals in a list."""
SCREENS = ("cli/", "reporters/")
NUMERICS = (
    "wording",
    "maps",
    "outcome",
    "sampling",
    "differences",
    "claims",
    "regularity",
    "reference",
    "localise",
    "confirm",
    "screen",
    "course",
    "verify",
)
"""The rooms of the numerics, from the one that knows nothing of the others to the one that uses them all."""
FLOORS_OF_NUMERICS = 15
"""No file of the numerics stands on a longer chain of imports within them; to be lowered whenever one gets shorter."""
FILES_IN_A_ROOM = 12
NAMED_CONSTANTS, UNEXPLAINED, INLINE = 167, 0, 115
"""At most so many numbers of the numerics have a name, have one and no reason beside it, or stand inside functions; to
be lowered with every one that goes."""
LINES_IN_A_FILE = 400
LINES_IN_A_FUNCTION = 60


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def place_of(path: Path) -> str:
    return path.relative_to(PACKAGE.parent).as_posix()


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


@cache
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


def at_run(node: ast.AST) -> Iterator[ast.stmt]:
    """The import statements that run at some time, those in functions too: all but those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)):
            yield from at_run(child)


@cache
def import_graph() -> dict[str, set[str]]:
    """For every module those of gradcli that it imports at some time, except through the documented door."""
    graph: dict[str, set[str]] = {}
    for file in FILES:
        module = module_of(file)
        found = {name for statement in at_run(tree_of(file)) for name in imports(statement)}
        graph[module] = {n for n in found if n.startswith("gradcli.") and (module, n) not in DOORS}
    return graph


def is_setter(method: ast.FunctionDef) -> bool:
    """Whether it is the setter of a property, which the getter describes."""
    return any(isinstance(d, ast.Attribute) and d.attr == "setter" for d in method.decorator_list)


def problems(of_file: Callable[[Path], Iterator[str]]) -> list[str]:
    """What a rule finds wrong in all files, each with the file: one test a rule, since there are hundreds of files."""
    return [f"{file.relative_to(PACKAGE)}: {problem}" for file in FILES for problem in of_file(file)]


def test_every_module_has_a_place_in_the_rows() -> None:
    rooms = {room_of(module_of(file)) for file in FILES}
    assert rooms <= set().union(*ROWS)
    assert "numerics" in rooms


def test_a_module_imports_only_from_lower_rows_and_its_own_room() -> None:
    assert problems(imports_from_beside_or_above) == []


def imports_from_beside_or_above(file: Path) -> Iterator[str]:
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
        if row_of(other) >= row_of(room):
            yield f"imports {imported}, which lies beside or above it"


def test_the_doors_that_lead_up_are_inside_functions() -> None:
    for module, imported in DOORS:
        file = PACKAGE.parent.joinpath(*module.split("."))
        source = file.with_suffix(".py") if file.with_suffix(".py").is_file() else file / "__init__.py"
        for statement in at_import(tree_of(source)):
            assert imported not in set(imports(statement)), f"{module} imports {imported} at its top"


def test_frameworks_are_imported_in_their_own_file_inside_functions_and_screens_stay_outside() -> None:
    assert problems(frameworks_out_of_place) == []


def frameworks_out_of_place(file: Path) -> Iterator[str]:
    place = file.relative_to(PACKAGE).as_posix()
    for imported in imports(tree_of(file)):
        top = imported.split(".")[0]
        if place not in HOMES.get(top, {place}) or (top in ("typer", "rich") and not place.startswith(SCREENS)):
            yield f"imports {top}"
    for statement in at_import(tree_of(file)):
        for top in {name.split(".")[0] for name in imports(statement)} & set(HOMES):
            yield f"imports {top} when it is imported"


@pytest.mark.parametrize("room", ["numerics", "engine"])
def test_the_numerics_and_the_engine_know_numpy_and_themselves_alone(room: str) -> None:
    for file in (PACKAGE / room).rglob("*.py"):
        for imported in imports(tree_of(file)):
            top = imported.split(".")[0]
            own = (
                imported.startswith(f"gradcli.{room}") or (module_of(file), imported) in DOORS or imported == "gradcli"
            )
            assert own or top == "numpy" or top in sys.stdlib_module_names or imported in BELOW, (
                f"{file.relative_to(PACKAGE)} imports {imported}"
            )


def test_the_rooms_of_the_numerics_import_one_way() -> None:
    for file in sorted((PACKAGE / "numerics").rglob("*.py")):
        _check_rooms(file)


def _check_rooms(file: Path) -> None:
    module = module_of(file)
    room = module.split(".")[2:3]
    for imported in imports(tree_of(file)):
        if imported.startswith("gradcli.numerics."):
            assert room, f"{module} is only to say what the package holds, and imports {imported}"
            place = NUMERICS.index(imported.split(".")[2])
            assert place <= NUMERICS.index(room[0]), f"{module} imports {imported}, which lies above it"


def test_the_numerics_have_few_floors_and_small_rooms() -> None:
    graph = import_graph()
    ours = {module for module in graph if module.startswith("gradcli.numerics.")}

    @cache
    def floor(module: str) -> int:
        return 1 + max((floor(other) for other in graph[module] & ours), default=0)

    highest = max(ours, key=floor)
    assert floor(highest) == FLOORS_OF_NUMERICS, f"{highest} is on floor {floor(highest)}"
    for room in NUMERICS:
        assert len(list((PACKAGE / "numerics" / room).glob("*.py"))) <= FILES_IN_A_ROOM, room


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = import_graph()
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


def test_files_and_functions_stay_small() -> None:
    assert problems(too_long) == []


def test_files_outside_the_package_stay_small() -> None:
    lengths = {place_of(file): file.read_text(encoding="utf-8").count("\n") for file in OUTSIDE}
    assert len(lengths) > 200
    assert {name: lines for name, lines in lengths.items() if lines > LINES_IN_A_FILE} == {}


def too_long(file: Path) -> Iterator[str]:
    lines = file.read_text(encoding="utf-8").count("\n")
    if lines > LINES_IN_A_FILE:
        yield f"{lines} lines"
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LINES_IN_A_FUNCTION:
                yield f"{node.name} in line {node.lineno} has {length} lines"


def test_the_tests_can_be_collected_without_the_extras() -> None:
    """Every file is imported as pytest does; to make its thousands of items as well would take four times as long."""
    without = "import sys\nsys.modules.update(dict.fromkeys(('torch', 'jax', 'dask')))\nimport pytest\n"
    no_items = "class NoItems:\n    def pytest_pycollect_makeitem(self): return []\n"
    options = ["--collect-only", "-qq", "-p", "no:cacheprovider"]
    collect = f"{without}{no_items}sys.exit(pytest.main({options}, [NoItems()]))"
    done = subprocess.run([sys.executable, "-c", collect], cwd=PACKAGE.parent, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout[-3000:] + done.stderr


def test_folders_stay_small() -> None:
    for folder in sorted({file.parent for file in (*FILES, *OUTSIDE)}):
        place = place_of(folder)
        files = [file.name for file in folder.glob("*.py") if file.name != "__init__.py"]
        most = FILES_IN_A_FOLDER if place not in LISTS else 2 * FILES_IN_A_FOLDER
        assert len(files) <= most, f"{place} has {len(files)} files: sort them by idea"
        assert place not in LISTS or len(files) > FILES_IN_A_FOLDER, f"{place} needs no exception any more"


def test_the_path_of_a_debugger_is_short() -> None:
    """The figures of docs/architecture.md: frames down to `verify`, and calls for one cotangent."""
    command = [sys.executable, "-m", "tools.path"]
    done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^(.+): (\d+) in (\d+) files", done.stdout, re.M)
    figures = {name: (int(calls), int(files)) for name, calls, files in found}
    limits = {
        "frames from the command to verify": (12, 10),
        "calls for a cotangent, through the map": (16, 5),
        "calls for a cotangent, through a pass": (16, 5),
    }
    assert set(figures) == set(limits)
    for name, (calls, files) in figures.items():
        assert 0 < calls <= limits[name][0], name
        assert files <= limits[name][1], name


def test_everything_public_says_what_it_is() -> None:
    assert problems(undocumented) == []


def undocumented(file: Path) -> Iterator[str]:
    tree = tree_of(file)
    if not ast.get_docstring(tree):
        yield "the module has no docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield f"{node.name} in line {node.lineno} has no docstring"
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                public = isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
                if public and not is_setter(method) and not ast.get_docstring(method):
                    yield f"{node.name}.{method.name} has no docstring"


def test_the_picture_of_the_packages_is_up_to_date() -> None:
    from tools import architecture

    page = architecture.PAGE.read_text(encoding="utf-8")
    assert page == architecture.drawn(page), "run python -m tools.architecture"
    assert "flowchart" in page


def test_the_constants_of_the_numerics_are_on_their_page_and_get_fewer() -> None:
    from tools import constants

    assert constants.PAGE.read_text(encoding="utf-8") == constants.page(), "run python -m tools.constants"
    known = constants.constants()
    assert len(known) <= NAMED_CONSTANTS, len(known)
    assert sum(not constant.why for constant in known) <= UNEXPLAINED
    assert sum(map(constants.inline, constants.files())) <= INLINE
    assert any(constant.name == "FAIL_FACTOR" and constant.value == "3.0" for constant in known)
