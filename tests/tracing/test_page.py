"""The page of a trace: one file without requests, whatever text is in it, and driven by mouse and keyboard."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcli.reporters.graph.page import trace_data, trace_page
from gradcli.traces import (
    ArraySummary,
    Edge,
    HookCall,
    MemoryLedger,
    MemoryPeak,
    SavedTensor,
    SourceSite,
    Storage,
    TensorFate,
    TraceGraph,
    TraceNode,
)

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)><!-- \u202e\x1b[31m & {{7*7}} \u2028"


def number(value):
    return ArraySummary(shape=(), dtype="float64", norm=abs(value), values=(value,))


def node(place, name, targets, module=None, **more):
    edges = tuple(Edge(target=target, slot=0) for target in targets)
    site = SourceSite(file="net.py", line=place + 1)
    return TraceNode(
        id=place, name=name, edges=edges, module=module, site=site, executed=True, gradients_in=(number(1.0),),
        gradients_out=tuple(number(2.0 + place) for _ in targets), **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def small():
    """A result, two modules inside another, a leaf each, and texts that no page likes."""
    nodes = (
        node(0, "SumBackward0", [1]),
        node(1, "TanhBackward0", [2], "Net.second"),
        node(2, "AddmmBackward0", [3, 4], "Net.second.fc", saved_bytes=64),
        node(3, "AccumulateGrad", [], variable=HOSTILE),
        node(4, "ExpBackward0", [5], f"Net.{HOSTILE.replace('.', '')}"),
        node(5, "AccumulateGrad", [], variable="x"),
    )
    hooks = tuple(
        HookCall(
            number=place, kind="tensor", owner=HOSTILE, function=HOSTILE, site=None, node=target,
            before=(number(1.0),), after=(number(2.0),), effect="returned a new value: 2x", warning=HOSTILE,
        )
        for place, target in ((1, 2), (2, None))
    )  # fmt: skip
    memory = MemoryLedger(
        saved=(SavedTensor(node=2, name=HOSTILE, shape=(8,), dtype="float64", bytes=64, storage=0),),
        storages=(Storage(bytes=64, kind="activation", label=None, nodes=(2,)),),
        peak=MemoryPeak(node=2, fixed=0, saved=64, gradients=8, accumulated=0),
    )
    fate = TensorFate(name="x", is_leaf=True, requires_grad=True, grad=number(7.0), node=5)
    return TraceGraph(
        target=HOSTILE, backend="engine", nodes=nodes, hooks=hooks, tensors=(fate,), result=number(4.0), passes=1,
        root_name=HOSTILE, lints=(HOSTILE,), effects=(HOSTILE,), memory=memory,
    )  # fmt: skip


def test_the_page_is_one_file_that_asks_for_nothing_and_has_no_markup_of_the_users(small):
    text = trace_page(small)
    assert text.count("<script>") == 1
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert "onerror=alert" in text  # as text
    assert not re.search(r'(?:src|href)\s*=\s*"?(?:https?:)?//', text)
    assert not re.search(r"@import|url\(", text)
    assert "\u202e" not in text
    assert "default-src 'none'" in text


def test_the_data_can_be_read_back_and_ends_no_script(small):
    found = re.search(r'<script type="application/json" id="trace-data">(.*?)</script>', trace_page(small), re.S)
    assert found is not None
    assert "<" not in found[1]
    data = json.loads(found[1])
    assert data == json.loads(json.dumps(trace_data(small)))
    assert [data["texts"]["names"][name] for name in data["names"]][:3] == [
        "SumBackward0", "TanhBackward0", "AddmmBackward0",
    ]  # fmt: skip
    assert [name for name, _ in data["modules"]][:3] == ["Net", "second", "fc"]
    assert data["module"] == [-1, 1, 2, 2, 3, 3]  # a leaf lies where it is used first


def test_without_its_script_the_page_shows_the_tree(small):
    text = trace_page(small)
    plain = re.search(r'<pre id="plain">(.*?)</pre>', text, re.S)
    assert plain is not None
    assert "AddmmBackward0" in plain[1]
    assert '<main class="trace" hidden>' in text


def test_a_page_of_twenty_thousand_nodes_stays_small():
    nodes = tuple(node(place, "SinBackward0", [place + 1] if place < 19_999 else []) for place in range(20_000))
    text = trace_page(TraceGraph(target="deep", backend="engine", nodes=nodes, result=number(1.0), passes=1))
    assert len(text) < 20_000 * 150


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


@pytest.fixture(params=["light", "dark"])
def opened(request: pytest.FixtureRequest, browser: Any, small: TraceGraph, tmp_path: Path) -> Iterator[Any]:
    """The page from a file; what it did that it must not is collected: requests, dialogs, errors."""
    yield from open_page(browser, trace_page(small), tmp_path, request.param)


def open_page(browser: Any, text: str, folder: Path, scheme: str = "light") -> Iterator[Any]:
    path = folder / "trace.html"
    path.write_text(text, encoding="utf-8")
    seen: list[str] = []
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1300, "height": 900})
    page.on("request", lambda request: seen.append(f"request {request.url}"))
    page.on("dialog", lambda dialog: (seen.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("pageerror", lambda error: seen.append(f"error {error}"))
    page.on("console", lambda message: seen.append(f"console {message.text}"))
    page.goto(path.as_uri())
    assert seen == [f"request {path.as_uri()}"]
    seen.clear()
    yield page
    page.close()
    assert seen == []


def boxes(page: Any) -> str:
    return str(page.get_by_role("status").inner_text())


def test_modules_fold_and_unfold_in_the_list_and_in_the_picture(opened: Any) -> None:
    page = opened
    assert boxes(page) == "6 boxes for 6 nodes"
    page.get_by_role("button", name="Fold modules").click()
    assert boxes(page) == "2 boxes for 6 nodes"
    folded = page.get_by_role("treeitem", name="▸ Net")
    assert folded.get_attribute("aria-expanded") == "false"
    folded.click()
    page.keyboard.press("ArrowRight")
    assert boxes(page) == "3 boxes for 6 nodes"
    page.get_by_role("button", name="Unfold all").click()
    assert page.get_by_role("treeitem").count() == 10


def test_search_finds_nodes_by_name_line_and_module(opened: Any) -> None:
    page = opened
    page.keyboard.press("/")
    page.keyboard.type("second addmm")
    assert boxes(page) == "1 of 6 nodes found"
    page.keyboard.press("Enter")
    assert page.locator("#details h2").inner_text() == "#2 AddmmBackward0"
    page.get_by_label("Search nodes").fill("net.py:5")
    assert boxes(page) == "1 of 6 nodes found"
    page.get_by_label("Search nodes").press("Escape")
    assert boxes(page) == "6 boxes for 6 nodes"


def test_a_chosen_node_shows_its_values_and_a_folded_one_is_unfolded_for_it(opened: Any) -> None:
    page = opened
    page.get_by_role("button", name="Fold modules").click()
    page.evaluate("location.hash = '#node-2'")
    page.wait_for_function("document.querySelector('#details h2').textContent.includes('#2')")
    text = page.locator("#details").inner_text()
    assert "Saved: 64 bytes" in text
    assert "Gradients that left" in text
    assert "float64[8]" in text
    page.get_by_role("button", name="#4 ExpBackward0").click()
    assert page.locator("#details h2").inner_text() == "#4 ExpBackward0"


def test_a_hook_leads_to_the_node_whose_gradients_it_saw(opened: Any) -> None:
    page = opened
    assert page.get_by_role("option").count() == 2
    page.keyboard.press("h")
    assert page.locator("#details h2").inner_text() == "#2 AddmmBackward0"
    assert "returned a new value: 2x" in page.locator("#details").inner_text()


def test_the_picture_is_moved_through_by_keyboard_and_mouse(opened: Any) -> None:
    page = opened
    page.evaluate("location.hash = '#node-0'")
    page.locator("#picture").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("document.querySelector('#details h2').textContent.includes('#1 Tanh')")
    page.keyboard.press("ArrowUp")
    page.wait_for_function("document.querySelector('#details h2').textContent.includes('#0 Sum')")
    frame = page.locator("#picture").bounding_box()
    page.mouse.click(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)  # centred on the chosen node
    assert "#0 Sum" in page.locator("#details h2").inner_text()
    for key in ("+", "-", "0"):
        page.keyboard.press(key)
    page.mouse.wheel(0, -200)
    page.wait_for_function("Number(document.getElementById('picture').dataset.boxes) > 0")


def test_what_the_user_wrote_runs_nothing_and_is_shown_as_text(opened: Any) -> None:
    page = opened
    page.evaluate("location.hash = '#node-3'")
    page.wait_for_function("document.querySelector('#details h2').textContent.includes('#3')")
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0
    assert "</script><script>alert(1)</script>" in page.locator("#details").inner_text()
    assert "alert(2)" in page.locator("#hooks").inner_text()


def test_the_picture_has_the_colours_of_the_scheme(opened: Any) -> None:
    corner = opened.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => "
        "done([...document.getElementById('picture').getContext('2d').getImageData(1, 1, 1, 1).data]))))"
    )
    dark = opened.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (sum(corner[:3]) < 200) == dark


def test_twenty_thousand_nodes_are_drawn_as_far_as_they_are_in_sight(browser: Any, tmp_path: Path) -> None:
    nodes = tuple(
        node(place, "SinBackward0", [place + 1] if place < 19_999 else [], f"Net.{place // 100}")
        for place in range(20_000)
    )
    graph = TraceGraph(target="deep", backend="engine", nodes=nodes, result=number(1.0), passes=1)
    for page in open_page(browser, trace_page(graph), tmp_path):
        assert boxes(page) == "200 boxes for 20000 nodes"
        page.get_by_role("button", name="Unfold all").click()
        assert boxes(page) == "20000 boxes for 20000 nodes"
        page.get_by_label("Search nodes").fill("net.py:19000")
        page.get_by_label("Search nodes").press("Enter")
        assert page.locator("#details h2").inner_text() == "#18999 SinBackward0"
        page.wait_for_function("Number(document.getElementById('picture').dataset.boxes) > 0")
        assert page.evaluate("Number(document.getElementById('picture').dataset.boxes)") < 100
        assert page.locator("[role=treeitem]").count() < 100
