"""`maximize` and `minimize` as who knows nothing else of the library meets them."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import nilregret as nr
from nilregret.tuning import loop
from nilregret.tuning.progress import Bar

from .waiting import LONG

pytestmark = pytest.mark.usefixtures("few_draws")
SPACE = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"))
UNIT = nr.Space(x=nr.Float(0, 1))


def score(x, kind="b"):
    return -((x - 0.4) ** 2) + (0.5 if kind == "b" else 0.0)


def quiet(objective, space=UNIT, *, trials=6, **more):
    return nr.maximize(objective, space, trials=trials, progress=False, **more)


def told(result):
    return [(trial.number, trial.point.tolist(), trial.state, trial.reward) for trial in result.trials]


# -- what comes back --------------------------------------------------------------------------------------------------


def test_the_best_value_returned_and_where():
    result = quiet(score, SPACE, trials=15)
    values = [row["value"] for row in result.history]
    assert result.best_value == max(values)
    assert result.best_parameters["kind"] == "b"
    assert abs(result.best_parameters["x"] - 0.4) < 0.05
    assert score(**result.best_parameters) == result.best_value
    assert result.best_point.tolist() == result.trials[values.index(max(values))].point.tolist()
    assert len(result.study.trials) == 15
    assert result.stopped == "trials"


def test_minimizing_is_in_the_users_units():
    result = nr.minimize(lambda x: 7 + (x - 0.25) ** 2, UNIT, trials=10, progress=False)
    assert result.best_value == min(row["value"] for row in result.history)
    assert 7.0 <= result.best_value < 7.01
    assert result.study.goal == "minimize"
    assert repr(result).splitlines()[0] == "Result of 'minimize' (minimize): 10 trials"
    # Paired with the maximum of the negative: the same points.
    other = quiet(lambda x: -(7 + (x - 0.25) ** 2), trials=10)
    assert [row["point"] for row in result.history] == [row["point"] for row in other.history]
    assert other.best_value == -result.best_value


def test_a_box_and_arms_give_points_and_named_arms_parameters():
    def at(point):
        assert point.shape == (2,)
        return -float(((point - 1.0) ** 2).sum())

    assert quiet(at, nr.Box([0, 0], [2, 2])).best_parameters is None
    assert quiet(at, nr.Arms(np.random.default_rng(0).uniform(size=(9, 2)))).best_point.shape == (2,)
    named = quiet(lambda x, kind: x, SPACE.grid(5), trials=12)
    assert named.best_value == 1.0
    assert named.best_parameters["x"] == 1.0


def test_the_history_has_every_trial_and_becomes_a_table():
    def sometimes(x, kind):
        if kind == "a":
            raise ValueError("no a")
        return x

    result = quiet(sometimes, SPACE, trials=8)
    assert [row["number"] for row in result.history] == list(range(8))
    failed = [row for row in result.history if row["state"] == "failed"]
    assert failed
    assert {row["reason"] for row in failed} == {"ValueError: no a"}
    assert all(row["value"] is None and row["parameters"]["kind"] == "a" for row in failed)
    table = result.to_pandas()
    assert list(table.columns) == ["number", "state", "value", "reason", "seconds", "parameters.x", "parameters.kind"]
    assert table["value"].notna().sum() == 8 - len(failed)
    assert list(quiet(lambda x: x[0], nr.Box([0], [1])).to_pandas().columns)[-1] == "point.0"


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    result = quiet(score, SPACE, trials=2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(nr.errors.MissingExtra, match=r"pip install 'nilregret\[export\]'"):
        result.to_pandas()


def test_the_picture_shows_values_best_and_failures(tmp_path):
    def sometimes(x):
        if x > 0.5:
            raise ValueError
        return x

    result = quiet(sometimes, trials=10)
    figure = result.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named[:3] == ["observed", "best so far (highest told)", "failed"]
    assert result.plot() is not None


def test_what_is_shown_of_a_result():
    text = repr(quiet(score, SPACE, trials=5))
    assert text.startswith("Result of 'score' (maximize): 5 trials\n  best value: ")
    assert "best at: x=" in text


def test_progress_goes_to_stderr_and_says_why_trials_fail(capsys):
    def sometimes(x):
        if x > 0.5:
            raise ValueError("too large")
        return x

    nr.maximize(sometimes, UNIT, trials=6)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "failed: ValueError: too large" in printed.err
    quiet(sometimes)
    assert capsys.readouterr() == ("", "")


def test_callbacks_are_told_each_answer_and_may_end_the_run():
    seen = []

    def note(study, trial):
        seen.append((len(study.trials), trial.number, trial.state))

    quiet(score, SPACE, trials=4, callbacks=[note])
    assert seen == [(n + 1, n, "observed") for n in range(4)]
    result = quiet(score, SPACE, trials=9, callbacks=[lambda study, trial: trial.number == 2])
    assert len(result.trials) == 3
    assert result.stopped.startswith("callback: it returned True after 3 of 9 trials")


@pytest.mark.parametrize("stop", [True, np.True_, np.float64(0.1) <= 1, np.array(True)], ids=repr)
def test_any_truth_value_of_a_callback_ends_the_run(stop):
    result = quiet(score, SPACE, trials=4, callbacks=[lambda study, trial: stop, lambda study, trial: np.False_])
    assert (len(result.trials), result.stopped.partition(":")[0]) == (1, "callback")


@pytest.mark.parametrize("answer", [0, 1, "yes", np.array([True, False]), 0.0, np.ma.masked], ids=repr)
def test_what_is_no_truth_value_of_a_callback_is_an_error(answer, tmp_path):
    storage, others = f"sqlite:///{tmp_path}/s.db", []
    callbacks = [lambda study, trial: answer, lambda study, trial: others.append(trial.number)]
    with pytest.raises(nr.errors.InvalidInput, match="the answer of a callback` must be True or False, not"):
        quiet(score, SPACE, trials=4, storage=storage, callbacks=callbacks)
    assert others == [0]  # every callback is called, and the answer is on record
    assert [trial.state for trial in nr.Study.open(storage=storage).trials] == ["observed"]


def test_a_callback_that_raises_ends_the_run_after_its_trial_was_recorded(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"

    def broken(study, trial):
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        quiet(score, SPACE, storage=storage, callbacks=[broken])
    result = quiet(score, SPACE, storage=storage)
    assert told(result) == told(quiet(score, SPACE))


# -- objectives that misbehave ----------------------------------------------------------------------------------------


class Odd(Exception):
    def __str__(self):
        raise RuntimeError


BAD = [
    (lambda: None, "not a number but None: is a `return` missing"),
    (lambda: "0.5", "not a number: '0.5' (str)"),
    (lambda: 1j, "not a number: 1j (complex)"),
    (lambda: np.complex128(1j), "(complex)"),
    (lambda: float("nan"), "nan, which is not finite"),
    (lambda: np.inf, "inf, which is not finite"),
    (lambda: -np.inf, "-inf, which is not finite"),
    (lambda: 10**400, "not finite"),
    (lambda: 1e200, "must lie within 1e100 of 0"),
    (lambda: np.array([1.0, 2.0]), "(ndarray)"),
    (lambda: np.array([]), "(ndarray)"),
    (lambda: np.array(["a"]), "'a' (str)"),
    (lambda: [1.0], "[1.0] (list)"),
    (lambda: True, "(bool)"),
    (lambda: sys.exit(3), "SystemExit: 3"),
    (lambda: 1 / 0, "ZeroDivisionError"),
    (lambda: (_ for _ in ()).throw(Odd()), "Odd"),
    (lambda: (_ for _ in ()).throw(MemoryError()), "MemoryError"),
    (lambda: (_ for _ in ()).throw(ValueError("x" * 10_000 + "the end")), "the end"),
    (lambda: (_ for _ in ()).throw(ValueError("lone \udcff")), "lone"),
]


@pytest.mark.parametrize(("answer", "reason"), BAD)
def test_what_is_no_number_fails_its_trial_with_the_reason(answer, reason, tmp_path):
    calls = []

    def objective(x):
        calls.append(x)
        return x if len(calls) % 2 else answer()

    storage = f"sqlite:///{tmp_path}/s.db"
    result = quiet(objective, trials=4, storage=storage)
    assert [row["state"] for row in result.history] == ["observed", "failed", "observed", "failed"]
    assert reason in result.history[1]["reason"]
    assert len(result.history[1]["reason"]) < 400
    assert list(nr.Study.open(storage=storage, name="objective").trials) == list(result.trials)


FORMS = [
    (None, {}, "its answer is not a number but None: is a `return` missing? Usually every evaluation makes"),
    ("0.5", {}, "its answer is not a number: '0.5' (str). Usually"),
    ((1.0, 2.0), {}, "2 numbers, and there is one objective: name them, as in objectives={"),
    ({"reward": 1.0, "std": "0.1"}, {}, "its entry 'std' is not a number: '0.1' (str)"),
    ({"reward": 1.0, "ms": "9"}, {"constraints": "ms <= 50"}, "its entry 'ms' is not a number: '9' (str)"),
    ((1.0, [None]), {"constraints": 1}, "a constraint value of its answer is not a number but None"),
    ({"reward": 1.0, "ms": "9"}, {"cost": "ms"}, "its entry 'ms' is not a number: '9' (str)"),
    ({"loss": 1.0}, {}, "its answer has no entry 'reward', only 'loss'"),
    ({"reward": 1.0, "sdt": 0.1}, {}, "Did you mean 'std'?"),
    ({"reward": 1.0}, {"constraints": "ms <= 50"}, "no entry 'ms', which has a limit, only 'reward'"),
    (1.0, {"constraints": "ms <= 50"}, "its answer is 1.0, and 'ms' has a limit: it must be a dict"),
    (1.0, {"constraints": 1}, "it must be (value, [g, ...])"),
    ({"reward": 1.0}, {"constraints": 1}, "no entry 'constraints'"),
    ((1.0, [1.0, 2.0]), {"constraints": 1}, "2 constraint values, for 1 constraint"),
]


@pytest.mark.parametrize(("answer", "options", "reason"), FORMS)
def test_a_mistake_of_form_ends_the_run_at_the_first_and_answers_no_trial(answer, options, reason, tmp_path):
    storage, calls = f"sqlite:///{tmp_path}/s.db", []

    def objective(**_):
        calls.append(1)
        return answer if len(calls) == 1 else {"reward": 1.0, "ms": 9.0} if "ms" in reason else good

    good = (1.0, [0.0]) if "constraints" in options else 1.0
    with pytest.raises(nr.NoRegretError, match="The run ends at trial 0: ") as raised:
        quiet(objective, SPACE, trials=4, storage=storage, **options)
    assert reason in str(raised.value)
    assert [trial.state for trial in nr.Study.open(storage=storage).trials] == ["pending"]
    mended = quiet(objective, SPACE, trials=4, storage=storage, **options)
    assert [row["state"] for row in mended.history] == ["observed"] * 4
    assert len(calls) == 5


def test_a_form_that_most_answers_have_is_missed_by_one_trial_alone():
    answers = iter([1.0, {"error": "it diverged"}, 0.5])
    result = quiet(lambda **_: next(answers), SPACE, trials=3)
    assert [row["state"] for row in result.history] == ["observed", "failed", "observed"]


def test_a_mistake_of_form_in_a_process_ends_the_run():
    with ProcessPoolExecutor(1) as pool, pytest.raises(nr.errors.InvalidInput, match="no entry 'reward', only 'x'"):
        quiet(dict, SPACE, trials=9, executor=pool)


@pytest.mark.parametrize(
    "answer",
    [
        2,
        np.float32(2),
        np.int8(2),
        np.array(2.0),
        np.array([2.0]),
        np.array([[2]]),
        {"reward": 2.0},
    ],
)
def test_what_is_a_number_counts(answer):
    assert quiet(lambda x: answer, trials=2).best_value == 2.0


def test_changing_the_arguments_changes_nothing_on_record():
    def on_point(point):
        value = point[0]
        point[:] = 99.0
        return value

    def on_parameters(**parameters):
        value = parameters["x"]
        parameters.clear()
        return value

    box = quiet(on_point, nr.Box([0], [1]))
    assert [row["point"] == [row["value"]] for row in box.history] == [True] * 6
    space = quiet(on_parameters)
    assert [row["parameters"] == {"x": row["value"]} for row in space.history] == [True] * 6


def test_it_ends_where_nothing_works_with_the_objectives_own_error():
    calls = []

    def broken(x):
        calls.append(x)
        raise KeyError("data")

    with pytest.raises(
        nr.NoRegretError, match=r"All 10 trials failed, the last one with \"KeyError: 'data'\""
    ) as caught:
        quiet(broken, trials=50)
    assert len(calls) == 10
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(nr.NoRegretError, match="All 3 trials failed"):
        quiet(broken, trials=3)


def test_after_mending_the_objective_the_run_goes_on(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"

    def broken(x):
        raise KeyError("data")

    for _ in range(2):
        with pytest.raises(nr.NoRegretError, match="trials failed"):
            quiet(broken, trials=25, storage=storage, name="mine")
    result = quiet(score, trials=25, storage=storage, name="mine")
    assert [row["state"] for row in result.history] == ["failed"] * 20 + ["observed"] * 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(objective=3), "must be a function"),
        (dict(objective=lambda y: y), "cannot be called with the parameters x as keyword arguments"),
        (dict(objective=lambda: 1, space=nr.Box([0], [1])), "cannot be called with a point"),
        (dict(space={"x": nr.Float(0, 1)}), "Write nr.Space"),
        (dict(space=None), "must be Arms, a Box or a Space"),
        (dict(trials=0), "`trials` is 0"),
        (dict(trials=2.5), "`trials` must be a whole number"),
        (dict(seed=-1), "`seed` is -1"),
        (dict(timeout=0), "`timeout` is 0"),
        (dict(timeout=float("nan")), "`timeout` is nan"),
        (dict(executor="threads"), "must be a concurrent.futures.Executor"),
        (dict(in_flight=2), "is for an `executor`"),
        (dict(callbacks=[3]), "A callback is called with"),
        (dict(callbacks=print), "`callbacks` is"),
        (dict(progress="yes"), "`progress` must be True or False"),
        (dict(storage="nowhere"), "must be a URL"),
        (dict(name=""), "`name` must be some text"),
        (dict(policy="gp_ucb"), "made by an algorithm"),
        (dict(policy=nr.gp_ucb(nr.Arms.grid(0, 1, 3), nr.Linear(), noise=0.1)), "is for another domain"),
        (dict(policy=nr.gp_ucb(UNIT, nr.Linear(), noise=0.1, context=nr.Box([0], [1]))), "a context for each question"),
    ],
)
def test_mistakes_are_named_before_anything_is_evaluated(arguments, message):
    calls = []

    def objective(x):
        calls.append(x)
        return x

    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.maximize(**{"objective": objective, "space": UNIT, "trials": 3, "progress": False, **arguments})
    assert calls == []


def test_an_async_function_is_refused():
    async def later(x):
        return x

    with pytest.raises(nr.errors.InvalidInput, match="async"):
        quiet(later)


# -- parameters of every kind -----------------------------------------------------------------------------------------


def test_names_that_are_no_identifiers():
    space = nr.Space(**{"learning rate": nr.Float(1e-4, 1, log=True), "class": nr.Choice("a", "b"), "": nr.Int(1, 3)})
    result = quiet(lambda **p: p["learning rate"] + (p["class"] == "a") + p[""], space)
    assert set(result.best_parameters) == {"learning rate", "class", ""}
    with pytest.raises(nr.errors.InvalidInput, match=r"\*\*"):
        quiet(lambda rate: rate, space)


def test_names_that_this_library_uses_itself():
    space = nr.Space(self=nr.Float(0, 1), value=nr.Float(0, 1), number=nr.Float(0, 1), objective=nr.Float(0, 1))
    result = quiet(lambda **p: p["self"] - p["value"], space)
    assert {"value", "parameters.value"} <= set(result.to_pandas().columns)


@pytest.mark.parametrize(
    ("parameter", "kinds"),
    [
        (nr.Choice(None, True, 1, 1.0, "1", False, 0), (type(None), bool, int, float, str)),
        (nr.Choice("only"), (str,)),
        (nr.Choice(*range(1000)), (int,)),
        (nr.Choice(*map(str, range(300))), (str,)),
        (nr.Int(3, 3), (int,)),
        (nr.Int(1, 10**6), (int,)),
        (nr.Int(1, 10**6, log=True), (int,)),
        (nr.Int(-(2**53), 2**53), (int,)),
        (nr.Float(1e-200, 1e100, log=True), (float,)),
        (nr.Choice(0.5), (float,)),
    ],
    ids=lambda value: str(value)[:60],
)
def test_parameters_of_every_kind_reach_the_objective_as_they_are(parameter, kinds, tmp_path):
    space = nr.Space(odd=parameter, x=nr.Float(0, 1))
    seen = []

    def objective(odd, x):
        seen.append(odd)
        return x

    storage = f"sqlite:///{tmp_path}/s.db"
    quiet(objective, space, trials=2, storage=storage)
    result = quiet(objective, space, trials=3, storage=storage)
    assert all(type(value) in kinds for value in seen)
    stored = [row["parameters"]["odd"] for row in result.history]
    assert [(type(a), a) for a in stored] == [(type(a), a) for a in seen]


def test_options_of_equal_value_and_different_type_are_told_apart():
    space = nr.Space(option=nr.Choice(None, True, 1, 1.0))
    result = quiet(lambda option: float(type(option) is float), space, trials=8)
    assert type(result.best_parameters["option"]) is float
    assert result.best_value == 1.0
    assert {type(row["parameters"]["option"]) for row in result.history} == {type(None), bool, int, float}


def test_a_space_of_constants_alone():
    result = quiet(lambda a, b: 1.0, nr.Space(a=nr.Int(2, 2), b=nr.Choice("x")), trials=3)
    assert result.best_parameters == {"a": 2, "b": "x"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.Float(0, 1, log=True), "low > 0, not 0"),
        (lambda: nr.Int(0, 8, log=True), "low > 0, not 0"),
        (lambda: nr.Float(2, 1), "Usually the two are swapped"),
        (lambda: nr.Int(2, 1), "Usually the two are swapped"),
        (lambda: nr.Choice(1, 1), "must differ"),
        (lambda: nr.Choice(), "at least one"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()


# -- the trial inside its objective ------------------------------------------------------------------------------------


def numbered(x, **others):
    """Each trial knows its number and its point."""
    trial = nr.current_trial()
    assert trial.state == "pending"
    assert (trial.parameters["x"], trial.point.shape) == (x, (len(trial.point),))
    return {"reward": x, "number": trial.number}


def test_an_objective_knows_its_trial(tmp_path):
    def known(result):
        return [trial.metrics["number"] for trial in result.trials] == list(range(len(result.trials)))

    assert known(quiet(numbered))
    with ThreadPoolExecutor(3) as pool:
        assert known(quiet(numbered, executor=pool))
    on_a_box = quiet(lambda point: 1.0 if np.array_equal(nr.current_trial().point, point) else 0.0, nr.Box([0], [1]))
    assert on_a_box.best_value == min(trial.reward for trial in on_a_box.trials) == 1.0
    limits = quiet(numbered, constraints=lambda x: nr.current_trial().parameters["x"] - x)  # functions know it, too
    assert {trial.constraints[0] for trial in limits.trials} == {0.0}
    again = quiet(numbered, storage=f"sqlite:///{tmp_path}/s.db")
    again = quiet(numbered, storage=f"sqlite:///{tmp_path}/s.db", trials=8)
    assert len(again.trials) == 8
    assert known(again)


def test_a_run_inside_an_objective_has_trials_of_its_own():
    def outer(x):
        before = nr.current_trial()
        inner = quiet(numbered, trials=2)
        assert nr.current_trial() is before
        return inner.best_value

    assert quiet(outer, trials=2).trials[1].state == "observed"


def test_outside_of_an_objective_there_is_no_current_trial():
    def fails(x):
        raise ValueError(nr.current_trial().number)

    quiet(lambda x: fails(x) if x > 0.5 else x)
    with pytest.raises(nr.NoRegretError, match="No trial is evaluated here: `current_trial`"):
        nr.current_trial()


@pytest.mark.nightly
def test_processes_know_their_trial():
    with ProcessPoolExecutor(2) as pool:
        for more in ({"executor": pool}, {"timeout": LONG}, {"executor": pool, "timeout": LONG}):
            assert [trial.metrics["number"] for trial in quiet(numbered, trials=3, **more).trials] == [0.0, 1.0, 2.0]


# -- the time of the whole run ----------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still. An objective moves it."""
    now = [100.0]
    monkeypatch.setattr(loop, "monotonic", lambda: now[0])
    return now


def lasting(clock, seconds):
    def objective(x):
        clock[0] += seconds
        return x

    return objective


def test_no_trial_begins_after_the_seconds_of_a_run(clock, tmp_path):
    run = partial(quiet, lasting(clock, 10.0), trials=None, seconds=25, storage=f"sqlite:///{tmp_path}/s.db", name="s")
    result = run()
    assert [trial.state for trial in result.trials] == ["observed"] * 3  # The third one ended after 30 s.
    assert result.stopped == "seconds: the 25 s were over after 3 trials; the same call goes on"
    assert result.wanted is None
    assert len(run().trials) == 6  # The seconds are those of a call.
    fewer = run(trials=8)
    assert (len(fewer.trials), fewer.stopped) == (8, "trials")
    more = run(trials=20)
    assert more.stopped == "seconds: the 25 s were over after 11 of 20 trials; the same call goes on"
    assert pickle.loads(pickle.dumps(result)).stopped == result.stopped


def test_what_is_under_way_is_waited_for(clock):
    last, lock = threading.Barrier(2), threading.Lock()

    def objective(x):
        last.wait(LONG)  # Both are under way before the time is over.
        with lock:
            clock[0] += 10.0
        return x

    with ThreadPoolExecutor(2) as pool:
        result = quiet(objective, trials=None, seconds=5, executor=pool)
    assert [trial.state for trial in result.trials] == ["observed"] * 2


def test_the_design_leaves_time_for_the_search(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    explore = quiet(score, SPACE, trials=3, seconds=LONG, storage=storage).study.policy.explore
    assert explore.parts[0].design.rounds == 1  # a third of the trials
    assert explore.parts[0].seconds == LONG
    again = quiet(score, SPACE, trials=4, storage=storage)  # The policy is that on record.
    assert again.study.policy.explore == explore
    own = nr.Study(nr.auto(UNIT))
    assert len(nr.run(own, score, seconds=LONG, trials=2, progress=False).trials) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trials": None}, "`trials` is missing: .* Or give `seconds`"),
        ({"seconds": 0}, "`seconds` .*for the whole run, and `timeout` for one evaluation"),
        ({"seconds": float("nan")}, "`seconds`"),
        ({"seconds": "1h"}, "`seconds` must be a number"),
    ],
)
def test_a_run_has_a_length(arguments, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        quiet(score, **arguments)


def test_the_progress_says_how_much_time_is_left(clock, capsys):
    nr.maximize(lasting(clock, 60.0), UNIT, seconds=150)
    assert capsys.readouterr().err.splitlines()[-1].startswith("objective: 3 trials, best ")
    bar = Bar("s", 10, goals=("maximize",), show=False)
    study = nr.Study(nr.auto(UNIT))
    left = loop.TimeLeft(7200)
    bar.begun(study, left)
    clock[0] += 1000.0  # Before the first trial, no time is lost.
    left.begin()
    left.begin()
    clock[0] += 5400.0
    assert bar._line == "s: 0 of 10 trials, 30:00 left, no value yet"
    assert bar._share == 0.75
    clock[0] -= 5000.0
    assert " 1:53:20 left" in bar._line
    nr.maximize(lasting(clock, 1.0), UNIT, seconds=150, trials=2)
    assert capsys.readouterr().err.splitlines()[-1].startswith("objective: 2 trials, best ")


# -- time limits ------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_what_hangs_or_dies_fails_and_the_run_goes_on():
    def objective(x, kind):
        if kind == "a":
            while True:
                time.sleep(0.01)
        if x > 0.9:
            os._exit(3)
        return x

    result = quiet(objective, nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b")), trials=5, timeout=0.3)
    late, died = "no answer within 0.3 s", "its process ended without an answer (EXIT(3)): out of memory, or a crash?"
    assert {row["reason"] for row in result.history if row["parameters"]["kind"] == "a"} == {late}
    assert len(result.trials) == 5
    # A busy machine may be as slow as what hangs.
    assert {row["reason"] for row in result.history if row["parameters"]["kind"] == "b"} <= {None, late, died}
    result = quiet(objective, nr.Space(x=nr.Float(0, 1), kind=nr.Choice("b", "c")), trials=4, timeout=LONG)
    assert {row["reason"] for row in result.history} == {None, died}


@pytest.mark.nightly
def test_what_cannot_be_sent_to_a_process_is_said_before_the_first_trial():
    lock = threading.Lock()
    with pytest.raises(nr.errors.InvalidInput, match="cannot be sent to another process"):
        quiet(lambda x: x if lock else 0.0, timeout=5)


@pytest.mark.nightly
def test_a_time_limit_holds_in_the_threads_of_an_executor():
    def objective(x):
        if x > 0.5:
            time.sleep(LONG)
        return x

    with ThreadPoolExecutor(2) as pool:
        result = quiet(objective, trials=4, timeout=0.3, executor=pool)
    assert {row["reason"] for row in result.history} <= {None, "no answer within 0.3 s"}
    assert all(row["state"] == "failed" for row in result.history if row["parameters"]["x"] > 0.5)
    assert any(row["parameters"]["x"] > 0.5 for row in result.history)


def slow_above_a_half(x):
    if x > 0.5:
        time.sleep(LONG)
    return x


@pytest.mark.nightly
def test_a_time_limit_holds_in_the_processes_of_an_executor():
    with ProcessPoolExecutor(1) as pool:
        result = quiet(slow_above_a_half, trials=3, timeout=0.3, executor=pool)
    assert {row["reason"] for row in result.history} <= {None, "no answer within 0.3 s"}
    assert all(row["state"] == "failed" for row in result.history if row["parameters"]["x"] > 0.5)
    assert any(row["parameters"]["x"] > 0.5 for row in result.history)


def test_what_cannot_be_sent_to_processes_is_refused_before_a_trial_is_spent_on_it(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    with ProcessPoolExecutor(1) as pool, pytest.raises(nr.errors.InvalidInput, match="cannot be sent to the processes"):
        quiet(lambda x: x, executor=pool, storage=storage, name="maximize")
    assert not nr.Study.open(storage=storage, name="maximize").trials


def test_two_lambdas_do_not_share_a_study_without_a_word(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    with pytest.raises(nr.errors.InvalidInput, match="has no name, so its study in `storage` needs one"):
        quiet(lambda x: x, storage=storage)
    assert quiet(lambda x: x, storage=storage, name="mine").study.name == "mine"


def test_an_executor_that_was_shut_down_is_an_error_in_words():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(nr.NoRegretError, match="takes no more work"):
        quiet(score, SPACE, executor=pool)


# -- several at once --------------------------------------------------------------------------------------------------


def replayed(result, in_flight):
    """The points that a study asks for when it is told the same answers in the same order."""
    study = nr.Study(result.study.policy, seed=result.study.seed)
    points = [study.ask() for _ in range(min(in_flight, result.wanted))]
    for trial in sorted(result.trials, key=lambda trial: trial.told_order):
        study.tell(trial.number, trial.reward)
        if len(points) < result.wanted:
            points.append(study.ask())
    return [trial.point.tolist() for trial in points]


def test_four_threads_are_kept_busy_and_the_points_depend_on_the_order_of_answers_alone():
    running, most, lock = 0, [], threading.Lock()
    barrier = threading.Barrier(4, timeout=LONG)

    def objective(x, kind):
        nonlocal running
        with lock:
            running += 1
            most.append(running)
            first = len(most) <= 4
        if first:
            barrier.wait()  # which needs four at once
        time.sleep(0.02 * (1.0 - x))
        with lock:
            running -= 1
        return score(x, kind)

    with ThreadPoolExecutor(4) as pool:
        result = quiet(objective, SPACE, trials=16, executor=pool)
    assert max(most) == 4
    assert len(result.trials) == 16
    assert [trial.point.tolist() for trial in result.trials] == replayed(result, 4)


def test_one_worker_of_an_executor_does_what_no_executor_does():
    with ThreadPoolExecutor(1) as pool:
        policy = quiet(score, SPACE).study.policy
        assert told(quiet(score, SPACE, executor=pool, policy=policy)) == told(quiet(score, SPACE, policy=policy))


def test_answers_are_told_in_the_order_in_which_they_come():
    second, calls, lock = threading.Event(), [], threading.Lock()

    def objective(x, kind):
        with lock:
            calls.append(x)
            first = len(calls) == 1
        if first:
            assert second.wait(LONG)
        return score(x, kind)

    def note(study, trial):
        second.set()

    with ThreadPoolExecutor(2) as pool:
        result = quiet(objective, SPACE, executor=pool, trials=2, callbacks=[note])
    assert [trial.told_order for trial in result.trials] == [4, 3]


class Unknown(Executor):
    """It says nothing of its workers."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_an_executor_that_does_not_say_how_many_workers_it_has():
    with pytest.raises(nr.errors.InvalidInput, match="give `in_flight=`"):
        quiet(score, SPACE, executor=Unknown())
    result = quiet(score, SPACE, executor=Unknown(), in_flight=3)
    assert [trial.asked_order for trial in result.trials[:4]] == [1, 2, 3, 5]  # three before the first answer


@pytest.mark.nightly
def test_processes_evaluate_what_can_be_imported():
    with ProcessPoolExecutor(2) as pool:
        result = quiet(score, SPACE, trials=6, executor=pool)
        assert len(result.trials) == 6
        with pytest.raises(nr.NoRegretError, match=r"cannot be sent to the processes of .*pickle"):
            quiet(lambda x, kind: x, SPACE, executor=pool)


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def raises_what_cannot_be_sent(x):
    if x > 0.5:
        raise Unpicklable(1, 2)
    return x


def dies(x):
    os._exit(1)


CALLS = []  # of a worker


def dies_at_the_second_call(x):
    CALLS.append(x)
    if len(CALLS) == 2:
        os._exit(1)
    return x


@pytest.mark.nightly
def test_errors_that_cannot_be_sent_back_and_workers_that_die():
    with ProcessPoolExecutor(1) as pool:
        result = quiet(raises_what_cannot_be_sent, trials=5, executor=pool)
        assert "Unpicklable: 1" in {row["reason"] for row in result.history}
    with ProcessPoolExecutor(1) as pool, pytest.raises(nr.NoRegretError, match="The executor broke"):
        quiet(dies, executor=pool)
    with ProcessPoolExecutor(1) as pool:
        result = quiet(dies_at_the_second_call, executor=pool)
    assert result.stopped.startswith("executor: it broke: BrokenProcessPool")
    assert [trial.state for trial in result.trials] == ["observed", "pending"]


# -- stopping and going on --------------------------------------------------------------------------------------------


def test_the_same_call_goes_on_and_a_finished_one_evaluates_nothing(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    calls = []

    def objective(x, kind):
        calls.append(x)
        return score(x, kind)

    policy = nr.auto(SPACE)  # a run of four would begin with fewer points
    straight = quiet(objective, SPACE, trials=9, policy=policy)
    calls.clear()
    for trials in (4, 9, 9):
        result = quiet(objective, SPACE, trials=trials, storage=storage, policy=policy)
    assert len(calls) == 9
    assert told(result) == told(straight)
    with pytest.raises(
        nr.errors.InvalidInput,
        match=r"parameters: domain.kind \(Choice then, nothing now\), domain.y \(nothing then, Int",
    ):
        quiet(lambda **_: 0.0, nr.Space(x=nr.Float(0, 1), y=nr.Int(0, 2)), storage=storage, name="objective")
    other = quiet(objective, nr.Space(kind=nr.Choice("b", "a"), x=nr.Float(0, 1)), trials=9, storage=storage)
    assert told(other) == told(straight)
    with pytest.raises(nr.errors.InvalidInput, match=r"other parameters: domain.x.high \(1.0 then, 2.0 now\)"):
        quiet(objective, nr.Space(x=nr.Float(0, 2), kind=nr.Choice("a", "b")), storage=storage)
    with pytest.raises(nr.errors.InvalidInput, match="other values: seed"):
        quiet(objective, SPACE, storage=storage, seed=1)
    with pytest.raises(nr.errors.InvalidInput, match="other values: goal"):
        nr.minimize(objective, SPACE, trials=9, storage=storage)


def test_a_study_is_named_after_its_objective():
    assert quiet(score, SPACE, trials=1).study.name == "score"
    assert quiet(partial(score, kind="a"), trials=1).study.name == "score"
    assert quiet(lambda x: x, trials=1).study.name == "maximize"


def test_an_interrupt_returns_the_result_so_far_and_loses_nothing(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    calls = []

    def objective(x, kind):
        calls.append(x)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return score(x, kind)

    result = quiet(objective, SPACE, trials=8, storage=storage)
    assert [row["state"] for row in result.history] == ["observed"] * 3 + ["pending"]
    assert result.stopped == "interrupted: by Ctrl-C after 3 of 8 trials; the same call goes on"
    assert f"stopped: {result.stopped}" in repr(result)
    result = quiet(objective, SPACE, trials=8, storage=storage)
    assert result.stopped == "trials"
    assert len(calls) == 9
    assert told(result) == told(quiet(score, SPACE, trials=8))


def test_an_interrupt_before_the_first_answer():
    def objective(x):
        raise KeyboardInterrupt

    result = quiet(objective)
    assert "none yet" in repr(result)
    with pytest.raises(nr.errors.TrialError, match="No trial has a value yet"):
        _ = result.best_value


def test_one_run_at_a_time_on_a_storage(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"

    def objective(x):
        with pytest.raises(nr.errors.StorageError, match="Another process is tuning"):
            quiet(score, trials=2, storage=storage, name="other")
        return x

    assert len(quiet(objective, trials=2, storage=storage).trials) == 2


SCRIPT = """
import os, signal, sys
from pathlib import Path
import nilregret as nr

calls = Path("calls")
def objective(x, kind):
    with calls.open("a") as log:
        log.write("x")
    if len(calls.read_text()) == int(os.environ.get("STOP_AT", "-1")):
        os.kill(os.getpid(), getattr(signal, os.environ["STOP_BY"]))
    return -(x - 0.4) ** 2 + (0.5 if kind == "b" else 0.0)

space = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"))
policy = nr.expected_improvement(space, nr.Matern(2.5, 0.5), noise=0.1)  # nothing is fitted: it is quick
storage = os.environ.get("STORAGE", "sqlite:///s.db")
result = nr.maximize(objective, space, trials=10, storage=storage, policy=policy)
print(result)
print([(t.number, t.point.tolist(), t.reward) for t in result.trials if t.reward is not None])
"""


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "kill"), reason="signals need a POSIX system")
def test_interrupted_and_killed_runs_end_as_one_that_was_not(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)

    def work(**environment):
        return subprocess.run(
            [sys.executable, "script.py"],
            env={**os.environ, **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    interrupted = work(STOP_AT="3", STOP_BY="SIGINT")
    assert interrupted.returncode == 0, interrupted.stderr
    assert "stopped: interrupted: by Ctrl-C after 2 of 10 trials" in interrupted.stdout
    assert "Stopped: interrupted" in interrupted.stderr
    killed = work(STOP_AT="7", STOP_BY="SIGKILL")
    assert killed.returncode == -9
    finished = work()
    assert finished.returncode == 0, finished.stderr
    straight = work(STORAGE="sqlite:///other.db")
    assert finished.stdout == straight.stdout
    assert (tmp_path / "calls").read_text() == "x" * (10 + 2 + 10)  # two were evaluated again


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nr.minimize(UNIT, score, trials=3), "`minimize` takes the objective first"),
        (lambda: nr.minimize(score, {"x": nr.Float(0, 1)}, trials=3), r"Write nr\.Space\(\*\*parameters\)"),
        (lambda: nr.minimize(score, [(0, 1)], trials=3), r"are nr\.Box\(lows, highs\)"),
        (lambda: nr.minimize(lambda a, b: a, nr.Box([0, 0], [1, 1]), trials=3), "by name, declare an nr.Space"),
        (lambda: nr.Choice(["a", "b"]), r"one by one: Choice\(\*options\)"),
        (lambda: nr.Space(x=(0, 1.5)), r"^Parameter `x` is \(0, 1.5\).* are nr\.Float\(0, 1.5\)\.$"),
        (lambda: nr.Space(x=(0, 3)), r"are nr\.Float\(0, 3\), whole ones nr\.Int\(0, 3\)\.$"),
        (lambda: nr.Space(x=["a", "b"]), r"nr\.Choice\('a', \.\.\.\)\.$"),
    ],
)
def test_what_is_written_at_a_first_attempt_is_answered_by_what_to_write(call, said):
    with pytest.raises(nr.errors.InvalidInput, match=said):
        call()


def test_numbers_that_are_no_shares_of_a_range_are_pointed_to_names():
    hours = nr.Study(nr.auto(UNIT, context=nr.Space(hour=nr.Float(0, 24))))
    with pytest.raises(nr.errors.InvalidInput, match=r'Write \{"hour": 9\}'):
        hours.ask([9])


def test_a_trial_says_of_itself_what_a_reader_asks_for():
    study = nr.Study(nr.auto(SPACE), seed=0)
    assert repr(study.add({"x": 0.5, "kind": "a"}, 2.0)) == (
        "Trial(0, observed, parameters={'x': 0.5, 'kind': 'a'}, reward=2.0)"
    )
    boxed = nr.Study(nr.auto(nr.Box([0, 0], [1, 1]), context=nr.Space(hour=nr.Float(0, 24))))
    assert repr(boxed.add([0.5, 1.0], 2.0, context={"hour": 9})) == (
        "Trial(0, observed, context={'hour': 9.0}, point=[0.5, 1.0], reward=2.0)"
    )
    assert repr(boxed.fail(boxed.ask({"hour": 3}), "late")).startswith(
        "Trial(1, failed, context={'hour': 3.0}, point=["
    )


def test_pictures_are_reached_through_the_package():
    assert callable(nr.plots.overview)


@pytest.mark.parametrize("name", ["sdt", "stdv", "sd"])
def test_an_entry_that_is_nearly_std_fails_its_trial(name):
    result = nr.maximize(
        lambda x: {"reward": x, name if x >= 0.5 else "time": 0.1},
        nr.Space(x=nr.Float(0, 1)), trials=6, progress=False,
    )  # fmt: skip
    reasons = {trial.reason for trial in result.trials if trial.state == "failed"}
    assert reasons == {f"its answer has the entry {name!r}, which nothing reads. Did you mean 'std'?"}
    limited = nr.maximize(
        lambda x: {"reward": x, name: 0.1}, nr.Space(x=nr.Float(0, 1)), trials=3, constraints=f"{name} <= 1",
        progress=False,
    )  # fmt: skip
    assert limited.best_trial.std is None
