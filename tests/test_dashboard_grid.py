"""The grid of trials: sorted and filtered as plain Python does it, kept up to date, downloaded, and hard to confuse."""

import csv
import io
import json
import shlex
from urllib.parse import parse_qsl, quote

import numpy as np
import pytest

import nilregret as nr
from nilregret.errors import InvalidInput
from nilregret.serve.auth.tokens import Caller
from nilregret.serve.dashboard.views.columns import columns_of
from nilregret.serve.dashboard.views.grid import as_csv, as_json, grid_view, selected, wanted
from nilregret.serve.dashboard.views.health import delays, health
from nilregret.serve.dashboard.views.settings import settings
from nilregret.serve.dashboard.views.standing import standing
from nilregret.storage import MemoryStorage

from .dashboard import KERNEL, KINDS, MARKUP, Clock, Pages, arms, play, studies, study_of
from .service import Client

NONSENSE = [
    "sort=nothing", "sort=", "descending=2&sort=reward", "from.reward=NaN", "from.reward=x", "to.nothing=1",
    "from.reason=1", "is.state=lost", "is.reward=1", "state=lost", "page=0", "page=x", "page=1000000000",
    "page=%D9%A1", "show=nothing", "from.asked_at=yesterday", "from.told_at=9999999-01-01", "sort=" + "a" * 3000,
    "has.reward=x", "has.nothing=x",
]  # fmt: skip
ALLOWED = ("sort=",)  # An empty entry counts as none.


@pytest.fixture(scope="module")
def made():
    return studies()


def numbers(study, *query):
    columns = columns_of(study)
    return selected(columns, wanted(columns, query)).tolist()


def mixed(seed, rounds=60, storage=None, name="mixed"):
    """A study with every state, options of several types, and inactive parameters."""
    rng = np.random.default_rng(seed)
    space = nr.Space(
        rate=nr.Float(0.001, 1, log=True), depth=nr.Int(1, 4), kind=nr.Choice("a", "b", 1, True, None),
        share=nr.when("kind", "b", nr.Float(0, 1)), reward=nr.Float(0, 1),
    )  # fmt: skip
    study = nr.Study(nr.auto(space), seed=seed, storage=storage, name=name, clock=Clock())
    study.quiet = True
    for _ in range(rounds):
        trial, luck = study.ask(), rng.random()
        if luck < 0.6:
            study.tell(trial, round(float(rng.normal()), 1))
        elif luck < 0.8:
            study.fail(trial, f"=cmd {rng.integers(3)}")
        elif luck < 0.9:
            study.abandon(trial, "gone")
    return study


@pytest.mark.parametrize("seed", range(4))
def test_the_grid_sorts_and_filters_as_plain_python_does(seed):
    study, rng = mixed(seed, rounds=40), np.random.default_rng(seed)
    trials, options = list(study.trials), ["a", "b", 1, True, None]
    read = {
        "rate": lambda trial: trial.parameters["rate"], "share": lambda trial: trial.parameters.get("share"),
        "parameters.reward": lambda trial: trial.parameters["reward"], "reward": lambda trial: trial.reward,
        "asked_at": lambda trial: trial.asked_at, "told_at": lambda trial: trial.told_at,
    }  # fmt: skip
    for key, value in read.items():
        known = [value(trial) for trial in trials if value(trial) is not None]
        low, high = sorted(rng.choice(known, 2).tolist()) if len(known) > 1 else (-1.0, 1.0)
        inside = [t for t in trials if value(t) is not None and low <= value(t) <= high and t.state == "observed"]
        found = numbers(study, (f"from.{key}", repr(low)), (f"to.{key}", repr(high)), ("state", "observed"))
        assert sorted(found) == [trial.number for trial in inside]
        for down in (False, True):
            ranked = sorted((t for t in trials if value(t) is not None), key=value, reverse=down)
            wanted_order = [t.number for t in ranked] + [t.number for t in trials if value(t) is None]
            assert numbers(study, ("sort", key), ("descending", str(int(down)))) == wanted_order
    for place, option in enumerate(options):
        same = [t.number for t in trials if t.parameters["kind"] is option or t.parameters["kind"] == option]
        same = [n for n in same if type(trials[n].parameters["kind"]) is type(option)]
        found = grid_view(study, [("is.kind", name_of(study, place))])
        assert sorted(numbers(study, ("is.kind", name_of(study, place)))) == same
        assert found["count"] == len(same)
        assert sorted(numbers(study, ("from.kind", str(place)), ("to.kind", str(place)))) == same


def name_of(study, place):
    return columns_of(study).layout["kind"].names()[place]


def test_columns_kept_from_before_are_those_of_a_fresh_look():
    study = mixed(7, rounds=10)
    for _ in range(4):
        kept = columns_of(study)
        for key in kept.layout:
            kept.array(key)
        pending = [trial for trial in study.trials if trial.state == "pending"]
        study.tell(pending[0] if pending else study.ask(), 0.5)
        study.tell(0, 1.5, revise=True) if study.trials[0].state == "observed" else None
        study.ask()
        found = columns_of(study)
        assert found is columns_of(study)
        for key, column in found.layout.items():
            np.testing.assert_array_equal(found.array(key), column.values(study.trials[:]))


def test_a_download_has_what_is_shown_and_no_formula(tmp_path):
    study, path = mixed(3), tmp_path / "trials"

    def written(write, study, query):
        write(study, query, path)
        return path.read_text()

    query = [("state", "failed"), ("sort", "rate")]
    table = list(csv.DictReader(io.StringIO(written(as_csv, study, query))))
    assert [int(row["number"]) for row in table] == numbers(study, *query)
    assert {row["reason"][:5] for row in table} == {"'=cmd"}
    assert [each["number"] for each in json.loads(written(as_json, study, query))] == numbers(study, *query)
    assert written(as_csv, nr.Study(arms()), []).strip() == "number"
    assert json.loads(written(as_json, nr.Study(arms()), [])) == []
    pages = Pages()
    mixed(3, 8, pages.storage)
    assert pages.get("/studies/mixed/trials.csv?sort=rate").headers["content-disposition"].startswith("attachment")
    assert pages.get("/studies/mixed/trials.json").status == 200
    assert pages.get("/studies/mixed/trials.xml").status == 404
    assert pages.get("/studies/mixed/trials.csv?sort=nothing").status == 422


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_download_is_sent_in_parts(ending):
    pages = Pages()
    study = nr.Study(arms(), storage=pages.storage, name="a")
    for _ in range(3):
        study.fail(study.ask(), "no disk " * 5000)
    body = pages.get(f"/studies/a/trials.{ending}").body
    assert len(body) > 120_000
    assert max(pages.parts) <= 1 << 16


@pytest.mark.parametrize("query", NONSENSE)
def test_nonsense_is_refused_in_a_sentence(query):
    pages = Pages()
    mixed(1, 6, pages.storage)
    for path in ("trials", "part/grid"):
        answer = pages.get(f"/studies/mixed/{path}?{query}", hx_request="true")
        assert answer.status == (200 if query in ALLOWED else 422)
        assert ('role="alert"' in answer.text) == (query not in ALLOWED)
    with pytest.raises(InvalidInput):
        wanted(columns_of(mixed(1, 2)), [("sort", "a" * 3000)])


def test_a_live_grid_keeps_still_where_nothing_it_shows_has_changed():
    pages = Pages()
    study = play(nr.Study(arms(), storage=pages.storage, name="live"), 3, lambda trial: 0.5)
    first = pages.get("/studies/live/part/grid?state=observed").text
    again = first.split('hx-get="')[1].split('"')[0].replace("&amp;", "&")
    assert pages.get(again).status == 204
    study.tell(study.ask(), 0.25)
    assert pages.get(again).status == 200
    moved = pages.get("/studies/live/part/grid?sort=reward", hx_current_url="http://h/studies/live/trials?page=1")
    assert moved.headers["hx-replace-url"] == "/studies/live/trials?sort=reward&descending=0"


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_of_every_study_can_be_sorted_and_chosen(made, kind):
    study = made[kind]
    for key in columns_of(study).layout:
        assert sorted(numbers(study, ("sort", key))) == list(range(len(study.trials)))
        assert {"number", key} == {head["key"] for head in grid_view(study, [("show", key)])["heads"]}


def test_a_parameter_may_have_the_name_of_a_column():
    study = mixed(0, 5)
    assert {"reward", "parameters.reward"} <= set(columns_of(study).layout)
    assert quote("parameters.reward") in grid_view(study, [("sort", "parameters.reward")])["query"]


def test_what_says_least_is_left_out_first_and_one_click_shows_it():
    space = nr.Space(**{f"rate_of_group_{i}": nr.Float(0, 1) for i in range(8)})
    pages = Pages()
    study = nr.Study(nr.auto(space), storage=pages.storage, name="many")
    study.tell(study.ask(), 0.5)
    shown = grid_view(study, [])
    keys = [head["key"] for head in shown["heads"]]
    assert "asked_at" not in keys
    assert {"reward", "told_at"} < set(keys)
    text = pages.get("/studies/many/trials").text
    assert "rate_<wbr>of_<wbr>group_<wbr>0" in text
    assert "/studies/many/trials?show=number&amp;" in text
    every = grid_view(study, parse_qsl(shown["every"]))
    assert ["asked_at" in [head["key"] for head in every["heads"]], every["left_out"]] == [True, 0]


def test_a_study_settles_when_one_more_trial_gains_next_to_nothing():
    rng, study = np.random.default_rng(0), nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 4), KERNEL, noise=0.1))
    said = []
    for rounds in (5, 300):
        play(study, rounds, lambda trial: trial.point[0] + 0.1 * rng.normal())
        said.append(standing(study, now=study.trials[-1].told_at + 1.0))
    assert [each["at"]["state"] for each in said] == ["active", "settled"]
    assert "from 20 answers on" in said[0]["settled"].sentence
    assert "next to nothing" in said[1]["next"]["said"]
    assert standing(study, now=study.trials[-1].told_at + 90_000.0)["at"]["said"] == "silent for 25 h"


def test_health_says_that_all_is_well_only_where_it_is():
    pages = Pages()
    kinds = [study_of(kind, pages.storage).name for kind in ("of_arms", "of_failures", "of_late_answers")]
    said = {kind: pages.get(f"/studies/{kind}/health").text for kind in kinds}
    assert ["All is well" in text for text in said.values()] == [True, False, False]
    assert "4 of 4 trials failed, 4 of the latest 4." in said["of_failures"]
    assert "4 times: <bdi>no disk" in said["of_failures"]
    assert "Waiting for answers" in said["of_late_answers"]


def test_health_counts_failures_among_answers():
    study = nr.Study(arms(), name="some failed")
    for i in range(30):
        trial = study.ask()
        study.fail(trial, "disk full" if i else "no reason") if i % 5 == 0 else study.tell(trial, 0.5)
    failures = health(study, now=study.trials[-1].told_at)["failures"]
    assert failures["sentence"] == "6 of 30 trials failed, 4 of the latest 20."
    assert failures["reasons"] == [("disk full", 5), ("no reason", 1)]


@pytest.mark.parametrize(("seconds", "unit", "value"), [(30.0, "s", 90.0), (3600.0, "h", 3.0), (86_400.0, "days", 3.0)])
def test_delays_are_drawn_in_the_unit_in_which_they_are_said(seconds, unit, value):
    now = [0.0]
    study = nr.Study(arms(), clock=lambda: now[0])
    for trial in study.ask(count=4):
        study.tell(trial, 0.5)
        now[0] += seconds
    (panel,) = delays(study, now=now[0])["picture"]["scene"]["panels"]
    assert panel["y"]["label"] == f"time to the answer, {unit}"
    assert panel["marks"][0]["y"][-1] == value


def test_settings_list_the_arms_and_only_arms_can_be_retired():
    pages = Pages(caller=Caller("default", "admin", None))
    study = nr.Study(arms(3), storage=pages.storage, name="goods")
    study.add_arms([[0.25]], names=["scarf"])
    study.retire_arm(0)
    study.tell(study.ask(among=[[0.25]]), 0.5)
    text = pages.get("/studies/goods/settings").text
    assert "<bdi>scarf</bdi></td><td>(0.25)</td><td>active</td>" in text
    assert text.count("<td>retired</td>") == 1
    assert 'from.arm=3&amp;to.arm=3">1</a>' in text
    assert "gp_ucb (score: Upper confidence bound, kernel: Squared exponential, confidence: Finite bayes)" in text
    assert "/actions/retire-arm" in text
    nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))), storage=pages.storage, name="space")
    text = pages.get("/studies/space/settings").text
    assert "/actions/ask" in text
    assert "/actions/retire-arm" not in text
    assert 'id="arms"' not in text


def test_settings_have_code_that_runs(tmp_path):
    storage = f"sqlite:///{tmp_path}/it's.db"
    study = nr.Study(arms(constraints=nr.EveryRound(count=2)), storage=storage, name="a'b")
    stored = study.replica.handle.study
    found = settings(study, "a'b", stored, "http://127.0.0.1:8000", storage)
    code = {each["title"]: each["code"] for each in found["clients"]}
    exec(code["Python, on the same storage"], {})
    assert study.trials[0].reward == 1.0
    words = shlex.split(code["Command line"].splitlines()[1])
    assert words == ["nilregret", "tell", storage, "a'b", "NUMBER", "1.0", "--constraint", "0.0", "--constraint", "0.0"]
    assert json.loads(shlex.split(code["curl"].splitlines()[1])[-1]) == {"reward": 1.0, "constraints": [0.0, 0.0]}


def visited():
    """A study with events, units that keep their arm, and facts of several types."""
    clicks = nr.auto(nr.Arms(range(3)), reward="bernoulli")
    study = nr.Study(clicks, sticky=True, clock=Clock())
    for i in range(12):
        facts = {"page": f"/p{i % 3}", "price": i / 2, "new": i % 2 == 0} if i % 4 else None
        study.tell(study.ask(unit=f"user-{i % 5}" if i % 3 else None, event=f"visit-{i}", facts=facts), i % 2)
    return study


def test_visits_have_columns_that_are_searched_and_filtered():
    study = visited()
    trials = study.trials
    view = grid_view(study, [])
    heads = [head["key"] for head in view["heads"]]
    assert heads[-8:-2] == ["event", "unit", "kept", "facts.page", "facts.price", "facts.new"]
    assert numbers(study, ("has.event", "visit-1"), ("descending", "0")) == [1, 10, 11]
    assert numbers(study, ("has.facts.page", "/p1"), ("descending", "0")) == [
        trial.number for trial in trials if trial.facts.get("page") == "/p1"
    ]
    unit = trials[2].unit
    assert numbers(study, ("from.unit", str(unit)), ("to.unit", str(unit)), ("descending", "0")) == [
        trial.number for trial in trials if trial.unit == unit
    ]
    assert numbers(study, ("from.facts.price", "3"), ("descending", "0")) == [6, 7, 9, 10, 11]
    fields = {field["key"]: field["has"] for field in grid_view(study, [("has.event", "visit-1")])["fields"]}
    assert (fields["event"], "reason" in fields) == ("visit-1", False)
    assert "user-" not in repr(view)


def test_the_page_of_a_trial_says_who_visits():
    storage = MemoryStorage()
    clicks = nr.auto(nr.Arms(range(3)), reward="bernoulli")
    study = nr.Study(clicks, sticky=86400.0, storage=storage, name="shop", clock=Clock())
    study.ask(unit="user-1", event=MARKUP, facts={"page": MARKUP})
    study.ask(unit="user-1")
    pages = Pages(storage)
    text = pages.get("/studies/shop/trials/1").text
    assert "keeps the arm of" in text
    assert 'href="/studies/shop/trials/0"' in text
    assert 'href="/studies/shop/trials?from.unit=0&amp;to.unit=0"' in text
    assert "script&gt;" in pages.get("/studies/shop/trials/0").text
    assert MARKUP not in pages.get("/studies/shop/trials/0").text
    assert "a unit keeps its arm for 24 h" in pages.get("/studies/shop/settings").text
    assert MARKUP not in pages.get("/studies/shop/trials?has.event=script").text
    assert pages.get("/studies/shop/trials?has.event=script").status == 200


def test_the_page_of_a_trial_says_which_rewards_came():
    storage = MemoryStorage()
    with Client(storage) as client:
        body = {"arms": [[0], [1]], "deadline": 3600, "reward": "sum"}
        client.put("/v1/studies/shop", body)
        client.post("/v1/studies/shop/decisions", {"event": "a"})
        client.put("/v1/studies/shop/decisions/a/reward", {"reward": 25, "key": "<b>order"})
    text = Pages(storage).get("/studies/shop/trials/0").text
    assert "reward <bdi>&lt;b&gt;order</bdi></dt><dd>25, " in text
    assert (
        "then their sum is told, and without any the trial is given up"
        in Pages(storage).get("/studies/shop/settings").text
    )
