"""Pages and messages stay true: screens are what is printed, links and files exist, words are the glossary's."""

import re
from pathlib import Path

import pytest

from tests.test_gallery import words
from tools import screens

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("CONTRIBUTING.md")])
PLAYED = ("inconclusive.md", "tutorial.md")


def anchors(page):
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", PLAYED)
def test_a_page_shows_what_is_printed(name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert text.count("<!-- screen: ") >= 4
    assert words(screens.played(text)) == words(text), f"run python -m tools.screens docs/{name}"


def test_the_last_screen_of_the_tutorial_is_green():
    assert re.search(r"^3 passed", (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"), re.M)


def test_each_reason_has_its_section_and_its_screen():
    from gradcli.verdict import Reason

    text = (ROOT / "docs" / "inconclusive.md").read_text(encoding="utf-8")
    for reason in Reason:
        section = text.split(f"\n## {reason.value}\n")[1].split("\n## ")[0]
        assert reason is Reason.BUDGET or f"[{reason.value}]" in section


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_inside_the_project_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(place), f"{page.name}: {target}"


def test_the_constants_that_the_numerics_page_names_are_in_the_code():
    """docs/constants.md, which a test keeps equal to the code, lists all of them."""
    text = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
    listed = (ROOT / "docs" / "constants.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z][A-Z_]+)`", text))
    assert len(named) > 50
    assert named <= set(re.findall(r"^\| `(\w+)` \|", listed, re.M))


def test_the_site_has_every_page_in_its_navigation():
    docs = ROOT / "docs"
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    listed = re.findall(r"([\w/.-]+\.md)$", nav, re.M)
    assert sorted(listed) == sorted(page.relative_to(docs).as_posix() for page in PAGES if page.is_relative_to(docs))


def test_the_files_that_the_documentation_names_exist() -> None:
    for page in ("docs/architecture.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        places = re.findall(r"`((?:[\w]+/)*\w+\.py|(?:\w+/)+)`", text)
        assert len(places) > 5
        for place in places:
            beside = {(ROOT / "gradcli" / folder / place).exists() for folder in ("", "reporters", "backends", "..")}
            assert any(beside), f"{page} names {place}"


def test_messages_use_the_words_of_the_glossary() -> None:
    """What CONTRIBUTING.md lists as words not used is in no text that a user can see."""
    from tools.messages import sheet

    avoided = re.compile(
        r"could be had|\bis another one\b|nobody asked for|this very point|\bmend|\btread|\btestimony|\bis heard|"
        r"\bis no (?:regular file|target|tensor|number|shape)\b|without a word|comes? farthest|came farthest|"
        r"\bwitness|\bclaim|below the significance|moves? in steps|argument number|of its largest entry|"
        r"the trace saw|not requested|with (?:it|them), it is right|\bstands alone\b|a mark each|is called that|"
        r", so that (?!zeros arrive)|called inside|\bmakes? (?:\S+ ){1,3}of it\b|; there (?:is|are) |"
        r"\b(?:is|are) a note\b|\bdo(?:es)? not decide|\bthe engine\b|operation in place|\bbeside it\b|"
        r"on (?:its|their) way|in share|\bto be made\b|and one by one|on both sides|do(?:es)? not add up|"
        r"does not fit$|\bon the way\b|zeros among|concerns only|is there twice|(?:is|are) not UTF-8|ends at once|"
        r"the signals blocked"
    )
    lines = [line for line in sheet([]) if not line.startswith("\n")]
    filled_in = re.compile(r"\{[^{}]*\}")
    while any(map(filled_in.search, lines)):
        lines = [filled_in.sub("", line) for line in lines]
    assert len(lines) > 500
    assert [line for line in lines if avoided.search(line)] == []
