"""A real browser for tests: found on the system, started, and pages in it that note what should not be."""

import contextlib
import os
import shutil
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LACKING = (
    "No browser was found, so pages were not tested: install one (on Debian and Ubuntu `apt-get "
    "install chromium`) or name one that is there in NILREGRET_BROWSER."
)
WIDE, PHONE = {"width": 1200, "height": 900}, {"width": 375, "height": 740}
SECONDS = 300_000  # milliseconds that anything may take: the machine may be busy


def executable():
    """The browser; where there is none the test is skipped, or fails where NILREGRET_BROWSER is "required"."""
    named = os.environ.get("NILREGRET_BROWSER", "")
    found = named if named not in ("", "required") else next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        (pytest.fail if named == "required" else pytest.skip)(LACKING)
    return found


@contextlib.contextmanager
def started():
    """A browser, as long as the block lasts."""
    path = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, base, **more):
    """A page that notes what should not be: errors, messages, requests to anywhere else."""
    context = browser.new_context(**{"viewport": WIDE, **more})
    context.set_default_timeout(SECONDS)
    page = context.new_page()
    page.wrong = []
    page.on("console", lambda message: page.wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("dialog", lambda dialog: (page.wrong.append(dialog.message), dialog.dismiss()))
    host = urlsplit(base).netloc
    page.on("request", lambda asked: None if urlsplit(asked.url).netloc == host else page.wrong.append(asked.url))
    yield page
    context.close()
