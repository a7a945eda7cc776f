"""Parameters of a trial have 12 digits, and name its point wherever somebody copies them back."""

import json
from fractions import Fraction

import numpy as np
import pytest

import nilregret as nr
from nilregret.storage import MemoryStorage

from .service import AT, Client, plain

LINE = nr.Space(x=nr.Float(0, 100))
PAIR = nr.Space(x=nr.Float(0, 7), rate=nr.Float(1e-4, 10, log=True))
SAFE = {  # space, start, most of the sum of the parameters, seed
    "whole": (nr.Space(n=nr.Int(1, 5), x=nr.Float(0, 1)), {"n": 1, "x": 0.1}, 4, 1),
    "mixture": (
        nr.Space(m=nr.Mixture("a", "b", c=(0, 0.5)), t=nr.Float(0, 10)), {"a": 0.5, "b": 0.4, "c": 0.1, "t": 1.0}, 5, 0,
    ),
    "conditional": (
        nr.Space(k=nr.Choice("u", "v"), g=nr.when("k", "v", nr.Float(0.01, 1, log=True)), x=nr.Float(0, 3)),
        {"k": "u", "x": 0.1}, 2, 0,
    ),
    "limits": (nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).where("a + b <= 1.2"), {"a": 0.1, "b": 0.1}, 1, 5),
}  # fmt: skip
NEXT = {  # parameters, and others that differ from them in the 12th digit or further in front
    12: lambda x: x * (1 + 2e-11),
    11: lambda x: x * (1 + 2e-10),
    1: lambda x: 1.5 * x,
}


def copied(trial):
    return json.loads(json.dumps(trial.parameters))


def is_certified(study, point):
    """Whether exactly this point is certified, whatever trials there are."""
    return study.replica.query(lambda state: state.certain(point[None], None))[0] == 1.0


def bordered(told, noise=0.3, **more):
    """A study with one answer at 20, and a trial at the last float that this answer certifies."""
    safe = nr.Safe(start=[{"x": 20}], slope={"x": 1.0}, noise=noise, caution=1.0, **more)
    study = nr.Study(nr.auto(LINE, constraints=safe), seed=0)
    study.tell(study.ask(), 0.0, constraints=[told])
    low, high = 0.2, 1.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if is_certified(study, np.array([middle])) else (low, middle)
    return study, study.ask(among=[np.array([low])]), high


def test_parameters_of_a_trial_at_the_border_are_certified():
    missed = 0
    for told in np.linspace(-60.0, -1.0, 12):
        study, trial, _ = bordered(told)
        missed += not is_certified(study, LINE.encode(copied(trial)))
        assert study.feasible(copied(trial)).tolist() == study.feasible([copied(trial)]).tolist() == [1.0]
        assert study.ask(among=[copied(trial)]).point.tobytes() == trial.point.tobytes()
        # What is certified is safe at the printed values: y + E + s abs(x - x_i) <= 0 in exact numbers.
        assert Fraction(told) + Fraction(0.3) + Fraction(trial.parameters["x"]) - 20 <= 0
    assert missed  # The 12 digits lie beyond the border in some of these cases.


@pytest.mark.parametrize("digit", NEXT)
def test_other_parameters_are_no_trial_and_get_no_certificate_of_it(digit):
    for told in (-37.123, -12.456):
        study, trial, beyond = bordered(told)
        other = {"x": NEXT[digit](trial.parameters["x"])}
        point = LINE.encode(other)
        assert not np.array_equal(point, trial.point)
        assert study.feasible(other)[0] == is_certified(study, point)
        assert study.feasible(LINE.decode(np.array([1e-12 + 2 * beyond - trial.point[0] + 2e-11]))) == 0.0
        study.enqueue(other)
        assert np.array_equal(study.ask().point, point)


@pytest.mark.parametrize("kind", SAFE)
def test_parameters_of_a_certified_trial_are_certified(kind):
    """By a model, where a point spends a share of delta once."""
    space, start, most, seed = SAFE[kind]
    safe = nr.Safe(start=[start], scale=5.3, noise=0.1)
    study, rng, missed = (
        nr.Study(nr.auto(space, noise=0.1, constraints=safe), seed=seed),
        np.random.default_rng(seed),
        0,
    )
    for _ in range(9):
        trial = study.ask()
        missed += not is_certified(study, space.encode(copied(trial)))
        left = study.replica.query(lambda state: state.outputs.dual.remaining_delta)
        assert study.feasible(copied(trial)).tolist() == [1.0]
        again = study.ask(among=[copied(trial)])
        assert again.point.tobytes() == trial.point.tobytes()
        assert study.replica.query(lambda state: state.outputs.dual.remaining_delta) == left
        study.abandon(again)
        use = sum(value for value in trial.parameters.values() if not isinstance(value, str))
        study.tell(trial, use + 0.1 * rng.standard_normal(), constraints=[0.9 * use - most + 0.1 * rng.uniform(-1, 1)])
    assert missed


def played(rounds=9, seed=2, **more):
    study, rng = nr.Study(nr.auto(PAIR), seed=seed, **more), np.random.default_rng(seed)
    for _ in range(rounds):
        trial = study.ask()
        reward = -((trial.parameters["x"] - 3) ** 2) - np.log10(trial.parameters["rate"]) ** 2
        study.tell(trial, reward + 0.1 * rng.standard_normal())
    return study


def test_a_repeated_trial_is_at_the_same_point():
    """So the best trial stays sure of being the best: its own repetitions are no rivals."""
    study = played()
    best = study.best()
    assert not np.array_equal(PAIR.encode(copied(best)), best.point)
    study.enqueue(copied(best))
    for again in (study.tell(study.ask(), best.reward), study.add(copied(best), best.reward)):
        assert again.point.tobytes() == best.point.tobytes()
    assert study.certainty(best).probability > 0.9
    assert study.add({**copied(best), "x": NEXT[12](best.parameters["x"])}, 0.0).point.tobytes() != best.point.tobytes()
    probabilities = study.probabilities(among=[copied(best), {"x": 1, "rate": 1}])
    assert probabilities is None or probabilities.sum() == pytest.approx(1.0)


def test_an_explanation_takes_among_as_it_was_passed_to_ask():
    study = played(5)
    listed = [copied(study.trials[3]), {"x": 1, "rate": 1}, copied(study.trials[4])]
    trial = study.ask(among=listed)
    assert study.explain(trial, among=listed).repeated
    earlier = study.ask(among=[study.policy.domain.encode(copied(study.trials[2]))])  # As arrays, in the same way.
    assert earlier.point.tobytes() == study.trials[2].point.tobytes()


def test_a_unit_keeps_its_point_while_its_parameters_are_offered():
    study = nr.Study(nr.auto(PAIR), seed=0, sticky=True)
    first = study.ask(unit="a")
    assert study.ask(unit="a", among=[copied(first), {"x": 1, "rate": 1}]).kept == first.number
    other = {**copied(first), "x": NEXT[12](first.parameters["x"])}
    assert study.ask(unit="a", among=[other, {"x": 1, "rate": 1}]).kept is None


def test_a_context_is_copied_from_a_trial_too():
    outside = nr.Space(outside=nr.Float(0, 30))
    safe = nr.Safe(start=[{"x": 20}], slope={"x": 1.0}, noise=0.1)  # Answers count in exactly the same context.
    study = nr.Study(nr.auto(LINE, context=outside, constraints=safe), seed=0)
    trial = study.ask({"outside": 30 / 7}, event="e")
    study.tell(trial, 0.0, constraints=[-30.0])
    assert trial.context_parameters["outside"] != 30 / 7
    for seen, known in (({"outside": 30 / 7}, 1.0), (trial.context_parameters, 1.0), ({"outside": 4.28571428572}, 0.0)):
        assert study.feasible({"x": 22}, context=seen) == known
    assert study.ask(trial.context_parameters, event="e").number == trial.number
    with pytest.raises(nr.errors.TrialError, match="under another context"):
        study.ask({"outside": 4.28571428572}, event="e")


def test_places_of_a_changed_space_are_those_of_now():
    """A value beyond the end of a narrower range is at no point of the space."""
    study = nr.Study(nr.auto(PAIR, constraints=1), seed=0)
    for x in (20 / 7, 47 / 7):
        study.add(np.array([x / 7, 0.3]), 1.0, constraints=[-1.0])
    inner, outer = study.trials
    study.widen(x=nr.Float(0, 5))
    moved = study.trials[0].point
    assert study.add(copied(inner), 1.0, constraints=[-1.0]).point.tobytes() == moved.tobytes()
    assert study.add({**copied(outer), "x": 5}, 1.0, constraints=[-1.0]).point[0] == 1.0


def test_what_another_object_of_the_study_asked_is_known():
    storage = MemoryStorage()
    one, two = (nr.Study(nr.auto(PAIR), seed=2, storage=storage) for _ in range(2))
    trials = [one.ask() for _ in range(4)]
    for trial in trials:
        assert two.add(copied(trial), 0.0).point.tobytes() == trial.point.tobytes()


def test_an_observer_who_does_what_the_policy_would_is_told_so():
    trial = nr.Study(nr.auto(PAIR), seed=3).ask()
    assert not np.array_equal(PAIR.encode(copied(trial)), trial.point)
    for x, same in ((NEXT[12](trial.parameters["x"]), False), (trial.parameters["x"], True)):
        with Client(MemoryStorage()) as client:
            client.put(AT, {"policy": plain(nr.auto(PAIR)), "seed": 3})
            body = {"parameters": {**copied(trial), "x": x}, "reward": 1.0, "compare": True}
            assert client.post(f"{AT}/observations", body)[1]["would"]["same"] is same


def test_a_row_of_a_table_may_repeat_a_trial(tmp_path):
    study, path = played(3), tmp_path / "again.csv"
    earlier = list(study.trials)
    rows = [",".join(map(repr, [*trial.parameters.values(), 0.0])) for trial in earlier]
    path.write_text("\n".join([",".join([*PAIR.parameters, "reward"]), *rows]))
    for trial, again in zip(earlier, study.add_from(path), strict=True):
        assert again.point.tobytes() == trial.point.tobytes()


def test_a_call_that_was_rolled_back_leaves_no_point():
    study, undone = played(3), []

    def fail(transaction):
        undone.append(trial := transaction.ask(None, None, None))
        point = PAIR.encode(copied(trial))
        assert np.array_equal(transaction.inputs.points.of(point[None], transaction.trials)[0], trial.point)
        raise nr.errors.InvalidInput("no")

    with pytest.raises(nr.errors.InvalidInput):
        study.replica.write(fail, study._calls)
    study.add({"x": 1.0, "rate": 1.0}, 0.0)
    parameters = copied(undone[0])
    assert np.array_equal(study.add(parameters, 0.0).point, PAIR.encode(parameters))
