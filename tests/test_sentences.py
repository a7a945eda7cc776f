"""What newcomers type at the parts for late answers, changes and constraints, and what they are told."""

import warnings

import numpy as np
import pytest

import nilregret as nr
from nilregret.environments import delays

ARMS, KERNEL = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)


def policy(**slots):
    return nr.gp_ucb(ARMS, KERNEL, noise=0.1, **slots)


def test_the_words_of_slots_are_understood_by_using_too():
    by_word = policy().using(memory="adaptive", pending="auto")
    assert by_word == policy(memory="adaptive", pending="auto")
    assert policy().using(pending="hallucinate") == policy(pending="hallucinate")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: policy().using(memory="adaptve"), "`memory` is 'adaptve': it must be 'adaptive'."),
        (lambda: policy().using(pending="later"), "`pending` is 'later': it must be one of 'ignore', 'hallucinate', "),
        (lambda: nr.slots.AllOf(("adaptive", nr.slots.DriftBank())), "`parts` has 'adaptive', which is no memory: "),
        (lambda: nr.slots.AllOf(()), "`parts` is (): it must be a tuple of memories"),
        (lambda: nr.EveryRound(confidence=-1), "`confidence` is -1: it must lie in [0, "),
        (lambda: nr.OnAverage(confidence=float("nan")), "`confidence` is nan: it must be finite."),
        (lambda: delays.SilentNo(0.3, other="x"), "`other` is 'x': it must be a delay of the answers that come"),
    ],
)
def test_what_is_no_part_is_named(wrong, sentence):
    with pytest.raises(nr.errors.InvalidInput) as caught:
        wrong()
    assert str(caught.value).startswith(sentence)


def reward(points):
    return points[:, 0]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"constraint_noise": 0.1}, "`constraint_noise` needs `constraints`, whose values it is about."),
        ({"constraint_noise": [0.0]}, "`constraint_noise` needs `constraints`, whose values it is about."),
        ({"delay": -1}, "`delay` is -1: it must lie in [0, inf). A delay is a number of rounds"),
        ({"constraints": reward, "constraint_delay": "x"}, "`constraint_delay` must be a number, not 'x' (str)."),
    ],
)
def test_worlds_name_the_argument_that_is_wrong(given, sentence):
    with pytest.raises(nr.errors.InvalidInput) as caught:
        nr.Environment(reward, domain=ARMS, noise=0.1, **given)
    assert str(caught.value).startswith(sentence)


def test_a_world_without_a_feasible_point_says_why_that_usually_is():
    env = nr.Environment(reward, domain=ARMS, noise=0.1, constraints=lambda points: points[:, 0] + 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="have the other sign"):
        nr.simulate(policy(constraints=nr.EveryRound()), env, 2)


@pytest.mark.parametrize("channel", [None, "1", True, 0.5, 2, -1])
def test_bounds_are_of_a_channel(channel):
    study = nr.Study(policy(constraints=nr.EveryRound()), seed=0)
    with pytest.raises(
        nr.errors.InvalidInput, match=r"`channel` .* It is 0 for the reward, or the number of a constraint"
    ):
        study.bounds(channel=channel)
    np.testing.assert_array_equal(study.bounds(channel=np.int64(1)), study.bounds(channel=1))
    with pytest.raises(
        nr.errors.InvalidInput, match=r"`channel` must be a whole number|has no posterior of the constraints"
    ):
        nr.Study(policy(), seed=0).bounds(channel=channel)


def test_constraint_values_of_a_failed_trial_are_refused_with_the_way_out():
    study = nr.Study(policy(constraints=nr.EveryRound()), seed=0)
    trial = study.ask()
    study.fail(trial, "a mistake")
    with pytest.raises(nr.errors.TrialError, match=r"nothing was recorded\. .*revise=True"):
        study.tell(trial, constraints=[0.5])
    assert study.tell(trial, 1.0, constraints=[0.5], revise=True).constraints == [0.5]


@pytest.mark.parametrize(
    ("text", "said"), [("1 <= lat <= 5", r"\['lat >= 1', 'lat <= 5'\]"), ("lat == 3 <= 5", ""), ("lat >= 1 <= 5", "")]
)
def test_a_text_is_one_limit(text, said):
    with pytest.raises(nr.errors.InvalidInput, match=f"several signs.*make a list of two.*{said}"):
        nr.maximize(lambda x: {"reward": x, "lat": x}, nr.Space(x=nr.Float(0, 1)), trials=2, constraints=text)


def warnings_of(study, *, constraints):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(16):
            trial = study.ask()
            study.tell(trial, 0.5 * trial.point[0], constraints=constraints)
    return " ".join(str(warning.message) for warning in caught)


def test_what_is_said_of_constraint_values_is_true_of_constraints_with_posteriors():
    forgotten = warnings_of(nr.Study(policy(constraints=nr.EveryRound()), seed=0), constraints=None)
    assert "nothing has been learned of the constraints." in forgotten
    multipliers = nr.gp_ucb_noisy_constraints(ARMS, KERNEL, noise=0.1, norm_bound=1.0, epoch=4, epochs=4)
    assert "nothing has been learned. " in warnings_of(nr.Study(multipliers, seed=0), constraints=None)
    assert "say `constraints=nr.EveryRound(count=...)`" in warnings_of(nr.Study(policy(), seed=0), constraints=[0.1])


@pytest.mark.parametrize("answers", [3, None, "ab", {"trial": 0, "reward": 1.0}])
def test_many_answers_are_a_list(answers):
    study = nr.Study(policy(), seed=0)
    study.ask()
    with pytest.raises(nr.errors.InvalidInput, match=r"`answers` is .*: it must be a list"):
        study.tell_many(answers)
