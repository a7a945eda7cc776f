"""A part that has nothing to do does nothing, whatever fills the other slots: what is played is the same to the bit."""

import warnings
from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest

import nilregret as nr
from nilregret.slots.explore import UniformExploration
from nilregret.testing.driver import Driver

from ..marks import thinned
from .fillings import FILLINGS, NOISE, ORDER, base, play, reason_for
from .test_pairs import FEW, ROUNDS, where_of

FAR = 1000
BELOW = -1e3  # of a constraint that is nowhere near its border


class Run(NamedTuple):
    """What a policy played, and what it believes of the reward in the end."""

    points: list[tuple[float, ...]]
    bounds: np.ndarray  # (2, n)


def run(policy, *, late=True, below=False, ask: Callable = lambda study, context: study.ask(context)):
    """Some rounds, answered late and with a failure or each at once; constraint values wave or are far below."""
    driver = Driver(policy, seed=0, reward=None)
    if below:
        driver._constraints = lambda trial: [BELOW] * policy.constraint_count or None
    searched = isinstance(policy.domain, nr.Arms) and isinstance(policy.context, nr.Arms | None)
    rounds = ROUNDS if searched else FEW
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
        study = play(driver, rounds) if late else driver.study()
        for step in range(0 if late else rounds):
            driver._now = float(step)
            driver.answer(study, ask(study, driver.context(step)))
        driver._now = float(rounds)
        state = study.replica.current()  # before bounds of the next round are asked for
        points = [tuple(trial.point.tolist()) for trial in study.trials]
        points.append(tuple(state.decide(driver.context(rounds), now=float(rounds)).point.tolist()))
        return Run(points, np.array(study.bounds(driver.probes, context=driver.context(rounds))))


@cache
def plain_run(policy_json, late, below):
    """What a policy plays beside which parts that do nothing are tried, one after another."""
    return run(nr.Policy.from_json(policy_json), late=late, below=below)


def same(one, other):
    return one.points == other.points and np.allclose(one.bounds, other.bounds, rtol=1e-9, atol=1e-9)


class Neutral(NamedTuple):
    """A part that does nothing.

    Attributes:
        slot: that it fills.
        plain: what it is compared with; by slot.
        part: likewise.
        conditions: of `run`.
        but: fillings that it does do something with, by the beginnings of their names.
        everywhere: whether it is tried on continuous domains too, where a round costs more.
    """

    slot: str
    plain: dict
    part: dict
    conditions: dict = MappingProxyType({})
    but: tuple[str, ...] = ()
    everywhere: bool = False


def memory(part, **more):
    return Neutral("memory", {}, {"memory": part}, **more)


def pending(part, **more):
    return Neutral("pending", {}, {"pending": part}, conditions={"late": False}, **more)


UNIFORM = {"explore": UniformExploration(0.8)}
NEVER = {"memory": nr.slots.RestartOnChange(threshold=np.inf, ridge=0.1)}
BELOW_ZERO = {"noise": NOISE, "prior_mean": BELOW, "confidence": 2.0}
NO_FIT = ("`EDetector`", "`AllOf`")  # which wait for the first fit
NEUTRAL = {
    "a window larger than the run": memory(nr.slots.SlidingWindow(FAR), everywhere=True),
    "restarts after the run": memory(nr.slots.RestartAt((FAR,))),
    "a period longer than the run": memory(nr.slots.RestartEvery(FAR)),
    "a drift of rate 0": memory(nr.slots.Discount(0.0), everywhere=True),
    "all of these": memory(nr.slots.AllOf((nr.slots.SlidingWindow(FAR), nr.slots.RestartAt((FAR,)),
    nr.slots.Discount(0.0)))),
    "a detector that finds nothing": memory(nr.slots.EDetector(delta=1e-300)),
    "a test that finds nothing": Neutral("memory", UNIFORM, {**NEVER, **UNIFORM}, but=("`Safe`",)),
    "hallucinated, without delays": pending(nr.slots.Hallucinated(), everywhere=True),
    "nearest means, without delays": pending(nr.slots.NearestMeans()),
    "imputed, without delays": pending(nr.slots.Imputed()),
    "late or never, without delays": pending(nr.slots.LateOrNever()),
    "censored, without delays": pending(nr.slots.Censored(minimum=None, window=0.0)),
    "a share of no uniform rounds": Neutral("explore", {}, {"explore": UniformExploration(0.0)}, but=("`Safe`",)),
    "a design in turn": Neutral(
        "explore",
        {"explore": nr.slots.InitialDesign(3)},
        {"explore": nr.slots.InTurn((nr.slots.InitialDesign(3),))},
        but=("`Safe`",),
    ),
    "fits after the run": Neutral("refit", {}, {"refit": nr.slots.Refit(every=FAR)}, but=NO_FIT),
    "every round, far from the border": Neutral(
        "constraints", {}, {"constraints": nr.EveryRound(**BELOW_ZERO)}, conditions={"below": True}
    ),
    "on average, never violated": Neutral(
        "constraints", {}, {"constraints": nr.OnAverage(**BELOW_ZERO)}, conditions={"below": True}
    ),
    "safe, far from the border": Neutral(
        "constraints", {}, {"constraints": nr.Safe(start=[[0.0]], scale=1.0, **BELOW_ZERO)}, conditions={"below": True}
    ),
}  # fmt: skip


# Their posterior learns its own scales, unless the kernel is learned or constraints are kept with it.
LEARNS = {"`Bernoulli`", "`Poisson`", "`Bounded`"}


def together(filling, parts):
    """A policy with a filling and these parts; None where that is refused."""
    policy = base(where_of(filling))
    try:
        if ORDER.get(filling.slot, 2) == 2:
            return filling.put(policy.using(**parts), "")
        return filling.put(policy, "").using(**parts)
    except nr.errors.InvalidInput:
        return None


LIKE_ANOTHER = (
    "restarts after the run",
    "a period longer than the run",
    "nearest means, without delays",
    "imputed, without delays",
    "late or never, without delays",
    "a design in turn",
    "on average, never violated",
)


@pytest.mark.parametrize("name", thinned(NEUTRAL, *(name for name in NEUTRAL if name not in LIKE_ANOTHER)))
def test_what_has_nothing_to_do_does_nothing(name):
    neutral = NEUTRAL[name]
    different, tried = [], 0
    for filling in FILLINGS:
        if filling.slot in (neutral.slot, *neutral.plain) or filling.name.startswith(neutral.but or "?"):
            continue
        if filling.name in LEARNS and neutral.slot in ("refit", "constraints"):
            continue
        if filling.slot == "domain" and not (neutral.everywhere or "table" in filling.name):
            continue
        plain, other = together(filling, neutral.plain), together(filling, neutral.part)
        if other is None:
            refused = {nr.slots.Refit: "`Safe`"}
            assert any(reason_for(filling, each) for each in FILLINGS if each.slot == neutral.slot), (
                f"{filling.name} is refused {refused}"
            )
            continue
        tried += 1
        late, below = (neutral.conditions.get(key, given) for key, given in (("late", True), ("below", False)))
        if not same(plain_run(plain.to_json(), late, below), run(other, late=late, below=below)):
            different.append(filling.name)
    assert different == []
    assert tried > 20


def test_one_context_is_none():
    different = []
    for filling in FILLINGS:
        if filling.slot == "domain" or filling.name in ("`Lazy`", "`RegretBalancing`", "`EarlierStudies`"):
            continue  # They are for no contexts.
        if filling.slot == "pruning" and filling.name != "`Never`":  # Curves are compared without contexts.
            continue
        if filling.name == "`ArmModels`":  # which are for contexts of their own
            continue
        if filling.name in (
            "`Refit`",
            "`LengthscaleBank` around fits",
        ):  # whose prior of lengthscales sees the dimension
            continue
        plain = filling.put(base(), "")
        if plain.objective_count > 1:  # A front is for no contexts.
            continue
        other = plain.using(context=nr.Arms([[0.5]]), kernel=nr.Matern(2.5, [0.3, 0.3]))
        if not same(plain_run(plain.to_json(), True, False), run(other)):
            different.append(filling.name)
    assert different == []


@pytest.mark.parametrize("late", [True, False])
def test_a_memory_alone_among_all_of_them_is_itself(late):
    for filling in FILLINGS:
        if filling.slot == "memory":
            plain = filling.put(base(), "")
            assert same(
                plain_run(plain.to_json(), late, False),
                run(plain.using(memory=nr.slots.AllOf((plain.memory,))), late=late),
            ), filling.name


def test_a_batch_of_one_is_one_question():
    for filling in FILLINGS:
        policy = filling.put(base(where_of(filling)), "")
        one = plain_run(policy.to_json(), False, False)
        assert same(one, run(policy, late=False, ask=lambda study, context: study.ask(context, count=1)[0])), (
            filling.name
        )


def test_a_batch_is_as_many_questions():
    for filling in FILLINGS:
        if filling.slot == "domain":
            continue
        policy = filling.put(base(), "")
        studies = [Driver(policy, seed=0, reward=None).study() for _ in range(2)]
        at = None if policy.context is None else np.full(policy.context.dimension, 0.5)
        batch, singly = studies[0].ask(at, count=4), []
        for _ in range(4):
            taken = [trial.arm for trial in singly] if at is not None else []
            singly.append(studies[1].ask(at, exclude=taken or None))
        assert [trial.arm for trial in batch] == [trial.arm for trial in singly], filling.name


def test_restarts_at_the_same_rounds_are_the_same_memory():
    for filling in FILLINGS:
        if filling.slot not in ("memory", "domain"):
            at, every = (
                together(filling, {"memory": part})
                for part in (nr.slots.RestartAt((3, 6, 9)), nr.slots.RestartEvery(3))
            )
            if at is not None and every is not None:
                assert same(run(at), run(every)), filling.name
