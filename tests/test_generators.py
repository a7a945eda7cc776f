"""Objectives that yield their value after each step."""

import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, wraps

import pytest

import nilregret as nr
from nilregret.errors import InvalidInput
from nilregret.slots import described
from nilregret.tuning import loop, run_options

from .waiting import LONG

pytestmark = pytest.mark.usefixtures("few_draws")
UNIT = nr.Space(x=nr.Float(0, 1))


def curve(x, steps=5):
    for step in range(1, steps + 1):
        yield (x - 0.3) ** 2 + 1 / step


def quiet(objective, *, trials=5, **more):
    return nr.minimize(objective, UNIT, trials=trials, progress=False, **more)


def lengths(result):
    return [len(trial.curve) for trial in result.trials]


@described
@dataclass(frozen=True, kw_only=True)
class Scripted(nr.slots.Pruning):
    """Stops trials of odd numbers after two steps, or lets them wait until so many trials have finished."""

    finished: int = 0

    def verdict(self, courses):
        if courses.this.number % 2 == 0 or courses.step < 2:
            return "go"
        return "stop" if not self.finished else "go" if len(courses.finished) >= self.finished else "wait"


class Trained:
    def __call__(self, x):
        yield from curve(x)

    def method(self, x):
        yield from curve(x)


@wraps(curve)
def wrapped(**given):
    return curve(**given)


@pytest.mark.parametrize(
    "objective",
    [curve, partial(curve, steps=5), Trained(), Trained().method, wrapped, lambda x: curve(x)],
    ids=["function", "partial", "object", "method", "wrapper", "lambda"],
)
def test_a_generator_works_and_its_curve_is_on_record(objective):
    result = quiet(objective, trials=3, name="any")
    assert [trial.state for trial in result.trials] == ["observed"] * 3
    for trial in result.trials:
        assert trial.steps == list(enumerate(curve(trial.parameters["x"]), 1))
        assert trial.reward == trial.steps[-1][1]
    plain = quiet(lambda x: (x - 0.3) ** 2 + 1 / 5, trials=3)
    assert [trial.point for trial in plain.trials] == [trial.point for trial in result.trials]
    assert result.history[0]["steps"] == result.trials[0].steps
    assert "steps" not in plain.history[0]
    table = result.to_pandas()
    assert table["last_step"].tolist() == [5, 5, 5]
    assert table["last_value"].tolist() == [trial.reward for trial in result.trials]


def test_the_entries_of_the_last_answer_count():
    def trained(x):
        for step in range(3):
            yield {"reward": x + step, "latency": 10.0 * step, "std": 0.1, "epoch": step} if step else x

    result = quiet(trained, trials=3, constraints="latency <= 15")
    (first, *_) = result.trials
    assert first.metrics == {"latency": 20.0, "epoch": 2.0}
    assert first.constraints.tolist() == [5.0]
    assert first.std == 0.1
    assert [value - first.parameters["x"] for _, value in first.steps] == pytest.approx([0.0, 1.0, 2.0])

    def told(x):
        yield x
        yield x, [0.5]

    assert quiet(told, trials=2, constraints=1).trials[0].constraints.tolist() == [0.5]


def test_the_best_value_of_a_curve_may_count():
    def overfitted(x):
        yield from (x + 3.0, x + 1.0, x + 2.0)

    best = quiet(overfitted, of="best", steps=3)
    assert best.study.policy.pruning == nr.slots.Never(steps=3, of="best")
    assert [trial.reward for trial in best.trials] == [trial.steps[1][1] for trial in best.trials]
    highest = nr.maximize(overfitted, UNIT, of="best", trials=2, progress=False)
    assert [trial.reward for trial in highest.trials] == [trial.steps[0][1] for trial in highest.trials]


def test_a_stopped_generator_is_closed_and_counted():
    closed = []

    def trained(x):
        try:
            yield from curve(x)
        finally:
            closed.append(nr.current_trial().number)

    ended = []
    result = quiet(trained, trials=6, pruning=Scripted(steps=5), callbacks=[lambda _, trial: ended.append(trial.state)])
    assert lengths(result) == [5, 2, 5, 2, 5, 2]
    assert ended == [trial.state for trial in result.trials] == ["observed", "stopped"] * 3
    assert closed == list(range(6))
    assert result.best_trial.state == "observed"
    assert repr(result).startswith("Result of 'trained' (minimize): 6 trials, 3 stopped\n")
    assert "\n  pruning: 3 trials were stopped. None ran on" in repr(result)
    assert result.history[1]["reason"] == result.trials[1].reason
    assert result.history[1]["value"] is None
    assert result.stopped == "trials"


def test_a_paused_generator_goes_on_where_it_was():
    steps = []

    def trained(x):
        number = nr.current_trial().number
        for step, value in enumerate(curve(x), 1):
            steps.append((number, step))
            yield value

    result = quiet(trained, trials=4, pruning=Scripted(steps=5, finished=2))
    assert [trial.state for trial in result.trials] == ["observed"] * 4
    assert lengths(result) == [5] * 4
    runs = [number for i, (number, _) in enumerate(steps) if i == 0 or steps[i - 1][0] != number]
    assert runs == [0, 1, 2, 1, 3]  # Trial 1 waits until trial 2 has finished, and goes on before trial 3 begins.
    assert len(steps) == 20


def test_what_still_waits_at_the_end_is_closed_and_stopped():
    closed = []

    def trained(x):
        try:
            yield from curve(x)
        finally:
            closed.append(nr.current_trial().number)

    result = quiet(trained, trials=4, pruning=Scripted(steps=5, finished=9))
    assert [trial.state for trial in result.trials] == ["observed", "stopped"] * 2
    assert closed == [0, 2, 1, 3]
    assert lengths(result) == [5, 2, 5, 2]
    assert [report.verdict for report in result.trials[1].curve] == ["go", "wait"]


@pytest.mark.parametrize("what", ["interrupt", "error"])
def test_an_interrupt_closes_what_waits_and_it_goes_on_later(what, tmp_path):
    storage, closed, begun, breaks = f"sqlite:///{tmp_path}/s.db", [], [], [True]

    def trained(x):
        begun.append(nr.current_trial().number)
        try:
            for step, value in enumerate(curve(x), 1):
                if breaks and begun[-1] == 2 and step == 3:
                    raise KeyboardInterrupt
                yield value
        finally:
            closed.append(nr.current_trial().number)

    def mistaken(_, trial):
        raise ZeroDivisionError(trial.number)

    asked = {"trials": 6, "pruning": Scripted(steps=5, finished=3), "storage": storage}
    if what == "interrupt":
        result = quiet(trained, **asked)
        assert result.stopped.startswith("interrupted: by Ctrl-C after 1 of 6 trials")
        assert sorted(closed) == [0, 1, 2]
        assert lengths(result) == [5, 2, 2]
    else:
        with pytest.raises(ZeroDivisionError):
            quiet(trained, **asked, callbacks=[mistaken])
        assert closed == begun == [0]
    breaks.clear()
    begun.clear()
    again = quiet(trained, **asked)
    whole = quiet(trained, **asked | {"storage": None})
    assert [trial.steps for trial in again.trials] == [trial.steps for trial in whole.trials]
    assert [trial.state for trial in again.trials] == [trial.state for trial in whole.trials]
    if what == "interrupt":
        assert begun[:3] == [2, 3, 4]  # Trial 1 waits on, at no cost, until three have finished.


@pytest.mark.parametrize("place", ["report", "stop"])
def test_a_run_that_is_killed_half_way_through_a_trial_goes_on_as_one_that_was_not(place, tmp_path, monkeypatch):
    storage, calls = f"sqlite:///{tmp_path}/s.db", []
    asked = {"trials": 5, "pruning": Scripted(steps=5), "storage": storage}

    class Killed(BaseException):
        pass

    act = nr.Study.stop if place == "stop" else loop.Loop._report

    def dying(*given):
        calls.append(given)
        if len(calls) == {"report": 9, "stop": 1}[place]:
            raise Killed
        return act(*given)

    with monkeypatch.context() as patch:
        patch.setattr(*((nr.Study, "stop", dying) if place == "stop" else (loop.Loop, "_report", dying)))
        with pytest.raises(Killed):
            quiet(curve, **asked)
    begun = []

    def counted(x):
        begun.append(nr.current_trial().number)
        yield from curve(x)

    again = quiet(counted, **asked, name="curve")
    whole = quiet(curve, **asked | {"storage": None})
    assert [trial.steps for trial in again.trials] == [trial.steps for trial in whole.trials]
    assert [trial.state for trial in again.trials] == [trial.state for trial in whole.trials]
    assert begun == [2, 3, 4]


FORMS = [
    ([], "it yielded nothing, and a generator must `yield` its value after each step"),
    ([0.5, None], "after step 1: its answer is not a number but None"),
    ([0.5, "bad"], "after step 1: its answer is not a number: 'bad'"),
    ([{"loss": 1.0}], "its answer has no entry 'reward', only 'loss'"),
    ([0.5, 0.4, 0.3], "`step` is 3, and a trial has 2 steps"),
]


@pytest.mark.parametrize(("answers", "said"), FORMS)
def test_a_mistake_of_form_ends_the_run_and_the_curve_stays(answers, said, tmp_path):
    storage, mend = f"sqlite:///{tmp_path}/s.db", []

    def trained(x):
        yield from [x, x] if mend else answers

    with pytest.raises(InvalidInput, match="The run ends at trial 0: " + said.replace("(", "\\(")):
        quiet(trained, steps=2, storage=storage, trials=2)
    (trial,) = nr.Study.open(storage=storage, name="trained").trials
    assert trial.state == "pending"
    assert [value for _, value in trial.steps] == [each for each in answers[:2] if isinstance(each, float)]
    mend.append(True)
    done = quiet(trained, steps=2, storage=storage, trials=2)
    assert [trial.state for trial in done.trials] == ["observed"] * 2
    # The same mistake after a usable answer fails its trial alone, and its curve stays.
    mend.clear()
    more = quiet(lambda x: iter_of(answers if nr.current_trial().number == 1 else [x]), steps=2, trials=3)
    assert [trial.state for trial in more.trials] == ["observed", "failed", "observed"]
    assert more.trials[1].reason.startswith(said.split("(")[0])
    assert len(more.trials[1].curve) == len(trial.curve)


def iter_of(values):
    yield from values


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e300, ZeroDivisionError("by 0")])
def test_nan_or_an_error_in_the_middle_fails_the_trial_and_the_curve_stays(bad):
    def trained(x):
        yield x
        yield x
        if nr.current_trial().number == 1:
            if isinstance(bad, Exception):
                raise bad
            yield bad
        yield x

    result = quiet(trained, trials=3)
    assert [trial.state for trial in result.trials] == ["observed", "failed", "observed"]
    assert lengths(result) == [3, 2, 3]


def test_a_returned_value_and_several_objectives_are_no_curve():
    def returning(x):
        yield x
        return x

    with pytest.raises(InvalidInput, match="after its last step, which nothing reads: `yield` it"):
        quiet(returning)

    def both(x):
        yield {"a": x, "b": -x}

    with pytest.raises(InvalidInput, match="a curve is of one objective: `return` the values at the end"):
        nr.minimize(both, UNIT, trials=3, objectives=["a", "b"], progress=False)

    async def later(x):
        yield x

    with pytest.raises(InvalidInput, match="`async` function"):
        quiet(later)


def test_a_generator_that_does_not_close_properly_is_a_warning():
    def stubborn(x):
        try:
            yield from curve(x)
        finally:
            raise OSError("disk full")

    with pytest.warns(UserWarning, match="The generator of trial 1 raised an error when it was closed: .*disk full"):
        result = quiet(stubborn_but_once(stubborn), trials=3, pruning=Scripted(steps=5))
    assert [trial.state for trial in result.trials] == ["observed", "stopped", "observed"]


def stubborn_but_once(stubborn):
    return lambda x: stubborn(x) if nr.current_trial().number == 1 else curve(x)


def test_a_trial_that_is_stopped_by_hand_ends_there(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"

    def trained(x):
        for step, value in enumerate(curve(x), 1):
            if nr.current_trial().number == 1 and step == 3:
                nr.Study.open(storage=storage, name="trained").stop(1, "seen on the dashboard")
            yield value

    result = quiet(trained, trials=3, storage=storage)
    assert [trial.state for trial in result.trials] == ["observed", "stopped", "observed"]
    assert result.trials[1].reason == "seen on the dashboard"
    assert lengths(result) == [5, 2, 5]

    def at_the_end(x):
        yield x
        if nr.current_trial().number == 1:
            nr.Study.open(storage=storage, name="at_the_end").stop(1, "by hand")

    result = quiet(at_the_end, trials=3, storage=storage)
    assert [trial.state for trial in result.trials] == ["observed", "stopped", "observed"]


def test_threads_report_and_pause():
    threads, closed = set(), []

    def trained(x):
        threads.add(threading.get_ident())
        try:
            yield from curve(x)
        finally:
            closed.append(nr.current_trial().number)

    with ThreadPoolExecutor(3) as executor:
        result = quiet(trained, trials=9, pruning=Scripted(steps=5, finished=2), executor=executor)
    assert lengths(result) == [5] * 9
    assert threading.get_ident() not in threads
    assert sorted(closed) == list(range(9))


def test_an_interrupt_closes_generators_in_other_threads_at_their_next_step():
    begun, over, closed = threading.Event(), threading.Event(), threading.Event()

    def trained(x):
        try:
            yield x
            if nr.current_trial().number == 1:
                begun.set()
                over.wait(LONG)
            else:
                begun.wait(LONG)
            yield x
            yield x
        finally:
            if nr.current_trial().number == 1:
                closed.set()

    def interrupt(_, trial):
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as executor:
        result = quiet(trained, executor=executor, callbacks=[interrupt])
        assert result.stopped.startswith("interrupted: ")
        assert not closed.is_set()
        over.set()
        assert closed.wait(LONG)
    assert result.study.trials[1].state == "pending"
    assert len(result.study.trials[1].curve) == 1


def test_an_error_of_a_report_in_a_thread_ends_the_run(monkeypatch):
    def away(self, step, value):
        raise nr.errors.StorageError("The storage is away.")

    monkeypatch.setattr("nilregret.study.inputs.Inputs.report", away)
    with ThreadPoolExecutor(2) as executor, pytest.raises(nr.errors.StorageError, match="is away"):
        quiet(curve, executor=executor)


def test_processes_send_the_curve_at_its_end_and_take_no_rule():
    class Inline(ThreadPoolExecutor):
        pass

    with pytest.MonkeyPatch.context() as patch, Inline(1) as executor:
        patch.setattr(loop, "ThreadPoolExecutor", ProcessPoolExecutor)
        patch.setattr(run_options, "_dumps", lambda _: None)
        result = quiet(curve, executor=executor)
        assert lengths(result) == [5] * 5
        assert result.trials[0].reward == result.trials[0].steps[-1][1]
        with pytest.raises(InvalidInput, match="`pruning` decides after each step, and the processes of `executor`"):
            quiet(curve, executor=executor, pruning="median")
        with pytest.raises(InvalidInput, match="`step` is 3, and a trial has 2 steps"):
            quiet(curve, executor=executor, steps=2)


@pytest.mark.nightly
def test_processes_send_curves():
    with ProcessPoolExecutor(2) as executor:
        result = quiet(curve, executor=executor)
    assert lengths(result) == [5] * 5


@pytest.mark.nightly
@pytest.mark.parametrize("threads", [1, 2])
def test_a_time_limit_is_for_all_steps_and_pruning_works_beside_it(threads, tmp_path):
    def trained(x):
        import os
        import time

        number = nr.current_trial().number
        try:
            for step, value in enumerate(curve(x), 1):
                if number == 2 and step == 4:
                    time.sleep(600)
                if number == 4 and step == 3:
                    os._exit(3)
                yield value
        finally:
            (tmp_path / str(number)).touch()

    with ThreadPoolExecutor(threads) as executor:
        many = executor if threads > 1 else None
        result = quiet(trained, trials=7, pruning=Scripted(steps=5, finished=9), timeout=5.0, executor=many)
    assert lengths(result) == [5, 2, 3, 2, 2, 2, 5]
    states = ["observed", "stopped", "failed", "stopped", "failed", "stopped", "observed"]
    assert [trial.state for trial in result.trials] == states  # A process cannot wait, so its trial is stopped.
    assert result.trials[2].reason == "no answer within 5 s"
    assert result.trials[4].reason.startswith("its process ended without an answer")
    assert {int(path.name) for path in tmp_path.iterdir()} == {0, 1, 3, 5, 6}


def test_the_rule_is_in_the_policy(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    first = quiet(curve, pruning="median", steps=5, storage=storage)
    assert first.study.policy.pruning == nr.slots.Median(steps=5)
    again = {"storage": storage, "trials": 6}
    assert len(quiet(curve, **again).trials) == 6
    assert len(quiet(curve, **again, pruning="median", steps=5, of="last").trials) == 6
    for other in ({"pruning": "halving"}, {"steps": 6}, {"of": "best"}, {"pruning": nr.slots.Median(steps=9)}):
        with pytest.raises(InvalidInput, match=r"`policy` has the pruning rule Median.*make it by"):
            quiet(curve, **again, **other)
    with pytest.raises(InvalidInput, match="`policy` has the pruning rule Never"):
        quiet(curve, policy=nr.auto(UNIT), pruning="median")
    with pytest.raises(InvalidInput, match="`policy` has the pruning rule Never"):
        nr.run(nr.Study(nr.auto(UNIT)), curve, trials=2, pruning="median", progress=False)
    study = nr.Study(nr.auto(UNIT, pruning=Scripted(steps=5)), goal="minimize")
    assert lengths(nr.run(study, curve, trials=4, steps=5, progress=False)) == [5, 2, 5, 2]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"pruning": "mean"}, "`pruning`.*'mean'"),
        ({"pruning": 3}, "`pruning` is 3: it must be a part of"),
        ({"steps": 0}, "`steps` is 0"),
        ({"steps": 2.5}, "`steps` must be a whole number, not 2.5"),
        ({"of": "first"}, "`of` .*'first'"),
        ({"steps": 4, "pruning": nr.slots.Median(steps=5)}, "`steps` is 4, and the rule in `pruning` has 5: say it"),
        ({"pruning": "median", "objectives": ["a", "b"]}, "`pruning` compares curves of one value"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_the_first_trial(asked, said):
    with pytest.raises(InvalidInput, match=said):
        quiet(lambda x: 1 / 0, **asked)


def test_a_rule_whose_trials_never_report_is_a_warning():
    with pytest.warns(UserWarning, match="`pruning` and `steps` are for trials that report"):
        assert len(quiet(lambda x: x, pruning="median").trials) == 5


def test_the_progress_counts_stopped_trials(capsys):
    nr.minimize(curve, UNIT, trials=4, pruning=Scripted(steps=5))
    assert capsys.readouterr().err.splitlines()[-1].endswith(", 2 stopped")
