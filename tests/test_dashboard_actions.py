"""Acting by hand: forms, confirmations, the audit log, pausing, and who is refused."""

import json
import re
from html import unescape
from urllib.parse import urlencode

import pytest

import nilregret as nr
from nilregret.serve.auth.tokens import Caller, Tokens
from nilregret.serve.dashboard.rendering import coded
from nilregret.serve.dashboard.views.forms import ACTIONS
from nilregret.serve.watch.audit import PREFIX
from nilregret.storage import MemoryStorage

from .dashboard import KINDS, MARKUP, Pages, arms, studies
from .service import AT, POLICY, Client, asked, plain
from .test_dashboard_pages import Checker

ADMIN = Caller("default", "admin", "tok")


class Forms(Pages):
    """Sends forms as a browser does: the hidden entries of the page, and what was typed."""

    def __init__(self, storage=None, caller=ADMIN):
        super().__init__(storage, caller)

    def open(self, study, action, **query):
        return self.get(f"/studies/{study}/actions/{action}?{urlencode(query)}")

    def hidden(self, text):
        found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', text)
        return {name: unescape(value) for name, value in found}

    def send(self, study, action, entries):
        return self.post(f"/studies/{study}/actions/{action}", urlencode(entries).encode())

    def post(self, path, body, kind="application/x-www-form-urlencoded", method="POST"):
        """The page that a browser is sent to, or the answer if that is none."""
        answer = self.get(path, method=method, body=body, content_type=kind)
        return self.get(answer.headers["location"]) if answer.status == 303 else answer

    def act(self, study, action, **typed):
        """The page after the confirmation."""
        query = {"trial": typed["trial"]} if "trial" in typed else {}
        first = self.send(study, action, self.hidden(self.open(study, action, **query).text) | typed)
        if first.status != 200:
            return first
        Checker(first.text)
        return self.send(study, action, self.hidden(first.text))

    def log(self, study):
        stored = self.storage.find(study)
        return [text for _, text in sorted(self.storage.notes(stored, PREFIX).items())]


@pytest.fixture
def forms():
    found = Forms()
    nr.Study(arms(), storage=found.storage, name="a").ask(count=3)
    return found


def trial(forms, number):
    return nr.Study.open(storage=forms.storage, name="a").trials[number]


def test_a_reward_is_told_after_a_confirmation_and_is_in_the_log(forms):
    page = forms.open("a", "tell", trial=1)
    Checker(page.text)
    entries = forms.hidden(page.text) | {"trial": "1", "reward": "0.25"}
    asked_for = forms.send("a", "tell", entries)
    assert "Trial 1 gets the reward 0.25." in asked_for.text
    assert trial(forms, 1).state == "pending"  # nothing happens before it is confirmed
    done = forms.send("a", "tell", forms.hidden(asked_for.text))
    assert "Done: " in done.text
    assert trial(forms, 1).reward == 0.25
    (line,) = forms.log("a")
    assert '"token":"tok","action":"tell"' in line
    assert '"outcome":"done"' in line
    again = forms.send("a", "tell", forms.hidden(asked_for.text))  # a double click
    assert "Done: " in again.text
    assert trial(forms, 1).corrected == ()


def test_a_correction_says_the_old_and_the_new_answer(forms):
    forms.act("a", "tell", trial="0", reward="1")
    shown = forms.open("a", "correct", trial=0).text
    assert re.search(r'name="reward" value="1.0"', shown)
    page = forms.send("a", "correct", forms.hidden(shown) | {"reward": "2"})
    assert "The answer of trial 0 was 1 and becomes 2." in page.text
    assert "Done: " in forms.send("a", "correct", forms.hidden(page.text)).text
    assert (trial(forms, 0).reward, len(trial(forms, 0).corrected)) == (2.0, 1)
    refused = forms.act("a", "tell", trial="0", reward="3")
    assert refused.status == 409
    assert 'role="alert"' in refused.text
    assert '"outcome":"done"' not in forms.log("a")[-1]


def test_several_rewards_of_a_trial_are_told_by_their_keys():
    forms, key = Forms(), {"reward-key": "click"}
    assert made_by_form(forms, name="a", arms="0\n1", sticky="1", sticky_days="7", collect="sum", deadline="60").status
    stored = forms.storage.find("a")
    assert json.loads(stored.about)["sticky"] == 604800.0
    assert "Done: " in forms.act("a", "ask").text
    assert 'name="reward-key"' in forms.open("a", "tell").text
    assert "Done: " in forms.act("a", "tell", trial="0", reward="1", **key).text
    assert forms.act("a", "tell", trial="0", reward="2", **key).status == 409
    assert "Done: " in forms.act("a", "correct", trial="0", reward="2", **key).text
    assert "reward <bdi>click</bdi></dt><dd>2, " in forms.get("/studies/a/trials/0").text
    assert 'name="reward-key"' not in forms.open("a", "add").text


def test_failing_giving_up_adding_asking_and_notes(forms):
    assert "Done: " in forms.act("a", "fail", trial="0", reason="<b>no disk").text
    assert "Done: " in forms.act("a", "abandon", trial="1", reason="power cut").text
    added = {"p-arm": "3", "reward": "0.5", "std": "0.25"}
    to_add = forms.send("a", "add", forms.hidden(forms.open("a", "add").text) | added)
    assert "The reward 0.5 with a standard deviation of 0.25 is added at arm 3." in to_add.text
    assert "Done: " in forms.act("a", "add", **added).text
    assert (trial(forms, 0).state, trial(forms, 1).state, trial(forms, 3).arm) == ("failed", "abandoned", 3)
    first = forms.send("a", "ask", forms.hidden(forms.open("a", "ask").text))
    for _ in range(2):  # a double click asks once
        asked_for = forms.send("a", "ask", forms.hidden(first.text)).text
        assert "Done: ask by hand." in asked_for
        assert '<a href="/studies/a/actions/ask">Once more</a>' in asked_for
        assert "<h1>Trial 4 " in asked_for
    assert len(nr.Study.open(storage=forms.storage, name="a").trials) == 5
    assert "Done: " in forms.act("a", "trial-note", trial="2", note="odd <i>").text
    assert "odd &lt;i&gt;" in forms.get("/studies/a/trials/2").text
    to_write = forms.send("a", "note", forms.hidden(forms.open("a", "note").text) | {"note": "<b>of summer"})
    assert "The note of the study becomes: &lt;b&gt;of summer" in to_write.text
    assert "Done: " in forms.act("a", "note", note="<b>of summer").text
    assert "Done: " in forms.act("a", "tags", tags="x, y").text
    page = forms.get("/studies/a").text
    Checker(page)
    assert "&lt;b&gt;of summer" in page
    assert '<bdi class="tag">x</bdi>' in page
    audit = forms.get("/studies/a/audit").text
    Checker(audit)
    assert "&lt;b&gt;no disk" in audit
    assert len(forms.log("a")) >= 8


def test_the_log_says_what_a_token_is_for_to_its_own_tenant_alone(forms):
    store = Tokens(forms.storage)
    about = {tenant: store.made("admin", tenant, about=f"laptop of {tenant}")[1].id for tenant in ("default", "other")}
    for id_ in about.values():  # The second could be there only by a mistake elsewhere.
        Forms(forms.storage, Caller("default", "admin", id_)).act("a", "tags", tags="x, y")
    page = forms.get("/studies/a/audit").text
    Checker(page)
    assert '<bdi class="dim">laptop of default</bdi>' in page
    assert "laptop of other" not in page
    assert "tags: x, y" in page


def test_what_stands_between_backticks_is_shown_as_code():
    assert coded("`<b>` and `x`, a ` alone") == "<code>&lt;b&gt;</code> and <code>x</code>, a ` alone"


def test_a_paused_study_decides_nothing_until_it_goes_on(forms):
    assert "Done: " in forms.act("a", "pause").text
    refused = forms.act("a", "ask")
    assert refused.status == 409
    assert "The study is paused" in refused.text
    assert "Done: " in forms.act("a", "tell", trial="0", reward="1").text
    assert "Done: " in forms.act("a", "resume").text
    assert "Done: " in forms.act("a", "ask").text


def test_a_form_of_older_notes_is_refused(forms):
    stale = forms.hidden(forms.open("a", "note").text)
    assert "Done: " in forms.act("a", "note", note="by another").text
    refused = forms.send("a", "note", stale | {"note": "mine", "confirmed": "yes"})
    assert refused.status == 409
    assert "changed meanwhile" in refused.text
    odd = forms.hidden(forms.open("a", "note").text) | {"seal": "\N{SNOWMAN}"}
    assert forms.send("a", "note", odd).status == 409


@pytest.mark.parametrize(("action", "mine", "theirs"), [
    ("correct", {"reward": "2"}, {"reward": "3"}), ("correct", {"reward": "2"}, {"reward": "1", "std": "0.5"}),
    ("trial-note", {"note": "mine"}, {"note": "theirs"}), ("tags", {"tags": "mine"}, {"tags": "theirs"}),
])  # fmt: skip
def test_a_form_is_refused_where_what_it_showed_has_changed(forms, action, mine, theirs):
    forms.act("a", "tell", trial="0", reward="1")
    number = {} if action == "tags" else {"trial": "0"}
    opened = forms.hidden(forms.open("a", action, **number).text) | number | mine
    confirming = forms.hidden(forms.send("a", action, opened).text)
    assert "Done: " in forms.act("a", action, **number, **theirs).text  # by another
    there = trial(forms, 0)
    for entries in (opened, confirming):  # before and at the confirmation
        refused = forms.send("a", action, entries)
        assert refused.status == 409
        assert "changed meanwhile" in refused.text
    after = trial(forms, 0)
    assert (after.reward, after.std, len(after.corrected)) == (there.reward, there.std, len(there.corrected))
    assert "mine" not in forms.get("/studies/a/trials/0").text + forms.get("/studies/a").text
    assert "Done: " in forms.act("a", action, **number, **mine).text  # opened again
    again = forms.hidden(forms.send("a", action, forms.hidden(forms.open("a", action, **number).text) | mine).text)
    assert "Done: " in forms.send("a", action, again | {"seal": "old"}).text  # a double click: it is so already


def test_a_correction_and_a_note_show_what_is_there_and_ask_for_the_trial_first(forms):
    forms.act("a", "tell", trial="0", reward="0.1", std="0.25", metrics="accuracy=0.5, <i>=2")
    assert trial(forms, 0).metrics == {"accuracy": 0.5, "<i>": 2.0}
    for wrong in ("accuracy", "=1", "accuracy=high", "a=nan"):
        refused = forms.act("a", "correct", trial="0", reward="1", metrics=wrong)
        assert refused.status == 422
        assert re.search("an equals sign and a number|must be a number", unescape(refused.text))
    forms.act("a", "trial-note", trial="0", note="odd")
    forms.act("a", "fail", trial="1", reason="no disk")
    shown = forms.open("a", "correct", trial=0).text
    assert re.search(r'name="reward" value="0.1"', shown)
    assert re.search(r'name="std" value="0.25"', shown)
    assert re.search(r'name="metrics" value="accuracy=0.5, &lt;i&gt;=2.0"', shown)
    assert ">odd</textarea>" in forms.open("a", "trial-note", trial=0).text
    assert re.search(r'name="reward" value=""', forms.open("a", "correct", trial=1).text)
    first = forms.open("a", "correct").text
    assert '<form class="choose" method="get"' in first
    assert 'name="reward"' not in first
    wrong = forms.open("a", "correct", trial=9)
    assert wrong.status == 422
    assert "no trial 9" in wrong.text


def test_a_point_is_added_again_with_other_values_after_a_step_back(forms):
    entries = forms.hidden(forms.open("a", "add").text) | {"p-arm": "3", "reward": "0.5"}
    confirming = forms.send("a", "add", entries)
    assert "Done: " in forms.send("a", "add", forms.hidden(confirming.text)).text
    changed = forms.send("a", "add", entries | {"reward": "0.75"})  # the form of before, from the history
    assert "The reward 0.75 is added" in changed.text
    for _ in range(2):  # a double click adds once
        assert "Done: " in forms.send("a", "add", forms.hidden(changed.text)).text
    assert [each.reward for each in nr.Study.open(storage=forms.storage, name="a").trials][3:] == [0.5, 0.75]
    back = unescape(re.search(r'href="([^"]*)">Change it', changed.text)[1])
    assert re.search(r'name="reward" value="0.75"', forms.get(back).text)


def test_every_answer_to_a_form_is_a_redirection(forms):
    def raw(path, entries):
        return forms.get(path, method="POST", body=urlencode(entries).encode(),
                         content_type="application/x-www-form-urlencoded")  # fmt: skip

    for action, typed in {
        "tell": {"trial": "0", "reward": "1"}, "fail": {"trial": "1", "reason": "x"},
        "add": {"p-arm": "1", "reward": "1"}, "enqueue": {"p-arm": "2"},
        "ask": {}, "note": {"note": "n"}, "tags": {"tags": "t"}, "pause": {}, "resume": {}, "retire-arm": {"arm": "1"},
        "archive": {}, "unarchive": {}, "rename": {"name": "\N{SNOWMAN} b"},
    }.items():  # fmt: skip
        first = raw(f"/studies/a/actions/{action}", forms.hidden(forms.open("a", action).text) | typed)
        assert first.status == 303
        confirming = forms.get(first.headers["location"])
        assert confirming.status == 200
        done = raw(f"/studies/a/actions/{action}", forms.hidden(confirming.text))
        assert done.status == 303
        Checker(forms.get(done.headers["location"]).text)
    first = raw("/new", {"name": "x", "arms": "0\n1"})
    assert first.status == 303
    assert raw("/new", forms.hidden(forms.get(first.headers["location"]).text)).status == 303
    long = {"name": "y", "arms": "\n".join(f"{i}.5" for i in range(999))}  # longer than an address may be
    assert raw("/new", forms.hidden(raw("/new", long).text)).status == 303
    assert len(forms.storage.find("y").policy) > 3000


def test_a_link_of_another_site_does_not_open_a_confirmation(forms):
    for query in ({}, {"seal": "guessed"}):
        page = forms.open("a", "tell", trial=0, reward=5, confirmed="yes", **query)
        assert (page.status, "Yes: tell" in page.text) == (409 if query else 200, False)


def test_some_parameters_of_a_point_to_try_first_are_left_to_the_policy(forms):
    space = nr.Space(heat=nr.Int(1, 9), kind=nr.Choice("a", "b"), extra=nr.when("kind", "b", nr.Float(0, 1)))
    study = nr.Study(nr.auto(space), storage=forms.storage, name="s")
    page = forms.open("s", "enqueue").text
    assert '<option value="" selected>as the policy chooses</option>' in page
    assert "1 to 9, or empty: as the policy chooses" in page
    assert "Done: " in forms.act("s", "enqueue", **{"p-0": "4", "p-1": "", "p-2": ""}).text
    assert "Done: " in forms.act("s", "enqueue", **{"p-0": "", "p-1": "1", "p-2": "0.5"}).text
    assert [entry.named for entry in study.enqueued] == [{"heat": 4}, {"kind": "b", "extra": 0.5}]
    empty = forms.act("s", "enqueue", **{"p-0": "", "p-1": "", "p-2": ""})
    assert (empty.status, "No parameter is filled in" in empty.text) == (422, True)


def test_a_point_to_try_first_is_enqueued_counted_and_marked(forms):
    assert (
        "The next trial that may be is of arm 3."
        in forms.send("a", "enqueue", forms.hidden(forms.open("a", "enqueue").text) | {"p-arm": "3"}).text
    )
    assert "to try first" not in forms.get("/studies/a").text
    assert "Done: " in forms.act("a", "enqueue", **{"p-arm": "3"}).text
    assert "to try first: 1" in forms.get("/studies/a").text
    assert '"enqueue"' in forms.log("a")[-1]
    refused = forms.act("a", "enqueue", **{"p-arm": "3"})
    assert (refused.status, "is tried once" in refused.text) == (422, True)
    assert "Done: " in forms.act("a", "ask").text
    assert trial(forms, 3).arm == 3
    assert "enqueued" in forms.get("/studies/a/trials").text
    assert "Asked for by `enqueue`" in forms.get("/studies/a/trials/3/why").text
    assert "to try first" not in forms.get("/studies/a").text


def test_a_study_is_renamed_archived_and_an_arm_retired(forms):
    assert "Done: " in forms.act("a", "retire-arm", arm="4").text
    assert [arm.number for arm in nr.Study.open(storage=forms.storage, name="a").arms if arm.retired] == [4]
    assert "Done: " in forms.act("a", "archive").text
    done = forms.act("a", "rename", name="b c")
    assert "Done: " in forms.act("b%20c", "unarchive").text
    assert 'href="/studies/b%20c"' in done.text
    assert forms.get("/studies/b%20c").status == 200
    assert forms.get("/studies/a").status == 404


def test_a_point_is_typed_by_its_parameters():
    forms = Forms()
    space = nr.Space(rate=nr.Float(1e-4, 1, log=True), n=nr.Int(1, 9), kind=nr.Choice("a", "b"),
                     share=nr.when("kind", "b", nr.Float(0, 1)))  # fmt: skip
    contexts = nr.Space(load=nr.Float(0, 1))
    nr.Study(nr.auto(space), storage=forms.storage, name="s")
    typed = {"p-0": "0.01", "p-1": "3", "p-2": "1", "p-3": "0.5", "reward": "-2"}
    assert "Done: " in forms.act("s", "add", **typed).text
    assert nr.Study.open(storage=forms.storage, name="s").trials[0].parameters == {
        "rate": 0.01, "n": 3, "kind": "b", "share": 0.5,
    }  # fmt: skip
    nr.Study(arms(context=contexts), storage=forms.storage, name="c")
    assert "Done: " in forms.act("c", "ask", **{"c-0": "0.25"}).text
    assert nr.Study.open(storage=forms.storage, name="c").trials[0].context_parameters == {"load": 0.25}
    unknown = nr.Space(load=nr.Float(0, 1, unknown=True), os=nr.Choice("a", "b", unknown=True))
    nr.Study(arms(context=unknown), storage=forms.storage, name="u")
    assert "Done: " in forms.act("u", "ask", **{"c-0": "", "c-1": ""}).text
    assert "Done: " in forms.act("u", "ask", **{"c-0": "1", "c-1": "1"}).text
    assert [trial.context_parameters for trial in nr.Study.open(storage=forms.storage, name="u").trials] == [
        {"load": None, "os": None}, {"load": 1.0, "os": "b"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"p-0": "2"}, "way has no option 2"), ({"p-0": "-1"}, "way is '-1'"), ({"p-0": "-5"}, "way is '-5'"),
        ({"p-0": ""}, "way is ''"), ({"p-0": "0", "c-0": "7"}, "day has no option 7"),
        ({"p-0": "0", "c-0": "-3"}, "day is '-3'"),
    ],
)  # fmt: skip
def test_an_option_that_there_is_not_is_refused(typed, said):
    forms = Forms()
    policy = nr.auto(nr.Space(way=nr.Choice("a", "b")), context=nr.Space(day=nr.Choice("mon", "tue", "wed")))
    nr.Study(policy, storage=forms.storage, name="s")
    page = forms.act("s", "add", **({"c-0": "0", "reward": "1"} | typed))
    assert page.status == 422
    assert said in unescape(page.text)
    assert len(nr.Study.open(storage=forms.storage, name="s").trials) == 0


def test_a_point_of_many_parameters_and_options_is_added():
    forms = Forms()
    space = nr.Space(**{f"x{i}": nr.Float(0, 1) for i in range(45)}, way=nr.Choice(*range(600)))
    nr.Study(nr.auto(space), storage=forms.storage, name="s")
    typed = {f"p-{i}": "0.5" for i in range(45)} | {"p-45": "599", "reward": "1"}
    assert "Done: " in forms.act("s", "add", **typed).text
    assert nr.Study.open(storage=forms.storage, name="s").trials[0].parameters["way"] == 599


def test_long_notes_are_refused_and_tags_with_commas_are_kept(forms):
    refused = forms.act("a", "note", note="x" * 10_001)
    assert refused.status == 422
    assert "at most 10,000 are kept" in refused.text
    with Client(forms.storage) as client:
        tags = ["a,b", 'the "best"', "plain"]
        client.run(client.send("PATCH", "/v1/studies/a", {"tags": tags}))
        shown = re.search(r'name="tags"[^>]*value="([^"]*)"', forms.open("a", "tags").text)
        assert "Done: " in forms.act("a", "tags", tags=unescape(shown[1])).text
        assert client.run(client.send("PATCH", "/v1/studies/a", {}))[1]["tags"] == tags
    assert "Done: " in forms.act("a", "tags", tags='x\ny, "z').text


def test_keys_of_other_alphabets_are_kept_apart(forms):
    entries = forms.hidden(forms.open("a", "ask").text) | {"confirmed": "yes"}
    for letter in ("\u00e9", "\u00fc"):
        assert "Done: " in forms.send("a", "ask", entries | {"key": letter * 10}).text
    assert len(nr.Study.open(storage=forms.storage, name="a").trials) == 5


@pytest.mark.parametrize("role", ["reader", "decider"])
def test_only_admins_see_and_send_forms(role):
    """Roles are the gate's: here the gate is asked what it lets in."""
    from nilregret.serve.auth.tokens import needed

    for path in ("/studies/a/actions/tell", "/studies/a/audit", "/v1/studies/a/audit", "/new"):
        assert needed("GET", path) == "admin"
    for method, path in (("POST", "/studies/a/actions/tell"), ("PATCH", "/v1/studies/a"),
                         ("PUT", "/v1/studies/a/trials/0/note")):  # fmt: skip
        assert needed(method, path) == "admin"
    found = Pages(caller=Caller("default", role, "t"))
    nr.Study(arms(), storage=found.storage, name="a").ask()
    assert "/actions/" not in found.get("/studies/a").text + found.get("/studies/a/trials/0").text


def test_forms_of_another_study_action_or_tenant_are_refused(forms):
    nr.Study(arms(), storage=forms.storage, name="b").ask()
    entries = forms.hidden(forms.open("a", "tell").text) | {"trial": "0", "reward": "1", "confirmed": "yes"}
    for study, action in (("b", "tell"), ("a", "correct")):
        assert forms.send(study, action, entries).status == 409
    stranger = Forms(forms.storage, Caller("other", "admin", "t"))
    assert stranger.send("a", "tell", entries).status == 404
    assert stranger.open("a", "tell").status == 404
    forms.storage.delete("a")
    nr.Study(arms(), storage=forms.storage, name="a").ask()
    assert forms.send("a", "tell", entries).status in (404, 409, 503)  # another study of that name
    assert trial(forms, 0).state == "pending"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{}"), ("text/plain", b"a=b"), ("multipart/form-data; boundary=x", b"--x--"),
        ("application/x-www-form-urlencoded", b"\xff=1"), ("application/x-www-form-urlencoded", b"a=%ff"),
        ("application/x-www-form-urlencoded", b"seal=1&seal=2"), ("application/x-www-form-urlencoded", b"a&b&&="),
        ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % i for i in range(500))),
        ("application/x-www-form-urlencoded", b"a=" + b"x" * 70_000), ("application/x-www-form-urlencoded", b""),
    ],
)  # fmt: skip
def test_bodies_that_are_no_form_are_refused(forms, kind, body):
    assert forms.post("/studies/a/actions/tell", body, kind).status in (400, 409, 415)
    assert forms.log("a") == []


@pytest.mark.parametrize(
    ("action", "typed", "said"),
    [
        ("tell", {"trial": "9", "reward": "1"}, "no trial 9"), ("tell", {"trial": "-1", "reward": "1"}, "whole number"),
        ("tell", {"trial": "0", "reward": "12,5"}, "decimal point"),
        ("tell", {"trial": "0", "reward": "nan"}, "number"),
        ("tell", {"trial": "0", "reward": "1", "std": "-1"}, "std"), ("fail", {"trial": "0"}, "Reason is missing"),
        ("add", {"p-arm": "99", "reward": "1"}, "arm"), ("add", {"p-arm": "x", "reward": "1"}, "whole number"),
        ("rename", {"name": " "}, "missing"), ("retire-arm", {"arm": "77"}, "arm"),
    ],
)  # fmt: skip
def test_nonsense_comes_back_with_a_sentence_and_what_was_typed(forms, action, typed, said):
    page = forms.act("a", action, **typed)
    assert page.status in (404, 422)
    assert 'role="alert"' in page.text
    assert said in unescape(page.text)
    for value in typed.values():
        assert f'value="{value}"' in page.text


def test_an_action_cut_off_by_a_kill_is_told_as_such(forms, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    page = forms.send("a", "tell", forms.hidden(forms.open("a", "tell").text) | {"trial": "0", "reward": "1"})
    monkeypatch.setattr("nilregret.serve.dashboard.pages.actions.called", killed)
    with pytest.raises(KeyboardInterrupt):
        forms.send("a", "tell", forms.hidden(page.text))
    assert "not known: the server ended or stopped waiting" in forms.get("/studies/a/audit").text
    assert trial(forms, 0).state == "pending"


@pytest.fixture(scope="module")
def every_kind():
    """Studies that are looked at alone."""
    found = Forms()
    studies(found.storage)
    return found


@pytest.mark.parametrize("action", ACTIONS)
def test_every_form_of_every_study_is_clean(every_kind, action):
    found = every_kind
    for kind in KINDS:
        name = "%3Cscript%3Ealert(1)%3Cimg src=x onerror=alert(2)%3E" if kind == "of_markup" else kind
        name = name.replace(" ", "%20")
        page = found.open(name, action)
        assert page.status == 200, (kind, page.text)
        Checker(page.text)
        assert MARKUP not in page.text
    assert len(KINDS) > 10


def test_a_policy_that_chooses_the_fidelity_is_asked_without_it():
    forms = Forms()
    policy = nr.auto(nr.Space(x=nr.Float(0, 1)), fidelity=nr.Fidelity("rows", 10, 1000))
    nr.Study(policy, storage=forms.storage, name="a")
    assert "rows" not in forms.open("a", "ask").text
    assert "Trial 0" in forms.act("a", "ask").text
    assert trial(forms, 0).context_parameters == {"rows": 10}
    assert "trial = study.ask()" in forms.get("/studies/a/settings").text
    forms.act("a", "add", **{"p-0": "0.5", "c-0": "1000", "reward": "1"})
    assert trial(forms, 1).context_parameters == {"rows": 1000}


def test_the_api_changes_and_logs_the_same():
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(POLICY)})
        status, said = client.run(client.send("PATCH", AT, {"paused": True, "tags": ["x"]}))
        assert (status, said["paused"], said["tags"]) == (200, True, ["x"])
        status, said = client.post(f"{AT}/decisions", {})
        assert (status, said["error"]["kind"]) == (409, "paused")
        assert client.run(client.send("PATCH", AT, {"paused": False}))[0] == 200
        asked(client)
        assert client.put(f"{AT}/trials/0/note", {"note": "odd"})[0] == 200
        assert client.put(f"{AT}/trials/7/note", {"note": "odd"})[0] == 404
        status, said = client.get(f"{AT}/audit")
        assert [entry["action"] for entry in said["entries"]] == ["note on a trial", "update", "update", "make"]
        assert client.get(f"{AT}/audit", limit=1)[1]["more"] is True
        assert client.run(client.send("PATCH", AT, {"tags": ["x" * 61]}))[0] == 422
        assert client.run(client.send("PATCH", AT, {"name": " "}))[0] == 422
        assert client.run(client.send("PATCH", AT, {"name": "new"}))[0] == 200
        assert client.get("/v1/studies/new")[0] == 200


def test_a_retry_of_a_decision_is_answered_while_the_study_is_paused():
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(POLICY)})
        first = client.post(f"{AT}/decisions", {}, key="k")
        client.run(client.send("PATCH", AT, {"paused": True}))
        assert client.post(f"{AT}/decisions", {}, key="k")[1] == first[1]


def made_by_form(forms, **typed):
    first = forms.post("/new", urlencode(typed).encode())
    Checker(first.text)
    if first.status != 200:
        return first
    body = urlencode(forms.hidden(first.text)).encode()
    return forms.get("/new", method="POST", body=body, content_type="application/x-www-form-urlencoded")


def test_a_study_is_made_by_the_form_as_by_the_api():
    forms = Forms()
    Checker(forms.get("/new").text)
    typed = {
        "name": "oven & co", "goal": "minimize", "seed": "7", "p-name-0": "heat", "p-type-0": "float", "p-low-0": "1",
        "p-high-0": "100", "p-log-0": "1", "p-name-1": "pan", "p-type-1": "choice", "p-options-1": "iron, glass",
        "p-name-2": "lid", "p-type-2": "int", "p-low-2": "0", "p-high-2": "1", "p-when-2": "pan = glass",
        "p-name-3": "vent", "p-type-3": "float", "p-low-3": "0", "p-high-3": "1", "p-when-3": "lid=1",
        "c-name-0": "load", "c-type-0": "int", "c-low-0": "0", "c-high-0": "9", "answers": "late", "deadline": "60",
        "on_deadline": "reward", "default_reward": "5",
    }  # fmt: skip
    shown = forms.post("/new", urlencode(typed).encode()).text
    assert "curl -X PUT" in shown
    assert "from nilregret.client import Client" in shown
    assert forms.storage.find("oven & co") is None  # until it is confirmed
    done = made_by_form(forms, **typed)
    assert (done.status, done.headers["location"]) == (303, "/studies/oven%20%26%20co/settings")
    stored = forms.storage.find("oven & co")
    space = nr.Space(
        heat=nr.Float(1, 100, log=True), pan=nr.Choice("iron", "glass"), lid=nr.when("pan", "glass", nr.Int(0, 1)),
        vent=nr.when("lid", 1, nr.Float(0, 1)),
    )  # fmt: skip
    expected = nr.auto(space, context=nr.Space(load=nr.Int(0, 9, unknown=True)), answers="late")
    assert (stored.policy, stored.goal, stored.seed) == (expected.to_json(), "minimize", 7)
    assert made_by_form(forms, name="a", arms="0\n0.5\n1").status == 303
    assert made_by_form(forms, name="b", arms="0", policy='{"algorithm": "auto", "noise": 0.1}').status == 303


@pytest.mark.parametrize(
    ("typed", "policy"),
    [
        ({"p-name-0": "a b", "p-type-0": "int", "p-low-0": "0", "p-high-0": "64", "p-step-0": "16", "seed": "3"},
         lambda: nr.auto(nr.Space(**{"a b": nr.Int(0, 64, step=16)}))),
        ({"p-name-0": "a", "p-type-0": "float", "p-low-0": "0", "p-high-0": "1", "where": " a <= 0.5\n\na**2 <= 0.1 "},
         lambda: nr.auto(nr.Space(a=nr.Float(0, 1)).where("a <= 0.5", "a ** 2 <= 0.1"))),
        ({"p-name-0": "a", "p-type-0": "float", "p-low-0": "0", "p-high-0": "1", "p-step-0": "0.1", "seed": "3"},
         lambda: nr.auto(nr.Space(a=nr.Float(0, 1, step=0.1)))),
        ({"arms": "0\n1", "reward": "bernoulli", "propensities": "1", "c-name-0": "os", "c-type-0": "choice",
          "c-options-0": "a, b"},
         lambda: nr.auto(nr.Arms([[0.0], [1.0]]), reward="bernoulli",
                         context=nr.Space(os=nr.Choice("a", "b", unknown=True)))),
        ({"p-name-23": "x", "p-type-23": "float", "p-low-23": "0", "p-high-23": "1", "grid": "9", "constraints": "2",
          "sense": "on_average", "noise": "0.5", "goal": "minimize"},
         lambda: nr.auto(nr.Space(x=nr.Float(0, 1)).grid(9), noise=0.5, constraints=nr.OnAverage(count=2))),
        ({"arms": "0\n1", "on_deadline": "silence", "constraints": "1"}, None),
        ({"arms": "0\n1", "sticky": "1", "sticky_days": "7", "collect": "sum", "deadline": "60"},
         lambda: nr.auto(nr.Arms([[0.0], [1.0]]))),
        ({"arms": "0", "policy": arms(3).to_json()}, None), ({"policy": arms(3).to_json()}, lambda: arms(3)),
    ],
)  # fmt: skip
def test_the_program_that_the_form_shows_makes_the_same_study(typed, policy, monkeypatch):
    """Where the form does not fit the service refuses it in a sentence."""
    forms, asked_for = Forms(), []
    answer = made_by_form(forms, name="it's", **typed)
    assert answer.status == (422 if "type" in typed.get("policy", "") and "arms" in typed else 303), answer.text
    if policy is None:
        return
    shown = forms.post("/new", urlencode({"name": "it's", **typed}).encode()).text
    program = unescape(re.findall(r'aria-label="Python">(.*?)</pre>', shown, re.S)[0])

    class Client:
        def __init__(self, base):
            assert base == "http://test"

        def create(self, name, policy, *, goal="maximize", seed=0, propensities=False, **more):
            assert more in ({}, {"sticky": 604800.0, "reward": "sum", "deadline": 60.0})
            asked_for.append((name, policy.to_json(), goal, seed, propensities))

    monkeypatch.setattr("nilregret.client.Client", Client)
    exec(program, {})
    stored = forms.storage.find("it's")
    about = "propensities" in stored.about
    assert asked_for == [("it's", stored.policy, stored.goal, stored.seed, about)]
    assert stored.policy == policy().to_json()


def test_parts_of_the_form_that_are_filled_are_open():
    text = Forms().post("/new", urlencode({"name": "x", "seed": "4", "c-name-0": "os"}).encode()).text
    Checker(text)
    assert re.findall(r'id="(n-fold-\w+)" open', text) == ["n-fold-contexts", "n-fold-more"]


FLOAT = {"p-name-0": "a", "p-type-0": "float", "p-low-0": "0", "p-high-0": "1"}


def test_a_form_that_is_refused_at_the_end_keeps_what_was_typed():
    forms = Forms()
    typed = {"name": "x", "goal": "minimize", **FLOAT}
    assert made_by_form(forms, **typed).status == 303
    refused = made_by_form(forms, **typed | {"seed": "3"})
    assert (refused.status, forms.hidden(refused.text)) == (409, {})
    assert re.search(r'name="p-high-0" value="1"', refused.text)
    assert '<option value="minimize" selected>' in refused.text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({}, "needs a name"), ({"name": "x"}, "missing"), ({"name": "x", "p-name-0": "a"}, "no type"),
        ({"name": "x", "p-name-0": "a", "p-type-0": "float", "p-low-0": "1"}, "must be a number"),
        ({"name": "x", "arms": "1,x"}, "must be a number"), ({"name": "x", "policy": "["}, "no JSON object"),
        ({"name": "x", "arms": "1", "seed": "-"}, "whole number"), ({"name": " ", "arms": "1"}, "needs a name"),
        ({"name": "x", **FLOAT, "p-when-0": "b = 1"}, "a row above"),
        ({"name": "x", **FLOAT, "p-when-0": "1"}, "a row above"),
        ({"name": "x", **FLOAT, "p-low-0": "250", "p-high-0": "120"}, "low <= high"),
        ({"name": "x", **FLOAT, "p-step-0": "0.3"}, "in steps of 0.3 does not meet 1"),
        ({"name": "x", "arms": "1", "sticky": "1", "sticky_days": "-7"}, "it must lie in (0, 1e10]"),
        ({"name": "x", "arms": "1", "collect": "sum"}, "deadline</code> is missing"),
    ],
)  # fmt: skip
def test_nonsense_in_the_form_of_a_study_is_answered_by_a_sentence(typed, said):
    answer = made_by_form(Forms(), **typed)
    assert answer.status == 422
    assert said in unescape(answer.text)
