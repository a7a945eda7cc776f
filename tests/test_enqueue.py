"""Points to try first: `Study.enqueue`, and what becomes of them."""

import math
import sqlite3
import subprocess
import sys
import threading
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nilregret as nr
from nilregret.client import Client as Remote
from nilregret.serve.auth.tokens import needed
from nilregret.storage import MemoryStorage
from nilregret.testing.serving import Serving

from .service import Client, plain
from .test_operate import data, run

SPACE = nr.Space(
    rate=nr.Float(1e-4, 1.0, log=True), depth=nr.Int(1, 8), kind=nr.Choice("sgd", "adam"),
    momentum=nr.when("kind", "sgd", nr.Float(0.0, 1.0)),
)  # fmt: skip
WHOLE = {"rate": 0.01, "depth": 3, "kind": "adam"}
BOX = nr.Box([0.0, -1.0], [1.0, 1.0])
ARMS = nr.Arms.grid(0, 1, 11)
UCB = nr.gp_ucb(ARMS, nr.Matern(2.5, 0.3), noise=0.1)
POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.nightly)


def loss(parameters):
    return (math.log10(parameters["rate"]) + 2.0) ** 2 + 0.1 * (parameters["depth"] - 3) ** 2


def play(study, rounds, context=None):
    for _ in range(rounds):
        trial = study.ask(context)
        value = loss(trial.parameters) if trial.parameters else float(np.sin(5 * trial.point[0]))
        study.tell(trial, value, constraints=[-1.0] if study.policy.constraint_count else None)


@pytest.fixture(params=["memory", "sqlite", POSTGRESQL])
def url(request, places):
    return places(request.param)()


def test_each_point_is_tried_once_in_order_and_counts_as_a_trial(url):
    study = nr.Study(nr.auto(SPACE), storage=url, goal="minimize")
    entries = study.enqueue([WHOLE, {"depth": 2}])
    assert [(entry.number, entry.named, entry.whole) for entry in entries] == [
        (0, WHOLE, True),
        (1, {"depth": 2}, False),
    ]
    assert study.enqueued == entries
    first, second, third = study.ask(count=3)
    assert (first.number, first.parameters, first.enqueued) == (0, WHOLE, True)
    assert (second.number, second.parameters["depth"], second.enqueued) == (1, 2, True)
    assert not third.enqueued
    assert study.enqueued == []
    assert "enqueued" in repr(first)
    play(study, 1)
    assert [each.number for each in study.enqueue({"depth": 5})] == [2]
    again = nr.Study.open(storage=url)
    assert [each.named for each in again.enqueued] == [{"depth": 5}]
    assert again.ask().parameters["depth"] == 5
    assert study.enqueued == []
    assert list(study.trials) == list(again.trials)
    assert [trial.enqueued for trial in study.trials] == [True, True, False, False, True]
    kinds = [(each.kind, each.body.get("trial")) for each in study.changes]
    assert kinds == [("enqueued", None), ("taken", 0), ("taken", 1), ("enqueued", None), ("taken", 4)]


def test_a_box_takes_points_and_arms_take_numbers_or_points():
    study = nr.Study(nr.auto(BOX))
    study.enqueue([[0.1, 0.2], np.array([0.3, -0.4])])
    study.enqueue(np.array([[0.5, 0.5]]))
    study.enqueue([0.7, 0.7])
    assert [trial.point.tolist() for trial in study.ask(count=4)] == [[0.1, 0.2], [0.3, -0.4], [0.5, 0.5], [0.7, 0.7]]
    study = nr.Study(UCB)
    study.enqueue([3, 9])
    study.enqueue(np.int64(4))
    study.enqueue([0.5])
    assert [each.named for each in study.enqueued] == [3, 9, 4, 5]
    assert [trial.arm for trial in study.ask(count=4)] == [3, 9, 4, 5]
    study = nr.Study(nr.auto(SPACE))
    study.enqueue(pd.DataFrame([WHOLE, WHOLE | {"depth": 5}]))
    assert [trial.parameters["depth"] for trial in study.ask(count=2)] == [3, 5]
    study = nr.Study(nr.auto(nr.Box(0, 1)))
    study.enqueue([0.25, 0.75])
    assert [trial.point.tolist() for trial in study.ask(count=2)] == [[0.25], [0.75]]


def test_the_policy_chooses_what_is_not_named_as_best_it_can():
    space = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1), z=nr.Float(0, 1))
    study = nr.Study(nr.gp_ucb(space, nr.Matern(2.5, 0.4), noise=0.01), goal="minimize")
    for x, y, z in np.random.default_rng(0).random((15, 3)):
        study.add({"x": x, "y": y, "z": z}, (x - 0.3) ** 2 + (y - 0.8) ** 2 + z)
    study.enqueue({"x": 0.9})
    trial = study.ask()
    assert trial.parameters["x"] == 0.9
    others = np.random.default_rng(1).random((4096, 3))
    others[:, 0] = 0.9
    lower = study.bounds(np.vstack([trial.point, others]))[0]
    assert lower[0] <= lower[1:].min() + 1e-3 * np.ptp(lower)


def test_on_named_arms_the_policy_chooses_among_those_that_fit():
    arms = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b")).grid(5)
    study = nr.Study(nr.gp_ucb(arms, nr.Matern(2.5, 0.5), noise=0.1))
    study.add({"x": 0.75, "kind": "b"}, 5.0)
    study.enqueue([{"kind": "b"}, {"x": 0.25, "kind": "a"}])
    first, second = study.ask(count=2)
    assert first.parameters["kind"] == "b"
    assert second.parameters == {"x": 0.25, "kind": "a"}
    assert study.explain(first).repeated


def test_a_conditional_parameter_brings_its_condition_along():
    study = nr.Study(nr.auto(SPACE))
    study.enqueue({"momentum": 0.5})
    trial = study.ask()
    assert (trial.parameters["kind"], trial.parameters["momentum"]) == ("sgd", 0.5)
    study = nr.Study(nr.gp_ucb(SPACE.grid(3), nr.Matern(2.5, 0.5), noise=0.1))
    study.enqueue({"momentum": 0.5})  # The middle, at which arms are that have none.
    assert study.ask().parameters["momentum"] == 0.5
    study = nr.Study(nr.auto(SPACE))
    study.enqueue({"momentum": 0.5})
    without, with_ = WHOLE, {"rate": 0.1, "depth": 2, "kind": "sgd", "momentum": 0.5}
    assert not study.ask(among=[without]).enqueued
    assert study.ask(among=[without, with_]).parameters == with_


@pytest.mark.parametrize(
    ("policy", "given", "message"),
    [
        (nr.auto(SPACE), {"rate": 2.0}, r"\{'rate': 2.0\} cannot be enqueued, and nothing was: Parameter `rate` .*2"),
        (nr.auto(SPACE), WHOLE | {"depth": 9}, "Parameter `depth` .*9"),
        (nr.auto(SPACE), {"dept": 3}, "no parameter 'dept', and the space has rate, .* Did you mean 'depth'?"),
        (nr.auto(SPACE), WHOLE | {"width": 3}, "there is no parameter 'width', and the space has"),
        (nr.auto(SPACE), {}, "it names no parameter"),
        (nr.auto(SPACE), [], "Nothing was given to enqueue"),
        (nr.auto(SPACE), WHOLE | {"momentum": 0.5}, "`momentum` is 0.5, and it counts only where kind is 'sgd'"),
        (nr.auto(SPACE), {"kind": "adam", "momentum": 0.5}, "`momentum` counts only where kind is 'sgd'"),
        (nr.auto(SPACE), [WHOLE, {"depth": 2}, WHOLE], r"number 3 of 3\).*it is the same as number 1"),
        (nr.auto(SPACE), [0.1, 0.2], "these parameters have names"),
        (nr.auto(BOX), [0.5, 2.0], "outside"),
        (nr.auto(BOX), {"x": 1}, "cannot be enqueued"),
        (nr.auto(BOX), "abc", "cannot be enqueued"),
        (nr.auto(BOX), None, "cannot be enqueued"),
        (nr.auto(BOX), 3, "cannot be enqueued"),
        (nr.algorithms.admmbo(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))), {"x": 0.5}, "plays what its script"),
        (UCB, 11, "no arm 11"),
        (UCB, [0.123], "cannot be enqueued"),
        (UCB, {"x": 1}, "cannot be enqueued"),
        (nr.gp_ucb(SPACE.grid(3), nr.Matern(2.5, 0.5), noise=0.1), {"rate": 0.5}, "no arm has these values"),
    ],
)  # fmt: skip
def test_what_cannot_be_tried_is_refused_at_once(policy, given, message):
    study = nr.Study(policy)
    with pytest.raises(nr.errors.InvalidInput, match=message):
        study.enqueue(given)
    assert (study.enqueued, study.changes) == ([], ())


def test_what_waits_already_is_refused_and_what_was_tried_is_not():
    study = nr.Study(nr.auto(SPACE))
    study.enqueue(WHOLE)
    with pytest.raises(nr.errors.InvalidInput, match="the same as entry 0 that waits, and each is tried once"):
        study.enqueue([{"depth": 2}, WHOLE])
    assert [each.named for each in study.enqueued] == [WHOLE]
    study.ask()
    study.enqueue(WHOLE)
    assert study.ask().parameters == WHOLE


def test_no_more_wait_than_the_queue_holds(monkeypatch):
    monkeypatch.setattr("nilregret.study.queue.MOST_WAITING", 3)
    study = nr.Study(UCB)
    study.enqueue([1, 2])
    with pytest.raises(nr.errors.InvalidInput, match="2 points waiting and 2 more are too many: 3 may wait"):
        study.enqueue([3, 4])
    assert len(study.enqueued) == 2


def test_a_point_that_is_not_offered_waits_for_its_turn():
    study = nr.Study(UCB)
    study.enqueue([3, 9])
    assert study.ask(among=[1, 2]).enqueued is False
    assert study.ask(among=[9, 10]).arm == 9
    assert study.ask(exclude=[3]).enqueued is False
    assert study.ask().arm == 3
    study = nr.Study(nr.auto(SPACE))
    study.enqueue([{"depth": 2}, WHOLE])
    others = [{"rate": 0.5, "depth": 7, "kind": "adam"}, WHOLE]
    assert study.ask(among=others[:1]).enqueued is False
    assert study.ask(among=others).parameters == WHOLE
    offered = [{"rate": 0.5, "depth": 2, "kind": "adam"}, {"rate": 0.4, "depth": 3, "kind": "adam"}]
    assert study.ask(among=offered).parameters == offered[0]


def test_a_retired_arm_is_refused_and_one_retired_later_is_passed_over_with_a_warning(url):
    study = nr.Study(UCB, storage=url)
    study.retire_arm(2)
    with pytest.raises(nr.errors.InvalidInput, match="arm 2 is retired"):
        study.enqueue(2)
    study.enqueue([3, 4])
    study.retire_arm(3)
    with pytest.warns(nr.errors.NoRegretWarning, match="Entry 0 of the points to try first is not tried: arm 3 is ret"):
        trial = study.ask()
    assert (trial.arm, trial.enqueued, study.enqueued) == (4, True, [])
    assert study.changes[-2].body == {"entry": 0, "trial": None, "reason": "arm 3 is retired"}
    study.ask()  # It says so once.
    again = nr.Study.open(storage=url)
    assert [trial.enqueued for trial in again.trials] == [True, False]


def test_an_entry_can_be_withdrawn():
    study = nr.Study(UCB)
    study.enqueue([3, 4])
    study.withdraw(0)
    assert study.ask().arm == 4
    study.withdraw(0)  # Again: nothing is recorded.
    assert len(study.changes) == 3
    for number, message in [(1, "does not wait: it has been tried"), (2, "there is none"), (-1, "entry")]:
        with pytest.raises(nr.errors.InvalidInput, match=message):
            study.withdraw(number)


POLICIES = {
    "auto": nr.auto(SPACE),
    "gp_ucb": UCB,
    "thompson": nr.gp_ts(ARMS, nr.Matern(2.5, 0.3), noise=0.1, norm_bound=1.0),
    "batches": nr.gp_bucb(BOX, nr.Matern(2.5, 0.5), noise=0.1),
    "changes": nr.gp_ucb_cpd(ARMS, nr.Matern(2.5, 0.3), noise=0.1, horizon=50),
    "balance": nr.algorithms.lb_gp_ucb(ARMS, nr.Matern(2.5, 0.3), noise=0.1, norm_bound=1.0),
    "lazy": nr.gp_ucb(ARMS, nr.Matern(2.5, 0.3), noise=0.1, switching="lazy"),
    "contexts": nr.gp_ucb(ARMS, nr.Matern(2.5, 0.5), noise=0.1, context=nr.Box([0.0], [1.0])),
    "random rounds": UCB.using(explore=nr.slots.Uniform(0.5)),
    "script": nr.algorithms.admmbo(BOX, first=(3, 4), more=(2, 2), candidates=200),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_replays_its_record_and_explains_it(name, tmp_path):
    policy, url = POLICIES[name], f"sqlite:///{tmp_path}/a.db"
    study, twin = nr.Study(policy, seed=3, storage=url), nr.Study(policy, seed=3)
    context = None if policy.context is None else [0.5]
    point = [WHOLE] if name == "auto" else [7] if isinstance(policy.domain, nr.Arms) else [[0.5, 0.5]]
    for each in (study, twin):
        play(each, 3, context)
        each.enqueue(point)
        if name == "auto":
            each.enqueue({"depth": 4})
        play(each, 12, context)
    assert [trial.point.tolist() for trial in twin.trials] == [trial.point.tolist() for trial in study.trials]
    again = nr.Study.open(storage=url)
    assert again.ask(context).point.tolist() == twin.ask(context).point.tolist()
    assert [trial.number for trial in again.trials if trial.enqueued] == ([3, 4] if name == "auto" else [3])
    assert not again.trials[3].explored
    assert all(again.explain(number).repeated for number in (2, 3, 4, 10))


def test_an_explanation_says_who_asked_for_the_point():
    study = nr.Study(nr.auto(SPACE))
    study.enqueue([WHOLE, {"depth": 2}])
    first, second, third = (study.explain(trial) for trial in study.ask(count=3))
    assert first.enqueued == WHOLE
    assert "Asked for by `enqueue` or `sheet`: the point as it was named." in str(first)
    assert first.to_dict()["enqueued"] == WHOLE
    assert (first.score, first.propensity, first.rule) == (None, None, None)
    assert second.enqueued == {"depth": 2}
    assert "Asked for by `enqueue`: depth=2, and the policy chose the rest." in str(second)
    assert third.enqueued is None


def test_nobody_drew_the_point_so_it_has_no_propensity_and_no_part_in_an_evaluation():
    study = nr.Study(UCB.using(explore=nr.slots.Uniform(0.5)), propensities=True)
    study.enqueue([3, 4])
    play(study, 40)
    assert [trial.propensity is None for trial in study.trials[:4]] == [True, True, False, False]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = nr.evaluate(study, "uniform", reward_range=(-1.0, 1.0))
    assert log.left_out == {"named by `enqueue`": 2}


def test_an_initial_design_is_as_much_shorter():
    plain, study = nr.Study(nr.auto(SPACE)), nr.Study(nr.auto(SPACE))
    play(plain, 3)
    study.enqueue([WHOLE, {"rate": 0.5, "depth": 8, "kind": "adam"}])
    play(study, 3)
    assert study.trials[2].point.tolist() == plain.trials[2].point.tolist()


def test_tables_files_and_json_say_so(tmp_path):
    study = nr.Study(nr.auto(SPACE), goal="minimize")
    play(study, 1)
    plain = study.export(tmp_path / "plain.csv").read_text()
    assert "enqueued" not in plain
    study.enqueue(WHOLE)
    play(study, 1)
    assert study.to_pandas()["enqueued"].tolist() == [False, True]
    for ending in ("csv", "jsonl"):
        other = nr.Study(nr.auto(SPACE), goal="minimize", seed=1)
        other.add_from(study.export(tmp_path / f"a.{ending}"))  # Without a warning.
    assert [trial.parameters for trial in other.trials] == [trial.parameters for trial in study.trials]


def test_a_study_that_is_copied_or_travels_keeps_its_queue():
    from nilregret.study.stored import portable

    study = nr.Study(UCB)
    study.enqueue([3, 4])
    study.ask()
    copy = portable(study)()
    assert copy.ask().arm == 4
    assert [trial.enqueued for trial in copy.trials] == [True, True]


def test_a_call_that_fails_takes_nothing():
    study = nr.Study(UCB, storage=MemoryStorage())
    study.enqueue([3, 4])
    with pytest.raises(ZeroDivisionError):
        study.replica.write(lambda: (study._calls.ask(None, None, None), 1 / 0))
    assert [each.named for each in study.enqueued] == [3, 4]
    assert study.ask().arm == 3
    both = study.group_commit([lambda calls: calls.enqueue(5)[0].number, lambda calls: calls.enqueue(99)], seconds=9)
    assert both[0] == 2
    assert "no arm 99" in str(both[1].error)
    assert [each.named for each in study.enqueued] == [4, 5]


@pytest.mark.parametrize("kind", ["sqlite", POSTGRESQL])
def test_two_that_ask_at_once_take_each_entry_once(kind, places):
    url = places(kind)()
    nr.Study(UCB, storage=url).enqueue(list(range(10)))
    studies = [nr.Study.open(storage=url) for _ in range(3)]
    taken = []

    def work(study):
        taken.extend(study.ask().arm for _ in range(4))

    threads = [threading.Thread(target=work, args=(study,)) for study in studies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [trial.arm for trial in studies[0].trials if trial.enqueued] == list(range(10))
    assert len(taken) == 12


DIES = (
    "import os, signal, sys; import nilregret as nr; from tests.test_enqueue import UCB; "
    "study = nr.Study(UCB, storage=sys.argv[1]); study.enqueue([3, 9]); study.ask(); "
    "write = type(study.replica)._save; "
    "type(study.replica)._save = lambda self, *rest: (write(self, *rest), os.kill(os.getpid(), signal.SIGKILL)); "
    "study.ask()"
)


def test_a_process_that_is_killed_within_an_ask_leaves_its_entry_waiting(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    done = subprocess.run([sys.executable, "-c", DIES, url], cwd=Path(__file__).parents[1], check=False)
    assert done.returncode < 0
    study = nr.Study.open(storage=url)
    assert [trial.arm for trial in study.trials] == [3]
    assert [each.named for each in study.enqueued] == [9]
    assert study.ask().arm == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE arms SET arms = '{\"entries\": []}' WHERE event = 1", "points to try first .* damaged"),
        ('UPDATE arms SET arms = \'{"entries": [{"point": [1e999], "arm": 3}]}\' WHERE event = 1', "damaged"),
        ('UPDATE arms SET arms = \'{"entries": [{"fixed": {}}]}\' WHERE event = 1', "damaged"),
        ('UPDATE arms SET arms = \'{"entry": 1, "trial": 0, "reason": null}\' WHERE event = 2', "Trial 0 .*entry 1"),
        ('UPDATE arms SET arms = \'{"entry": 0, "trial": 7, "reason": null}\' WHERE event = 2', "trial 7 was taken"),
        ('UPDATE arms SET arms = \'{"entry": 5, "trial": 0, "reason": null}\' WHERE event = 2', "did not wait"),
        ('UPDATE arms SET arms = \'{"entry": 0, "trial": 0, "reason": "x"}\' WHERE event = 2', "became trial 0"),
        ("UPDATE trials SET arm = 4, point = '[0.4]'", "Trial 0 .*not entry 0"),
    ],
)
def test_a_damaged_queue_is_refused(change, message, tmp_path):
    study = nr.Study(UCB, storage=f"sqlite:///{tmp_path}/a.db")
    study.enqueue([3, 9])
    study.ask()
    study.close()
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute(change)
    with pytest.raises(nr.errors.StorageError, match=message):
        nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db")


MIXED = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1), c=nr.Float(0, 1), n=nr.Int(1, 4)).where(
    "a + b + c == 1", "a * n <= 2", "b <= 0.5"
)


def test_limits_of_the_space_are_kept_by_what_the_policy_chooses():
    study = nr.Study(nr.auto(MIXED))
    named = [{"a": 0.55}, {"a": 0.05, "b": 0.5}, {"n": 4}, {"a": 0.2, "b": 0.3, "c": 0.5, "n": 1}]
    study.enqueue(named)
    for given, trial in zip(named, study.ask(count=4), strict=True):
        found = trial.parameters
        assert {name: found[name] for name in given} == given
        assert abs(found["a"] + found["b"] + found["c"] - 1.0) <= 1e-9
        assert found["a"] * found["n"] <= 2.0
        assert found["b"] <= 0.5
    for given, message in [
        ({"a": 0.4, "b": 0.5, "c": 0.2, "n": 1}, r"the limit 'a \+ b \+ c == 1' add up to 1.1, not 1"),
        ({"a": 0.4, "b": 0.52, "c": 0.08, "n": 1}, "outside of the limit 'b <= 0.5'"),
        ({"b": 0.6}, "no point inside of the limits of the space was found with these values"),
        ({"a": 0.6, "n": 4}, "no point inside of the limits"),
    ]:
        with pytest.raises(nr.errors.InvalidInput, match=message):
            study.enqueue(given)


# -- runs --------------------------------------------------------------------------------------------------------------

LINE = nr.Space(x=nr.Float(-5, 5), kind=nr.Choice("a", "b"))
FIRST = [{"x": 2.0, "kind": "b"}, {"x": -1.0}]


def hill(x, kind):
    return -((x - 2) ** 2) - (kind == "a")


def test_a_run_tries_the_points_first_and_a_resumed_one_does_not_again(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    result = nr.maximize(hill, LINE, trials=4, enqueue=FIRST, storage=url, progress=False)
    assert [trial.enqueued for trial in result.trials] == [True, True, False, False]
    assert result.trials[0].parameters == FIRST[0]
    assert result.trials[1].parameters["x"] == -1.0
    more = nr.maximize(hill, LINE, trials=6, enqueue=FIRST, storage=url, progress=False)
    assert [trial.enqueued for trial in more.trials] == [True, True, False, False, False, False]
    whole = nr.maximize(hill, LINE, trials=6, enqueue=FIRST, progress=False)
    assert [trial.point.tolist() for trial in whole.trials] == [trial.point.tolist() for trial in more.trials]
    with pytest.warns(nr.errors.NoRegretWarning, match=r"`enqueue` is for a new run, and study 'hill' has begun"):
        nr.maximize(hill, LINE, trials=7, enqueue=[{"x": 0.0}], storage=url, progress=False)
    assert not more.study.trials[6].enqueued
    nr.maximize(hill, LINE, trials=7, enqueue=[{"x": 0.0}], storage=url, progress=False)  # Finished: it is read.


def test_a_run_that_was_stopped_before_its_first_trial_still_has_its_points(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    nr.maximize(hill, LINE, trials=3, enqueue=FIRST, storage=url, progress=False, callbacks=[lambda *_: True])
    result = nr.maximize(hill, LINE, trials=3, enqueue=FIRST, storage=url, progress=False)
    assert [trial.enqueued for trial in result.trials] == [True, True, False]


def test_a_study_of_your_own_with_known_trials_is_new_as_well():
    study = nr.Study(nr.auto(LINE), goal="minimize")
    study.add({"x": 1.0, "kind": "a"}, 2.0)
    result = nr.run(study, hill, trials=3, enqueue=FIRST[:1], progress=False)
    assert [trial.enqueued for trial in result.trials] == [False, True, False]
    assert nr.minimize(hill, LINE, trials=1, enqueue=FIRST[0], progress=False).trials[0].enqueued


def test_more_points_than_trials_and_points_outside_are_refused_before_the_first_trial(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    with pytest.raises(nr.errors.InvalidInput, match=r"`enqueue` has 2 points, and `trials` is 1: each is a trial"):
        nr.maximize(hill, LINE, trials=1, enqueue=FIRST, storage=url, progress=False)
    with pytest.raises(nr.errors.InvalidInput, match=r"\{'x': 9\} cannot be enqueued"):
        nr.maximize(hill, LINE, trials=4, enqueue=[{"x": 9}], storage=url, progress=False)
    assert not nr.Study.open(storage=url).trials


TUNING = """
trials = 3
goal = "maximize"
enqueue = [{ x = 2.0, kind = "b" }, { x = -1.0 }]
[parameters]
x = { type = "float", low = -5, high = 5 }
kind = { type = "choice", options = ["a", "b"] }
[objective]
function = "tests.test_enqueue:hill"
"""


def test_a_tuning_file_names_points_to_try_first(tmp_path):
    from nilregret.tuning.toml.config import load
    from nilregret.tuning.toml.run import run as tuned

    (tmp_path / "job.toml").write_text(TUNING)
    trials = tuned(load(tmp_path / "job.toml")).trials
    assert [trial.enqueued for trial in trials] == [True, True, False]
    assert trials[0].parameters == FIRST[0]
    tables = TUNING.replace('enqueue = [{ x = 2.0, kind = "b" }, { x = -1.0 }]', "") + '[[enqueue]]\nx = "far"\n'
    (tmp_path / "wrong.toml").write_text(tables)
    with pytest.raises(nr.errors.InvalidInput, match=r"\{'x': 'far'\} cannot be enqueued.*Parameter `x`"):
        tuned(load(tmp_path / "wrong.toml"))


# -- over HTTP, and on the command line --------------------------------------------------------------------------------

AT = "/v1/studies/oven"


def test_points_to_try_first_over_http():
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(nr.auto(SPACE)), "seed": 3})
        body = {"entries": [{"parameters": WHOLE}, {"parameters": {"depth": 2}}, {"parameters": {"depth": 5}}]}
        status, said = client.post(f"{AT}/enqueue", body, key="k")
        assert (status, [each["number"] for each in said["entries"]]) == (201, [0, 1, 2])
        assert [each["whole"] for each in said["entries"]] == [True, False, False]
        assert client.post(f"{AT}/enqueue", body, key="k")[1] == said
        assert client.get(f"{AT}/enqueue")[1] == said
        status, left = client.run(client.send("DELETE", f"{AT}/enqueue/2", None))
        assert (status, left["entries"]) == (200, said["entries"][:2])
        decisions = client.post(f"{AT}/decisions", {"count": 3, "propensity": True})[1]["decisions"]
        assert [each["enqueued"] for each in decisions] == [True, True, False]
        assert [each["propensity"] for each in decisions][:2] == [None, None]
        assert decisions[0]["parameters"] == WHOLE
        assert client.post(f"{AT}/enqueue", body, key="k")[1] == said  # They are tried by now: nothing is added.
        assert client.get(f"{AT}/enqueue")[1]["entries"] == []
        why = client.get(f"{AT}/explain/1")[1]
        assert why["enqueued"] == {"depth": 2}
        events = client.get(f"{AT}/events")[1]["events"]
        assert [each["kind"] for each in events] == ["enqueued", "taken", "taken", "asked", "taken", "asked", "asked"]
        assert events[2]["change"] == {"entry": 0, "trial": 0, "reason": None}
        assert client.get(f"{AT}/decisions/{decisions[0]['id']}")[1]["enqueued"]
        for entries in ([], [{}], [{"arm": 3}], [{"point": [0.1]}], [{"parameters": WHOLE, "arm": 1}], [{"depth": 2}]):
            status, said = client.post(f"{AT}/enqueue", {"entries": entries})
            assert (status, "entries" in said["error"]["field"]) == (422, True)
        status, said = client.run(client.send("DELETE", f"{AT}/enqueue/9", None))
        assert (status, said["error"]["field"]) == (422, "entry")


def test_who_may_decide_may_enqueue():
    assert needed("POST", f"{AT}/enqueue") == needed("DELETE", f"{AT}/enqueue/0") == "decider"
    assert needed("GET", f"{AT}/enqueue") == "reader"


def test_the_client_names_points_as_a_study_does():
    with Serving() as service:
        study = Remote(service.url).create("oven", nr.auto(SPACE))
        (first,) = study.enqueue(WHOLE, key="k")
        assert study.enqueue(WHOLE, key="k") == [first]
        assert study.enqueue([{"depth": 2}, {"depth": 3}])[1].parameters == {"depth": 3}
        study.withdraw(2)
        assert [each.number for each in study.enqueued()] == [0, 1]
        assert study.ask().parameters == WHOLE
        arms = Remote(service.url).create("arms", UCB)
        arms.enqueue([3, 9])
        arms.enqueue(4)
        arms.enqueue([0.5])
        assert [arms.ask().arm for _ in range(4)] == [3, 9, 4, 5]
        box = Remote(service.url).create("box", nr.auto(BOX))
        box.enqueue(np.array([[0.5, 0.25]]))
        assert box.ask().point == [0.5, 0.25]


def test_points_to_try_first_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nr.Study(nr.auto(SPACE), storage="sqlite:///oven.db", name="a")
    place = ("oven.db", "a")
    assert "0: depth=2, and the policy chooses the rest" in run("enqueue", *place, '{"depth": 2}')
    assert data("enqueue", *place, '[{"depth": 3}, {"depth": 4}]')[1]["named"] == {"depth": 4}
    assert [each["number"] for each in data("enqueue", *place, "--withdraw", 1)] == [0, 2]
    assert "2: depth=4" in run("enqueue", *place)
    assert [each["number"] for each in data("show", *place)["enqueued"]] == [0, 2]
    assert "to try first" in run("show", *place)
    assert data("ask", *place)["parameters"]["depth"] == 2
    assert data("ask", *place)["enqueued"]
    assert "No point waits" in run("enqueue", *place)
    assert "Did you mean 'depth'" in run("enqueue", *place, '{"dept": 2}', code=1)
    assert "Asked for by `enqueue`" in run("explain", *place, 0)


def test_under_safe_a_rest_that_cannot_be_certified_waits():
    space = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
    safe = nr.Safe(start=[{"x": 0.5, "y": 0.5}], count=1, scale=1.0, noise=0.1)
    study = nr.Study(nr.gp_ucb(space, nr.Matern(2.5, 0.1), noise=0.1, constraints=safe))
    study.enqueue([{"x": 0.9}, {"x": 0.1, "y": 0.2}])
    first, second = study.ask(count=2)
    assert (first.parameters, first.enqueued) == ({"x": 0.1, "y": 0.2}, True)  # Whole: it is played as it is.
    assert not second.enqueued
    assert [each.named for each in study.enqueued] == [{"x": 0.9}]


def test_recipes_steps_constants_and_odd_options_are_named_too(tmp_path):
    space = nr.Space(
        mix=nr.Mixture("water", "salt", "oil"), step=nr.Float(0, 1, step=0.25), same=nr.Float(2, 2),
        odd=nr.Choice((1, 2), None, {"k": [1]}),
    )  # fmt: skip
    study = nr.Study(nr.auto(space), storage=f"sqlite:///{tmp_path}/a.db")
    named = [{"water": 0.3}, {"salt": 0.25, "oil": 0.75}, {"step": 0.75, "odd": (1, 2)}, {"odd": None}, {"same": 2}]
    study.enqueue(named)
    assert [each.named for each in nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db").enqueued] == named
    for given, trial in zip(named, study.ask(count=5), strict=True):
        found = trial.parameters
        assert {name: found[name] for name in given} == given
        assert abs(found["water"] + found["salt"] + found["oil"] - 1.0) <= 1e-9
    for given, message in [({"step": 0.3}, "multiple of 0.25"), ({"odd": [3]}, "not among the options"),
                           ({"water": 0.5, "salt": 0.6}, "no point inside of the limits")]:  # fmt: skip
        with pytest.raises(nr.errors.InvalidInput, match=message):
            study.enqueue(given)
