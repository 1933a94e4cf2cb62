"""The site builds without a warning, and its pages load nothing from another host."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium")
ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?(?P<url>[^"'\s>]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_page_is_there_and_names_no_other_host_to_load_from(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}
    for page in site.rglob("*.html"):
        urls = [found["url"] for found in LOADED.finditer(page.read_text())]
        assert urls
        assert [url for url in urls if re.match(r"(\w+:)?//", url)] == []
    entries = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    boosts = {entry["location"]: entry.get("boost", 1) for entry in entries}
    assert boosts["troubleshooting.html"] > boosts["index.html"] > boosts["design/workers.html"]
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.search(r"""(@import|url\()\s*["']?(https?:)?//""", styles)


@pytest.mark.skipif(CHROMIUM is None, reason="no `chromium` on PATH; try: apt-get install chromium")
def test_a_browser_asks_this_host_only_and_finds_a_page_by_a_word_also_from_a_folder(served: str, site: Path) -> None:
    asked: list[str] = []
    problems: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{served}/own-task.html")
        assert page.inner_text("h1").startswith("Your own task")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto(f"{served}/index.html?q=replay")
        page.wait_for_selector(".md-search-result__item >> text=Paid models")
        page.goto(f"{(site / 'design/words.html').as_uri()}?q=replay")
        page.click(".md-search-result__item >> text=Paid models")
        page.wait_for_url("**/paid-models.html*")
        browser.close()
    assert asked
    assert [url for url in asked if not url.startswith((served, site.as_uri(), "data:", "blob:"))] == []
    assert problems == []
