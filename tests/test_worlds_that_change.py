"""Environments in which reward, constraints, noise and delays have periods, shapes and times of their own."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.environments import Drifting, even_changes
from nilregret.environments.delays import GeometricDelay

ARMS, TABLE = nr.Arms.grid(0, 1, 9), nr.Arms([0.0, 0.5, 1.0])
X = ARMS.points[:, 0]


def rising(x):
    return x[:, 0]


def falling(x):
    return 1.0 - x[:, 0]


def below(border):
    return lambda x: x[:, 0] - border


def above(border):
    return lambda x: border - x[:, 0]


def played(env, arms, *, contexts=None):
    """What a run says of these arms, one after the other."""
    policy = nr.gp_ucb(
        env.domain, nr.Matern(2.5, 0.3), noise=0.1, context=env.contexts,
        constraints=nr.EveryRound(count=env.constraint_count) if env.constraint_count else None,
    )  # fmt: skip
    study = nr.Study(policy, seed=0)
    trials = []
    for t, arm in enumerate(arms):
        context = None if contexts is None else contexts[t]
        g = np.zeros(env.constraint_count) if env.constraint_count else None
        trials.append(study.add(env.domain.points[arm], 0.0, context=context, constraints=g))
    return np.array([env.expected(trial) for trial in trials]).T, np.array([env.constraint(trial) for trial in trials])


def test_the_constraint_may_change_and_the_reward_not():
    env = nr.Environment(
        rising, domain=ARMS, constraints=[below(0.75), below(0.25), below(0.5)], change_points=even_changes(6, 3)
    )
    (value, best), g = played(env, [4] * 6)
    np.testing.assert_array_equal(value, X[[4] * 6])
    np.testing.assert_array_equal(best, [0.75, 0.75, 0.25, 0.25, 0.5, 0.5])  # of the arms that the round allows
    np.testing.assert_array_equal(g[:, 0], X[4] - best)


def test_the_reward_may_change_and_the_constraint_not():
    env = nr.Environment([rising, falling], domain=ARMS, constraints=above(0.25), change_points=[2])
    (value, best), g = played(env, [8, 8, 8, 8])
    np.testing.assert_array_equal(value, [1.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(best, [1.0, 1.0, 0.75, 0.75])
    np.testing.assert_array_equal(g[:, 0], [-0.75] * 4)


def test_a_function_becomes_another_one():
    env = nr.Environment([rising, Drifting(rising, falling, over=4)], domain=ARMS, change_points=[2])
    (value, best), _ = played(env, [8] * 8)
    u = np.array([0, 0, 0, 0.25, 0.5, 0.75, 1, 1])
    np.testing.assert_allclose(value, 1 - u)
    np.testing.assert_allclose(best, np.maximum(1 - u, u))
    assert played(env, [8] * 8)[0].tolist() == [value.tolist(), best.tolist()]  # what is kept is the same again


def test_a_constraint_drifts_from_the_first_round_under_contexts_and_on_boxes():
    def reward(x, c):
        return x[:, 0] + c[:, 0]

    def limit(x, c):
        return np.stack([x[:, 0] - 0.25 - c[:, 0], np.full(len(x), -1.0)], axis=1)

    def wider(x, c):
        return limit(x, c) - np.array([0.25, 0.0])

    contexts = [[0.0], [0.5], [0.0], [0.5]]
    for domain in (ARMS, nr.Box(0.0, 1.0)):
        env = nr.Environment(reward, domain=domain, contexts=TABLE, constraints=Drifting(limit, wider, over=2))
        points = ARMS.points[[2, 2, 4, 4]]
        study = nr.Study(nr.gp_ucb(domain, nr.Matern(2.5, [0.3, 0.3]), noise=0.1, context=TABLE), seed=0)
        trials = [study.add(x, 0.0, context=c) for x, c in zip(points, contexts, strict=True)]
        g = np.array([env.constraint(trial) for trial in trials])
        np.testing.assert_allclose(g, [[0.0, -1], [-0.625, -1], [0.0, -1], [-0.5, -1]])
        value, best = np.array([env.expected(trial) for trial in trials]).T
        np.testing.assert_allclose(value, [0.25, 0.75, 0.5, 1.0])
        np.testing.assert_allclose(best, [0.25, 1.375, 0.5, 1.5], atol=1e-3)


def test_contexts_of_a_table_are_asked_of_once():
    calls = []

    def reward(x, c):
        calls.append(len(x))
        return x[:, 0] * c[:, 0]

    env = nr.Environment(reward, domain=ARMS, contexts=TABLE, constraints=lambda x, c: x[:, 0] * c[:, 0] - 0.5)
    policy = nr.gp_ucb(ARMS, nr.Matern(2.5, [0.3, 0.3]), noise=0.1, context=TABLE, constraints=nr.EveryRound())
    run = nr.simulate(policy, env, 40)
    assert calls == [9, 9, 9]
    z = run.contexts[:, 0]
    best = np.array([max(x * c for x in X if x * c <= 0.5) for c in z])
    np.testing.assert_allclose(run.regret, best - X[run.arms] * z)
    np.testing.assert_allclose(run.violations, np.maximum(X[run.arms] * z - 0.5, 0.0))
    np.testing.assert_allclose(run.strong_violation, np.cumsum(run.violations))


def test_constraint_noise_for_each():
    env = nr.Environment(
        rising, domain=ARMS, constraints=lambda x: np.stack([x[:, 0], x[:, 0], x[:, 0]], 1),
        constraint_noise=(0.0, 0.1, 2.0),
    )  # fmt: skip
    noise = env.draw_constraint_noise(np.random.default_rng(0), 4000)
    np.testing.assert_allclose(noise.std(axis=0), [0.0, 0.1, 2.0], rtol=0.05)


def policy_of(world, **more):
    return nr.gp_ucb(ARMS, nr.Matern(2.5, 0.3), noise=0.1, constraints=world, **more)


def late(**more):
    return nr.Environment(rising, domain=ARMS, noise=0.1, constraints=below(0.55), constraint_noise=0.1, **more)


def test_constraint_values_have_a_time_of_their_own():
    env = late(delay=6, constraint_delay=2)
    run = nr.simulate(policy_of(nr.EveryRound()), env, 20)
    np.testing.assert_array_equal(run.answered_by, np.minimum(np.arange(20) + 6, 20))
    np.testing.assert_array_equal(run.limited_by, np.minimum(np.arange(20) + 2, 20))
    # Told at once, what is learned of the border is there long before the first reward is.
    early = nr.simulate(policy_of(nr.EveryRound()), late(delay=15, constraint_delay=0), 15)
    both = nr.simulate(policy_of(nr.EveryRound()), late(delay=15), 15)
    np.testing.assert_array_equal(early.limited_by, np.arange(15))
    assert early.strong_violation[-1] < both.strong_violation[-1]
    # Together they are as if nobody had said anything of them.
    same = nr.simulate(policy_of(nr.EveryRound()), late(constraint_delay=0), 15)
    np.testing.assert_array_equal(same.arms, nr.simulate(policy_of(nr.EveryRound()), late(), 15).arms)


def test_constraint_values_may_come_after_the_reward_or_never():
    run = nr.simulate(policy_of(nr.EveryRound()), late(delay=1, constraint_delay=GeometricDelay(5.0)), 40)
    assert (run.limited_by > run.answered_by).any()
    assert (run.limited_by < run.answered_by).any()
    never = nr.simulate(policy_of(nr.EveryRound()), late(constraint_delay=np.inf), 12)
    assert (never.limited_by == 12).all()
    assert (never.answered_by == np.arange(12)).all()


def test_who_learns_from_both_together_is_told_when_both_are_there():
    policy = nr.gp_ucb_noisy_constraints(ARMS, nr.Matern(2.5, 0.3), noise=0.1, norm_bound=1.0, epoch=5, epochs=4)
    run = nr.simulate(policy, late(delay=1, constraint_delay=4), 20)
    np.testing.assert_array_equal(run.answered_by, np.minimum(np.arange(20) + 4, 20))
    np.testing.assert_array_equal(run.answered_by, run.limited_by)


@pytest.mark.parametrize("times", [{}, {"delay": 3, "constraint_delay": 0}, {"constraint_delay": 3}])
def test_a_change_of_the_constraint_alone_is_noticed_whenever_its_values_are_told(times):
    env = nr.Environment(
        rising, domain=ARMS, noise=0.1, constraints=[below(0.55), lambda x: 4.0 * x[:, 0] - 0.8], constraint_noise=0.1,
        change_points=[40], **times,
    )  # fmt: skip
    run = nr.simulate(policy_of(nr.EveryRound(), memory="adaptive"), env, 80)
    assert len(run.restarts) == 1
    assert abs(run.restarts[0] - 40) <= 4
    assert run.violations[65:].mean() < 0.05 < 1.0 < run.violations[40]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"constraints": [below(0.5), below(0.2)]}, "2 constraint functions and 0 change points"),
        ({"constraints": [below(0.5), below(0.2)], "change_points": [3, 5]}, "2 constraint functions and 2 change"),
        ({"constraints": below(0.5), "change_points": [3]}, "1 reward function and 1 change point do"),
        ({"constraints": [below(0.5), "g"], "change_points": [3]}, "`constraints` must be a function"),
        ({"constraints": []}, "`constraints` must be a function"),
        (
            {"constraints": [below(0.5), lambda x: np.zeros((len(x), 2))], "change_points": [3]},
            "returned 2 columns, and another one 1",
        ),
        ({"constraints": below(0.5), "constraint_noise": [0.1, 0.1]}, "has 2 entries for 1 constraint:"),
        ({"constraints": below(0.5), "constraint_noise": [-0.1]}, "`constraint_noise` is -0.1"),
        ({"constraint_delay": 3}, "needs `constraints`"),
        ({"constraints": [below(0.5)] * 2, "change_points": [3], "best": 0.5}, "found for each"),
        ({"constraints": Drifting(below(0.5), below(0.2), over=9), "best": 0.5}, "found for each"),
        ({"constraints": [below(0.5), below(-1.0)], "change_points": [3]}, "No point satisfies all constraints"),
    ],
)
def test_nonsense_is_explained(more, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.simulate(policy_of(nr.EveryRound()), nr.Environment(rising, domain=ARMS, **more), 5)


def test_what_drifts_is_checked():
    with pytest.raises(nr.errors.InvalidInput, match="`end` must be a function"):
        Drifting(rising, 3.0, over=4)
    with pytest.raises(nr.errors.InvalidInput, match="`over` is 0"):
        Drifting(rising, falling, over=0)


def test_a_violation_that_beats_the_best_feasible_point_has_a_negative_regret_also_where_best_is_given():
    hours = nr.Arms.grid(0, 1, 2)
    box = nr.Box([0.0], [1.0])
    given = {"domain": box, "contexts": hours, "constraints": lambda x, c: x[:, 0] - 0.5}
    env = nr.Environment(lambda x, c: x[:, 0] + c[:, 0], best=lambda c: c[:, 0] + 0.5, **given)
    searched = nr.Environment(lambda x, c: x[:, 0] + c[:, 0], **given)
    study = nr.Study(nr.gp_bucb(box, nr.SquaredExponential([0.3, 0.3]), noise=0.1, beta=1.0, context=hours), seed=0)
    trial = study.ask(hours.points[1])._replace(point=np.array([0.8]))
    assert env.expected(trial) == pytest.approx((1.8, 1.5))
    assert searched.expected(trial) == pytest.approx((1.8, 1.5), abs=1e-2)
