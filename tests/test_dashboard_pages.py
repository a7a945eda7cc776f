"""The dashboard's pages as sent: escaped, without scripts or styles in them, to each caller its own studies alone."""

import html
import json
import re
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from nilregret.serve.auth.tokens import Caller
from nilregret.serve.dashboard.files import address, bytes_of_scripts

from .dashboard import KINDS, MARKUP, PARTS, Pages, arms, hill, play, studies, study_of

ADDRESSES = (*PARTS, "/trials/0")
DOCS = "https://github.com/nilregret/nilregret/tree/main/docs"
FORBIDDEN = {"style", "srcdoc", "formaction"}  # attributes; and all that begin with "on"
VOID = {"meta", "link", "input", "img", "br", "hr"}


pytestmark = pytest.mark.usefixtures("few_draws")


class Checker(HTMLParser):
    """Every tag closed, no script or style in the page, nothing from elsewhere, an id at most once."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.labelled, self.inputs, self.text = [], [], set(), set(), []
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))
        assert self.inputs <= self.labelled

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert not FORBIDDEN & set(given)
        assert not [name for name in given if name.startswith(("on", "hx-on"))]
        assert tag != "style"
        assert tag != "script" or given.get("src", "").startswith("/static/")
        for name in ("src", "href", "action", "hx-get"):
            if given.get(name) == DOCS:  # the one address of another host, which only a reader's click asks for
                continue
            assert given.get(name, "/").startswith(("/", "#", "?")) or given[name] == ""
            assert not given.get(name, "").startswith("//")
        self.ids += [given["id"]] if "id" in given else []
        if tag == "label":
            self.labelled.add(given["for"])
        if tag in ("input", "select") and given.get("type") != "hidden":
            self.inputs.add(given["id"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def pages():
    found = Pages()
    studies(found.storage)
    return found


def at(kind):
    return "/studies/" + quote(MARKUP if kind == "of_markup" else kind, safe="")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ADDRESSES)
def test_every_page_of_every_study_is_clean(pages, kind, part):
    answer = pages.get(at(kind) + part)
    if part == "/trials/0" and kind == "of_no_trial":
        assert answer.status == 404
        return
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    Checker(answer.text)


@pytest.mark.parametrize("kind", ["of_markup", "of_failures", "of_late_answers"])
def test_names_and_reasons_with_markup_are_text(pages, kind):
    for part in (*ADDRESSES, "/trials/0/why", "/trials?state=failed"):
        text = pages.get(at(kind) + part).text
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "<b>a" not in text
    if kind == "of_markup":
        assert MARKUP in "".join(Checker(pages.get(at(kind)).text).text)


@pytest.mark.parametrize("kind", ["of_arms", "of_constraints", "of_a_space", "of_contexts"])
def test_reasons_are_shown(pages, kind):
    text = pages.get(at(kind) + "/trials/3/why").text
    Checker(text)
    assert "chosen" in text


def test_a_score_is_named_in_words(pages):
    text = pages.get(at("of_arms") + "/trials/3/why").text
    assert 'Score <span class="under">larger is better<' in text
    assert "upper confidence bound, larger is better" in text
    assert "expected improvement, its logarithm" in pages.get(at("of_a_space") + "/trials/11/why").text


def test_the_list_has_the_studies_and_the_first_address_leads_there(pages):
    text = pages.get("/studies").text
    Checker(text)
    assert f"{len(KINDS)} studies" in text
    assert all(at(kind) in text for kind in KINDS)
    answer = pages.get("/")
    assert (answer.status, answer.headers["location"]) == (303, "/studies")
    assert "There is no study yet" in Pages().get("/studies").text


def test_what_is_not_there_is_a_page_that_says_so(pages):
    for path in ("/studies/nothing", "/studies/nothing/worth", "/studies/of_arms/trials/40"):
        answer = pages.get(path)
        assert answer.status == 404
        Checker(answer.text)
        assert "There is no" in answer.text
    refused = pages.get("/studies/of_arms/part/worth?baseline=x", hx_request="true")
    assert refused.status == 422
    assert 'role="alert"' in refused.text
    assert "<html" not in refused.text


def test_a_browser_gets_a_page_where_there_is_nothing_and_a_program_json(pages):
    for path in ("/nowhere", "/studies/of_arms/nothing"):
        answer = pages.get(path, accept="text/html,*/*")
        assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
        Checker(answer.text)
        assert 'href="/studies"' in answer.text
        assert "openapi" not in answer.text
        assert json.loads(pages.get(path, accept="application/json").text)["error"]["kind"] == "not_found"
    assert json.loads(pages.get("/v1/nowhere", accept="text/html").text)["error"]["kind"] == "not_found"
    assert "/v1" not in pages.get("/studies/nothing").text


def test_a_tenant_sees_its_own_studies_alone():
    found = Pages()
    study_of("of_arms", found.storage)
    stranger = Pages(found.storage, Caller("other", "admin", "t"))
    assert "There is no study yet" in stranger.get("/studies").text
    for part in ADDRESSES:
        assert stranger.get(at("of_arms") + part).status == 404
    assert stranger.get("/studies/default%2Fof_arms").status == 404


def test_a_head_is_sent_again_only_when_something_has_happened(pages):
    import nilregret as nr

    study = play(nr.Study(arms(), storage=pages.storage, name="live"), 3, hill)
    first = pages.get("/studies/live/part/head").text
    known = re.search(r"head\?known=(\d+)", first)[1]
    assert pages.get(f"/studies/live/part/head?known={known}").status == 204
    study.tell(study.ask(), 0.5)
    again = pages.get(f"/studies/live/part/head?known={known}")
    assert (again.status, again.headers["hx-trigger"]) == (200, "study-changed")
    pages.storage.delete("live")


def test_the_form_brings_pictures_alone_or_all_of_the_part(pages):
    whole = pages.get(at("of_contexts") + "/part/beliefs?c0=0.4&c1=0", hx_request="true", hx_target="beliefs").text
    pictures = pages.get(
        at("of_contexts") + "/part/beliefs?c0=0.4&c1=0", hx_request="true", hx_target="beliefs-pictures"
    ).text
    assert "<form" in whole
    assert "<form" not in pictures
    assert pictures.count("data-scene") == whole.count("data-scene") == 1


def test_static_files_are_kept_for_good_by_their_content(pages):
    answer = pages.get(address("dashboard.js"))
    assert (answer.status, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert "immutable" in answer.headers["cache-control"]
    plain = pages.get("/static/dashboard.css")
    assert "no-cache" in plain.headers["cache-control"]
    assert pages.get("/static/dashboard.css", if_none_match=plain.headers["etag"]).status == 304
    for name in ("vendor/htmx-LICENSE.txt", "favicon.svg"):
        assert pages.get(f"/static/{name}").status == 200
    assert pages.get("/favicon.ico").body[:4] == b"\0\0\1\0"
    for name in ("../pages.py", "%2e%2e/pages.py", "vendor", "", "vendor/../../pages.py"):
        assert pages.get(f"/static/{name}").status == 404


def test_the_scripts_are_small():
    assert bytes_of_scripts() <= 250 * 1024


def test_the_page_of_the_api_has_every_operation_and_schema_of_the_document(pages):
    answer = pages.get("/docs")
    assert answer.status == 200
    text = answer.body.decode()
    assert "<code>Idempotency-Key</code>" in text
    checked = Checker(text)
    document = json.loads(pages.get("/openapi.json").body)
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    assert {each["operationId"] for each in operations} <= set(checked.ids)
    assert {f"schema-{name}" for name in document["components"]["schemas"]} <= set(checked.ids)
    examples = [
        example["value"]
        for each in operations
        for example in each.get("requestBody", {"content": {}})["content"]
        .get("application/json", {})
        .get("examples", {})
        .values()
    ]
    lines = [json.loads(html.unescape(line)) for line in re.findall(r" -d '(.*)'</pre>", text)]
    assert all(example in lines for example in examples)
    assert text.count(" -H 'Content-Type: application/json' -d '") == len(lines)  # Without, each is a 415.
    assert "<form" not in text.partition("<main")[2]  # Nothing can be submitted.
