"""Studies side by side: what differs, who is ahead, and what pairs of the same seed say."""

import html
import re
from urllib.parse import urlencode

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.numerals import numeral
from nilregret.serve.auth.tokens import Caller
from nilregret.serve.dashboard.views.compared import compared_view, facts_of

from .dashboard import KERNEL, KINDS, MARKUP, Pages, arms, marks, play, studies
from .test_dashboard_pages import Checker


def at(*names):
    return "/compare?" + urlencode([("study", name) for name in names])


def words(text):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def made(policy, name, *, seed=0, rounds=30, shift=0.0, storage=None):
    rng = np.random.default_rng(seed)
    study = nr.Study(policy, seed=seed, storage=storage, name=name)
    return play(study, rounds, lambda _: shift + 0.1 * rng.normal())


@pytest.fixture(scope="module")
def pages():
    found = Pages()
    studies(found.storage)
    return found


def test_two_studies_of_any_kind_can_be_compared(pages):
    kinds = [MARKUP if kind == "of_markup" else kind for kind in KINDS]
    for one, other in zip(kinds, kinds[1:] + kinds[:1], strict=True):
        answer = pages.get(at(one, other))
        assert answer.status == 200, words(answer.text)
        Checker(answer.text)
        assert "<script>alert" not in answer.text


def test_a_form_asks_for_studies_and_too_many_are_refused(pages):
    assert "Name two to 6 studies" in words(pages.get("/compare").text)
    assert "Name two to 6 studies" in words(pages.get(at("of_arms", "of_arms")).text)
    refused = pages.get(at(*list(KINDS)[:7]))
    assert refused.status == 422
    assert "at most 6 are compared" in words(refused.text)
    assert pages.get(at("of_arms", "nothing")).status == 404
    stranger = Pages(pages.storage, Caller("other", "admin", "t"))
    assert stranger.get(at("of_arms", "of_a_box")).status == 404
    assert "of_arms" not in stranger.get("/compare").text


def test_who_is_ahead_is_told_after_equally_many_answers():
    first, second = made(arms(), "first", rounds=40, shift=1.0), made(arms(), "second", rounds=10, shift=-1.0)
    found = compared_view([facts_of(study, study.name, now=0.0) for study in (first, second)])
    best = max(trial.reward for trial in first.trials[:10])
    assert found["pictures"][0]["summary"].endswith(f"After 10 answers each, first is ahead with {best:.4g}.")
    values = marks(found["pictures"][0], "second")[0]["y"]
    assert values[9] == pytest.approx(max(trial.reward for trial in second.trials), rel=1e-5)
    assert values[10:] == [None] * 30


def test_settings_that_differ_are_told_and_no_others():
    first, second = made(arms(), "first"), made(arms(delta=0.05), "second", seed=1)
    found = dict(compared_view([facts_of(study, study.name, now=0.0) for study in (first, second)])["settings"])
    assert found["seed"] == ["0", "1"]
    assert len(found) == 2  # and delta


def test_pairs_of_the_same_seed_give_an_interval_and_are_named():
    one = [made(arms(), f"one {seed}", seed=seed, shift=0.5) for seed in range(3)]
    other = [made(arms(delta=0.05), f"other {seed}", seed=seed) for seed in range(3)]
    facts = [facts_of(study, study.name, now=0.0) for study in (*one, *other)]
    (said,) = compared_view(facts)["pairs"]
    assert said.startswith("0.5 an answer (")
    assert "3 pairs: one 0 less other 0, one 1 less other 1, one 2 less other 2." in said
    assert compared_view([facts[0], facts[3]])["pairs"] == []  # Every study has seed 0 unless it is told another.
    assert compared_view([facts[0], facts[4]])["pairs"] == []


def test_only_studies_of_one_task_are_paired_and_none_is_left_out_in_silence():
    one = [made(arms(), f"one {seed}", seed=seed, shift=0.5) for seed in range(2)]
    other = [made(arms(delta=0.05), f"other {seed}", seed=seed) for seed in range(2)]
    facts = [facts_of(study, study.name, now=0.0) for study in (*one, *other)]
    assert compared_view([*facts[:3], facts[3]._replace(task="another")])["pairs"] == []
    again = facts_of(made(arms(), "again", shift=5.0), "again", now=0.0)
    said = compared_view([again, *facts])["pairs"]
    assert said == ["again and one 0 have one policy and one seed, so none of them is paired."]
    tasks = {facts_of(nr.Study(policy, goal=goal), "s", now=0.0).task for policy, goal in (
        (arms(), "maximize"), (arms(), "minimize"), (nr.gp_ucb(nr.Arms.grid(0, 2, 9), KERNEL, noise=0.1), "maximize"),
    )}  # fmt: skip
    assert len(tasks) == 3


def test_a_run_of_plays_counts_its_plays():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 3), KERNEL, noise=0.3, switching="lazy"))
    for _ in range(40):
        trial = study.ask()
        study.tell(trial, [trial.point[0]] * trial.repeats)
    told = facts_of(study, "told", now=0.0)
    assert told.plays.tolist() == [trial.times for trial in study.trials]
    assert told.plays.max() > 1
    runs = told._replace(rewards=np.array([0.0, 1.0]), plays=np.array([1.0, 3.0]))
    assert (
        compared_view([runs, runs])["rows"][0] | {"mean": "0.75", "latest": "1"}
        == compared_view([runs, runs])["rows"][0]
    )
    other = runs._replace(policy="other", rewards=np.array([0.5, 0.0]), plays=np.array([2.0, 1.0]))
    pairs = [each._replace(seed=seed) for each in (runs, other) for seed in (0, 1)]
    (said,) = compared_view(pairs)["pairs"]
    assert said.startswith("0.3333 an answer (0.3333 to 0.3333")  # (0 + 2 * 1 - 2 * 0.5) / 3


def test_goals_that_differ_are_a_caution():
    one, other = made(arms(), "one"), made(arms(), "other")
    facts = [facts_of(one, "one", now=0.0), facts_of(other, "other", now=0.0)._replace(goal="minimize")]
    assert "maximise and others minimise" in compared_view(facts)["caution"]


@pytest.fixture(scope="module")
def clicks():
    """The page of a study that records its probabilities: the third arm is the best."""
    found, rng = Pages(), np.random.default_rng(5)
    policy = nr.gp_ts(nr.Arms.grid(0, 1, 4), KERNEL, reward="bernoulli", v=0.6).using(explore=nr.slots.Uniform(0.4))
    study = nr.Study(policy, propensities=True, storage=found.storage, name="shop")
    play(study, 600, lambda trial: float(rng.random() < (0.1, 0.2, 0.3, 0.8)[trial.arm]))
    nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 4), KERNEL, noise=0.5), storage=found.storage, name="other")
    return found


def evaluated(pages, name="shop", **query):
    return pages.get(f"/studies/{name}/part/evaluation?{urlencode(query)}", hx_request="true")


def test_the_old_rule_is_evaluated_on_the_log(clicks):
    answer = evaluated(clicks, policy="0")
    Checker(answer.text)
    said = words(answer.text)
    assert answer.status == 200
    assert "The other policy would have been worse: the difference is" in said
    expected = nr.evaluate(nr.Study.open(storage=clicks.storage, name="shop"), 0)
    assert f"{numeral(expected.value)} a decision" in said
    assert expected.overlap == 1.0  # The study has a floor under all arms, whatever the mean of the weights is.
    assert "as far as the log shows, all of the other policy's choices could have been made here" in said
    assert "The other policy would have been better" in words(evaluated(clicks, policy="best").text)
    own = [0.1, 0.1, 0.1, 0.7]  # near to what the study did
    assert "Which of the two earns more is not known yet" in words(evaluated(clicks, policy=str(own)).text)


def test_the_policy_of_another_study_is_replayed_on_the_log(clicks):
    answer = evaluated(clicks, like="other")
    assert answer.status == 200, words(answer.text)
    assert "the difference is" in words(answer.text)
    assert evaluated(clicks, like="nothing").status == 404
    assert evaluated(Pages(clicks.storage, Caller("other", "admin", "t")), policy="0").status == 404


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"policy": "9"}, "9"), ({"policy": "x"}, "write uniform or best"), ({"policy": "[1"}, "write uniform or best"),
        ({"policy": "[" * 9000}, "write uniform or best"), ({"policy": "0", "low": "x"}, "must be a number"),
        ({"policy": "0", "estimator": "x"}, "no estimator"), ({"policy": "0", "low": "nan"}, "reward"),
        ({"policy": "0", "low": "1", "high": "0"}, "reward_range"), ({"policy": '{"type": "no"}'}, "policy"),
        ({"policy": "[0.5, 0.5]"}, "policy"), ({"policy": '{"0": 2}'}, "policy"),
    ],
)  # fmt: skip
def test_nonsense_in_the_form_is_answered_by_a_sentence(clicks, query, said):
    answer = evaluated(clicks, **query)
    assert answer.status == 422
    assert 'role="alert"' in answer.text
    assert said in words(answer.text)


def test_a_study_without_probabilities_says_how_to_record_them(pages):
    assert 'put with "propensities": true' in words(evaluated(pages, "of_arms").text)


def test_studies_of_other_sizes_or_goals_have_pictures_of_their_own():
    def told(name, size, goal="maximize"):
        study = nr.Study(nr.auto(nr.Box([0], [size])), goal=goal)
        for i in range(3):
            study.add([0.1 * i * size], size * (1.0 + i))
        return facts_of(study, name, now=1e9)

    found = compared_view([told("a", 1.0), told("b", 1e12), told("c", 20.0), told("d", 1.0, "minimize")])
    drawn = [[each["label"] for each in marks(picture)] for picture in found["pictures"]]
    assert drawn == [["a", "c"], ["b"], ["d"]]


def test_settings_that_differ_are_in_words_and_numbers_are_short():
    made = (
        nr.auto(nr.Box([0], [1])),
        nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, lengthscale=0.1 + 0.2), noise=0.1),
    )
    found = compared_view([facts_of(nr.Study(policy), name, now=1e9) for policy, name in zip(made, "ab", strict=True)])
    settings = dict(found["settings"])
    assert settings["kernel, lengthscale"][1] == "0.3"
    assert not any("{" in value or "policy:" in name for name, values in settings.items() for value in values)
