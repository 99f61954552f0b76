"""The gallery stays true: each example has its finding, its correction passes, and its page shows what is printed."""

import re

import pytest

from gradcli.findings import FindingKind
from tests.test_readme import stable
from tools import gallery


def words(text):
    """The words of a page without what differs between machines: times, bounds, and the rows of entries."""
    return stable(re.sub(r"^ +(\[[\d, ]+\]|value) .*$", "    ROW", text, flags=re.M))


@pytest.fixture(autouse=True)
def workshop():
    with gallery.workshop():
        yield


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", FindingKind, ids=lambda kind: kind.value)
def test_the_wrong_one_fails_as_its_page_shows_and_the_corrected_one_passes(kind):
    example = gallery.example_of(kind)
    pytest.importorskip(example.framework, reason="the example needs it")
    code, screen = gallery.run(example.command(example.wrong))
    assert code == 1
    assert set(re.findall(r"   \[([a-z-]+)\]$", screen, re.M)) == {kind.value}
    shown = (gallery.DOCS / "findings" / f"{kind.value}.md").read_text(encoding="utf-8")
    written = gallery.page(example, screen, gallery.bugs_of(kind))
    assert words(shown) == words(written), "run python tools/gallery.py"
    code, screen = gallery.run([*example.command(example.fixed), "--samples", "1"])
    assert code == 0, screen


def test_the_list_of_findings_is_up_to_date():
    assert (gallery.DOCS / "findings" / "index.md").read_text(encoding="utf-8") == gallery.index()


def test_every_page_belongs_to_a_finding_and_every_public_bug_too():
    pages = {file.stem for file in (gallery.DOCS / "findings").glob("*.md")} - {"index", "reports"}
    examples = {file.stem.replace("_", "-") for file in gallery.EXAMPLES.glob("*.py")}
    assert pages == examples == {kind.value for kind in FindingKind}
    bugs = gallery.yaml.safe_load((gallery.DOCS / "findings" / "bugs.yaml").read_text(encoding="utf-8"))
    assert set(bugs) <= pages
