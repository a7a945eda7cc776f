"""A space that changes: `Study.widen`, and what becomes of the trials, the fits, the queue and the policy."""

import json
import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import nilregret as nr
from nilregret.algorithms.schema import parameter, table_of
from nilregret.client import Client as Remote
from nilregret.domains.domain import changed_space, gone_options, placed
from nilregret.plots.along import seen_along
from nilregret.policy.respaced import on_space
from nilregret.serialize import from_plain
from nilregret.serve.auth.tokens import needed
from nilregret.storage import MemoryStorage
from nilregret.study.direction import state_after
from nilregret.study.function import axes
from nilregret.study.quantities import quantity
from nilregret.testing.serving import Serving

from .service import Client, plain
from .test_operate import data, run

SPACE = nr.Space(rate=nr.Float(0.0, 1.0), kind=nr.Choice("sgd", "adam"))
WIDER = {"rate": nr.Float(0.0, 4.0), "kind": nr.Choice("adam", "lion")}
SAFE = nr.Safe(start=[{"rate": 0.1, "kind": "sgd"}], scale=1.0, noise=0.1)
POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.nightly)


def loss(parameters):
    value = (parameters["rate"] - 2.5) ** 2 + (parameters["kind"] != "lion") + parameters.get("momentum", 0.0)
    return value + (parameters.get("depth", 3) - 3) ** 2


def play(study, rounds):
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, loss(trial.parameters), constraints=[-1.0] if study.policy.constraint_count else None)


def tuned(rounds=12, policy=None, **given):
    study = nr.Study(policy or nr.auto(SPACE), goal="minimize", **given)
    play(study, rounds)
    return study


@pytest.fixture(params=["memory", "sqlite", POSTGRESQL])
def url(request, places):
    return places(request.param)()


# -- what a change does ----------------------------------------------------------------------------------------------


def test_a_study_goes_on_in_a_wider_space_with_all_its_trials(url):
    study = tuned(storage=url)
    before = study.trials[0]
    space = study.widen(**WIDER, momentum=nr.Float(0.0, 1.0), was={"momentum": 0.0})
    assert list(space.parameters) == ["rate", "kind", "momentum"]
    assert study.policy.domain == space
    assert next(trial.parameters for trial in study.trials) == before.parameters
    assert study.trials[0].point[0] == pytest.approx(before.point[0] / 4)
    assert study.trials[0].point[-1] == 0.0
    play(study, 10)
    later = [trial.parameters for trial in study.trials[12:]]
    assert all(each["kind"] in ("adam", "lion") and 0.0 <= each["rate"] <= 4.0 for each in later)
    assert max(each["rate"] for each in later) > 1.0
    assert study.best().parameters["kind"] == "lion"
    assert study.fits[0].trial < 12 < study.fits[-1].trial
    (change,) = study.changes
    assert (change.kind, change.order, change.body["was"]) == ("widened", 25, {"momentum": [0.0]})


def test_every_process_decides_in_the_space_of_now_and_explains_in_that_of_the_trial(url):
    study = tuned(storage=url, seed=3)
    other, pending = nr.Study.open(storage=url), study.ask()
    study.widen(**WIDER)
    other.tell(pending, loss(pending.parameters))
    play(other, 4)
    again = nr.Study.open(storage=url)
    assert list(again.trials) == list(study.trials) == list(other.trials)
    for number in range(17):
        assert again.explain(number).repeated
    assert again.ask().parameters == nr.Study.open(storage=url).trials[-1].parameters
    replica = again.replica
    made = state_after(replica.policy, "minimize", replica.trials, seed=3).settled()
    points = np.random.default_rng(0).uniform(size=(5, 3))
    points = replica.policy.domain.snap(points)
    np.testing.assert_array_equal(made.envelope(points, None).mean, replica.state.settled().envelope(points, None).mean)


def test_the_next_decision_is_that_of_a_study_to_which_all_trials_were_added():
    study = tuned(12, nr.gp_ucb(SPACE, nr.kernel_for(SPACE, lengthscale=0.3), noise=0.1))
    space = study.widen(rate=nr.Float(-1.0, 3.0))
    fresh = nr.Study(on_space(study.replica.made, space), goal="minimize")
    for trial in study.trials:
        fresh.add(trial.parameters, trial.reward)
    grid = [{"rate": rate, "kind": kind} for rate in np.linspace(-1, 3, 9).tolist() for kind in ("sgd", "adam")]
    np.testing.assert_allclose(study.predict(grid), fresh.predict(grid), rtol=1e-6, atol=1e-9)
    assert study.ask().parameters == fresh.ask().parameters


def test_trials_outside_of_a_narrower_space_teach_and_are_neither_best_nor_asked_again():
    study = nr.Study(nr.auto(SPACE), goal="minimize", seed=1)
    for rate in np.linspace(0, 1, 12).tolist():
        study.add({"rate": rate, "kind": "sgd"}, (rate - 0.2) ** 2)
    study.add({"rate": 0.2, "kind": "adam"}, -1.0)
    assert study.best().parameters["kind"] == "adam"
    study.widen(rate=nr.Float(0.5, 1.0), kind=nr.Choice("sgd"))
    assert study.best().parameters["rate"] == pytest.approx(6 / 11)
    assert study.trials[0].point[0] == pytest.approx(-1.0)
    for _ in range(12):
        trial = study.ask()
        assert 0.5 <= trial.parameters["rate"] <= 1.0
        assert trial.parameters["kind"] == "sgd"
        assert ((trial.point >= 0.0) & (trial.point <= 1.0)).all()
        study.tell(trial, (trial.parameters["rate"] - 0.2) ** 2)
    assert study.best().parameters["rate"] < 0.52
    assert all(study.explain(number).repeated for number in range(13, 25))


def test_a_study_whose_trials_are_all_outside_has_no_best_one():
    study = tuned(5)
    study.widen(rate=nr.Float(2.0, 3.0))
    with pytest.raises(nr.errors.TrialError, match="No answered trial is in the space"):
        study.best()
    assert 2.0 <= study.ask().parameters["rate"] <= 3.0


def test_a_space_may_be_changed_back_and_the_points_are_those_of_before():
    study = tuned(6)
    points = [trial.point.tolist() for trial in study.trials]
    study.widen(rate=nr.Float(0.0, 9.0))
    play(study, 2)
    assert study.widen(rate=nr.Float(0.0, 1.0)) == SPACE
    assert [trial.point.tolist() for trial in study.trials[:6]] == points
    count = len(study.changes)
    assert study.widen(rate=nr.Float(0.0, 1.0)) == SPACE
    assert len(study.changes) == count


def test_a_choice_may_get_options_and_lose_them_and_the_space_still_changes():
    study = nr.Study(nr.auto(nr.Space(rate=nr.Float(0.0, 1.0), kind=nr.Choice("a", "b"), depth=nr.Int(1, 9))))
    play(study, 2)
    study.widen(kind=nr.Choice("a", "b", "c"), depth=nr.Int(2, 5))
    play(study, 1)
    study.widen(kind=nr.Choice("x", "y"))
    study.widen(rate=nr.Float(-1.0, 1.0))
    assert len(study.changes) == 3
    assert study.ask().parameters["kind"] in {"x", "y"}


def test_a_trial_is_told_at_its_place_in_either_space():
    study = tuned(3)
    old = study.ask()
    study.widen(**WIDER)
    told = study.tell(study.trials[3], 0.5)
    assert told.number == 3
    assert study.tell(old, 0.5) == told == study.trials[3]
    study.tell(old, 0.25, revise=True)
    assert study.trials[3].reward == 0.25


def test_scales_and_steps_change_and_numbers_become_whole():
    study = nr.Study(nr.auto(nr.Space(rate=nr.Float(0.1, 1.0), depth=nr.Float(1, 5))), goal="minimize")
    for rate, depth in ((0.1, 1.5), (0.35, 2.0), (1.0, 5.0)):
        study.add({"rate": rate, "depth": depth}, rate + depth)
    study.widen(rate=nr.Float(0.01, 1.0, log=True), depth=nr.Int(1, 9))
    assert [round(float(trial.point[0]), 3) for trial in study.trials] == [0.5, 0.772, 1.0]
    assert [float(trial.point[1]) for trial in study.trials] == [0.0625, 0.125, 0.5]
    assert study.best().parameters == {"rate": 0.35, "depth": 2.0}  # 1.5 is no whole number
    study.widen(rate=nr.Float(0.0, 1.0, step=0.25))
    assert study.ask().parameters["rate"] in (0.0, 0.25, 0.5, 0.75, 1.0)


def test_options_that_are_gone_lie_apart_from_all_that_are_left_and_from_each_other():
    before, now = nr.Space(kind=nr.Choice(*"abcdef")), nr.Space(kind=nr.Choice("b", "e"))
    gone = gone_options(now, [before])
    assert gone == {"kind": ["a", "c", "d", "f"]}
    points = [placed(now, {"kind": kind}, gone, {}) for kind in "beacdf"]
    distances = np.array([[np.linalg.norm(a - b) for b in points] for a in points])
    assert (distances[np.triu_indices(6, 1)] > 1.0 - 1e-12).all()
    assert distances[:2, 2] == pytest.approx(1.0)


def test_conditional_parameters_keep_their_conditions():
    space = nr.Space(kind=nr.Choice("sgd", "adam"), momentum=nr.when("kind", "sgd", nr.Float(0.0, 1.0)))
    study = nr.Study(nr.auto(space), goal="minimize")
    study.add({"kind": "adam"}, 1.0)
    study.add({"kind": "sgd", "momentum": 0.5}, 0.5)
    new = study.widen(
        kind=nr.Choice("sgd", "adam", "lion"), momentum=nr.Float(0.0, 2.0),
        decay=nr.when("kind", "lion", nr.Float(0.0, 1.0)),
    )  # fmt: skip
    assert new.declared["momentum"] == nr.when("kind", "sgd", nr.Float(0.0, 2.0))
    assert study.trials[1].point[3] == 0.25
    assert study.trials[0].point[3] == 0.5 == study.trials[1].point[4]
    asked = [study.ask().parameters for _ in range(8)]
    assert all(("decay" in each) == (each["kind"] == "lion") for each in asked)


def test_limits_stay_and_are_those_of_the_new_ranges():
    space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).where("a + b <= 1.2")
    study = nr.Study(nr.auto(space), goal="minimize")
    for _ in range(4):
        trial = study.ask()
        study.tell(trial, -trial.parameters["a"])
    new = study.widen(a=nr.Float(0, 3))
    assert new.limits.texts == space.limits.texts
    for _ in range(8):
        trial = study.ask()
        assert trial.parameters["a"] + trial.parameters["b"] <= 1.2 + 1e-9
        study.tell(trial, -trial.parameters["a"])
    assert study.best().parameters["a"] > 1.0


def test_points_that_wait_are_tried_in_the_new_space_or_not_at_all(url):
    study = nr.Study(nr.auto(SPACE), goal="minimize", storage=url)
    study.enqueue([{"rate": 0.5, "kind": "adam"}, {"rate": 0.25}, {"rate": 0.1, "kind": "sgd"}, {"kind": "sgd"}])
    study.widen(**WIDER, momentum=nr.Float(0.0, 1.0), was={"momentum": 0.0})
    assert [each.named for each in study.enqueued] == [
        {"rate": 0.5, "kind": "adam", "momentum": 0.0}, {"rate": 0.25},
    ]  # fmt: skip
    with pytest.warns(nr.errors.NoRegretWarning, match="outside of the changed space"):
        trials = study.ask(count=3)
    assert trials[0].parameters == {"rate": 0.5, "kind": "adam", "momentum": 0.0}
    assert trials[1].parameters["rate"] == 0.25
    assert not trials[2].enqueued
    again = nr.Study.open(storage=url)
    assert [passed.reason for passed in again.replica.queue.passed] == ["it is outside of the changed space"] * 2
    assert all(again.explain(number).repeated for number in range(2))


def test_a_fit_that_was_made_for_the_old_space_does_not_come_into_force():
    study = nr.Study(nr.auto(SPACE), goal="minimize", fits="pending")
    play(study, 9)
    (job,) = study.replica.fit_jobs()
    study.widen(rate=nr.Float(0.0, 8.0))
    study.replica.offer(job, job())
    assert study.ask().fits == ()
    study.tell(9, 1.0)
    assert study.fit_pending() == 1
    assert len(study.ask().fits) == 1


@pytest.mark.parametrize(
    "policy",
    [
        nr.auto(SPACE, constraints=1),
        nr.auto(SPACE, parallel=3),
        nr.algorithms.lb_gp_ucb(SPACE, nr.kernel_for(SPACE, lengthscale=0.3), noise=3.0, norm_bound=1.0),
        nr.gp_ts(SPACE, nr.kernel_for(SPACE, lengthscale=0.3), noise=3.0, norm_bound=1.0),
        nr.auto(SPACE).using(memory=nr.slots.SlidingWindow(30)),
    ],
)
def test_policies_of_all_kinds_go_on_when_trials_lie_outside(policy):
    study = tuned(12, policy)
    study.widen(rate=nr.Float(0.4, 2.0), kind=nr.Choice("adam", "lion"))
    study.ask()
    play(study, 3)
    assert all(0.4 <= trial.parameters["rate"] <= 2.0 for trial in study.trials[12:])
    assert study.trials[study.best().number].parameters["kind"] != "sgd"
    assert all(study.explain(number).repeated for number in (7, 11, 12, 14, 15))  # on both sides of the change


@pytest.mark.parametrize("low", [0.0, 0.9])
@pytest.mark.parametrize(
    "given",
    [{"constraints": 1}, {"constraints": 1, "context": nr.Space(hour=nr.Float(0.0, 24.0))},
     {"objectives": 2}, {"objectives": 2, "constraints": 1}],
)  # fmt: skip
def test_a_study_of_several_outputs_goes_on_with_and_without_pending_trials(given, low):
    study = nr.Study(nr.auto(nr.Space(rate=nr.Float(0.5, 1.0)), parallel=2, **given), seed=1)
    context = {"context": {"hour": 9.0}} if "context" in given else {}
    for _ in range(3):
        constraints = [-1.0] if "constraints" in given else None
        study.tell(study.ask(**context), [1.0, 2.0] if "objectives" in given else 1.0, constraints=constraints)
    study.widen(rate=nr.Float(low, 2.0))
    for _ in range(2):  # The first decision has no pending points.
        assert low <= study.ask(**context).parameters["rate"] <= 2.0


def test_predictions_and_pictures_are_those_of_the_new_space():
    study = tuned(12)
    study.widen(**WIDER, momentum=nr.Float(0.0, 1.0), was={"momentum": 0.0})
    play(study, 3)
    mean, _ = study.predict(study.trials[-1].parameters)
    assert mean[0] == pytest.approx(study.trials[-1].reward, abs=1.0)
    assert len(study.to_pandas()) == 15
    assert (
        len(seen_along(study, quantity(study, None).function, study.best(), axes(study.policy.domain)[1:2]).trials) > 1
    )
    study.widen(rate=nr.Float(0.5, 4.0))
    inside = [trial for trial in study.trials if trial.parameters["rate"] >= 0.5 and trial.parameters["kind"] != "sgd"]
    found = seen_along(study, quantity(study, None).function, inside[0], axes(study.policy.domain)[:1])
    assert [trial.number for trial in found.trials] == [trial.number for trial in inside]
    assert 0 < len(inside) < 15


@pytest.mark.nightly
@pytest.mark.parametrize("draw", ["history", "importance", "slices", "parallel", "contour", "timeline"])
def test_every_picture_of_a_changed_space_is_drawn(draw):
    study = tuned(12)
    study.widen(**WIDER, momentum=nr.Float(0.0, 1.0), was={"momentum": 0.0})
    play(study, 6)
    assert getattr(nr.plots, draw)(study) is not None
    study.widen(rate=nr.Float(0.5, 4.0))
    assert getattr(nr.plots, draw)(study) is not None


# -- policies --------------------------------------------------------------------------------------------------------

NEW = changed_space(SPACE, WIDER | {"depth": nr.Int(1, 4), "kind": nr.Choice("adam", "sgd", "lion")})
FINITE = nr.Space(kind=nr.Choice("a", "b"), depth=nr.Int(1, 4))


def ucb(space, **more):
    return nr.gp_ucb(space, nr.SquaredExponential(0.2), noise=0.1, **more)


@pytest.mark.parametrize(
    "make",
    [
        nr.auto,
        lambda space: nr.auto(space, constraints=2),
        lambda space: nr.auto(space, context=nr.Space(hour=nr.Float(0, 24), day=nr.Choice("a", "b"))),
        ucb,
        lambda space: nr.gp_ts(space, nr.kernel_for(space, lengthscale=0.2), noise=0.1, norm_bound=1.0),
        lambda space: nr.igp_ucb(space, nr.Matern(2.5), noise=0.1, norm_bound=1.0, information_gain="rate"),
        lambda space: nr.expected_improvement(space, nr.kernel_for(space, lengthscale=0.2), noise=0.1),
    ],
)
def test_a_policy_is_the_one_that_is_made_on_the_new_space(make):
    assert on_space(make(SPACE), NEW) == make(NEW)


def test_bounds_of_finitely_many_points_count_those_of_the_new_space():
    new = changed_space(FINITE, {"depth": nr.Int(1, 9)})
    assert on_space(ucb(FINITE), new) == ucb(new)
    with pytest.raises(nr.NoRegretError, match="infinitely many"):
        nr.Study(ucb(FINITE)).widen(depth=nr.Float(1, 4))


def test_constants_that_were_given_stay():
    policy = ucb(SPACE, a=1.0, b=2.0)
    assert (on_space(policy, NEW).confidence.log_a, on_space(policy, NEW).confidence.b) == (0.0, 2.0)


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "Nothing was given"),
        ({"rate": None}, "cannot be taken out"),
        ({"rate": (0, 1)}, "must be a Float"),
        ({"rat": nr.Float(0, 1)}, "`rat` is new to this study, which has rate, kind"),
        ({"rat": 3}, "Did you mean 'rate'"),
        ({"rate": nr.Choice("a", "b")}, "cannot become Choice"),
        ({"kind": nr.Float(0, 1)}, "cannot become Float"),
        ({"rate": nr.when("kind", "sgd", nr.Float(0, 1))}, "its conditions stay"),
        ({"rate": nr.Float(0.5, 0.5)}, "is one value"),
        ({"rate": nr.Float(0.1, 1.0, log=True)}, "has no logarithm"),
        ({"momentum": nr.Float(0, 1), "was": {"momentum": 2.0}}, "`was` of parameter `momentum`"),
        ({"momentum": nr.Float(0, 1), "was": {"nesterov": 2.0}}, "the new ones are momentum"),
        ({"rate": nr.Float(0, 2), "was": {"rate": 2.0}}, "none is new"),
        ({"rate": nr.Float(0, 2), "was": 3}, "`was` is 3"),
        ({"kind": nr.Choice("sgd", math.sqrt)}, "by its name only"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_nothing_recorded(change, message):
    study = nr.Study(nr.auto(SPACE))
    study.add({"rate": 0.0, "kind": "sgd"}, 1.0)
    study.add({"rate": 1.0, "kind": "sgd"}, 1.0)
    with pytest.raises(nr.NoRegretError, match=message):
        study.widen(**change)
    assert study.changes == ()
    assert study.policy.domain == SPACE


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (nr.auto(nr.Box(0, 1)), "Only a study of a `Space`"),
        (nr.auto(SPACE.grid(3)), "add_arms"),
        (nr.gp_ucb(SPACE, nr.Matern(2.5, [0.1, 0.2, 0.2]), noise=0.1), "names columns"),
        (nr.auto(SPACE).using(kernel=nr.kernel_for(SPACE, choices="overlap")), "names columns"),
        (nr.auto(SPACE, noise=0.1, constraints=SAFE), "Safe"),
        (nr.auto(SPACE, like=[{"rate": i / 9, "kind": "sgd", "reward": i} for i in range(10)]), "like="),
    ],
)
def test_a_policy_that_belongs_to_its_domain_is_refused(policy, message):
    study = nr.Study(policy)
    with pytest.raises(nr.NoRegretError, match=message):
        study.widen(kind=nr.Choice("adam", "sgd", "lion"))
    assert study.changes == ()


def test_a_limit_that_does_not_fit_the_new_space_is_refused():
    study = nr.Study(nr.auto(SPACE.where("kind != 'sgd' or rate <= 0.5")))
    with pytest.raises(nr.NoRegretError, match="sgd"):
        study.widen(kind=nr.Choice("adam", "lion"))
    assert study.changes == ()


# -- the same study with a changed program ---------------------------------------------------------------------------


def objective(rate, kind):
    return loss({"rate": rate, "kind": kind})


def test_minimize_names_the_way_into_a_changed_space_and_goes_on_there(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    new = nr.Space(**WIDER)
    given = {"storage": url, "name": "a", "progress": False}
    nr.minimize(objective, SPACE, trials=6, **given)
    with pytest.raises(nr.NoRegretError, match=r"domain\.rate\.high \(1\.0 then, 4\.0 now\).*widen"):
        nr.minimize(objective, new, trials=8, **given)
    with pytest.raises(nr.NoRegretError, match="widen"):
        nr.Study(nr.auto(new), goal="minimize", storage=url, name="a")
    nr.Study.open(storage=url, name="a").widen(**WIDER)
    result = nr.minimize(objective, new, trials=10, **given)
    assert len(result.study.trials) == 10
    assert result.study.policy.domain == new
    with pytest.raises(nr.NoRegretError, match=r"domain\.rate\.high \(4\.0 then, 1\.0 now\)"):
        nr.minimize(objective, SPACE, trials=12, **given)
    study = nr.Study(nr.auto(SPACE, budget=6), goal="minimize", storage=url, name="a")
    assert study.policy.domain == new


# -- damage and kills ------------------------------------------------------------------------------------------------

DIES = (
    "import os, signal, sys; import nilregret as nr; "
    "study = nr.Study.open(storage=sys.argv[1]); "
    "write = type(study.replica)._save; "
    "type(study.replica)._save = lambda self, *rest: (write(self, *rest), os.kill(os.getpid(), signal.SIGKILL)); "
    "study.widen(rate=nr.Float(0, 4))"
)


def test_a_process_that_is_killed_within_the_change_leaves_the_space_as_it_was(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    tuned(3, storage=url).close()
    done = subprocess.run([sys.executable, "-c", DIES, url], cwd=Path(__file__).parents[1], check=False)
    assert done.returncode < 0
    study = nr.Study.open(storage=url)
    assert study.policy.domain == SPACE
    assert study.changes == ()
    study.widen(rate=nr.Float(0, 4))
    play(study, 1)


def edited(url, edit):
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        ((text,),) = connection.execute("SELECT arms FROM arms").fetchall()
        body = json.loads(text)
        connection.execute("UPDATE arms SET arms = ?", [json.dumps(edit(body) or body)])


@pytest.mark.parametrize(
    "edit",
    [
        lambda body: body.update(was={"rate": [0.0]}),
        lambda body: body.update(was={"momentum": [math.inf]}),
        lambda body: body.update(was={"momentum": [0.0, 1.0]}),
        lambda body: body.update(space=body["before"] | {"parameters": []}),
        lambda body: body.update(before=body["space"]),
        lambda body: body.update(space={"type": "Box", "lower": [0.0], "upper": [1.0]}),
        lambda body: body.pop("was") and None,
    ],
)
def test_a_damaged_change_is_refused(edit, tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = tuned(3, storage=url)
    study.widen(rate=nr.Float(0, 4), momentum=nr.Float(0, 1), was={"momentum": 0.5})
    study.close()
    edited(url, edit)
    with pytest.raises(nr.errors.StorageError, match="damaged"):
        nr.Study.open(storage=url)


def test_a_trial_that_is_not_of_the_space_of_its_time_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = tuned(3, storage=url)
    study.widen(rate=nr.Float(0, 4), momentum=nr.Float(0, 1), was={"momentum": 0.5})
    play(study, 1)
    study.close()
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE trials SET point = '[0.5, 0.7071067811865476, 0.0, 0.0]' WHERE number = 1")
    with pytest.raises(nr.errors.StorageError, match="Trial 1"):
        nr.Study.open(storage=url)


# -- over HTTP and in a shell ----------------------------------------------------------------------------------------

TABLES = {
    "rate": {"type": "float", "low": 0.0, "high": 4.0},
    "kind": {"type": "choice", "options": ["adam", "lion"]},
    "momentum": {"type": "float", "low": 0.0, "high": 1.0},
}
AT = "/v1/studies/oven"


def test_the_client_changes_a_space_as_a_study_does():
    with Serving() as service:
        study = Remote(service.url).create("oven", nr.auto(SPACE), goal="minimize")
        for _ in range(4):
            decision = study.ask()
            study.tell(decision, loss(decision.parameters))
        pending = study.ask()
        given = {"momentum": nr.Float(0.0, 1.0), "was": {"momentum": 0.0}, **WIDER}
        space = study.widen(**given, key="one")
        assert space == changed_space(SPACE, {**WIDER, "momentum": nr.Float(0.0, 1.0)})
        assert study.widen(rate=nr.Float(0.0, 5.0)).parameters["rate"].high == 5.0
        assert study.widen(**given, key="one").parameters["rate"].high == 5.0  # the same request again
        study.tell(pending, 1.0)
        assert set(study.ask().parameters) == {"rate", "kind", "momentum"}
        again = Remote(service.url).create("oven", nr.auto(SPACE), goal="minimize")
        assert again.widen(rate=nr.Float(0.0, 5.0)).parameters["rate"].high == 5.0
        with pytest.raises(nr.NoRegretError, match="`nesterov` is new"):
            study.widen(nesterov=nr.Choice(True, False))
        with pytest.raises(nr.NoRegretError, match="columns"):
            study.widen(kind=nr.Choice(*range(5000)))


def test_a_changed_space_over_http():
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(nr.auto(SPACE)), "seed": 3})
        client.post(f"{AT}/decisions", {})
        body = {"parameters": TABLES, "was": {"momentum": 0}}
        status, said = client.post(f"{AT}/widen", body)
        new = {**WIDER, "momentum": nr.Float(0.0, 1.0)}
        assert (status, from_plain(said["space"])) == (200, changed_space(SPACE, new))
        assert client.get(AT)[1]["policy"]["domain"] == said["space"]
        assert client.put(AT, {"policy": plain(nr.auto(SPACE)), "seed": 3})[0] == 200
        assert client.put(AT, {"policy": plain(nr.auto(from_plain(said["space"]))), "seed": 3})[0] == 200
        assert client.post(f"{AT}/widen", body)[1] == said
        events = client.get(f"{AT}/events")[1]["events"]
        assert [each["kind"] for each in events] == ["asked", "widened"]
        assert events[1]["change"]["space"] == said["space"]
        for wrong in ({}, {"rate": {"type": "float"}}, {"rate": 3}, {"kind": {"type": "int", "low": 1, "high": 2}}):
            status, said = client.post(f"{AT}/widen", {"parameters": wrong})
            assert (status, said["error"]["field"].startswith("parameters")) == (422, True)
    assert needed("POST", f"{AT}/widen") == "admin"


def test_a_space_is_changed_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tuned(3, storage="sqlite:///a.db").close()
    place = ("a.db", "study")
    assert "kind: Choice(options=('adam', 'lion'))" in run(
        "widen", *place, json.dumps(TABLES), "--was", '{"momentum": 0.0}'
    )
    assert set(nr.Study.open(storage="sqlite:///a.db").ask().parameters) == set(TABLES)
    assert data("widen", *place, json.dumps(TABLES))["type"] == "Space"
    for wrong in ("[1]", '{"rate": 3}', '{"rate": {"type": "float", "low": 3}}', '{"x": {"type": "float"}}'):
        run("widen", *place, wrong, code=1)


def test_a_table_describes_a_parameter_as_a_parameter_is_read():
    declared = [
        nr.Float(0.1, 1.0, log=True), nr.Float(0.0, 1.0, step=0.1), nr.Int(1, 9, step=2), nr.Choice("a", "b", None),
        nr.when("a", [1, 2], nr.when("b", "x", nr.Int(1, 4))),
    ]  # fmt: skip
    assert [parameter(table_of(each)) for each in declared] == declared
