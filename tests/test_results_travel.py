"""A finished result can be pickled and copied: a study in memory goes with it, and one in a storage is opened again."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import nilregret as nr
from nilregret.storage import MemoryStorage

SPACE = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"))


def score(x, kind="a"):
    return {"reward": (x - 0.3) ** 2 + (kind == "b"), "ms": 40.0 + x}


def search(seed, **options):
    return nr.minimize(score, SPACE, trials=4, seed=seed, progress=False, **options)


def pickled(result):
    return pickle.loads(pickle.dumps(result))


@pytest.mark.parametrize("travel", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("options", [{}, {"constraints": "ms <= 50"}, {"storage": None}], ids=str)
def test_a_result_goes_with_its_study(travel, options):
    kept = {"storage": MemoryStorage()} if "storage" in options else {}
    result = search(0, **options | kept)
    again = travel(result)
    assert (again.trials, again.wanted, again.stopped) == (result.trials, result.wanted, result.stopped)
    assert repr(again) == repr(result)
    assert again.history == result.history
    mine, other = result.study, again.study
    assert (other.policy, other.goal, other.seed, other.name) == (mine.policy, mine.goal, mine.seed, mine.name)
    assert (other.about, list(other.trials), other.fits) == (mine.about, list(mine.trials), mine.fits)
    at = [{"x": 0.25, "kind": "b"}]
    np.testing.assert_array_equal(other.predict(at), mine.predict(at))
    assert other.ask() == mine.ask()._replace(asked_at=other.trials[-1].asked_at)  # the same next decision
    other.tell(4, 1.0, constraints=[0.0] if options.get("constraints") else None)
    assert (len(mine.trials), mine.trials[4].state, other.trials[4].state) == (5, "pending", "observed")
    assert not other.trials[0].point.flags.writeable


def test_results_come_back_from_processes():
    with ProcessPoolExecutor(1) as pool:
        (result,) = pool.map(search, [3])
    assert result.trials[3].parameters == search(3).trials[3].parameters
    assert result.study.best().number == search(3).study.best().number


def test_a_stored_study_is_opened_again_and_shared(tmp_path):
    result = search(0, storage=f"sqlite:///{tmp_path}/s.db")
    for again in (pickled(result), copy.deepcopy(result)):
        assert list(again.study.trials) == list(result.study.trials)
        number = again.study.ask().number
        assert result.study.trials[number].state == "pending"
    sent = pickle.dumps(result)
    result.study.close()
    (tmp_path / "s.db").unlink()
    with pytest.raises(nr.NoRegretError, match=r"s\.db"):
        pickle.loads(sent)


def test_a_result_with_arms_that_came_later_and_corrections():
    result = nr.maximize(lambda x: x[0], nr.Arms.grid(0, 1, 5), trials=3, progress=False)
    study = result.study
    study.add_arms([[2.0]])
    study.retire_arm(0)
    study.tell(0, 0.5, revise=True)
    again = pickled(result).study
    assert (again.arms, again.policy) == (study.arms, study.policy)
    assert list(again.trials) == list(study.trials)
    np.testing.assert_array_equal(again.predict(), study.predict())
