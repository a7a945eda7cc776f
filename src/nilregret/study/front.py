"""The trials that no other one beats: the front of several objectives, and the best mix under a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, many, nearest, number, shown
from .._utils.numerals import numeral, percent
from ..errors import InvalidInput, TrialError
from ..policy.state import State
from ..slots.objective import satisfying
from ..storage.record import Trial
from ..theory.fronts import hypervolume, non_dominated, reference_point
from .best import answered_trials, believed, is_noisy, told_front, uses_at, within_limits
from .direction import AnyPolicy, AnyState, Goal, goals_in, signs_of, told_envelope

TINY = 1e-300  # Against a division by zero.
LEAST_SHARE = 1e-6  # of the rounds, below which a point is not in a mix
LISTED = 5  # most numbers of trials in a sentence


class Front(NamedTuple):
    """The front of a study with k objectives, in the units told.

    Attributes:
        trials: the best of each objective first, in the order of the objectives, then the others by the first one.
        mean: posterior mean of each objective at each trial, `(n, k)`.
        std: posterior standard deviation, `(n, k)`.
        lower: lower bound, `(n, k)`, as of `Study.bounds`.
        upper: upper bound, `(n, k)`.
        hypervolume: volume between the front and `reference`, the product of the units. It is of posterior means, or of
            the values told if fits have found no noise.
        reference: the worst value of each objective that counts, `(k,)`: that of the policy, or one that follows from
            the answers. The volume is 0 without any answer.
        left_out: numbers of the trials that no other beats in the values told, and that are not on the front. Of
            those that violate a constraint as told, there is none.
        behind: the trial of the front, for each of `left_out`, whose posterior means are at least as good in all
            objectives. None if the posterior means of the constraints rule it out.

    If the policy says that values are exact, the means and bounds are the values told, and `std` is 0.
    """

    trials: list[Trial]
    mean: Array
    std: Array
    lower: Array
    upper: Array
    hypervolume: float
    reference: Array
    left_out: tuple[int, ...] = ()
    behind: tuple[int | None, ...] = ()

    @property
    def note(self) -> str:
        """The trials that are left out though no other beats them as told, or an empty text."""
        if not self.left_out:
            return ""
        n, are = len(self.left_out), "is" if len(self.left_out) == 1 else "are"
        each = zip(self.left_out[:LISTED], self.behind, strict=False)
        why = (f"{one} behind {other}" if other is not None else f"{one} by a constraint" for one, other in each)
        some = ", ".join(why) + ", ..." * (n > LISTED)
        return f"by posterior means: {many(n, 'trial')} ({some}) that no other beats as told {are} left out as noise"


class Mix(NamedTuple):
    """The points tried that earn most together while each budget holds on average, by posterior means.

    Attributes:
        trials: the earliest trial at each point that is played, the largest share first.
        shares: of the rounds, `(n,)`, in sum 1.
        reward: mean reward of a round, in the units told.
        use: mean value of each constraint in a round, `(m,)`. A budget is kept if it is at most 0.
    """

    trials: list[Trial]
    shares: Array
    reward: float
    use: Array

    def said(self, where: Callable[[Trial], str]) -> str:
        """Returns shares and points in words.

        Args:
            where: returns the point of a trial in words.
        """
        return ", ".join(
            f"{percent(share)} {where(trial)}" for trial, share in zip(self.trials, self.shares, strict=True)
        )


def mix_of(policy: AnyPolicy, goal: Goal, trials: Iterable[Trial], context: Array | None, state: AnyState) -> Mix:
    """Returns the best mix of the points tried (see `Study.mix`).

    Args:
        policy: of the study, with a posterior of each constraint.
        goal: of the study.
        trials: all of them.
        context: of each round, `(c,)`, or None.
        state: of the study, after all trials.
    """
    told = within_limits(policy, answered_trials(state, trials))
    each = list({trial.point.tobytes(): trial for trial in reversed(told)}.values())[::-1]
    points, sign = np.array([trial.point for trial in each]), signs_of((goal,))[0]
    rewards, uses = sign * told_envelope(state.envelope(points, context), goal).mean, uses_at(state, points, context)
    shares = best_shares(rewards[None], uses[:, None], np.ones(1))[0]
    found = [i for i in np.argsort(-shares, kind="stable") if shares[i] > LEAST_SHARE]
    return Mix([each[i] for i in found], shares[found], float(sign * (rewards @ shares)), uses @ shares)


def best_shares(rewards: Array, uses: Array, weights: Array) -> Array:
    """Returns the share of each of n points under each of k contexts that earns most on average, `(k, n)`.

    It solves max sum_c w_c p_c' r_c subject to sum_c w_c p_c' g_jc <= 0 for each constraint j.

    Args:
        rewards: r, `(k, n)`.
        uses: g, `(m, k, n)`.
        weights: w, share of the rounds of each context, `(k,)`.

    Raises:
        TrialError: no mix keeps the budgets.
    """
    from scipy.optimize import linprog  # slow to import, and only budgets on average need it

    k, n = rewards.shape
    kept = [np.flatnonzero(non_dominated(np.column_stack([rewards[c], *-uses[:, c]]))) for c in range(k)]
    context, at = np.repeat(np.arange(k), [*map(len, kept)]), np.concatenate(kept)
    gain, use = weights[context] * rewards[context, at], weights[context] * uses[:, context, at]
    gain, use = (each / (np.abs(each).max(axis=-1, keepdims=True) + TINY) for each in (gain, use))  # free of units
    found = linprog(-gain, use, np.zeros(len(use)), np.arange(k)[:, None] == context, np.ones(k))
    if found.x is None:
        raise TrialError(
            f"No mix of the {n} points tried keeps the budget on average, as far as is known. The closest point is "
            f"{numeral(uses.max(axis=0).min())} beyond it. Go on asking."
        )
    shares = np.zeros((k, n))
    shares[context, at] = found.x
    return shares


def front_of(
    policy: AnyPolicy, goals: tuple[Goal, ...], state: AnyState, trials: Iterable[Trial], reference: Any = None
) -> Front:
    """Returns the front of a study (see `Study.front_values`).

    Args:
        policy: of the study.
        goals: of the objectives.
        state: of the study, after all trials.
        trials: all of them.
        reference: the worst values that count, in the units told, or None.
    """
    signs = signs_of(goals)
    rule = cast(Any, policy).constraints
    given = rule.reference if reference is None else _given(reference, policy.objective_names)
    told, answered, each = _eligible(policy, cast(State, state), trials)
    means = _values(policy, cast(State, state), answered, each)
    found = _in_order(means, len(goals))
    if given is not None:
        corner = signs * np.asarray(given)
    else:
        corner = reference_point(means, means[found]) if len(found) else np.full(len(goals), np.nan)
    volume = hypervolume(means[found], corner) if len(found) else 0.0
    best = [each[i] for i in found]
    on = {trial.point.tobytes() for trial in best}
    beaten = [trial for trial in told_front(told, goals) if trial.point.tobytes() not in on]
    at = {trial.point.tobytes(): row for trial, row in zip(each, means, strict=True)}
    rows = [at.get(trial.point.tobytes()) for trial in beaten]
    behind = (None if row is None else best[(means[found] >= row).all(axis=1).argmax()].number for row in rows)
    if rule.exact and not is_noisy(answered):
        values = signs * means[found]
        bounds = values, np.zeros_like(values), values, values
    else:
        bounds = _shown(goals, cast(State, state), best)
    return Front(best, *bounds, volume, signs * corner, tuple(trial.number for trial in beaten), tuple(behind))


def compared(policy: AnyPolicy, state: State, trials: Iterable[Trial]) -> tuple[list[Trial], Array]:
    """Returns the answered trials that may be on the front, one for each point, and the values compared, `(n, k)`.

    These are posterior means. If the policy says that values are exact, or fits have found no noise, and none was seen,
    they are the values told. Otherwise means that differ by rounding would put trials on the front that another one
    beats. All objectives are maximised.

    Trials that violate a constraint are left out as those of `keeping`.
    """
    _, answered, each = _eligible(policy, state, trials)
    return each, _values(policy, state, answered, each)


def _eligible(policy: AnyPolicy, state: State, trials: Iterable[Trial]) -> tuple[list[Trial], list[Trial], list[Trial]]:
    """Returns the answered trials that satisfy constraints as told, those that may be on the front, and one a point."""
    try:
        told = answered = within_limits(policy, answered_trials(state, trials))
        if policy.constraint_count:
            exact = cast(Any, policy).constraints.exact and not is_noisy(answered)
            told = satisfying(answered)
            answered = told if exact else believed(policy, state, told)
    except TrialError:
        told = answered = []
    return told, answered, list({trial.point.tobytes(): trial for trial in reversed(answered)}.values())[::-1]


def _values(policy: AnyPolicy, state: State, answered: list[Trial], each: list[Trial]) -> Array:
    """Returns the values that are compared, `(n, k)`."""
    if not each:
        return np.zeros((0, policy.objective_count))
    if (cast(Any, policy).constraints.exact or state.tells_exactly) and not is_noisy(answered):
        return np.asarray(signs_of(goals_in(policy, "maximize")) * np.array([trial.values for trial in each]))
    return state.objective_means(each)


def _in_order(means: Array, k: int) -> IndexArray:
    """Returns the indices of the front: the best of each objective, then the others by the first objective."""
    front = np.flatnonzero(non_dominated(means))
    leaders = [front[int(means[front, j].argmax())] for j in range(k)] if len(front) else []
    rest = front[np.argsort(-means[front, 0], kind="stable")]
    return np.array(list(dict.fromkeys([*leaders, *rest])), dtype=np.intp)


def _shown(goals: tuple[Goal, ...], state: State, trials: list[Trial]) -> tuple[Array, Array, Array, Array]:
    """Returns mean, std, lower and upper bounds of each objective at trials, in the units told."""
    if not trials:
        empty = np.zeros((0, len(goals)))
        return empty, empty, empty, empty
    points = np.array([trial.point for trial in trials])
    found = [state.envelope(points) if not j else state.limit(j, points) for j in range(len(goals))]
    told = [told_envelope(each, goal) for each, goal in zip(found, goals, strict=True)]
    columns = [(each.mean, each.std, each.lower, each.upper) for each in told]
    mean, std, lower, upper = (np.stack(column, axis=1) for column in zip(*columns, strict=True))
    return mean, std, lower, upper


def weighted_best(front: Front, goals: tuple[Goal, ...], names: tuple[str, ...], weights: Any) -> Trial:
    """Returns the trial of the front with the least weighted sum of shortfalls (see `Study.best`)."""
    each = checked_weights(weights, names)
    if not front.trials:
        raise TrialError("No answered trial is on the front yet, so there is no best one.")
    signs = signs_of(goals)
    values = signs * front.mean
    extent = np.ptp(values, axis=0)
    shortfalls = (values.max(axis=0) - values) / np.where(extent > 0.0, extent, 1.0)
    return front.trials[int((shortfalls @ each).argmin())]


def checked_weights(weights: Any, names: tuple[str, ...]) -> Array:
    """Returns the weight of each objective, `(k,)`. An objective that is not named has the weight 0.

    Args:
        weights: numbers of at least 0 by name, or in order.
        names: of the objectives.
    """
    if isinstance(weights, Mapping):
        for name in weights:
            if name not in names:
                raise InvalidInput(
                    f"`weights` names {shown(name)}, which is no objective: there are {', '.join(map(repr, names))}."
                    + (nearest(name, list(names)) if isinstance(name, str) else "")
                )
        weights = [weights.get(name, 0.0) for name in names]
    listed = list(weights) if isinstance(weights, list | tuple | np.ndarray) else [weights]
    if len(listed) != len(names):
        raise InvalidInput(
            f"`weights` is {shown(weights)}: it must be a number for each objective ({', '.join(names)}), or a dict of "
            "these names."
        )
    each = zip(names, listed, strict=True)
    found = np.array([number(f"weight of {name}", one, low=0.0, high=LARGEST_REWARD) for name, one in each])
    if not found.any():
        raise InvalidInput("`weights` are all 0: give at least one objective a weight.")
    return np.asarray(found / found.max())


def _given(reference: Any, names: tuple[str, ...]) -> Array:
    if isinstance(reference, Mapping) and reference.keys() == set(names):
        reference = [reference[name] for name in names]
    listed = list(reference) if isinstance(reference, list | tuple | np.ndarray) else [reference]
    if len(listed) != len(names):
        each = f"{len(names)} objectives ({', '.join(names)})"
        raise InvalidInput(f"`reference` is {shown(reference)}: it must be a number for each of {each}.")
    return np.array([number("reference", each, low=-LARGEST_REWARD, high=LARGEST_REWARD) for each in listed])


def volumes(values: Array, reference: Array) -> Array:
    """Returns the volume of the front of the first n rows for each n, `(n,)`.

    A point adds what it has alone less what the front has of that: the volume of the front cut off at the point.

    Args:
        values: objectives of trials in their order, all maximised, `(n, k)`. NaN adds nothing.
        reference: `(k,)`.
    """
    front, total, found = np.zeros((0, len(reference))), 0.0, []
    for row in values:
        if (row > reference).all() and not (front >= row).all(axis=1).any():
            total += float(np.prod(row - reference)) - hypervolume(np.minimum(front, row), reference)
            front = np.concatenate([front[~(front <= row).all(axis=1)], row[None]])
        found.append(total)
    return np.array(found)


def believed_values(study: Any) -> Array:
    """Returns what trials are compared by now (see `compared`), all maximised, `(trials, k)`.

    A trial that cannot be on the front has NaN, since it failed, waits, or violates a constraint.
    """
    trials, retired = list[Trial](study.trials), study.replica.roster.retired
    kept = [trial for trial in trials if trial.arm not in retired]
    each, means = study.replica.query(lambda state: compared(study.policy, state, kept))
    at = {trial.point.tobytes(): i for i, trial in enumerate(each)}
    found = np.full((len(trials), len(study.goals)), np.nan)
    for i, trial in enumerate(trials):
        place = at.get(trial.point.tobytes())
        if place is not None and trial.values is not None and trial.feasible is not False:
            found[i] = means[place]
    return found


def own_volumes(values: Array, reference: Array) -> Array:
    """Returns the volume that each row has alone, `(n,)`. NaN stays NaN."""
    return np.asarray(np.prod(np.maximum(values - reference, 0.0), axis=1))
