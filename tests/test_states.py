"""States of a trial: given up, late, answered again, corrected."""

import itertools
import threading
from unittest.mock import Mock

import numpy as np
import pytest

import nilregret as nr
from nilregret.storage import MemoryStorage
from nilregret.storage.record import Record
from nilregret.testing.driver import inside

ARMS = nr.Arms.grid(0, 1, 40)
KERNEL = nr.Matern(2.5, 0.2)
NOISE = 0.1
EVERY = nr.EveryRound(count=1)
POLICIES = {
    "plain": nr.gp_ucb(ARMS, KERNEL, noise=NOISE),
    "bucb": nr.gp_bucb(ARMS, KERNEL, noise=NOISE),
    "box": nr.gp_bucb(nr.Box([0.0], [1.0]), KERNEL, noise=NOISE, beta=2.0),
    "nearest": nr.gp_ucb(ARMS, KERNEL, noise=NOISE, pending=nr.slots.NearestMeans(neighbours=2)),
    "censored": nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=3, minimum=-2.0),
    "refit": nr.gp_bucb(ARMS, KERNEL, noise=NOISE, refit=nr.slots.Refit(every=4)),
    "restarts": nr.gp_bucb(ARMS, KERNEL, noise=NOISE, memory=nr.slots.RestartEvery(9)),
    "window": nr.gp_bucb(ARMS, KERNEL, noise=NOISE, memory=nr.slots.SlidingWindow(6)),
    "adaptive": nr.gp_ucb(ARMS, KERNEL, noise=NOISE, memory="adaptive"),
    "channels": nr.gp_bucb(ARMS, KERNEL, noise=NOISE, constraints=EVERY),
}


def reward(trial):
    return float(np.sin(6 * trial.point[0]) + np.random.default_rng([7, trial.number]).normal(scale=NOISE))


def constraints(policy, trial):
    return [float(trial.point[0]) - 0.7] if policy.constraint_count else None


class Clock:
    def __init__(self):
        self.now = 1e9

    def __call__(self):
        return self.now


def eventful(study, clock, rounds=24):
    """Rounds in which trials are answered, given up, answered late, corrected, or forgotten; the same in each study."""
    rng = np.random.default_rng(3)
    for _ in range(rounds):
        clock.now += 10.0
        trial = study.ask(lease=35.0)
        trials = list(study.trials)
        dice, other = rng.random(), trials[int(rng.integers(len(trials)))]
        g = constraints(study.policy, trial)
        if dice < 0.5:
            study.tell(trial, reward(trial), constraints=g)
        elif dice < 0.6:
            study.fail(trial, "broken")
        elif dice < 0.7:
            study.abandon(trial)
        if other.state == "abandoned" and dice < 0.8:
            study.tell(other, reward(other), constraints=constraints(study.policy, other))
        elif other.state in ("observed", "failed") and dice > 0.85:
            study.tell(other, reward(other) + 0.5, constraints=constraints(study.policy, other), revise=True)
        elif other.state == "observed" and dice < 0.05:
            study.fail(other, "it was the wrong sample", revise=True)
    return study


def seen(study):
    probes = inside(study.policy.domain, [1], 7)
    return (
        *study.predict(probes),
        *study.bounds(probes),
        [study.replica.current().decide(now=study.replica.now()).point],
    )


def assert_same(one, other):
    for a, b in zip(seen(one), seen(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", POLICIES)
def test_whatever_happens_to_trials_a_study_reopened_goes_on_as_if_nothing_had_been(name, tmp_path):
    policy, clock = POLICIES[name], Clock()
    study = eventful(nr.Study(policy, seed=5, clock=clock), clock)
    states = [trial.state for trial in study.trials]
    assert {"observed", "pending", "failed", "abandoned"} <= set(states)
    assert any(trial.late for trial in study.trials)
    assert any(trial.corrected for trial in study.trials)
    other = Clock()
    stored = eventful(nr.Study(policy, seed=5, storage=f"sqlite:///{tmp_path}/a.db", clock=other), other)
    assert list(stored.trials) == list(study.trials)
    again = nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db", clock=clock)
    assert_same(study, stored)
    assert_same(study, again)


@pytest.mark.parametrize("name", POLICIES)
def test_a_trial_is_as_it_was_after_each_event(name):
    """Taken back event by event and played again, a record says the same."""
    policy, clock = POLICIES[name], Clock()
    study = nr.Study(policy, seed=2, clock=clock)
    snapshots, kinds = {0: []}, {}
    take = study.replica.put

    def put(trial, kind):
        taken = take(trial, kind)
        snapshots[study.replica.record.order] = list(study.replica.record)
        kinds[study.replica.record.order] = kind
        return taken

    study.replica.put = put
    eventful(study, clock, 16)
    record = study.replica.record
    for order, trials in snapshots.items():
        assert list(record.as_of(order)) == trials
    replayed = Record()
    for order in sorted(snapshots)[1:]:
        before = list(replayed)
        (event,) = replayed.apply([t for t in snapshots[order] if t.number >= len(before) or t != before[t.number]])
        assert event.order == replayed.order == order
        assert event.kind == kinds[order]
    assert list(replayed) == list(record)


def test_what_is_abandoned_is_no_longer_hallucinated():
    for name in ("bucb", "box", "nearest", "censored", "channels"):
        policy = POLICIES[name]
        study, never = nr.Study(policy, seed=1), nr.Study(policy, seed=1)
        for each in (study, never):
            for _ in range(4):
                trial = each.ask()
                each.tell(trial, reward(trial), constraints=constraints(policy, trial))
        before = study.predict(probes := inside(policy.domain, [2], 9))
        gone = study.ask(count=3)
        during = study.predict(probes)
        assert (during[1] < before[1]).any(), name
        for trial in gone:
            study.abandon(trial, "the machine was switched off")
        for after, wanted in zip(study.predict(probes), before, strict=True):
            np.testing.assert_allclose(after, wanted, rtol=1e-9, atol=1e-12)
        assert study.trials[4].abandoned.reason == "the machine was switched off"


@pytest.mark.parametrize(("late", "counts"), [("drop", False), ("accept", True)])
def test_a_late_answer_to_an_abandoned_trial_counts_by_the_rule_for_pending_ones(late, counts):
    policy = nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=3, minimum=-2.0).using(
        pending=nr.slots.Censored(minimum=-2.0, window=3, late=late)
    )
    answered = []
    for abandons in (False, True):
        study = nr.Study(policy, seed=4)
        trial = study.ask(among=[20])
        if abandons:
            study.abandon(trial)
        for arm in (1, 5, 9, 30, 34, 38):
            study.tell(study.ask(among=[arm]), -1.0)
        study.tell(trial, 1.5)
        assert study.trials[0].late == abandons
        answered.append(study.predict()[0])
        assert (study.predict()[0][20] > -1.0) == counts
    np.testing.assert_allclose(*answered, rtol=1e-9, atol=1e-12)  # as if it had never been given up


def test_a_lease_ends_by_an_event_on_record():
    clock = Clock()
    study = nr.Study(POLICIES["bucb"], clock=clock)
    first, second = study.ask(lease=60), study.ask(lease=600)
    forever = study.ask()
    clock.now += 59.9
    study.ask()
    assert study.trials[0].state == "pending"
    clock.now += 0.2
    assert study.trials[0].state == "pending"  # looking changes nothing
    study.ask()
    trial = study.trials[0]
    assert trial.state == "abandoned"
    assert trial.abandoned.time == clock.now
    assert "lease of 60 s" in trial.abandoned.reason
    assert trial.abandoned.order == study.trials[4].asked_order - 1
    assert [study.trials[n].state for n in (second.number, forever.number)] == ["pending", "pending"]
    assert study.tell(first, 0.5).late
    clock.now += 1e6
    assert study.tell(second, 0.25).late  # its own answer finds that the time was over
    assert not study.tell(forever, 0.25).late


@pytest.mark.parametrize("lease", [0, -1, float("nan"), "soon", True, 1e10])
def test_a_lease_is_some_time(lease):
    with pytest.raises(nr.errors.InvalidInput, match="`lease`"):
        nr.Study(POLICIES["plain"]).ask(lease=lease)


def test_leases_do_not_end_sooner_when_a_clock_goes_back():
    clock = Clock()
    study = nr.Study(POLICIES["bucb"], clock=clock)
    study.ask(lease=60)
    clock.now -= 1e6
    study.ask(lease=60)
    study.ask()
    assert [trial.state for trial in study.trials] == ["pending"] * 3
    clock.now += 61
    study.ask()
    assert [trial.state for trial in study.trials] == ["pending", "abandoned", "pending", "pending"]


def test_the_same_answer_again_is_the_same_trial():
    study = nr.Study(POLICIES["channels"])
    trial, other, left = study.ask(count=3)
    told = study.tell(trial, 0.5, constraints=[0.1])
    failed = study.fail(other, "broken")
    given_up = study.abandon(left)
    events = study.replica.record.order
    assert study.tell(trial, 0.5, constraints=[0.1]) is told
    assert study.tell(trial, 0.5) is told
    assert study.tell(trial, constraints=[0.1]) is told
    assert study.fail(other, "broken") is failed
    assert study.abandon(left) is given_up
    assert study.replica.record.order == events
    for call, shows in {
        lambda: study.tell(trial, 0.6): r"\(reward 0.5, constraints \[0.1\]\).*\(reward 0.6\)",
        lambda: study.tell(trial, 0.5, constraints=[0.2]): r"constraints \[0.1\].*constraints \[0.2\]",
        lambda: study.fail(trial, "x"): r"reward 0.5.*failed: 'x'",
        lambda: study.fail(other, "x"): r"failed: 'broken'.*failed: 'x'",
        lambda: study.tell(other, 1.0): r"failed: 'broken'.*reward 1.0",
        lambda: study.abandon(trial): r"cannot be abandoned: its answer is there \(reward 0.5",
        lambda: study.tell(trial, constraints=[0.2]): "told already",
    }.items():
        with pytest.raises(nr.errors.TrialError, match=shows):
            call()
    assert study.replica.record.order == events


@pytest.mark.filterwarnings("ignore:Repeats of a point differ more")
@pytest.mark.parametrize("name", POLICIES)
def test_after_a_correction_it_is_as_if_the_right_answer_had_come_first(name):
    policy = POLICIES[name]
    wrong, right = nr.Study(policy, seed=3), nr.Study(policy, seed=3)
    for number in range(12):
        trial = wrong.ask()
        if number == 4:
            wrong.tell(trial, reward(trial) + 3.0, constraints=constraints(policy, trial))
        else:
            wrong.tell(trial, reward(trial), constraints=constraints(policy, trial))
    for trial in wrong.trials:
        at = trial.as_of(trial.asked_order)
        right.replica.put(at._replace(explored=trial.explored), "asked")
        right.replica._valid = True
        right.tell(trial.number, reward(trial), constraints=constraints(policy, trial))
    mended = wrong.tell(4, reward(wrong.trials[4]), revise=True)
    assert [answer.reward for answer in mended.corrected] == [reward(mended) + 3.0]
    assert mended.corrected[0].order == 10
    assert_same(wrong, right)
    assert repr(mended).startswith("Trial(4, observed, corrected, ")
    with pytest.raises(nr.errors.TrialError, match="another answer comes"):
        wrong.tell(4, 0.0)
    wrong.fail(4, "it was the wrong sample", revise=True)
    assert wrong.trials[4].state == "failed"
    assert len(wrong.trials[4].corrected) == 2


def test_constraint_values_are_corrected_with_their_reward_and_without():
    study = nr.Study(POLICIES["channels"])
    trial = study.ask()
    study.tell(trial, 0.5, constraints=[0.1])
    assert study.tell(trial, 0.6, revise=True).constraints == [0.1]
    assert study.tell(trial, constraints=[0.2], revise=True).reward == 0.6
    assert study.tell(trial, 0.7, constraints=[0.3], revise=True).constraints == [0.3]
    assert [(a.reward, *a.constraints) for a in study.trials[0].corrected] == [(0.5, 0.1), (0.6, 0.1), (0.6, 0.2)]


def test_what_was_added_may_be_corrected_too(tmp_path):
    study = nr.Study(POLICIES["bucb"], storage=f"sqlite:///{tmp_path}/a.db")
    study.add(ARMS.points[3], 1.0)
    study.ask()
    study.tell(0, 2.0, revise=True)
    study.fail(0, "a typing mistake", revise=True)
    again = nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db")
    assert list(again.trials) == list(study.trials)
    assert_same(again, study)


@pytest.mark.parametrize("stored", [False, True])
def test_of_many_at_once_all_are_recorded_or_none(stored, tmp_path):
    policy = nr.gp_bucb(nr.Arms.grid(0, 1, 4), KERNEL, noise=NOISE)
    study = nr.Study(policy, seed=1, storage=f"sqlite:///{tmp_path}/a.db" if stored else None)
    straight = nr.Study(policy, seed=1)
    for each in (study, straight):
        each.tell_many([(trial, reward(trial)) for trial in each.ask(count=6)])
    with pytest.raises(nr.errors.TrialError):
        study.tell_many([(study.ask().number, 0.1), (99, 0.2)])
    straight.ask()
    with pytest.raises(nr.errors.InvalidInput, match=r"\(trial, reward\)"):
        study.tell_many([(6, 0.1), 5])
    with pytest.raises(nr.errors.InvalidInput, match="'trial', 'reward'"):
        study.tell_many([{"trial": 6, "value": 0.1}])
    assert list(map(str, study.trials)) == list(map(str, straight.trials))
    decide, calls = type(study.replica.state).decide, itertools.count()

    def stumbling(self, *args, **more):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return decide(self, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(study.replica.state), "decide", stumbling)
        with pytest.raises(KeyboardInterrupt):
            study.ask(count=5)
    assert len(study.trials) == 7
    assert [t.arm for t in study.ask(count=4)] == [t.arm for t in straight.ask(count=4)]
    told = study.tell_many([{"trial": 6, "reward": 0.5}, (7, 0.25, None)])
    assert [trial.reward for trial in told] == [0.5, 0.25]
    assert study.tell_many([]) == []


def test_an_interrupt_loses_no_lease(monkeypatch):
    now = [0.0]
    study = nr.Study(POLICIES["bucb"], clock=lambda: now[0])
    trial = study.ask(lease=1.0)
    now[0] = 2.0
    with monkeypatch.context() as patch:
        patch.setattr(type(trial), "as_abandoned", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            study.ask()
    study.ask()
    assert [each.state for each in study.trials] == ["abandoned", "pending"]


def test_a_batch_is_the_same_as_one_after_the_other():
    one, other = nr.Study(POLICIES["bucb"]), nr.Study(POLICIES["bucb"])
    assert [t.arm for t in one.ask(count=7)] == [other.ask().arm for _ in range(7)]
    one.tell_many([(number, 0.1 * number) for number in (3, 0, 5)])
    for number in (3, 0, 5):
        other.tell(number, 0.1 * number)
    assert_same(one, other)


def test_a_script_goes_on_without_an_answer_that_will_not_come():
    policy = nr.algorithms.bandit_oco(nr.Box([0.0, 0.0], [1.0, 1.0]), step=0.1)
    given_up, failed = nr.Study(policy), nr.Study(policy)
    for study, verb in ((given_up, given_up.abandon), (failed, lambda trial: failed.fail(trial, "lost"))):
        first, second = study.ask(), study.ask()
        study.tell(first, 0.3, constraints=[-1.0])
        verb(second)
    points = [[study.ask().point.tolist() for _ in range(3)] for study in (given_up, failed)]
    assert points[0] == points[1]


def test_threads_that_give_up_and_answer_at_once_agree():
    study = nr.Study(POLICIES["bucb"], storage=MemoryStorage())
    trials, problems = study.ask(count=24), []

    def work(verb):
        for trial in trials:
            try:
                verb(trial)
            except nr.errors.TrialError as error:
                if "its answer is there" not in str(error):
                    problems.append(error)

    threads = [threading.Thread(target=work, args=(verb,)) for verb in (study.abandon, lambda t: study.tell(t, 0.5))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert all(trial.reward == 0.5 for trial in study.trials)


def test_a_decision_is_explained_by_what_was_known_then():
    clock = Clock()
    study = eventful(nr.Study(POLICIES["bucb"], seed=5, clock=clock), clock)
    asked = [trial.number for trial in study.trials]
    assert all(study.explain(number, draws=0).repeated for number in asked)
    left = {
        n for n in asked if study.trials[n].abandoned and study.trials[n].abandoned.order < study.trials[20].asked_order
    }
    assert left
    assert not left & set(study.explain(20, draws=0).pending)
