"""Random sequences of operations on random studies, against a reopened copy and a dense reference.

A sequence draws a policy (memory x pending x objective x explore x refit x score x domain x context) and some thirty
operations: questions, answers in any order and late, failures, points added, looks, and going on with a reopened copy.
What must hold, at every place that is looked at:

- a copy rebuilt from the record alone (in memory, or from a copy of the SQLite file) asks for the identical next point;
- `predict` is a dense solve of the targets that count, worked out anew from the record;
- what is set aside are the points where a trial that counts has failed and none that counts was answered;
- nothing is raised but this package's own errors, and those only where they are due.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import shutil
import warnings
from datetime import timedelta

import numpy as np

import nilregret as nr
from nilregret.domains.domain import space_of
from nilregret.policy.state import State
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.explore import CoordinateSearch, InitialDesign, InTurn, NoExploration, UniformExploration
from nilregret.slots.memory import (
    Discount,
    Forever,
    RestartAt,
    RestartDoubling,
    RestartEvery,
    RestartOnChange,
    SlidingWindow,
)
from nilregret.slots.objective import AdditivePenalty, Constrained, MultiplicativePenalty, RewardAlone
from nilregret.slots.pending import Censored, Hallucinated, Ignored, NearestMeans
from nilregret.slots.silence import Imputed, LateOrNever
from nilregret.storage.base import News
from nilregret.storage.record import Record

from ..reference import mapped

OPERATIONS = 30
LOWEST = -1.5
CLOSE = 1e-8
SEARCH = nr.slots.PointSearch(candidates=32, around=4, starts=1, evaluations=4)
SPACE = nr.Space(x=nr.Float(0.1, 10.0, log=True), n=nr.Int(0, 4), kind=nr.Choice("a", "b"))
DOMAINS = {
    "arms": nr.Arms.grid(0, 1, 12),
    "few arms": nr.Arms.grid(0, 1, 3),
    "box": nr.Box([0.0], [1.0]),
    "square": nr.Box([0.0, -1.0], [1.0, 1.0]),
    "space": SPACE,
}
CONTEXTS = {"none": None, "finite": nr.Arms([[0.0], [0.4], [1.0]]), "continuous": nr.Box([0.0], [1.0])}


class Clock:
    """Time that passes a little at every look at it, and that the sequence can let pass."""

    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


def some_kernel(rng, dimension):
    scale = float(rng.choice([0.5, 1.0, 2.0]))
    length = rng.uniform(0.2, 0.7, dimension).tolist()
    return (
        nr.SquaredExponential(length, scale=scale)
        if rng.random() < 0.5
        else nr.Matern(float(rng.choice([0.5, 1.5, 2.5])), length, scale=scale)
    )


def some_pending(rng):
    failed = str(rng.choice(["aside", "aside", "worst", "weighed"]))
    minimum = [LOWEST, LOWEST, None][rng.integers(3)]
    late = str(rng.choice(["drop", "accept"]))
    window = timedelta(seconds=float(rng.choice([0.0, 2.0, 10.0]))) if rng.random() < 0.25 else int(rng.integers(6))
    censored = Censored.within(window, minimum=minimum, late=late)
    return [
        Ignored(failed=failed),
        Hallucinated(failed=failed),
        dataclasses.replace(censored, failed=failed),
        dataclasses.replace(censored, failed=failed),
        NearestMeans(failed=failed, neighbours=int(rng.integers(1, 4))),
        Imputed(failed=failed, minimum=minimum),
        LateOrNever(failed=failed, minimum=minimum),
    ][rng.integers(7)]


def some_memory(rng):
    return [
        Forever(),
        Forever(),
        SlidingWindow(int(rng.choice([1, 2, 4, 8]))),
        RestartEvery(int(rng.choice([3, 7]))),
        RestartAt((int(rng.integers(1, 8)), int(rng.integers(8, 15)))),
        Discount(float(rng.choice([0.0, 0.05, 1.0]))),
        RestartOnChange(threshold=float(rng.choice([0.01, 0.3])), ridge=0.1),
        RestartDoubling(int(rng.choice([2, 5])), ridge=bool(rng.random() < 0.5)),
        nr.slots.EDetector(delta=float(rng.choice([0.05, 0.9])), clip=float(rng.choice([1.0, 20.0]))),
        nr.slots.AllOf((SlidingWindow(5), nr.slots.EDetector(delta=0.9), Discount(float(rng.choice([0.0, 0.1]))))),
    ][rng.integers(10)]


def some_objective(rng):
    more = {"epoch": int(rng.choice([2, 5])), "epochs": int(rng.choice([2, 6])), "constraints": int(rng.integers(1, 3))}
    fresh = bool(rng.random() < 0.3)
    return [
        RewardAlone(),
        RewardAlone(),
        MultiplicativePenalty(c=0.5, fresh=fresh, **more),
        AdditivePenalty(step=0.5, fresh=fresh, **more),
    ][rng.integers(4)]


def some_refit(rng, dimension):
    if rng.random() < 0.75:
        return None
    return [
        nr.slots.Refit(every=int(rng.choice([3, 5])), restarts=0),
        nr.slots.Refit(every=4, restarts=0, outputs="own", prior="none", standardize=False),
        nr.slots.Refit(every=3, restarts=0, growth=0.5, warp="half-rank", noise="unknown"),
        nr.slots.Refit(every=3, restarts=0, outputs="own", warp="half-rank", noise="given"),
    ][rng.integers(4)]


def some_explore(rng):
    return [
        InitialDesign(int(rng.integers(1, 8))),
        CoordinateSearch(every=2, after=int(rng.integers(6)), steps=5),
        InTurn((InitialDesign(2), UniformExploration(0.4), CoordinateSearch(every=3, after=3, steps=5))),
    ][rng.integers(3)]


def some_base(rng, domain, kernel, **more):
    """A rule, with the width it comes with."""
    own = nr.gp_ucb_sdf(domain, kernel, window=int(rng.integers(6)), minimum=LOWEST, **more)
    arms = isinstance(domain, nr.Arms) and isinstance(more["context"], nr.Arms | None)
    return [
        lambda: nr.gp_bucb(domain, kernel, beta=1.5, **more),
        lambda: nr.gp_bucb(domain, kernel, beta=1.0, inflation="realised", initial=3, **more),
        lambda: nr.algorithms.gp_bts(domain, kernel, beta=1.0, **more),
        lambda: own,
        lambda: dataclasses.replace(own, confidence=dataclasses.replace(own.confidence, beta=0.5)),
        lambda: nr.igp_ucb(domain, kernel, norm_bound=0.2, guess_norm=True, **more),
        lambda: nr.gp_ts(domain, kernel, norm_bound=1.0, **more),
        lambda: nr.expected_improvement(domain, kernel, **more),
        lambda: nr.expected_improvement(domain, kernel, incumbent="reward", **more),
        lambda: nr.algorithms.probability_of_improvement(domain, kernel, **more),
        lambda: nr.algorithms.greedy_variance(domain, kernel, **more),
        lambda: nr.gp_ucb(domain, kernel, **more) if arms else nr.gp_bucb(domain, kernel, beta=2.0, **more),
    ][rng.integers(12)]()


def some_policy(rng):
    """A random policy; combinations that are refused are drawn again."""
    while True:
        domain = DOMAINS[str(rng.choice(list(DOMAINS)))]
        context = CONTEXTS[str(rng.choice(["none", "none", "finite", "continuous"]))]
        dimension = domain.dimension + (0 if context is None else context.dimension)
        kernel = some_kernel(rng, dimension)
        more = {"noise": 0.2, "regularization": float(rng.choice([0.04, 1.0])), "context": context, "search": SEARCH}
        base = some_base(rng, domain, kernel, prior_mean=float(rng.choice([0.0, 0.5])), **more)
        memory, explores = some_memory(rng), rng.random() < 0.2
        with contextlib.suppress(nr.errors.InvalidInput):
            return dataclasses.replace(
                base,
                memory=memory,
                pending=some_pending(rng) if rng.random() < 0.8 else base.pending,
                objective=some_objective(rng),
                explore=UniformExploration(0.7) if explores or isinstance(memory, RestartOnChange) else NoExploration(),
                refit=some_refit(rng, dimension),
            )


def some_auto(rng):
    """The recommended policy with short fits and searches, and now and then with other parts."""
    domain = DOMAINS[str(rng.choice(list(DOMAINS)))]
    policy = nr.auto(
        domain,
        context=CONTEXTS[str(rng.choice(["none", "none", "finite", "continuous"]))],
        noise=[None, 0.2][rng.integers(2)],
        budget=[None, 6, 20][rng.integers(3)],
        parallel=int(rng.choice([1, 1, 3])),
        world=str(rng.choice(["stationary", "drifting"])),
        answers=str(rng.choice(["prompt", "late", "silent no", "unknown"])),
    )
    search = dataclasses.replace(SEARCH, mutations=8, incumbents=2, apart=0.01)
    fitted = isinstance(policy.refit, nr.slots.Refit)
    policy = policy.using(
        search=search, refit=dataclasses.replace(policy.refit, restarts=0) if fitted else policy.refit
    )
    while True:
        with contextlib.suppress(nr.errors.InvalidInput):
            return policy.using(
                memory=some_memory(rng) if rng.random() < 0.3 else policy.memory,
                pending=some_pending(rng) if rng.random() < 0.3 else policy.pending,
                explore=some_explore(rng) if rng.random() < 0.5 else policy.explore,
            )


def some_limits(rng):
    """A random policy in one of the worlds of constraints; combinations that are refused are drawn again."""
    while True:
        policy = some_policy(rng)
        dimension = policy.domain.dimension + (0 if policy.context is None else policy.context.dimension)
        more = {
            "count": int(rng.integers(1, 3)),
            "kernel": some_kernel(rng, dimension) if rng.random() < 0.5 else None,
            "noise": [None, 0.3][rng.integers(2)],
            "prior_mean": float(rng.choice([0.0, -1.0])),
            "confidence": ConstantWidth(value=float(rng.choice([1.0, 3.0]))),
        }
        start = policy.domain.lower if hasattr(policy.domain, "lower") else policy.domain.points[0]
        with contextlib.suppress(nr.errors.InvalidInput):
            part = [
                nr.EveryRound(**more),
                nr.EveryRound(rule="probability", **more),
                nr.OnAverage(step=0.3, epoch=int(rng.choice([1, 4])), **more),
                nr.Safe(start=[start], scale=[1.0, 0.3, "learned"][rng.integers(3)], delta=0.4, **more),
                nr.Safe(
                    start=[start],
                    scale=1.0,
                    certificate="bounds",
                    **more | ({"confidence": None} if policy.confidence.multiple else {}),
                ),
            ][rng.integers(5)]
            return policy.using(constraints=part, objective=RewardAlone())


def row_of(trial):
    """What the kernel sees."""
    return np.concatenate([[] if trial.context is None else trial.context, trial.point])


def taught(study, trial):
    """A stopped trial as one that was told its last value, or was given up."""
    if trial.state != "stopped":
        return trial
    if study.policy.pruning.learned == "nothing":
        return trial.asked()._replace(state="abandoned")
    return trial._replace(state="observed", reward=trial.steps[-1][1], reason=None)


# -- what counts, from the record alone --------------------------------------------------------------------------------


class Reference:
    """What a policy should have learned of a record: written anew, from the documents and not from the code."""

    def __init__(self, study):
        # A correction is as if the right answer had come first.
        self.policy, self.trials = study.policy, [taught(study, trial.as_corrected()) for trial in study.trials]
        self.rounds = len(self.trials)
        memory, restarts = self.policy.memory, study.restarts
        self.first = restarts[-1] if restarts else 0
        self.since = self.first
        for part in memory.parts if isinstance(memory, nr.slots.AllOf) else (memory,):
            if isinstance(part, SlidingWindow):
                self.first = max(self.first, self.rounds - part.rounds)
        self.multipliers = study.multipliers
        self.lowest = self._lowest(study)

    def _lowest(self, study):
        pending = self.policy.pending
        if isinstance(pending, Censored | Imputed | LateOrNever) and pending.minimum is not None:
            return pending.minimum
        told = [t.reward for t in self.trials if t.reward is not None]
        if isinstance(self.policy.memory, Forever) and not self._fresh():
            return min(told, default=self.policy.prior_mean)
        return study.replica.current().reward.data.lowest()  # how much a memory keeps of it is its own affair

    def _fresh(self):
        return isinstance(self.policy.objective, Constrained) and self.policy.objective.fresh

    def target(self, trial):
        """Of an answered trial, reward units; None where it teaches nothing."""
        objective, g = self.policy.objective, trial.constraints
        if trial.reward is None or not isinstance(objective, Constrained):
            return trial.reward
        if g is None:
            return None
        if isinstance(objective, AdditivePenalty):
            return trial.reward - float(self.multipliers @ g)
        psi = np.minimum(np.exp(np.minimum(objective.c * np.maximum(g, 0.0), 700.0)), 1e6)
        return trial.reward - float(self.multipliers @ (psi - 1.0))

    def late(self, trial):
        """Whether the answer came too late to count."""
        pending = self.policy.pending
        if not isinstance(pending, Censored) or pending.late == "accept" or trial.asked_order == trial.told_order:
            return False
        if pending.in_time:
            return trial.told_at - trial.asked_at > pending.window + 1e-6
        asked = [t for t in self.trials if t.told_order != t.asked_order]
        between = sum(trial.asked_order < t.asked_order < trial.told_order for t in asked)
        return between > pending.window

    def answered(self, trial):
        """Whether a trial counts by its own answer."""
        return trial.state == "observed" and self.target(trial) is not None and not self.late(trial)

    def data(self):
        """Trials that are data, with their targets in reward units; None for one that only shrinks the variance."""
        found, pending = [], self.policy.pending
        for trial in self.trials[self.first :]:
            if trial.state == "pending":
                if isinstance(pending, Hallucinated):
                    found.append((trial, None))
                elif isinstance(pending, Censored):
                    found.append((trial, self.lowest - self.charge(trial)))
                elif isinstance(pending, NearestMeans | Imputed | LateOrNever):
                    found.append((trial, 0.0))  # filled in later
            elif trial.state == "failed":
                if pending.failed != "aside":
                    found.append((trial, self.lowest - self.charge(trial)))
            elif self.answered(trial):
                found.append((trial, self.target(trial)))
            elif self.target(trial) is not None:
                found.append((trial, self.lowest - self.charge(trial)))
        return found

    def charge(self, trial):
        """What a trial without an answer of its own is charged under multipliers: as the nearest ones with one."""
        known = [t for t in self.trials[self.first :] if self.answered(t) and t.constraints is not None]
        if not known or not isinstance(self.policy.objective, Constrained):
            return 0.0
        sides = np.where(self.policy.sides > 0.0, self.policy.sides, 1.0)
        rows = np.array([row_of(t) for t in known]) / sides
        distances = np.linalg.norm(rows - row_of(trial) / sides, axis=1)
        places = {}
        for i in np.flatnonzero(distances <= distances.min() + 1e-12):
            places.setdefault(rows[i].tobytes(), []).append(known[i].constraints)
        values = np.mean([np.mean(told, axis=0) for told in places.values()], axis=0)
        return -self.target(trial._replace(reward=0.0, constraints=values))

    def limit(self, study, rows, j):
        """Bounds of constraint j by dense solves, under the kernel that is in use."""
        state = study.replica.current()
        output = state.outputs.constraints[j]
        posterior = output.posterior
        center, unit, warp = posterior.units
        to, back = (float, np.asarray) if warp is None else (warp.to, warp.back)
        known, spread = [], []
        hallucinated = not isinstance(self.policy.pending, Ignored) and self.policy.constraints.hallucinates
        for trial in self.trials[self.first :]:
            if trial.constraints is not None:
                known.append((trial, (float(to(trial.constraints[j])) - center) / unit))
            elif trial.state == "failed" or trial.abandoned is not None or not hallucinated:
                continue  # of one that was given up no constraint value is awaited, whatever came late
            elif trial.asked_order == trial.told_order:
                continue
            spread.append((trial, 0.0))
        mean, std = self._solve((posterior.in_use, posterior.ridge), known, rows)
        if len(spread) > len(known):
            std = self._solve((posterior.in_use, posterior.ridge), spread, rows)[1]
        half = output.bounds().width * unit * std
        return back(center + unit * mean - half), back(center + unit * mean + half)

    def aside(self):
        """The points that are set aside."""
        counted = self.trials[self.first :]
        answered = {t.point.tobytes() for t in counted if self.answered(t)}
        return {t.point.tobytes() for t in counted if t.state == "failed"} - answered

    def predict(self, study, rows):
        """Mean and std by dense solves, under the kernel that is in use."""
        state = study.replica.current()
        posterior = state.reward.posterior
        (center, unit, warp), setting = posterior.units, (posterior.in_use, posterior.ridge)
        to, back = (float, np.asarray) if warp is None else (warp.to, warp.back)

        def scaled(reward):
            return (float(to(reward)) - center) / unit

        data = self.data()
        if isinstance(self.policy.pending, Imputed | LateOrNever):  # by what is remembered of the whole run
            counted = {t.number: posterior.entries[t.number].target for t, _ in data if t.state == "pending"}
            data = [(t, counted.get(t.number, y)) for t, y in data]
            known = [(t, y if t.number in counted else scaled(y)) for t, y in data if y is not None]
        else:
            known = [(t, scaled(y)) for t, y in data if y is not None]
        mean, std = self._solve(setting, known, rows)
        if isinstance(self.policy.pending, NearestMeans):
            filled = [
                (t, scaled(self._nearest(setting, known, t, lambda m: back(center + unit * m))) if waits else y)
                for t, y in known
                for waits in [t.state == "pending"]
            ]
            mean, std = self._solve(setting, filled, rows)
        if any(y is None for _, y in data):
            std = self._solve(setting, [(t, 0.0) for t, _ in data], rows)[1]
        mean, std = center + unit * mean, unit * std
        return (mean, std) if warp is None else mapped(back, warp.heights, mean, std)

    def _solve(self, setting, known, rows):
        kernel, ridge = setting
        prior = np.diagonal(kernel(rows, rows))
        if not known:
            return np.zeros(len(rows)), np.sqrt(prior)
        X = np.array([row_of(t) for t, _ in known])
        y = np.array([target for _, target in known])
        K, k = kernel(X, X), kernel(X, rows)
        if (rate := self.policy.memory.drift()) is not None:
            keep, times = 1.0 - rate, np.array([t.number for t, _ in known])
            K = K * keep ** (0.5 * np.abs(times[:, None] - times))
            k = k * (keep ** (0.5 * (self.rounds - times)))[:, None]
        K = K + ridge * np.eye(len(X))
        solved = np.linalg.solve(K, np.column_stack([y, k]))
        variance = prior - np.einsum("ij,ij->j", k, solved[:, 1:])
        return k.T @ solved[:, 0], np.sqrt(np.maximum(variance, 0.0))

    def _nearest(self, setting, known, trial, shown):
        """The average posterior mean at the nearest distinct points that were answered, of the answers alone."""
        answers = [(t, y) for t, y in known if t.state == "observed"]
        if not answers:
            return float(shown(0.0))
        rows = list({row.tobytes(): row for row in (row_of(t) for t, _ in answers)}.values())
        gaps = [round(float(np.linalg.norm((row - row_of(trial)) / self.policy.sides)), 12) for row in rows]
        near = np.array(rows)[np.argsort(gaps, kind="stable")[: self.policy.pending.neighbours]]
        return float(shown(self._solve(setting, answers, near)[0]).mean())


# -- sequences ---------------------------------------------------------------------------------------------------------


class Problem(AssertionError):
    """Something that must hold does not."""


class Sequence:
    """One random study and what happens to it."""

    def __init__(self, seed, folder=None, draw=some_policy, *, arms=False, queue=False, steps=False):
        self.rng = np.random.default_rng([417, seed])
        self.made, self.seed, self.clock = draw(self.rng), int(seed), Clock()
        if steps:
            learned = str(self.rng.choice(["last", "nothing"]))
            self.made = self.made.using(pruning=nr.slots.Never(learned=learned))
        self.url = None if folder is None else f"sqlite:///{folder}/{seed}.db"
        self.folder, self.seed = folder, int(seed)
        self.study = nr.Study(self.made, seed=self.seed, storage=self.url, clock=self.clock)
        self.arms = arms and isinstance(self.made.domain, nr.Arms)
        self.compared = self.solved = 0
        self.queue, self.steps = queue, steps
        self.log = []

    @property
    def policy(self):
        return self.study.policy

    def run(self, operations=OPERATIONS):
        """All of it; raises a `Problem`, or whatever else goes wrong."""
        names = ["ask", "ask", "ask", "batch", "tell", "tell", "tell", "fail", "add", "look", "reopen", "twice"]
        names += ["abandon", "revise"]
        for _ in range(operations):
            name = str(self.rng.choice(names))
            self.log.append(name)
            self.clock.now += float(self.rng.choice([0.0, 0.5, 3.0]))
            getattr(self, name)()
            if self.arms and self.rng.random() < 0.3:
                self.change_arms()
            if self.queue and self.rng.random() < 0.4:
                self.enqueue()
            if self.steps and self.rng.random() < 0.6:
                self.report()
            if self.policy.constraints is not None and self.rng.random() < 0.3:
                self.limit()
        self.look()
        self.ask()
        self.look()

    # operations

    def ask(self):
        context = self.some_context()
        before = list(self.study.trials)
        stored = self.copied() if self.rng.random() < 0.3 else None
        try:
            trial = self.study.ask(context, lease=float(self.rng.choice([4.0, 1e9])))
        except nr.NoRegretError as error:
            if self.arms and "retired" in str(error):
                return
            if "nothing left" not in str(error) or not Reference(self.study).aside():
                raise
            return
        before = [t.as_of(trial.asked_order - 1) for t in self.study.trials[: trial.number]]  # leases may have ended
        left, entry = self.study.replica.roster.playable(None), self.study.replica.queue.tried.get(trial.number)
        state, then = self.replayed(before), {"now": trial.asked_at, "available": left}
        decisions = [state.decide(trial.context, **then)] if entry is None else []
        decisions += [] if entry is None else [state.fill(entry.pinned(self.policy.domain), trial.context, **then)]
        decisions += [] if stored is None else [stored.ask(context)]  # whose leases end here, too
        for decision in decisions:
            same = decision.point.tobytes() == trial.point.tobytes() and decision.explored == trial.explored
            if not (same and decision.arm == trial.arm):
                raise Problem(f"live {trial.arm} {trial.point}, reopened {decision.arm} {decision.point}")
        self.compared += len(decisions)

    def batch(self):
        for _ in range(int(self.rng.integers(2, 4))):
            self.ask()

    def tell(self):
        trial = self.some_pending_trial()
        if trial is not None:
            values = self.some_constraints() if trial.constraints is None else None
            self.study.tell(trial, self.some_reward(trial.point), constraints=values)

    def fail(self):
        trial = self.some_pending_trial()
        if trial is not None:
            self.study.fail(trial, "it broke")

    def add(self):
        domain = self.policy.domain
        earlier = [trial.point for trial in self.study.trials]
        if earlier and self.rng.random() < 0.4:
            point = earlier[self.rng.integers(len(earlier))]
        elif isinstance(domain, nr.Arms):
            point = domain.points[self.rng.integers(len(domain))]
        else:
            point = self.rng.uniform(domain.lower, domain.upper)
            point = domain.snap(point[None])[0] if isinstance(domain, nr.Space) else point
        given = domain.decode(point) if isinstance(domain, nr.Space) else point
        self.study.add(given, self.some_reward(point), context=self.some_context(), constraints=self.some_constraints())

    def look(self):
        study, rng = self.study, self.rng
        context, reference = self.some_context(), Reference(study)
        points = self.some_points()
        given = [study.policy.domain.decode(p) for p in points] if study.policy.domain is SPACE else points
        seen = study.inputs.context(context)
        rows = points if seen is None else np.column_stack([np.tile(seen, (len(points), 1)), points])
        by_models = isinstance(self.policy.refit, nr.slots.ArmModels)  # which are no solve with a kernel
        wanted = () if by_models else reference.predict(study, rows)
        for got, want in zip(study.predict(given, context=context), wanted, strict=not by_models):
            size = max(1.0, float(np.abs(want).max()))
            if not np.allclose(got, want, rtol=CLOSE, atol=CLOSE * size):
                raise Problem(f"predict is off by {np.abs(got - want).max():g}: {got} and {want}")
        self.solved += not by_models
        if self.policy.constraints is not None:
            self.look_at_limits(given, rows, context, reference)
        aside = self.set_aside()
        if aside != reference.aside():
            raise Problem(f"{len(aside)} points are set aside, and {len(reference.aside())} should be")
        lower, upper = study.bounds(given, context=context)
        multiple = study.replica.current().reward.posterior.units.warp is None
        if not (np.isfinite(lower).all() and (lower <= upper).all() and math.isfinite(study.width) == multiple):
            raise Problem("bounds")
        with contextlib.suppress(nr.errors.TrialError):
            study.best()
        _ = study.minimum, study.information_gain, study.norm_bounds, study.restart_reasons, rng.random()

    def look_at_limits(self, given, rows, context, reference):
        study, world = self.study, self.policy.constraints
        for j in range(world.count):
            lower, upper = study.bounds(given, context=context, channel=j + 1)
            for got, want in zip((lower, upper), reference.limit(study, rows, j), strict=True):
                if not np.allclose(got, want, rtol=CLOSE, atol=CLOSE * max(1.0, float(np.abs(want).max()))):
                    raise Problem(f"bounds of constraint {j + 1}: {got} and {want}")
        sure = study.feasible(given, context=context)
        if not ((sure >= 0.0) & (sure <= 1.0)).all():
            raise Problem(f"feasible with probability {sure}")

    def limit(self):
        """Constraint values told by themselves, before the reward or after it."""
        open_ = [t for t in self.study.trials if t.constraints is None and t.state not in ("failed", "stopped")]
        values = self.some_constraints()
        if open_ and values is not None:
            self.study.tell(open_[self.rng.integers(len(open_))], constraints=values)

    def report(self):
        """A trial reports some values, and perhaps stops."""
        trial = self.some_pending_trial()
        for _ in range(int(self.rng.integers(1, 4)) if trial is not None else 0):
            step = self.study.trials[trial.number].curve[-1].step + 1 if self.study.trials[trial.number].curve else 0
            self.study.report(trial, step, self.some_reward(trial.point))
        if trial is not None and self.rng.random() < 0.5:
            self.study.stop(trial)

    def enqueue(self):
        """A point to try first, of which parts may be left to the policy, or one less."""
        study, domain, rng = self.study, self.policy.domain, self.rng
        if study.enqueued and rng.random() < 0.2:
            study.withdraw(study.enqueued[0].number)
            return
        point = rng.choice(self.some_points())
        given = point if space_of(domain) is None else dict(space_of(domain).decode(point))
        if isinstance(given, dict):
            given = {name: value for name, value in given.items() if rng.random() < 0.6} or given
        with contextlib.suppress(nr.errors.InvalidInput):  # it waits already, or its arm is retired
            study.enqueue(given if isinstance(given, dict) else [given])

    def change_arms(self):
        """An arm comes, goes, or comes back."""
        study, domain = self.study, self.policy.domain
        act = self.rng.integers(3)
        if act == 0 and len(domain) < 2 * len(self.made.domain):
            point = domain.points[self.rng.integers(len(domain))]
            if domain.space is None:
                point = point + self.rng.normal(scale=0.2, size=point.shape)
            with contextlib.suppress(nr.errors.InvalidInput):  # a kernel with a row for each arm, say
                study.add_arms([point], names=["new"])
        elif act == 1:
            study.retire_arm(int(self.rng.integers(len(domain))))
        else:
            study.restore_arm(int(self.rng.integers(len(domain))))

    def twice(self):
        told = [trial for trial in self.study.trials if not trial.open]
        if told:
            with contextlib.suppress(nr.errors.TrialError):
                self.study.tell(told[self.rng.integers(len(told))].number, 0.0)
                raise Problem("an answer was told twice")

    def abandon(self):
        trial = self.some_pending_trial()
        if trial is not None:
            self.study.abandon(trial)

    def revise(self):
        told = [trial for trial in self.study.trials if not trial.open]
        if told:
            trial = told[self.rng.integers(len(told))]
            if self.rng.random() < 0.2:
                self.study.fail(trial, "taken back", revise=True)
            else:
                values = None if trial.constraints is None else self.some_constraints()
                self.study.tell(trial, self.some_reward(trial.point), constraints=values, revise=True)

    def reopen(self):
        if self.url is not None:
            self.study = nr.Study.open(storage=self.url, clock=self.clock)
            return
        known = News(list(self.study.trials), "", self.study.changes)
        self.study = nr.Study(self.made, seed=self.seed, clock=self.clock)
        self.study.replica.apply(known)

    # what they need

    def replayed(self, trials):
        state = State(self.policy, seed=self.seed)
        known = [trial.as_corrected() for trial in trials]
        state.receive(self.study.replica.lessons.of(Record().apply(known), known))
        return state

    def copied(self):
        if self.url is None:
            return None
        self.study.close()  # which takes the write-ahead log into the file
        copy = f"{self.folder}/copy-{self.seed}.db"
        shutil.copy(f"{self.folder}/{self.seed}.db", copy)
        return nr.Study.open(storage=f"sqlite:///{copy}", clock=self.clock)

    def set_aside(self):
        failed = self.study.replica.current().outputs.engine.failed
        domain = self.policy.domain
        return set(failed) if isinstance(failed, dict) else {domain.points[arm].tobytes() for arm in failed}

    def some_context(self):
        domain = self.policy.context
        if domain is None:
            return None
        if isinstance(domain, nr.Arms):
            return domain.points[self.rng.integers(len(domain))]
        return self.rng.choice([self.rng.random(1), np.array([0.5])])

    def some_points(self):
        domain = self.policy.domain
        if isinstance(domain, nr.Arms):
            return domain.points
        points = self.rng.uniform(domain.lower, domain.upper, (4, domain.dimension))
        return domain.snap(points) if isinstance(domain, nr.Space) else points

    def some_pending_trial(self):
        pending = [trial for trial in self.study.trials if trial.open]
        return pending[self.rng.integers(len(pending))] if pending else None

    def some_reward(self, point):
        return float(np.clip(np.sin(5.0 * point).sum() + self.rng.normal(scale=0.3), LOWEST, 3.0))

    def some_constraints(self):
        if self.rng.random() < 0.15:
            return None
        m = self.policy.constraint_count or int(self.rng.integers(0, 3))
        return self.rng.normal(size=m) if m else None


def run(seeds, folder=None, draw=some_policy, **more):
    """What became of the sequences: how many were compared, and those that went wrong, (seed, what)."""
    compared = solved = 0
    wrong = []
    for seed in seeds:
        sequence = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
                sequence = Sequence(seed, folder if seed % 5 == 0 else None, draw, **more)
                sequence.run()
        except Exception as error:
            wrong.append((seed, error, sequence))
        if sequence is not None:
            compared, solved = compared + sequence.compared, solved + sequence.solved
    return compared, solved, wrong
