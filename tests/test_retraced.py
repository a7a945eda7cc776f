"""A function that drifts, with answers that come late, are replaced, weighed anew or forgotten: the dense posterior."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp import BankPosterior, DriftingPosterior, OutOfSequencePosterior
from nilregret.gp import drifting as bank_module
from nilregret.slots.envelope import ConstantWidth
from nilregret.testing import check_policy

from .marks import thinned

ARMS, BOX = nr.Arms.grid(0, 1, 15), nr.Box(0.0, 1.0)
KERNEL, NOISE, RATE = nr.Matern(2.5, 0.3), 0.1, 0.05


def dense(rows, targets, times, now, *, at=ARMS.points, rate=RATE, ridge=NOISE**2):
    """Mean and std of f in round `now`, by one solve over (round, point)."""
    rows, times = np.asarray(rows).reshape(len(rows), -1), np.asarray(times, dtype=float)
    K = KERNEL(rows, rows) * (1 - rate) ** (np.abs(times[:, None] - times) / 2)
    k = KERNEL(rows, at) * (1 - rate) ** (np.abs(times - now)[:, None] / 2)
    solved = np.linalg.solve(K + ridge * np.eye(len(rows)), np.column_stack([targets, k]))
    variance = KERNEL.diagonal(at) - np.einsum("ij,ij->j", k, solved[:, 1:])
    return k.T @ solved[:, 0], np.sqrt(np.maximum(variance, 0.0))


# -- the posterior -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, 0.03, 1.0])
def test_whatever_became_of_observations_it_is_the_dense_posterior(rate):
    rng = np.random.default_rng(1)
    posterior, told = OutOfSequencePosterior(DriftingPosterior(ARMS, KERNEL, 0.01, rate=rate)), {}
    for now in range(120):
        posterior.advance(now)
        for _ in range(rng.integers(3)):
            round_, arm, target = int(rng.integers(now + 1)), int(rng.integers(15)), float(rng.standard_normal())
            if round_ not in told:
                posterior.append(posterior.entry(arm, round_), target)
                told[round_] = arm, target
            elif rng.random() < 0.5:
                arm, old = told[round_]
                posterior.revise(posterior.entry(arm, round_), old, target)
                told[round_] = arm, target
            else:
                arm, old = told.pop(round_)
                posterior.forget(posterior.entry(arm, round_), old)
        assert posterior.count == len(told)
        if told and now % 7 == 0:
            arms, targets = zip(*told.values(), strict=True)
            expected = dense(ARMS.points[list(arms)], targets, list(told), now, rate=rate)
            np.testing.assert_allclose(posterior.predict(), expected, atol=1e-8)
    assert len(posterior._marks) < 45  # of 120


@pytest.mark.parametrize("chain", [
    lambda: DriftingPosterior(ARMS, KERNEL, 0.01, rate=0.03),
    lambda: BankPosterior(ARMS, KERNEL, 0.01, rates=(0.0, 0.01, 0.1)),
])  # fmt: skip
def test_the_way_leaves_no_trace(chain):
    """To the last bit: told in order, in any order, looked at in between, revised and taken back."""
    rng = np.random.default_rng(2)
    told = [(int(arm), round_, float(y)) for round_, (arm, y) in enumerate(zip(rng.integers(15, size=60),
            rng.standard_normal(60), strict=True)) if round_ % 4]  # fmt: skip
    straight, crooked = OutOfSequencePosterior(chain()), OutOfSequencePosterior(chain())
    for arm, round_, y in told:
        straight.append(straight.entry(arm, round_), y)
        straight.advance(round_)
    straight.advance(60)
    crooked.append(crooked.entry(3, 0), 9.0)
    for i in rng.permutation(len(told)).tolist():
        arm, round_, y = told[i]
        crooked.append(crooked.entry(arm, round_), 7.0)
        crooked.advance(max(crooked.now, round_))
        crooked.predict()
        crooked.copy().append(crooked.entry(1, 200), 5.0)
        crooked.revise(crooked.entry(arm, round_), 7.0, y)
    crooked.advance(60)
    crooked.predict()
    crooked.forget(crooked.entry(3, 0), 9.0)
    for one, other in ((straight, crooked), (straight.copy(), crooked.copy())):
        np.testing.assert_array_equal(one.predict(), other.predict())
        assert one.information_gain == other.information_gain
        assert one.mean_norm == other.mean_norm


def test_what_is_not_there_cannot_be_changed():
    posterior = OutOfSequencePosterior(DriftingPosterior(ARMS, KERNEL, 0.01, rate=0.1))
    posterior.append(posterior.entry(3, 5), 1.0)
    for use in (lambda: posterior.revise(posterior.entry(4, 5), 1.0, 2.0), lambda: posterior.forget(3, 1.0)):
        with pytest.raises(nr.errors.InvalidInput, match="has no observation of round"):
            use()
    with pytest.raises(nr.errors.InvalidInput, match="has an observation already"):
        posterior.append(posterior.entry(4, 5), 1.0)
    posterior.advance(7)
    with pytest.raises(nr.errors.InvalidInput, match="time goes on"):
        posterior.advance(6)


# -- studies -----------------------------------------------------------------------------------------------------------


def ucb(memory=None, domain=ARMS, **more):
    width = ConstantWidth(value=2.0)
    return nr.gp_ucb(domain, KERNEL, noise=NOISE, width=width, memory=memory or nr.slots.Discount(RATE), **more)


def reward(trial):
    return float(np.sin(7 * trial.point[0] + 0.1 * trial.number))


def late(study, rounds=20, *, lags=(2, 0, 5, 1), **told):
    """Answers come after some further questions, every seventh never."""
    due = {}
    for t in range(rounds):
        for trial in due.pop(t, []):
            study.tell(trial, reward(trial), **told)
        trial = study.ask()
        if t % 7 != 6:
            due.setdefault(t + 1 + lags[t % len(lags)], []).append(trial)
    return study


def counted(study):
    """(points, rounds) of the answered and of the unanswered trials, and the rewards."""
    answered = [trial for trial in study.trials if trial.reward is not None]
    waiting = [trial for trial in study.trials if trial.reward is None]
    return answered, waiting, [trial.reward for trial in answered]


@pytest.mark.parametrize("domain", [ARMS, BOX], ids=["arms", "box"])
def test_hallucination_under_a_discount(domain):
    study = late(nr.Study(ucb(domain=domain, pending="hallucinate"), seed=0), 14)
    answered, waiting, rewards = counted(study)
    assert len(waiting) > 3
    mean, std = study.predict(ARMS.points)
    rows, times = [t.point for t in answered], [t.number for t in answered]
    np.testing.assert_allclose(mean, dense(rows, rewards, times, 14)[0], atol=1e-8)
    everything = answered + waiting
    spread = dense([t.point for t in everything], np.zeros(14), [t.number for t in everything], 14)[1]
    np.testing.assert_allclose(std, spread, atol=1e-7)


@pytest.mark.parametrize("domain", [ARMS, BOX], ids=["arms", "box"])
def test_censoring_under_a_discount(domain):
    pending = nr.slots.Censored.within(3, minimum=-2.0)
    study = late(nr.Study(ucb(domain=domain, pending=pending), seed=0), 14)
    targets = {trial.number: -2.0 for trial in study.trials}
    for trial in study.trials:
        if trial.reward is not None and (2, 0, 5, 1)[trial.number % 4] <= 3:
            targets[trial.number] = trial.reward
    expected = dense([t.point for t in study.trials], list(targets.values()), list(targets), 14)
    np.testing.assert_allclose(study.predict(ARMS.points), expected, atol=1e-7)


def test_a_window_over_a_discount_and_what_has_failed():
    study = nr.Study(
        ucb(
            nr.slots.AllOf((nr.slots.SlidingWindow(6), nr.slots.Discount(RATE))),
            pending=nr.slots.Hallucinated(failed="worst"),
        )
    )
    for t in range(15):
        trial = study.ask()
        if t == 11:
            study.fail(trial, "no answer")
        else:
            study.tell(trial, reward(trial))
    last = study.trials[-6:]
    least = min(trial.reward for trial in study.trials if trial.reward is not None)
    targets = [least if trial.reward is None else trial.reward for trial in last]
    expected = dense([t.point for t in last], targets, [t.number for t in last], 15)
    np.testing.assert_allclose(study.predict(), expected, atol=1e-7)


def test_constraint_values_that_come_late_under_a_discount():
    study = nr.Study(ucb(constraints=nr.EveryRound(noise=NOISE, prior_mean=0.0), pending="hallucinate"), seed=0)
    trials = []
    for t in range(12):
        trials.append(study.ask())
        if t % 2:
            study.tell(trials[-1], constraints=[float(np.cos(trials[-1].point[0]))])
    known = trials[1::2]
    values = [float(np.cos(t.point[0])) for t in known]
    expected = dense([t.point for t in known], values, [t.number for t in known], 12)[0]
    np.testing.assert_allclose(np.mean(study.bounds(channel=1), axis=0), expected, atol=1e-8)


def test_multipliers_weigh_old_trials_anew_under_a_discount():
    policy = nr.gp_ucb_noisy_constraints(
        ARMS,
        KERNEL,
        noise=NOISE,
        norm_bound=1.0,
        epoch=5,
        epochs=4,
        regularization=NOISE**2,
        memory=nr.slots.Discount(RATE),
    )
    study = nr.Study(policy, seed=0)
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, reward(trial), constraints=[0.5 + float(trial.point[0])])
    price = study.multipliers[0]
    assert price > 0.0
    targets = [t.reward - price * t.constraints[0] for t in study.trials]
    expected = dense([t.point for t in study.trials], targets, range(12), 12)
    np.testing.assert_allclose(study.predict(), expected, atol=1e-8)


def test_rates_are_weighed_by_answers_alone(monkeypatch):
    """Questions shrink the variance of each rate; which rate is likely is for the answers to say."""
    monkeypatch.setattr(bank_module, "TOLERANCE", 0.0)
    rates = (0.0, 0.02, 0.2)
    one = late(nr.Study(ucb(nr.slots.DriftBank(rates)), seed=0))
    other = nr.Study(ucb(nr.slots.DriftBank(rates), pending="hallucinate"), seed=0)
    due = {}
    for t, trial in enumerate(one.trials):  # the same trials, whatever the policy would play
        for before in due.pop(t, []):
            other.tell(before, reward(before))
        asked = other.ask(among=[trial.arm])
        if trial.reward is not None:
            due.setdefault(t + 1 + (2, 0, 5, 1)[t % 4], []).append(asked)
    assert [t.arm for t in one.trials] == [t.arm for t in other.trials]
    assert {t.number for t in counted(one)[1]} == {t.number for t in counted(other)[1]}
    answered, asked = (
        other.replica.current().reward.posterior.belief.observed.chain,
        other.replica.current().reward.posterior.belief.with_pending.chain,
    )
    np.testing.assert_array_equal(answered.shares, one.replica.current().reward.posterior.belief.observed.chain.shares)
    np.testing.assert_array_equal(other.predict()[0], one.predict()[0])
    means = answered._means
    variances = answered.shares @ (asked._variances + (means - answered.shares @ means) ** 2)
    np.testing.assert_allclose(other.predict()[1], np.sqrt(variances), atol=1e-12)
    assert (other.predict()[1] < one.predict()[1]).any()


PROMISES = {
    "hallucinated": ucb(pending="hallucinate"),
    "censored": ucb(pending=nr.slots.Censored.within(3, minimum=-2.0)),
    "nearest": ucb(pending=nr.slots.NearestMeans()),
    "bank, hallucinated": ucb(nr.slots.DriftBank((0.0, 0.1)), pending="hallucinate"),
    "constraints": ucb(constraints=nr.OnAverage(), pending="hallucinate"),
    "box": ucb(domain=BOX, search=nr.slots.PointSearch(candidates=32), pending="hallucinate"),
    "box, draws": nr.algorithms.gp_bts(
        BOX, KERNEL, noise=NOISE, beta=1.0, memory=nr.slots.Discount(0.3), search=nr.slots.PointSearch(candidates=32)
    ),
}


@pytest.mark.parametrize("name", thinned(PROMISES, "censored", "bank, hallucinated", "box"))
def test_it_keeps_the_promises_of_a_policy(name):
    check_policy(PROMISES[name], rounds=10)
