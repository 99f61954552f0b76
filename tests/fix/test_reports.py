"""Public reports of wrong gradients, as Functions: each is named and patched as its page shows."""

import pytest
import yaml

from tests import warm

pytest.importorskip("torch", reason="the reports are Functions of PyTorch")
from tools import reports
from tools.gallery import DOCS

CASES = {reports.label(case): case for case in reports.reported_cases()}


def test_every_report_that_runs_has_a_function_and_the_page_lists_them():
    assert set(reports.reports()) == set(CASES)
    page = reports.PAGE.read_text(encoding="utf-8")
    screens = {name: reports.shown(page, name) for name in CASES}
    assert reports.page(screens) == page, "run python -m tools.reports"
    bugs = yaml.safe_load((DOCS / "findings" / "bugs.yaml").read_text(encoding="utf-8"))
    for kind, entries in bugs.items():
        for name in (entry[2] for entry in entries if len(entry) > 2):
            assert kind in reports.outcome(screens[name])[0], name


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_a_report_is_named_and_patched_as_its_page_shows(name, tmp_path):
    reports.file_in(tmp_path, CASES[name])
    done = warm.run_for_text(reports.command_for(CASES[name]), tmp_path, imports="torch")
    shown = reports.shown(reports.PAGE.read_text(encoding="utf-8"), name)
    assert reports.outcome(done.stdout) == reports.outcome(shown)
    assert reports.patch_in(done.stdout) == reports.patch_in(shown)
