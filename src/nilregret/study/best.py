"""The best of the answered trials, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple, cast, final

import numpy as np

from .._utils.checks import Array
from .._utils.randomness import Draws
from ..domains.domain import Arms, Space, within
from ..errors import TrialError
from ..policy.outputs import BY_NUMBER
from ..policy.state import State
from ..slots.objective import satisfying
from ..storage.record import Trial
from ..theory.fronts import non_dominated
from .direction import AnyPolicy, AnyState, Goal, has_channels, on_average, reward_trial, setting_of, signs_of
from .visits import shared_of

if TYPE_CHECKING:
    from .spaces import Roster

DRAWS = 8192  # joint draws behind a probability, whose standard error is then at most 0.006
BLOCK = 512  # trials beyond which means of arms say whether more must be read
MOST_COMPARED = 512  # points that are drawn together, those of the best posterior means


class Certainty(NamedTuple):
    """The certainty that the point of a trial is the best of all points that were tried.

    Attributes:
        probability: posterior probability that f is nowhere better at the points tried.
        loss: posterior mean of the best f at the points tried less f at this one, reward units. At least 0.
    """

    probability: float
    loss: float


class _Place:
    """The answered trials at one point under one context.

    Attributes:
        first: the earliest of them.
        total: sum of their constraint values, `(m,)`.
        count: number of them, of policies with constraints.
        broken: True if one of them violated a constraint.
    """

    __slots__ = ("broken", "count", "first", "total")

    def __init__(self, first: Trial) -> None:
        self.first, self.total, self.count, self.broken = first, np.zeros(0), 0, False

    def add(self, trial: Trial) -> None:
        """Takes in an answered trial."""
        if trial.number < self.first.number:
            self.first = trial
        if trial.constraints is not None:
            self.total = trial.constraints if not self.count else self.total + trial.constraints
            self.count += 1
            self.broken |= bool(trial.constraints.max(initial=0.0) > 0.0)

    @property
    def trial(self) -> Trial:
        """The earliest trial, with the average constraint values of all."""
        return self.first if self.count < 2 else self.first._replace(constraints=self.total / self.count)


@final
class FirstAnswers:
    """The earliest answered trial of each point under each context, of a record that goes on.

    Trials of one point have one posterior mean, so `best_trial` needs no others. Each trial is read once, and open ones
    again while they may matter. On arms, no trial is read while no arm without an answer so far has a higher mean. A
    corrected answer, a roll-back or a change of the space needs a new object.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int | bytes, bytes], _Place] = {}
        self._open: list[int] = []
        self._arms: list[Trial] = []  # A question for each arm.
        self._since = self._end = 0  # Numbers of the first trial that counts, and of the first one not read yet.
        self._limited = False  # Whether constraint values count.

    def of(self, policy: AnyPolicy, state: State, trials: Sequence[Trial], roster: Roster) -> list[Trial]:
        """Returns those that may be the best, by number, each with the average constraint values at its place.

        Args:
            policy: of the study.
            state: of the study, after all trials.
            trials: all on record, of which earlier calls have seen the beginning.
            roster: the arms, and the space, of now.
        """
        since = state.restarts[-1].round if state.restarts else 0
        if since != self._since:
            self._found, self._open, self._since, self._end = {}, [], since, since
        self._limited = policy.constraint_count > 0
        self._open = [number for number in self._open if self._waits(roster.moved(trials[number]))]
        alone = policy.context is None and state.reward.posterior.units.warp is None and not self._limited
        arms, block = policy.domain if alone else None, BLOCK
        while self._end < len(trials):
            many = isinstance(arms, Arms) and len(trials) - self._end > BLOCK
            if many and self._leads(state, cast(Arms, arms), roster.retired):
                break
            some = trials[self._end : self._end + block]
            self._open += [trial.number for trial in some if self._waits(roster.moved(trial))]
            self._end, block = self._end + len(some), 2 * block
        return sorted(self._in_use(roster.retired), key=BY_NUMBER)

    def first(self, trial: Trial) -> Trial:
        """Returns the trial on record that one of `of` stands for."""
        return self._found[self._key(trial)].first

    def broken(self, context: Array) -> set[bytes]:
        """Returns the points of which a trial under a context violated a constraint."""
        under = context.tobytes()
        return {each.first.point.tobytes() for (_, seen), each in self._found.items() if seen == under and each.broken}

    def _in_use(self, retired: Set[int]) -> list[Trial]:
        return [each.trial for each in self._found.values() if each.first.arm not in retired]

    def _waits(self, trial: Trial) -> bool:
        """Takes in a trial. Returns whether it may matter once it has its answer."""
        key = self._key(trial)
        known = self._found.get(key)
        if known is not None and known.first.number < trial.number and not self._limited:
            return False
        if trial.reward is None:
            return trial.open
        if self._limited and trial.constraints is None:
            return True
        if known is None:
            known = self._found[key] = _Place(trial)
        known.add(trial)
        return False

    def _key(self, trial: Trial) -> tuple[int | bytes, bytes]:
        """Returns what trials of one place have in common. An arm is read quickest, but several may be at one point."""
        point = trial.point.tobytes() if trial.arm is None or self._limited else trial.arm
        return point, b"" if trial.context is None else trial.context.tobytes()

    def _leads(self, state: State, arms: Arms, retired: Set[int]) -> bool:
        """Returns whether no arm without an answer so far has a higher posterior mean than those with one."""
        if len(self._arms) != len(arms):
            self._arms = [Trial(0, point, arm, None, 0, 0.0) for arm, point in enumerate(arms.points)]
        gone = {arm for arm, _ in self._found} | retired
        known, others = self._in_use(retired), [each for each in self._arms if each.arm not in gone]
        if not known or not others:
            return bool(known)
        return bool(state.answered_means(others).max() <= state.answered_means(known).max())


def best_trial(
    policy: AnyPolicy, goal: Goal, state: AnyState, trials: Iterable[Trial], context: Array | None,
    broken: Set[bytes] | None = None,
) -> Trial:  # fmt: skip
    """Returns the best answered trial (see `Study.best`).

    Args:
        policy: of the study.
        goal: of the study.
        state: of the study, after all trials.
        trials: all of them, or those of `FirstAnswers`, which are few.
        context: context of the comparison, `(c,)`, or None.
        broken: points of which a trial under the context violated a constraint, or None if these follow from `trials`.
    """
    answered, own = _candidates(policy, state, trials, context, broken)
    if own:
        return answered[state.best_answered(_rewards(state, goal, answered))]
    answered = list({trial.point.tobytes(): trial for trial in reversed(answered)}.values())[::-1]
    return answered[int(_means_under(state, answered, context).argmax())]


def certainty(
    policy: AnyPolicy, goal: Goal, state: AnyState, trials: Iterable[Trial], context: Array | None, *,
    seed: int, of: Trial | None = None,
) -> Certainty | None:  # fmt: skip
    """Returns how sure it is that a trial is the best (see `Study.certainty`), or None if the policy is a script.

    Args:
        policy: of the study.
        goal: of the study.
        state: of the study, after all trials.
        trials: all of them.
        context: context of the comparison, `(c,)`, or None.
        seed: of the study. Equal studies have equal draws.
        of: the trial, or None for the best one.
    """
    if not isinstance(state, State):
        return None
    answered, means = _compared(policy, goal, state, trials, context)
    ranked = [answered[i] for i in np.argsort(-means, kind="stable")]
    best = ranked[0] if of is None else of
    here = [trial if context is None else trial._replace(context=context) for trial in (best, *ranked)]
    # Trials at one point differ only by noise, so each point counts once. That of the trial in question comes first.
    each = list({place_of(trial): trial for trial in here}.values())
    exact = context is None and state.reward.tells_exactly and not any(trial.std for trial in answered)
    if len(each) == 1 or (exact and _leads(best, answered, goal)):
        return Certainty(1.0, 0.0)
    drawn = state.draw_answered(each[:MOST_COMPARED], Draws(f"best {seed}"), DRAWS)
    doubt = shared_of(answered, np.array([trial.reward for trial in answered], dtype=np.float64)).doubt
    if doubt > 1.0:  # The posterior takes the visits of a unit for independent.
        centre = drawn.mean(axis=0)
        drawn = centre + doubt * (drawn - centre)
    shortfall = drawn.max(axis=1) - drawn[:, 0]
    return Certainty(float(np.mean(shortfall <= 0.0)), float(np.mean(shortfall)))


def _compared(
    policy: AnyPolicy, goal: Goal, state: AnyState, trials: Iterable[Trial], context: Array | None
) -> tuple[list[Trial], Array]:
    """Returns the answered trials that may be the best, and the posterior means of their rewards, `(n,)`."""
    answered, own = _candidates(policy, state, trials, context)
    seen = _rewards(state, goal, answered)
    return answered, state.answered_means(seen) if own else _means_under(state, answered, context)


def _candidates(
    policy: AnyPolicy, state: AnyState, trials: Iterable[Trial], context: Array | None,
    broken: Set[bytes] | None = None,
) -> tuple[list[Trial], bool]:  # fmt: skip
    """Returns the answered trials that may be the best, and whether each is compared under its own context."""
    answered = within_limits(policy, answered_trials(state, trials))
    if not answered:
        raise TrialError(
            "No answered trial is in the space and its limits, so there is no best one.", advice="Ask for a trial."
        )
    if context is not None and has_channels(policy):
        known = set() if has_budget(policy) else _broken(answered, context) if broken is None else broken
        told = answered if has_budget(policy) else satisfying(answered)
        elsewhere = _learned_to_satisfy(state, told, context, known)
        if elsewhere:
            return elsewhere, False
    if not policy.constraint_count:
        return answered, context is None
    return keeping(policy, state, answered if context is None else _under(context, answered)), True


def has_budget(policy: AnyPolicy) -> bool:
    """Returns whether each constraint has a posterior of its own, and holds on average."""
    return has_channels(policy) and on_average(policy)


def keeping(policy: AnyPolicy, state: AnyState, answered: list[Trial]) -> list[Trial]:
    """Returns the answered trials whose points satisfy the constraints, each under its own context.

    The mean of the values told at a point is at most 0. One noisy value proves little, so the posterior mean must agree
    where it does at some point. Under a budget on average the mean counts, and so the posterior mean alone.

    Raises:
        TrialError: there is none.
    """
    return believed(policy, state, answered if has_budget(policy) else satisfying(answered))


def believed(policy: AnyPolicy, state: AnyState, answered: list[Trial]) -> list[Trial]:
    """Returns the trials at whose points posterior means satisfy the constraints, or all if there are none (`keeping`).

    Raises:
        TrialError: there is none under a budget on average.
    """
    inside = state.inside(answered)
    if has_budget(policy) and inside is not None and not inside.any():
        raise TrialError(
            "At no point tried is the expected use within the budget, as far as is known, so there is no best one. Go "
            "on asking."
        )
    return list(compress(answered, inside)) if inside is not None and inside.any() else answered


def _rewards(state: AnyState, goal: Goal, trials: list[Trial]) -> list[Trial]:
    """Returns trials as a script sees them: with minus the loss as the reward. A posterior reads no rewards of them."""
    return (
        trials if goal == "maximize" or isinstance(state, State) else [reward_trial(each, (goal,)) for each in trials]
    )


def _means_under(state: AnyState, trials: list[Trial], context: Array | None) -> Array:
    """Returns posterior means at the points of trials under a context, `(n,)`."""
    return state.envelope(np.array([trial.point for trial in trials]), context).mean


def place_of(trial: Trial) -> tuple[bytes, bytes]:
    """Returns what trials at one point under one context have in common."""
    return trial.point.tobytes(), b"" if trial.context is None else trial.context.tobytes()


def _leads(best: Trial, answered: list[Trial], goal: Goal) -> bool:
    """Returns whether no other trial was told a better reward."""
    told = [trial.reward for trial in answered if trial.reward is not None]
    return best.reward is not None and best.reward == (max(told) if goal == "maximize" else min(told))


def told_best(trials: Iterable[Trial], goal: Goal) -> Trial | None:
    """Returns the earliest trial with the best value told, or None."""
    sign = 1.0 if goal == "maximize" else -1.0
    told = [trial for trial in trials if trial.reward is not None]
    return max(told, key=lambda trial: sign * (trial.reward or 0.0), default=None)


def told_front(trials: Iterable[Trial], goals: Sequence[Goal]) -> list[Trial]:
    """Returns the trials that no other one beats in the values told. Of one objective, it is the earliest best one."""
    if len(goals) == 1:
        best = told_best(trials, goals[0])
        return [] if best is None else [best]
    told = [trial for trial in trials if trial.reward is not None]
    values = np.array([trial.values for trial in told]).reshape(len(told), len(goals))
    return list(compress(told, non_dominated(signs_of(goals) * values)))


def at_full(policy: AnyPolicy, trials: Sequence[Trial]) -> Sequence[Trial]:
    """Returns the answered trials at the full setting, if the policy has a `fidelity` and there are some, or else all.

    Values of reduced settings are of other functions, so they are neither the best nor noise of one another.
    """
    fidelity = setting_of(policy)
    if fidelity is None:
        return trials
    full = fidelity.full
    return [trial for trial in trials if trial.reward is not None and np.all(trial.context == full)] or trials


def within_limits(policy: AnyPolicy, trials: Iterable[Trial]) -> list[Trial]:
    """Returns the trials in the space that keep the known limits.

    Those of `add` may not keep them, and those of an earlier space may be outside (`Study.widen`).
    """
    given, limits = in_space(policy, trials), policy.domain.limits
    if limits is None or not given:
        return given
    return list(compress(given, limits.holds(np.array([trial.point for trial in given]))))


def in_space(policy: AnyPolicy, trials: Iterable[Trial]) -> list[Trial]:
    """Returns the trials in the space of now, which those of an earlier space may not be."""
    given, space = list(trials), policy.domain
    if not isinstance(space, Space) or not space.changed or not given:
        return given
    return list(compress(given, within(space, np.array([trial.point for trial in given]))))


def without_violation(policy: AnyPolicy, trials: Iterable[Trial]) -> list[Trial]:
    """Returns the trials that keep the known limits and violate no constraint.

    Of constraints that hold on average, no single trial violates any.
    """
    kept = within_limits(policy, trials)
    return kept if on_average(policy) else [trial for trial in kept if trial.constraints is None or trial.feasible]


def meets(policy: AnyPolicy, trial: Trial) -> bool:
    """Returns whether a trial is known to satisfy all constraints. If they hold on average, every trial does."""
    if on_average(policy):
        return True
    return trial.feasible is True if policy.constraint_count else trial.feasible is not False


def admissible(policy: AnyPolicy, trials: Iterable[Trial]) -> list[Trial]:
    """Returns the trials that keep the known limits and are known to satisfy all constraints."""
    return [trial for trial in within_limits(policy, trials) if meets(policy, trial)]


def is_noisy(trials: Iterable[Trial]) -> bool:
    """Returns whether noise was told, or some point was evaluated twice with different values."""
    answered = [trial for trial in trials if trial.reward is not None]
    values: dict[bytes, tuple[float, ...] | None] = {}
    differs = any(values.setdefault(trial.point.tobytes(), trial.values) != trial.values for trial in answered)
    return differs or any(trial.std or any(other.std for other in trial.others) for trial in answered)


def closest_of(trials: Iterable[Trial]) -> Trial | None:
    """Returns the trial with the smallest violation if constraint values were told and no trial satisfies them."""
    told = [trial for trial in trials if trial.reward is not None and trial.constraints is not None]
    if not told:
        return None
    try:
        satisfying(told)
    except TrialError:
        return min(told, key=_violation)
    return None


def _violation(trial: Trial) -> float:
    return 0.0 if trial.constraints is None else float(trial.constraints.max())


def answered_trials(state: AnyState, trials: Iterable[Trial]) -> list[Trial]:
    """Returns the trials whose posterior mean can be compared.

    Raises:
        TrialError: there is none.
    """
    answered = [trial for trial in trials if trial.reward is not None]
    if not answered:
        raise TrialError("No trial has been answered yet, so there is no best one.")
    if state.restarts:  # The posterior no longer includes earlier trials.
        since = state.restarts[-1].round
        answered = [trial for trial in answered if trial.number >= since]
        if not answered:
            raise TrialError(f"No trial has been answered since the restart at round {since}, so none is best.")
    return answered


def _broken(trials: list[Trial], context: Array) -> set[bytes]:
    """Returns the points at which a violation was told under exactly this context."""
    return {
        trial.point.tobytes()
        for trial in trials
        if trial.context is not None and np.array_equal(trial.context, context)
        if trial.constraints is not None and trial.constraints.max() > 0.0
    }


def uses_at(state: AnyState, points: Array, context: Array | None) -> Array:
    """Returns the posterior mean of each constraint at points, `(m, n)`."""
    return np.array([state.limit(j + 1, points, context).mean for j in range(state.policy.constraint_count)])


def _learned_to_satisfy(state: AnyState, told: list[Trial], context: Array, broken: Set[bytes]) -> list[Trial]:
    """Returns the trials whose points also satisfy all constraints under `context`.

    A point satisfies them if the posterior mean of each constraint is at most 0. In addition, no violation was told at
    the point under exactly this context.
    """
    worst = uses_at(state, np.array([trial.point for trial in told]), context).max(axis=0)
    return [
        trial for trial, mean in zip(told, worst, strict=True) if mean <= 0.0 and trial.point.tobytes() not in broken
    ]


def _under(context: Array, trials: list[Trial]) -> list[Trial]:
    """Returns the trials of exactly this context.

    Raises:
        TrialError: there is none.
    """
    found = [trial for trial in trials if trial.context is not None and np.array_equal(trial.context, context)]
    if not found:
        raise TrialError(
            f"No trial has been answered under context {context.tolist()} yet, so there is no best one. Under "
            "constraints only such trials say what is satisfied there."
        )
    return found
