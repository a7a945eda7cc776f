"""Posteriors at several rates of drift, and the memory that is made of them."""

import math

import numpy as np
import pytest
from scipy import stats

import nilregret as nr
from nilregret.environments import Environment, drifting_samples, gp_sample
from nilregret.errors import InvalidInput
from nilregret.gp import BankPosterior, DriftingPosterior
from nilregret.gp import drifting as module
from nilregret.slots.envelope import ConstantWidth
from nilregret.testing import check_policy

ARMS = nr.Arms.grid(0.0, 1.0, 12)
KERNEL = nr.Matern(2.5, 0.3)
NOISE = 0.1
LAMBDA = NOISE**2
RATES = (0.0, 0.01, 0.1)


def told(rounds, seed=0):
    """(arm, reward) of each round; every fifth has none."""
    rng = np.random.default_rng(seed)
    f = [each.values for each in drifting_samples(KERNEL, ARMS, rounds=rounds, rate=0.02, seed=seed)]
    arms = rng.integers(len(ARMS), size=rounds)
    return [
        None if t % 5 == 4 else (int(arms[t]), float(f[t][arms[t]] + NOISE * rng.standard_normal()))
        for t in range(rounds)
    ]


def learned(posterior, answers):
    for answer in answers:
        if answer is not None:
            posterior.append(*answer)
        posterior.tick()
    return posterior


def bank(rates=RATES):
    return BankPosterior(ARMS, KERNEL, LAMBDA, rates=rates)


def drifting(rate):
    return DriftingPosterior(ARMS, KERNEL, LAMBDA, rate=rate)


@pytest.mark.parametrize("every", [256, 7], ids=["running sums", "recomputed"])
@pytest.mark.parametrize("rate", RATES)
def test_each_rate_is_the_posterior_that_drifts_at_it(monkeypatch, rate, every):
    monkeypatch.setattr(module, "RECOMPUTE_EVERY", every)
    monkeypatch.setattr(module, "TOLERANCE", 0.0)
    one, exact = learned(bank((rate,)), told(60)), learned(drifting(rate), told(60))
    for found, expected in zip(one.predict(), exact.predict(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(one.covariance([1, 5]), exact.covariance([1, 5]), atol=1e-8)
    np.testing.assert_allclose(one.mean_norm, exact.mean_norm, rtol=1e-6)
    np.testing.assert_allclose(one.information_gain, exact.information_gain, rtol=1e-8)
    draws = [posterior.sample(np.random.default_rng(3), size=2000) for posterior in (one, exact)]
    np.testing.assert_allclose(draws[0].std(axis=0), draws[1].std(axis=0), rtol=0.15)


def test_features_leave_out_little_beside_the_noise():
    """Std within 2%, mean within 0.003 at noise 0.1: what the tolerance leaves out is a thousandth of lambda."""
    one, exact = learned(bank((0.01,)), told(60)), learned(drifting(0.01), told(60))
    np.testing.assert_allclose(one.predict()[0], exact.predict()[0], atol=3e-3)
    np.testing.assert_allclose(one.predict()[1], exact.predict()[1], rtol=0.02)


def test_shares_are_what_the_rates_have_predicted():
    """Redone with the posterior of each rate and scipy's Student-t."""
    experts, shares = [drifting(rate) for rate in RATES], np.full(3, 1.0 / 3.0)
    squares, seen, found = np.zeros(3), 0, bank()
    for answer in told(50):
        if answer is not None:
            arm, reward = answer
            p = np.zeros(3)
            for j, expert in enumerate(experts):
                mean, std = (float(each[0]) for each in expert.predict([arm]))
                total = std**2 + LAMBDA
                scale = math.sqrt((10.0 + squares[j]) / (10.0 + seen) * total)
                p[j] = stats.t.pdf(reward, 10.0 + seen, loc=mean, scale=scale)
                squares[j] += (reward - mean) ** 2 / total
                expert.append(arm, reward)
            seen += 1
            shares = (1.0 - 1e-3) * shares * p / (shares @ p) + 1e-3 / 3.0
            found.append(arm, reward)
        found.tick()
        for expert in experts:
            expert.tick()
    np.testing.assert_allclose(found.shares, shares, rtol=0.02)
    np.testing.assert_allclose(found.shares.sum(), 1.0)
    means, stds = (np.array(each) for each in zip(*(expert.predict() for expert in experts), strict=True))
    mean = shares @ means
    variance = shares @ (stds**2 + (means - mean) ** 2)
    np.testing.assert_allclose(found.predict()[0], mean, atol=5e-3)
    np.testing.assert_allclose(found.predict()[1], np.sqrt(variance), rtol=0.03)
    np.testing.assert_allclose(np.diag(found.covariance(range(len(ARMS)))), variance, rtol=0.05)
    assert found.rate == RATES[int(shares.argmax())]


def test_copies_go_on_by_themselves():
    one = learned(bank(), told(20))
    two = one.copy()
    learned(two, told(20, seed=1))
    before = one.predict()[0]
    assert np.abs(two.predict()[0] - before).max() > 0.1
    np.testing.assert_array_equal(learned(one, told(20, seed=1)).predict()[0], two.predict()[0])


# -- the memory --------------------------------------------------------------------------------------------------------


def ucb(memory, **choices):
    return nr.gp_ucb(ARMS, KERNEL, noise=NOISE, width=ConstantWidth(value=2.0), memory=memory, **choices)


def rate_after(study):
    return study.replica.current().reward.posterior.belief.observed.rate


@pytest.mark.parametrize("rate", [0.0, 0.03])
def test_it_finds_the_rate_of_the_world(rate):
    functions = drifting_samples(KERNEL, ARMS, rounds=200, rate=rate, seed=4) if rate else None
    still = gp_sample(KERNEL, ARMS, seed=4)
    study, rng = nr.Study(ucb(nr.slots.DriftBank()), seed=0), np.random.default_rng(2)
    for t in range(200):
        trial = study.ask()
        f = (still if functions is None else functions[t]).values
        study.tell(trial, float(f[trial.arm] + NOISE * rng.standard_normal()))
    assert 0.3 * rate <= rate_after(study) <= max(3.0 * rate, 3e-4)
    assert study.restarts == []


def test_one_rate_plays_what_a_discount_plays():
    functions = drifting_samples(KERNEL, ARMS, rounds=60, rate=0.05, seed=1)
    env = Environment(functions, domain=ARMS, noise=NOISE, change_points=range(1, 60))
    runs = [
        nr.simulate(ucb(memory), env, 60, seed=2) for memory in (nr.slots.DriftBank((0.05,)), nr.slots.Discount(0.05))
    ]
    assert np.mean(runs[0].regret == runs[1].regret) > 0.9  # but for ties that the features' tolerance breaks


@pytest.mark.parametrize(
    "policy",
    [
        ucb(nr.slots.DriftBank((0.0, 0.05))),
        nr.gp_ts(
            ARMS, nr.Matern(2.5, [0.3, 0.3]), noise=NOISE, norm_bound=1.0, context=nr.Arms.grid(0, 1, 3),
            memory=nr.slots.DriftBank((0.0, 0.05)),
        ),
    ],
    ids=["arms", "contexts"],
)  # fmt: skip
def test_it_keeps_the_promises_of_a_memory(policy):
    check_policy(policy)
    assert policy.valid_for == "none"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.slots.DriftBank(()), "`rates` are"),
        (lambda: nr.slots.DriftBank((0.1, 0.01)), "ascending order"),
        (lambda: nr.slots.DriftBank((0.0,)), "not all 0"),
        (lambda: nr.slots.DriftBank((0.0, 1.5)), "`rates` is 1.5"),
        (lambda: ucb(nr.slots.DriftBank(), refit=nr.slots.Refit()), "under `DriftBank` f is another one in each round"),
        (
            lambda: nr.gp_ucb(nr.Box([0.0], [1.0]), KERNEL, noise=NOISE, memory=nr.slots.DriftBank()),
            "`DriftBank` keeps a posterior for each rate",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_rates_are_weighed_by_the_noise_told_whatever_lambda_is():
    rates = (0.0, 0.01, 0.1)
    wide = BankPosterior(ARMS, KERNEL, 1.0, rates=rates, noise_variance=LAMBDA)
    told, plain = BankPosterior(ARMS, KERNEL, LAMBDA, rates=rates), BankPosterior(ARMS, KERNEL, 1.0, rates=rates)
    rng = np.random.default_rng(0)
    for _ in range(40):
        arm = int(rng.integers(len(ARMS)))
        target = math.sin(arm) + NOISE * float(rng.normal())
        for bank in (wide, told, plain):
            bank.append(arm, target)
            bank.tick()
    np.testing.assert_allclose(wide.shares, told.shares, atol=1e-3)  # features leave 1e-3 of lambda out
    assert np.abs(plain.shares - told.shares).max() > 0.1
    plain._log_shares = wide._log_shares
    for ours, theirs in ((wide, plain), (wide.copy().deviations_from(wide), plain.deviations_from(plain))):
        np.testing.assert_allclose(ours.predict(), theirs.predict(), atol=1e-2)
        np.testing.assert_allclose(ours.covariance(np.arange(3)), theirs.covariance(np.arange(3)), atol=1e-2)
    assert wide.mean_norm == pytest.approx(plain.mean_norm, rel=1e-2)
    assert wide.log_determinant_ratio == pytest.approx(plain.log_determinant_ratio, rel=1e-2)


def test_the_bank_of_a_policy_knows_its_noise():
    memory = nr.slots.DriftBank((0.0, 0.05))
    wide = nr.igp_ucb(ARMS, KERNEL, norm_bound=3.0, regularization=1.0, noise=NOISE, memory=memory)
    studies = [nr.Study(wide), nr.Study(ucb(memory))]
    rng = np.random.default_rng(2)
    for _ in range(30):
        arm, target = int(rng.integers(len(ARMS))), float(rng.normal())
        for study in studies:
            study.add(ARMS.points[arm], target)
    wide, told = (study.replica.current().reward.posterior.belief.observed.chain for study in studies)
    np.testing.assert_allclose(wide.shares, told.shares, atol=1e-3)
