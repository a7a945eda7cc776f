"""Answers that never come because they are a no: what is expected of silence, and when silence is believed."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import nilregret as nr
from nilregret.environments.delays import GeometricDelay, PoissonDelay, SilentNo
from nilregret.gp.arms import ArmPosterior
from nilregret.slots.pending import Arrivals, estimated_law, given_law

from .marks import nightly

ARMS = nr.Arms.grid(0, 1, 20)
BOX = nr.Box([0.0], [1.0])
HOURS = nr.Arms.grid(0, 1, 2)
KERNEL = nr.SquaredExponential(0.2, scale=0.0625)
SEARCH = nr.slots.PointSearch(candidates=32, around=4, starts=1, evaluations=5)
MEAN = 3.0
DELAY = GeometricDelay(MEAN)


def policy_of(pending, domain=ARMS, context=None, **more):
    kernel = KERNEL if context is None else nr.SquaredExponential([0.5, 0.2], scale=0.0625)
    return nr.gp_ucb(
        domain, kernel, noise=0.5, width=nr.slots.envelope.ConstantWidth(value=2.0), prior_mean=0.3, pending=pending,
        context=context, search=SEARCH, **more,
    )  # fmt: skip


def conversions(study, rounds, *, seed=0, delay=DELAY, zeros=False, kept=1.0):
    """A yes with probability 0.1 to 0.6, reported late; a no is silent, or (with `zeros`) reported likewise."""
    rng, due = np.random.default_rng(seed), {}
    contexts = study.policy.context
    for t in range(rounds):
        trial = study.ask(None if contexts is None else contexts.points[t % len(contexts)])
        yes = rng.uniform() < 0.1 + 0.5 * np.exp(-(((trial.point[0] - 0.7) / 0.2) ** 2))
        wait, lost = delay.draw(rng, trial.point, float(yes)), rng.uniform() > kept
        if (yes or zeros) and not lost:
            due.setdefault(t + int(wait), []).append((trial, float(yes)))
        for told, value in due.pop(t, []):
            study.tell(told, value)
    return study


def targets(study):
    """What each unanswered trial counts as, reward units; None for the variance alone."""
    data = study.replica.current().reward.data
    return {
        number: None
        if (target := data.posterior.entries[number].target) is None
        else float(data.posterior.units.back(np.array(target)))
        for number in data.pending.open
    }


# -- the law of delays -------------------------------------------------------------------------------------------------


def test_the_estimate_of_lynden_bell_forgives_that_slow_answers_are_not_seen_yet():
    rng = np.random.default_rng(0)
    ages = np.arange(400)
    delays = rng.poisson(12.0, size=400)
    seen = delays <= ages
    law = estimated_law(delays[seen], ages[seen])
    true = given_law(PoissonDelay(12.0))
    at = np.arange(30)
    np.testing.assert_allclose(law.later(at), true.later(at), atol=0.08)  # 400 draws: three standard deviations
    # Of young questions alone the quick answers are most of what is seen; their plain distribution is far off.
    young = slice(380, 400)
    ages = 399 - np.arange(400)[young]
    seen = delays[young] <= ages
    naive = np.mean(delays[young][seen] > 8)
    assert naive < true.later(np.array([8]))[0]


def test_the_estimate_is_the_product_of_reversed_hazards(monkeypatch):
    monkeypatch.setattr("nilregret.slots.pending.WEIGHT", 1e-9)
    delays, ages = np.array([0, 1, 1, 3, 2]), np.array([1, 9, 4, 6, 2])
    wanted = np.ones(11)
    for d in range(9, -1, -1):
        u = d + 1
        at_risk = np.count_nonzero((delays <= u) & (u <= ages))
        share = np.count_nonzero((delays == u) & (u <= ages)) / at_risk if at_risk else 0.0
        wanted[d] = wanted[d + 1] * (1.0 - share)
    found = 1.0 - estimated_law(delays, ages).later(np.arange(11))
    np.testing.assert_allclose(found[:4] / found[3], wanted[:4], atol=1e-6)
    assert found[3] < 1.0  # beyond what could have been seen the geometric law decides


def test_before_the_first_answer_delays_are_taken_for_geometric():
    law = Arrivals(None).law
    assert 5 < law.reaches(0.5) < 10
    assert law.reaches(0.99) < law.final_age < 100


def test_what_was_forgotten_is_seen_as_long_as_it_counted():
    arrivals = Arrivals(None)
    trial = nr.Study(policy_of("ignore"), seed=0).ask()
    for number in range(6):
        arrivals.add(trial._replace(number=number))
    arrivals.record(trial._replace(number=1, reward=1.0, state="observed"))
    arrivals.drop_before(3)
    arrivals.record(trial._replace(number=2, reward=1.0, state="observed"))  # too late: it counts no more
    arrivals.add(trial._replace(number=6))
    assert arrivals._limits().tolist() == [5, 4, 3, 3, 2, 1, 0]
    assert arrivals.by_age(4, arrivals.asked) == (2, 1)
    assert list(arrivals.open) == [3, 4, 5, 6]


# -- imputation --------------------------------------------------------------------------------------------------------


def test_silence_counts_as_what_is_expected_of_it():
    """E[y | no answer by age a] = q (1 - F(a)) / (1 - q F(a)) with the law given, and the mean of the round before."""
    study = nr.Study(policy_of(nr.slots.Imputed(answer=1.0, delay=GeometricDelay(MEAN))), seed=0)
    conversions(study, 60)
    data = study.replica.current().reward.data
    numbers, found = list(data.pending.open), targets(study)
    means = data.posterior.means([data.pending.open[number] for number in numbers])
    ages = np.array([59 - number for number in numbers])
    assert data.pending.waits.ages(numbers).tolist() == ages.tolist()
    later = (MEAN / (1.0 + MEAN)) ** (ages + 1)  # 1 - F
    q = np.clip(means, 0.02, 0.98)
    wanted = np.where(later < 1e-3, 0.0, q * later / (1.0 - q * (1.0 - later)))
    now = data.pending.waits.values(ages, means, np.zeros(len(ages)), 0.0)
    np.testing.assert_allclose(now, wanted, atol=1e-12)
    np.testing.assert_allclose(list(found.values()), wanted, atol=0.02)  # these by the means of just before
    assert 0.0 in found.values()
    assert max(found.values()) > 0.05


def test_values_other_than_one_and_nothing():
    """Everything twice as large and 3 lower is the same."""
    plain = conversions(nr.Study(policy_of(nr.slots.Imputed()), seed=0), 40)
    policy = policy_of(nr.slots.Imputed(minimum=-3.0))
    wide = replace(
        policy, kernel=nr.SquaredExponential(0.2, scale=0.25), noise=1.0, prior_mean=-2.4, regularization=1.0
    )
    study = nr.Study(wide, seed=0)
    told = {trial.number: trial for trial in plain.trials if trial.reward is not None}
    for t in range(40):
        trial = study.ask()
        assert trial.arm == plain.trials[t].arm
        for number, other in told.items():
            if other.told_order is not None and _asked_before(plain, other) == t + 1:
                study.tell(number, 2.0 * other.reward - 3.0)
    first, second = targets(plain), targets(study)
    np.testing.assert_allclose([2.0 * value - 3.0 for value in first.values()], list(second.values()), atol=1e-8)


def _asked_before(study, trial):
    return sum(other.asked_order < trial.told_order for other in study.trials)


def test_the_good_point_is_found_although_all_answers_are_the_same():
    study = conversions(nr.Study(policy_of(nr.slots.Imputed()), seed=0), 300)
    late = [trial.point[0] for trial in study.trials[200:]]
    assert np.mean(np.abs(np.array(late) - 0.7) < 0.2) > 0.8
    means, _ = study.predict(ARMS.points)
    assert abs(means.max() - 0.6) < 0.2  # hallucination takes every point that was ever answered for 1
    believing = conversions(nr.Study(policy_of("hallucinate"), seed=0), 300)
    assert believing.predict(ARMS.points)[0].max() > 0.85


WORLDS = {
    "arms": (ARMS, None, {}),
    "box": (BOX, None, {}),
    "contexts": (ARMS, HOURS, {}),
    "window": (ARMS, None, {"memory": nr.slots.SlidingWindow(25)}),
    "restarts": (ARMS, None, {"memory": nr.slots.RestartEvery(30)}),
    "box, window": (BOX, None, {"memory": nr.slots.SlidingWindow(20)}),
    "fits": (ARMS, None, {"refit": nr.slots.Refit(every=10)}),
    "drift": (ARMS, None, {"memory": nr.slots.Discount(0.02)}),
}


@pytest.mark.parametrize(
    "pending", [nr.slots.LateOrNever(), *nightly(nr.slots.Imputed(), nr.slots.Imputed(minimum=None))], ids=str
)
@pytest.mark.parametrize("world", WORLDS)
def test_replays_and_looks_change_nothing(world, pending):
    domain, context, more = WORLDS[world]
    rounds = 70 if domain is ARMS else 30
    studies = [nr.Study(policy_of(pending, domain, context, **more), seed=1) for _ in range(2)]
    conversions(studies[0], rounds // 2)
    for _ in range(3):
        studies[0].predict(ARMS.points[:3], context=None if context is None else context.points[0])
    again = nr.Study(studies[0].policy, seed=1)
    conversions(again, rounds)
    conversions(studies[1], rounds)
    assert [trial.point.tobytes() for trial in again.trials] == [trial.point.tobytes() for trial in studies[1].trials]
    looked = nr.Study(again.policy, seed=1)
    due = {trial.told_order: trial for trial in again.trials if trial.told_order is not None}
    for trial in again.trials:  # the same record, looked at in every round
        at = None if context is None else trial.context
        assert looked.ask(at).point.tobytes() == trial.point.tobytes()
        looked.predict(ARMS.points[:2], context=at)
        for order in sorted(due):
            if _asked_before(again, due[order]) == trial.number + 1:
                looked.tell(due[order].number, due[order].reward)


def test_a_belief_made_anew_goes_on_from_what_trials_counted_as():
    study = conversions(nr.Study(policy_of(nr.slots.Imputed()), seed=0), 60)
    data = study.replica.current().reward.data
    before, mean = targets(study), data.posterior.belief.predict()[0]
    data.rebuild_own(0)
    assert targets(study).keys() == before.keys()
    np.testing.assert_allclose(data.posterior.belief.predict()[0], mean, atol=1e-8)


def test_only_trials_that_may_still_be_answered_move():
    study = conversions(nr.Study(policy_of(nr.slots.Imputed(delay=GeometricDelay(MEAN))), seed=0), 200)
    waits = study.replica.current().reward.data.pending.waits
    open_ = len(waits._arrivals.open)
    assert len(waits.moving()) < 40 < 90 < open_


@pytest.mark.parametrize("pending", [nr.slots.Imputed(), nr.slots.LateOrNever()], ids=str)
def test_a_round_changes_the_belief_a_few_times_however_many_are_silent(pending, monkeypatch):
    """It did once for each silent trial that might still be answered, some 15 here and 250 where answers are slow."""
    study = conversions(nr.Study(policy_of(pending), seed=0), 150)
    changes = []
    monkeypatch.setattr(ArmPosterior, "_updated", lambda posterior: changes.append(posterior))
    before = targets(study)
    conversions(study, 20)
    assert sum(target != before[number] for number, target in targets(study).items() if number in before) >= 8
    # A question and its stand-in, an answer, and all that is silent.
    assert len(changes) <= 4 * 20


def test_a_yes_that_is_always_the_same_is_worth_more_than_silence_of_unknown_worth():
    study = conversions(nr.Study(policy_of(nr.slots.Imputed(minimum=None)), seed=0), 80)
    assert min(targets(study).values()) == 0.0
    study.tell(study.ask(), 0.4)
    study.ask()
    assert min(targets(study).values()) == pytest.approx(0.4)  # the smallest there was


def test_losses_have_the_other_sign():
    part = nr.slots.Imputed(minimum=5.0, answer=1.0)
    assert part.turned() == nr.slots.Imputed(minimum=-5.0, answer=-1.0)
    study = nr.Study(replace(policy_of(part), prior_mean=4.0), goal="minimize")
    for trial in study.ask(count=3):
        study.tell(trial, 1.0)
    silent = study.ask()
    for _ in range(80):
        study.tell(study.ask(), 1.0)
    study.ask()
    assert study.replica.current().reward.posterior.entries[silent.number].target == -5.0 + 4.0


def test_descriptions_survive_json_and_refuse_nonsense():
    for part in (nr.slots.Imputed(delay=GeometricDelay(4.0), answer=2.0), nr.slots.LateOrNever(minimum=None)):
        policy = policy_of(part)
        assert nr.Policy.from_json(policy.to_json()) == policy
    for wrong in ({"minimum": "a"}, {"answer": float("nan")}, {"delay": 3}, {"delay": SilentNo(0.1)}):
        with pytest.raises(nr.errors.InvalidInput):
            nr.slots.Imputed(**wrong)
    assert policy_of("auto").pending == nr.slots.LateOrNever()


def test_a_failure_that_counts_as_the_worst_follows_the_worst():
    study = nr.Study(policy_of(nr.slots.Imputed(minimum=None, failed="worst")), seed=0)
    first, second, failed = study.ask(count=3)
    study.tell(first, 0.5)
    study.fail(failed, "broken")
    study.ask()
    study.tell(second, -0.7)
    study.ask()
    data = study.replica.current().reward.data
    assert data.posterior.units.back(np.array(data.posterior.entries[failed.number].target)) == pytest.approx(-0.7)


# -- late, or never ----------------------------------------------------------------------------------------------------


def silence_of(study):
    return study.replica.current().reward.data.pending.waits.evident


def test_silence_is_believed_once_it_is_evident():
    study = nr.Study(policy_of("auto"), seed=0)
    conversions(study, 12)
    assert not silence_of(study)
    assert set(targets(study).values()) == {None}  # hallucinated
    conversions(study, 188)
    assert silence_of(study)
    assert None not in targets(study).values()


@pytest.mark.parametrize("kept", [1.0, 0.6])
def test_a_no_that_is_told_is_no_silence(kept):
    study = conversions(nr.Study(policy_of("auto"), seed=0), 200, zeros=True, kept=kept)
    assert not silence_of(study)


def test_what_was_evident_once_stays_so_where_every_question_is_answered():
    """At the best point all answers come: that says nothing of the others."""
    study = nr.Study(policy_of("auto"), seed=0)
    for t in range(200):
        trial = study.ask()
        if t >= 40 or t % 3 == 0:
            study.tell(trial, 1.0)
    assert silence_of(study)


@pytest.mark.parametrize("at_once", [0.8, 0.1])
def test_what_came_late_after_all_was_no_no(at_once):
    """Ten runs in which every question is answered with the same yes, at once or 60 questions later."""
    early, late = 0, 0
    for seed in range(10):
        rng, due = np.random.default_rng(seed), {}
        silence = nr.slots.LateOrNever().waits()
        for number in range(240):
            silence.ask(SimpleNamespace(number=number, reward=None))
            due.setdefault(number if rng.uniform() < at_once else number + 60, []).append(number)
            for told in due.pop(number, []):
                silence.hear(SimpleNamespace(number=told, reward=1.0))
            silence.moving()
            early += number == 59 and silence.evident
        late += silence.evident
    assert early >= 1  # until then nobody can know
    assert late == 0


def test_answers_that_differ_order_the_points_and_missing_ones_may_be_lost():
    study = nr.Study(policy_of("auto"), seed=0)
    for t in range(100):
        trial = study.ask()
        if t % 3 == 0:
            study.tell(trial, 0.2 + (t % 5) / 5)
    assert not silence_of(study)


@pytest.mark.parametrize("delay", [PoissonDelay(10.0), GeometricDelay(10.0)], ids=str)
def test_independent_delays_are_hallucinated(delay):
    policies = [policy_of("auto"), policy_of("hallucinate")]
    env = nr.Environment(lambda x: 0.5 + 0.4 * np.sin(6.0 * x[:, 0]), domain=ARMS, noise=0.1, delay=delay)
    runs = [nr.simulate(policy, env, 150, seed=2) for policy in policies]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)


# -- several channels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gp_ucb_noiseless_constraints", "gp_ucb_noisy_constraints"])
@pytest.mark.parametrize(
    "pending", [nr.slots.Censored(minimum=-1.0, window=50), nr.slots.Imputed(minimum=-1.0)], ids=str
)
def test_what_is_charged_for_answers_is_charged_for_silence_beside_them(name, pending):
    """Answered trials count as the reward less a penalty: a pending one beside them is not worth more than all."""
    make = getattr(nr, name)
    policy = make(ARMS, KERNEL, noise=0.1, epoch=10, epochs=12, constraints=1, norm_bound=1.0, pending=pending)
    study, due = nr.Study(policy, seed=0), {}
    for t in range(60):
        trial = study.ask()
        due.setdefault(t + 3, []).append(trial)
        for known in due.pop(t, []):
            study.tell(known, 0.5, constraints=[1.5 * known.point[0] + 0.5])
    study.ask()
    data = study.replica.current().reward.data
    assert data.multipliers[0] > 1.0
    silent = targets(study)
    answered = {n: entry.target for n, entry in data.posterior.entries.items() if n not in data.pending.open}
    for number, value in silent.items():
        beside = [value for n, value in answered.items() if study.trials[n].arm == study.trials[number].arm]
        if beside:
            assert value <= max(beside) + 1e-9
            assert value >= min(beside) - 1.5 - 1e-9  # rewards are from -1 to 0.5


@pytest.mark.filterwarnings("ignore:The multipliers")
def test_a_failure_that_counts_as_the_worst_is_charged_too():
    policy = nr.gp_ucb_noiseless_constraints(
        ARMS,
        KERNEL,
        noise=0.1,
        epoch=5,
        epochs=9,
        constraints=1,
        norm_bound=1.0,
        pending=nr.slots.Ignored(failed="worst"),
    )
    study = nr.Study(policy, seed=0)
    for _ in range(25):
        study.tell(study.ask(), 0.5, constraints=[0.6])
    failed = study.ask()
    study.fail(failed, "broken")
    study.ask()
    entries = study.replica.current().reward.posterior.entries
    assert entries[failed.number].target == pytest.approx(min(entry.target for entry in entries.values()))
    assert entries[failed.number].target < -5.0


def test_each_channel_may_have_a_rule_of_its_own():
    """A discount is given only with a buy: where none is told it was none, and the budget is not used up."""
    world = nr.EveryRound(count=2, pending=(nr.slots.Imputed(minimum=-0.3), None), noise=0.1)
    study = nr.Study(policy_of("hallucinate", constraints=world), seed=0)
    for _ in range(120):
        trial = study.ask()
        if trial.number % 3 == 0:
            study.tell(trial, 1.0, constraints=[0.4, -0.1])
    study.ask()
    first, second = (output.data for output in study.replica.current().outputs.constraints)
    assert isinstance(first.policy.pending, nr.slots.Imputed)
    assert isinstance(second.policy.pending, nr.slots.Hallucinated)
    silent = [first.posterior.entries[number].target for number in list(first.pending.open)[:20]]
    assert silent == [-0.3] * 20
    assert {second.posterior.entries[number].target for number in second.pending.open} == {None}
    with pytest.raises(nr.errors.InvalidInput, match="certifies by answers"):
        nr.Safe(count=1, start=[[0.5]], pending=nr.slots.Imputed())
    with pytest.raises(nr.errors.InvalidInput, match="`pending`"):
        nr.EveryRound(count=1, pending="auto")
