"""Constraints with posteriors of their own: every round, on average, safely; against dense Gaussian processes."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from scipy.stats import norm

import nilregret as nr
from nilregret import testing
from nilregret.errors import InvalidInput, TrialError
from nilregret.gp.warping import signed_log
from nilregret.slots.constraints import Constraints
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.explore import UniformExploration
from nilregret.slots.objective import AdditivePenalty
from nilregret.slots.scores import UpperConfidenceBound
from nilregret.study.front import best_shares

from .marks import nightly

ARMS, KERNEL, NOISE = nr.Arms.grid(0, 1, 41), nr.SquaredExponential(0.15), 0.1
LIMIT_KERNEL, LIMIT_NOISE = nr.Matern(2.5, 0.3), 0.05
BOX = nr.Box([0.0, 0.0], [1.0, 1.0])
WIDTH = 2.0


def f(points):
    return np.sin(6.0 * points[:, 0])


def g(points):
    return 0.4 - points[:, 0]  # feasible right of 0.4; the best reward is at 0.26


def policy(domain=ARMS, *, constraints=None, **more):
    kernel = KERNEL if domain is ARMS else nr.Matern(2.5, 0.4)
    made = nr.gp_ucb(domain, kernel, noise=NOISE, constraints=constraints, **more)
    return made.using(confidence=ConstantWidth(value=WIDTH))


EVERY = nr.EveryRound(kernel=LIMIT_KERNEL, noise=LIMIT_NOISE, prior_mean=0.1)


def values(trial):
    rng = np.random.default_rng([5, trial.number])
    point = trial.point[None]
    return float(f(point)[0] + NOISE * rng.normal()), [float(g(point)[0] + LIMIT_NOISE * rng.normal())]


def play(study, rounds, *, early=False):
    for _ in range(rounds):
        trial = study.ask()
        reward, limits = values(trial)
        if early:
            study.tell(trial, constraints=limits)
            study.tell(trial, reward)
        else:
            study.tell(trial, reward, constraints=limits)
    return study


def dense(kernel, ridge, prior_mean, points, targets, at):
    """Posterior mean and std of one channel by the textbook."""
    K = kernel(points, points) + ridge * np.eye(len(points))
    k = kernel(points, at)
    mean = prior_mean + k.T @ np.linalg.solve(K, targets - prior_mean)
    return mean, np.sqrt(kernel.diagonal(at) - np.einsum("ij,ij->j", k, np.linalg.solve(K, k)))


def channels_by_hand(trials, at=ARMS.points):
    points = np.array([trial.point for trial in trials])
    rewards = np.array([trial.reward for trial in trials])
    limits = np.array([trial.constraints[0] for trial in trials])
    return (
        dense(KERNEL, NOISE**2, 0.0, points, rewards, at),
        dense(LIMIT_KERNEL, LIMIT_NOISE**2, 0.1, points, limits, at),
    )


# -- one posterior for each channel ------------------------------------------------------------------------------------


def test_each_channel_is_its_own_gaussian_process():
    study = play(nr.Study(policy(constraints=EVERY), seed=1), 25)
    reward, limit = channels_by_hand(study.trials)
    for channel, (mean, std) in enumerate((reward, limit)):
        lower, upper = study.bounds(channel=channel)
        np.testing.assert_allclose(lower, mean - WIDTH * std, atol=1e-8)
        np.testing.assert_allclose(upper, mean + WIDTH * std, atol=1e-8)
    np.testing.assert_allclose(study.bounds()[0], study.bounds(channel=0)[0])


@pytest.mark.parametrize("domain", [ARMS, nr.Box(0.0, 1.0)])
def test_every_round_plays_the_best_upper_bound_where_no_lower_bound_is_violated(domain):
    """CONFIG, decision by decision; on a box to within what its search finds."""
    made = policy(ARMS, constraints=EVERY)
    study = nr.Study(made if domain is ARMS else made.using(domain=domain), seed=2)
    grid = np.linspace(0, 1, 401)[:, None] if domain is not ARMS else ARMS.points
    for t in range(20):
        trial = study.ask()
        if t > 1:
            (mean, std), (limit, spread) = channels_by_hand(study.trials[:-1], grid)
            (m, s), (gm, gs) = channels_by_hand(study.trials[:-1], trial.point[None])
            allowed = limit - WIDTH * spread <= 0.0
            assert allowed.any()
            assert gm[0] - WIDTH * gs[0] <= 1e-9
            assert m[0] + WIDTH * s[0] >= np.where(allowed, mean + WIDTH * std, -np.inf).max() - 1e-4
        reward, limits = values(trial)
        study.tell(trial, reward, constraints=limits)


def test_what_is_given_for_each_constraint_is_its_own():
    part = nr.EveryRound(
        count=2, kernel=(LIMIT_KERNEL, KERNEL), noise=(0.0, 0.2), regularization=(1e-3, 0.04), prior_mean=(0.0, -1.0)
    )
    made = policy(constraints=part)
    first, second = made.of_channel(1), made.of_channel(2)
    assert (first.kernel, first.noise, first.regularization, first.prior_mean) == (LIMIT_KERNEL, 0.0, 1e-3, 0.0)
    assert (second.kernel, second.noise, second.regularization, second.prior_mean) == (KERNEL, 0.2, 0.04, -1.0)
    plain = policy(constraints=nr.EveryRound()).of_channel(1)
    assert (plain.kernel, plain.noise, plain.regularization, plain.prior_mean) == (KERNEL, NOISE, NOISE**2, 0.0)
    assert policy(constraints=nr.EveryRound(noise=0.0)).of_channel(1).regularization == pytest.approx(1e-6)
    assert policy(constraints=nr.EveryRound(confidence=3)).of_channel(1).confidence == ConstantWidth(value=3.0)


@pytest.mark.parametrize("domain", [ARMS, nr.Box(0.0, 1.0)])
def test_constraints_that_never_bind_change_nothing(domain):
    """Degeneracy: the same questions as without constraints."""
    plain = nr.gp_ucb(domain, KERNEL, noise=NOISE)
    slack = nr.Study(plain.using(constraints=nr.EveryRound(prior_mean=-100.0)), seed=4)
    study = nr.Study(plain, seed=4)
    for _ in range(12):
        one, other = study.ask(), slack.ask()
        assert one.point.tolist() == other.point.tolist()
        study.tell(one, values(one)[0])
        slack.tell(other, values(other)[0], constraints=[-100.0])
    np.testing.assert_array_equal(study.bounds([[0.3]])[0], slack.bounds([[0.3]])[0])


# -- what is known when ------------------------------------------------------------------------------------------------


def test_constraint_values_may_come_before_the_reward():
    together = play(nr.Study(policy(constraints=EVERY), seed=1), 15)
    early = play(nr.Study(policy(constraints=EVERY), seed=1), 15, early=True)
    assert [trial.arm for trial in early.trials] == [trial.arm for trial in together.trials]
    trial = early.ask()
    lower = early.bounds(channel=1)[0][trial.arm]
    reward = early.bounds()[0][trial.arm]
    told = early.tell(trial, constraints=[0.3])
    assert told.state == "pending"
    assert told.constraints.tolist() == [0.3]
    assert early.bounds(channel=1)[0][trial.arm] != lower  # the discount is known when it is given
    assert early.bounds()[0][trial.arm] == reward  # the purchase is not
    answered = early.tell(trial, 0.5)
    assert (answered.reward, answered.constraints.tolist()) == (0.5, [0.3])
    assert answered.constraints_order < answered.told_order


def test_constraint_values_may_come_after_the_reward():
    study = play(nr.Study(policy(constraints=EVERY), seed=1), 6)
    trial = study.ask()
    study.tell(trial, 0.2)
    before = study.bounds(channel=1)[1][trial.arm]
    study.tell(trial, constraints=[0.25])
    assert study.bounds(channel=1)[1][trial.arm] != before
    _, (mean, std) = channels_by_hand(study.trials)
    np.testing.assert_allclose(study.bounds(channel=1)[1], mean + WIDTH * std, atol=1e-8)


def test_constraint_values_are_told_once():
    study = nr.Study(policy(constraints=EVERY))
    trial = study.ask()
    study.tell(trial, constraints=[0.1])
    for again in ({"constraints": [0.2]}, {"reward": 1.0, "constraints": [0.2]}):
        with pytest.raises(nr.errors.TrialError, match="constraint values of trial 0 were told already"):
            study.tell(trial, **again)
    study.fail(trial, "lost")
    other = study.ask()
    study.fail(other, "lost")
    with pytest.raises(nr.errors.TrialError, match="was told to have failed"):
        study.tell(other, constraints=[0.2])
    with pytest.raises(nr.errors.InvalidInput, match="`reward` must be a number"):
        study.tell(study.ask())
    with pytest.raises(nr.errors.InvalidInput, match="one for each constraint"):
        study.tell(study.ask(), constraints=[0.1, 0.2])


def test_a_policy_that_learns_from_both_together_takes_no_values_after_the_reward():
    made = nr.gp_ucb_noisy_constraints(ARMS, KERNEL, noise=NOISE, norm_bound=1.0, epoch=4, epochs=5)
    together, early = play(nr.Study(made, seed=1), 15), play(nr.Study(made, seed=1), 15, early=True)
    assert [trial.arm for trial in early.trials] == [trial.arm for trial in together.trials]
    np.testing.assert_array_equal(early.multipliers, together.multipliers)
    trial = early.ask()
    early.tell(trial, 0.1)
    with pytest.raises(nr.errors.TrialError, match="it is too late for them"):
        early.tell(trial, constraints=[0.1])


@pytest.mark.parametrize(
    "part", [EVERY, nr.OnAverage(step=0.4), nr.Safe(start=[1.0], scale=1.0)], ids=["every", "mean", "safe"]
)
def test_a_study_goes_on_exactly_whatever_was_told_by_itself(part, tmp_path):
    made = policy(constraints=part, pending="hallucinate")

    def events(study, steps):
        for step in steps:
            trial = study.ask()
            reward, limits = values(trial)
            if step % 3 == 0:
                study.tell(trial, constraints=limits)
            elif step % 3 == 1:
                study.tell(trial, reward)
                if step > 3:
                    early = study.trials[step - 1]
                    study.tell(early, values(early)[0])
            else:
                study.tell(trial, reward, constraints=limits)
                late = study.trials[step - 1]
                study.tell(late, constraints=values(late)[1])
        return study

    whole = events(nr.Study(made, seed=3), range(18))
    url = f"sqlite:///{tmp_path}/a.db"
    events(nr.Study(made, seed=3, storage=url), range(7))
    events(nr.Study.open(storage=url), range(7, 14))
    other = nr.Study.open(storage=url)  # one that reads what another writes
    again = events(nr.Study.open(storage=url), range(14, 18))
    for study in (again, other, nr.Study.open(storage=url)):
        assert [trial.arm for trial in study.trials] == [trial.arm for trial in whole.trials]
        for channel in (0, 1):
            np.testing.assert_array_equal(study.bounds(channel=channel), whole.bounds(channel=channel))
        np.testing.assert_array_equal(study.feasible(), whole.feasible())
        np.testing.assert_array_equal(study.multipliers, whole.multipliers)


@pytest.mark.parametrize(
    "change",
    [
        "constraints_order = NULL",
        "constraints_order = told_order",
        "constraints_order = asked_order",
        "constraints_order = 40",
        "constraints = NULL",
    ],
)
def test_values_told_in_no_event_are_damage(change, tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = play(nr.Study(policy(constraints=EVERY), seed=1, storage=url), 3)
    study.tell(study.ask(), constraints=[0.1])
    if change != "constraints_order = NULL":
        study.tell(3, 0.4)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute(f"UPDATE trials SET {change} WHERE number = 3")
    with pytest.raises(nr.errors.StorageError, match=r"Trial 3 .* damaged"):
        nr.Study.open(storage=url)


# -- what is known of feasibility --------------------------------------------------------------------------------------


def test_feasible_is_the_probability_that_all_hold():
    study = play(nr.Study(policy(constraints=EVERY), seed=1), 12)
    _, (mean, std) = channels_by_hand(study.trials)
    np.testing.assert_allclose(study.feasible(), norm.cdf(-mean / std), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(study.feasible([[0.5], [0.1]]), study.feasible()[ARMS.index([[0.5], [0.1]])])


def test_best_is_feasible_by_what_was_told_and_by_what_is_believed():
    study = nr.Study(policy(constraints=nr.EveryRound(noise=0.3)))
    for _ in range(8):
        study.add([0.3], 1.0, constraints=[0.2])
    study.add([0.325], 1.5, constraints=[-0.05])  # luck: next to it everything violates
    study.add([0.9], 0.1, constraints=[-0.5])
    assert study.best().point[0] == pytest.approx(0.9, abs=0.02)


def test_that_nothing_can_satisfy_the_constraints_is_said_with_its_confidence():
    made = nr.gp_ucb(ARMS, KERNEL, noise=NOISE, delta=0.05, constraints=nr.EveryRound(count=2))
    study = nr.Study(made, seed=0)
    assert study.infeasible() is None
    places = [*ARMS.points[::3, 0], 0.5, 0.5]

    def tell(study, point):
        study.add([point], 0.0, constraints=[2.0 + point, -3.0])

    for point in places[:-1]:
        tell(study, point)
    with pytest.warns(
        nr.errors.NoRegretWarning, match=r"No point can satisfy all constraints, with probability at least 0\.9"
    ):
        tell(study, places[-1])
    assert study.infeasible() == pytest.approx(0.9)  # 1 - delta for each constraint
    assert study.ask().point[0] < 0.2  # where it comes closest
    unproved = nr.Study(made.using(constraints=nr.EveryRound(count=2, confidence=1.0)))
    for point in places:  # without a warning: such bounds may err
        tell(unproved, point)
    assert unproved.infeasible() == 0.0


def test_between_the_points_of_a_box_that_were_looked_at_nothing_is_said():
    box = nr.Box([0.0], [1.0])
    made = nr.igp_ucb(
        box, KERNEL, noise=NOISE, norm_bound=1.0, information_gain="realised", constraints=nr.EveryRound()
    )
    study = nr.Study(made, seed=0)

    def tell():
        for place in np.linspace(0.0, 1.0, 64):
            study.add([place], 0.0, constraints=[40.0])

    with pytest.warns(nr.errors.NoRegretWarning, match="No point that was looked at can satisfy .* at all candidates"):
        tell()


def test_under_constraints_a_pending_trial_moves_the_variance_of_each_channel_alone():
    made = nr.gp_ucb_sdf(
        ARMS, KERNEL, noise=NOISE, window=5, minimum=-2.0, prior_mean=0.0, constraints=nr.EveryRound(confidence=2.0)
    )
    study = play(nr.Study(made, seed=1), 6)
    limits = [np.mean(study.bounds(channel=1), axis=0)]
    study.ask()
    study.ask()
    limits.append(np.mean(study.bounds(channel=1), axis=0))
    np.testing.assert_allclose(limits[0], limits[1], atol=1e-9)


def test_minimising_is_maximising_minus_f_under_the_same_constraints():
    made = policy(constraints=EVERY)
    up, down = nr.Study(made, seed=5), nr.Study(made, seed=5, goal="minimize")
    for _ in range(12):
        one, other = up.ask(), down.ask()
        assert one.arm == other.arm
        reward, limits = values(one)
        up.tell(one, reward, constraints=limits)
        down.tell(other, constraints=limits)
        down.tell(other, -reward)
    np.testing.assert_array_equal(up.bounds(channel=1), down.bounds(channel=1))
    np.testing.assert_array_equal(up.bounds()[0], -down.bounds()[1])
    np.testing.assert_array_equal(up.feasible(), down.feasible())
    assert up.best().number == down.best().number


# -- on average --------------------------------------------------------------------------------------------------------


def test_prices_rise_with_what_was_told_and_fall_as_they_rose():
    study = nr.Study(policy(constraints=nr.OnAverage(count=2, step=0.5, most=2.0)))
    told = [[1.0, -1.0], [0.4, 0.2], [9.0, 0.2], [-1.0, 0.0]]
    expected = [[0.5, 0.0], [0.7, 0.1], [2.0, 0.2], [1.5, 0.2]]
    for limits, prices in zip(told, expected, strict=True):
        study.tell(study.ask(), 0.0, constraints=limits)
        np.testing.assert_allclose(study.multipliers, prices)


def test_prices_of_epochs_are_those_of_algorithm_3_and_hear_late_values():
    """Kappa <- [kappa + step average g]^+ after each epoch of 3 rounds; late values are of the epoch they came in."""
    study = nr.Study(policy(constraints=nr.OnAverage(step=0.6, epoch=3)))
    seen, trials = [], []
    for g_told in (1.0, 2.0, None, 1.0, -4.0, 0.0, 0.0):
        trials.append(study.ask())
        seen.append(study.last_multipliers.tolist())
        study.tell(trials[-1], 0.0, constraints=None if g_told is None else [g_told])
        if len(trials) == 5:
            study.tell(trials[2], constraints=[3.0])
    np.testing.assert_allclose(np.ravel(seen), [0.0, 0.0, 0.0, 0.6, 0.6, 0.6, 0.6])
    assert study.trials[2].constraints_order > study.trials[4].told_order


@pytest.mark.parametrize("m", [1, 2])
def test_no_mix_of_two_or_three_points_earns_more_within_the_budgets(m):
    """Shares on a grid of 1/20 that keep the budgets of two contexts together never earn more than the best shares."""
    rng = np.random.default_rng(m)
    rewards, uses, weights = rng.uniform(size=(2, 3)), rng.uniform(-0.6, 0.4, size=(m, 2, 3)), np.array([0.7, 0.3])
    shares = best_shares(rewards, uses, weights)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (np.einsum("k,kn,mkn->m", weights, shares, uses) <= 1e-9).all()
    steps = np.linspace(0.0, 1.0, 21)
    grid = np.array([[a, b, 1.0 - a - b] for a in steps for b in steps if a + b <= 1.0])
    earned = weights[0] * grid @ rewards[0], weights[1] * grid @ rewards[1]
    used = weights[0] * uses[:, 0] @ grid.T, weights[1] * uses[:, 1] @ grid.T
    kept = (used[0][:, :, None] + used[1][:, None] <= 0.0).all(axis=0)
    most = np.where(kept, earned[0][:, None] + earned[1], -np.inf).max()
    best = np.einsum("k,kn,kn", weights, shares, rewards)
    assert most <= best + 1e-9
    assert best - most < 0.05
    np.testing.assert_allclose(best_shares(1e-10 * rewards, 1e9 * uses, weights), shares, atol=1e-9)  # in other units
    with pytest.raises(TrialError, match="No mix of the 3 points tried keeps the budget"):
        best_shares(rewards, uses + 1.0, weights)


def test_of_a_budget_the_best_point_is_one_that_keeps_it_in_the_mean():
    """One unlucky value told there does not count. No single round violates a budget, but for `EveryRound` one does."""
    for part, arm in ((nr.OnAverage, 5), (nr.EveryRound, 4)):
        study = nr.Study(
            nr.gp_ucb(
                nr.Arms.grid(0, 10, 11),
                nr.SquaredExponential(3.0),
                noise=0.1,
                constraints=part(noise=1.0, kernel=nr.SquaredExponential(3.0, scale=4.0)),
            )
        )
        for x, value in ((4.0, -2.0), (5.0, 0.1), (6.0, -1.5), (9.0, 3.0), (6.0, 3.5)):
            study.add([x], x, constraints=[value])
        assert study.best().arm == arm
    with pytest.raises(InvalidInput, match="Only a budget that holds on average"):
        study.mix()
    above = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=1.0, constraints=nr.OnAverage(noise=1.0, prior_mean=1.0)))
    above.add([0.5], 1.0, constraints=[-0.1])
    for query in (above.best, above.mix):
        with pytest.raises(TrialError, match="as far as is known"):
            query()
    under = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.1, context=nr.Arms([0.0, 1.0]), constraints=nr.OnAverage()))
    under.add([0.5], 1.0, context=[1.0], constraints=[-1.0])
    assert under.mix(context=[0.0]).shares.tolist() == [1.0]
    with pytest.raises(InvalidInput, match="context"):
        under.mix()
    with pytest.raises(TrialError, match=r"`mix` is for one objective.*`front\(\)`"):
        nr.Study(nr.auto(ARMS, objectives=("a", "b"))).mix()


def test_arms_at_one_point_share_what_was_told_of_it():
    """The mean of -0.3 and of three times 0.2 is above 0, while that of the means of both arms is below."""
    part = nr.EveryRound(noise=3.0, kernel=nr.SquaredExponential(9.0))
    study = nr.Study(nr.gp_ucb(nr.Arms([[4.0], [5.0], [5.0]]), KERNEL, noise=0.1, constraints=part))
    for arm, reward, value in ((0, 0.0, -9.0), (1, 1.0, -0.3), *[(2, 1.0, 0.2)] * 3):
        study.tell(study.ask(among=[arm]), reward, constraints=[value])
    assert study.best().arm == 0


def test_on_average_plays_the_best_lagrangian_of_the_channels():
    study = play(
        nr.Study(policy(constraints=nr.OnAverage(kernel=LIMIT_KERNEL, noise=LIMIT_NOISE, prior_mean=0.1)), seed=1), 15
    )
    (mean, std), (limit, spread) = channels_by_hand(study.trials)
    lagrangian = mean + WIDTH * std - study.multipliers[0] * (limit - WIDTH * spread)
    assert study.multipliers[0] > 0.0
    assert study.ask().arm == int(lagrangian.argmax())


def test_prices_recover_when_the_world_gets_easier():
    """Algorithm 2's never fall; here the constraint is slack from round 60 on, and the best arm is played again."""
    easy = [lambda x: (1.2 - x[:, 0])[:, None], lambda x: (-1.0 - x[:, 0])[:, None]]
    study = nr.Study(policy(constraints=nr.OnAverage(step=0.3, noise=0.0), memory=nr.slots.RestartAt((60,))), seed=1)
    for t in range(120):
        trial = study.ask()
        limits = easy[t >= 60](trial.point[None])[0]
        study.tell(trial, float(f(trial.point[None])[0]), constraints=limits)
        if t == 59:
            assert study.multipliers[0] > 4.0
    assert study.multipliers[0] == 0.0
    assert np.mean([f(trial.point[None])[0] for trial in study.trials[-15:]]) > 0.95


@pytest.mark.parametrize("make", [nr.gp_ucb_noiseless_constraints, nr.gp_ucb_noisy_constraints], ids=["2", "3"])
@pytest.mark.parametrize("memory", [nr.slots.RestartAt((60,)), nr.slots.EDetector()], ids=["told", "noticed"])
def test_multipliers_begin_anew_where_the_memory_is_cut(make, memory):
    """Those of Algorithm 2 never fall: kept, they would charge an easy world for what a hard one has cost."""
    step = {"step": 2.0} if make is nr.gp_ucb_noisy_constraints else {}
    made = make(
        ARMS, KERNEL, noise=NOISE, norm_bound=1.0, epoch=10, epochs=12, regularization=0.01, memory=memory, **step
    )
    study, rng, before = nr.Study(made, seed=1), np.random.default_rng(0), 0.0
    for t in range(120):
        trial = study.ask()
        x = float(trial.point[0])
        limit = (1.2 - x) if t < 60 else (-1.0 - x)  # nothing is feasible, and then everything
        study.tell(trial, float(f(trial.point[None])[0]) + NOISE * rng.normal(), constraints=[limit])
        if t == 55:
            before = float(study.multipliers[0])
    assert before > 2.0
    assert study.restarts
    assert 58 <= study.restarts[-1] <= 62
    assert float(study.multipliers[0]) <= 1.0  # as at the beginning
    assert np.mean([f(trial.point[None])[0] for trial in study.trials[-15:]]) > 0.8


# -- safely ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("certificate", ["posterior", "bounds"])
@pytest.mark.parametrize("domain", [ARMS, nr.Box(0.0, 1.0)], ids=["arms", "box"])
def test_only_what_is_certified_is_played_and_that_grows(domain, certificate):
    made = nr.gp_ucb(
        domain, nr.SquaredExponential(0.3), noise=NOISE,
        constraints=nr.Safe(
            start=[[1.0]], scale=1.0, noise=0.01, certificate=certificate,
            confidence=3.0 if certificate == "posterior" else None,
        ),
    )  # fmt: skip
    study = nr.Study(made, seed=1)
    left, played = 0.05, {1.0}
    for _ in range(40):
        before = study.feasible(np.array([[0.0], [0.5], [1.0]]))
        assert before[2] == 1.0
        then = np.subtract(*study.bounds([[0.5]], channel=1))[0]
        trial = study.ask()
        wider = np.subtract(*study.bounds([[0.5]], channel=1))[0] / then  # in the round after
        lower, upper = study.bounds(trial.point[None], channel=1)
        mean, std = 0.5 * (lower + upper)[0], (upper - lower)[0] / 6.0
        if trial.point[0] not in played:
            risk = norm.cdf(mean / std)
            certified = mean + 3.0 * std / wider <= 1e-9
            assert certified if certificate == "bounds" else risk <= 0.2 * left * (1 + 1e-9)
            left -= risk
            played.add(trial.point[0])
        assert certificate == "bounds" or study.feasible(trial.point[None]).tolist() == [1.0]
        assert g(trial.point[None])[0] <= 0.0
        study.tell(trial, float(f(trial.point[None])[0]), constraints=g(trial.point[None]))
    points = np.array([trial.point[0] for trial in study.trials])
    assert points[0] == 1.0
    # Towards the border, where the best reward is; bounds that hold everywhere at once certify less.
    assert points[-10:].min() < (0.55 if certificate == "posterior" else 0.7)
    assert study.feasible([[0.1]]).tolist() == [0.0]


def test_the_certified_point_that_says_most_about_a_goal_within_reach_is_played():
    """By the definition: of the goals better than what is certified and movable by .2, the best; what moves it most."""
    part = nr.Safe(start=[[1.0]], kernel=LIMIT_KERNEL, noise=LIMIT_NOISE, prior_mean=0.1)
    study = play(nr.Study(policy(constraints=part), seed=1), 5)
    (mean, std), (limit, spread) = channels_by_hand(study.trials)
    score, risk = mean + WIDTH * std, norm.cdf(limit / spread)
    first = {trial.arm: None for trial in study.trials}
    safe = np.isin(np.arange(len(ARMS)), list(first))
    assert sorted(first) == [36, 37, 38, 39, 40] or len(first) >= 1
    left = 0.05
    for arm in first:  # the risk of each, when it was first played
        number = next(trial.number for trial in study.trials if trial.arm == arm)
        if arm != 40:
            (_, _), (m, s) = channels_by_hand(study.trials[:number])
            left -= norm.cdf(m[arm] / s[arm])
    safe |= risk <= 0.2 * left
    hoped = ~safe & (limit - WIDTH * spread <= 0.0) & (score > score[safe].max())
    assert hoped.any()
    points = np.array([trial.point for trial in study.trials])
    K = LIMIT_KERNEL(points, points) + LIMIT_NOISE**2 * np.eye(5)
    k = LIMIT_KERNEL(points, ARMS.points)
    covariance = LIMIT_KERNEL(ARMS.points, ARMS.points) - k.T @ np.linalg.solve(K, k)
    moves = np.abs(covariance[safe]) / np.sqrt(spread[safe, None] ** 2 + LIMIT_NOISE**2)
    within = hoped & (moves.max(axis=0) >= 0.2)
    assert within.any()
    goal = int(np.where(within, score, -np.inf).argmax())
    assert study.ask().arm == np.flatnonzero(safe)[moves[:, goal].argmax()]


@pytest.mark.filterwarnings("ignore:Constraint value .* contradicts the prior")  # a false alarm
def test_a_run_violates_with_probability_at_most_delta():
    """30 problems drawn from the prior: the number of runs with a violation is binomial with at most delta = .1.

    More than 9 come about with probability 6e-4.
    """
    arms = nr.Arms.grid(0, 1, 25)
    root = np.linalg.cholesky(KERNEL(arms.points, arms.points) + 1e-9 * np.eye(25))
    violated = 0
    for seed in range(30):
        rng = np.random.default_rng([seed, 3])
        reward, limit = root @ rng.standard_normal(25), root @ rng.standard_normal(25)
        while limit.min() > -0.3:
            limit = root @ rng.standard_normal(25)
        part = nr.Safe(start=arms.points[[int(limit.argmin())]], scale=1.0, delta=0.1)
        study = nr.Study(nr.gp_ucb(arms, KERNEL, noise=NOISE, constraints=part), seed=seed)
        for _ in range(25):
            trial = study.ask()
            noise = NOISE * rng.standard_normal(2)
            study.tell(trial, reward[trial.arm] + noise[0], constraints=[limit[trial.arm] + noise[1]])
        violated += any(limit[trial.arm] > 0.0 for trial in study.trials)
    assert violated <= 9


def test_certificates_begin_anew_where_the_memory_is_cut():
    part = nr.Safe(start=[[1.0]], noise=0.01, kernel=nr.SquaredExponential(0.3))
    study = nr.Study(policy(constraints=part, memory=nr.slots.RestartAt((20,))), seed=1)
    for _ in range(20):
        trial = study.ask()
        study.tell(trial, 0.0, constraints=g(trial.point[None]))
    assert len({trial.arm for trial in study.trials}) > 2
    assert study.feasible().tolist() == [0.0] * 40 + [1.0]
    assert study.ask().arm == 40


# -- what goes together ------------------------------------------------------------------------------------------------


CONTEXTS = nr.Arms([0.0, 0.5, 1.0])
SPACE = nr.Space(x=nr.Float(0, 1), n=nr.Int(1, 5), c=nr.Choice("a", "b"))
COMBINATIONS = {
    "two constraints": lambda: policy(constraints=nr.EveryRound(count=2)),
    "thompson": lambda: nr.gp_ts(ARMS, KERNEL, noise=0.1, norm_bound=1.0, constraints=nr.EveryRound(noise=0.0)),
    "constrained EI": lambda: nr.expected_improvement(
        ARMS, KERNEL, noise=0.1, constraints=nr.EveryRound(rule="probability")
    ),
    "average, late": lambda: policy(constraints=nr.OnAverage(count=2, step=0.5), pending="hallucinate"),
    "safe": lambda: policy(constraints=nr.Safe(start=[[0.0]], scale=1.0, prior_mean=-1.0), pending="hallucinate"),
    "contexts": lambda: nr.gp_ucb(
        ARMS, nr.SquaredExponential([0.3, 0.2]), noise=0.1, context=CONTEXTS, constraints=EVERY_IN_CONTEXT,
        pending="hallucinate", memory=nr.slots.RestartEvery(7),
    ),
    "adaptive": lambda: policy(constraints=nr.EveryRound(), memory="adaptive", pending="hallucinate"),
    "window": lambda: policy(constraints=EVERY, memory=nr.slots.SlidingWindow(6)),
    "drift": lambda: policy(constraints=nr.OnAverage(), memory=nr.slots.Discount(0.05)),
    "censored": lambda: nr.gp_ucb_sdf(
        ARMS, KERNEL, noise=0.1, window=4, minimum=-2.0, prior_mean=0.0, constraints=nr.EveryRound(confidence=2.0)
    ),
    "norm guessed": lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1, guess_norm=True, constraints=nr.EveryRound()),
    "greedy gain": lambda: nr.igp_ucb(
        nr.Arms.grid(0, 1, 12), KERNEL, noise=0.1, norm_bound=1.0, information_gain="greedy",
        constraints=nr.EveryRound(kernel=LIMIT_KERNEL),
    ),
    "box": lambda: policy(BOX, constraints=nr.EveryRound(noise=0.0)),
    "box, average": lambda: policy(BOX, constraints=nr.OnAverage(step=0.5)),
    "box, safe": lambda: policy(BOX, constraints=nr.Safe(start=[0.5, 0.5], scale=1.0)),
    "space, fits": lambda: nr.expected_improvement(
        SPACE, nr.kernel_for(SPACE), noise=0.1, constraints=nr.EveryRound(rule="probability"),
        refit=nr.slots.Refit(every=5)
    ),
    "space, failures": lambda: nr.gp_ucb(
        SPACE, nr.kernel_for(SPACE), noise=0.1, constraints=nr.EveryRound(), refit=nr.slots.Refit(every=6),
        pending=nr.slots.Hallucinated(failed="worst"),
    ),
}  # fmt: skip
EVERY_IN_CONTEXT = nr.EveryRound(noise=0.2)


SHORT = [(name, 12) for name in COMBINATIONS if not name.startswith(("box,", "space"))]


@pytest.mark.parametrize(("name", "rounds"), [*SHORT, *nightly(*((name, 18) for name in COMBINATIONS))])
def test_it_keeps_the_promises_of_every_policy(name, rounds):
    testing.check_policy(COMBINATIONS[name](), rounds=rounds)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_it_is_written_and_read_back(name):
    made = COMBINATIONS[name]()
    assert nr.Policy.from_json(made.to_json()) == made
    assert isinstance(made.constraints, Constraints)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda: policy(constraints=EVERY).using(objective=AdditivePenalty(epoch=4, epochs=5)),
            "one of the two, not both",
        ),
        (lambda: nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.1, window=4, constraints=EVERY), "constraint values are not cens"),
        (lambda: policy(constraints=nr.EveryRound(rule="probability")), "`UpperConfidenceBound` is no logarithm"),
        (
            lambda: nr.expected_improvement(ARMS, KERNEL, noise=0.1, constraints=nr.OnAverage()),
            "`ExpectedImprovement` is a pure number",
        ),
        (
            lambda: policy(constraints=nr.Safe(start=[[1.0]], scale=1.0), explore=UniformExploration(1.0)),
            "forces rounds that nothing has certified",
        ),
        (lambda: policy(constraints=nr.Safe(start=[[1.0]], scale=1.0), refit=nr.slots.Refit()), "certifies nothing"),
        (lambda: policy(constraints=nr.Safe(start=[[7.0]])), r"\[start\] \[7.0\] is not one of the arms"),
        (lambda: policy(constraints=nr.Safe(start=[[1.0]])), r"\[constraints\] `slope` and `scale` are missing"),
        (lambda: nr.Safe(start=[]), "Without one nothing can be played safely"),
        (lambda: nr.EveryRound(count=0), "`count` is 0"),
        (lambda: nr.EveryRound(count=2, noise=[0.1]), "`noise` has 1 entry for 2 constraints"),
        (lambda: nr.EveryRound(rule="best"), "`rule` is 'best'"),
        (lambda: nr.EveryRound(confidence="wide"), "`confidence` is 'wide'"),
        (lambda: nr.EveryRound(kernel="rbf"), "kernel"),
        (lambda: nr.OnAverage(step=0.0), "`step` is 0"),
        (lambda: policy(constraints=2), "`constraints` is 2: it must be a part such as"),
        (
            lambda: nr.gp_ucb_noisy_constraints(
                ARMS, KERNEL, noise=0.1, norm_bound=1.0, epoch=4, epochs=5, constraints=nr.EveryRound()
            ),
            "fills the slot `constraints` itself",
        ),
        (lambda: nr.Study(policy()).bounds(channel=1), "has no posterior of the constraints"),
        (lambda: nr.Study(policy(constraints=EVERY)).bounds(channel=2), "`channel` is 2"),
        (lambda: nr.Study(policy()).feasible(), "has no posterior of the constraints"),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_reason(make, why):
    with pytest.raises(nr.errors.InvalidInput, match=why):
        make()


def test_what_has_failed_is_not_played_again_and_says_nothing_of_a_constraint():
    few = nr.Arms([0.0, 0.5, 1.0])
    study = nr.Study(policy(few, constraints=nr.EveryRound(prior_mean=-1.0)), seed=0)
    before = study.bounds(channel=1)
    for _ in range(2):
        study.fail(study.ask(), "broken")
    np.testing.assert_array_equal(study.bounds(channel=1), before)
    study.add(few.points[study.ask().arm], 0.0, constraints=[5.0])  # the only one left violates, and is played
    left = study.ask()
    assert left.arm == study.trials[-1].arm not in {study.trials[0].arm, study.trials[1].arm}
    study.fail(left, "a hiccup")
    assert study.ask().arm == left.arm


def test_a_change_that_only_the_constraint_sees_begins_every_channel_anew():
    study = nr.Study(policy(constraints=nr.EveryRound(), memory="adaptive"), seed=1)
    for t in range(90):
        trial = study.ask()
        reward, limits = values(trial)
        study.tell(trial, reward, constraints=limits if t < 50 else [limits[0] + 1.0])
    assert len(study.restarts) == 1
    assert 45 <= study.restarts[0] <= 60
    since = [trial for trial in study.trials if trial.number >= study.restarts[0]]
    points, limits = np.array([trial.point for trial in since]), np.array([trial.constraints[0] for trial in since])
    mean, std = dense(KERNEL, NOISE**2, 0.0, points, limits, ARMS.points)
    np.testing.assert_allclose(study.bounds(channel=1)[1], mean + WIDTH * std, atol=1e-8)


def with_a_change(part, *, reward_after, limits_after, shift, seed=1):
    """A study whose rewards and constraint values come so many rounds after the question; shift[i] from round 50 on."""
    study = nr.Study(policy(constraints=part, memory="adaptive"), seed=seed)
    for t in range(110):
        study.ask()
        for told, after in (("reward", reward_after), ("limits", limits_after)):
            number = t - after
            if number < 0:
                continue
            trial = study.trials[number]
            reward, limits = values(trial)
            changed = number >= 50
            if told == "reward":
                study.tell(trial, reward + shift[0] * changed)
            else:
                study.tell(trial, constraints=[limits[0] + shift[1] * changed])
    return study


JOINT, APART = nr.EveryRound(), nr.EveryRound(kernel=LIMIT_KERNEL, noise=LIMIT_NOISE)


@pytest.mark.parametrize("part", [JOINT, APART], ids=["joint", "own kernel"])
@pytest.mark.parametrize("delays", [(0, 8), (8, 0), (3, 3)], ids=["limits late", "limits early", "both"])
@pytest.mark.parametrize("shift", [(0.0, 1.0), (-1.5, 0.0)], ids=["constraint", "reward"])
def test_a_change_of_one_channel_is_found_by_the_round_of_its_question_whenever_values_come(part, delays, shift):
    study = with_a_change(part, reward_after=delays[0], limits_after=delays[1], shift=shift)
    assert len(study.restarts) == 1
    assert 47 <= study.restarts[0] <= 60


def test_values_that_come_one_by_one_are_each_seen_once():
    study = with_a_change(APART, reward_after=8, limits_after=0, shift=(0.0, 0.0))
    assert study.restarts == []
    rewards, limits = study.replica.current().memory.detector._evidence.each
    assert (rewards.count, limits.count) == (102, 110)
    joint = with_a_change(JOINT, reward_after=0, limits_after=8, shift=(0.0, 0.0))
    assert joint.restarts == []
    assert joint.replica.current().memory.detector._evidence.count == 102


def test_a_constraint_that_comes_first_shows_a_change_before_any_reward_of_it_is_told():
    found = {}
    for name, part in (("joint", JOINT), ("apart", APART)):
        study = with_a_change(part, reward_after=30, limits_after=0, shift=(0.0, 1.0))
        found[name] = study.evidence.trials[np.flatnonzero(study.evidence.values >= study.evidence.threshold)[0]]
        assert 47 <= study.restarts[0] <= 60
    assert found["apart"] <= found["joint"]  # numbers of trials; the joint one waits for their rewards


def test_a_constraint_of_another_kernel_raises_no_alarm():
    """Rough and exact, where the reward is smooth and noisy: under the reward's model it would be a change a round."""
    rough = nr.Matern(0.5, 0.05)
    K = rough(ARMS.points, ARMS.points) + 1e-9 * np.eye(len(ARMS))
    alarms = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        limit = 0.3 * np.linalg.cholesky(K) @ rng.standard_normal(len(K))
        part = nr.EveryRound(kernel=0.09 * rough, noise=0.0)
        study = nr.Study(policy(constraints=part, memory="adaptive", explore=UniformExploration(1.0)), seed=seed)
        for _ in range(60):
            trial = study.ask()
            study.tell(trial, f(trial.point[None])[0] + NOISE * rng.normal(), constraints=[limit[trial.arm]])
        alarms += len(study.restarts)
    assert alarms == 0


def test_a_study_with_late_constraint_values_goes_on_exactly(tmp_path):
    url = f"sqlite:///{tmp_path / 'late.db'}"
    stored = nr.Study(policy(constraints=APART, memory="adaptive"), seed=1, storage=url, name="late")
    plain = nr.Study(policy(constraints=APART, memory="adaptive"), seed=1)
    for t in range(70):
        if t in (40, 55):  # between a reward and its constraint values
            stored = nr.Study.open(storage=url, name="late")
        for study in (stored, plain):
            trial = study.ask()
            study.tell(trial, values(trial)[0])
            if t >= 5:
                late = study.trials[t - 5]
                study.tell(late, constraints=[values(late)[1][0] + (t >= 35)])
    assert [trial.arm for trial in stored.trials] == [trial.arm for trial in plain.trials]
    assert stored.restarts == plain.restarts != []
    np.testing.assert_array_equal(stored.evidence.values, plain.evidence.values)


# -- auto ------------------------------------------------------------------------------------------------------------


def test_auto_finds_a_good_configuration_within_a_limit():
    """min -sin x - y under sin x sin y + .95 <= 0: 1.8% of the box, the best value is -.2532."""
    space = nr.Space(x=nr.Float(0, 6), y=nr.Float(0, 6))
    study = nr.Study(nr.auto(space, constraints=1, budget=40), goal="minimize", seed=0)
    for _ in range(40):
        trial = study.ask()
        x, y = trial.parameters["x"], trial.parameters["y"]
        study.tell(trial, np.sin(x) + y, constraints=[100.0 * (np.sin(x) * np.sin(y) + 0.95)])
    best = study.best()
    assert best.constraints[0] <= 0.0
    assert best.reward < 0.35  # of the feasible ones told; unconstrained -1 is to be had
    violated = [trial.constraints[0] > 0.0 for trial in study.trials]
    assert np.mean(violated[-10:]) < np.mean(violated[:13])


def test_auto_learns_units_kernel_and_noise_of_each_constraint():
    made = nr.auto(nr.Box([0.0, 0.0], [1.0, 1.0]), constraints=2, noise=5.0)
    study = nr.Study(made, seed=0)
    for _ in range(14):
        trial = study.ask()
        x, y = trial.point
        study.tell(trial, 10.0 * x, constraints=[1e-3 * (x - 0.5), 1e4 * (0.3 - y)])
    for channel, truth in ((1, 1e-3 * 0.1), (2, 1e4 * -0.3)):
        lower, upper = study.bounds([[0.6, 0.6]], channel=channel)
        assert lower[0] < truth < upper[0]
        assert upper[0] - lower[0] < abs(truth) * (12.0 if channel == 1 else 1.0)
    assert made.constraints.rule == "probability"
    assert nr.auto(ARMS, context=nr.Box(0, 1), constraints=1).constraints.rule == "optimistic"


def test_constraint_values_with_cliffs_are_learned_around_their_border():
    """exp(6 s) - 1 reaches 3e5 and crosses 0 at s = 0: what is far away counts by its logarithm, and 0 stays 0."""
    made = nr.auto(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1)), constraints=1)
    assert made.of_channel(1).refit.warp == "signed-log"
    assert made.using(constraints=nr.OnAverage(), score=UpperConfidenceBound()).of_channel(1).refit.warp == "none"
    study = nr.Study(made, seed=1)
    for _ in range(20):
        trial = study.ask()
        x, y = trial.parameters["x"], trial.parameters["y"]
        study.tell(trial, x + 0.3 * y, constraints=[np.expm1(6.0 * (x + y - 0.8))])
    assert study.best().reward > 0.72  # of .8; by chance .5 or so
    points = [{"x": 0.2, "y": 0.2}, {"x": 0.7, "y": 0.7}]
    assert study.feasible(points)[0] > 0.9 > 0.1 > study.feasible(points)[1]
    lower, upper = study.bounds(points, channel=1)
    assert upper[0] < 0.0 < lower[1]  # in the units told
    assert 1.0 < upper[1] < 1e4


def test_signed_logs_keep_signs_and_come_back():
    values = np.array([-1e6, -3.0, -1e-3, 0.0, 1e-3, 2.0, 5.0, 1e9])
    warp = signed_log(values)
    assert warp.scale == np.quantile(np.abs(values[values != 0.0]), 0.25)
    warped = warp.to(values)
    assert (np.sign(warped) == np.sign(values)).all()
    assert (np.diff(warped) > 0.0).all()
    np.testing.assert_allclose(warp.back(warped), values, rtol=1e-12)
    assert np.isfinite(warp.back(np.array([1e9, -1e9]))).all()
    np.testing.assert_allclose(warp.to(np.array([1e-9])), 1e-9, rtol=1e-6)
    assert signed_log(np.zeros(3)) is None
