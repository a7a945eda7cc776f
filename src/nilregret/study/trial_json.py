"""A trial as plain values that JSON can hold: for files, the command line and the service."""

from __future__ import annotations

from typing import Any

from ..domains.options import readable
from ..storage.trial import Trial

Json = dict[str, Any]


def trial_json(trial: Trial) -> Json:
    """Returns what is known of a trial.

    Options that JSON lacks are written as `nilregret.domains.options.readable` says. `context` is a dict if contexts
    have named parameters, else a list of coordinates. Times are Unix seconds. If the
    trial is to be played several times, there are three more entries. `repeats` is that number and `plays` the number
    of rewards told. `scatter` is the sum of squared deviations of the rewards from their average.
    """
    record = {
        "number": trial.number,
        "state": trial.state,
        "reward": trial.reward,
        "reason": trial.abandoned.reason if trial.abandoned and trial.state == "abandoned" else trial.reason,
        "parameters": parameters_json(trial),
        "point": trial.point.tolist(),
        "arm": trial.arm,
        "context": context_json(trial),
        "constraints": None if trial.constraints is None else trial.constraints.tolist(),
        "explored": trial.explored,
        "late": trial.late,
        "asked_at": trial.asked_at,
        "told_at": trial.told_at,
    }
    record |= {name: value for name in ("propensity", "std") if (value := getattr(trial, name)) is not None}
    if trial.others:
        record |= {"values": list(trial.values or ())} | ({} if trial.stds is None else {"stds": list(trial.stds)})
    record |= {"metrics": trial.metrics} if trial.measured else {}
    record |= {"enqueued": True} if trial.enqueued else {}
    record |= {} if trial.visit is None else trial.visit.said()
    record |= {"steps": [[*each] for each in trial.steps]} if trial.curve else {}
    if trial.repeats > 1:
        told = trial.reward is not None
        record |= {
            "repeats": trial.repeats,
            "plays": trial.times if told else None,
            "scatter": trial.scatter if told else None,
        }
    return record


def with_fits(trial: Trial) -> Json:
    """Returns `trial_json` with the fits that came into force with the trial, if there are any."""
    fits = [fit._asdict() for fit in trial.fits or ()]
    return trial_json(trial) | ({"fits": fits} if fits else {})


def with_history(trial: Trial) -> Json:
    """Returns `trial_json` with the lease, the reason for abandoning the trial, and its corrected answers."""
    return trial_json(trial) | {
        "lease_until": trial.lease_until,
        "abandoned": None if trial.abandoned is None else trial.abandoned.reason,
        "corrected": [
            {"reward": before.reward, "reason": before.reason, "told_at": before.time}
            | ({"stopped": True} if before.stopped else {})
            | ({} if before.std is None else {"std": before.std})
            | ({"others": [list(other) for other in before.others]} if before.others else {})
            | ({"metrics": dict(before.measured)} if before.measured else {})
            | ({} if before.plays is None else before.plays._asdict())
            for before in trial.corrected
        ],
    }


def parameters_json(trial: Trial) -> Json | None:
    """Returns the parameters of a trial by name, or None without names."""
    found: Json | None = readable(trial.parameters)
    return found


def context_json(trial: Trial) -> Json | list[float] | None:
    """Returns the context of a trial by names, else as a list of coordinates, or None without a context."""
    if trial.context is None:
        return None
    named = trial.context_parameters
    found: Json | list[float] = trial.context.tolist() if named is None else readable(named)
    return found
