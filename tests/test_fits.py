"""A fit is an event: made once, on record with the decision that it serves, and taken from there by whoever replays."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import nilregret as nr
from nilregret.gp import PointBelief
from nilregret.slots import refit as refits
from nilregret.storage import MemoryStorage
from nilregret.storage.base import News
from nilregret.storage.sql import SqlStorage
from nilregret.study import replica as kept

from .marks import nightly

SEARCH = nr.slots.PointSearch(candidates=8, around=4, starts=1, evaluations=2)
REFIT = nr.slots.Refit(every=5, restarts=0)
BOX = nr.Box([0.0, -1.0], [2.0, 1.0])
POLICIES = {
    "arms": nr.gp_ucb(nr.Arms.grid(0, 1, 12), nr.Matern(2.5, 0.2), noise=0.3, refit=REFIT),
    "a box": nr.gp_ucb(BOX, nr.Matern(2.5, 0.5), noise=0.3, search=SEARCH, refit=REFIT),
    "warped": nr.expected_improvement(
        BOX, nr.Matern(2.5, (0.5, 0.4)), noise=0.3, search=SEARCH, refit=replace(REFIT, warp="half-rank")
    ),
    "a bank": nr.gp_ucb(
        BOX, nr.Matern(2.5, 0.5), noise=0.3, search=SEARCH, refit=nr.slots.LengthscaleBank(factors=(0.5, 1.0),
        around=REFIT)
    ),
    "hallucinated": nr.gp_bucb(
        BOX, nr.Matern(1.5, 0.5) + nr.Linear(), noise=0.3, beta=2.0, search=SEARCH, refit=REFIT
    ),
    "a window": nr.gp_ucb(
        BOX, nr.Matern(2.5, 0.5), noise=0.3, search=SEARCH, memory=nr.slots.SlidingWindow(11), refit=REFIT
    ),
    "a constraint": nr.auto(nr.Arms.grid(0, 1, 12), constraints=1).using(refit=REFIT),
}  # fmt: skip


def answer(study, trial):
    x = trial.point
    limits = [float(x.sum() - 1.0)] * study.policy.constraint_count or None
    study.tell(trial, float(np.sin(7.0 * x[0]) + x[-1] + 0.1 * np.cos(50.0 * trial.number)), constraints=limits)


def played(study, rounds):
    for _ in range(rounds):
        answer(study, study.ask())
    return study


def said(study):
    """What it believes at some points and decides next, to the bit."""
    points = np.array([study.trials[0].point, study.trials[3].point])
    decision = study.replica.current().decide(now=study.trials[-1].asked_at)
    return decision.point.tobytes(), *(each.tobytes() for each in (*study.predict(points), *study.bounds(points)))


@pytest.fixture
def other_machine(monkeypatch):
    """Where a fit comes out otherwise."""
    right = refits.fit

    def fit(*args, **more):
        found = right(*args, **more)
        return replace(found, kernel=found.kernel.with_log_parameters(found.kernel.log_parameters + 1e-3))

    return lambda: monkeypatch.setattr(refits, "fit", fit)


@pytest.fixture
def no_optimiser(monkeypatch):
    """Where a fit is an error."""
    return lambda: monkeypatch.setattr(refits, "fit", None)


@pytest.mark.parametrize("goal", ["maximize", *nightly("minimize")])
@pytest.mark.parametrize("name", POLICIES)
def test_a_replay_fits_nothing_and_goes_on_to_the_bit(name, goal, tmp_path, no_optimiser):
    storage = f"sqlite:///{tmp_path}/a.db"
    study = played(nr.Study(POLICIES[name], goal=goal, seed=1, storage=storage), 13)
    study.ask()
    assert [fit.trial for fit in study.fits if fit.channel == 0] == [5, 10]
    no_optimiser()
    again = nr.Study.open(storage=storage)
    assert list(again.trials) == list(study.trials)
    assert again.fits == study.fits
    assert said(again) == said(study)
    assert again.explain(10).repeated
    assert again.explain(4).repeated


def test_what_is_shown_of_a_fit_is_in_the_units_of_the_study():
    one, other = (
        played(nr.Study(POLICIES["warped"], seed=1, goal=goal), 12) for goal in ("maximize", "minimize")
    )  # fmt: skip
    one.ask()
    other.ask()
    state = one.replica.current().reward.posterior
    fit = one.fits[-1]
    assert (fit.kernel, fit.mean, fit.unit) == (state.in_use, *state.units[:2])
    assert fit.noise == pytest.approx(state.ridge**0.5 * state.units.unit)
    assert fit.warp["type"] == "Warp"
    assert other.fits[-1].mean == -other.replica.current().reward.posterior.units.center


def test_another_machine_decides_by_the_fits_on_record(tmp_path, other_machine):
    here = played(nr.Study(POLICIES["a box"], seed=1, storage=f"sqlite:///{tmp_path}/a.db"), 12)
    before = here.fits
    mine, note = said(here), here.explain(11)
    other_machine()
    there = nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db")
    assert said(there) == mine
    assert str(there.explain(11)) == str(note)
    played(there, 9)  # two fits more, which are its own, and count here
    assert there.fits[: len(before)] == before
    assert said(here) == said(there)
    assert here.fits == there.fits


def test_decisions_are_the_same_with_one_and_two_threads_of_blas(tmp_path):
    storage = f"sqlite:///{tmp_path}/a.db"
    policy = nr.auto(nr.Box([0, 0, 0], [1, 1, 1])).using(search=SEARCH)
    with threadpool_limits(1):
        one = nr.Study(policy, seed=2, storage=storage)
        played(one, 16)
        mine = [one.ask().point.tobytes() for _ in range(2)]
    with threadpool_limits(2):
        other = nr.Study(policy, seed=2)
        other.replica.apply(News(list(nr.Study.open(storage=storage).trials)[:16], ""))
        assert [other.ask().point.tobytes() for _ in range(2)] == mine


def test_looking_writes_nothing_and_changes_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    quiet, curious = nr.Study(POLICIES["a box"], seed=1), nr.Study(POLICIES["a box"], seed=1, storage=url)
    for _ in range(12):
        answer(quiet, quiet.ask())
        answer(curious, curious.ask())
        fits, order = curious.fits, curious.replica.record.order
        curious.predict(np.array([[1.0, 0.0]]))
        curious.best()
        nr.Study.open(storage=url).bounds(np.array([[1.0, 0.0]]))
        assert (curious.fits, curious.replica.record.order) == (fits, order)
    assert [t.point.tobytes() for t in quiet.trials] == [t.point.tobytes() for t in curious.trials]
    assert quiet.fits == curious.fits


def test_fits_that_were_in_force_stay_after_a_correction_and_the_next_one_sees_what_is_right():
    storage = MemoryStorage()
    study = played(nr.Study(POLICIES["a box"], seed=1, storage=storage), 12)
    wrong = played(nr.Study(POLICIES["a box"], seed=1), 12)
    before = study.fits
    study.tell(3, 9.0, revise=True)
    assert study.fits == before
    assert study.explain(11).trial.fits == ()
    for _ in range(4):
        for each in (study, wrong):
            answer(each, each.ask())
    assert study.fits[: len(before)] == before
    assert study.fits[-1].mean > wrong.fits[-1].mean + 0.3
    again = nr.Study.open(storage=storage)
    assert (again.fits, said(again)) == (study.fits, said(study))


def test_a_decision_that_does_not_say_which_fits_it_had_is_damaged():
    storage = MemoryStorage()
    played(nr.Study(POLICIES["a box"], seed=1, storage=storage), 5)
    kept = storage._studies["study"]
    kept.trials[:] = [trial._replace(fits=None) for trial in kept.trials]
    with pytest.raises(nr.errors.StorageError, match="does not say which fits came into force"):
        nr.Study.open(storage=storage)


@pytest.mark.parametrize("call", [lambda study: study.predict([[1.0, 0.0]]), lambda study: study.ask()])
def test_an_interrupt_while_a_state_learns_what_is_looked_at_loses_nothing(call, monkeypatch):
    """Also that of a copy, which is made before a decision that may have to be taken back."""
    storage = MemoryStorage()
    played(nr.Study(POLICIES["hallucinated"], seed=1, storage=storage), 4)
    study = nr.Study.open(storage=storage)  # which learns when it is looked at
    with monkeypatch.context() as during:
        during.setattr(kept, "QUICK", 0.0)
        during.setattr(PointBelief, "put_all", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            call(study)
    assert said(study) == said(nr.Study.open(storage=storage))


def test_a_decision_that_was_not_recorded_leaves_no_fit(tmp_path):
    study = played(nr.Study(POLICIES["a box"], seed=1, storage=f"sqlite:///{tmp_path}/a.db"), 5)
    straight = played(nr.Study(POLICIES["a box"], seed=1), 5)
    put = study.replica.put
    study.replica.put = lambda trial, kind: 1 / 0
    with pytest.raises(ZeroDivisionError):
        study.ask()
    assert study.fits == []
    study.replica.put = put
    assert study.ask().point.tobytes() == straight.ask().point.tobytes()
    assert study.fits == straight.fits


def test_policies_without_fits_have_none_on_record():
    study = played(nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 12), nr.Matern(2.5, 0.2), noise=0.3)), 4)
    assert study.fits == []
    assert {trial.fits for trial in study.trials} == {None}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"number": 1', '"number": 2'),
        ('"number": 1', '"number": 1000000000000000000000000000000'),
        ('"scale": 1.0', '"scale": 1e30'),
        ('"knots": [', '"knots": [-9.0, '),
        ('"channel": 0', '"channel": 1'),
        ('"channel": 0', '"channel": "0"'),
        ('"number": 1', '"number": 0'),
        ('"type": "Matern"', '"type": "SquaredExponential"'),
        ('"nu": 2.5', '"nu": 1.5'),
        ('"regularization": ', '"regularization": -'),
        ('"warp": null', '"warp": {"type": "Box", "lower": [0], "upper": [1]}'),
        ('"warp": null', '"wrap": null'),
        ('"kernel": ', '"kernel": null, "k": '),
        ('[{', '{'),
    ],
)  # fmt: skip
def test_a_fit_that_could_not_have_been_made_is_refused(old, new, tmp_path):
    path, policy = tmp_path / "a.db", POLICIES["warped" if "knots" in old else "a box"]
    with played(nr.Study(policy, seed=1, storage=f"sqlite:///{path}"), 6) as study:
        assert len(study.fits) == 1
    with closing(sqlite3.connect(path)) as connection:
        (text,) = connection.execute("SELECT fits FROM trials WHERE number = 5").fetchone()
        assert old in text
        connection.execute("UPDATE trials SET fits = ? WHERE number = 5", (text.replace(old, new, 1),))
        connection.commit()
    with pytest.raises(nr.errors.StorageError, match=r"Trial 5 .* damaged"):
        nr.Study.open(storage=f"sqlite:///{path}")


def test_a_fit_of_a_trial_that_nobody_asked_for_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = played(nr.Study(POLICIES["a box"], seed=1, storage=url), 6)
    study.add([1.0, 0.0], 0.3)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("UPDATE trials SET fits = (SELECT fits FROM trials WHERE number = 5) WHERE number = 6")
        connection.commit()
    with pytest.raises(nr.errors.StorageError, match=r"Trial 6 .* damaged"):
        nr.Study.open(storage=url)


@pytest.mark.parametrize("kind", ["sqlite", *nightly("postgresql")])
@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_a_list_of_studies_is_what_their_trials_say_and_opens_none(kind, goal, places, monkeypatch):
    storage = SqlStorage(places(kind)())
    policy = nr.gp_ucb_noisy_constraints(
        nr.Arms.grid(0, 1, 12), nr.Matern(2.5, 0.2), noise=0.3, norm_bound=1.0, epoch=3, epochs=9, step=0.1
    )
    study = nr.Study(policy, goal=goal, storage=storage, name="a")
    nr.Study(POLICIES["arms"], storage=storage, name="b")
    rewards, sign = [0.3, 0.9, 0.5, 0.1], 1.0 if goal == "maximize" else -1.0
    for number, trial in enumerate(study.ask(count=8)):
        if number < 4:
            study.tell(trial, sign * rewards[number], constraints=[0.5 if number == 1 else -0.5])
    study.fail(5, "broken")
    study.abandon(6)
    study.tell(2, sign * 0.2, constraints=[-0.5], revise=True)  # which was the best
    now = max(trial.told_at or trial.asked_at for trial in study.trials)
    expected = [(8, 4, 1, 1, 0, sign * 0.3, now), (0, 0, 0, 0, 0, None, None)]
    assert [tuple(summary) for _, summary in super(SqlStorage, storage).summaries()] == expected
    monkeypatch.setattr(SqlStorage, "news", None)
    found = storage.summaries()
    assert [stored.name for stored, _ in found] == ["a", "b"]
    assert [tuple(summary) for _, summary in found] == expected
    assert [summary.pending for _, summary in found] == [2, 0]


@pytest.mark.parametrize("storage", [None, MemoryStorage()], ids=["in memory", "stored"])
def test_a_study_makes_its_state_once(storage, monkeypatch):
    made, state_after = [], kept.direction.state_after
    monkeypatch.setattr(
        kept.direction, "state_after", lambda *args, **more: made.append(1) or state_after(*args, **more)
    )
    study = nr.Study(POLICIES["arms"], storage=storage)
    assert len(made) == 1
    assert study.ask().number == 0


def test_first_rewards_that_are_equal_count_once_at_each_point_and_never_again():
    """Before a reward differs there is no unit, and 17 zeros of an arm are no evidence of little noise."""
    rows, zeros = np.repeat(np.arange(3.0), 17)[:, None], np.zeros(51)
    later, rewards = np.array([[0.0], [1.0], [2.0], [1.0], [0.0]]), np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    refit = nr.slots.Refit(every=3, noise="unknown", prior="related", restarts=0)
    fitted = [
        refit(nr.Matern(2.5, 1.0), np.concatenate([first, later]), np.concatenate([before, rewards]), np.array([2.0]),
        noise=0.1, seed=0)
        for first, before in ((rows, zeros), (rows[::17], zeros[:3]))
    ]  # fmt: skip
    assert fitted[0] == fitted[1]
    assert fitted[0].scale.std == pytest.approx(np.sqrt(7.0) / 8.0)
    distinct = np.arange(51.0)[:, None]  # on a plateau every point says something of the function
    whole = refit(nr.Matern(2.5, 1.0), np.concatenate([distinct, later]), np.concatenate([zeros, rewards]),
                  np.array([50.0]), noise=0.1, seed=0)  # fmt: skip
    assert whole.scale.std == pytest.approx(np.sqrt(55.0) / 56.0)
