"""The probability of a decision is recorded with it, and is the share of other seeds that decide so."""

import json

import numpy as np
import pytest

import nilregret as nr
from nilregret.slots import Uniform

ARMS, KERNEL = nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.3)
REWARDS = (0.3, -0.2, 0.5, 0.4)


def ts(**more):
    return nr.gp_ts(ARMS, KERNEL, noise=0.3, norm_bound=1.0, **more)


def test_it_is_on_record_and_comes_back(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(ts(), storage=url, propensities=True, about={"units": "kg"})
    for reward in REWARDS:
        expected = study.probabilities()
        trial = study.ask()
        assert trial.propensity == pytest.approx(expected[trial.arm], abs=0.01)
        assert study.tell(trial, reward).propensity == trial.propensity
    again = nr.Study.open(storage=url)
    assert again.propensities
    assert list(again.trials) == list(study.trials)
    assert again.ask().propensity is not None
    assert again.about == {"units": "kg", "propensities": True}
    assert json.loads(json.dumps(again.about)) == again.about
    with pytest.raises(nr.errors.InvalidInput, match="propensities"):
        nr.Study(ts(), storage=url, about={"units": "kg"})
    assert study.to_pandas()["propensity"].tolist() == [trial.propensity for trial in study.trials]


def test_it_changes_no_decision_and_is_none_unless_asked_for():
    plain, recorded = nr.Study(ts(), seed=3), nr.Study(ts(), seed=3, propensities=True)
    for reward in REWARDS:
        one, other = plain.ask(), recorded.ask()
        assert one.propensity is None
        assert one == other._replace(propensity=None, asked_at=one.asked_at)
        plain.tell(one, reward)
        recorded.tell(other, reward)
    assert plain.add([0.5], 1.0).propensity is None
    assert "propensity" not in plain.to_pandas()


def test_a_floor_is_under_every_arm():
    study = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.1).using(explore=Uniform(0.2)), propensities=True)
    for number in range(12):
        found = study.probabilities()
        assert found.min() >= 0.2 / 5 - 1e-15
        assert found.sum() == pytest.approx(1.0)
        trial = study.ask()
        assert trial.propensity == pytest.approx(found[trial.arm])
        study.tell(trial, np.sin(9.0 * number))
    assert {trial.explored for trial in study.trials} == {True, False}


@pytest.mark.parametrize("rate", [0.0, 1.1, -1.0, "often"])
def test_a_rate_that_is_none(rate):
    with pytest.raises(nr.errors.InvalidInput, match="rate"):
        Uniform(rate)
