"""What may be played changes from decision to decision: `among` and `exclude`, and what is best under a context."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.domains.coordinates import PointLookup

from .marks import thinned

ARMS = nr.Arms.grid(0, 1, 12)
SE = nr.SquaredExponential(0.2)


def reward(trial):
    shift = 0.0 if trial.context is None else 0.1 * float(trial.context[0])
    return float(np.sin(7 * trial.point - shift).sum() + 0.1 * np.sin(99 * trial.number))


def told(study, rounds):
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, reward(trial))
    return study


# -- which arms are meant ----------------------------------------------------------------------------------------------


def test_arms_are_named_in_several_ways():
    space = nr.Space(x=nr.Int(0, 5), kind=nr.Choice("a", "b"))
    arms = space.grid(6)
    some = [2, 5, 7]
    mask = np.isin(np.arange(len(arms)), some)
    ways = [some, np.array(some), set(some), mask, mask.tolist(), arms.points[some], [arms.parameters(i) for i in some]]
    for seed in range(3):
        asked = {nr.Study(nr.gp_ucb(arms, SE, noise=0.1), seed=seed).ask(among=way).arm for way in ways}
        asked |= {nr.Study(nr.gp_ucb(arms, SE, noise=0.1), seed=seed).ask(exclude=~mask).arm}
        assert len(asked) == 1
        assert asked <= set(some)


def test_a_point_means_every_arm_that_is_there():
    study = nr.Study(nr.gp_ucb(nr.Arms([0.0, 0.5, 0.0]), SE, noise=0.1))
    assert study.ask(exclude=[[0.0]]).arm == 1
    assert study.ask(exclude=[0, 1]).arm == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"among": []}, r"rules out all that there is \(12 arms\)"),
        ({"exclude": range(12)}, r"rules out all that there is \(12 arms\)"),
        ({"among": [3], "exclude": [3]}, "`among` and `exclude` rule out"),
        ({"among": [12]}, "arm 12, but these are arms 0 .. 11"),
        ({"among": [True, False]}, "2 truth values for 12 arms"),
        ({"among": [[0.03]]}, "is not one of the arms"),
        ({"among": [[1], [2, 3]]}, "different lengths"),
        ({"among": ["first"]}, "^`among` is not an array of numbers"),
        ({"exclude": [[0.0, 1.0]]}, "^`exclude` has 2 columns"),
    ],
)
def test_errors_say_what_is_wrong_and_record_nothing(given, words):
    study = nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1))
    with pytest.raises(nr.errors.InvalidInput, match=words):
        study.ask(**given)
    assert len(study.trials) == 0


def test_errors_about_named_arms_and_contexts_name_the_argument():
    grid = nr.Space(x=nr.Float(0, 1)).grid(3)
    with pytest.raises(nr.errors.InvalidInput, match=r"^`among` is"):
        nr.Study(nr.gp_ucb(grid, SE, noise=0.1)).ask(among=[[0.5]])
    with pytest.raises(nr.errors.InvalidInput, match=r"^`context` is not an array of numbers"):
        nr.Study(nr.gp_ucb(ARMS, SE, context=nr.Arms([0.0, 1.0]), noise=0.1)).ask(context=["noon"])


def test_boxes_take_points_and_no_exclusions():
    study = nr.Study(nr.gp_ucb(nr.Box([0.0], [1.0]), SE, noise=0.1))
    with pytest.raises(nr.errors.InvalidInput, match="`exclude` is for arms"):
        study.ask(exclude=[0.5])
    for none in ([], np.zeros((0, 1))):
        with pytest.raises(nr.errors.InvalidInput, match="`among` has no points"):
            study.ask(among=none)
    with pytest.raises(nr.errors.InvalidInput, match="outside the box"):
        study.ask(among=[0.5, 1.5])
    space = nr.Space(x=nr.Float(0, 1), n=nr.Int(1, 9))
    listed = [{"x": 0.25, "n": 3}, {"x": 0.5, "n": 8}]
    study = nr.Study(nr.gp_ucb(space, SE, noise=0.1))
    assert study.ask(among=listed).parameters in listed
    assert study.ask(among=listed[0]).parameters == listed[0]


def test_a_script_cannot_choose():
    study = nr.Study(nr.algorithms.admmbo(nr.Box([0.0], [1.0])))
    with pytest.raises(nr.errors.InvalidInput, match="admmbo plays the points that its script names"):
        study.ask(among=[0.5])
    assert len(study.trials) == 0


# -- the decision ------------------------------------------------------------------------------------------------------


def test_it_is_the_best_of_what_there_is():
    for domain in (ARMS, nr.Box([0.0], [1.0])):
        study = told(nr.Study(nr.gp_ucb(domain, SE, noise=0.1)), 5)
        points = ARMS.points[[1, 4, 6, 9]]
        _, upper = study.bounds(points)
        assert study.ask(among=points).point == points[upper.argmax()]


def test_everything_available_changes_nothing():
    for make in (nr.gp_ucb, nr.algorithms.gp_bts, nr.expected_improvement):
        one, two = (nr.Study(make(ARMS, SE, noise=0.1), seed=4) for _ in range(2))
        for _ in range(8):
            first, second = one.ask(), two.ask(exclude=[])
            assert first.arm == second.arm
            one.tell(first, reward(first))
            two.tell(second, reward(second))


def test_ties_are_broken_at_random():
    arms = {nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1), seed=seed).ask(among=[3, 7]).arm for seed in range(20)}
    assert arms == {3, 7}


@pytest.mark.parametrize("domain", [ARMS, nr.Box([0.0], [1.0])])
def test_forced_random_rounds_keep_to_it(domain):
    policy = nr.gp_ucb(domain, SE, noise=0.1, scale=0.2).detecting_changes(exploration=50.0, threshold=100.0, ridge=1.0)
    study = nr.Study(policy, seed=0)
    points = ARMS.points[[2, 5]]
    asked = [study.ask(among=points) for _ in range(20)]
    assert all(trial.explored for trial in asked)
    assert {float(trial.point[0]) for trial in asked} == set(points[:, 0])


@pytest.mark.parametrize("domain", [ARMS, nr.Box([0.0], [1.0])])
def test_failed_points_stay_aside(domain):
    study = nr.Study(nr.gp_ucb(domain, SE, noise=0.1))
    points = ARMS.points[[2, 8]]
    first = study.ask(among=points)
    study.fail(first, "it broke")
    second = study.ask(among=points)
    assert second.point != first.point
    study.fail(second, "it broke too")
    with pytest.raises(nr.NoRegretError, match=r"Everything that may be played now \(2 points\) has failed"):
        study.ask(among=points)
    assert study.ask().point not in points  # elsewhere there is something left


@pytest.mark.parametrize("incumbent", ["mean", "reward"])
@pytest.mark.parametrize("domain", [nr.Arms([0.0, 10.0, 20.0]), nr.Box([0.0], [20.0])])
def test_improvement_is_over_what_is_available(domain, incumbent):
    """Of two arms, the better and better known one: over what the absent arm has, the less known one would improve."""
    policy = nr.expected_improvement(domain, nr.SquaredExponential(1.0), noise=0.5, incumbent=incumbent)
    study = nr.Study(policy)
    for point, value, times in ((0.0, 2.0, 9), (10.0, 0.5, 3), (20.0, 0.0, 1)):
        for _ in range(times):
            study.add([point], value)
    assert study.ask(among=[[10.0], [20.0]]).point == 10.0


# -- replay ------------------------------------------------------------------------------------------------------------

BOX = nr.Box([0.0], [1.0])
POLICIES = {
    "gp_ucb": nr.gp_ucb(ARMS, SE, noise=0.1, scale=0.2),
    "gp_ts": nr.gp_ts(ARMS, SE, noise=0.1, norm_bound=1.0),
    "ei": nr.expected_improvement(ARMS, SE, noise=0.1, incumbent="reward"),
    "hallucinated": nr.gp_bucb(ARMS, SE, noise=0.1),
    "changes": nr.gp_ucb(ARMS, SE, noise=0.1).detecting_changes(exploration=1.0, threshold=1.0, ridge=0.1),
    "box": nr.gp_ucb(BOX, SE, noise=0.1, scale=0.2),
    "box ts": nr.gp_ts(BOX, SE, noise=0.1, norm_bound=1.0),
    "contexts": nr.gp_ucb(ARMS, nr.SquaredExponential([1.0, 0.2]), noise=0.1, context=nr.Box([0.0], [3.0]), scale=0.2),
}


@pytest.mark.parametrize("name", thinned(POLICIES, "gp_ts", "changes", "box"))
def test_a_reopened_study_goes_on_as_it_would_have(name, tmp_path):
    """What was available is not stored, and need not be: what was decided is."""
    policy, rng = POLICIES[name], np.random.default_rng(5)
    place = {"storage": f"sqlite:///{tmp_path}/a.db", "name": "a"}
    here, stored = nr.Study(policy, seed=3), nr.Study(policy, seed=3, **place)
    for t in range(12):
        some = ARMS.points[rng.random(12) < 0.4] if t % 3 else None
        some = None if some is None or not len(some) else some
        context = None if policy.context is None else [float(t % 4)]
        first, second = here.ask(context, among=some), stored.ask(context, among=some)
        assert first.point == second.point
        assert some is None or first.point in some
        if t % 4 != 3:
            here.tell(first, reward(first))
            stored.tell(second, reward(second))
        stored = nr.Study.open(**place)


# -- contexts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finite", [True, False])
def test_the_best_point_depends_on_the_context(finite):
    contexts = nr.Arms([0.0, 1.0]) if finite else nr.Box([0.0], [1.0])
    kernel = nr.SquaredExponential([0.5, 0.2])
    study = nr.Study(nr.gp_ucb(ARMS, kernel, noise=0.1, context=contexts))
    for arm in (1, 5, 10):
        for context in (0.0, 1.0):
            study.add(ARMS.points[arm], 1.0 - abs(arm - (1 if context else 10)) / 9, context=[context])
    assert study.best(context=[0.0]).arm == 10
    assert study.best(context=[1.0]).arm == 1
    study.add(ARMS.points[5], 3.0, context=[0.0])
    best = study.best(context=[0.0])
    assert (best.arm, best.number) == (5, 2)  # the earliest trial of the point
    means = [study.predict(ARMS.points[[arm]], context=[0.0])[0] for arm in (1, 5, 10)]
    assert np.argmax(means) == 1
    with pytest.raises(nr.errors.InvalidInput, match="takes no context"):
        told(nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1)), 1).best(context=[0.0])


def test_the_best_point_of_a_context_under_constraints():
    kernel = nr.SquaredExponential([0.5, 0.2])
    contexts = nr.Arms([0.0, 1.0, 2.0])
    policy = nr.gp_ucb_noiseless_constraints(
        ARMS, kernel, noise=0.1, norm_bound=1.0, epoch=5, epochs=9, regularization=0.1, context=contexts
    )
    study = nr.Study(policy)
    study.add(ARMS.points[1], 3.0, context=[0.0], constraints=[1.0])
    study.add(ARMS.points[2], 1.0, context=[0.0], constraints=[-1.0])
    study.add(ARMS.points[3], 2.0, context=[1.0], constraints=[-1.0])
    assert study.best(context=[0.0]).arm == 2
    assert study.best(context=[1.0]).arm == 3
    with pytest.raises(nr.errors.TrialError, match=r"under context \[2.0\]"):
        study.best(context=[2.0])


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
@pytest.mark.parametrize("contexts", [nr.Arms([0.0, 0.1, 0.9, 1.0]), nr.Box([0.0], [1.0])], ids=["table", "box"])
def test_where_constraints_are_learned_a_point_may_be_best_under_a_context_it_was_not_tried_in(contexts, goal):
    kernel = nr.SquaredExponential([0.5, 0.2])
    policy = nr.gp_ucb(ARMS, kernel, noise=0.1, context=contexts, constraints=nr.EveryRound())
    study, sign = nr.Study(policy, goal=goal), 1.0 if goal == "maximize" else -1.0
    study.add(ARMS.points[1], sign * 2.0, context=[0.0], constraints=[-1.0])
    study.add(ARMS.points[9], sign * 1.0, context=[0.1], constraints=[-1.0])
    study.add(ARMS.points[9], sign * 1.0, context=[1.0], constraints=[-1.0])
    assert study.best(context=[0.1]).arm == 1  # there the only trial was of arm 9
    study.add(ARMS.points[1], sign * 2.0, context=[1.0], constraints=[1.0])
    assert study.best(context=[0.1]).arm == study.best(context=[0.0]).arm == 1
    assert study.best(context=[0.9]).arm == study.best(context=[1.0]).arm == 9
    study.add(ARMS.points[1], sign * 2.0, context=[0.1], constraints=[0.01])
    assert study.predict(ARMS.points[[1, 9]], context=[0.1])[0] @ [sign, -sign] > 0.0
    assert study.bounds(ARMS.points[[1]], context=[0.1], channel=1)[0] < 0.0
    assert study.best(context=[0.1]).arm == 9  # arm 1 was told to violate there


@pytest.mark.parametrize("as_arms", [True, False])
def test_named_contexts_are_shown_decoded(as_arms, tmp_path):
    space = nr.Space(hour=nr.Int(0, 23), device=nr.Choice("phone", "desk"))
    contexts = space.grid(24) if as_arms else space
    place = {"storage": f"sqlite:///{tmp_path}/a.db", "name": "a"}
    study = nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1, context=contexts, width="compact", a=1.0, b=1.0), **place)
    now = {"hour": 7, "device": "desk"}
    trial = study.tell(study.ask(now), 0.5)
    study.add(ARMS.points[3], 0.1, context={"hour": 9, "device": "phone"})
    assert trial.context_parameters == now
    trial.context_parameters["hour"] = 3  # a fresh dict each time
    again = nr.Study.open(**place)
    assert [each.context_parameters for each in again.trials] == [now, {"hour": 9, "device": "phone"}]
    assert told(nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1)), 1).trials[0].context_parameters is None


def test_many_points_are_found_without_looking_at_all_arms_for_each(monkeypatch):
    from nilregret.policy.availability import available

    rng, looked = np.random.default_rng(0), []
    arms = nr.Arms(np.repeat(rng.random((500, 3)), 2, axis=0))  # each twice
    gaps = PointLookup._gaps

    def counted(self, some, row):
        found = gaps(self, some, row)
        looked.append(len(found))
        return found

    monkeypatch.setattr(PointLookup, "_gaps", counted)
    listed = arms.points[:400] * (1 + 1e-13)  # as after a way through text
    left = available(arms, listed.tolist(), None)
    assert left.arms.tolist() == list(range(400))
    assert sum(looked) <= 2 * 400
    one = available(arms, arms.points[[7]].tolist(), [6])
    assert one.arms.tolist() == [7]


def test_points_near_arms_are_those_arms():
    rng = np.random.default_rng(1)
    for _ in range(60):
        count, dimension = rng.integers(1, 40), rng.integers(1, 5)
        grid = rng.integers(0, 3, (count, dimension)) * 10.0 ** rng.integers(-8, 9)
        arms = nr.Arms(grid + rng.choice([0.0, 1e6, -5.0]))
        for row in arms.points[rng.integers(0, count, 8)]:
            near = row + rng.uniform(-1.3, 1.3, dimension) * arms._lookup._resolution
            far = (np.abs(arms.points - near) / arms._lookup._resolution).max(axis=1)
            if far.min() > 1.0:
                with pytest.raises(nr.errors.InvalidInput, match="is not one of the arms"):
                    arms.index(near)
            else:
                found = arms.index(near)[0]
                assert far[found] == far.min()
            same = np.flatnonzero((arms.points == row).all(axis=1))
            assert sorted(arms.coinciding(arms.index(row))) == same.tolist()
