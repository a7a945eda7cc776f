"""Slates: several places decided together, what their answers teach, and how they are on record."""

import json
import re
from itertools import permutations

import numpy as np
import pytest

import nilregret as nr
from nilregret.errors import InvalidInput, NoRegretWarning, TrialError
from nilregret.slots.slates import NOTHING, Looked, Place, looked_at
from nilregret.study.direction import state_after
from nilregret.study.lessons import last_look

ARMS, CONTEXT = nr.Arms(range(6)), nr.Space(h=nr.Float(0, 24), d=nr.Choice("p", "q"))
NOON = {"h": 12.0, "d": "p"}
MODELS = [None, "cascade", "positions", nr.slots.Positions((1.0, 0.6, 0.3))]


def policy(slate=None, *, contexts=True, **more):
    return nr.auto(ARMS, context=CONTEXT if contexts else None, reward="bernoulli", slate=slate, **more)


def made(slate=None, *, contexts=True, storage=None, **more):
    where = {} if storage is None else {"storage": storage}
    return nr.Study(policy(slate, contexts=contexts), seed=0, propensities=True, **where, **more)


def played(study, slates, seed=0, shuffled=False):
    rng = np.random.default_rng(seed)
    for _ in range(slates):
        context = {"h": float(rng.uniform(0, 24)), "d": "p"} if study.policy.context else None
        page = study.ask(context, count=3, slate=True)
        told = [
            (trial, float(rng.random() < (1.0, 0.6, 0.3)[trial.place] * (0.05 + 0.1 * trial.arm))) for trial in page
        ]
        for each in rng.permutation(3).tolist() if shuffled else range(3):
            study.tell(*told[each])
    return study


def beliefs(study, state=None):
    context = study.inputs.context(NOON) if study.policy.context else None
    found = (state or study.replica.current()).settled().envelope(None, context)
    return found.mean.tolist() + found.std.tolist()


def test_a_slate_has_another_arm_in_each_place_and_one_number():
    study = played(made(), 12)
    for first in range(0, 36, 3):
        page = study.trials[first : first + 3]
        assert len({trial.arm for trial in page}) == 3
        assert [(trial.slate, trial.place) for trial in page] == [(first, 0), (first, 1), (first, 2)]
        assert all(trial.context is not None for trial in page)


def test_the_propensity_of_a_place_is_given_the_places_before():
    study = played(made(), 12)
    chances = study.probabilities(NOON)
    page = study.ask(NOON, count=6, slate=True)
    assert page[0].propensity == pytest.approx(chances[page[0].arm])
    taken = []
    for trial in page:
        given = study.probabilities(NOON, exclude=taken) if taken else chances
        assert trial.propensity == pytest.approx(given[trial.arm], abs=1e-6)
        taken.append(trial.arm)
    assert page[-1].propensity == pytest.approx(1.0)


@pytest.mark.parametrize("slate", MODELS)
def test_a_replay_believes_the_same_and_explains_each_place(slate):
    study = played(made(slate), 25, shuffled=True)
    assert beliefs(study) == beliefs(study, state_after(study.policy, "maximize", study.trials, seed=0))
    for number in (0, 1, 2, 50, 73, 74):
        why = study.explain(number)
        assert why.repeated
        assert why.propensity.value == pytest.approx(study.trials[number].propensity, abs=1e-6)


@pytest.mark.parametrize("slate", MODELS)
def test_the_order_of_answers_leaves_no_trace(slate):
    studies = []
    for order in list(permutations(range(3))):
        study = made(slate)
        page = study.ask(NOON, count=3, slate=True)
        for place in order:
            study.tell(page[place], (0.0, 1.0, 0.0)[place])
        studies.append(beliefs(study))
    assert all(each == studies[0] for each in studies)


@pytest.mark.parametrize("slate", MODELS)
def test_a_stored_study_goes_on_as_one_in_memory(slate, tmp_path):
    url = f"sqlite:///{tmp_path / 'slates.db'}"
    alone = played(made(slate), 20)
    one = played(made(slate, storage=url), 10)
    two = nr.Study.open(storage=url)
    rng = np.random.default_rng(0)
    for _ in range(10):  # The same draws go by.
        rng.uniform(0, 24), rng.random(3), None
    for study in (one, two) * 5:
        page = study.ask({"h": float(rng.uniform(0, 24)), "d": "p"}, count=3, slate=True)
        told = [float(rng.random() < (1.0, 0.6, 0.3)[t.place] * (0.05 + 0.1 * t.arm)) for t in page]
        study.tell_slate(page, told)
    assert [trial.arm for trial in two.trials] == [trial.arm for trial in alone.trials]
    assert beliefs(one) == beliefs(two) == beliefs(alone)
    assert two.trials[31].slate == 30
    one.close(), two.close()


def test_a_correction_rebuilds_what_slates_teach():
    study = played(made("positions"), 30)
    study.tell(40, 1.0 - study.trials[40].reward, revise=True)
    played(study, 5, seed=3)
    assert beliefs(study) == beliefs(study, state_after(study.policy, "maximize", study.trials, seed=0))


# -- answers ---------------------------------------------------------------------------------------------------------


def test_a_slate_is_answered_as_a_whole_or_by_its_clicks():
    study = made()
    page = study.ask(NOON, count=3, slate=True)
    assert [trial.reward for trial in study.tell_slate(page, [0, None, 1])] == [0.0, None, 1.0]
    assert [trial.reward for trial in study.tell_slate(page[2].number, [0, 1, 1])] == [0.0, 1.0, 1.0]
    assert [trial.reward for trial in study.tell_slate(page[1], [0, 1, 1])] == [0.0, 1.0, 1.0]  # idempotent
    other = study.ask(NOON, count=3, slate=True, event="abc", facts={"page": "home"})
    assert [trial.reward for trial in study.tell_slate("abc", clicked=[])] == [0.0, 0.0, 0.0]
    assert [trial.event for trial in other] == ["abc", None, None]
    assert other[0].facts == {"page": "home"}
    assert other[1].facts == {}
    third = study.ask(NOON, count=2, slate=True)
    assert [trial.reward for trial in study.tell_slate(third, clicked=[0, 1])] == [1.0, 1.0]


def test_all_or_none_of_a_slate_is_told():
    study = made()
    page = study.ask(NOON, count=3, slate=True)
    study.tell(page[1], 1.0)
    with pytest.raises(TrialError, match="was told already"):
        study.tell_slate(page, [0.0, 0.0, 0.0])
    assert [trial.reward for trial in study.trials] == [None, 1.0, None]
    with pytest.raises(InvalidInput):
        study.tell_slate(page, [0.0, 1.0, 3.0])  # No click is 3.
    assert [trial.reward for trial in study.trials] == [None, 1.0, None]


def test_an_event_is_that_of_the_whole_slate():
    study = made()
    page = study.ask(NOON, count=3, slate=True, event="abc")
    assert study.ask(NOON, count=3, slate=True, event="abc") == page
    assert len(study.trials) == 3
    with pytest.raises(TrialError, match="a slate of 3 places, and now a slate of 2"):
        study.ask(NOON, count=2, slate=True, event="abc")
    study.ask(NOON, event="alone")
    with pytest.raises(TrialError, match="no slate, and now a slate of 2"):
        study.ask(NOON, count=2, slate=True, event="alone")
    with pytest.raises(TrialError, match="under another context"):
        study.ask({"h": 1.0, "d": "p"}, count=3, slate=True, event="abc")


def test_a_unit_keeps_all_places_of_its_slate():
    study = nr.Study(policy(), seed=0, propensities=True, sticky=True)
    page = study.ask(NOON, count=3, slate=True, unit="user-17")
    study.tell_slate(page, clicked=0)
    again = study.ask(NOON, count=3, slate=True, unit="user-17")
    assert [trial.arm for trial in again] == [trial.arm for trial in page]
    assert [trial.kept for trial in again] == [0, 1, 2]
    assert [trial.propensity for trial in again] == [trial.propensity for trial in page]
    study.retire_arm(page[1].arm)
    third = study.ask(NOON, count=3, slate=True, unit="user-17")
    assert [trial.kept for trial in third] == [0, None, 2]
    fourth = study.ask(NOON, count=3, slate=True, unit="user-17")
    assert [trial.arm for trial in fourth] == [trial.arm for trial in third]
    assert [trial.kept for trial in fourth] == [0, third[1].number, 2]
    assert {trial.unit for trial in study.trials} == {0}
    assert all(study.explain(trial).repeated for trial in fourth)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"slate": True}, "`count` is missing"),
        ({"slate": True, "count": 7}, "has 7 places, and 6 arms may be played"),
        ({"slate": True, "count": 3, "among": [1, 2]}, "has 3 places, and 2 arms may be played"),
        ({"slate": "yes", "count": 3}, "`slate`"),
        ({"slate": True, "count": 0}, "`count`"),
    ],
)
def test_a_slate_that_cannot_be_is_refused(asked, sentence):
    study = made()
    with pytest.raises(InvalidInput, match=sentence):
        study.ask(NOON, **asked)
    assert not len(study.trials)


def test_slates_are_of_arms():
    with pytest.raises(InvalidInput, match="A slate is of arms"):
        nr.Study(nr.auto(nr.Box(0, 1))).ask(count=2, slate=True)
    lazy = nr.gp_ucb(ARMS, nr.SquaredExponential(1.0), noise=0.1, switching="lazy")
    with pytest.raises(InvalidInput, match="plays each arm once"):
        nr.Study(lazy).ask(count=2, slate=True)
    with pytest.raises(InvalidInput, match="has 3 places, and `Positions` has 2 weights"):
        made(nr.slots.Positions((1.0, 0.5))).ask(NOON, count=3, slate=True)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({}, "answered by `rewards`"),
        ({"rewards": [0, 1, 0], "clicked": 1}, "answered by `rewards`"),
        ({"rewards": [0, 1]}, "an entry for each of the 3 places"),
        ({"rewards": "010"}, "an entry for each of the 3 places"),
        ({"clicked": 3}, "`clicked`"),
        ({"clicked": "first"}, "`clicked`"),
        ({"clicked": True}, "`clicked`"),
    ],
)
def test_answers_that_fit_no_slate_are_refused(told, sentence):
    study = made()
    page = study.ask(NOON, count=3, slate=True)
    with pytest.raises(InvalidInput, match=sentence):
        study.tell_slate(page, **told)
    assert all(trial.reward is None for trial in study.trials)


def test_a_trial_of_no_slate_has_no_places():
    study = made()
    with pytest.raises(TrialError, match="Trial 0 is of no slate"):
        study.tell_slate(study.ask(NOON), [0.0])


# -- several trials at once ------------------------------------------------------------------------------------------


def test_several_trials_under_a_context_are_at_different_arms():
    study = made()
    for _ in range(20):
        trials = study.ask(NOON, count=3)
        assert len({trial.arm for trial in trials}) == 3
        assert all(trial.slate is None for trial in trials)
        study.tell_many([(trial, float(trial.arm > 4)) for trial in trials])
    with pytest.warns(NoRegretWarning, match="`count` is 8, and 6 arms may be played"):
        trials = study.ask(NOON, count=8)
    assert len({trial.arm for trial in trials[:6]}) == 6
    assert len({trial.arm for trial in trials[6:]}) == 2
    study.ask(NOON, count=8)  # It is said once.
    assert {trial.arm for trial in study.ask(NOON, count=2, among=[3, 4])} == {3, 4}


def test_without_contexts_several_trials_are_as_before():
    ours = [nr.Study(policy(contexts=False), seed=1) for _ in range(2)]
    for _ in range(4):
        trials, others = ours[0].ask(count=4), [ours[1].ask() for _ in range(4)]
        assert [trial.arm for trial in trials] == [trial.arm for trial in others]
        for study, told in zip(ours, (trials, others), strict=True):
            study.tell_many([(trial, float(trial.arm > 4)) for trial in told])


# -- models of places ------------------------------------------------------------------------------------------------


def places(*rewards):
    return [Place(arm, reward, reward is not None) for arm, reward in enumerate(rewards)]


@pytest.mark.parametrize(
    ("rewards", "shares"),
    [
        ((0, 1, 0), [1, 1, 0]),
        ((0, 0, 0), [1, 1, 1]),
        ((1, 0, 1), [1, 0, 0]),
        ((None, 1, None), [1, 1, 0]),
        ((None, 0, None), [1, None, None]),
        ((0, None, 0), [1, 1, None]),
        ((0.0, -2.5, 0.0), [1, 1, 0]),
    ],
)
def test_the_cascade_ends_at_the_first_click(rewards, shares):
    assert nr.slots.Cascade().shares(places(*rewards), NOTHING) == shares


def test_the_share_of_a_place_is_the_probability_that_it_was_seen():
    looked = Looked(np.array([1.0, 0.5]), np.array([0.1, 0.2, 0.3]), 0.2)
    given, learned = nr.slots.Positions((1.0, 0.5, 0.25)), nr.slots.Positions()
    assert given.shares(places(0, 0, 1), looked) == pytest.approx([1.0, 0.5 * 0.8 / 0.9, 1.0])
    assert learned.shares(places(0, 0, 0), looked) == pytest.approx([1.0, 0.5 * 0.8 / 0.9, 1.0])
    assert learned.shares(places(1, 0, None), NOTHING) == [1.0, 1.0, 1.0]


def test_weights_and_attractions_are_found():
    # 300,000 shows: errors of the shares below have a standard deviation of .004 at most, and 5 of them are allowed.
    rng, k, a = np.random.default_rng(0), np.array([1.0, 0.6, 0.3]), np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
    shown = rng.permuted(np.tile(np.arange(6), (100_000, 1)), axis=1)[:, :3]
    clicked = rng.random(shown.shape) < k * a[shown]
    each = (
        (place, int(arm), bool(click))
        for row in zip(shown, clicked, strict=True)
        for place, (arm, click) in enumerate(zip(*row, strict=True))
    )
    found = looked_at(each)
    np.testing.assert_allclose(found.weights, k, atol=0.02)
    np.testing.assert_allclose(found.attraction, a, atol=0.02)
    assert found.of(99) == pytest.approx(a.mean(), abs=0.02)
    assert looked_at([]) is NOTHING
    assert looked_at([(0, 1, False), (1, 0, False)]).weights.tolist() == [1.0, 1.0]


def test_places_are_looked_at_ever_more_seldom():
    assert [last_look(n) for n in (0, 15, 16, 19, 20, 25, 31)] == [None, None, 16, 16, 20, 25, 25]
    assert last_look(10**9) > 8 * 10**8


@pytest.mark.parametrize("slate", ["cascade", "positions", nr.slots.Positions((1.0, 0.6, 0.3))])
def test_attractions_are_right_where_places_hide_arms(slate):
    """All arms attract alike. Counted as they are, answers say much less.

    Of 200 shows of each arm some 110 are seen, so a mean within .15 of .3 is within three standard deviations.
    """
    uniform = nr.slots.Uniform(1.0)
    study, plain = (nr.Study(policy(each, contexts=False).using(explore=uniform), seed=0) for each in (slate, None))
    rng, seen = np.random.default_rng(0), (1.0, 0.6, 0.3)
    for _ in range(400):
        page = study.ask(count=3, slate=True)
        clicks = rng.random(3) < 0.3
        if slate == "cascade":
            clicks &= np.arange(3) <= (clicks.argmax() if clicks.any() else 3)
        else:
            clicks &= rng.random(3) < seen
        study.tell_slate(page, clicks.astype(float).tolist())
        for trial, click in zip(page, clicks.tolist(), strict=True):
            plain.add([float(trial.arm)], float(click))
    means, naive = (np.array(beliefs(each)[:6]) for each in (study, plain))
    assert np.abs(means - 0.3).max() < 0.15
    assert abs(means.mean() - 0.3) < 0.05
    assert naive.mean() < 0.25


def test_a_place_that_was_not_seen_teaches_nothing_and_keeps_its_answer():
    study, alone = made("cascade", contexts=False), made(contexts=False)
    page = study.ask(count=3, slate=True)
    study.tell_slate(page, clicked=0)
    assert [trial.reward for trial in study.trials] == [1.0, 0.0, 0.0]
    alone.add([float(page[0].arm)], 1.0)
    assert beliefs(study)[:6] == pytest.approx(beliefs(alone)[:6])


def test_a_click_before_the_places_above_are_answered_counts_at_once():
    study, alone = made("cascade", contexts=False), made(contexts=False)
    page = study.ask(count=3, slate=True)
    study.tell(page[1], 1.0)
    study.tell(page[2], 0.0)  # It was not seen.
    alone.add([float(page[1].arm)], 1.0)
    assert beliefs(study)[:6] == pytest.approx(beliefs(alone)[:6])
    study.fail(page[0], "no beacon")
    assert beliefs(study) == beliefs(study, state_after(study.policy, "maximize", study.trials, seed=0))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: nr.auto(nr.Box(0, 1), slate="cascade"), "for policies on `Arms`"),
        (lambda: nr.auto(ARMS, slate="positions"), "which this policy cannot do"),
        (lambda: nr.auto(ARMS, slate="page"), "`slate` is 'page'"),
        (lambda: nr.auto(ARMS, slate=3), "`slate` is 3"),
        (lambda: nr.auto(ARMS, objectives=2, slate="cascade"), "several objectives"),
        (lambda: nr.auto(ARMS, constraints=1, slate="cascade"), "several objectives or constraints"),
        (lambda: nr.slots.Positions((1.0, 1.5)), "`weights` is 1.5"),
        (lambda: nr.slots.Positions((1.0, 0.0)), "`weights` is 0"),
        (lambda: nr.slots.Positions(()), "a number for each place"),
    ],
)
def test_a_model_that_fits_no_policy_is_refused(make, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        make()


def test_policies_without_a_model_are_described_as_before():
    assert "slate" not in json.loads(policy().to_json())
    for slate in MODELS[1:]:
        assert nr.Policy.from_json(policy(slate).to_json()) == policy(slate)
