"""The best of the answered trials, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import compress
from typing import NamedTuple, cast, final

import numpy as np

from .._utils.checks import Array
from .._utils.randomness import Draws
from ..domains.changed import within
from ..domains.domain import Arms, Space
from ..errors import TrialError
from ..policy.outputs import BY_NUMBER
from ..policy.state import State
from ..slots.objective import satisfying
from ..storage.record import Trial
from ..theory.fronts import non_dominated
from .direction import AnyPolicy, AnyState, Goal, has_channels, on_average, reward_trial, setting_of, signs_of
from .units import shared_of

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


@final
class FirstAnswers:
    """The earliest answered trial of each arm under each context, of a record that goes on.

    Trials of one arm have one posterior mean, so `best_trial` needs no others. No trial is read while no arm without an
    answer so far has a higher mean. Each is read once, and open ones again while they may be the earliest. A corrected
    answer or a roll-back needs a new object.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, bytes], Trial] = {}
        self._open: list[int] = []
        self._arms: list[Trial] = []  # A question for each arm.
        self._since = self._end = 0  # Numbers of the first trial that counts, and of the first one not read yet.

    def of(self, policy: AnyPolicy, state: AnyState, trials: Sequence[Trial], retired: Set[int]) -> list[Trial]:
        """Returns those that may be the best, by number, or none if all answered trials must be looked at.

        Args:
            policy: of the study.
            state: of the study, after all trials.
            trials: all of them, of which earlier calls have seen the beginning.
            retired: numbers of arms that do not count.
        """
        if not isinstance(state, State) or not isinstance(policy.domain, Arms) or policy.constraint_count:
            return []
        since = state.restarts[-1].round if state.restarts else 0
        if since != self._since:
            self._found, self._open, self._since, self._end = {}, [], since, since
        self._open = [number for number in self._open if self._waits(trials[number])]
        block, may_end = BLOCK, policy.context is None and state.reward.posterior.units.warp is None
        while self._end < len(trials):
            if may_end and len(trials) - self._end > BLOCK and self._leads(state, policy.domain, retired):
                break
            some = trials[self._end : self._end + block]
            self._open += [trial.number for trial in some if self._waits(trial)]
            self._end, block = self._end + len(some), 2 * block
        return sorted(self._in_use(retired), key=BY_NUMBER)

    def _in_use(self, retired: Set[int]) -> list[Trial]:
        return [trial for trial in self._found.values() if trial.arm not in retired]

    def _waits(self, trial: Trial) -> bool:
        """Takes in a trial. Returns whether it may be the earliest answered one, once it has its answer."""
        place = cast(int, trial.arm), b"" if trial.context is None else trial.context.tobytes()
        known = self._found.get(place)
        if known is not None and known.number < trial.number:
            return False
        if trial.reward is not None:
            self._found[place] = trial
        return trial.open

    def _leads(self, state: State, arms: Arms, retired: Set[int]) -> bool:
        """Returns whether no arm without an answer so far has a higher posterior mean than those with one."""
        if len(self._arms) != len(arms):
            self._arms = [Trial(0, point, arm, None, 0, 0.0) for arm, point in enumerate(arms.points)]
        gone = {arm for arm, _ in self._found} | retired
        known, others = self._in_use(retired), [each for each in self._arms if each.arm not in gone]
        if not known or not others:
            return bool(known)
        return bool(state.answered_means(others).max() <= state.answered_means(known).max())


def best_trial(policy: AnyPolicy, goal: Goal, state: AnyState, trials: Iterable[Trial], context: Array | None) -> Trial:
    """Returns the best answered trial (see `Study.best`).

    Args:
        policy: of the study.
        goal: of the study.
        state: of the study, after all trials.
        trials: all of them.
        context: context of the comparison, `(c,)`, or None.
    """
    answered, means = _compared(policy, goal, state, trials, context)
    return answered[int(means.argmax())]


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
    each = list({_place(trial): trial for trial in here}.values())
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
    answered = within_limits(policy, answered_trials(state, trials))
    if not answered:
        raise TrialError(
            "No answered trial is in the space and its limits, so there is no best one.", advice="Ask for a trial."
        )
    elsewhere = [] if context is None or not has_channels(policy) else _learned_to_satisfy(state, answered, context)
    if elsewhere:
        answered = elsewhere
    elif policy.constraint_count:
        answered = satisfying(answered if context is None else _under(context, answered))
        inside = state.inside(answered)  # One noisy value proves little, so the posterior mean must agree.
        if inside is not None and inside.any():
            answered = [trial for trial, is_inside in zip(answered, inside, strict=True) if is_inside]
    if context is None or (policy.constraint_count and not elsewhere):
        seen = answered if goal == "maximize" else [reward_trial(trial, (goal,)) for trial in answered]
        means = state.answered_means(seen)
    else:
        means = state.envelope(np.array([trial.point for trial in answered]), context).mean
    return answered, means


def _place(trial: Trial) -> tuple[bytes, bytes]:
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


def _learned_to_satisfy(state: AnyState, trials: list[Trial], context: Array) -> list[Trial]:
    """Returns the trials that satisfied all constraints and whose points also satisfy them under `context`.

    A point satisfies them if the posterior mean of each constraint is at most 0. In addition, no violation was told at
    the point under exactly this context.
    """
    told = satisfying(trials)
    points = np.array([trial.point for trial in told])
    count = len(told[0].constraints) if told[0].constraints is not None else 0
    worst = np.max([state.limit(j + 1, points, context).mean for j in range(count)], axis=0)
    broken = {
        trial.point.tobytes()
        for trial in trials
        if trial.context is not None and np.array_equal(trial.context, context)
        if trial.constraints is not None and trial.constraints.max() > 0.0
    }
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
