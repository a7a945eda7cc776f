"""The built site: complete links, nothing from other hosts, phones, dark and light, and a search that finds."""

import fcntl
import functools
import http.server
import os
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .browser import PHONE, opened, started

pytestmark = pytest.mark.nightly

HOME = Path(__file__).parent.parent
PAGES = (
    "index.html", "quickstart.html", "late-answers.html", "sections/tune.html", "reference.html", "api/policies.html",
    "api/nilregret.Study.html", "learn/index.html", "search.html?q=regret",
)  # fmt: skip
LARGEST = 28_000_000  # bytes of the site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site: what NILREGRET_SITE names, or else built once by one of the processes of the tests."""
    if "NILREGRET_SITE" in os.environ:
        return Path(os.environ["NILREGRET_SITE"])
    folder = HOME / "dist" / "site"
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(HOME / "docs"), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """Of a built page: its links, what it loads, its anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        said = dict(attributes)
        self.anchors.add(said.get("id") or "")
        if tag == "a" and said.get("href"):
            self.links.append(said["href"])
        elif tag == "link" and said.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loads.append(said["href"])
        elif tag != "a" and said.get("src"):
            self.loads.append(said["src"])


@functools.cache
def pages(site):
    return {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    wrong = []
    for file, page in pages(site).items():
        for address in [*page.links, *page.loads]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                wrong += [(file.name, address)] if address in page.loads and parts.scheme != "data" else []
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            anchors = pages(site)[target].anchors if target in pages(site) else {""}
            if not target.exists() or (target in pages(site) and unquote(parts.fragment) not in anchors):
                wrong.append((file.name, address))
    assert wrong == []
    styles = [file.name for file in site.rglob("*.css") if "url(http" in file.read_text(encoding="utf-8")]
    assert styles == []


def test_every_page_with_a_block_that_prints_shows_what_it_printed(site):
    assert 'class="output' in (site / "quickstart.html").read_text(encoding="utf-8")
    assert "<img" in (site / "index.html").read_text(encoding="utf-8")


def test_the_site_is_small(site):
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file() and ".doctrees" not in file.parts)
    assert size <= LARGEST


@pytest.fixture(scope="module")
def base(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    with started() as browser:
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read_by_all(browser, base, scheme):
    from axe_playwright_python.sync_playwright import Axe

    found = {}
    with opened(browser, base, color_scheme=scheme) as page:
        for name in PAGES:
            page.goto(f"{base}/{name}")
            wrong = Axe().run(page).response["violations"]
            found[name] = [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in wrong]
        assert page.wrong == []
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_no_page_is_wider_than_a_phone(site, browser, base):
    wide = []
    with opened(browser, base, viewport=PHONE) as page:
        for file in pages(site):
            page.goto(f"{base}/{file.relative_to(site)}")
            if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
                wide.append(str(file.relative_to(site)))
    assert wide == []


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("quickstart", ["quickstart.html"]),
        ("install", ["install.html"]),
        ("importance", ["pictures.html", "api/nilregret.plots.importance.html"]),
        ("gp_ucb", ["api/nilregret.gp_ucb.html"]),
    ],
)
def test_the_search_finds_what_a_word_means(browser, base, words, first):
    with opened(browser, base) as page:
        page.goto(f"{base}/search.html?q={words}")
        page.wait_for_selector("#search-results ul.search li a")
        page.wait_for_function("!document.querySelector('#search-results h2').textContent.includes('Searching')")
        address = page.locator("#search-results ul.search li a").first.get_attribute("href")
        assert urlsplit(address).path in first
        assert page.wrong == []
