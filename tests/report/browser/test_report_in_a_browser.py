"""The report in a real Chromium: it asks for nothing, says nothing, and passes an accessibility check."""

import os
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from opsmith.report.files import write_report

CHROMIUM = "/usr/bin/chromium"

pytestmark = pytest.mark.skipif(not os.access(CHROMIUM, os.X_OK), reason=f"{CHROMIUM} is not installed")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def report(store, runs) -> Path:
    return write_report(store, runs, "html")[0].resolve()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_asks_for_nothing_and_is_accessible(browser: Browser, report: Path, width: int, scheme: str):
    page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    page.evaluate("[...document.querySelectorAll('details')].slice(0, 40).forEach(part => part.open = true)")
    violations = Axe().run(page).response["violations"]
    assert [(found["id"], found["nodes"][0]["html"]) for found in violations] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing but tables scrolls sideways
    _sort_and_search(page)
    assert (said, asked) == ([], [report.as_uri()])


def _sort_and_search(page: Page) -> None:
    table = page.locator("table.grid").first
    heading = table.locator("thead th").first
    first = table.locator("tbody tr th").all_inner_texts()
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert (heading.get_attribute("aria-sort"), table.locator("tbody tr th").all_inner_texts()) == (
        "ascending",
        sorted(first),
    )
    page.keyboard.press("Enter")
    assert table.locator("tbody tr th").all_inner_texts() == sorted(first, reverse=True)
    page.keyboard.press("Enter")
    assert (heading.get_attribute("aria-sort"), table.locator("tbody tr th").all_inner_texts()) == (None, first)
    page.get_by_label("Search programs, messages and replies").first.fill("no such program")
    section = page.locator("[data-search]").first
    assert section.locator("details.task:visible").count() == 0
    assert section.locator("output").inner_text().startswith("0 attempts at 0 of")
    page.keyboard.press("Control+a")
    page.keyboard.type(first[0])
    assert section.locator("details.task:visible").count() >= 1


def test_a_link_to_a_task_opens_it(browser: Browser, report: Path):
    page = browser.new_page()
    page.goto(report.as_uri())
    link = page.locator("table.grid a").last
    part = page.locator(f"details:has(> [id='{(link.get_attribute('href') or '')[1:]}'])")
    assert part.get_attribute("open") is None
    link.focus()
    page.keyboard.press("Enter")
    assert part.get_attribute("open") is not None
