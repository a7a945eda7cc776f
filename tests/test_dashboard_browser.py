"""The dashboard in a real browser: no error, no foreign request, keyboard, phone, dark, live, logging in."""

import re
import time
from urllib.parse import quote

import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.storage import SqlStorage

from .browser import PHONE, SECONDS, WIDE, opened, started
from .dashboard import KINDS, MARKUP, TABS, arms, copied, hill, play, studies
from .serving import Served

SEEN = (
    "of_markup",
    "of_failures",
    "of_a_space",
    "of_changes",
    "of_a_front",
    "of_stopped_trials",
)  # each with pictures of its own, or none
MORE_PAGES = ("of_constraints/trials", "of_a_space/trials/5", "of_stopped_trials/trials/4")
MORE_NAMES = (".", "~~2e", "a\\b", "a" * 150)


@pytest.fixture(scope="module")
def browser():
    with started() as browser:
        yield browser


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('dashboard')}/studies.db"


@pytest.fixture(scope="module")
def base(url, tmp_path_factory, browser):
    storage = SqlStorage(url)
    copied(studies(), storage)
    storage.close()
    with Served(tmp_path_factory.mktemp("served"), "--storage", url) as served:
        yield f"http://127.0.0.1:{served.port}"


def at(base, kind, more=""):
    return f"{base}/studies/{quote(MARKUP if kind == 'of_markup' else kind, safe='')}{more}"


def until(page, script, arg=None):
    """Wait for what a script says; the browser's own waiting evaluates text, which the pages' policy forbids."""
    end = time.monotonic() + SECONDS / 1000
    while not page.evaluate(script, arg):
        assert time.monotonic() < end, f"{script} did not come true"
        page.wait_for_timeout(40)


READY = """() => !/looking \\.\\.\\.|played again up to/.test(document.body.innerText)
  && !document.querySelector('.htmx-request')
  && [...document.querySelectorAll('[data-scene]')].every(each => each.hasAttribute('data-drawn'))"""


def settled(page):
    """Once all parts of the page are there and every picture is drawn."""
    page.wait_for_load_state()
    until(page, READY)


def picture(key):
    """A script for what is drawn now."""
    return f"document.querySelector('#picture-{key} [data-scene]').getAttribute('data-scene')"


INK = """canvas => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, seen = new Set();
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3]) seen.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
  }
  return seen.size;
}"""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in SEEN else [pytest.mark.nightly]) for kind in KINDS]
)
def test_every_study_is_drawn_without_an_error_or_a_request_elsewhere(browser, base, kind):
    with opened(browser, base, viewport=PHONE) as page:
        page.goto(at(base, kind))
        settled(page)
        assert page.wrong == []
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        inks = page.eval_on_selector_all(".drawing canvas", f"all => all.map({INK})")
        assert all(ink > 2 for ink in inks)
        assert len(inks) == page.locator("[data-scene]").count()
        assert inks or kind in ("of_no_trial", "of_failures", "of_a_script", "of_no_front")
        assert page.locator("h1").all_inner_texts() == [MARKUP if kind == "of_markup" else kind]


@pytest.mark.parametrize(
    "path",
    ["", "of_constraints/trials/9", *(pytest.param(path, marks=pytest.mark.nightly) for path in MORE_PAGES)],
)
def test_other_pages_have_no_error_either_and_fit_on_a_phone(browser, base, path):
    with opened(browser, base, viewport=PHONE) as page:
        page.goto(f"{base}/studies/{path}".rstrip("/"))
        page.set_viewport_size({"width": 375, "height": 6000})  # what is not on the screen is not looked for
        settled(page)
        assert page.wrong == []
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert page.locator("h1").count() == page.locator("main").count() == 1


def test_a_page_stays_up_to_date_by_itself(browser, base, url):
    study = play(nr.Study(arms().using(pruning=nr.slots.Never()), storage=url, name="live"), 3, hill)
    with opened(browser, base) as page:
        page.goto(at(base, "live"))
        settled(page)
        page.get_by_text("As a table").first.click()
        before = page.evaluate(picture("progress"))
        trial = study.ask()
        study.tell(trial, 0.75)
        until(page, "document.querySelector('#head').innerText.includes('4 answered')")
        until(page, f"before => {picture('progress')} != before", before)
        settled(page)
        assert "0.75" in page.locator("#table-progress").inner_text()  # open as it was
        study.tell(study.ask(), 0.875)  # Within the throttle of the picture.
        until(page, "document.querySelector('#table-progress').textContent.includes('0.875')")
        assert study.report(study.ask(), 1, 0.5)
        until(page, "!!document.querySelector('#curves [data-scene]')")
        assert page.wrong == []


def test_the_list_stays_up_to_date_by_itself_and_leaves_the_visitor_in_peace(browser, base, url):
    first = play(nr.Study(arms(), storage=url, name="first of the list"), 3, hill)
    with opened(browser, base, reduced_motion="reduce") as page:
        page.set_viewport_size({"width": 1200, "height": 6000})
        page.goto(f"{base}/studies")
        settled(page)
        page.set_viewport_size({"width": 1200, "height": 500})
        row = page.locator("tr", has_text="first of the list")
        row.get_by_role("link").focus()
        seen = "document.activeElement.getBoundingClientRect().top"  # whatever grows above it
        where = page.evaluate(seen)
        first.tell(first.ask(), 77.0)
        until(page, "[...document.querySelectorAll('#studies tr')].some(each => each.innerText.includes('77'))")
        assert page.evaluate("document.activeElement.textContent") == "first of the list"
        assert abs(page.evaluate(seen) - where) < 2
        count = page.locator("#studies tbody tr").count()
        row.get_by_role("checkbox").check()
        row.get_by_role("link").focus()
        where = page.evaluate(seen)
        play(nr.Study(arms(), storage=url, name="second of the list"), 1, hill)
        page.locator("tr", has_text="second of the list").wait_for()
        assert page.evaluate("document.activeElement.textContent") == "first of the list"
        assert abs(page.evaluate(seen) - where) < 2
        assert row.get_by_role("checkbox").is_checked()  # what was ticked stays ticked
        status = page.get_by_role("status").filter(has_text="studies")
        assert status.inner_text() == f"{count + 1} studies, newest first."
        page.set_viewport_size({"width": 375, "height": 6000})
        words = "[...document.querySelectorAll('#studies tr')].map(each => each.innerText).join(' ')"
        until(page, f"/second of the list[^]*\\b1 trial\\s/.test({words})")
        first.storage.delete("second of the list")
        page.locator("tr", has_text="second of the list").wait_for(state="detached")
        assert [said for said in page.wrong if "404" not in said] == []  # its last line may have been asked for


def test_a_pause_of_the_server_is_said_and_what_was_there_stays(browser, tmp_path):
    with Served(tmp_path) as served:
        here = f"http://127.0.0.1:{served.port}"
        play(nr.Study(arms(), storage=f"sqlite:///{tmp_path}/nilregret.db", name="live"), 3, hill)
        with opened(browser, here) as page:
            page.goto(at(here, "live"))
            settled(page)
            served.stop()
            page.get_by_text("The server does not answer").wait_for()
            assert "3 answered" in page.locator("#head").inner_text()


@pytest.mark.parametrize("view", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_page_of_the_api_opens_at_an_operation(browser, base, view):
    with opened(browser, base, viewport=view) as page:
        page.goto(f"{base}/docs#ask")
        page.locator("#ask summary").click()
        assert "curl -X POST" in page.locator("#ask pre").first.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.wrong == []


def test_a_picture_is_read_on_where_it_was_left_when_it_is_drawn_anew(browser, base, url):
    study = play(nr.Study(arms(), storage=url, name="read"), 4, hill)
    with opened(browser, base) as page:
        page.goto(at(base, "read"))
        settled(page)
        page.locator("#drawing-progress").focus()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        assert page.locator("#picture-progress .readout").inner_text().startswith("trial 1;")
        before = page.evaluate(picture("progress"))
        study.tell(study.ask(), 0.25)
        until(page, f"before => {picture('progress')} != before", before)
        settled(page)
        assert page.evaluate("document.activeElement.id") == "drawing-progress"
        page.keyboard.press("ArrowRight")
        assert page.locator("#picture-progress .readout").inner_text().startswith("trial 2;")
        assert page.wrong == []


@pytest.mark.parametrize("name", ["..", *(pytest.param(name, marks=pytest.mark.nightly) for name in MORE_NAMES)])
def test_a_study_of_any_name_is_reached_through_the_list(browser, base, url, name):
    play(nr.Study(arms(), storage=url, name=name), 2, hill)
    with opened(browser, base) as page:
        page.goto(f"{base}/studies")
        page.get_by_role("link", name=name, exact=True).wait_for()
        until(page, "() => studies.scrollWidth <= studies.parentElement.clientWidth")
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_role("heading", name=name, exact=True, level=1).wait_for()
        settled(page)
        page.get_by_role("link", name="Trials", exact=True).click()
        page.get_by_role("link", name="1", exact=True).click()
        settled(page)
        assert page.locator("h1").inner_text() == f"Trial 1 of {name}"
        assert page.wrong == []


def test_everything_can_be_reached_from_the_keyboard(browser, base):
    with opened(browser, base) as page:
        page.set_viewport_size({"width": 1200, "height": 6000})  # what is not on the screen is not looked for
        page.goto(f"{base}/studies")
        settled(page)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        for _ in range(90):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "of_arms":
                break
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url("**/of_arms")
        settled(page)
        page.locator("#picture-progress .drawing").focus()
        page.keyboard.press("End")
        said = page.locator("#picture-progress .readout")
        assert said.inner_text().startswith("trial 39;")
        page.keyboard.press("ArrowLeft")
        assert said.inner_text().startswith("trial 38;")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.locator("#table-progress").get_attribute("open") is not None
        assert page.wrong == []


def test_a_map_is_read_from_the_keyboard(browser, base):
    with opened(browser, base) as page:
        page.goto(at(base, "of_a_box", "/explore"))
        settled(page)
        page.locator("#picture-map-0 .drawing").focus()
        page.keyboard.press("ArrowUp")
        said = page.locator("#picture-map-0 .readout").inner_text()
        assert said.startswith("point[0] ")
        assert re.search(r"; reward \S+$", said)


CONTRAST = """names => {
  const style = getComputedStyle(document.documentElement), light = name => {
    const hex = style.getPropertyValue('--' + name).trim();
    const [r, g, b] = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255).map(
      c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return names.map(([one, other]) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  });
}"""


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
def test_light_and_dark_go_by_the_visitor_and_can_be_read(browser, base, scheme):
    with opened(browser, base, color_scheme=scheme) as page:
        page.goto(at(base, "of_arms"))
        settled(page)
        bright = "getComputedStyle(document.body).backgroundColor.match(/\\\\d+/g).map(Number)[0] > 128".replace(
            "\\\\", "\\"
        )
        assert page.evaluate(bright) is (scheme == "light")
        words = [
            (name, ground) for name in ("text", "dim", "accent", "good", "bad", "warn") for ground in ("card", "shade")
        ]
        assert min(page.evaluate(CONTRAST, words)) >= 4.5
        assert min(page.evaluate(CONTRAST, [(name, "card") for name in ("main", "best", "third", "dot")])) >= 3.0
        other = {"light": "dark", "dark": "light"}[scheme]
        button = page.locator("[data-theme-toggle]")
        while page.locator("[data-theme-name]").inner_text() != other:
            button.press("Enter")
        assert page.evaluate(bright) is (other == "light")
        page.reload()
        settled(page)
        assert page.evaluate(bright) is (other == "light")
        assert page.wrong == []


def test_contexts_points_and_constraints_are_chosen_by_hand(browser, base):
    with opened(browser, base) as page:
        page.goto(at(base, "of_contexts", "/explore"))
        settled(page)
        before = page.evaluate(picture("slice-0"))
        page.get_by_label("load", exact=True).fill("0.05")
        page.get_by_label("load", exact=True).press("Enter")
        until(page, f"before => {picture('slice-0')} != before", before)
        page.goto(at(base, "of_a_space", "/explore?p2=0"))
        settled(page)
        assert page.get_by_label("share", exact=True).count() == 0
        page.get_by_label("kind", exact=True).select_option("gated")
        page.get_by_label("share", exact=True).wait_for()
        page.goto(at(base, "of_constraints", "/explore?channel=2"))
        settled(page)
        assert "constraint 2" in page.locator("#picture-slice-0 .summary").inner_text()
        assert page.wrong == []


def test_the_choice_to_compare_with_is_named_by_its_trial(browser, base):
    with opened(browser, base) as page:
        page.goto(at(base, "of_arms", "/worth"))
        settled(page)
        page.get_by_label("Compare with the choice of trial").fill("9999")
        page.get_by_role("button", name="Compare").click()
        page.get_by_role("alert").wait_for()
        assert "There is no trial 9999" in page.get_by_role("alert").inner_text()


def test_pages_have_landmarks_and_names_for_what_hears_them(browser, base):
    with opened(browser, base) as page:
        page.goto(at(base, "of_constraints"))
        settled(page)
        for role in ("banner", "main"):
            assert page.get_by_role(role).count() == 1
        names = page.eval_on_selector_all("section", "all => all.map(each => each.getAttribute('aria-label'))")
        assert all(names)
        assert len(set(names)) == len(names)
        pictures = page.locator("[role=img]").all()
        assert all(len(each.get_attribute("aria-label")) > 20 for each in pictures)
        assert page.locator("html").get_attribute("lang") == "en"
        assert all(each.strip() for each in page.locator("button, a").all_text_contents())


def test_who_has_no_token_is_asked_for_one(browser, base, tmp_path):
    with Served(tmp_path) as served:
        command = ["token", "new", "--role", "reader", "--storage", str(tmp_path / "nilregret.db")]
        made = CliRunner().invoke(main, command, catch_exceptions=False).stdout.strip()
        here = f"http://127.0.0.1:{served.port}"
        with opened(browser, here, viewport=PHONE) as page:
            page.goto(f"{here}/studies")
            page.wait_for_url("**/login**")
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            assert page.wrong == []
            page.get_by_label("Token").fill("nrt_wrong")
            page.get_by_role("button", name="Log in").click()
            page.get_by_role("alert").wait_for()
            page.wrong.clear()  # 401 is what a browser calls an error
            page.get_by_label("Token").fill(made)
            page.keyboard.press("Enter")
            page.wait_for_url(f"{here}/studies")  # `**/studies` would be the form's own address, too
            assert "There is no study yet" in page.locator("main").inner_text()
            page.get_by_role("button", name="Log out").click()
            page.wait_for_url("**/login**")
            assert page.wrong == []


def test_a_drag_zooms_and_a_button_shows_all_again(browser, base):
    with opened(browser, base) as page:
        page.goto(at(base, "of_arms"))
        settled(page)
        drawn = "document.querySelector('#picture-progress canvas').toDataURL()"
        whole = page.evaluate(drawn)
        box = page.locator("#picture-progress .drawing canvas").bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.3)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.8, steps=5)
        page.mouse.up()
        button = page.get_by_role("button", name="Show all again")
        button.wait_for()
        assert page.evaluate(drawn) != whole
        button.click()
        until(page, "!document.querySelector('#picture-progress .reset:not([hidden])')")
        assert page.evaluate(drawn) == whole
        page.locator("#picture-progress .drawing").focus()
        page.keyboard.press("+")
        button.wait_for()
        page.keyboard.press("0")
        until(page, "!document.querySelector('#picture-progress .reset:not([hidden])')")
        assert page.wrong == []


def brushed(page, axis, low, high):
    """Drag along a parallel axis between two shares of its height."""
    page.locator("#drawing-parallel canvas").scroll_into_view_if_needed()
    box = page.locator("#drawing-parallel canvas").bounding_box()
    ends = """([axis, low, high]) => {
      const frame = document.getElementById('drawing-parallel').drawing.frames()[0];
      return [low, high].map(share => [frame.at.x(axis), frame.at.y(share)]);
    }"""
    (x, start), (_, end) = page.evaluate(ends, [axis, low, high])
    page.mouse.move(box["x"] + x, box["y"] + start)
    page.mouse.down()
    page.mouse.move(box["x"] + x, box["y"] + end, steps=4)
    page.mouse.up()


def test_a_range_of_the_parallel_axes_selects_trials(browser, base):
    with opened(browser, base) as page:
        page.goto(at(base, "of_a_space", "/explore"))
        settled(page)
        page.get_by_label("depth from", exact=True).fill("9")
        page.get_by_label("depth from", exact=True).press("Enter")
        page.locator("#selected").get_by_text("No trial fits these filters").wait_for()
        brushed(page, 0, 0.3, 0.6)
        until(page, "document.querySelectorAll('.brush').length === 1")
        assert page.get_by_label("rate from", exact=True).input_value() not in ("", "NaN")
        page.locator("#brush").get_by_role("button", name="All").click()
        until(page, "document.querySelectorAll('.brush').length === 0")
        brushed(page, 2, 0.6, 1.0)
        until(page, "document.getElementById('brush').elements['from.kind'].value > 0")  # the upper options
        assert page.wrong == []


def test_times_are_typed_and_shown_in_the_zone_of_the_reader_and_sent_in_utc(browser, base):
    with opened(browser, base, timezone_id="Asia/Tokyo") as page:  # 9 h ahead
        page.goto(at(base, "of_arms", "/trials?to.asked_at=2025-06-15T15:10:00Z"))
        until(page, "document.querySelector('[name=\"to.asked_at\"]').value === '2025-06-16 00:10'")
        page.locator("[name='to.asked_at']").fill("2025-06-16 00:08")
        page.locator("[name='to.asked_at']").press("Enter")
        page.wait_for_url("**/trials?to.asked_at=2025-06-15T15%3A08%3A00.999Z")
        assert page.locator("time[data-at]").first.text_content().startswith("2025-06-16 00:0")
        page.goto(f"{base}/studies")
        until(page, "/\\(Asia.Tokyo\\)$/.test(document.querySelector('time[data-ago]').title)")
        assert page.wrong == []


def test_rows_and_fields_of_a_new_study_appear_as_they_are_needed(browser, base):
    shown = "[...document.querySelectorAll('.row')].filter(row => row.checkVisibility()).length"
    with opened(browser, base) as page:
        page.goto(f"{base}/new")
        assert page.evaluate(shown) == 1  # contexts are folded away
        page.locator("#n-p-name-0").fill("depth")
        assert page.evaluate(shown) == 2
        assert not page.locator("#n-p-step-0").is_visible()
        page.locator("#n-p-type-0").select_option("int")
        assert page.locator("#n-p-step-0").is_visible()
        assert not page.locator("#n-p-options-0").is_visible()
        assert page.wrong == []


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_no_page_is_wider_than_a_phone(browser, base, scheme):
    from axe_playwright_python.sync_playwright import Axe

    tabs = [at(base, "of_constraints", tab) for tab in TABS]
    others = ("/studies", "/new", "/compare?study=of_arms&study=of_a_box")
    forms = [at(base, "of_a_space", path) for path in ("/actions/add", "/trials/5", "/audit", "/explore")]
    forms += [at(base, "of_stopped_trials", path) for path in ("", "/trials", "/trials/4", "/actions/report")]
    with opened(browser, base, viewport=PHONE, color_scheme=scheme, bypass_csp=True) as page:
        for address in [*tabs, *(base + path for path in others), *forms]:
            page.goto(address)
            settled(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
            assert Axe().run(page).response["violations"] == [], address
