"""Decisions: the question of one round for the engine, and its answer.

A `propensity` is the probability of a decision, given the record before it, over forced rounds and random numbers.

A round is forced by one of several parts, each with a probability (`Explore.chances`). In each case one of finitely
many points has the largest score, whose law the score knows (`Score.law`). The probability of a point is the sum over
the cases.

In a pinned decision some parameters are given, and the policy chooses the others. The points compared have the given
columns, and so the best score of these points is that for the given values. Where all columns are given, nothing is
left to choose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, frozen, integer, shown
from .._utils.randomness import Draws, Randomness
from ..domains.domain import Arms, Box, Domain, Space
from ..domains.search.boxes import real_columns
from ..domains.search.designs import mutated, uniform
from ..errors import InvalidInput
from ..gp import Belief
from ..slots.explore import Answered, Chances, Explore, Situation, checked_places
from ..slots.no_worse import Standing
from ..slots.switching import MOST_REPEATS, Switching
from ..storage.trial import Trial
from .availability import Available, places_left
from .engines import Decision, Engine, Question
from .memory_runner import MemoryRunner

if TYPE_CHECKING:
    from ..domains.limits import Limits
    from ..slots.propensities import ScoreLaw

AROUND, TIMES = 256, 4  # points around the best one so far, and how often they are drawn
FEW = 32  # points of a first look
PROJECTIONS = 200  # onto the planes of linear limits and into the ranges, by turns
LEVEL = 1e-11  # distance from a plane that counts as on it
SAME = 1e-9  # difference of two columns of the same value


class Pinned(NamedTuple):
    """A point of which some columns are given.

    Attributes:
        point: `(d,)`, with any values in the other columns.
        columns: True for the given columns, `(d,)`.
        arm: the arm, if all columns are given and the domain has arms.
    """

    point: Array
    columns: npt.NDArray[np.bool_]
    arm: int | None = None

    @classmethod
    def of(cls, space: Space, fixed: Mapping[str, Sequence[float]]) -> Pinned:
        """Returns a point of which these columns of parameters are given.

        Raises:
            InvalidInput: they do not fit the space.
        """
        known = dict(zip(space.parameters, space.columns(), strict=True))
        point, columns = np.zeros(space.dimension), np.zeros(space.dimension, dtype=bool)
        for name, values in fixed.items():
            if name not in known or len(values) != known[name][0].columns:
                raise InvalidInput(f"its parameter {shown(name)} is of another space")
            point[known[name][1]], columns[known[name][1]] = values, True
        return cls(frozen(point), columns)

    @property
    def whole(self) -> bool:
        """True if all columns are given."""
        return bool(self.columns.all())

    def matching(self, points: Array) -> npt.NDArray[np.bool_]:
        """Returns which points have the given columns, `(n,)`."""
        gaps = np.abs(points[:, self.columns] - self.point[self.columns])
        return np.asarray((gaps <= SAME).all(axis=1))

    def counting(self, domain: Domain, points: Array) -> npt.NDArray[np.bool_]:
        """Returns which points have the given columns, and count them, `(n,)`.

        The middle of a range may be given where the parameter does not count.
        """
        found, space = self.matching(points), domain.space if isinstance(domain, Arms) else domain
        active = None if self.whole or not isinstance(space, Space) else space.active(points)
        return found if active is None else found & active[:, self.columns].all(axis=1)

    def among(self, domain: Domain, offered: Available | None) -> Available | None:
        """Returns what has the given columns of what is offered, which may be nothing. None stands for a continuum.

        Args:
            domain: of the policy.
            offered: what may be played, or None for everything.
        """
        if isinstance(domain, Arms):
            arms = np.flatnonzero(self.counting(domain, domain.points)) if self.arm is None else np.array([self.arm])
            arms = arms if offered is None or offered.arms is None else np.intersect1d(arms, offered.arms)
            return Available(frozen(domain.points[arms]), arms)
        return None if offered is None else Available(offered.points[self.counting(domain, offered.points)], None)

    def onto(self, domain: Box | Space, points: Array) -> Array:
        """Returns the points with the given columns in place of their own, `(m, d)`, as far as the domain has them."""
        moved = points.copy()
        moved[:, self.columns] = self.point[self.columns]
        limits = domain.limits
        if limits is not None and not self.whole:
            self._level(moved, limits)
        moved = domain.snap(moved)
        moved = moved[self.counting(domain, moved)]
        if limits is None or not len(moved):
            return moved
        tight = limits.tight(moved)
        return moved[tight if tight.any() else limits.holds(moved)]

    def _level(self, points: Array, limits: Limits) -> None:
        """Moves the points into the linear limits and ranges by turns, in real columns that are not given, in place."""
        free, none = limits.real & ~self.columns, (points[:0], np.zeros(0))
        (A, b), (B, c) = limits.equalities or none, limits.linear or none
        back = np.linalg.pinv(A[:, free]).T
        for _ in range(PROJECTIONS):
            apart, over = points @ A.T - b, np.maximum(points @ B.T - c, 0.0)
            if max(np.abs(apart).max(initial=0.0), over.max(initial=0.0)) <= LEVEL:
                break
            points[:, free] -= apart @ back
            for row, excess in zip(B[:, free], over.T, strict=True):
                points[:, free] -= np.outer(excess / max(row @ row, LEVEL), row)
            points[:, free] = np.clip(points[:, free], 0.0, 1.0)


def filled(
    memory: MemoryRunner, pinned: Pinned, context: Array | None, randomness: Randomness, *, now: float,
    available: Available | None,
) -> Decision:  # fmt: skip
    """Returns the decision with the given columns and the best score.

    Args:
        memory: the memory of the run.
        pinned: the given columns.
        context: the context of the round, or None.
        randomness: the random numbers of the round.
        now: Unix seconds.
        available: what may be played, or None for everything.

    Raises:
        InvalidInput: no point has the given columns.
    """
    domain = memory.policy.domain
    if pinned.whole:
        return Decision(frozen(pinned.point.copy()), pinned.arm, explored=False)
    some = pinned.among(domain, available)
    if some is not None:
        return _best(memory, some, context, randomness, now)
    return _searched(memory, pinned, cast(Box | Space, domain), context, randomness, now)


def _searched(
    memory: MemoryRunner, pinned: Pinned, domain: Box | Space, context: Array | None, randomness: Randomness,
    now: float,
) -> Decision:  # fmt: skip
    """Returns the best point that is found with the given columns: everywhere, and then around the best so far."""
    rng = Draws(f"pinned {memory.rounds.seed} {memory.rounds.count}")
    posterior, best = memory.outputs.reward.posterior, best_point(memory, context)
    if not posterior.belief.observed.count:  # All scores are equal: a design is spread.
        forcing = due_forcing(memory, randomness) if memory.policy.explore.ever else None
        places = None if forcing is None else forced_places(memory, forcing, context, randomness)
        if places is not None and len(spread := pinned.onto(domain, places)):
            return Decision(frozen(spread[0]), None, explored=False)
    starts = _some_with(pinned, domain, cast(Array, memory.outputs.engine.candidates()), rng)
    if best is not None:
        starts = np.concatenate([starts, _around(pinned, domain, best, rng)])
    decision = _best(memory, Available(starts, None), context, randomness, now)
    for _ in range(TIMES):
        near = np.unique(_around(pinned, domain, decision.point, rng), axis=0)
        decision = _best(memory, Available(near, None), context, randomness, now)
    return decision


def _around(pinned: Pinned, domain: Box | Space, centre: Array, rng: Draws) -> Array:
    """Returns points with the given columns around another one."""
    return pinned.onto(domain, np.concatenate([centre[None], mutated(domain, centre[None], AROUND, rng)]))


def _some_with(pinned: Pinned, domain: Box | Space, candidates: Array, rng: Draws) -> Array:
    """Returns distinct points with the given columns, `(m, d)`, none if none is found."""
    found = pinned.onto(domain, candidates)
    for _ in range(TIMES):
        if len(found):
            break
        found = pinned.onto(domain, uniform(domain, len(candidates), rng))
    return np.unique(found, axis=0)


def has_some(pinned: Pinned, domain: Box | Space, candidates: Array) -> bool:
    """Returns whether the domain has points with the given columns, as far as a look at some points shows."""
    few = pinned.onto(domain, candidates[:FEW])
    return len(few) > 0 or len(_some_with(pinned, domain, candidates, Draws("pinned"))) > 0


def _best(memory: MemoryRunner, some: Available, context: Array | None, randomness: Randomness, now: float) -> Decision:
    """Returns the decision among finitely many points, in a round that is not forced."""
    if not len(some.points):
        raise InvalidInput("No point that may be played now has these values.")
    _, question, available = pose(memory, context, randomness, now=now, available=some, forcing=None)
    engine: Any = memory.outputs.engine
    decision: Decision = engine.choose(memory.outputs.reward.posterior.belief, question, available)
    return decision


def repeated(
    decision: Decision,
    switching: Switching,
    belief: Belief[Any],
    engine: Engine[Any],
    question: Question,
    available: Available | None,
) -> Decision:
    """Returns a decision with its number of plays, which depends on the belief about f there.

    Args:
        decision: the decision.
        switching: the slot `switching` of the policy.
        belief: the belief about f.
        engine: the engine of the policy.
        question: the question of the round.
        available: what may be played this time, or None for everything.
    """
    at: Any = decision.point[None] if decision.arm is None else np.array([decision.arm])
    mean, std = belief.predict(at)
    spread, ridge = float(std[0]), belief.observed.regularization
    here = question.bounds(*question.units.rewards(mean, std), at)
    reach = float(here.upper[0] - here.mean[0])
    lead = max(_best_mean(decision, belief, engine, question, available) - float(here.mean[0]), 0.0)
    hope = max(1.0 - lead / reach, 0.0) if reach > 0.0 else float(lead == 0.0)
    times = switching.repeats(spread, ridge, hope)
    why = f"`{type(switching).__name__}.repeats` says how often a point is played before the next decision."
    return decision._replace(repeats=integer("repeats", times, low=1, high=MOST_REPEATS, why=why))


def _best_mean(
    decision: Decision, belief: Belief[Any], engine: Engine[Any], question: Question, available: Available | None
) -> float:
    """Returns the largest posterior mean of what may be played, in reward units.

    On a box these are the candidates and the points played.
    """
    cells: Any
    if decision.arm is not None:
        cells = None if available is None else available.arms
    elif available is not None:
        cells = available.points
    else:
        played = belief.observed.points if belief.observed.count else decision.point[None]
        cells = np.concatenate([engine.candidates(), played])
    best = question.units.rewards(belief.mean(cells), np.zeros(0))[0].max()
    return float(best)


MOST_ANSWERED = 64  # points that forced rounds see with their joint posterior

# The part that forces a round, the question for the engine (None if the round is uniform), and what may be played.
Posed = tuple[Explore | None, Question | None, Available | None]


def decide(
    memory: MemoryRunner, context: Array | None, randomness: Randomness, *, now: float, available: Available | None
) -> Decision:
    """Returns the decision of the next round.

    Args:
        memory: the memory of the run, with the rounds and all outputs.
        context: the context of the round, or None.
        randomness: the random numbers of the round.
        now: Unix seconds.
        available: what may be played, or None for everything.
    """
    forcing, question, available = pose(memory, context, randomness, now=now, available=available)
    engine, switching = memory.outputs.engine, memory.policy.switching
    if question is None:
        return engine.draw_uniform(randomness, available)
    belief = memory.outputs.reward.posterior.belief
    if available is not None and len(available.points) == 1 and question.limits is None:  # nothing to compare
        decision = engine.best_among(np.zeros(1), 1.0, randomness, available)
    else:
        decision = engine.choose(belief, question, available)
    if switching is None or forcing is not None:
        return decision
    return repeated(decision, switching, belief, engine, question, available)


def pose(
    memory: MemoryRunner, context: Array | None, randomness: Randomness, *, now: float, available: Available | None,
    forcing: Explore | Literal["due"] | None = "due", guarded: bool = True,
) -> Posed:  # fmt: skip
    """Returns the question of the next round with what belongs to it (see `decide` for the other arguments).

    `forcing` is the part that forces the round, or None for no part. The default is the part that is due. Unless
    `guarded`, no budget of `nr.NoWorse` holds the round to the control.
    """
    if guarded and memory.rounds.budgets and (by := held(memory, context, available)):
        available = Available(memory.policy.domain.points[[by[0].than]], np.array([by[0].than]))
    if isinstance(forcing, str):
        forcing = due_forcing(memory, randomness) if memory.policy.explore.ever else None
    policy, rounds, outputs = memory.policy, memory.rounds, memory.outputs
    reward, score = outputs.reward, policy.score
    places = None
    if forcing is not None:
        forcing, places, available = _forced(memory, forcing, context, randomness, available)
        if forcing is not None and forcing.score is not None:
            score = forcing.score
        elif forcing is not None and places is None:
            return forcing, None, available
    limits = outputs.limits() if outputs.others else None
    if limits is not None and score is not policy.score:
        rule = limits.rule.beside(score)
        if rule is not limits.rule and places is not None:
            score = policy.score  # among a few places, this score uses all that is known of the constraints
        else:
            limits = limits._replace(rule=rule)
    if score.cost is not None:
        score = score.of_round(_situation(memory, context, randomness))
    best_reward = reward.data.best_reward
    if available is not None:
        best_reward = partial(reward.data.best_reward_at, available.points)
    question = Question(
        rounds.number, reward.bounds(now=now), reward.posterior.units, context, rounds.last, best_reward, randomness,
        score, 1.0 if reward.guess is None else reward.guess.growth, limits, lambda: _tried(memory),
    )  # fmt: skip
    return forcing, question, available


def held(memory: MemoryRunner, context: Array | None, available: Available | None) -> list[Standing]:
    """Returns the budgets that hold the next round to the control, none if the control may not be played."""
    found = [one for budget in memory.rounds.budgets if not (one := budget.standing(context)).bears]
    if not found:
        return found
    domain, failed = memory.policy.domain, memory.outputs.engine.failed_among
    return [] if places_left(domain.points[[found[0].than]], domain, available, failed) is None else found


def _forced(
    memory: MemoryRunner, forcing: Explore, context: Array | None, randomness: Randomness, available: Available | None
) -> tuple[Explore | None, Array | None, Available | None]:
    """Returns the part that forces the next round, the places that it names, and what may be played.

    A round is not forced if none of the places may be played.
    """
    places = forced_places(memory, forcing, context, randomness)
    if places is None:
        return forcing, None, available
    left = places_left(places, memory.policy.domain, available, memory.outputs.engine.failed_among)
    return (None, None, available) if left is None else (forcing, places, left)


def forced_places(
    memory: MemoryRunner, forcing: Explore, context: Array | None, randomness: Randomness
) -> Array | None:
    """Returns the places that a part names for the next round, `(n, d)`, or None for the whole domain."""
    places = forcing.places(_situation(memory, context, randomness))
    return None if places is None else checked_places(forcing, places, memory.policy.domain)


def due_forcing(memory: MemoryRunner, randomness: Randomness) -> Explore | None:
    """Returns the part that forces the next round, or None."""
    history = memory.rounds.count - memory.first_counted
    return memory.policy.explore.forcing(len(memory.rounds.uniform), history, randomness)


def _situation(memory: MemoryRunner, context: Array | None, randomness: Randomness) -> Situation:
    return Situation(
        memory.policy.domain, context, memory.rounds.count - memory.first_counted, memory.rounds.seed, randomness,
        lambda: best_point(memory, context), memory.outputs.reward.data.points,
        lambda: _answers(memory), lambda: _open_points(memory), memory.policy, memory.kept,
        lambda: _answered(memory, context),
    )  # fmt: skip


def _answers(memory: MemoryRunner) -> list[Trial]:
    """Returns the answered trials that count, by number."""
    told = (trial for trial in _counted(memory) if trial.reward is not None)
    return sorted(told, key=lambda trial: trial.number)


def _counted(memory: MemoryRunner) -> list[Trial]:
    """Returns the trials that count and are neither open nor dropped, in the order of the posterior.

    Trials outside of a domain that has changed since teach, but no round plays them again.
    """
    data, engine = memory.outputs.reward.data, memory.outputs.engine
    found = [trial for trial in data.posterior.trials if data.pending.is_answer(trial.number)]
    if engine.strays and found:
        found = list(compress(found, engine.inside(np.array([trial.point for trial in found]))))
    return found


def _open_points(memory: MemoryRunner) -> Array:
    """Returns the points of unanswered trials that count, `(k, d)`."""
    trials = list(memory.outputs.reward.data.pending.open.values())
    return np.array([trial.point for trial in trials]).reshape(len(trials), memory.policy.domain.dimension)


def _tried(memory: MemoryRunner) -> Array:
    """Returns the points that the search of a box or space leaves to play others, `(k, d)`.

    These are all that were asked for. If no parameter is real and answers are known to be noisy, they are the open ones
    alone. An answered point may then be worth a second question. Until noise is known, the best point may be asked
    again, which shows it.
    """
    domain, fitting, reward = memory.policy.domain, memory.policy.fitting, memory.outputs.reward
    belief = reward.posterior.belief
    seen, known = belief.with_pending.points, belief.observed
    if known.count and not real_columns(domain).any():
        noisy = known.noisy
        if noisy is None:
            noisy = fitting is None or fitting.noise != "unknown" or any(trial.std for trial in reward.posterior.trials)
            seen = known.points[np.arange(len(known.points)) != known.average.argmax()]
        seen = seen[:0] if noisy else seen
    return np.concatenate([seen[:, seen.shape[1] - domain.dimension :], _open_points(memory)])


def _comparable(memory: MemoryRunner) -> list[Trial]:
    """Returns the answered trials that count, of which those inside the constraints in the mean if there are any."""
    trials = _counted(memory)
    inside = memory.outputs.inside(trials) if trials else None
    if inside is not None and inside.any():
        trials = [trial for trial, is_inside in zip(trials, inside, strict=True) if is_inside]
    return trials


def best_point(memory: MemoryRunner, context: Array | None) -> Array | None:
    """Returns the answered point with the best posterior mean under a context, or None before the first answer."""
    outputs, engine, posterior = memory.outputs, memory.outputs.engine, memory.outputs.reward.posterior
    trials = _comparable(memory)
    if not trials:
        return None
    if context is None:
        return trials[int(engine.means(posterior.belief, trials).argmax())].point
    points = np.unique(np.array([trial.point for trial in trials]), axis=0)
    seen = engine.envelope(posterior.belief, outputs.reward.bounds(), posterior.units, points, context)
    best: Array = points[int(seen.mean.argmax())]
    return best


def _answered(memory: MemoryRunner, context: Array | None) -> Answered | None:
    """Returns the posterior at the most promising points tried, or None before the first answer."""
    engine, posterior = memory.outputs.engine, memory.outputs.reward.posterior
    trials = [trial._replace(context=context) for trial in _comparable(memory)]
    if not trials:
        return None
    each = list({trial.point.tobytes(): trial for trial in trials}.values())
    means = engine.means(posterior.belief, each)
    order = np.argsort(-means, kind="stable")[:MOST_ANSWERED]
    covariance = posterior.belief.observed.covariance(np.array([engine.cell_now(each[i]) for i in order]))
    points = np.array([each[i].point for i in order])
    # An answer to come is as noisy as the median one. Fits find the noise of those alone that came without `std`.
    usual = 1.0 / math.sqrt(np.median([1.0 if t.std is None else posterior.noise.weight(t) for t in trials]))
    noise, share = usual * math.sqrt(posterior.ridge), usual * posterior.noise_share
    told = {(trial.point.tobytes(), trial.reward) for trial in trials}
    noisy = len(each) == len(trials) or len(told) > len(each)
    return Answered(points, means[order], covariance, noise, share, noisy)


class _Case(NamedTuple):
    """A case of a round, by the part that forces it or none.

    Attributes:
        chance: the probability of the case.
        numbers: the arms of which one is played, or the places of points on other domains, `(n,)`.
        law: the law of their scores.
        size: the size by which score differences are judged.
    """

    chance: float
    numbers: IndexArray
    law: ScoreLaw
    size: float = 1.0


def propensity(
    memory: MemoryRunner, decision: Decision, context: Array | None, *, now: float, available: Available | None
) -> float | None:
    """Returns the probability of a decision, or None on continuous domains and where a part does not say it.

    Args:
        memory: the memory of the run, as it was when the decision was made.
        decision: the decision.
        context: the context of the round, or None.
        now: Unix seconds.
        available: what could be played, or None for everything.
    """
    cases = _cases(memory, context, now, available)
    if cases is None:
        return None
    if decision.arm is not None:
        ours = [decision.arm]
    else:
        ours = np.flatnonzero((available.points == decision.point).all(axis=1)).tolist()  # type: ignore[union-attr]
    found = 0.0
    for chance, numbers, law, size in cases:
        for number in ours:
            for place in np.flatnonzero(numbers == number).tolist():
                found += chance * law.probability(place, size)
    return found


def distribution(
    memory: MemoryRunner, context: Array | None, *, now: float, available: Available | None
) -> Array | None:
    """Returns the probability of each arm, `(N,)`, or None (see `propensity`).

    An arm that may not be played has 0. On other domains there is an entry for each point that may be played.
    """
    cases = _cases(memory, context, now, available)
    if cases is None:
        return None
    domain = memory.policy.domain
    found = np.zeros(len(domain) if isinstance(domain, Arms) else len(available.points))  # type: ignore[union-attr]
    for chance, numbers, law, size in cases:
        found[numbers] += chance * law.probabilities(size)
    return found


def _cases(memory: MemoryRunner, context: Array | None, now: float, available: Available | None) -> list[_Case] | None:
    """Returns the cases of the next round, or None if some law is not known."""
    if available is None and not isinstance(memory.policy.domain, Arms):
        return None
    explore, seed, number = memory.policy.explore, memory.rounds.seed, memory.rounds.count
    parts: Chances | None = ((None, 1.0),)
    if explore.ever:
        history = number - memory.first_counted
        parts = explore.chances(len(memory.rounds.uniform), history, Randomness(seed, number))
    found = []
    for forcing, chance in parts or ():
        if chance > 0.0:
            randomness = Randomness(seed, number)
            posed = pose(memory, context, randomness, now=now, available=available, forcing=forcing)
            case = None if randomness.used else _case(memory, posed, chance)
            if case is None:
                return None
            found.append(case)
    return found or None


def _case(memory: MemoryRunner, posed: Posed, chance: float) -> _Case | None:
    """Returns one case, or None if its law is not known."""
    from ..slots.propensities import KnownScores

    _, question, left = posed
    engine, belief = memory.outputs.engine, memory.outputs.reward.posterior.belief
    if left is not None and len(left.points) == 1:
        return _Case(chance, left.numbers, KnownScores(np.zeros(1)))
    if question is None:
        among = engine.remaining(left)
        return None if among is None else _Case(chance, among.numbers, KnownScores(np.zeros(len(among.points))))
    with engine.blas:
        law = engine.law(belief, question, left)
        return None if law is None else _Case(chance, *law, engine.size(belief, question, left))
