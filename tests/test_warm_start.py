"""Logs of decisions teach a study: `add_from` learns from what `nr.evaluate` reads, and keeps propensities."""

import json

import numpy as np
import pytest

import nilregret as nr

from .test_evaluation_logs import ADF, CSV, GITTINS, dsjson, written

RIDERS = nr.Space(age=nr.Float(0, 100), city=nr.Choice("rome", "oslo"))
LINES = "1:2:0.4 |user age:30 city=rome\n3:0.5:0.2 2 1 |user age:31 city=oslo\n"


def study(arms=3, *, names=(), **more):
    made = nr.Study(nr.auto(nr.Arms(range(arms)), context=more.pop("context", None)), seed=0, propensities=True, **more)
    for arm, name in enumerate(names):
        made.describe_arm(arm, name=name)
    return made


def learned(trials):
    return [(trial.arm, trial.reward, trial.propensity) for trial in trials]


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_text_of_vowpal_wabbit_counts_actions_from_1_and_has_costs(goal, tmp_path):
    sign = -1 if goal == "maximize" else 1
    trials = study(context=RIDERS, goal=goal).add_from(written(tmp_path, LINES))
    assert learned(trials) == [(0, sign * 2.0, 0.4), (2, sign * 0.5, 0.2)]
    assert [trial.context_parameters for trial in trials] == [{"age": 30, "city": "rome"}, {"age": 31, "city": "oslo"}]


def test_blocks_of_vowpal_wabbit(tmp_path):
    assert learned(study(2).add_from(written(tmp_path, ADF))) == [(1, 1.0, 0.25), (0, 0.0, 0.75)]


def test_actions_of_personalizer_are_arms_by_name_or_place(tmp_path):
    path = written(tmp_path, [dsjson(i, 1 + i % 2, -1, 0.8) for i in range(3)])
    context = nr.Space(tier=nr.Choice("pro", "free"))
    trials = study(2, names=["sports", "news"], context=context).add_from(path)
    assert learned(trials) == [(1, 1.0, 0.8), (0, 1.0, 0.8), (1, 1.0, 0.8)]
    assert trials[0].context_parameters == {"tier": "pro"}  # `User.tier`, within an object
    with pytest.raises(nr.errors.InvalidInput, match="'news' in column action: it must be an arm, 1 to 2, or the name"):
        study(2, context=context).add_from(path)
    unnamed = written(tmp_path, [dsjson(0, 2, -1, 0.8, tags=[None, None])])
    assert learned(study(2, context=context).add_from(unnamed)) == [(1, 1.0, 0.8)]


def test_the_log_of_gittins_and_decisions_without_a_reward(tmp_path):
    trials = study(names="abc").add_from(written(tmp_path, GITTINS))
    assert learned(trials) == [(1, 1.0, 0.25), (0, 0.0, 0.75)]


def test_tables_that_evaluate_reads(tmp_path):
    context = nr.Space(hour=nr.Float(0, 24), device=nr.Choice("mobile", "web"))
    csv = CSV.replace("b,,web", "b,4,web")
    trials = study(2, names="xy", context=context).add_from(written(tmp_path, csv))
    assert learned(trials) == [(0, 1.0, 0.5), (0, 0.0, 0.5)]
    assert trials[1].context_parameters == {"hour": 3, "device": "web"}
    nested = json.dumps({"hour": 9, "device": "web"}).replace('"', '""')
    cells = f'context,action,propensity,reward\n"{nested}",x,0.5,1\n'
    assert learned(study(2, names="xy", context=context).add_from(written(tmp_path, cells))) == [(0, 1.0, 0.5)]
    log = {"context": np.eye(2), "action": [1, 0], "propensity": [1 / 3, 2 / 3], "reward": [1, 0]}
    plain = study(2, context=nr.Box([0, 0], [1, 1])).add_from(log)
    assert learned(plain) == [(1, 1.0, 1 / 3), (0, 0.0, 2 / 3)]
    np.testing.assert_array_equal([trial.context for trial in plain], np.eye(2))
    one = study(2, context=nr.Box(0, 9)).add_from(log | {"context": [3.0, 4.0]})
    assert [trial.context.tolist() for trial in one] == [[3.0], [4.0]]


def test_an_arm_by_its_point_or_its_parameters():
    rows = [{"action": [30.0], "propensity": 0.5, "reward": 1}, {"action": 1, "propensity": 0.5, "reward": 0}]
    made = nr.Study(nr.auto(nr.Arms([10.0, 20.0, 30.0])), seed=0, propensities=True)
    assert learned(made.add_from(rows)) == [(2, 1.0, 0.5), (1, 0.0, 0.5)]
    grid = nr.Study(nr.auto(nr.Space(size=nr.Int(1, 3)).grid(3)), seed=0, propensities=True)
    assert learned(grid.add_from([{"action": {"size": 3}, "propensity": 0.5, "reward": 1}])) == [(2, 1.0, 0.5)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1:2:0.4 3:0:0.2 | a b\n", "Line 1 has 2 costs, '1:2:0.4 3:0:0.2', and one action was taken"),
        ("4:2:0.4 | a\n", "Row 1 of .* has 4 in column action: it must be an arm, 1 to 3"),
        ("1:2:1.5 | a\n", "Row 1 of .*: `propensity` is 1.5: it must lie in \\(0, 1\\].* Nothing was recorded"),
        ("1:2:0.5 | a\n1:2:0 | a\n", "Row 2 of .*: `propensity` is 0.*Often it is that of another action"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_with_its_row(text, sentence, tmp_path):
    made = study()
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        made.add_from(written(tmp_path, text))
    assert not made.trials


def test_several_costs_on_a_line_are_refused_by_evaluate_too(tmp_path):
    with pytest.raises(nr.errors.InvalidInput, match="Line 2 has 2 costs"):
        nr.evaluate(written(tmp_path, "1:2:0.4 | a\n1:2:0.4 3:0:0.2 | a b\n"), 1, reward_range=(-2, 0))


def test_a_feature_that_two_contexts_may_mean(tmp_path):
    path = written(tmp_path, "1:2:0.4 |user age:30 |item age:31\n")
    with pytest.raises(nr.errors.InvalidInput, match=r"has the features .*user.age.*item.age.* a context age"):
        study(context=nr.Space(age=nr.Float(0, 100))).add_from(path)
    named = study(context=nr.Space(**{"item.age": nr.Float(0, 100)})).add_from(path)
    assert named[0].context_parameters == {"item.age": 31}


def test_possible_actions_of_a_line_are_read(tmp_path):
    result = nr.evaluate(written(tmp_path, (LINES + "2:1:0.5 |user age:3\n") * 40), "uniform", reward_range=(-2, 0))
    assert result.rows == 120


# -- rows without a propensity ---------------------------------------------------------------------------------------


def mixed(count=60):
    rows = [{"action": i % 3, "propensity": 1 / 3, "reward": i % 2} for i in range(count)]
    return [row if i % 3 else row | {"propensity": None} for i, row in enumerate(rows)]


def test_rows_without_a_propensity_teach_and_are_named():
    made = study()
    with pytest.warns(nr.errors.NoRegretWarning, match="20 of 60 rows have no propensity. Such rows teach the policy"):
        made.add_from(mixed())
    assert len(made.trials) == 60
    with pytest.warns(nr.errors.NoRegretWarning, match="20 of 60 decisions with a reward have no propensity"):
        result = nr.evaluate(made, "uniform")
    assert result.rows == 40
    assert any("teach the reward model" in each for each in result.cautions)


def test_rows_without_a_propensity_serve_the_direct_method():
    """Action 2 is rewarded in the rows without a propensity alone: the reward model knows it."""
    rows = [{"action": 0, "propensity": 0.5, "reward": 0}, {"action": 1, "propensity": 0.5, "reward": 0}] * 50
    rows += [{"action": 2, "propensity": None, "reward": 1}] * 100
    for log in (rows, study()):
        if log is not rows:
            with pytest.warns(nr.errors.NoRegretWarning, match="100 of 200 rows"):
                log.add_from(rows)
        with pytest.warns(nr.errors.NoRegretWarning):
            result = nr.evaluate(log, 2)
        assert result.estimates["model"] > 0.9
        assert result.rows == 100


def test_a_study_without_propensities_says_nothing_of_them():
    made = nr.Study(nr.auto(nr.Arms(range(3))), seed=0)
    assert len(made.add_from([{"arm": 1, "reward": 1.0}])) == 1


# -- events, units and facts -----------------------------------------------------------------------------------------


def test_columns_of_visits_are_kept():
    made = study()
    rows = [{"arm": i % 3, "propensity": 1 / 3, "reward": 1, "unit": u, "event": f"e{i}", "facts.page": i}
            for i, u in enumerate(["anna", "ben", "anna", None, 17.0])]  # fmt: skip
    trials = made.add_from(rows)
    assert [trial.unit for trial in trials] == [0, 1, 0, None, 4]
    assert [trial.event for trial in trials] == ["e0", "e1", "e2", "e3", "e4"]
    assert trials[2].facts == {"page": 2}
    assert made.ask(unit="anna").unit == 0  # Later visits belong to the same unit.
    assert made.ask(unit="17").unit == 4


def test_an_event_is_taken_once():
    made = study()
    row = {"arm": 1, "propensity": 0.5, "reward": 1.0, "event": "e0"}
    assert made.add_from([row]) == made.add_from([row])  # Harmless.
    assert len(made.trials) == 1
    trial = made.ask(event="mine")
    made.add_from([{"arm": trial.arm, "reward": 0.5, "propensity": 0.5, "event": "mine"}])
    assert made.trials[1].reward == 0.5
    with pytest.raises(nr.errors.TrialError, match="Row 1 of `table`: Trial 0 was told already"):
        made.add_from([row | {"reward": 0.0}])
    with pytest.raises(
        nr.errors.InvalidInput, match=r"Row 2 .* the event 'click' is trial 2 already.* kinds of events"
    ):
        made.add_from([row | {"event": "click"}, row | {"event": "click", "arm": 2}])
    assert len(made.trials) == 2


# -- a study moves with its log --------------------------------------------------------------------------------------


def lived(rounds=120, **more):
    """Returns a study with visitors, own ids, facts and metrics, and arms that keep their unit."""
    context = nr.Space(hour=nr.Float(0, 24), device=nr.Choice("phone", "desk"))
    policy = nr.auto(nr.Arms(range(3)), context=context, reward="bernoulli").using(explore=nr.slots.Uniform(0.6))
    made = nr.Study(policy, seed=1, propensities=True, **more)
    rng = np.random.default_rng(0)
    for i in range(rounds):
        seen = {"hour": float(i % 24), "device": ["phone", "desk"][i % 2]}
        trial = made.ask(seen, unit=f"user-{rng.integers(40)}", event=f"visit {i}", facts={"page": f"p{i % 4}"})
        made.tell(trial, float(rng.random() < 0.3 + 0.2 * trial.arm), metrics={"seconds": float(i)})
    return made


@pytest.mark.filterwarnings("ignore:(Only|The estimate rests)")
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("sticky", [False, True])
def test_a_study_moves_with_its_log(ending, sticky, tmp_path):
    """Another policy, one more arm and a wider context: nothing of the log is lost, and it evaluates as before."""
    old = lived(sticky=sticky)
    path = old.export(tmp_path / f"log.{ending}")
    context = nr.Space(hour=nr.Float(0, 48), device=nr.Choice("phone", "desk", "watch"))
    policy = nr.gp_ts(nr.Arms(range(3)), nr.SquaredExponential(1.0), noise=0.5, v=1.0, context=context)
    new = nr.Study(policy, seed=2, propensities=True, sticky=sticky)
    new.add_arms([3.0])
    new.ask({"hour": 1, "device": "watch"}, unit="before")  # Numbers are others than in the old study.
    new.add_from(path)
    for trial, was in zip(new.trials[1:], old.trials, strict=True):
        assert (trial.arm, trial.reward, trial.propensity, trial.metrics, trial.event, trial.facts) == (
            was.arm, was.reward, was.propensity, was.metrics, was.event, was.facts)  # fmt: skip
        assert trial.context_parameters == was.context_parameters
        assert trial.unit == was.unit + 1
        assert trial.kept == (None if was.kept is None else was.kept + 1)
    assert any(trial.kept is not None for trial in old.trials) == sticky
    moved = nr.Study(old.policy, seed=3, propensities=True)
    moved.add_from(path)
    for target in ("uniform", 2, {0: 0.2, 1: 0.8}):
        before, after = (nr.evaluate(each, target, floor=0.2) for each in (old, moved))
        assert before.estimates == pytest.approx(after.estimates, rel=1e-12)
        assert (before.value, before.lower, before.upper) == pytest.approx((after.value, after.lower, after.upper))
        assert before.gain == pytest.approx(after.gain)
        assert before.rows == after.rows == 120


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_slates_and_unknown_options_move_too(ending, tmp_path):
    context = nr.Space(device=nr.Choice("phone", "desk", unknown=True))
    old = study(5, context=context)
    old.ask({"device": "desk"})  # It stays pending, so the numbers of the others change.
    for i in range(4):
        slate = old.ask({"device": ["watch", None][i % 2]}, count=2, slate=True, unit=f"u{i % 2}", event=f"v{i}")
        old.tell_slate(slate[0], [1, 0])
    new = study(5, context=context)
    for trial, was in zip(new.add_from(old.export(tmp_path / f"log.{ending}")), old.trials[1:], strict=True):
        assert (trial.arm, trial.slate, trial.place, trial.unit) == (was.arm, was.slate - 1, was.place, was.unit - 1)
        assert (trial.event, trial.propensity, trial.context_parameters) == (
            was.event, was.propensity, was.context_parameters)  # fmt: skip
