"""Warnings that the record contradicts the scales that a policy was made with.

A wrong scale raises no error: the study runs and learns little. At some numbers of trials a study therefore compares
its rewards with what the policy expects.

| symbol | name | meaning | unit |
|---|---|---|---|
| s | `deviation` | prior standard deviation of f, times the norm bound if there is one | reward |
| S | `spread` | sum of squares of rewards about the mean of their own point | reward squared |
| n | | answered trials | |
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, many
from .._utils.numerals import numeral
from ..domains.domain import Arms, Domain, space_of
from ..domains.parameters import Choice
from ..errors import printable
from ..kernels.domains import prior_std
from ..policy.policy import Policy
from ..policy.scripted import ScriptedPolicy
from ..policy.state import State
from ..slots.objective import Constrained
from ..storage.trial import Trial, was_asked
from ..theory.penalties import LARGEST
from .definition import RULE
from .direction import AnyState, has_channels

FIRST, LAST = 4, 4096  # Checks are made at 4, 16, 64, ... 4,096 trials, with constraints at 4, 8, 16, ...
FEWEST = 4  # Answers before the first warning.
TAUGHT_NOTHING = 16  # Answers without the constraint values that the policy needs.
FAR = 6.0  # Standard deviations of prior and noise. Prior samples are that far once in 5e8.
STIFF = 30.0  # Largest lambda without a warning, in prior variances.
RUNAWAY = 100.0  # Largest charge for a typical violation, in ranges of the rewards.
MOSTLY = 0.9  # Share of the recent trials that violate a constraint.
DECIDED = 100  # Decisions before a warning of open ones.
UNANSWERED = 0.2  # Share of open decisions from which a budget that is used up is theirs, and from which rates err.
FRESH = 100  # Latest trials, which weigh most in a posterior that drifts.
UNWANTED, NOISE = "constraints not wanted", "noise"
OFTEN_UNKNOWN = 0.05  # Share of decisions with an unknown level of a context, from which a caution says so.
NO_ARMS = (
    "The study does not decide among arms. Only choices of arms have propensities, so its log says nothing of other "
    "policies."
)
LISTED = 3  # Levels that a sentence names.
OPEN = (
    "Believed rewards are too {}: {} and count as nothing until the default reward at their deadline. {} Usually a yes "
    "is told at once and a no never. It passes once few trials are open. For beliefs that count open trials, make a "
    'study with "silence" as `on_deadline`, or for clicks with "silent no" as `answers` of `auto`.'
)
EXPOSED = (
    "Believed rewards may be far off, mostly too {}: {}, and no default reward is on record. {} How long rewards take "
    "is learned from trials whose deadline has passed. Wait for these before you act on the beliefs."
)
FALSE_ALARM = 1e-6  # Probability of a wrong warning about the noise, in all checks together.


class Answered(NamedTuple):
    """The answered trials of a study.

    Attributes:
        rewards: their rewards, `(n,)`.
        where: a key of the point and context of each, n of them. It may be read once.
        plays: number of plays of each, `(n,)`.
        scatter: sum of squared deviations of the rewards of single trials from their averages.
        constraints: the constraint values told, each `(m,)`.
        trials: number of all trials, also of those without an answer.
        others: the same for each objective after the first, without constraint values.
    """

    rewards: Array
    where: Iterable[Hashable]
    plays: IndexArray
    scatter: float
    constraints: Sequence[Array]
    trials: int
    others: Sequence[Answered] = ()

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Self:
        """Returns the answered ones of all trials."""
        answered = [trial for trial in trials if trial.reward is not None]
        return cls(
            np.array([trial.reward for trial in answered]),
            map(_where, answered),
            np.array([trial.times for trial in answered], dtype=np.intp),
            sum(trial.scatter for trial in answered if trial.std is None),
            [trial.constraints for trial in answered if trial.constraints is not None],
            len(trials),
            [cls._of_another(j, answered, len(trials)) for j in range(len(answered[0].others) if answered else 0)],
        )

    @classmethod
    def _of_another(cls, j: int, answered: Sequence[Trial], trials: int) -> Self:
        told = [trial.others[j] for trial in answered]
        where = [_where(trial._replace(std=other.std)) for trial, other in zip(answered, told, strict=True)]
        return cls.once(np.array([other.value for other in told]), where, trials=trials)

    @classmethod
    def once(cls, rewards: Array, where: Iterable[Hashable], *, trials: int) -> Self:
        """Returns answered trials of one play each.

        Args:
            rewards: their rewards, `(n,)`.
            where: a key for each, which all repeats share.
            trials: number of all trials.
        """
        return cls(rewards, where, np.ones(len(rewards), dtype=np.intp), 0.0, (), trials)


def _numbered(keys: Iterable[Hashable]) -> IndexArray:
    """Returns the number of each key, `(n,)`, by the order in which keys come first."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.intp)


def next_check(trials: int, *, constrained: bool) -> float:
    """Returns the number of trials at the next check.

    Args:
        trials: their number at this check.
        constrained: True if the policy has constraints, whose multipliers run away fast.
    """
    if trials >= LAST:
        return math.inf
    following = FIRST
    while following <= trials:
        following *= 2 if constrained else 4
    return following


def cautions(policy: Policy | ScriptedPolicy, answered: Answered, multipliers: Array) -> dict[str, str]:
    """Returns a sentence for each mismatch, by kind.

    Args:
        policy: of the study.
        answered: its answered trials.
        multipliers: of the constraints, now, `(m,)`.
    """
    rewards = answered.rewards
    if len(rewards) < FEWEST:
        return {}
    said = {
        "constraints not told": _constraints_not_told(policy, answered),
        UNWANTED: _constraints_not_wanted(policy, answered),
    }
    if isinstance(policy, Policy):
        said["multipliers"] = _multipliers(policy, answered, multipliers)
        said |= _of_scales(policy, answered)
        for j, other in enumerate(answered.others, start=1):
            name = policy.objective_names[j]
            found = _of_scales(policy.of_channel(j), other)
            said |= {f"{kind} of {name}": text and f"Objective {name!r}: {text}" for kind, text in found.items()}
    return {kind: sentence for kind, sentence in said.items() if sentence is not None}


class Unknown(NamedTuple):
    """The decisions at the unknown level of a parameter of contexts (`unknown=True`).

    Attributes:
        name: of the parameter.
        times: number of decisions.
        trials: number of all decisions.
        levels: each value as it came and how often, the most frequent first. None stands for a missing one.
    """

    name: str
    times: int
    trials: int
    levels: list[tuple[Any, int]]

    @property
    def sentence(self) -> str:
        """The share of the decisions, and the most frequent values."""
        named = [f"{'none given' if value is None else value} {count:,}" for value, count in self.levels[:LISTED]]
        rest = self.levels[LISTED:]
        named += [f"{many(len(rest), 'further level')} {sum(count for _, count in rest):,}"] * bool(rest)
        share = f"{numeral(100.0 * self.times / self.trials, 2)}%"
        return f"{share} of {self.trials:,} decisions had an unknown {printable(self.name)}: {', '.join(named)}."


def unknown_levels(policy: Policy | ScriptedPolicy, trials: Sequence[Trial]) -> list[Unknown]:
    """Returns the parameters of contexts that were unknown in some decisions, and whose levels still are."""
    space = None if policy.context is None else space_of(policy.context)
    if space is None or not space.unknown:
        return []
    came = Counter(
        (name, type(value), value)  # True and 1 are two values.
        for trial in trials
        if trial.visit is not None
        for name, value in trial.visit.given
    )
    found: dict[str, list[tuple[Any, int]]] = {}
    for (name, _, value), count in came.most_common():
        parameter = space.parameters.get(name)
        declared = isinstance(parameter, Choice) and value is not None and parameter.find(value) is not None
        if parameter is not None and not declared:
            found.setdefault(name, []).append((value, count))
    return [Unknown(name, sum(n for _, n in levels), len(trials), levels) for name, levels in found.items()]


def trial_cautions(policy: Policy | ScriptedPolicy, trials: Sequence[Trial], *, propensities: bool) -> dict[str, str]:
    """Returns a sentence, by kind, for useless propensities and for each parameter of contexts that is often unknown.

    Args:
        policy: of the study.
        trials: all of them.
        propensities: whether the study records propensities.
    """
    found = {
        f"unknown {each.name}": f"{each.sentence} They were decided as for the average level. "
        "Usually a level is new, or a part of the program leaves the entry out. Declaring the level lets its decisions "
        "count for it: `widen` with `context`."
        for each in unknown_levels(policy, trials)
        if each.trials >= TAUGHT_NOTHING and each.times >= max(FEWEST, OFTEN_UNKNOWN * each.trials)
    }
    if not isinstance(policy.domain, Arms) and (propensities or any(each.propensity is not None for each in trials)):
        found["propensities"] = f"Propensities have no use here. {NO_ARMS} A grid of the parameters has arms."
    return found


def _of_scales(policy: Policy, answered: Answered) -> dict[str, str | None]:
    """Returns a sentence, or None, for each scale of the policy of one objective, by kind."""
    # A fit learns scales and noise, and so does a posterior of rates or of linear models.
    if policy.fitting is not None or policy.models is not None or policy.objective.learned(policy) is not None:
        return {}
    deviation = prior_std(policy.domain, policy.context, policy.kernel)
    known = getattr(policy.confidence, "noise", 0.0) is not None  # None means that the noise is unknown.
    return {
        "rewards": _rewards(policy, answered.rewards, deviation),
        "regularization": _regularization(policy, deviation),
        NOISE: _noise(policy, answered) if known else None,
    }


def suspicious(policy: Policy, rewards: Array, places: IndexArray, trials: int) -> npt.NDArray[np.bool_]:
    """Returns False for studies without constraints to which `cautions` says nothing, `(S,)`.

    Args:
        policy: of all studies.
        rewards: of n answered trials of each study, of one play each, `(S, n)`.
        places: a number for each trial that all repeats in its study share, `(S, n)`.
        trials: number of all trials of each study.
    """
    studies, n = rewards.shape
    if n < FEWEST:
        return np.zeros(studies, dtype=bool)
    deviation = prior_std(policy.domain, policy.context, policy.kernel)
    if _regularization(policy, deviation) is not None:
        return np.ones(studies, dtype=bool)
    far = np.median(np.abs(rewards - policy.prior_mean), axis=1) > _farthest(policy, deviation)
    numbers = (places + (int(places.max()) + 1) * np.arange(studies)[:, None]).reshape(-1)
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    means = np.bincount(numbers, centred.reshape(-1)) / np.maximum(np.bincount(numbers), 1)
    spread = np.sum((centred - means[numbers].reshape(rewards.shape)) ** 2, axis=1)
    # The sum of squares is rounded in another way there.
    return np.asarray(far | (spread > 0.999 * _widest(policy, n, trials)))


def infeasible_sentence(sure: float, domain: Domain) -> str:
    """Returns a warning that no point may satisfy the constraints.

    Args:
        sure: least probability that this is so.
        domain: of the study. On a continuous one only some points were examined.
    """
    finite = isinstance(domain, Arms)
    which = "" if finite else " that was looked at"
    where = "everywhere" if finite else "at all candidates of the search and all points tried"
    return (
        f"No point{which} can satisfy all constraints, with probability at least {numeral(sure, 3)}: {where} some "
        "lower bound is above 0. What may violate least is played. Usually the constraint values do not lie at 0 where "
        "they are just met, or have the other sign: see `study.bounds(points, channel=1)`."
    )


def of_budgets(state: AnyState, context: Array | None) -> dict[str, str]:
    """Returns a sentence, by kind, if open decisions use up a budget of `nr.NoWorse` in a context."""
    for budget in state.rounds.budgets if isinstance(state, State) else ():
        known = budget.standing(context)
        decided = known.others + known.control
        if not known.bears and decided >= DECIDED and known.open > UNANSWERED * decided:
            return {
                "budget": f"`NoWorse` holds the study to the control: {known.open:,} of {decided:,} decisions have no "
                "answer and count as the worst, so that its budget hardly grows. Usually only some answers ever "
                "come, such as clicks. Tell the others too, as 0, or let a deadline do so."
            }
    return {}


def of_deadlines(state: AnyState, about: Mapping[str, Any], trials: Sequence[Trial]) -> dict[str, str]:
    """Returns a sentence, by kind, for what default rewards at a deadline do to a belief.

    Measured in docs/measured/late-answers.md.

    Args:
        state: after these trials.
        about: the facts of the study, with the deadline rule of the service.
        trials: all of them, in the units told.
    """
    rule = about.get(RULE)
    if not isinstance(rule, dict) or rule.get("on_deadline") != "reward" or rule.get("reward") is not None:
        return {}
    default = rule.get("default_reward")
    if not isinstance(state, State) or not isinstance(default, int | float):
        return {}
    asked = [trial for trial in trials[state.first_counted :] if was_asked(trial)]
    exposed = getattr(state.policy.pending, "wait", None) is not None
    learned = exposed and any(trial.late for trial in trials)  # Also before a cut of the memory.
    said = {
        "open": None if learned else _open(state, asked, default, exposed=exposed),
        "default constraints": _default_constraints(state.policy, asked),
    }
    return {kind: sentence for kind, sentence in said.items() if sentence is not None}


def _open(state: State, asked: Sequence[Trial], default: float, *, exposed: bool) -> str | None:
    """Returns a warning if rewards that come early are nearly all better than the default, or nearly all worse."""
    part, waits = state.policy.pending, state.reward.data.pending.waits
    if not (exposed or part.as_answered or part.hallucinates) or (waits is not None and waits.evident):
        return None
    told = [trial for trial in asked if trial.reward is not None]
    last = max((trial.number for trial in told if trial.late), default=-1)
    early = np.array([trial.reward for trial in told if not trial.late])
    over = [trial.reward for trial in told if trial.number <= last]  # Their deadline has passed.
    others = len(early) - max(np.sum(early > default), np.sum(early < default))
    if len(early) < TAUGHT_NOTHING or others > (1.0 - MOSTLY) * len(early) * bool(over):
        return None
    recent = asked[-FRESH:] if state.policy.memory.drift() is not None else asked
    waiting = sum(trial.state == "pending" for trial in recent)
    rewards = [trial.reward for trial in recent if trial.reward is not None]
    mean = float(np.mean(rewards or early))
    known = float(np.mean(over)) if over else default  # type: ignore[arg-type]  # no reward is None
    if waiting < UNANSWERED * (waiting + len(rewards)) or abs(mean - known) < UNANSWERED * abs(mean - default):
        return None
    share = f"{waiting:,} of {many(len(recent), 'trial')} are open"
    if over:
        means = f"Rewards average {numeral(mean, 3)}, and {numeral(known, 3)} where the deadline has passed."
    else:
        means = f"All {len(early):,} rewards so far are on one side of the default reward {numeral(default, 3)}."
    return (EXPOSED if exposed else OPEN).format("high" if mean > default else "low", share, means)


def _default_constraints(policy: Policy, asked: Sequence[Trial]) -> str | None:
    """Returns a warning if many answered trials have no constraint values, since a default reward has none."""
    late = [trial for trial in asked if trial.late and trial.reward is not None]
    without, told = sum(t.constraints is None for t in late), sum(t.constraints is not None for t in asked)
    if not policy.constraint_count or without < TAUGHT_NOTHING or without < UNANSWERED * (without + told) or not told:
        return None
    return (
        f"{without:,} trials have a default reward and no constraint values, which a default lacks: constraints and "
        f"budgets are judged by {many(told, 'other trial')}. Usually the values are told with a yes alone. Tell them "
        "right after the decision, or tell each no yourself with its values."
    )


def _constraints_not_told(policy: Policy | ScriptedPolicy, answered: Answered) -> str | None:
    if not policy.constraint_count or len(answered.rewards) < TAUGHT_NOTHING or answered.constraints:
        return None
    of_what = " of the constraints" if has_channels(policy) else ""
    return (
        f"{len(answered.rewards)} rewards have been told and none with the constraint values that {policy.algorithm} "
        f"needs: nothing has been learned{of_what}. Usually `constraints=` was forgotten in `study.tell`. Pass them "
        "with every reward (`study.add` takes over what there is, with its constraint values), or use a policy without "
        "constraints."
    )


def _constraints_not_wanted(policy: Policy | ScriptedPolicy, answered: Answered) -> str | None:
    if policy.constraint_count or not answered.constraints:
        return None
    return (
        f"Constraint values are told, but {policy.algorithm} has no constraints: they are recorded and change nothing. "
        "Usually another policy was meant: say `constraints=nr.EveryRound(count=...)`, or one of its relatives, where "
        "it is made, or tell rewards alone."
    )


def _rewards(policy: Policy, rewards: Array, deviation: float) -> str | None:
    """Returns a warning if rewards lie many prior standard deviations from the prior mean.

    Functions of bounded norm satisfy |f| <= B sqrt(k(x, x)).
    """
    distance = float(np.median(np.abs(rewards - policy.prior_mean)))
    if distance <= _farthest(policy, deviation):
        return None
    bound = _norm_bound(policy)
    times = "" if bound == 1.0 else f", with a norm bound of {numeral(bound, 3)}"
    return (
        f"Rewards lie far from what is expected of them: half of the {len(rewards)} told are {numeral(distance, 3)} or "
        f"more from the prior mean of {numeral(policy.prior_mean, 3)}, while f has a prior standard deviation of "
        f"{numeral(deviation, 3)}{times}. Usually `prior_mean` was left at 0, or rewards are in other units than the "
        "kernel's `scale`; then a point that has been seen looks better (or worse) than all others whatever it is "
        "worth. Give `prior_mean=` a typical reward and the kernel a `scale=` of the rewards' variance, tell "
        "standardised rewards, or have both learned by `refit=nr.slots.Refit(every=10)`."
    )


def _norm_bound(policy: Policy) -> float:
    return max(1.0, float(getattr(policy.confidence, "norm_bound", 1.0)))


def _farthest(policy: Policy, deviation: float) -> float:
    """Returns the largest typical distance of rewards from the prior mean without a warning."""
    if getattr(policy.confidence, "guessed", False):
        return math.inf  # The policy itself looks for a larger norm.
    return FAR * (_norm_bound(policy) * deviation + policy.noise)


def _regularization(policy: Policy, deviation: float) -> str | None:
    ridge, variance = policy.regularization, deviation**2
    if ridge <= STIFF * variance or ridge <= 4.0 * policy.noise**2:  # Noise that large justifies it.
        return None
    return (
        f"`regularization` (lambda) is {numeral(ridge, 3)}, {numeral(ridge / variance, 3)} times the prior variance "
        f"{numeral(variance, 3)} of f: a reward hardly moves the posterior, and hundreds of repeats teach little. "
        "Usually lambda = 1 + 2/T of the theorems meets a kernel of a small `scale`. Give `regularization=` (a "
        f"Gaussian process takes the noise's variance, {numeral(policy.noise**2, 3)}), or tell rewards in units in "
        "which they vary by about 1 and leave the kernel's `scale` at 1."
    )


def _noise(policy: Policy, answered: Answered) -> str | None:
    """Returns a warning if repeats differ more than noise of the given constant allows.

    S is at most the sum of all n squares of the noise, whichever points the policy chose. For R-sub-Gaussian noise that
    sum is at most R^2 (n + 2 sqrt(n x) + 2 x) with probability 1 - e^-x (Hsu, Kakade & Zhang 2012, Theorem 1). The k-th
    check has a share 1 / (k (k + 1)) of the probability.
    """
    if not policy.memory.keeps_all or policy.explore.seeks_changes:
        return None  # The policy assumes that f changes.
    groups, plays = _numbered(answered.where), answered.plays
    centred = answered.rewards - answered.rewards.mean()
    sums, counts = np.bincount(groups, plays * centred), np.bincount(groups, plays)
    n = int(plays.sum())
    free = n - len(counts)
    total = float(centred**2 @ plays) + answered.scatter
    spread = total - float((sums**2 / counts).sum())
    if spread <= _widest(policy, n, answered.trials) + 1e-12 * total:
        return None
    return (
        f"Repeats of a point differ more than `noise` allows: {n} rewards vary about the means of their "
        f"points with a standard deviation of {numeral(math.sqrt(spread / free), 3)}, and `noise` is "
        f"{numeral(policy.noise, 3)}; were that so, this would come about in one study of a million. Usually `noise` "
        "is too small, or something changes from trial to trial that the policy does not know of. Give a larger "
        "`noise`, make what changes a context, or choose a `memory` for a world that changes."
    )


def _widest(policy: Policy, n: int, trials: int) -> float:
    """Returns the largest sum of n squares of the noise without a warning, after so many trials."""
    variance = policy.noise**2 or policy.regularization
    check = max(trials // FIRST, 1).bit_length()  # k = 1 from 4 trials, 2 from 8, and so on.
    x = math.log(check * (check + 1) / FALSE_ALARM)
    return variance * (n + 2.0 * math.sqrt(n * x) + 2.0 * x)


def _where(trial: Trial) -> Hashable:
    """Returns a key that all repeats of a trial share. A reward of known noise says nothing about the common noise."""
    if trial.std is not None:
        return "alone", trial.number
    point = trial.point.tobytes() if trial.arm is None else trial.arm
    return point if trial.context is None else (point, trial.context.tobytes())


def _multipliers(policy: Policy, answered: Answered, multipliers: Array) -> str | None:
    objective = cast(Constrained, policy.objective)
    if not policy.objective.charges or not (multipliers > objective.first()).any():
        return None
    told = answered.constraints
    recent = told[len(told) // 2 :]
    violating = [g for g in recent if (g > 0.0).any()]
    if len(recent) < FEWEST or len(violating) < MOSTLY * len(recent):
        return None
    charged = float(np.median([objective.penalty_of(g, multipliers) for g in violating]))
    size = max(float(np.ptp(answered.rewards)), prior_std(policy.domain, policy.context, policy.kernel))
    if charged <= RUNAWAY * size or (multipliers >= LARGEST).any() or any(map(objective.saturates, recent)):
        return None  # Clipped multipliers have a warning of their own.
    return (
        f"The multipliers of the constraints run away: the largest is {numeral(multipliers.max(), 3)}, and "
        f"{len(violating)} of the last {len(recent)} trials violated a constraint. A typical violation is now charged "
        f"{numeral(charged, 3)}, while rewards differ by {numeral(size, 3)}, so that they count for nothing. Usually "
        "nothing that was tried can meet the constraints, their values are large numbers, or an epoch is too short to "
        "learn anything in. See whether any trial satisfied them and whether they are 0 where they are just met; "
        "divide them by a typical violation, or take a smaller `c` (or `step`), penalty='power', or a longer `epoch`."
    )
