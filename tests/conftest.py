"""What holds for every test."""

import compileall
import gc
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "gradcli"


def pytest_configure(config: pytest.Config) -> None:
    """Compile gradcli once, before anything runs.

    Hundreds of tests start it in a process of its own. Where the environment keeps Python from writing bytecode, each
    of these would compile all of it again, which takes as long as the rest of such a test.
    """
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(PACKAGE, quiet=2)


@pytest.fixture(autouse=True, scope="module")
def _what_stays_set_aside() -> None:
    """Keep what was imported and collected so far out of collections of garbage.

    There are 11,000 tests and two frameworks, and the checker collects garbage in many a call: tests of leaks took
    five times as long.
    """
    gc.collect()
    gc.freeze()
