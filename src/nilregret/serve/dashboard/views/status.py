"""The status of a study, for a row of the list and for the top of its page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ...._utils.checks import many, whole_in
from ....errors import NoRegretError, TrialError
from ....policy.policy import Policy
from ....storage.record import Trial
from ....storage.trial import TrialState
from ....study.best import told_best
from ....study.direction import best_label, on_average
from ....study.formatting import duration, metrics_text, where
from ....study.function import answers_for_units
from ....study.study import Study
from ....study.waiting import deadlines, overdue, told_counted
from ...watch.signals import AT_REST
from .columns import STATES, columns_of, latest, order_of
from .front import NO_FRONT, front_facts, front_now
from .pictures import has_front, reward_text, short

RECENT = 20  # latest trials that decide whether a study is failing
SILENT = 86_400.0  # seconds without an event after which a study with pending trials is called silent
FINISHED = 3600.0  # seconds without an event after which a study without pending trials is called silent
FRESH = ("active", "waiting")  # states that end with time if nothing happens
PAUSED, WHY_PAUSED = "p", "somebody has paused it"  # the first letter of "known" of a paused study, and its sentence
UNITS = ((7200.0, 60.0), (259_200.0, 3600.0), (math.inf, 86_400.0))  # a silence below, and the steps it is said in


def of_clicks(study: Study) -> bool:
    """Returns whether rewards are 0 and 1, whose mean is a rate and whose best says nothing."""
    return isinstance(study.policy, Policy) and study.policy.objective.clicks


def is_unchanged(study: Study, known: str, *, now: float, paused: bool = False) -> bool:
    """Returns True if the status is the same as when it had this value of "known".

    Args:
        study: a study with any policy.
        known: the entry "known" of an earlier status.
        now: present time in Unix seconds.
        paused: whether somebody has paused it.
    """
    order, _, until = known.removeprefix(PAUSED).partition("_")
    if known.startswith(PAUSED) != paused:
        return False
    if order != str(order_of(study)):
        return False
    end = whole_in(until)
    return until == "" or (end is not None and now <= end)


def status(study: Study, *, now: float) -> dict[str, Any]:
    """Returns counts of trials, times of the last events, the best trial, and a state such as "active".

    Args:
        study: a study with any policy.
        now: present time in Unix seconds.
    """
    order, columns = order_of(study), columns_of(study)
    trials, codes = columns.trials, columns.array("state")
    states: dict[TrialState, int] = {state: int((codes == place).sum()) for place, state in enumerate(STATES)}
    last_told, last_asked = latest(columns.array("told_at")), trials[-1].asked_at if trials else None
    last = max((time for time in (last_told, last_asked) if time is not None), default=None)
    state, why = state_of([trial.state for trial in trials[-RECENT:]], states, last, now)
    best, why_no_best = _best(study)
    if best is not None and on_average(study.policy):
        with suppress(NoRegretError):  # There is a context, or constraints without a posterior.
            mix = study.mix()
            at = mix.said(partial(where, names=study.replica.roster.names))
            best["mix"] = f"{short(mix.reward)} a trial: {at}"
    ends, past = deadlines(study), overdue(study, now)
    until = ends[past : past + 1].tolist()  # Times after which the status is another.
    if last is not None and state in FRESH:
        until.append(last + _seconds_until_silent(states))
    if state == "silent" and last is not None:
        until.append(now + _until_said_otherwise(now - last))
    return {
        "trials": len(trials), "observed": states["observed"], "pending": states["pending"],
        "plays": study.replica.kept("plays", lambda: sum(t.times for t in trials if t.reward is not None)),
        "failed": states["failed"], "stopped": states["stopped"], "told": _told(study, best),
        "abandoned": states["abandoned"], "last_told_at": last_told, "last_asked_at": last_asked, "last_at": last,
        "state": state, "said": _said(state, last, now), "state_why": why, "best": best, "why_no_best": why_no_best,
        "known": f"{order}_{math.ceil(min(until)) if until else ''}", "overdue": past,
        "enqueued": len(study.enqueued), "front": front_facts(study),
    }  # fmt: skip


def state_of(
    latest: Sequence[TrialState], states: Mapping[TrialState, int], last: float | None, now: float
) -> tuple[str, str]:
    """Returns "empty", "ended", "failing", "waiting", "silent" or "active", and an explanation.

    Args:
        latest: states of the last `RECENT` trials. They do not matter if no trial has failed.
        states: number of trials by state.
        last: time of the last event, Unix seconds, or None.
        now: present time in Unix seconds.
    """
    if last is None:
        return "empty", "nothing has been asked yet"
    if now - last > AT_REST:
        return "ended", f"nothing has happened for {duration(now - last)}"
    ended = [state for state in latest if state in ("observed", "failed", "stopped")]
    if ended and all(state == "failed" for state in ended):
        every = (
            "every trial"
            if states["failed"] == sum(states.values())
            else "the last trial"
            if len(ended) == 1
            else f"the last {many(len(ended), 'trial')}"
        )
        return "failing", f"{every} failed"
    if now - last > _seconds_until_silent(states):
        pending = states["pending"] > 0
        return "silent", "trials wait for answers" if pending else "no trial is open, and none has been asked for"
    if not (states["observed"] or states["stopped"]):
        return "waiting", "no answer has come yet"
    return "active", "within the day" if states["pending"] else "within the hour"


def _seconds_until_silent(states: Mapping[TrialState, int]) -> float:
    """Returns the seconds after the last event until a study is called silent."""
    return SILENT if states["pending"] else FINISHED


def _said(state: str, last: float | None, now: float) -> str:
    """Returns the state in words."""
    return f"silent for {duration(now - last)}" if state == "silent" and last is not None else state


def _until_said_otherwise(seconds: float) -> float:
    """Returns the seconds after which a duration is said in other words."""
    return next(step for below, step in UNITS if seconds < below)


def told_now(study: Study) -> tuple[Trial, str] | None:
    """Returns the trial with the best value told, of those that count, and which these are, in words.

    None if no answered trial counts (see `told_counted`), or if there are several objectives.
    """
    counted, said = ((), "") if has_front(study) else told_counted(study)
    found = told_best(counted, study.goals[0])
    return None if found is None else (found, said)


def _told(study: Study, best: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns the best reward told, its trial, and why another is recommended. None if none counts (see `told_now`)."""
    found = None if of_clicks(study) else told_now(study)  # the highest click is a click
    if found is None:
        return None
    trial, said = found
    if best is not None and best["number"] != trial.number:
        sure = ", of the points where the model takes the limits to hold" * bool(study.policy.constraint_count)
        said = "; ".join(filter(None, (said, f"recommended is the best posterior mean{sure}")))
    return {
        "label": best_label(study.goals[0]), "number": trial.number, "reward": reward_text(trial),
        "where": where(trial, names=study.replica.roster.names), "said": said,
    }  # fmt: skip


def _best(study: Study) -> tuple[dict[str, Any] | None, str]:
    """Returns the recommended trial with its posterior, or None and the reason why there is none."""
    if has_front(study):
        return None, "" if front_now(study).trials else NO_FRONT
    try:
        best = study.best()
    except TrialError as error:
        return None, str(error)
    found: dict[str, Any] = {
        "number": best.number, "where": where(best, names=study.replica.roster.names), "reward": reward_text(best),
        "context": None if best.context is None else short_context(best), "mean": None,
        "mean_of": "rate" if of_clicks(study) else "posterior mean", "lower": None, "upper": None,
        "metrics": metrics_text(best.measured), "mix": "",
    }  # fmt: skip
    if isinstance(study.policy, Policy) and not study.replica.query(answers_for_units):
        found |= believed(study, best)
    return found, ""


def believed(study: Study, trial: Trial) -> dict[str, str]:
    """Returns the posterior mean and the bounds at the point of a trial, under its context."""
    mean, _ = study.predict(trial.point[None], context=trial.context)
    lower, upper = study.bounds(trial.point[None], context=trial.context)
    return {"mean": short(float(mean[0])), "lower": short(float(lower[0])), "upper": short(float(upper[0]))}


def short_context(trial: Trial) -> str:
    """Returns the context of a trial in a line."""
    named = trial.context_parameters
    if named is not None:
        return ", ".join(f"{name}={short(value)}" for name, value in named.items())
    return "" if trial.context is None else ", ".join(short(value) for value in trial.context.tolist())
