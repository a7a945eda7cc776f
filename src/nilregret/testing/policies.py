"""Checks that decisions depend only on policy, seed and record, and that parts keep their promises."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..policy.policy import Policy
from ..storage.record import Trial
from ..study.study import Study
from .driver import Driver, promise, same
from .parts import check_belief, check_confidence, check_explore, check_memory, check_pending, check_score

REMEMBERS = (
    "Usually a part remembers something outside its description: what it learns during a run belongs into an object "
    "that it makes afresh (`Memory.watch`, `Objective.begin`, `Confidence.guess`), random numbers come from the "
    "`randomness` that it is given, and the time from the trials."
)


def check_policy(
    policy: Policy, *, rounds: int = 18, seed: int = 0, reward: Callable[[Trial], float] | None = None
) -> None:
    """Raises an `AssertionError` if a policy, or a part in one of its slots, breaks a promise.

    Plays some rounds on the domain of the policy, with rewards at once, late, out of order and never, and with
    failures. Contexts and constraint values are included if the policy has them. The studies are in memory and in an
    SQLite file in a temporary folder. The check takes seconds. Errors of the parts are not caught.

    Args:
        policy: any policy. Your own parts are put into it by `policy.using(memory=..., score=...)`.
        rounds: number of rounds, at least 10. A part that acts later needs more.
        seed: seed of the studies.
        reward: returns the reward of a trial. The default is waves about the prior mean.
    """
    promise(isinstance(policy, Policy), f"This is no `Policy`: {policy!r}.")
    promise(rounds >= 10, "A check of less than 10 rounds would not see much: give `rounds` >= 10.")
    check_description(policy)
    check_memory(policy.memory, 2 * rounds)
    driver = Driver(policy, seed=seed, reward=reward)
    check_explore(policy.explore, rounds, policy.domain, driver.probes, driver.context(0))
    check_score(driver, 0)
    study = driver.play(driver.study(), 0, rounds)
    seen = driver.seen(study, rounds)
    _check_asking(driver, study, rounds)
    check_belief(study)
    check_pending(study)
    check_confidence(study, driver.probes, driver.context(rounds))
    check_score(driver, rounds // 2)
    _check_again(driver, study, seen, rounds)
    _check_looking(driver, study, seen, rounds)
    _check_reopening(driver, study, seen, rounds)
    _check_order(driver)
    _check_available(driver, rounds)


def check_description(policy: Policy) -> None:
    """Checks that a policy is hashable, frozen, and equal after a round trip through JSON."""
    text = policy.to_json()
    again = Policy.from_json(text)
    why = "Every field of a described part is one of its description; what is worked out is `field(init=False)`."
    promise(again == policy, f"The policy that comes back from its JSON is another one: {again!r}. {why}")
    promise(again.to_json() == text, f"The policy that comes back from its JSON is written otherwise. {why}")
    try:
        equal = hash(again) == hash(policy)
    except TypeError as error:
        raise AssertionError(f"The policy has no hash ({error}): make each part `@dataclass(frozen=True)`.") from error
    promise(equal, "Equal policies have different hashes: leave `__hash__` to `@dataclass(frozen=True)`.")
    promise(copy.deepcopy(policy) == policy, "A copy of the policy is not equal to it.")


def _same_run(one: Study, other: Study) -> int | None:
    """Returns the number of the first trial that differs, or None."""
    pairs = zip(one.trials, other.trials, strict=True)
    return next((first.number for first, second in pairs if first != second), None)


def _check_run(study: Study, seen: tuple[Any, ...], other: Study, seen_there: tuple[Any, ...], what: str) -> None:
    number = _same_run(study, other)
    promise(number is None, f"{what} is another one from trial {number} on. {REMEMBERS}")
    promise(same(seen, seen_there), f"{what} asks the same and predicts otherwise in the end. {REMEMBERS}")


def _check_asking(driver: Driver, study: Study, rounds: int) -> None:
    context = driver.context(rounds)
    state: Any = study.replica.state
    decisions = [state.decide(context, now=float(rounds)) for _ in range(3)]
    trial = study.trials[-1]
    points = [(decision.point, decision.arm, decision.explored) for decision in decisions]
    promise(
        same(points[0], points[1]) and same(points[0], points[2]),
        f"Asked again, with nothing told in between, the policy decides otherwise. {REMEMBERS}",
    )
    rows = driver.policy.domain.inside("point", decisions[0].point[None])
    promise(rows.shape == (1, len(trial.point)), f"The point decided is {decisions[0].point!r}, not one of the domain.")


def _check_again(driver: Driver, study: Study, seen: tuple[Any, ...], rounds: int) -> None:
    again = driver.play(driver.study(), 0, rounds)
    _check_run(study, seen, again, driver.seen(again, rounds), "A second run with the same seed and the same rewards")


def _check_looking(driver: Driver, study: Study, seen: tuple[Any, ...], rounds: int) -> None:
    curious = driver.play(driver.study(), 0, rounds, look=True)
    what = "A run that is looked at (`predict`, `bounds`, `best`) after each step"
    _check_run(study, seen, curious, driver.seen(curious, rounds), what)


def _check_reopening(driver: Driver, study: Study, seen: tuple[Any, ...], rounds: int) -> None:
    """Checks a study that is opened again at several rounds, from its record and the JSON of its policy."""
    stops = sorted({0, 1, 2, rounds // 2, rounds - 3, rounds})
    with TemporaryDirectory() as folder:
        storage = f"sqlite:///{Path(folder) / 'studies.db'}"
        stored = driver.study(storage=storage)
        for start, stop in pairwise(stops):
            driver.play(stored, start, stop)
            stored = driver.opened(storage)
        _check_run(study, seen, stored, driver.seen(stored, rounds), "A run whose study is opened again from storage")
        kept = driver.seen(driver.opened(storage), rounds)
        promise(same(seen, kept), f"A study replayed from its record is not what it was. {REMEMBERS}")


def _check_order(driver: Driver) -> None:
    """Checks that the order of rewards between two questions makes no difference."""
    found = []
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)):
        study = driver.play(driver.study(), 0, 5)
        trials = study.ask(driver.context(5), count=4)
        for place in order:
            driver.answer(study, trials[place])
        found.append(driver.seen(study, 6))
    promise(
        same(found[0], found[1]) and same(found[0], found[2]),
        "The order in which answers come in between two questions changes what is decided or predicted. Usually a part "
        "looks at `told_order`, or keeps what it was shown in an order of its own: answers are shown by number.",
    )


def _check_available(driver: Driver, rounds: int) -> None:
    """Checks that each decision is among the available points."""
    study, context = driver.play(driver.study(), 0, rounds // 2), driver.context(rounds)
    start = getattr(
        driver.policy.constraints, "start", ()
    )  # The start is needed if points are certified only by steps from there.
    offered = np.concatenate([driver.probes, np.array(start).reshape(len(start), driver.policy.domain.dimension)])
    known = {point.tobytes() for point in offered}
    for _ in range(2):
        trial = study.ask(context, among=offered)
        promise(
            trial.point.tobytes() in known,
            f"Of {len(known)} points that may be played (`ask(among=...)`) none was asked for, but {trial.point!r}. "
            "Usually the score's arrays are not of the points that it was given.",
        )
        driver.answer(study, trial)
