"""The trials that summaries count: those whose answer is not waited for any more.

If a yes comes at once and a no never, or at a deadline, the answered trials of the last days are mostly yeses. So a
trial counts once its wait is over, and not before. The yeses of younger trials are left out too.

| the study has | a trial is waited for | and counts then, if it is silent, as |
|---|---|---|
| a deadline of the service | until its deadline | the default reward, if the rule has one |
| a window (`Censored`), a wait (`Exposed`) | that long | the value of silence |
| silence that means no (`Imputed`) | until 99% of the answers that come have come | the value of silence |
| nothing of this kind | until it is answered | |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._utils.checks import Array, many
from ..policy.policy import Policy
from ..policy.state import State
from ..slots.pending import estimated_law, given_law
from ..slots.silence import FEWEST, SURE
from ..storage.trial import Trial, was_asked
from .best import admissible, at_full
from .definition import RULE
from .direction import AnyState, negated, on_average
from .late_fits import answer_delays
from .leases import renewal
from .study import Study

PAST = " past the deadline, until the next call that writes to the study"


class Wait(NamedTuple):
    """The time for which the answer of a trial is waited for.

    Attributes:
        length: seconds from the question, or number of questions after it.
        in_time: True for seconds.
        default: reward of a trial that is silent then, in the units told, or None if it has none.
        leased: True if a trial may have a deadline of its own.
    """

    length: float
    in_time: bool
    default: float | None
    leased: bool = False


class Counted(NamedTuple):
    """The trials that count.

    Attributes:
        trials: those that are not waited for, by number. Silent ones have the default reward, where there is one.
        waiting: number of the others, answered or not.
    """

    trials: list[Trial]
    waiting: int

    @property
    def answered(self) -> list[Trial]:
        """The trials that count with a reward."""
        return [trial for trial in self.trials if trial.reward is not None]

    @property
    def left_out(self) -> str:
        """The trials that do not count yet in words, or an empty text."""
        return f"{many(self.waiting, 'trial')} still waited for, answered or not" if self.waiting else ""


def wait_of(study: Study) -> Wait | None:
    """Returns how long the answers of a study are waited for, or None if that is not known."""
    rule, pending = study.about.get(RULE), getattr(study.policy, "pending", None)
    if isinstance(rule, dict) and isinstance(rule.get("deadline"), int | float):
        kind, default = rule.get("on_deadline"), rule.get("default_reward")
        if default is None and kind in ("censor", "silence"):
            default = study.minimum if kind == "censor" else 0.0
        return Wait(rule["deadline"], True, default if kind in ("reward", "censor", "silence") else None, True)
    window, wait = getattr(pending, "window", None), getattr(pending, "wait", None)
    if window is not None:  # An answer counts if at most so many questions came in between.
        in_time = bool(getattr(pending, "in_time", False))
        return Wait(window if in_time else window + 1.0, in_time, study.minimum)
    if wait is not None:
        return Wait(wait, bool(getattr(pending, "in_time", False)), getattr(pending, "minimum", None))
    return study.replica.query(lambda state: _learned(study, state)) if isinstance(study.policy, Policy) else None


def deadlines(study: Study) -> Array:
    """Returns the times, Unix seconds, at which the next write ends the wait for a pending trial, in order."""
    rule, replica = study.about.get(RULE), study.replica
    collected = isinstance(rule, dict) and rule.get("reward") is not None  # Trials have no lease then.
    wait = rule.get("deadline") if isinstance(rule, dict) and collected else None

    def read() -> Array:
        waiting = [trial for trial in replica.snapshot() if trial.state == "pending"]
        if wait is not None:
            return np.sort([trial.asked_at + wait for trial in waiting])
        return np.sort([max(each.lease_until, renewal(each)) for each in waiting if each.lease_until is not None])

    return replica.kept(("deadlines", replica.record.order), read)


def overdue(study: Study, now: float) -> int:
    """Returns how many pending trials are past their deadline. They are pending on record until the next write."""
    return int(np.searchsorted(deadlines(study), now, side="right"))


def set_at_deadline(study: Study) -> set[int]:
    """Returns the numbers of the trials whose outcome the service has set at their deadline: nobody told it."""
    rule = study.about.get(RULE)
    if not isinstance(rule, dict) or rule.get("on_deadline") not in ("reward", "fail"):
        return set()
    if rule.get("reward") is None:
        return {trial.number for trial in study.trials if trial.late}
    asked = set(_asked(study.trials))  # Each answer of a caller has a metric, by its key.
    return {trial.number for trial in study.trials if trial.number in asked and not (trial.open or trial.measured)}


def _learned(study: Study, state: AnyState) -> Wait | None:
    """Returns the wait where silence means no, which is learned from the answers."""
    if not isinstance(state, State):
        return None
    data = state.reward.data
    waits, part = data.pending.waits, study.policy.pending
    if waits is None or not (waits.evident or hasattr(part, "wait")):
        return None
    told, questions, _ = answer_delays(study.replica.record)
    delay, place = getattr(part, "delay", None), {n: i for i, n in enumerate(_asked(study.replica.record))}
    if delay is None and len(told) < FEWEST:
        length = math.inf
    elif delay is None:
        ages = np.array([len(place) - 1 - place[trial.number] for trial in told], dtype=np.intp)
        length = float(estimated_law(questions.astype(np.intp), ages).reaches(SURE))
    else:
        length = float(given_law(delay).reaches(SURE))
    worth = waits.worth(data.lowest())
    return Wait(length, False, worth if study.goals[0] == "maximize" else negated(worth))


def _asked(trials: Any) -> list[int]:
    return [trial.number for trial in trials if was_asked(trial)]


def counted_trials(study: Study, *, valued: bool = False) -> Counted:
    """Returns the trials of a study that count in a mean, a rate or a value. If no trial is open, all count.

    Args:
        study: with any policy.
        valued: True if trials are to be left out only where silence has a reward, for pictures of single values.
    """
    trials = list(study.trials)
    wait = wait_of(study) if any(trial.state == "pending" for trial in trials) else None
    if wait is None or (valued and wait.default is None):
        return Counted(trials, 0)
    asked, now = _asked(trials), study.replica.clock()
    later = {number: len(asked) - 1 - i for i, number in enumerate(asked)}
    late = _too_late(study, trials) if wait.default is not None else set()
    found, waiting = [], 0
    for trial in trials:
        number = trial.number
        if number not in later or (trial.reward is None and trial.state != "pending"):
            found.append(trial)
        elif (_ends(trial, wait) > now) if wait.in_time else (later[number] < wait.length):
            waiting += 1
        elif trial.reward is None or number in late:
            silent = wait.default is not None
            found.append(trial._replace(state="observed", reward=wait.default) if silent else trial)
        else:
            found.append(trial)
    return Counted(found, waiting)


def _ends(trial: Trial, wait: Wait) -> float:
    own = trial.lease_until if wait.leased else None
    return trial.asked_at + wait.length if own is None else own


def _too_late(study: Study, trials: list[Trial]) -> set[int]:
    """Returns the numbers of the trials whose answer came too late to count (`Pending.counts`)."""
    counts = study.policy.pending.counts
    each = zip(*answer_delays(trials)[:2], strict=True)
    return {
        trial.number for trial, count in each
        if trial.state == "observed" and not counts(trial, lambda count=count: int(count))  # type: ignore[misc]
    }  # fmt: skip


def counted_from(study: Study, asked: int) -> int:
    """Returns the number of the first trial since the last restart or within the window of the memory."""
    since = study.restarts[-1] if study.restarts else 0
    policy = study.policy
    return max(since, policy.memory.first_counted(since, asked)) if isinstance(policy, Policy) else since


def told_counted(study: Study) -> tuple[Sequence[Trial], str]:
    """Returns the trials of which the best value told is one, and which these are, in words.

    Trials before a restart do not count. Trials outside of known limits do not, and neither do those that violate a
    constraint or have no value of it. Of constraints that hold on average, no single trial violates one.
    """
    policy, since, said = study.policy, counted_from(study, len(study.trials)), list[str]()
    given = at_full(policy, [trial for trial in study.trials[since:] if trial.reward is not None])
    if since:
        said.append(f"of the trials from {since} on, as those before do not count any more")
    if study.inputs.full is not None:
        said.append("of the trials at the full setting")
    broken = sum(trial.feasible is False for trial in given)
    if broken and on_average(policy):
        said.append("trials above a limit count, as it holds on average")
    elif broken:
        said.append(f"without {many(broken, 'trial')} that violated a limit")
    unknown = sum(trial.constraints is None for trial in given) if policy.constraint_count else 0
    if unknown and not on_average(policy):
        said.append(f"without {many(unknown, 'trial')} whose constraint values are missing")
    return admissible(policy, given), "; ".join(said)
