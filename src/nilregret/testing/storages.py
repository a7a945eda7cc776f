"""Checks of a storage by studies that are stored there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..algorithms import gp_ucb, gp_ucb_noisy_constraints
from ..algorithms.auto import auto
from ..domains.domain import Arms, Space
from ..domains.parameters import Choice, Float, Int
from ..errors import InvalidInput, NoRegretError, StorageError, TrialError
from ..kernels import Matern
from ..policy.policy import Policy
from ..slots.refit import Refit
from ..storage.record import Trial
from ..study.study import Study
from .driver import promise, refused

THREADS, EACH = 3, 4  # number of threads, and of trials in each


def check_storage(make: Callable[[], Any]) -> None:
    """Raises an `AssertionError` if a storage breaks a promise.

    A study is created under a name, opened again by name alone, and resumed with an equal policy, goal and seed.
    RepeatedPlays `Study` objects and threads share a study at once.

    Args:
        make: returns the argument of `Study(storage=...)`, a new and empty place at each call. This is the URL of a
            missing file or of an empty database, or a `nilregret.storage.Storage`. It is called some ten times, and the
            caller cleans up.
    """
    first, second = make(), make()
    Study(_arms(), storage=first, name="here")
    promise(
        refused(lambda: Study.open(storage=second, name="here"), NoRegretError),
        "`make` gave the same place twice, or a study shows up in a place where it was not made.",
    )
    _check_comes_back(make())
    _check_apart(make())
    _check_resumed(make())
    _check_shared(make())
    _check_threads(make())
    _check_names(make())
    _check_states(make())
    _check_reports(make())
    _check_batches(make())
    _check_closing(make())
    _check_moving(make())


def _arms() -> Policy:
    return gp_ucb(Arms.grid(0, 1, 12), Matern(2.5, 0.2), noise=0.1)


def _space() -> Policy:
    space = Space(x=Float(1e-3, 10.0, log=True), kind=Choice("a", "b", 3), n=Int(1, 4))
    return gp_ucb(space.grid(3), Matern(2.5, 0.5), noise=0.1)


def _keys(trials: Any) -> list[tuple[Any, ...]]:
    return [(trial, trial.parameters, trial.context_parameters) for trial in trials]


def _check_comes_back(storage: Any) -> None:
    """Checks that trials of all kinds are stored to the last bit."""
    study = Study(_space(), seed=2**70, storage=storage, name="everything", goal="minimize", about={"units": "s"})
    first, _, third = study.ask(count=3)
    study.tell(third, 0.1 + 0.2)
    study.fail(first, "nonsense: 'quoted' \N{SNOWMAN} \udcff")
    study.add({"x": 10.0, "kind": 3, "n": 2}, -1e-300)
    again = Study.open(storage=storage, name="everything")
    promise(again.policy == study.policy, "The policy that comes out of the storage is not the one that went in.")
    promise(again.goal == "minimize", f"A study that minimises comes out of the storage with goal {again.goal!r}.")
    promise(again.seed == 2**70, f"The seed 2**70 comes back as {again.seed}: it is a whole number of any size.")
    promise(again.about == {"units": "s"}, f"The facts about a study come back as {again.about}.")
    promise(
        _keys(again.trials) == _keys(study.trials),
        "The trials that come out of the storage are not those that went in: numbers keep every bit, text every "
        f"letter, and what is missing stays missing. {list(study.trials)} came back as {list(again.trials)}.",
    )
    promise(
        again.ask().point.tolist() == study.replica.state.decide().point.tolist(), "A study resumed decides otherwise."
    )
    _check_runs(storage)
    _check_fits(storage)
    _check_objectives(storage)
    contexts = gp_ucb(Arms.grid(0, 1, 5), Matern(2.5, (0.5, 0.2)), noise=0.1, context=Arms(np.array([[0.25], [1 / 3]])))
    constrained = gp_ucb_noisy_constraints(
        Arms.grid(0, 1, 5), Matern(2.5, 0.2), noise=0.1, norm_bound=1.0, epoch=2, epochs=2, constraints=2
    )
    for name, policy, context, values in (("c", contexts, [1 / 3], None), ("g", constrained, None, [0.1, -1 / 3])):
        study = Study(policy, storage=storage, name=name)
        study.tell(study.ask(context), 1 / 3, constraints=values)
        study.ask(context)
        promise(
            _keys(Study.open(storage=storage, name=name).trials) == _keys(study.trials),
            "Contexts or constraint values do not come out of the storage as they went in.",
        )


def _check_runs(storage: Any) -> None:
    """Checks trials with several plays, and their corrected rewards."""
    lazy = _arms().using(switching="lazy", pending="hallucinate")
    study = Study(lazy, storage=storage, name="runs", propensities=True)
    trial = study.ask()
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, [1 / 3 + 0.1 * i * (-1) ** i for i in range(trial.repeats)], std=1 / 7)
    study.tell(trial, [0.1] * max(trial.repeats - 1, 1), std=0.0, metrics={"error": 1 / 7, "epochs": 3}, revise=True)
    study.tell(trial, [0.2] * max(trial.repeats - 1, 1), metrics={"epochs": 4}, revise=True)
    study.ask()
    promise(
        _keys(Study.open(storage=storage, name="runs").trials) == _keys(study.trials),
        "Trials that are to be played several times do not come out of the storage as they went in: `repeats`, "
        "`propensity`, and `plays`, `std` and metrics of answers and of those that were corrected.",
    )


def _check_objectives(storage: Any) -> None:
    """Checks trials of several objectives, and their corrected values."""
    policy = auto(Arms.grid(0, 1, 5), objectives=("loss", "recall"), constraints=1)
    study = Study(policy, storage=storage, name="front", goal=("minimize", "maximize"))
    trials = study.ask(count=4)
    study.tell(trials[0], (1 / 3, 0.1 + 0.2), std=(1 / 7, None), constraints=[-1 / 3])
    study.tell(trials[0], {"recall": -1e-300, "loss": 2}, std={"recall": 0.0}, constraints=[1 / 3], revise=True)
    study.tell(trials[1], (1.0, 2.0), constraints=[0.0], metrics={"epochs": 3})
    study.fail(trials[1], "it was the wrong file", revise=True)
    study.fail(trials[2], "it broke")
    again = Study.open(storage=storage, name="front")
    promise(
        again.goals == study.goals and _keys(again.trials) == _keys(study.trials),
        "Trials of several objectives do not come out of the storage as they went in: `others`, also of answers that "
        "were corrected.",
    )


def _check_fits(storage: Any) -> None:
    """Checks that fits are stored with the decision that they serve, and with no other."""
    refit = Refit(every=3, restarts=0, warp="half-rank")
    study = Study(_arms().using(refit=refit), storage=storage, name="fits")
    for number in range(7):
        study.tell(study.ask(), 1 / 3 + 0.1 * number * (-1) ** number)
    study.ask()
    again = Study.open(storage=storage, name="fits")
    promise(len(study.fits) == 2 and again.fits == study.fits, "Fits do not come out of the storage as they went in.")
    promise(
        [trial.fits for trial in again.trials] == [trial.fits for trial in study.trials],
        "Of a decision with which no fit came into force the storage says otherwise: `fits` is (), and not None.",
    )


def _check_apart(storage: Any) -> None:
    one, two = (Study(_arms(), storage=storage, name=name, seed=seed) for name, seed in (("one", 0), ("two", 1)))
    one.tell(one.ask(), 1.0)
    promise(len(two.trials) == 0, "A trial of one study shows up in another one of the same storage.")
    promise(len(Study.open(storage=storage, name="one").trials) == 1, "A study does not have the trial it was told.")
    promise(
        refused(lambda: Study.open(storage=storage, name="three"), InvalidInput),
        "A study that was never made can be opened: `Study.open` refuses an unknown name by an `InvalidInput`.",
    )


def _check_resumed(storage: Any) -> None:
    """Checks that a name resumes the same study or is refused."""
    Study(_arms(), storage=storage, about={"units": "kg"})
    other = gp_ucb(Arms.grid(0, 1, 12), Matern(1.5, 0.2), noise=0.1)
    for what, call in {
        "policy": lambda: Study(other, storage=storage, about={"units": "kg"}),
        "goal": lambda: Study(_arms(), goal="minimize", storage=storage, about={"units": "kg"}),
        "seed": lambda: Study(_arms(), seed=1, storage=storage, about={"units": "kg"}),
        "facts": lambda: Study(_arms(), storage=storage, about={"units": "g"}),
    }.items():
        promise(
            refused(call, InvalidInput),
            f"A study can be resumed with another {what}: the storage does not keep what it was made with.",
        )


def _check_shared(storage: Any) -> None:
    """Checks that two objects of one study see each other's trials in one order of events."""
    left, right = Study(_arms(), storage=storage), Study(_arms(), storage=storage)
    for number in range(8):
        asker, teller = (left, right) if number % 2 else (right, left)
        trial = asker.ask()
        promise(trial.number == number, f"Trial {number} was given the number {trial.number} by a second study object.")
        teller.tell(trial, float(trial.point[0]))
    promise(np.array_equal(left.predict(), right.predict()), "Two objects of one study predict otherwise.")
    for study in (left, right):
        promise(
            refused(lambda study=study: study.tell(3, -7.0), TrialError),  # type: ignore[misc]
            "A trial can be told twice: the second teller does not see that the first was there.",
        )
    orders = sorted(_orders(left.trials))
    promise(orders == list(range(1, 17)), f"16 events have the orders {orders}: they are numbered without gaps.")


def _orders(trials: Any) -> list[int]:
    return [order for trial in trials for order in {trial.asked_order, trial.told_order} if order is not None]


def _check_threads(storage: Any) -> None:
    study, failures = Study(_arms(), storage=storage), []

    def work() -> None:
        try:
            mine = Study(_arms(), storage=storage)
            for _ in range(EACH):
                trial: Trial = mine.ask()
                mine.tell(trial, float(trial.point[0]))
        except Exception as error:  # of whatever kind: it is reported below
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    promise(not failures, f"{THREADS} threads that share a study failed: {failures[:1]!r}.")
    trials = study.trials
    promise(
        [trial.number for trial in trials] == list(range(THREADS * EACH))
        and sorted(_orders(trials)) == list(range(1, 2 * THREADS * EACH + 1)),
        f"After {THREADS} threads asked and told {EACH} trials each, the record has {list(trials)}: asking and "
        "telling is "
        "one transaction, in which nobody else writes.",
    )


def _check_names(storage: Any) -> None:
    for name in ("a b", "x'; DROP TABLE trials; --", "50%", "\N{SNOWMAN}", "A", "a"):
        study = Study(_arms(), storage=storage, name=name)
        promise(
            len(study.trials) == 0, f"The name {name!r} leads to another study: names are told apart to the letter."
        )
        study.ask()
        promise(len(Study.open(storage=storage, name=name).trials) == 1, f"The study {name!r} is not found again.")


def _check_states(storage: Any) -> None:
    """Checks leases, abandoned trials, late rewards and corrections."""
    now = [1e9]
    study = Study(_arms(), storage=storage, name="states", clock=lambda: now[0])
    leased, left, late, wrong, failed = (*study.ask(count=2, lease=60), *study.ask(count=3))
    study.abandon(left, "nonsense: \N{SNOWMAN} 'quoted'")
    study.abandon(late)
    study.tell(late, 1 / 3)
    study.tell(study.tell(wrong, 1.0), 2 / 3, revise=True)
    study.tell(study.tell(wrong, 2 / 3), 0.1, revise=True)
    study.fail(failed, "too soon")
    study.tell(failed, 0.2, revise=True)
    now[0] += 61.0
    study.ask()
    states = [trial.state for trial in study.trials]
    wanted = ["abandoned", "abandoned", "observed", "observed", "observed", "pending"]
    promise(states == wanted, f"Trials are {states}, and should be {wanted}: a lease ran out, and answers came.")
    again = Study.open(storage=storage, name="states", clock=lambda: now[0])
    promise(
        _keys(again.trials) == _keys(study.trials),
        "Leases, trials that were abandoned, and corrections do not come out of the storage as they went in: "
        f"{list(study.trials)} came back as {list(again.trials)}.",
    )
    trials = again.trials
    promise(trials[2].late and not trials[3].late, "An answer that came after its trial was abandoned is not marked.")
    told = [answer.reward for answer in trials[3].corrected]
    promise(told == [1.0, 2 / 3], f"Of an answer that was corrected twice what was told before comes back as {told}.")
    promise(np.array_equal(again.predict(), study.predict()), "A study with corrections predicts otherwise, reopened.")
    study.tell(leased, 0.5)
    promise(again.trials[0].late, "What one object of a study was told late another one does not see.")
    study.tell(left, 0.25)
    study.tell(0, 0.75, revise=True)
    promise(np.array_equal(again.predict(), study.predict()), "What one object corrects another one does not see.")
    happened = sorted(order for trial in again.trials for _, order in trial.events())
    promise(happened == list(range(1, len(happened) + 1)), f"Events have the orders {happened}: there are gaps.")


def _check_reports(storage: Any) -> None:
    """Checks that curves and stopped trials come back. A storage need not keep them (`KeepsSteps`)."""
    study, other = Study(_arms(), storage=storage), Study(_arms(), storage=storage)
    first, second = study.ask(count=2)
    try:
        study.report(first, 1, 1 / 3)
    except NoRegretError as error:
        promise(type(error) is NoRegretError, f"A report is refused: {error}")
        return
    other.report(second, 7, 0.1)
    study.report(first, 10**12, 2 / 3)
    study.stop(first)
    study.tell(second, 0.5)
    again, keys = Study.open(storage=storage), _keys(study.trials)
    promise(_keys(other.trials) == keys, "What one object of a study reports another one does not see.")
    promise(_keys(again.trials) == keys, f"{list(study.trials)} came back as {list(again.trials)}.")
    promise(
        np.array_equal(again.predict(), study.predict()), "A study with stopped trials predicts otherwise, reopened."
    )


def _check_batches(storage: Any) -> None:
    """Checks that trials added at once are stored in one transaction, all or none."""
    study, other = Study(_arms(), storage=storage), Study(_arms(), storage=storage)
    trials = study.ask(count=20)
    promise(list(other.trials) == trials, "Of trials asked for at once another object of the study does not see all.")
    answers = [(trial.number, float(trial.point[0])) for trial in trials]
    promise(
        refused(lambda: study.tell_many([*answers, (20, 0.0)]), TrialError)
        and all(trial.state == "pending" for trial in Study.open(storage=storage).trials),
        "Of answers told at once, one of which is refused, others are recorded: an error leaves no trace.",
    )
    other.tell_many(reversed(answers))
    promise(study.tell_many(answers) == list(other.trials), "Answers told again are not the ones that were recorded.")
    promise(np.array_equal(study.predict(), other.predict()), "Two objects of one study predict otherwise.")


def _check_closing(storage: Any) -> None:
    with Study(_arms(), storage=storage) as study:
        trial = study.ask()
    study.tell(trial, 1.0)
    study.close()
    promise(Study.open(storage=storage).trials[0].reward == 1.0, "A study that was closed does not go on.")


def _check_moving(storage: Any) -> None:
    """Checks renamed and deleted studies."""
    from ..storage.sql import opened

    place = opened(storage)
    one, other = Study(_arms(), storage=storage, name="one"), Study(_arms(), storage=storage, name="other", seed=1)
    one.ask()
    promise(refused(lambda: place.rename("one", "other"), InvalidInput), "Two studies can have one name.")
    promise(refused(lambda: place.rename("none", "new"), InvalidInput), "A study that there is not can be renamed.")
    bad: Any
    for bad in ("", " ", "a\0b", "\ud800", 3, None):
        promise(refused(partial(place.rename, "one", bad), InvalidInput), f"A study can be named {bad!r}.")
        promise(place.find(bad) is None, f"There is a study named {bad!r}.")
    place.rename("one", "new")
    promise(place.names() == ["new", "other"] or place.names() == ["other", "new"], "A renamed study is not listed.")
    one.tell(0, 1.0)
    promise(len(Study.open(storage=storage, name="new").trials) == 1, "A renamed study is not found by its new name.")
    place.delete("new")
    promise(refused(lambda: place.delete("new"), InvalidInput), "A study that there is not can be deleted.")
    promise(
        refused(one.ask, StorageError) and refused(lambda: one.trials, StorageError),
        "A study that was deleted under a worker goes on as if it were there.",
    )
    other.ask()
    promise(place.names() == ["other"] and len(other.trials) == 1, "With one study another one went.")
    promise(len(Study(_arms(), storage=storage, name="new").trials) == 0, "A deleted study's trials come back.")
