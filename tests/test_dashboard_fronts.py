"""Studies with several objectives on the dashboard: the front, volumes, columns, forms, and pages of one reward."""

import csv
import html
import json
import re
from dataclasses import replace
from urllib.parse import urlencode

import numpy as np
import pytest

import nilregret as nr
from nilregret.serve.dashboard.views.compared import compared_view, facts_of
from nilregret.serve.dashboard.views.front import MOST_ROWS, front_view
from nilregret.serve.dashboard.views.grid import grid_view
from nilregret.serve.dashboard.views.pictures import short
from nilregret.serve.dashboard.views.progress import channels_of, progress
from nilregret.serve.dashboard.views.standing import standing
from nilregret.serve.dashboard.views.status import status
from nilregret.serve.dashboard.views.trials import explanation_view, trial_record

from .dashboard import both, marks, of_five_objectives, play, study_of
from .test_dashboard_actions import Forms
from .test_dashboard_pages import Checker

pytestmark = pytest.mark.usefixtures("few_draws")
NOW = 1_750_000_600.0
SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
GOALS = ("minimize", "maximize")


def words(text):
    """What a page says, with one space between words."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


@pytest.fixture(scope="module")
def front():
    return study_of("of_a_front")


@pytest.fixture
def forms():
    made = Forms()
    study = nr.Study(nr.auto(SPACE, objectives=("loss", "recall")), goal=GOALS, storage=made.storage, name="f")
    study.ask(count=2)
    return made


# -- the overview --------------------------------------------------------------------------------------------------


def test_the_hypervolume_stands_in_place_of_the_best_reward(front):
    at, found = status(front, now=NOW), front.front_values()
    assert (at["best"], at["told"], at["why_no_best"]) == (None, None, "")
    assert at["front"]["volume"] == short(front.hypervolume())
    corner = "loss = {}, recall = {} (which follows from the answers)".format(*map(short, found.reference))
    assert at["front"]["against"] == corner
    best = [found.trials[i].number for i in (found.mean[:, 0].argmin(), found.mean[:, 1].argmax())]
    assert [(each["name"], each["number"]) for each in at["front"]["leaders"]] == list(
        zip(("loss", "recall"), best, strict=True)
    )
    said = standing(front, now=NOW)
    assert not said["settled"].settled
    assert "no rule holds yet for when several objectives are enough" in said["settled"].sentence
    assert said["next"]["path"] == "/trials?state=pending" or "Go on asking" in said["next"]["said"]
    later = standing(front, now=NOW + 5e6)["next"]
    assert "give up" in later["said"]


def test_the_table_has_the_front_and_only_weights_recommend_a_trial(front):
    found, plain = front.front_values(), front_view(front, {})["front"]
    assert [row["number"] for row in plain["rows"]] == [trial.number for trial in found.trials]
    first = plain["rows"][0]["values"][1]
    assert first["mean"] == short(float(found.mean[0, 1]))
    assert first["between"] == f"{short(float(found.lower[0, 1]))} to {short(float(found.upper[0, 1]))}"
    assert plain["chosen"] is None
    assert not marks(plain["pictures"][0], "recommended")
    for weights in ({"w-0": "1", "w-1": "2"}, {"w-1": "3"}):
        chosen = front_view(front, weights)["front"]
        best = front.best(weights=[float(weights.get(key, 0)) for key in ("w-0", "w-1")])
        assert chosen["chosen"]["number"] == best.number
        assert [row["number"] for row in chosen["rows"] if row["chosen"]] == [best.number]
        assert len(marks(chosen["pictures"][0], "recommended")) == 1


@pytest.mark.parametrize(
    ("query", "key", "said"),
    [
        ({"w-0": "much"}, "w-0", "The weight of loss is 'much': it must be a number, such as 0.5."),
        ({"w-0": "1", "w-1": "-2"}, "w-1", "The weight of recall is -2: it must be at least 0."),
        ({"w-0": "0"}, "", "all 0"),
    ],
)
def test_a_weight_that_cannot_be_used_is_named_beside_its_field(front, query, key, said):
    found = front_view(front, query)["front"]
    assert found["chosen"] is None
    wrong = {field["key"]: field["wrong"] for field in found["fields"]} | {"": found["refused"]}
    assert said in wrong.pop(key)
    assert not any(wrong.values())


def test_progress_is_the_volume_of_the_front_or_a_number_that_was_chosen(front):
    volume = progress(front)
    (line,) = marks(volume, "volume of the front")
    assert np.isclose(line["y"][-1], front.hypervolume(), rtol=1e-3)
    assert (np.diff(line["y"]) >= 0.0).all()
    assert f"measured from {status(front, now=NOW)['front']['against']}" in volume["summary"]
    assert re.search(r"; (the last trial made it grow|it last grew by .* ago)\.$", volume["summary"])
    offered = channels_of(front, "1")
    assert [each["text"] for each in offered][:3] == ["hypervolume of the front", "loss", "recall"]
    assert [each["chosen"] for each in offered][:3] == [False, False, True]
    recall = progress(front, key="1")
    assert recall["scene"]["panels"][0]["y"]["label"] == "recall"
    with pytest.raises(nr.errors.InvalidInput, match=re.escape("There is no channel '9' here: there are 0, 1, 2")):
        progress(front, key="9")
    assert channels_of(study_of("of_arms"), "") == []


def test_three_objectives_have_lines_and_a_picture_of_each_pair():
    policy = nr.auto(SPACE, objectives=3)
    study = play(nr.Study(policy), 5, lambda trial: (*both(trial), float(trial.point[0])))
    lines, *pairs = front_view(study, {"w-0": "1"})["front"]["pictures"]
    assert "up is better" in lines["summary"]
    assert [each["title"] for each in pairs] == [
        "objective 1 and objective 2", "objective 1 and objective 3", "objective 2 and objective 3",
    ]  # fmt: skip


def test_a_long_front_is_cut_off_in_the_table():
    study = nr.Study(nr.auto(nr.Arms.grid(0, 1, 150), objectives=2))
    for arm in range(150):
        study.add([arm / 149], (arm / 150, 1.0 - arm / 150))
    found = front_view(study, {})["front"]
    assert len(found["rows"]) + found["left_out"] == len(study.front())
    assert len(found["rows"]) <= MOST_ROWS
    json.dumps(found, allow_nan=False)


# -- trials --------------------------------------------------------------------------------------------------------


def test_each_objective_is_a_column_that_sorts_filters_and_is_exported(front):
    heads = {head["key"]: head["label"] for head in grid_view(front, [])["heads"]}
    assert [heads[key] for key in ("reward", "std", "objectives.1", "constraints.0")][::2] == ["loss", "recall"]
    found = grid_view(front, [("sort", "objectives.1"), ("from.objectives.1", "0.5")])
    told = [front.trials[number].values[1] for number in found["numbers"]]
    assert told == sorted(told)
    assert len(told) == sum(trial.values is not None and trial.values[1] >= 0.5 for trial in front.trials)
    pages = Forms()
    study_of("of_a_front", pages.storage)
    exported = json.loads(pages.get(f"/studies/of_a_front/trials.json?from.objectives.1={min(told)}").text)
    assert sorted(row["values"][1] for row in exported) == told
    head, *rows = csv.reader(pages.get("/studies/of_a_front/trials.csv?state=observed").text.splitlines())
    place = head.index("values.recall")
    assert {float(row[place]) for row in rows} == {trial.values[1] for trial in front.trials if trial.values}


def test_a_trial_says_the_value_of_each_objective_by_name(front):
    first = trial_record(front, 0)
    assert first["reward"] == "loss = 0.3 \N{PLUS-MINUS SIGN} 0.1, recall = 0.4"
    assert first["corrected"][0]["reward"].startswith("loss = ")
    assert trial_record(front, 9)["reward"] == ""


def test_a_decision_is_explained_for_each_objective(front):
    number = max(trial.number for trial in front.trials if trial.state == "observed")
    why, found = front.explain(number, draws=0), explanation_view(front.explain(number, draws=0))
    assert (found["names"], len(found["bars"])) == (("loss", "recall"), 2)
    recall = why.chosen.others[0]
    assert found["candidates"][0]["values"][1] == (
        short(recall.mean),
        f"{short(recall.lower)} to {short(recall.upper)}",
    )
    assert found["bars"][1][0]["said"].startswith(short(recall.mean))
    assert found["why"] == why.why


# -- forms ---------------------------------------------------------------------------------------------------------


def test_all_objectives_are_told_corrected_and_added_by_name(forms):
    fields = forms.open("f", "tell", trial="0").text
    assert {"loss", "recall", "Noise of recall (standard deviation)"} <= set(re.findall("<label [^>]*>([^<]*)", fields))
    asking = forms.send("f", "tell", forms.hidden(fields) | {"trial": "0", "reward-0": "0.5", "reward-1": "12"})
    assert "Trial 0 gets loss = 0.5, recall = 12." in words(asking.text)
    assert "Done: " in forms.act("f", "tell", trial="0", **{"reward-0": "0.5", "reward-1": "12"}).text
    typed = {"reward-0": "0.25", "reward-1": "10", "std-1": "0.5"}
    assert 'value="12.0"' in forms.open("f", "correct", trial="0").text
    assert "Done: " in forms.act("f", "correct", trial="0", **typed).text
    assert "Done: " in forms.act("f", "add", **{"p-0": "0.5", "p-1": "0.5", "reward-0": "1", "reward-1": "2"}).text
    study = nr.Study.open(storage=forms.storage, name="f")
    assert [trial.values for trial in study.trials] == [(0.25, 10.0), None, (1.0, 2.0)]
    assert study.trials[0].others[0].std == 0.5
    assert "loss = 0.25, recall = 10 ± 0.5" in words(forms.get("/studies/f/trials/0").text)


@pytest.mark.parametrize(
    ("typed", "key", "said"),
    [
        ({"reward-0": "0.5"}, "reward-1", "recall is '': it must be a number"),
        ({"reward-0": "x", "reward-1": "1"}, "reward-0", "loss is 'x': it must be a number"),
        ({"reward-0": "1", "reward-1": "1", "std-1": "?"}, "std-1", "Noise of recall (standard deviation) is '?'"),
    ],
)
def test_a_sentence_stands_beside_the_wrong_value(forms, typed, key, said):
    hidden = forms.hidden(forms.open("f", "tell", trial="0").text)
    answer = forms.send("f", "tell", hidden | {"trial": "0"} | typed)
    assert answer.status == 422
    Checker(answer.text)
    assert f'aria-invalid="true" aria-errormessage="e-{key}"' in answer.text
    beside = re.search(f'<span class="wrong" role="alert" id="e-{key}">(.*?)</span>', answer.text)
    assert said in words(beside[1])
    assert "Records what came of a trial." in words(answer.text)
    assert 'class="alert"' not in answer.text


def new(**more):
    rows = {"p-name-0": "x", "p-type-0": "float", "p-low-0": "0", "p-high-0": "1"}
    two = {"o-name-0": "loss", "o-goal-0": "minimize", "o-name-1": "recall", "o-goal-1": "maximize"}
    return {"name": "two", "goal": "maximize"} | rows | two | more


def test_a_study_with_several_objectives_is_made_by_the_form():
    forms = Forms()
    shown = forms.post("/new", urlencode(new()).encode())
    assert shown.status == 200
    assert '"goal": [ "minimize", "maximize" ]' in words(shown.text)
    assert "nr.auto(domain, objectives=['loss', 'recall'])" in words(shown.text)
    made = forms.post("/new", urlencode(new(confirmed="yes")).encode())
    assert "minimize loss, maximize recall" in words(made.text)
    assert "study.tell(trial, (1.0, 1.0))" in words(made.text)
    study = nr.Study.open(storage=forms.storage, name="two")
    assert (study.goals, study.policy.objective_names) == (GOALS, ("loss", "recall"))


def test_a_late_answer_is_replaced_by_a_value_of_each_objective():
    waits = {"deadline": "60", "on_deadline": "reward", "default_reward": "9, 0.5"}
    forms = Forms()
    made = forms.post("/new", urlencode(new(confirmed="yes", **waits)).encode())
    assert "then 9, 0.5 is told instead" in words(made.text)
    refused = Forms().post("/new", urlencode(new(**waits | {"default_reward": "9, x"})).encode())
    assert "The reward in place of a missing one is 'x': it must be a number" in words(refused.text)


@pytest.mark.parametrize(
    ("more", "key", "said"),
    [
        ({"o-name-1": ""}, "o-name-1", "This objective has no name"),
        ({"o-goal-1": ""}, "o-goal-1", "This objective has no goal"),
        ({"o-name-1": "loss"}, "o-name-1", "Another objective has this name"),
        ({"o-goal-1": "both"}, "o-goal-1", "There is no goal 'both'."),
        ({"o-name-1": "", "o-goal-1": ""}, "o-name-0", "One objective alone is a reward"),
    ],
)
def test_objectives_that_cannot_be_used_are_named_beside_their_field(more, key, said):
    answer = Forms().post("/new", urlencode({name: value for name, value in new(**more).items() if value}).encode())
    assert answer.status == 422
    Checker(answer.text)
    beside = re.search(f'<span class="wrong" role="alert" id="e-{key}">(.*?)</span>', answer.text)
    assert said in words(beside[1])


# -- lists, comparisons, and pages of one reward -------------------------------------------------------------------


def test_the_list_names_the_objectives_of_each_study():
    pages = Forms()
    nr.Study(nr.auto(SPACE, objectives=("loss", "recall")), goal=GOALS, storage=pages.storage, name="f")
    of_five_objectives(lambda policy, **more: nr.Study(policy, storage=pages.storage, name="five", **more))
    nr.Study(nr.auto(SPACE), storage=pages.storage, name="single")
    for number, policy in enumerate(('{"type": "Pareto", "of": 3}', '"Pareto" {')):  # of parts that are not known here
        pages.storage.find_or_make(f"other {number}", policy=policy, goal="minimize", seed=0, about="{}")
    said = words(pages.get("/studies").text)
    assert "2 objectives lowest loss , highest recall" in said
    assert "5 objectives lowest" in said
    assert said.count("none yet") == 3


def named(name, rounds, objectives=("loss", "recall"), **more):
    study = nr.Study(nr.auto(SPACE, objectives=objectives), goal=GOALS, name=name, **more)
    return play(study, rounds, both)


def test_volumes_are_compared_against_one_reference():
    one, other = named("one", 6), named("other", 3, seed=1)
    found = compared_view([facts_of(study, study.name, now=NOW) for study in (one, other)])
    (picture,) = found["pictures"]
    assert picture["title"] == "Hypervolume so far"
    corner = re.search(r"measured from loss = (\S+), recall = (\S+) for all", picture["summary"])
    reference = [float(end) for end in corner.groups()]
    ends = [[value for value in mark["y"] if value is not None][-1] for mark in marks(picture)]
    assert np.allclose(ends, [study.hypervolume(reference) for study in (one, other)], rtol=0.02)
    assert [row["volume"] for row in found["rows"]] != ["-", "-"]
    assert [row["count"] for row in found["rows"]] == [len(one.front()), len(other.front())]
    assert found["caution"] == ""


def test_a_reference_that_all_studies_were_given_is_that_of_the_comparison():
    made = []
    for name in ("one", "other"):
        policy = nr.auto(SPACE, objectives=("loss", "recall"))
        policy = replace(policy, constraints=replace(policy.constraints, reference=(2.0, -1.0)))
        made.append(play(nr.Study(policy, goal=GOALS, name=name), 3, both))
    found = compared_view([facts_of(study, study.name, now=NOW) for study in made])
    assert "measured from loss = 2, recall = -1 for all" in found["pictures"][0]["summary"]


def test_studies_of_other_objectives_are_not_compared():
    studies = [named("one", 3), named("other", 3, objectives=("loss", "size")), study_of("of_losses")]
    found = compared_view([facts_of(study, study.name, now=NOW) for study in studies])
    assert found["caution"].startswith("These studies have not the same objectives")
    assert [picture["title"] for picture in found["pictures"]] == ["Hypervolume so far"] * 2 + ["Best so far"]
    empty = nr.Study(nr.auto(SPACE, objectives=2), name="empty")
    none = compared_view([facts_of(each, each.name, now=NOW) for each in (empty, study_of("of_no_front"))])
    assert {picture["kind"] for picture in none["pictures"]} <= {"none", "lines"}


def test_pages_of_one_reward_say_so():
    pages = Forms()
    study_of("of_a_front", pages.storage)
    assert "is a number of one reward, and this study has 2 objectives" in words(
        pages.get("/studies/of_a_front/part/worth").text
    )
    assert "is a number of one reward" in words(pages.get("/studies/of_a_front/part/evaluation?policy=uniform").text)
