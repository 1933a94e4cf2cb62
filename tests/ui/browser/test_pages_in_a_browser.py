"""The pages in a real browser: live while a run goes on in another process, by keyboard, on a phone, in the dark."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agents_store import find_calling, write_run
from axe_playwright_python.sync_playwright import Axe
from optimised_store import OPTIMISED, add_optimisation
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from opsmith.report.document import write_document
from opsmith.store import Store
from opsmith.store.notes import add_to_note, change_tags
from opsmith.store.rows import RunInfo, run_end_row, run_rows

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
TINY_RUN = Path(__file__).parents[2] / "learn" / "tiny_run.py"
expect.set_options(timeout=60_000)  # the browser shares its cores with other tests
UNREACHABLE = (  # what a pointer alone could use
    "[...document.querySelectorAll('a[href], button, input, select, summary')]"
    ".filter(part => part.tabIndex < 0 && part.offsetParent).map(part => part.outerHTML)"
)
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 740}

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no `chromium` on PATH; try: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@contextmanager
def pages_of(folder: Path) -> Iterator[str]:
    """`opsmith ui` in a process of its own: its address."""
    command = [sys.executable, "-m", "opsmith", "ui", str(folder), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline().split()[0].rstrip("/")
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def site(finished: Path) -> Iterator[str]:
    with pages_of(finished) as address:
        yield address


@pytest.fixture(scope="module")
def run(finished: Path) -> str:
    with Store.open(finished) as store:
        return store.list_runs()[0].info.id


@pytest.fixture(scope="module")
def optimised(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The pages of a run with optimisation rounds, and its report: the list of runs first, a fixed sample last."""
    folder = tmp_path_factory.mktemp("optimised")
    shutil.copy(finished, folder / "opsmith.sqlite")
    with Store.open(folder) as store:
        run = store.list_runs()[0].info.id
        add_optimisation(store, run)
        samples = [row.id for row in store.list_samples(run, OPTIMISED[0])]
        fixed = next(name for name in samples[::-1] if len(store.find_sample(run, name).candidates) == 2)
        (folder / "report.html").write_text(write_document(store, [run]), encoding="utf-8")
    with pages_of(folder) as address:
        own = f"{address}/runs/{run}"
        inside = [f"/tasks/{OPTIMISED[0]}", "/results?now=1", "", "/failures?now=1", f"/attempts/{OPTIMISED[0]}"]
        inside += ["/samples", "/delete", f"/samples/{fixed}"]
        yield [f"{address}/", f"file://{folder}/report.html", *(own + path for path in inside)]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The pages of a run with plans, tools and two models, and its report; a plan's task page third."""
    folder = tmp_path_factory.mktemp("agents")
    run = write_run(folder / "opsmith.sqlite")
    with Store.open(folder / "opsmith.sqlite") as store:
        add_to_note(store, run, "A run with plans: https://example.org/" + "long" * 40)
        change_tags(store, run, ["good", "a-tag-that-is-as-long-as-a-tag-can-be-40"])
        (folder / "report.html").write_text(write_document(store, [run]), encoding="utf-8")
        store.put(
            run_rows(RunInfo("other-s1-1", "1", "tiny", False, "tiny", 1, {}, {}), store.read_tasks(run))
        ).result()
        (folder / "both").mkdir()
        (folder / "both" / "report.html").write_text(write_document(store, [run, "other-s1-1"]), encoding="utf-8")
    with pages_of(folder) as address:
        inside = ["", "/tasks/sum_2", f"/samples/{find_calling().id}", "/results?now=1"]
        shown = [f"{address}/runs/{run}{path}" for path in inside]
        yield [
            f"file://{folder}/report.html",
            *shown,
            f"file://{folder}/both/report.html",
            f"{address}/compare?run={run}&run=other-s1-1&now=1",
            f"{address}/",
        ]


@pytest.fixture
def watched(browser: Browser, site: str) -> Iterator[Callable[..., Page]]:
    """`watched(viewport=PHONE)`: a page; at the end it must have had no message of an error and no request elsewhere."""
    problems: list[str] = []
    contexts = []

    def check(request: Request) -> None:
        if not re.match(r"http://127\.0\.0\.1:\d+/|data:|file:///.*/report\.html$", request.url):
            problems.append(f"asked {request.url}")

    def opened(**options: object) -> Page:
        context = browser.new_context(**{"viewport": WIDE, **options})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda told: problems.append(told.text) if told.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", check)
        page.on("response", lambda got: problems.append(f"{got.status} {got.url}") if got.status >= 400 else None)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def kinds(site: str, run: str, finished: Path) -> list[str]:
    """One address of each kind of page; a sample with a refusal and differences."""
    with Store.open(finished) as store:
        rows = list(store.list_samples(run))
    sample = next(row.id for row in rows if row.stage and row.stage.name == "MATCH")
    own = f"{site}/runs/{run}"
    inside = ["", "/samples", f"/samples/{sample}", "/tasks/sum_0", "/attempts/sum_0", "/failures?now=1"]
    inside += ["/results?now=1", "/delete"]
    beside = f"{site}/compare?sample={run}/{sample}&sample={rows[-1].id}"
    return [f"{site}/", beside, *(own + path for path in inside)]


def test_a_run_in_another_process_is_followed_paused_and_resumed(watched: Callable[..., Page], tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(TINY_RUN),
        str(tmp_path / "opsmith.sqlite"),
        "1.0",
    ]  # s for a reply: it must not end while it is looked at
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        try:
            with pages_of(tmp_path) as address:
                page = watched()
                _follow(page, address)
                process.kill()
                _see_the_end(page, tmp_path)
        finally:
            process.kill()


def _follow(page: Page, address: str) -> None:
    page.goto(f"{address}/")
    expect(page.locator(".status")).to_contain_text("running")
    page.locator("table a").click()
    page.evaluate("window.unchanged = true")
    before = samples(page)
    eventually(lambda: samples(page) > before)
    expect(page.locator("main")).to_contain_text("demonstrations")
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#state .status")).to_contain_text("paused")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    eventually(lambda: stands_still(page))  # the run looks every half second, and what is in flight is finished
    before = samples(page)
    page.keyboard.press("Enter")
    expect(page.locator("#state .status")).to_contain_text("running")
    eventually(lambda: samples(page) > before)


def _see_the_end(page: Page, folder: Path) -> None:
    expect(page.locator("#state .status")).to_contain_text("stopped")
    with Store.open(folder) as store:
        run = store.list_runs()[0].info.id
        change_tags(store, run, ["good"])
        expect(page.locator(".remarks")).to_contain_text("good")
        store.put([run_end_row(run, "all solved")]).result()
    expect(page.locator("#state .status")).to_contain_text("finished")
    expect(page.locator("#wish")).to_have_count(0)
    assert page.evaluate("window.unchanged"), "the page was loaded again"
    page.get_by_text("Note, tags, archive, delete").click()
    page.get_by_label("Note", exact=True).fill("It was stopped by hand.")
    page.get_by_role("button", name="Save the note").click()
    expect(page.locator(".said")).to_have_text("It was stopped by hand.")
    page.close()  # before its server ends


def samples(page: Page) -> int:
    """As the page says."""
    text = page.locator("section[aria-label=Progress]").inner_text()
    found = re.search(r"Samples\s+([\d,]+)", text)
    assert found, text
    return int(found[1].replace(",", ""))


def stands_still(page: Page) -> bool:
    """A run that is not paused has a sample every eighth of a second."""
    before = samples(page)
    time.sleep(1.5)
    return samples(page) == before


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until, "it did not come to hold within 60 s"
        time.sleep(0.1)


def test_filters_narrow_the_list_and_a_sample_opens(watched: Callable[..., Page], site: str, run: str) -> None:
    page = watched()
    page.goto(f"{site}/runs/{run}/samples")
    rows = page.locator("#list tbody tr")
    assert rows.count() == 50
    page.get_by_label("Program or message has").fill("in no program")
    expect(page.locator("#list")).to_contain_text("No sample passes")
    page.get_by_label("Program or message has").fill("")
    expect(rows).to_have_count(50)
    page.get_by_label("Task").select_option("max_0")
    page.get_by_label("Outcome").select_option("refused")
    expect(page).to_have_url(re.compile("task=max_0.*outcome=refused"))
    expect(rows.first).to_contain_text("max_0")
    assert "passed" not in page.locator("#list").inner_text()
    sample = rows.first.locator("code").inner_text()
    page.get_by_label("Id begins with").press_sequentially(sample[:8])
    expect(page).to_have_url(re.compile(f"id={sample[:8]}"))  # of the last key: until then the list may change again
    expect(rows).to_have_count(1)
    rows.first.locator("a").first.click()
    expect(page.locator("main")).to_contain_text(f"Sample {sample}")
    expect(page.locator("main")).to_contain_text("Verdict:")
    page.go_back()
    expect(rows).to_have_count(1)
    expect(page.get_by_label("Task")).to_have_value("max_0")


def test_who_leaves_the_text_field_is_asked_for_nothing_again(
    watched: Callable[..., Page], site: str, run: str
) -> None:
    """A list that is replaced under the pointer, as the field loses the focus to a link, would swallow the click."""
    page = watched()
    page.goto(f"{site}/runs/{run}/samples")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/samples?" in request.url else None)
    field = page.get_by_label("Id begins with")
    field.press_sequentially("0")
    expect(page).to_have_url(re.compile("id=0"))
    page.locator("h1").click()
    expect(field).not_to_be_focused()
    page.get_by_label("Task").select_option("max_0")
    expect(page).to_have_url(re.compile("task=max_0"))
    assert len(asked) == 2, asked


def test_the_numbers_and_curves_come_by_themselves(watched: Callable[..., Page], site: str, run: str) -> None:
    page = watched()
    page.goto(f"{site}/runs/{run}/results")
    expect(page.get_by_role("heading", name="Curves")).to_be_visible()
    assert page.locator("svg.marks").count() >= 2


def test_each_page_fits_a_phone(watched: Callable[..., Page], site: str, run: str, finished: Path) -> None:
    page = watched(viewport=PHONE, is_mobile=True)
    for address in kinds(site, run, finished):
        page.goto(address)
        widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert widths[0] <= widths[1] == PHONE["width"], address


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_page_is_accessible(
    watched: Callable[..., Page], site: str, run: str, finished: Path, scheme: str
) -> None:
    page = watched(color_scheme=scheme)
    rules = None if scheme == "light" else {"runOnly": ["color-contrast"]}  # what the scheme decides
    for address in kinds(site, run, finished):
        page.goto(address)
        page.evaluate("[...document.querySelectorAll('details')].slice(0, 8).forEach(part => { part.open = true })")
        found = Axe().run(page, options=rules)
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", shade)[:3])) < 200) == (scheme == "dark")


def test_all_can_be_reached_by_keyboard(watched: Callable[..., Page], site: str, run: str) -> None:
    page = watched()
    page.goto(f"{site}/")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    tab_to(page, f"a[href='/runs/{run}']")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site}/runs/{run}")
    tab_to(page, f"a[href='/runs/{run}/samples']")
    tab_to(page, "svg.curve a")
    expect(page.locator("svg.curve a:focus .tip")).to_contain_text("round 0")
    page.locator(f"a[href='/runs/{run}/samples']").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site}/runs/{run}/samples")
    tab_to(page, "#filter-task")
    page.keyboard.press("m")
    expect(page.locator("#list tbody tr").first).to_contain_text("max_0")
    expect(page.locator("#list tbody tr").filter(has_not_text="max_0")).to_have_count(0)  # the old list is gone
    tab_to(page, "#list tbody a")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("A sample of max_0")
    page.go_back()
    ticks = page.locator("#list input[type=checkbox]")
    for tick in (ticks.first, ticks.last):
        tick.focus()
        page.keyboard.press("Space")
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.locator("h1")).to_contain_text("Two samples of")


def test_ticks_outlive_a_list_that_is_replaced_and_are_sent_once(
    watched: Callable[..., Page], finished: Path, tmp_path: Path
) -> None:
    shutil.copy(finished, tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path) as store, pages_of(tmp_path) as address:
        run = store.list_runs()[0].info.id
        other = RunInfo("other-s1-1", "1", "tiny", False, "tiny", 1, {}, {})
        store.put(run_rows(other, store.read_tasks(run))).result()
        page = watched()
        page.goto(f"{address}/")
        boxes = page.locator("input[type=checkbox]")
        boxes.first.check()
        change_tags(store, run, ["fresh"])
        expect(page.locator("tbody")).to_contain_text("fresh")
        expect(boxes).to_have_count(2)
        expect(boxes.first).to_be_checked()
        boxes.last.check()
        page.get_by_role("button", name="Compare").click()
        expect(page.locator("h1")).to_have_text("2 runs")
        assert sorted(re.findall(r"run=([\w-]+)", page.url)) == sorted([run, other.id])
        page.close()  # before its server ends


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_became_faster_and_what_agents_did_is_accessible_and_fits(
    watched: Callable[..., Page], optimised: list[str], agents: list[str], scheme: str, width: int
) -> None:
    """Every link, button and field is one that the keyboard reaches."""
    page = watched(color_scheme=scheme, viewport={"width": width, "height": 740})
    for address in (*optimised, *agents):
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
        widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert widths[0] <= widths[1] == width, address
        assert page.evaluate(UNREACHABLE) == [], address
        found = Axe().run(page)
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"


def test_from_the_list_of_runs_to_a_change_and_its_reason_by_keyboard(
    watched: Callable[..., Page], optimised: list[str]
) -> None:
    page = watched()
    page.goto(optimised[0])
    expect(page.locator("thead")).to_contain_text("Gain")
    expect(page.locator("tbody")).to_contain_text("1.750 over 2 tasks")
    page.goto(optimised[2])
    timeline = page.get_by_role("group", name=f"Timeline of {OPTIMISED[0]}")
    expect(timeline.locator("tbody tr")).to_have_count(8)
    tab_to(page, "[aria-label^=Timeline] tbody tr:nth-child(5) a")
    page.keyboard.press("Enter")
    main = page.locator("main")
    expect(main).to_contain_text("Use <b>one</b> addition less.")
    expect(main).to_contain_text("Difference from the program that it set out from")
    expect(main).to_contain_text("line 2: <i>not</i> vectorised")
    picture = page.get_by_alt_text("Picture of the profile roofline")
    assert picture.evaluate("picture => picture.complete && picture.naturalWidth") == 1
    tab_to(page, "dl + p a[href*='/samples/']")
    page.keyboard.press("Enter")
    expect(main).to_contain_text("It set out from the task’s start program")


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is there; it must be seen on the way."""
    for _ in range(40):
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", "the focus is not seen"
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"40 times Tab did not reach {selector}")


def test_without_javascript_everything_but_the_updates_works(
    watched: Callable[..., Page], site: str, run: str, finished: Path
) -> None:
    page = watched(java_script_enabled=False)
    for address in kinds(site, run, finished):
        page.goto(address)
        expect(page.locator("h1")).to_be_visible()
    page.goto(f"{site}/runs/{run}/samples")
    page.get_by_label("Task").select_option("max_0")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#list tbody tr").first).to_contain_text("max_0")
    page.goto(f"{site}/runs/{run}/results")
    page.get_by_role("link", name="Show them").click()
    expect(page.get_by_role("heading", name="Curves")).to_be_visible()


def test_a_part_that_does_not_come_and_a_server_that_is_gone_are_said(browser: Browser, finished: Path, run: str):
    page = browser.new_page()
    with pages_of(finished) as address:
        page.route(
            "**/results",
            lambda way: way.fulfill(status=500) if "hx-request" in way.request.headers else way.continue_(),
        )
        page.goto(f"{address}/runs/{run}/results")
        expect(page.get_by_role("alert")).to_contain_text("The server could not answer (500)")
        page.goto(f"{address}/")
        expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("alert")).to_contain_text("No answer from the server since")
    page.close()
