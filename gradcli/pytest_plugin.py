"""The pytest plugin: specs as test items, and a fixture that checks gradients in a test.

It is loaded in every run of pytest where gradcli is installed, so that nothing but pytest is imported until a spec is
collected or the fixture is used.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gradcli.pytest_session import Session
    from gradcli.results import Report
    from gradcli.runner.planning.plan import CheckCase

_SUFFIXES = (".yaml", ".yml")
_MARK_OPTIONS = ("order", "samples", "seed", "significance", "budget")
_SESSION = pytest.StashKey["Session"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option --gradcli and the ini key gradcli_specs."""
    parser.getgroup("gradcli", "gradients").addoption(
        "--gradcli",
        action="append",
        default=[],
        metavar="PATH",
        help="Collect gradcli specs in this file or folder, in addition to the ini key gradcli_specs; repeatable.",
    )
    parser.addini("gradcli_specs", "Files and folders with gradcli specs to collect.", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and have pytest look where the specs are."""
    options = ", ".join(_MARK_OPTIONS)
    config.addinivalue_line("markers", f"gradcli({options}): sets the options of the gradcheck fixture in this test.")
    named = [config.invocation_params.dir / path for path in config.getoption("--gradcli")]
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        named += config.getini("gradcli_specs")
    starts = _starts(config)
    config.args += [str(path) for path in named if not any(path.is_relative_to(start) for start in starts)]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "SpecFile | None":
    """A spec that was asked for: by the option, by the ini key, or by its own path as an argument."""
    if file_path.suffix not in _SUFFIXES:
        return None
    config = parent.config
    places = [config.invocation_params.dir / path for path in config.getoption("--gradcli")]
    places += config.getini("gradcli_specs")
    wanted = file_path in (*_starts(config), *places) or file_path.parent in places
    return SpecFile.from_parent(parent, path=file_path) if wanted else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the worker process."""
    session = config.stash.get(_SESSION, None)
    if session is not None:
        session.close()


@pytest.fixture
def gradcheck(request: pytest.FixtureRequest) -> "Callable[..., Report]":
    """`gradcli.check` that fails the test with the report's text unless the report is ok; returns the report.

    The options of a marker, as in `@pytest.mark.gradcli(order=1)`, apply unless the call gives others.
    """
    marker = request.node.get_closest_marker("gradcli")
    options = {} if marker is None else dict(marker.kwargs)
    unknown = sorted(set(options) - set(_MARK_OPTIONS))
    if unknown or (marker is not None and marker.args):
        raise pytest.UsageError(
            f"pytest.mark.gradcli takes only the keyword arguments {', '.join(_MARK_OPTIONS)}; got {marker}"
        )

    def check(target: object, inputs: Any = None, **given: Any) -> "Report":
        __tracebackhide__ = True
        import gradcli

        report = gradcli.check(target, inputs, **{**options, **given})
        if not report.ok:
            pytest.fail(str(report), pytrace=False)
        return report

    return check


class SpecFile(pytest.File):
    """A spec; its cases are the items."""

    def collect(self) -> Iterable["SpecItem"]:
        """One item for each case, named by the case's id."""
        from gradcli.errors import GradcliError

        try:
            cases = _session(self.config).cases(self.path)
        except GradcliError as error:
            raise self.CollectError(str(error)) from None
        for case in cases:
            item: SpecItem = SpecItem.from_parent(self, name=case.spec.case_id, case=case)
            item.add_marker("gradcli")
            item.extra_keyword_matches.update(case.spec.tags)
            yield item


class SpecItem(pytest.Item):
    """One case of a spec, run in a worker process."""

    def __init__(self, *, case: "CheckCase", **given: Any) -> None:
        super().__init__(**given)
        self.case = case

    def runtest(self) -> None:
        """Check the case; the test fails if the command would not exit with 0."""
        problem, skipped = _session(self.config).problem(self.case)
        if skipped:
            pytest.skip(problem or "skipped")
        if problem is not None:
            pytest.fail(problem, pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The spec, the line of the case in it, and its id."""
        line = (self.case.spec.origin or "").rpartition(":")[2]
        return self.path, int(line) - 1 if line.isdigit() else None, self.name


def _starts(config: pytest.Config) -> list[Path]:
    """The files and folders that pytest was asked to look at."""
    return [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]


def _session(config: pytest.Config) -> "Session":
    session = config.stash.get(_SESSION, None)
    if session is None:
        from gradcli.pytest_session import Session

        session = config.stash[_SESSION] = Session(start=config.invocation_params.dir)
    return session
