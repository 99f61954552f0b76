"""The HTML page: complete without a network, safe against the user's texts, and driven in a real browser."""

import base64
import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import gradcli
from gradcli.cases import CheckSpec
from gradcli.examples.broken import MulConstantForgotten
from gradcli.figures import ErrorCurve, Figures, JacobianBlock
from gradcli.reporters.html.charts import error_chart, heat_maps, resolution_scale
from gradcli.reporters.html.page import fragment, html_report
from gradcli.results import Report
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.programs.hostile_texts import NASTY, many_kinds
from tests.reporters.results import ALL, FAILED, PASSED, report

VOID = {"meta", "input", "br"}
BLOCK = JacobianBlock(
    input="weight",
    output=0,
    order=1,
    rows=(0, 1),
    columns=(0, 1, 2),
    claimed=((1.0, 0.0, -2.0), (0.0, float("nan"), 0.5)),
    numeric=((1.0, 0.0, 2.0), (0.0, 1.0, 0.5)),
    bound=((1e-12, 1e-12, 1e-12), (1e-12, 1e-12, float("inf"))),
)


class Page(HTMLParser):
    """The tags of a page, each closed where it was opened, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_page_is_whole_and_asks_for_nothing_from_outside() -> None:
    page = Page(html_report(many_kinds()))
    named = [(tag, key) for tag, attributes in page.tags for key in attributes if key in ("src", "href", "style")]
    assert named == []
    assert [tag for tag, _ in page.tags if tag in ("link", "img", "iframe", "object", "base", "form")] == []
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)


def test_the_policy_allows_the_pages_own_style_and_script_alone() -> None:
    text = html_report(report(PASSED))
    (policy,) = (meta["content"] for meta in Page(text).all("meta") if "http-equiv" in meta)
    digests = [
        "sha256-" + base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        for part in re.findall(r"(?s)<(?:style|script)>(.*?)</(?:style|script)>", text)
    ]
    assert policy == f"default-src 'none'; style-src '{digests[0]}'; script-src '{digests[1]}'"


def test_every_case_is_there_with_what_needs_attention_first() -> None:
    page = Page(html_report(report(*ALL)))
    cases = [each for each in page.all("details") if each.get("class") == "case"]
    assert [case["data-verdict"] for case in cases] == ["failed", "error", "inconclusive", "passed", "skipped"]
    assert ["open" in case for case in cases] == [True, True, True, False, False]
    assert len({case["id"] for case in cases}) == 5


def test_a_failure_shows_sentence_source_entries_smallest_input_and_replay() -> None:
    text = html_report(report(FAILED))
    for part in (
        FAILED.findings[0].message,
        "[wrong-factor]",
        '<mark aria-label="suspect line">▸ 21 │             return g, None</mark>',
        "-0.340863604",
        "20 of 20 entries are wrong",
        "weight = [[2.0]]",
        "gradcli replay .gradcli/failures/LinearFunction-7f3a.json",
    ):
        assert part in text


@pytest.mark.parametrize("text", NASTY)
def test_a_users_text_adds_no_tag(text: str) -> None:
    def tags(name: str) -> list[str]:
        finding = replace(FAILED.findings[0], message=name, input=name, hint=name)
        block = replace(BLOCK, input=name)
        case = replace(
            FAILED, case_id=name, notes=(name,), findings=(finding,), smallest=(name,), replay=name,
            figures=Figures(blocks=(block,)),
        )  # fmt: skip
        error = replace(ALL[3], error=name, error_traceback=name, case_id=name)
        return [tag for tag, _ in Page(html_report(report(case, error))).tags]

    assert tags(text) == tags("\n".join("plain" for _ in text.splitlines()))


def test_heat_maps_paint_signs_errors_and_what_is_not_finite() -> None:
    page = Page(heat_maps(BLOCK))
    cells = [each for each in page.all("rect") if each.get("class") != "axis"]
    claimed, numeric, error = cells[:6], cells[6:12], cells[12:]
    assert claimed[2]["fill"] != numeric[2]["fill"]
    assert [cell["fill-opacity"] for cell in numeric] == ["0.50", "0.00", "1.00", "0.00", "0.50", "0.25"]
    assert [cell["fill-opacity"] for cell in error] == ["0.00", "0.00", "1.00", "0.00", "1.00", "0.00"]
    assert all(each["role"] == "img" and "weight" in str(each["aria-label"]) for each in page.all("svg")[:2])


def test_the_error_of_a_right_claim_falls_and_that_of_a_wrong_one_stays() -> None:
    steps = tuple(2.0**-k for k in range(1, 30))
    slopes = tuple(1 + step**2 for step in steps)
    right = error_chart(ErrorCurve(steps=steps, slopes=slopes, reference=1.0, bound=1e-12, claimed=1.0))
    wrong = error_chart(ErrorCurve(steps=steps, slopes=slopes, reference=1.0, bound=1e-12, claimed=1.5))

    def drop(chart: str) -> float:
        points = next(str(e["points"]) for e in Page(chart).all("polyline") if e["class"] == "claimed").split()
        return float(points[-1].split(",")[1]) - float(points[0].split(",")[1])

    assert drop(right) > 100
    assert abs(drop(wrong)) < 15


def test_a_scale_says_in_words_what_it_draws() -> None:
    (svg,) = Page(resolution_scale(2e-11, 1e-7)).all("svg")
    assert "resolution 2e-11" in str(svg["aria-label"])
    assert "failure threshold 1e-7" in str(svg["aria-label"])


def test_figures_are_measured_only_where_they_are_asked_for() -> None:
    settings = Settings(order=1, shrink=False)
    spec = CheckSpec(target="gradcli.examples.broken:MulConstantForgotten")
    plain = check_object(MulConstantForgotten, case_of(spec, settings))
    drawn = check_object(MulConstantForgotten, case_of(spec, replace(settings, figures=True)))
    assert plain.verdict is drawn.verdict is Verdict.FAILED
    assert plain.figures is None
    assert drawn.figures is not None
    (block,) = drawn.figures.blocks
    factor = block.numeric[0][0] / block.claimed[0][0]
    assert factor == pytest.approx(
        float(drawn.findings[0].factor and 1 / _fraction(drawn.findings[0].factor)), rel=1e-9
    )
    curve = drawn.figures.curve
    assert curve is not None
    assert abs(curve.claimed - curve.reference) > 0.1 * abs(curve.reference)
    assert min(abs(slope - curve.reference) for slope in curve.slopes) < 1e-9 * abs(curve.reference)


def _fraction(text: str) -> float:
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def test_a_notebook_shows_the_report_without_a_script() -> None:
    shown = gradcli.check("gradcli.examples.linear:LinearFunction", order=1, samples=1)._repr_html_()
    assert "<script" not in shown
    assert "gradcli.examples.linear:LinearFunction" in shown
    Page(shown)
    assert fragment(report(*ALL)).count('class="case"') == 5


# --- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, which drives the browser")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs Chromium, for example Debian's package chromium")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=quiet)
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[tuple[Any, list[str]]]:
    """The page with hostile texts, and what it did that it must not: requests, dialogs, errors."""
    path = tmp_path / "r.html"
    path.write_text(html_report(many_kinds()), encoding="utf-8")
    seen: list[str] = []
    page = browser.new_page(color_scheme="dark")
    page.on("request", lambda request: seen.append(f"request {request.url}"))
    page.on("dialog", lambda dialog: (seen.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("pageerror", lambda error: seen.append(f"error {error}"))
    page.on("console", lambda message: seen.append(f"console {message.text}"))
    page.goto(path.as_uri())
    assert seen == [f"request {path.as_uri()}"]
    seen.clear()
    yield page, seen
    page.close()
    assert seen == []


def test_search_and_filters_choose_cases(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    total = len(many_kinds().cases)
    visible = page.locator("details.case:visible")
    assert visible.count() == total
    page.get_by_label("Search cases").fill("GC110")
    assert visible.count() == 1
    assert page.get_by_role("status").inner_text() == f"1 of {total} cases shown"
    page.keyboard.press("Escape")
    page.get_by_label(re.compile("passed")).uncheck()
    assert visible.count() == total - many_kinds().count(Verdict.PASSED)


def test_cases_unfold_by_keyboard_and_all_at_once(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    assert page.locator("details.case[open]").count() == 0  # more than twenty need attention
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.locator("details.case > summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.case[open]").count() == 1
    page.get_by_role("button", name="Unfold all").click()
    assert page.locator("details.case[open]").count() == len(many_kinds().cases)
    page.get_by_role("button", name="Fold all", exact=True).click()
    assert page.locator("details.case[open]").count() == 0


def test_a_link_to_a_case_opens_it(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    page.evaluate("location.hash = '#case-7'")
    page.wait_for_selector("#case-7[open]")


def test_what_the_user_wrote_runs_nothing(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    page.get_by_role("button", name="Unfold all").click()
    assert page.locator("script").count() == 1
    assert "<script>alert(1)</script>" in page.locator("main").inner_text()


def test_the_page_can_be_printed_whole(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.case[open]").count() == len(many_kinds().cases)
    assert page.locator(".tools").is_hidden()


def test_a_large_report_stays_one_file_of_moderate_size() -> None:
    text = html_report(Report(cases=(PASSED,) * 5000))
    assert len(text) < 5000 * 4000
    assert text.count('class="case"') == 5000
