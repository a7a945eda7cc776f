"""Few decisions: runs of equal plays, recorded as one trial each."""

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.client.session import reward_of
from nilregret.environments import Environment, gp_sample
from nilregret.gp import PointPosterior, Prior
from nilregret.gp.choice import posterior_on_arms
from nilregret.gp.distinct_arms import DistinctArmsPosterior
from nilregret.gp.low_rank_arms import LowRankPosterior
from nilregret.slots.explore import UncertaintySampling
from nilregret.slots.switching import MOST_REPEATS
from nilregret.storage.trial import Plays

NOISE, RIDGE = 0.1, 0.01
ARMS, KERNEL = nr.Arms.grid(0, 1, 40), nr.SquaredExponential(0.2)
FUNCTION = gp_sample(KERNEL, ARMS, seed=5)
ENV = Environment(FUNCTION, domain=ARMS, noise=NOISE)
POLICY = nr.igp_ucb(ARMS, KERNEL, noise=NOISE, norm_bound=2.0, width="amm", regularization=RIDGE)
LAZY = POLICY.using(switching="lazy")
BOX = nr.gp_ucb(
    nr.Box(0.0, 1.0), nr.Matern(2.5, 0.3), noise=NOISE,
    search=nr.slots.PointSearch(candidates=64, around=4, starts=1, evaluations=4),
)  # fmt: skip


def answer(study, trial, rng, count=None):
    """Tell the rewards of some plays."""
    count = trial.repeats if count is None else count
    rewards = FUNCTION(trial.point[None])[0] + NOISE * rng.standard_normal(count)
    return study.tell(trial, rewards), rewards


# -- posteriors ----------------------------------------------------------------------------------------------------


def features():
    posterior = posterior_on_arms(ARMS, KERNEL, RIDGE)
    assert isinstance(posterior, LowRankPosterior)
    return posterior


def played():
    return DistinctArmsPosterior(Prior(nr.Matern(0.5, 0.3), ARMS.points), RIDGE)


def points():
    return PointPosterior(KERNEL, 1, RIDGE)


def dense(kernel, rows, targets):
    """Of all observations, one by one: mean and variance on the arms, log det(I + K / lambda), and q."""
    K = kernel(rows, rows)
    cross, inverse = kernel(ARMS.points, rows), np.linalg.inv(K + RIDGE * np.eye(len(rows)))
    mean, variance = cross @ inverse @ targets, kernel.diagonal(ARMS.points) - ((cross @ inverse) * cross).sum(axis=1)
    return mean, variance, np.linalg.slogdet(np.eye(len(rows)) + K / RIDGE)[1], targets @ inverse @ targets


@pytest.mark.parametrize("make", [features, played, points])
def test_many_plays_at_once_are_what_they_are_one_by_one(make):
    """Random runs are told, some are taken back out; mean, deviation, log det and q are those of repeated rows."""
    rng = np.random.default_rng(3)
    kernel = nr.Matern(0.5, 0.3) if make is played else KERNEL
    for _ in range(3):
        together, single, runs = make(), make(), []
        for _ in range(int(rng.integers(5, 25))):
            arm, count = int(rng.integers(len(ARMS))), int(rng.choice([1, 2, 3, 10, 40]))
            rewards = rng.standard_normal() + NOISE * rng.standard_normal(count)
            where = ARMS.points[arm] if make is points else arm
            scatter = float(((rewards - rewards.mean()) ** 2).sum())
            together.append(where, float(rewards.mean()), count=count, scatter=scatter)
            for reward in rewards:
                single.append(where, float(reward))
            runs.append((where, arm, rewards, scatter))
        for i in rng.permutation(len(runs))[: len(runs) // 3]:
            where, _, rewards, scatter = runs[i]
            together.forget(where, float(rewards.mean()), count=len(rewards), scatter=scatter)
            for reward in rewards:
                single.forget(where, float(reward))
            runs[i] = None
        left = [run for run in runs if run is not None]
        rows = np.concatenate([np.repeat(ARMS.points[arm][None], len(r), axis=0) for _, arm, r, _ in left])
        targets = np.concatenate([rewards for _, _, rewards, _ in left])
        at = ARMS.points if make is points else None
        (mean, std), (one_mean, one_std) = together.predict(at), single.predict(at)
        np.testing.assert_allclose(mean, one_mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(std**2, one_std**2, rtol=0, atol=1e-10)
        wanted = dense(kernel, rows, targets)
        for found, other in zip(
            (mean, std**2, together.log_determinant_ratio, together.quadratic_form), wanted, strict=True
        ):
            np.testing.assert_allclose(found, other, rtol=1e-9, atol=1e-10)
        assert together.count == single.count == len(targets)
        np.testing.assert_allclose(together.log_likelihood, single.log_likelihood, rtol=1e-9)
        np.testing.assert_allclose(together.mean_norm, single.mean_norm, rtol=1e-9)
        spread = together.spectrum().at(0.05) if hasattr(together.spectrum(), "at") else None
        if spread is not None:
            np.testing.assert_allclose(spread.quadratic_form, single.spectrum().at(0.05).quadratic_form, rtol=1e-8)


@pytest.mark.parametrize("make", [features, played, points])
def test_no_more_is_taken_back_than_there_was(make):
    posterior, where = make(), ARMS.points[3] if make is points else 3
    posterior.append(where, 1.0, count=4)
    with pytest.raises(nr.errors.InvalidInput, match="fewer than 5 observations"):
        posterior.forget(where, 1.0, count=5)
    posterior.forget(where, 1.0, count=4)
    assert posterior.count == 0
    assert posterior.log_determinant_ratio == pytest.approx(0.0, abs=1e-12)


# -- the rule ------------------------------------------------------------------------------------------------------


def test_a_run_shrinks_no_deviation_by_more_than_the_factor_and_that_of_the_best_uses_it_up():
    rng = np.random.default_rng(0)
    for factor in (1.05, 1.3, 2.0):
        study, longest, shares = nr.Study(POLICY.using(switching=nr.slots.Lazy(factor=factor)), seed=1), 0, []
        while longest < 500 and len(study.trials) < 100:
            mean, before = study.predict()
            upper = study.bounds()[1]
            trial = study.ask()
            answer(study, trial, rng)
            after = study.predict()[1]
            if trial.repeats > 1:
                assert (before <= factor * (1 + 1e-9) * after).all()
            hope = (upper[trial.arm] - mean.max()) / (upper[trial.arm] - mean[trial.arm])
            share = max(0.25, max(hope, 0.0) ** 2)
            used = before[trial.arm] ** 2 * np.array([trial.repeats, trial.repeats + 1]) / RIDGE  # of s^2 / s'^2 - 1
            assert used[1] > share * (factor**2 - 1.0) * (1 - 1e-9)
            assert trial.repeats == 1 or used[0] <= share * (factor**2 - 1.0) * (1 + 1e-9)
            longest = max(longest, trial.repeats)
            if trial.repeats > 1:
                shares.append(share)
        assert longest > 3
        assert max(shares) == 1.0
        assert min(shares) < 0.9


def test_the_rule_has_no_end_where_nothing_is_left_to_learn_and_refuses_what_is_no_factor():
    assert nr.slots.Lazy(factor=1.1).repeats(0.0, 1.0) == MOST_REPEATS
    assert nr.slots.Lazy(factor=1.0).repeats(0.0, 1.0) == 1
    assert nr.slots.Lazy(factor=2.0).repeats(1.0, 1.0) == 3
    assert nr.slots.Lazy(factor=2.0).repeats(100.0, 1.0) == 1
    assert [nr.slots.Lazy(factor=3.0).repeats(0.5, 1.0, hope) for hope in (1.0, 0.75, 0.5, 0.0)] == [32, 18, 8, 8]
    for factor in (0.9, math.nan, math.inf, "lazy"):
        with pytest.raises(nr.errors.InvalidInput, match="`factor`"):
            nr.slots.Lazy(factor=factor)


@pytest.mark.parametrize(
    "policy",
    [
        POLICY, BOX, nr.gp_ts(ARMS, KERNEL, noise=NOISE, norm_bound=1.0),
        nr.expected_improvement(ARMS, KERNEL, noise=NOISE), nr.gp_ucb(ARMS, KERNEL, noise=NOISE),
        POLICY.using(pending="hallucinate"), POLICY.using(explore=nr.slots.InitialDesign(5)),
    ],
)  # fmt: skip
def test_a_factor_of_one_plays_as_without(policy):
    env = Environment(
        FUNCTION if isinstance(policy.domain, nr.Arms) else lambda x: np.sin(5 * x[:, 0]),
        domain=policy.domain,
        noise=NOISE,
    )
    rounds = 60 if isinstance(policy.domain, nr.Arms) else 20
    plain, lazy = (
        nr.simulate(policy, env, rounds, seed=4),
        nr.simulate(policy, env, rounds, seed=4, switching=nr.slots.Lazy(factor=1.0)),
    )
    for name in nr.simulation.Run.__dataclass_fields__:
        if name not in ("entries", "restarts"):
            np.testing.assert_array_equal(getattr(plain, name), getattr(lazy, name), err_msg=name)
    assert (lazy.entries.plays == 1).all()
    assert plain.total_regret == pytest.approx(lazy.total_regret)


def test_widths_that_grow_with_the_rounds_count_plays_and_forced_rounds_are_single():
    study, rng = (
        nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=NOISE, switching="lazy", explore=UncertaintySampling(4))),
        np.random.default_rng(1),
    )
    for _ in range(40):
        answer(study, study.ask(), rng)
    plays = sum(trial.times for trial in study.trials)
    assert plays > 60
    assert [trial.repeats for trial in study.trials[:4]] == [1] * 4
    single = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=NOISE))
    for _ in range(plays):
        single.tell(single.ask(), 0.0)
    assert study.width == single.width
    assert study.explain(39).round == plays - study.trials[39].times + 1


# -- studies -------------------------------------------------------------------------------------------------------


def test_rewards_are_told_one_by_one_or_summed_up_and_are_the_same():
    one, other, rng = nr.Study(LAZY), nr.Study(LAZY), np.random.default_rng(2)
    for _ in range(60):
        trial, also = one.ask(), other.ask()
        assert (trial.arm, trial.repeats) == (also.arm, also.repeats)
        told, rewards = answer(one, trial, rng)
        about = float(rewards[0])
        off = rewards - about
        other.tell(also, nr.study.Rewards(count=len(off), sum=off.sum(), squares=off @ off, about=about))
        assert told.reward == pytest.approx(rewards.mean())
        if trial.repeats > 1:
            assert told.plays.times == len(rewards)
            assert told.plays.scatter == pytest.approx(((rewards - rewards.mean()) ** 2).sum(), abs=1e-12)
        again = one.tell(trial, list(rewards))
        assert again is one.trials[trial.number]
    np.testing.assert_allclose(one.predict(), other.predict(), rtol=0, atol=1e-10)
    assert one.information_gain == pytest.approx(other.information_gain, rel=1e-12)
    plays = [trial.times for trial in one.trials]
    assert max(plays) > 3
    assert f"{max(plays)} plays" in repr(one.trials[plays.index(max(plays))])


def test_the_posterior_is_that_of_all_rewards():
    study, rng, rows, targets = nr.Study(LAZY), np.random.default_rng(7), [], []
    while len(targets) < 700:
        trial = study.ask()
        _, rewards = answer(study, trial, rng)
        rows += [trial.point] * len(rewards)
        targets += list(rewards)
    assert len(study.trials) < 200
    mean, variance, log_det, _ = dense(KERNEL, np.array(rows), np.array(targets))
    found, std = study.predict()
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(std**2, variance, rtol=0, atol=1e-8)
    assert study.information_gain == pytest.approx(0.5 * log_det, abs=1e-8)


def long_trial(study, rng):
    """The first trial that is to be played several times."""
    while (trial := study.ask()).repeats < 4:
        answer(study, trial, rng)
    return trial


def test_fewer_plays_may_be_told_more_may_not():
    study, rng = nr.Study(LAZY), np.random.default_rng(3)
    trial = long_trial(study, rng)
    with pytest.raises(
        nr.errors.TrialError, match=f"is to be played {trial.repeats} times, and {trial.repeats + 1} rewards"
    ):
        study.tell(trial, [0.1] * (trial.repeats + 1))
    assert study.trials[trial.number].open
    told = study.tell(trial, [0.5, 0.25])
    assert (told.reward, told.plays, told.times) == (0.375, Plays(2, 0.03125), 2)
    alone = study.tell(long_trial(study, rng), 0.5)
    assert (alone.reward, alone.plays, alone.times) == (0.5, None, 1)
    assert study.explain(alone).round == sum(trial.times for trial in study.trials[:-1]) + 1


def test_answers_of_runs_are_corrected_taken_back_and_given_up():
    study, rng = nr.Study(LAZY), np.random.default_rng(3)
    trial = long_trial(study, rng)
    study.tell(trial, [0.5, 0.25])
    with pytest.raises(nr.errors.TrialError, match="was told already"):
        study.tell(trial, [0.5, 0.25, 0.5])
    revised = study.tell(trial, [0.5, 0.25, 0.75], revise=True)
    assert revised.times == 3
    assert revised.corrected[0].plays == Plays(2, 0.03125)
    assert revised.as_of(revised.told_order - 1) == revised._uncorrected()
    fresh = nr.Study(LAZY)
    for other in study.trials[: trial.number]:
        plays = other.plays or Plays(1, 0.0)
        fresh.tell(fresh.ask(), nr.study.Rewards(count=plays.times, sum=0.0, squares=plays.scatter, about=other.reward))
    fresh.tell(fresh.ask(), [0.5, 0.25, 0.75])
    np.testing.assert_array_equal(study.predict(), fresh.predict())
    study.fail(trial, "it was another machine", revise=True)
    assert study.trials[trial.number].plays is None
    asked = study.ask()
    study.abandon(asked)
    assert answer(study, asked, rng)[0].late


def test_losses_are_told_in_runs_too():
    gain, loss, rng = nr.Study(LAZY), nr.Study(LAZY, goal="minimize"), np.random.default_rng(4)
    for _ in range(20):
        trial, other = gain.ask(), loss.ask()
        assert (trial.arm, trial.repeats) == (other.arm, other.repeats)
        _, rewards = answer(gain, trial, rng)
        loss.tell(other, 0.0 - rewards)
    np.testing.assert_array_equal(gain.predict()[0], 0.0 - loss.predict()[0])


def test_runs_under_way_count_for_the_variance():
    """Workers that answer late, some with fewer plays than asked for: the posterior is that of what was told."""
    study, rng, waiting, rows, targets = (
        nr.Study(LAZY.using(pending="hallucinate")),
        np.random.default_rng(5),
        [],
        [],
        [],
    )
    for step in range(60):
        waiting.append(study.ask())
        if step % 3:
            trial = waiting.pop(int(rng.integers(len(waiting))))
            _, rewards = answer(study, trial, rng, count=int(rng.integers(1, trial.repeats + 1)))
            rows += [trial.point] * len(rewards)
            targets += list(rewards)
    assert max(trial.repeats for trial in study.trials) > 5
    asked = rows + [trial.point for trial in waiting for _ in range(trial.repeats)]
    mean = dense(KERNEL, np.array(rows), np.array(targets))[0]
    _, variance, log_det, _ = dense(KERNEL, np.array(asked), np.zeros(len(asked)))
    np.testing.assert_allclose(study.predict()[0], mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(study.predict()[1] ** 2, variance, rtol=0, atol=1e-8)
    assert study.information_gain == pytest.approx(0.5 * log_det, abs=1e-7)
    for trial in waiting:
        study.abandon(trial)
    _, variance, _, _ = dense(KERNEL, np.array(rows), np.array(targets))
    np.testing.assert_allclose(study.predict()[1] ** 2, variance, rtol=0, atol=1e-8)


def test_points_that_were_never_asked_for_may_come_with_several_rewards():
    study, single = nr.Study(LAZY), nr.Study(POLICY)
    added = study.add([ARMS.points[3, 0]], [0.5, 0.25, 0.75])
    assert (added.repeats, added.times, added.reward) == (3, 3, 0.5)
    for reward in (0.5, 0.25, 0.75):
        single.add([ARMS.points[3, 0]], reward)
    np.testing.assert_allclose(study.predict(), single.predict(), rtol=0, atol=1e-12)
    assert study.width == pytest.approx(single.width, rel=1e-12)


def test_what_is_no_reward_of_a_run_is_refused():
    study, rng = nr.Study(LAZY), np.random.default_rng(3)
    trial = long_trial(study, rng)
    for wrong in ([], [[0.1, 0.2]], [0.1, math.nan], ["a"], [1e200]):
        with pytest.raises(nr.errors.InvalidInput):
            study.tell(trial, wrong)
    with pytest.raises(nr.errors.InvalidInput, match="have squares of at least"):
        nr.study.Rewards(count=3, sum=3.0, squares=1.0)
    with pytest.raises(nr.errors.InvalidInput, match="`count`"):
        nr.study.Rewards(count=0, sum=0.0, squares=0.0)
    with pytest.raises(nr.errors.InvalidInput, match="decides in every round"):
        nr.Study(POLICY).add([0.0], [0.1, 0.2])
    assert nr.Study(POLICY).add([0.0], np.array([[0.1]])).reward == reward_of(np.array([[0.1]])) == 0.1
    with pytest.raises(nr.errors.InvalidInput, match="`switching`"):
        POLICY.using(switching="often")
    with pytest.raises(nr.errors.InvalidInput, match="`switching`"):
        POLICY.using(switching=nr.slots.Hallucinated())


def test_noise_that_is_larger_than_told_is_noticed_in_runs():
    rng, quiet = np.random.default_rng(6), nr.Study(LAZY)
    for _ in range(64):
        answer(quiet, quiet.ask(), rng)
    loud = nr.Study(LAZY)
    loud.quiet = True
    for _ in range(64):
        trial = loud.ask()
        loud.tell(trial, 0.5 + 10 * NOISE * rng.standard_normal(trial.repeats))
    assert "rewards vary about the means of their points" in loud.held_warnings["noise"]


# -- where records go ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_files_say_how_often_and_are_read_again(tmp_path, ending):
    study, rng = nr.Study(LAZY), np.random.default_rng(8)
    for _ in range(60):
        answer(study, study.ask(), rng)
    study.ask()
    again = nr.Study(LAZY)
    again.add_from(study.export(tmp_path / f"trials.{ending}"))
    assert [trial.times for trial in again.trials] == [trial.times for trial in study.trials[:-1]]
    np.testing.assert_allclose(study.predict(), again.predict(), rtol=0, atol=1e-10)
    with pytest.raises(nr.errors.InvalidInput, match=r"decides in every round.*Nothing was recorded"):
        nr.Study(POLICY).add_from(tmp_path / f"trials.{ending}")


def test_the_command_line_lists_and_tells_runs(tmp_path):
    url, rng = f"sqlite:///{tmp_path / 'a.db'}", np.random.default_rng(3)
    with nr.Study(LAZY, storage=url) as study:
        trial = long_trial(study, rng)
    run = CliRunner().invoke
    told = run(main, ["tell", url, "study", str(trial.number), "0.5", "--plays", "3", "--scatter", "0.25", "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.output)["plays"] == 3
    assert study.trials[trial.number].plays == Plays(3, 0.25)
    shown = run(main, ["trials", url, "study"]).output
    assert "plays" in shown
    assert "before the next decision" in run(main, ["explain", url, "study", str(trial.number)]).output
    assert run(main, ["tell", url, "study", "0", "0.5", "--plays", "3"]).exit_code == 2


def test_what_cannot_have_been_a_run_is_refused(tmp_path):
    url, rng = f"sqlite:///{tmp_path / 'a.db'}", np.random.default_rng(3)
    with nr.Study(LAZY, storage=url) as study:
        number = answer(study, long_trial(study, rng), rng)[0].number
    for damage in ("repeats = 0", "plays = 10000", "scatter = -1.0", "scatter = NULL", "plays = 1"):
        with closing(sqlite3.connect(tmp_path / "a.db")) as file, file:
            before = file.execute("SELECT repeats, plays, scatter FROM trials WHERE number = ?", (number,)).fetchone()
            file.execute(f"UPDATE trials SET {damage} WHERE number = ?", (number,))
        with pytest.raises(nr.errors.StorageError, match="damaged"):
            nr.Study.open(storage=url)
        with closing(sqlite3.connect(tmp_path / "a.db")) as file, file:
            file.execute("UPDATE trials SET repeats = ?, plays = ?, scatter = ? WHERE number = ?", (*before, number))
    assert nr.Study.open(storage=url).trials[number].plays is not None


KILLED = """
    import os, signal, sys
    import numpy as np
    import nilregret as nr
    from tests.test_switching import LAZY, answer
    study, rng = nr.Study(LAZY.using(pending="hallucinate"), storage=sys.argv[1]), np.random.default_rng(9)
    for step in range(30):
        trial = study.ask()
        if step == 29:
            os.kill(os.getpid(), signal.SIGKILL)
        answer(study, trial, rng)
"""


def test_a_process_that_is_killed_leaves_runs_that_go_on_where_they_were(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), url], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    again, whole, rng = (
        nr.Study.open(storage=url),
        nr.Study(LAZY.using(pending="hallucinate")),
        np.random.default_rng(9),
    )
    for _ in range(29):
        answer(whole, whole.ask(), rng)
    whole.ask()
    assert max(trial.times for trial in whole.trials) > 2
    known = [(trial.arm, trial.repeats, trial.reward, trial.plays, trial.state) for trial in whole.trials]
    assert [(trial.arm, trial.repeats, trial.reward, trial.plays, trial.state) for trial in again.trials] == known
    for _ in range(5):
        one, other = again.ask(), whole.ask()
        assert (one.arm, one.repeats) == (other.arm, other.repeats)
        assert again.width == whole.width
        _, rewards = answer(again, one, rng)
        whole.tell(other, rewards)
    np.testing.assert_array_equal(again.predict(), whole.predict())
    assert again.explain(20).repeated


# -- simulations ---------------------------------------------------------------------------------------------------


def test_a_simulation_keeps_entries_and_makes_rounds_of_them():
    run, plain = nr.simulate(POLICY, ENV, 3000, seed=2, switching="lazy"), nr.simulate(POLICY, ENV, 3000, seed=2)
    entries = run.entries
    assert len(entries) < 300
    assert entries.rounds == 3000
    assert plain.entries is None
    np.testing.assert_array_equal(run.arms, np.repeat(entries.arms, entries.plays))
    np.testing.assert_allclose(run.rewards - FUNCTION(run.points), plain.rewards - FUNCTION(plain.points), atol=1e-12)
    starts = np.cumsum(entries.plays) - entries.plays
    np.testing.assert_allclose(np.add.reduceat(run.rewards, starts) / entries.plays, entries.means, atol=1e-12)
    scatters = np.add.reduceat((run.rewards - np.repeat(entries.means, entries.plays)) ** 2, starts)
    np.testing.assert_allclose(scatters, entries.scatters, atol=1e-10)
    assert run.total_regret == pytest.approx(run.regret.sum()) == pytest.approx(run.cumulative_regret[-1])
    assert run.contexts.shape == (3000, 0)
    assert plain.total_regret == plain.regret.sum()
    with pytest.raises(AttributeError, match="no attribute 'regrets'"):
        run.regrets  # noqa: B018
    several = nr.replicate(lambda: LAZY, lambda: ENV, 200, seeds=range(2))
    assert several.regret.shape == (2, 200)
    np.testing.assert_array_equal(several.arms[1], nr.simulate(LAZY, ENV, 200, seed=1).arms)


def test_a_world_in_which_rounds_differ_is_refused():
    for env in (
        Environment([FUNCTION, FUNCTION], domain=ARMS, noise=NOISE, change_points=(50,)),
        Environment(FUNCTION, domain=ARMS, noise=NOISE, delay=3),
    ):
        with pytest.raises(nr.errors.InvalidInput, match="each round is another one"):
            nr.simulate(POLICY, env, 100, switching="lazy")
    with pytest.raises(nr.errors.InvalidInput, match="`switching` is a slot"):
        nr.simulate(object(), ENV, 10, switching="lazy")


def test_no_rewards_at_all_are_refused_and_one_play_is_no_plays():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 4), nr.Matern(2.5, 0.2), noise=1.0, switching="lazy"), seed=0)
    trial = study.ask()
    while trial.repeats == 1:
        study.tell(trial, 0.0)
        trial = study.ask()
    with pytest.raises(nr.errors.InvalidInput, match="an empty list: usually none has come yet"):
        study.tell(trial, [])
    assert f"{trial.repeats} plays," in repr(trial)
    assert "1 play," in repr(study.tell(trial, 0.5))


def test_an_arm_that_comes_again_and_again_is_learned_exactly_and_copies_go_their_own_way():
    posterior, rng, rows, targets = features(), np.random.default_rng(11), [], []
    for arm in [3] * 30 + [4] + [3] * 20 + [17, 17, 3, 3]:
        rows.append(arm)
        targets.append(rng.standard_normal())
        posterior.append(arm, targets[-1])
    copied = posterior.copy()
    for arm in (3, 3, 5):
        posterior.append(arm, 1.0)
    posterior.revise(3, 1.0, 0.5)
    for arm, target in ((5, 1.0), (3, 0.5), (3, 1.0)):  # the last may be taken back, and 3 comes once more
        posterior.forget(arm, target)
    fresh = copied.copy()
    for each in (posterior, copied, fresh):
        for _ in range(3):
            each.append(3, -0.25)
    K = KERNEL(ARMS.points[rows + [3] * 3], ARMS.points[rows + [3] * 3]) + RIDGE * np.eye(len(rows) + 3)
    cross = KERNEL(ARMS.points, ARMS.points[rows + [3] * 3])
    mean = cross @ np.linalg.solve(K, np.array([*targets, -0.25, -0.25, -0.25]))
    variance = 1.0 - np.einsum("ij,ji->i", cross, np.linalg.solve(K, cross.T))
    for each in (posterior, copied, fresh):
        found, std = each.predict()
        np.testing.assert_allclose(found, mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(std**2, variance, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(copied.predict(), fresh.predict())
